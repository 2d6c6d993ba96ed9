"""What a called task is known to be: its state, its artifacts, its question, and the source of each.

What a peer has said counts, and what it says later takes nothing back. A terminal state is final; else the newest read
wins. An artifact is its last whole statement: absence removes nothing, a replacement may be shorter. After the end, a
read that shows the task at work is a stale replica's, and says nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from a2a_serverless.domain.agent_errors import AgentCallFailed
from a2a_serverless.domain.digests import digest
from a2a_serverless.domain.events import part_bytes
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.protocol.v1 import (
    Artifact,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.protocol.v1 import StreamContent

REPEATED_MS: Final = 60_000
"""So long after its answer a question that comes again with other marks is the answered one."""


class Source(StrEnum):
    """Where something about a called task was read."""

    SEND = "send"
    STREAM = "stream"
    LOOK = "look"


class TaskBounds(NamedTuple):
    """The most that is taken of one called or mirrored task. ``events`` are those in the log of a mirror's task."""

    artifacts: int = 10_000
    bytes: int = 32 * 1024 * 1024
    events: int = 20_000
    questions: int = 1_000

    def check(self, agent: str, **counts: int) -> None:
        """Raises AgentCallFailed for the first of ``counts``, named as the bounds, that is over its bound."""
        for name, number in counts.items():
            if number > (most := getattr(self, name)):
                text = f"The task at the agent {agent!r} has more than {most} {name}, the most that is taken of it."
                raise AgentCallFailed(text)


BOUNDS: Final = TaskBounds()


class CalledTask:
    """A task at ``agent``. ``status`` is None until a peer has told it, and then has ``status_source``.

    ``sources`` are those of the artifacts, by their ids.
    """

    def __init__(self, task_id: str, agent: str = "", bounds: TaskBounds = BOUNDS) -> None:
        self._agent, self._bounds, self._bytes = agent, bounds, 0
        self._context_id = ""
        self._artifacts: dict[str, Artifact] = {}
        self._parts: dict[str, list[Part]] = {}
        self._last = Task(id=task_id, status=TaskStatus(state=TaskState.SUBMITTED))
        self.status: TaskStatus | None = None
        self.status_source: Source | None = None
        self.sources: dict[str, Source] = {}

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.status is not None and self.status.state in TERMINAL

    @property
    def is_asking(self) -> bool:
        """Whether it waits for its client."""
        return self.status is not None and self.status.state in INTERRUPTED

    @property
    def has_content(self) -> bool:
        """Whether it has an artifact, or a message of its agent."""
        return bool(self._artifacts) or bool(self.status and question_parts(self.status))

    @property
    def task(self) -> Task:
        """All of it but its history: looks see none or some of that. Raises ValueError before its status is known."""
        if self.status is None:
            raise ValueError("No status of the called task is known.")
        artifacts = tuple(
            artifact.model_copy(update={"parts": tuple(self._parts[name])})
            for name, artifact in self._artifacts.items()
        )
        members = {"context_id": self._context_id, "status": self.status, "artifacts": artifacts}
        return self._last.model_copy(update=members)

    def take(self, item: StreamContent, source: Source) -> bool:
        """Takes what a peer says. False if it says nothing: a stale read, or a message without a task.

        Raises AgentCallFailed if the task then has more than its bounds allow.
        """
        match item:
            case Task():
                if self.is_over and item.status.state not in TERMINAL:
                    return False
                self._context_id = item.context_id or self._context_id
                self._take_status(item.status, source)
                self._last = self._last.model_copy(update={"metadata": item.metadata or self._last.metadata})
                for artifact in join_artifacts(item.artifacts):
                    self._take_artifact(artifact, source, append=False)
                return True
            case TaskStatusUpdateEvent():
                self._context_id = item.context_id or self._context_id
                return self._take_status(item.status, source)
            case TaskArtifactUpdateEvent():
                self._take_artifact(item.artifact, source, append=item.append)
                return True
        return False

    def _take_status(self, status: TaskStatus, source: Source) -> bool:
        known = self.status
        if known and self.is_over and status.state is not known.state:
            return False
        stays = known is not None and known.state is status.state and (self.is_over or self.is_asking)
        if known and stays and not question_parts(status) and question_parts(known):
            return True  # the message is absent, which removes nothing
        self.status, self.status_source = status, source
        return True

    def _take_artifact(self, artifact: Artifact, source: Source, *, append: bool) -> None:
        name = artifact.artifact_id
        known = self._artifacts.get(name)
        self._bytes += sum(map(part_bytes, artifact.parts))
        if known is not None and (append or not artifact.parts):
            self._parts[name] += artifact.parts
        else:
            self._bytes -= sum(map(part_bytes, self._parts.get(name, ())))
            self._artifacts[name], self._parts[name] = artifact, [*artifact.parts]
        self.sources[name] = source
        self._bounds.check(self._agent, artifacts=len(self._artifacts), bytes=self._bytes)

    def differences(self, read: Task) -> list[str]:
        """What was said that a read does not show, with its sources, for the log: the state, the count of artifacts."""
        shown = {artifact.artifact_id for artifact in read.artifacts}
        sources = Counter(source for name, source in self.sources.items() if name not in shown)
        lost = [f"{number} artifacts ({source})" for source, number in sources.items()]
        is_other = self.status and self.status.state is not read.status.state
        return [f"{self.status.state} ({self.status_source})", *lost] if self.status and is_other else lost

    def only_new(self, task: Task) -> Task:
        """The task without its history, and without the artifacts that are known as they are."""
        artifacts = tuple(one for one in join_artifacts(task.artifacts) if not self._is_known(one))
        return task.model_copy(update={"artifacts": artifacts, "history": ()})

    def _is_known(self, artifact: Artifact) -> bool:
        known = self._artifacts.get(artifact.artifact_id)
        parts = tuple(self._parts.get(artifact.artifact_id, ()))
        return known is not None and known.model_copy(update={"parts": parts}) == artifact


