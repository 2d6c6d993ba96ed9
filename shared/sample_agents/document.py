"""The document agent: writes a structured document from a text or a topic, one section at a time.

Each section is a step, so an interrupted run resumes after the last finished section. Each finished section is sent as
a chunk of the artifact, so a stream or a webhook shows the document grow. The last chunk is the whole document, for
clients that keep one chunk.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from a2a_serverless import Skill, TaskContext, TaskRejected, agent
from sample_agents.models import configured_models
from sample_agents.outline import plan
from sample_agents.prompts import section_prompt
from sample_agents.writing import EXAMPLES, Outline, Section, outline_from_json, without_html

if TYPE_CHECKING:
    from sample_agents.models import GetModels

ARTIFACT: Final = "document.md"
_HEADING: Final = re.compile(r"\A\s*#{1,6} [^\n]*\n")


@agent(
    id="document",
    name="Document writer",
    description="Plans a document from a given text or topic and writes it section by section, in English or Chinese.",
    skills=[
        Skill(
            id="write-document",
            name="Write a document",
            description="Turns a text, a topic or an outline into a structured Markdown document.",
            tags=("writing", "markdown", "long-running"),
            examples=EXAMPLES,
        )
    ],
    input_modes=("text/plain", "text/markdown", "application/json"),
    output_modes=("text/markdown", "text/plain"),
    whole_last_chunk=True,
)
async def document(task: TaskContext, models: GetModels = configured_models) -> None:
    """Writes ``document.md``."""
    source = task.text()
    outline = await _outline(task, models, source)

    def open_up() -> str:
        return without_html(f"# {outline.title}\n\n> {models().text.notice[outline.language]}\n\n")

    async def write(section: Section) -> str:
        body = await models().text.complete(section_prompt(outline, section, source).render())
        return without_html(f"## {section.title}\n\n{_HEADING.sub('', body).strip()}\n\n")

    titles = "; ".join(section.title for section in outline.sections)
    count = len(outline.sections)
    await task.report_progress(f"{count} {'section' if count == 1 else 'sections'}: {titles}")
    opening = await task.step("opening", open_up)
    await task.emit(ARTIFACT, opening, media_type="text/markdown", description=outline.title)
    for number, section in enumerate(outline.sections, 1):
        text = await task.step(f"section {number}", write, section)
        await task.emit(ARTIFACT, text, append=True, last=number == len(outline.sections), media_type="text/markdown")


async def _outline(task: TaskContext, models: GetModels, source: str) -> Outline:
    data = task.data()
    if data is not None:
        return outline_from_json(data)
    if not source.strip():
        raise TaskRejected("Send a text, a topic or an outline to write about.")
    return outline_from_json(await plan(task, models, source))
