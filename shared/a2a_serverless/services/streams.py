"""Streams read the log: first the current task, then every later event, in order, each once.

The only state between reads is the number of the last event. So any instance can serve any stream, closing one changes
nothing, and a client that reconnects with its last number misses nothing. A quiet stream costs one query of
an empty range (half a read unit) every ``QUIET_S`` seconds, and sends a new event within that time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from a2a_serverless.domain.errors import TaskNotFound, UnsupportedOperation
from a2a_serverless.domain.events import Event, StatusEvent
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.protocol.v1 import Message, Task, TaskState
from a2a_serverless.services.task_changes import read_existing_head

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.ports.system import Clock
    from a2a_serverless.store.task_log import TaskLog

T = TypeVar("T")

BUSY_S: Final = 0.1
QUIET_S: Final = 0.25
HEARTBEAT_MS: Final = 15_000
BUSY_MS: Final = 5_000

# The states that end the stream of a message: the client has to act. AUTH_REQUIRED does not: signing in is no message.
TURN_ENDS: Final = TERMINAL | {TaskState.INPUT_REQUIRED}


class OffLoop(Protocol):
    """Runs a call of a store so that the event loop is not blocked."""

    def __call__(self, call: Callable[[], T], /) -> Awaitable[T]:
        """The call's result."""
        ...


class StreamItem(NamedTuple):
    """One item of a stream: a message, a task or an event. ``n`` is the last event in it; None for a message."""

    n: int | None
    content: Message | Task | Event


Heartbeat: TypeAlias = None
"""No event for ``HEARTBEAT_MS``; the connection should send something, to stay open."""


class StreamContext(NamedTuple):
    """The dependencies of a stream. ``until`` (ms) is its latest end; the client can reconnect."""

    log: TaskLog
    clock: Clock
    until: int
    off_loop: OffLoop = asyncio.to_thread


class StreamStart(NamedTuple):
    """The start of a stream: the task's head, the task if the stream sends it, and the event to continue after."""

    head: Head
    task: Task | None
    after: int


def start_stream(log: TaskLog, key: TaskKey, agent: str, after: int | None, *, ends_fine: bool = False) -> StreamStart:
    """Determines the start of a stream for a client that has received every event up to ``after`` (None: no event).

    Raises TaskNotFound, and UnsupportedOperation if the task has ended and the client has received it all
    (specification 3.1.6). With ``ends_fine``, for the sender of a message, a task whose turn is over is sent instead.
    The task, which may be large, is read only to be sent.
    """
    head, last = read_existing_head(log, key, agent)
    if after is not None and after < last:
        return StreamStart(head, None, after)
    _check_end(head, ends_fine)
    if after == last and not (ends_fine and head.state in TURN_ENDS):
        return StreamStart(head, None, last)
    current = log.read_task(key)
    if current is None:
        raise TaskNotFound
    _check_end(current[0], ends_fine)  # again: it may have ended meanwhile
    return StreamStart(*current, current[1].n)


def _check_end(head: Head, ends_fine: bool) -> None:  # noqa: FBT001 - as its caller's
    if head.is_terminal and not ends_fine:
        raise UnsupportedOperation("The task has ended. Read it with GetTask.")


async def follow_events(
    stream: StreamContext, key: TaskKey, after: int, ends: frozenset[TaskState]
) -> AsyncGenerator[StreamItem | Heartbeat]:
    """Yields every event after ``after``, and heartbeats, until a status in ``ends`` was sent or the time is over."""
    clock = stream.clock
    sent_at = quiet_since = clock.now()
    while clock.now() < stream.until:
        events = await stream.off_loop(lambda after=after: stream.log.read(key, after))  # type: ignore[misc]
        for event in events:
            yield StreamItem(event.n, event)
            after = event.n
            if isinstance(event, StatusEvent) and event.state in ends:
                return
        now = clock.now()
        if events:
            sent_at = quiet_since = now
        elif now - sent_at >= HEARTBEAT_MS:
            sent_at = now
            yield None
        await asyncio.sleep(BUSY_S if now - quiet_since < BUSY_MS else QUIET_S)