def join_artifacts(artifacts: Sequence[Artifact]) -> tuple[Artifact, ...]:
    """Each artifact of one statement once: later ones of the same id continue the first."""
    by_id: dict[str, Artifact] = {}
    for artifact in artifacts:
        first = by_id.get(artifact.artifact_id, artifact)
        parts = artifact.parts if first is artifact else (*first.parts, *artifact.parts)
        by_id[artifact.artifact_id] = first.model_copy(update={"parts": parts})
    return tuple(by_id.values())


def question_parts(status: TaskStatus) -> tuple[Part, ...]:
    """The parts of the agent's message in a status; empty if it has none, or repeats a message of the user."""
    message = status.message
    return message.parts if message and message.role is Role.AGENT else ()


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question of a called task by its marks, "" and 0 without: its message's id, its timestamp (ms), its content."""

    message_id: str
    timestamp: int
    parts: str

    @classmethod
    def of(cls, status: TaskStatus) -> Self:
        """The question in the status of a task that waits."""
        message_id = status.message.message_id if status.message else ""
        return cls(message_id, status.timestamp, digest([status.state, *question_parts(status)]))

    @classmethod
    def load(cls, value: Any) -> Self:  # noqa: ANN401 - stored JSON
        """The question of a stored value."""
        return cls(**value)

    @property
    def value(self) -> JsonObject:
        """The JSON to store."""
        return asdict(self)

    def is_same(self, later: AskedQuestion, *, keeps_ids: bool, may_repeat: bool) -> bool:
        """Whether a later read shows this question. ``keeps_ids``: the agent's messages have one id at each read.

        ``may_repeat``: a question with other marks is also this one, if its content is equal.
        """
        has_ids = self.message_id != "" and later.message_id != ""
        if has_ids and (keeps_ids or self.message_id == later.message_id):
            return self.message_id == later.message_id
        same_content = self.parts == later.parts
        # Two questions may be asked within a millisecond; of one question a read may lack the message.
        # tests/engine/test_calls.py: test_a_time_limit_around_a_call_that_has_asked_is_over_in_no_later_run
        if self.timestamp != 0 and self.timestamp == later.timestamp:
            return same_content or not has_ids
        return may_repeat and same_content
