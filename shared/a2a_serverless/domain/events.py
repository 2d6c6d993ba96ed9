"""The log of a task: two kinds of event.

Events are numbered from 1 without gaps. ``append_id`` is unique for each append: a retried write that finds its own
id has succeeded the first time. ``fence`` is the fence of the run that wrote the event, 0 for a client's event. Times
are ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from a2a_serverless.domain import budgets, usage
from a2a_serverless.protocol.protojson import Metadata, Names, ProtoModel
from a2a_serverless.protocol.v1 import (
    Artifact,
    Message,
    Part,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from a2a_serverless.domain.model import JsonObject

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


def contiguous(after: int, events: Iterable[Event]) -> list[Event]:
    """The events after number ``after``, up to the first gap: the log is not complete after a gap."""
    numbered = enumerate(events, after + 1)
    return [event for _, event in takewhile(lambda pair: pair[0] == pair[1].n, numbered)]
