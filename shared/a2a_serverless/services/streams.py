"""A stream is a cursor on the log: the task as it is, then every event after it, in order, each once.

Nothing is remembered between reads but the last number, so any instance serves any stream, closing one changes nothing,
and a client that comes back with the last number that it saw misses nothing. Looking for news costs one query of an
empty range (half a read unit) every ``QUIET_S`` seconds; news is seen within that time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

from a2a_serverless.domain.errors import TaskNotFound, UnsupportedOperation
from a2a_serverless.domain.events import Event, StatusEvent
from a2a_serverless.domain.model import Message, Task, TaskState
from a2a_serverless.domain.states import TERMINAL

if TYPE_CHECKING:
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.ports import Clock, TaskLog

T = TypeVar("T")

BUSY_S: Final = 0.1
QUIET_S: Final = 0.25
HEARTBEAT_MS: Final = 15_000
BUSY_MS: Final = 5_000

# What a send stream ends at: the turn is the client's. A task that waits for a sign-in elsewhere goes on by itself.
TURN_ENDS: Final = TERMINAL | {TaskState.INPUT_REQUIRED}


class OffLoop(Protocol):
    """Runs a blocking call without blocking the event loop."""

    def __call__(self, call: Callable[[], T], /) -> Awaitable[T]:
        """The call's result."""
        ...


async def in_thread(call: Callable[[], T]) -> T:
    """Runs the call in a thread."""
    return await asyncio.to_thread(call)


@dataclass(frozen=True, slots=True)
class StreamItem:
    """One item of a stream: a message, a snapshot or an event, and the number of the last event that it tells of."""

    n: int | None
    content: Message | Task | Event


Heartbeat: TypeAlias = None
"""Nothing happened for a while; the connection should show a sign of life."""


@dataclass(frozen=True, slots=True)
class StreamContext:
    """What a stream needs. ``until`` (ms) is when it has to end, whatever happens: the client comes back."""

    log: TaskLog
    clock: Clock
    until: int
    off_loop: OffLoop = in_thread


@dataclass(frozen=True, slots=True)
class StreamStart:
    """Where a stream begins: the task as it is, whether the client is told of it, and the event to go on behind."""

    task: Task
    told: bool
    after: int


def start_stream(log: TaskLog, key: TaskKey, agent: str, after: int | None, *, ends_fine: bool = False) -> StreamStart:
    """Where the stream of a client begins that has seen everything up to ``after``; None has seen nothing.

    Raises TaskNotFound; UnsupportedOperation when the task has ended and there is nothing more to see (3.1.6), unless
    ``ends_fine``: whoever has just sent the message gets the end as it is.
    """
    found = log.read_task(key)
    if found is None or found[0].agent != agent:
        raise TaskNotFound
    head, task = found
    if after is not None and after < task.n:
        return StreamStart(task, told=False, after=after)
    if head.is_terminal and not ends_fine:
        raise UnsupportedOperation("The task has ended. Read it with GetTask.")
    return StreamStart(task, told=after != task.n, after=task.n)


async def follow_events(
    stream: StreamContext, key: TaskKey, after: int, ends: frozenset[TaskState]
) -> AsyncGenerator[StreamItem | Heartbeat]:
    """Every event after ``after``, until a status in ``ends`` has been told or time is up; a beat when it is quiet."""
    clock = stream.clock
    told_at = quiet_since = clock.now()
    while clock.now() < stream.until:
        events = await stream.off_loop(lambda after=after: stream.log.read(key, after))  # type: ignore[misc]
        for event in events:
            yield StreamItem(event.n, event)
            after = event.n
            if isinstance(event, StatusEvent) and event.state in ends:
                return
        now = clock.now()
        if events:
            told_at = quiet_since = now
        elif now - told_at >= HEARTBEAT_MS:
            told_at = now
            yield None
        await asyncio.sleep(BUSY_S if now - quiet_since < BUSY_MS else QUIET_S)
