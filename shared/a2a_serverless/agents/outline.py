"""The outline agent: from a text or a topic to the plan of a document, as a data part.

It always answers with a task, which the waiting request does itself: the plan is an artifact that the next agent takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.agent import AgentSkill, AgentTask, TaskRejected, agent
from a2a_serverless.domain.writing import outline_to_json

if TYPE_CHECKING:
    from a2a_serverless.domain.model import JsonObject

ARTIFACT: Final = "outline.json"
_NOTHING: Final = "Send a text or a topic to outline. 请发送要列提纲的文本或主题。"


@agent(
    id="outline",
    name="Outline writer",
    description="Plans a document from a given text or topic: sections with their points, in English or Chinese.",
    skills=[
        AgentSkill(
            id="generate-outline",
            name="Generate an outline",
            description="Turns a text or a topic into an outline that the document writer takes as it is.",
            tags=("writing", "planning"),
            examples=("Outline a guide to keeping bees", "为“城市养蜂”列一个提纲"),
        )
    ],
    runs="inline",
    input_modes=("text/plain", "text/markdown"),
    output_modes=("application/json",),
)
async def outline(task: AgentTask) -> None:
    """Emits ``outline.json``: one data part, ``domain.writing.outline_to_json``."""
    source = task.text()

    async def plan() -> JsonObject:
        return outline_to_json(await task.text_model.outline(source))

    if not source.strip():
        raise TaskRejected(_NOTHING)
    planned = await task.step("outline", plan)
    await task.emit(ARTIFACT, planned, last=True, media_type="application/json", description=str(planned["title"]))
