"""The sample agents with other models: pictures at no cost."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sample_agents.document import document
from sample_agents.image import image
from sample_agents.models import Models
from sample_agents.offline.image import OfflineImage
from sample_agents.offline.text import OfflineText
from sample_agents.orchestrator import orchestrator
from sample_agents.outline import outline
from sample_agents.summary import summary
from sample_agents.travel import travel

if TYPE_CHECKING:
    from a2a_serverless import Agent
    from sample_agents.models import ImageModel, TextModel


class Sketches:
    """Images at no cost: the prompt itself."""

    async def generate(self, prompt: str) -> bytes:
        return prompt.encode()


def with_models(agent: Agent, text: TextModel | None = None, image: ImageModel | None = None) -> Agent:
    """The agent with these models, and the offline generators in place of others."""
    work: Any = agent.work
    return replace(agent, work=partial(work, models=lambda: Models(text or OfflineText(), image or OfflineImage())))


sketching: Final = with_models(image, image=Sketches())
WRITERS: Final = (orchestrator, outline, document, summary)
SKETCHED: Final = (*WRITERS, sketching)
SHIPPED: Final = (*WRITERS, image, travel)
