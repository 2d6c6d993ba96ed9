"""The replay of a task's log: it makes the client's task from the events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless.domain import budgets, usage
from a2a_serverless.domain.errors import IllegalTransition
from a2a_serverless.domain.events import ArtifactEvent, Event, StatusEvent
from a2a_serverless.domain.states import TERMINAL, check, check_chunk
from a2a_serverless.protocol.v1 import Artifact, Message, Part, Task, TaskState, TaskStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from a2a_serverless.domain.model import JsonObject


def join_chunks(chunks: Iterable[Sequence[Part]]) -> tuple[Part, ...]:
    """The parts of an artifact's chunks. A text at the beginning of a chunk continues the text at the end of the last.

    It does so if media type, filename and metadata are the same. Texts of one chunk stay separate parts.
    """
    runs: list[list[Part]] = []
    for chunk in chunks:
        first, *others = [[part] for part in chunk]
        if runs and is_same_text(runs[-1][0], first[0]):
            runs[-1] += first
        else:
            runs.append(first)
        runs += others
    return tuple(run[0] if len(run) == 1 else join_texts(run) for run in runs)


def is_same_text(first: Part, second: Part) -> bool:
    """Whether both are texts that differ only in their text."""
    about = [(part.kind, part.media_type, part.filename, part.metadata) for part in (first, second)]
    return first.kind == "text" and about[0] == about[1]


def join_texts(parts: Sequence[Part]) -> Part:
    """The first text, with the other texts appended."""
    return parts[0].with_content(text="".join(str(part.value) for part in parts))


class TaskReplay:
    """Applies events one by one and returns the task at any point. A forbidden event changes nothing.

    Without ``artifacts`` the task has none.
    """

    def __init__(self, task_id: str, context_id: str, *, artifacts: bool = True) -> None:
        self.task_id = task_id
        self.context_id = context_id
        self.n = 0
        self.status: TaskStatus | None = None
        self.metadata: JsonObject | None = None
        self._own_metadata: JsonObject = {}
        self._history: list[Message] = []
        self._artifacts: dict[str, tuple[Artifact, list[tuple[Part, ...]]]] = {}
        self._with_artifacts = artifacts

    @classmethod
    def from_task(cls, task: Task, *, artifacts: bool = True) -> TaskReplay:
        """A replay that continues after event ``n`` of the task."""
        replay = cls(task.id, task.context_id, artifacts=artifacts)
        replay.n, replay.status, replay.metadata = task.n, task.status, task.metadata
        own = (usage.METADATA_KEY, budgets.METADATA_KEY)
        replay._own_metadata = {name: value for name, value in (task.metadata or {}).items() if name in own}
        replay._history = [*task.history]
        if artifacts:
            replay._artifacts = {artifact.artifact_id: (artifact, [artifact.parts]) for artifact in task.artifacts}
        return replay

    @property
    def state(self) -> TaskState | None:
        """The state so far; None before the first event."""
        return self.status.state if self.status else None

    def apply(self, event: Event) -> None:
        """Applies the next event; raises ``IllegalTransition``, without a change, if the event is not allowed."""
        if event.n != self.n + 1:
            raise IllegalTransition(f"event {event.n} may not follow event {self.n}")
        before = self.status
        if isinstance(event, StatusEvent):
            check(before.state if before else None, event.state)
            if before and before.message:
                self._history.append(before.message)
            if event.incoming:
                self._history.append(event.incoming.message)
                self.metadata = self.metadata if event.incoming.metadata is None else event.incoming.metadata
            self._own_metadata |= event.metadata
            self.status = TaskStatus(state=event.state, timestamp=event.at, message=event.message)
        else:
            self._apply_chunk(event)
        self.n = event.n

    def after(self, events: Iterable[Event]) -> Task:
        """Applies the next ``events`` and returns the task. It ignores events after the end of the task."""
        for event in events:
            if self.state in TERMINAL:
                break
            self.apply(event)
        return self.task()

    def task(self) -> Task:
        """The task as of the last event. Raises ``IllegalTransition`` before the first."""
        if self.status is None:
            raise IllegalTransition("a task begins with its first event")
        artifacts = tuple(
            first.model_copy(update={"parts": join_chunks(chunks)}) for first, chunks in self._artifacts.values()
        )
        return Task(
            id=self.task_id,
            context_id=self.context_id,
            status=self.status,
            artifacts=artifacts,
            history=tuple(self._history),
            metadata={**(self.metadata or {}), **self._own_metadata} if self._own_metadata else self.metadata,
        ).as_of(self.n)

    def _apply_chunk(self, event: ArtifactEvent) -> None:
        check_chunk(self.state)
        if not self._with_artifacts:
            return
        artifact = event.artifact
        artifact_chunks = self._artifacts.get(artifact.artifact_id)
        if event.append and artifact_chunks is None:
            raise IllegalTransition(f"artifact {artifact.artifact_id} has no chunk to append to")
        if event.append and artifact_chunks:
            artifact_chunks[1].append(artifact.parts)
        else:
            self._artifacts[artifact.artifact_id] = (artifact, [artifact.parts])


def replay(task_id: str, context_id: str, events: Iterable[Event]) -> Task:
    """The task of a log's events. Raises ``IllegalTransition`` for an invalid log."""
    return TaskReplay(task_id, context_id).after(events)
