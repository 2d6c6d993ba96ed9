"""The outline agent: makes the plan of a document from a text or a topic, as a data part.

It always answers with a task, and runs inside the request: the plan is an artifact that the next agent uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless import Skill, TaskContext, TaskRejected, agent
from sample_agents.models import configured_models, object_from
from sample_agents.prompts import outline_prompt
from sample_agents.writing import EXAMPLES, outline_from_json, outline_to_json

if TYPE_CHECKING:
    from a2a_serverless.domain.model import JsonObject
    from sample_agents.models import GetModels

ARTIFACT: Final = "outline.json"


@agent(
    id="outline",
    name="Outline writer",
    description="Plans a document from a given text or topic: sections with their points, in English or Chinese.",
    skills=[
        Skill(
            id="generate-outline",
            name="Generate an outline",
            description="Turns a text or a topic into an outline that the document writer takes as it is.",
            tags=("writing", "planning"),
            examples=EXAMPLES,
        )
    ],
    runs="inline",
    input_modes=("text/plain", "text/markdown"),
    output_modes=("application/json",),
)
async def outline(task: TaskContext, models: GetModels = configured_models) -> None:
    """Emits ``outline.json``: one data part, ``writing.outline_to_json``."""
    source = task.text()
    if not source.strip():
        raise TaskRejected("Send a text or a topic to outline. 请发送要列提纲的文本或主题。")
    planned = await plan(task, models, source)
    await task.emit(ARTIFACT, planned, last=True, media_type="application/json", description=str(planned["title"]))


async def plan(task: TaskContext, models: GetModels, source: str) -> JsonObject:
    """The plan of a document about a text or a topic, made in a step: ``writing.outline_to_json``."""

    async def outlined() -> JsonObject:
        return outline_to_json(await object_from(models().text, outline_prompt(source).render(), outline_from_json))

    return await task.step("outline", outlined)
