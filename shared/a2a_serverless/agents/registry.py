"""The agents of this deployment. To deploy one of yours, add its file and its line here."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from a2a_serverless.agents.document import document
from a2a_serverless.agents.image import image
from a2a_serverless.agents.orchestrator import orchestrator
from a2a_serverless.agents.outline import outline
from a2a_serverless.agents.summary import summary
from a2a_serverless.agents.travel import travel
from a2a_serverless.domain.access import READ

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import Agent

AGENTS: Final = (orchestrator, outline, document, summary, image, travel)

# Paths at the root that are not an agent's, and the word that scopes end with.
RESERVED: Final = frozenset({"agents", "legacy", "callbacks", "operator", ".well-known", READ})


def by_id(agents: tuple[Agent, ...] = AGENTS) -> MappingProxyType[str, Agent]:
    """The agents by the path segment of their base URL.

    Raises ValueError when two share one, when one is reserved, and when a card would have an empty list where it must
    have none (specification 5.7).
    """
    found = {agent.id: agent for agent in agents}
    if len(found) != len(agents):
        raise ValueError("two agents have the same id")
    if taken := RESERVED & found.keys():
        raise ValueError(f"an agent cannot be called {', '.join(sorted(taken))}")
    for agent in agents:
        if not (agent.skills and agent.input_modes and agent.output_modes and all(one.tags for one in agent.skills)):
            raise ValueError(f"the card of {agent.id} needs a skill with a tag, and media types in and out")
    return MappingProxyType(found)
