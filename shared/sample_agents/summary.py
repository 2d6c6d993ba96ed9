"""The summary agent: summarises a text in a few sentences, as a plain message.

It needs no task: the answer comes at once and there is nothing to track (message-only, "Life of a Task"). Only a text
that takes longer than the request may last becomes a task, whose last message is the summary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless import Skill, TaskContext, TaskRejected, agent
from sample_agents.models import configured_models
from sample_agents.prompts import summary_prompt
from sample_agents.writing import EXAMPLES

if TYPE_CHECKING:
    from sample_agents.models import GetModels


@agent(
    id="summary",
    name="Summariser",
    description="Says in a few sentences what a text says, in the text's own language, English or Chinese.",
    skills=[
        Skill(
            id="summarise",
            name="Summarise a text",
            description="Answers with the sentences that carry the text.",
            tags=("writing", "summary"),
            examples=EXAMPLES,
        )
    ],
    runs="inline",
    input_modes=("text/plain", "text/markdown"),
    output_modes=("text/plain",),
)
async def summary(task: TaskContext, models: GetModels = configured_models) -> str:
    """Answers with a message."""
    text = task.text()
    if not text.strip():
        raise TaskRejected("Send a text to summarise. 请发送要摘要的文本。")
    return " ".join((await models().text.complete(summary_prompt(text).render())).split())
