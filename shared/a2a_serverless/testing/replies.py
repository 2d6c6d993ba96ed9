"""What the client of a test harness gets: a message, or a task with its artifacts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_serverless.protocol.v1 import Artifact, Message, Task, TaskState

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to a message: a plain message, or the task once no more work is left to do without the client.

    ``error`` is the exception that the agent's function raised, or None.
    """

    answer: Task | Message
    error: BaseException | None = None

    @property
    def task(self) -> Task:
        """The task; raises TypeError if the agent answered with a message."""
        if isinstance(self.answer, Message):
            raise TypeError("the agent answered with a message and made no task")
        return self.answer

    @property
    def state(self) -> TaskState | None:
        """The task's state; None for a plain message."""
        return None if isinstance(self.answer, Message) else self.answer.status.state

    @property
    def said(self) -> str:
        """The text of the message, or of the task's status message (a question, a reason, a final text)."""
        message = self.answer if isinstance(self.answer, Message) else self.answer.status.message
        return message.text() if message else ""

    @property
    def artifacts(self) -> dict[str, Artifact]:
        """The task's artifacts by name; a missing one raises ``NoArtifact``."""
        return _Artifacts(self)

    def text(self, name: str) -> str:
        """The text of the artifact ``name``."""
        return self.artifacts[name].text()

    def data(self, name: str) -> Json:
        """The first data part of the artifact ``name``."""
        return self.artifacts[name].data()


class NoArtifact(KeyError):
    """The task has no artifact with this name. The cause is the exception of the agent's function, if any."""

    def __str__(self) -> str:
        return str(self.args[0])


class _Artifacts(dict[str, Artifact]):
    def __init__(self, reply: Reply) -> None:
        super().__init__({artifact.name or artifact.artifact_id: artifact for artifact in reply.task.artifacts})
        self._reply = reply

    def __missing__(self, name: str) -> Artifact:
        state, text, error = self._reply.state, self._reply.said, self._reply.error
        error_text = f" The agent raised {type(error).__name__}: {error}" if error else ""
        there = ", ".join(map(repr, self)) or "none"
        raise NoArtifact(
            f"no artifact {name!r} (there is: {there}); the task is {state}: {text}{error_text}"
        ) from error
