"""The parts of a message for a model, the artifact with an agent's answer, and the answers of other agents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from a2a_serverless import AgentCallFailed, Message, TaskState

if TYPE_CHECKING:
    from a2a_serverless import Artifact, Part, Task, TaskContext
    from a2a_serverless.domain.model import Json

ANSWER: Final = "answer"
"""The name of the artifact."""
_YES: Final = frozenset({"yes", "y", "ok", "approve", "approved", "true"})


class AnswerStream:
    """Emits the text of one model response while it arrives, in place of the former content of the artifact ``name``.

    The last piece waits for ``end``, which knows whether it is the last chunk of the answer.
    """

    def __init__(self, task: TaskContext, name: str = ANSWER) -> None:
        self._task = task
        self._name = name
        self._piece = ""
        self._append = False

    async def add(self, text: str) -> None:
        """Emits the piece before this one."""
        if text and self._piece:
            await self._emit(last=False)
        self._piece = text or self._piece

    async def end(self, *, last: bool) -> None:
        """Emits the last piece."""
        if self._piece:
            await self._emit(last=last)

    async def _emit(self, *, last: bool) -> None:
        await self._task.emit(self._name, self._piece, append=self._append, last=last)
        self._append = True


def text_in(part: Part) -> str | None:
    """The content of a text or a text file, data as JSON; None for any other file."""
    if part.kind == "data":
        return json.dumps(part.value, ensure_ascii=False)
    return part.text if part.text is not None else part.readable or None


def is_yes(text: str) -> bool:
    """Whether a client's text approves."""
    return text.strip().rstrip(".!").lower() in _YES


def content_of(answer: Task | Message) -> Json:
    """The answer of another agent: data or text, or a list of both. Raises AgentCallFailed if its task failed."""
    if isinstance(answer, Message):
        return data_or_text(answer)
    text = answer.status.message.text() if answer.status.message else ""
    if answer.status.state is not TaskState.COMPLETED:
        raise AgentCallFailed(f"The task of the other agent is {answer.status.state}: {text}")
    match [data_or_text(artifact) for artifact in answer.artifacts]:
        case []:
            return text
        case [content]:
            return content
        case contents:
            return contents


def data_or_text(holder: Message | Artifact) -> Json:
    """The first data part, or else the text."""
    data = holder.data()
    return holder.text() if data is None else data
