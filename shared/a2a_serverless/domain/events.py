"""The log of a task: two kinds of event, and the replay that makes the client's task from them.

Events are numbered from 1 without gaps. ``append_id`` is unique for each append: a retried write that finds its own
id has succeeded the first time. ``fence`` is the fence of the run that wrote the event, 0 for a client's event. Times
are ms.

Every change of a task's state goes through ``check``. Artifact chunks are allowed in ``CHUNKS`` only. A test compares
the diagram in ARCHITECTURE.md with the table of transitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from a2a_serverless.domain import budgets, usage
from a2a_serverless.domain.errors import IllegalTransition
from a2a_serverless.protocol.protojson import Metadata, Names, ProtoModel
from a2a_serverless.protocol.v1 import (
    Artifact,
    Message,
    Part,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from a2a_serverless.domain.model import JsonObject

S = TaskState

TERMINAL: Final = frozenset({S.COMPLETED, S.FAILED, S.CANCELED, S.REJECTED})
INTERRUPTED: Final = frozenset({S.INPUT_REQUIRED, S.AUTH_REQUIRED})
RUNNABLE: Final = frozenset({S.SUBMITTED, S.WORKING})
CHUNKS: Final = frozenset({S.WORKING})

NEXT: Final[dict[TaskState | None, frozenset[TaskState]]] = {
    None: frozenset({S.SUBMITTED}),
    S.SUBMITTED: frozenset({S.SUBMITTED, S.WORKING, S.FAILED, S.CANCELED, S.REJECTED}),
    S.WORKING: frozenset({S.WORKING, *INTERRUPTED, *TERMINAL}),
    S.INPUT_REQUIRED: frozenset({S.WORKING, S.FAILED, S.CANCELED}),
    S.AUTH_REQUIRED: frozenset({S.WORKING, S.FAILED, S.CANCELED}),
    S.COMPLETED: frozenset(),
    S.FAILED: frozenset(),
    S.CANCELED: frozenset(),
    S.REJECTED: frozenset(),
}


def check(before: TaskState | None, after: TaskState) -> None:
    """Checks that ``after`` may follow ``before`` (None: no task yet); raises ``IllegalTransition``."""
    if after not in NEXT[before]:
        raise IllegalTransition(f"{after} may not follow {before or 'nothing'}")


def check_chunk(state: TaskState | None) -> None:
    """Checks that an artifact chunk may be appended in ``state``; raises ``IllegalTransition``."""
    if state not in CHUNKS:
        raise IllegalTransition(f"an artifact chunk may not follow {state or 'nothing'}")


PART_BYTES: Final = 32  # in the log, for each part in addition to its content


@dataclass(frozen=True, slots=True)
class Incoming:
    """A client's request to send a message; stored in the status event that it caused.

    ``extensions`` are the URIs that the request named in its ``A2A-Extensions`` header.
    """

    __pydantic_config__ = ProtoModel.model_config

    message: Message
    accepted_output_modes: Names = ()
    metadata: Metadata = None
    extensions: Names = ()


class StatusEvent(NamedTuple):
    """The task's state from ``at`` (ms) on, perhaps with an agent's message or because of a client's message.

    ``usage`` is the task's usage so far, if its run knows of any (``domain/usage.py``); ``budget`` is what a task with
    a budget has spent so far, and its bounds. ``joined`` are the ids of earlier progress messages whose parts
    ``message`` has, too. ``answers`` is the id of the question that a message of the client answers, if a retried task
    has copied both.
    """

    n: int
    at: int
    append_id: str
    state: TaskState
    message: Message | None = None
    incoming: Incoming | None = None
    fence: int = 0
    usage: JsonObject | None = None
    joined: tuple[str, ...] = ()
    answers: str = ""
    budget: JsonObject | None = None

    @property
    def metadata(self) -> JsonObject:
        """The members of the task's metadata that this event sets."""
        members = {usage.METADATA_KEY: self.usage, budgets.METADATA_KEY: self.budget}
        return {name: member for name, member in members.items() if member}


