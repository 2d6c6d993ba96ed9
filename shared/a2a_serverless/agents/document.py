"""The document agent: from a text or a topic to a structured document, one section at a time.

Each section is a step, so a run that dies goes on behind the last finished one; each finished section goes out as a
chunk of the artifact, so a stream or a webhook shows the document grow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless.domain.agent import AgentSkill, AgentTask, TaskRejected, agent
from a2a_serverless.domain.writing import Outline, Section, outline_from_json, outline_to_json

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json

ARTIFACT = "document.md"


@agent(
    id="document",
    name="Document writer",
    description="Plans a document from a given text or topic and writes it section by section, in English or Chinese.",
    skills=[
        AgentSkill(
            id="write-document",
            name="Write a document",
            description="Turns a text, a topic or an outline into a structured Markdown document.",
            tags=("writing", "markdown", "long-running"),
            examples=("Write a document about this text: ...", "根据以下内容写一篇文档：……"),
        )
    ],
    input_modes=("text/plain", "text/markdown", "application/json"),
    output_modes=("text/markdown", "text/plain"),
)
async def document(task: AgentTask) -> None:
    """Writes ``document.md``."""
    source = task.text()
    outline = await _outline(task, source)

    async def open_up() -> str:
        return await task.text_model.opening(outline, source)

    async def write(section: Section) -> str:
        return await task.text_model.section(outline, section, source)

    await task.report_progress(_plan(outline))
    opening = await task.step("opening", open_up)
    await task.emit(ARTIFACT, opening, media_type="text/markdown", description=outline.title)
    for number, section in enumerate(outline.sections, 1):
        text = await task.step(f"section {section.id}", write, section)
        await task.emit(ARTIFACT, text, append=True, last=number == len(outline.sections), media_type="text/markdown")


async def _outline(task: AgentTask, source: str) -> Outline:
    given = task.data()
    if given is not None:
        return outline_from_json(given)
    if not source.strip():
        raise TaskRejected("Send a text, a topic or an outline to write about.")

    async def plan() -> Json:
        return outline_to_json(await task.text_model.outline(source))

    return outline_from_json(await task.step("outline", plan))


def _plan(outline: Outline) -> str:
    titles = "; ".join(section.title for section in outline.sections)
    return f"{len(outline.sections)} sections: {titles}"