class ArtifactEvent(NamedTuple):
    """A chunk of an artifact. ``emits`` is the closed range of the author's emit numbers in it, from 1.

    ``step`` is the path of the scope that emitted it; ``attempt`` is the id of the attempt at a step, 0 outside of
    steps.
    """

    n: int
    at: int
    append_id: str
    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    emits: tuple[int, int] = (0, 0)
    fence: int = 0
    step: str = ""
    attempt: int = 0


UNWRITTEN: Final = (0, 0, "")
"""Number, time and author of a chunk until it is written."""

Event: TypeAlias = StatusEvent | ArtifactEvent


def event_size(event: Event) -> int:
    """The event's approximate size in the log, in bytes."""
    if isinstance(event, ArtifactEvent):
        return sum(map(part_bytes, event.artifact.parts))
    messages = (event.message, event.incoming and event.incoming.message)
    return sum(part_bytes(part) for message in messages if message for part in message.parts)


UNREAD: Final = (Part(text=""),)


def outline(event: Event) -> Event:
    """The event with an empty text in place of the parts of its messages or artifact, and without their descriptions.

    It moves a task's status, metadata and usage like the event itself.
    """
    if isinstance(event, ArtifactEvent):
        return event._replace(artifact=Artifact(artifact_id=event.artifact.artifact_id, parts=UNREAD))
    message = event.message and _without_content(event.message)
    incoming = event.incoming and Incoming(_without_content(event.incoming.message), metadata=event.incoming.metadata)
    return event._replace(message=message, incoming=incoming)


def _without_content(message: Message) -> Message:
    return Message(role=message.role, message_id=message.message_id, parts=UNREAD)


def events_shown(events: Sequence[Event], history: int | None, *, artifacts: bool) -> set[int]:
    """The numbers of those events whose messages or artifacts ``Task.limited`` shows, after the last of ``events``."""
    past, current = _messages(events)
    numbers = past if history is None else past[max(0, len(past) - history) :]
    return {*numbers, *current, *(event.n for event in events if artifacts and isinstance(event, ArtifactEvent))}


def count_messages(events: Sequence[Event]) -> int:
    """How many messages of the history the events bring, after the last of them."""
    return len(_messages(events)[0])


def _messages(events: Sequence[Event]) -> tuple[list[int], list[int]]:
    """The event's number for each message of the history, and for that of the status, after the last of ``events``."""
    statuses = [event for event in events if isinstance(event, StatusEvent)]
    numbers = [event.n for event in statuses for message in (event.incoming, event.message) if message]
    past = len(numbers) - (1 if statuses and statuses[-1].message else 0)
    return numbers[:past], numbers[past:]


def part_bytes(part: Part) -> int:
    """The part's approximate size in the log, in bytes."""
    return len(str(part.value).encode("utf-8", "surrogatepass")) + PART_BYTES


def update_of(event: Event, task_id: str, context_id: str) -> TaskStatusUpdateEvent | TaskArtifactUpdateEvent:
    """The event in the form for clients (4.2.1, 4.2.2)."""
    if isinstance(event, StatusEvent):
        status = TaskStatus(state=event.state, timestamp=event.at, message=event.message)
        metadata = event.metadata or None
        return TaskStatusUpdateEvent(task_id=task_id, context_id=context_id, status=status, metadata=metadata)
    return TaskArtifactUpdateEvent(
        task_id=task_id,
        context_id=context_id,
        artifact=event.artifact,
        append=event.append,
        last_chunk=event.last_chunk,
    )


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


def contiguous(after: int, events: Iterable[Event]) -> list[Event]:
    """The events after number ``after``, up to the first gap: the log is not complete after a gap."""
    numbered = enumerate(events, after + 1)
    return [event for _, event in takewhile(lambda pair: pair[0] == pair[1].n, numbered)]


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
        known = self._artifacts.get(artifact.artifact_id)
        if event.append and known is None:
            raise IllegalTransition(f"artifact {artifact.artifact_id} has no chunk to append to")
        if event.append and known:
            known[1].append(artifact.parts)
        else:
            self._artifacts[artifact.artifact_id] = (artifact, [artifact.parts])


def replay(task_id: str, context_id: str, events: Iterable[Event]) -> Task:
    """The task of a log's events. Raises ``IllegalTransition`` for an invalid log."""
    return TaskReplay(task_id, context_id).after(events)
