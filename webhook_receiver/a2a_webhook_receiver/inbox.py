"""The latest requests, accepted or refused and why: bounded lists in memory, with notification of watchers.

The inbox is for people. What must survive (replay memory, expectations) is in a store; what must reach an application
goes through a relay. Accepted and refused entries have separate lists, so a flood of bad requests displaces no good
entry.
"""

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from a2a_webhook_receiver.strict_json import Json

Outcome = Literal["accepted", "late", "duplicate", "challenge", "refused"]

MAX_ENTRIES = 200
TASKS = 100
WATCHERS = 32


@dataclass(frozen=True, slots=True)
class Entry:
    """One request. ``number`` grows with every entry, over restarts too. ``received_at``: ms since the epoch."""

    number: int
    received_at: int
    outcome: Outcome
    view: Mapping[str, Json]

    def as_json(self) -> dict[str, Json]:
        return {"number": self.number, "receivedAt": self.received_at, "outcome": self.outcome, **self.view}


@dataclass(frozen=True, slots=True)
class TaskLine:
    """The newest known state of a task, by event number and not by arrival."""

    task_id: str
    event_number: int
    state: str | None

    def as_json(self) -> dict[str, Json]:
        return {"taskId": self.task_id, "eventNumber": self.event_number, "state": self.state}


class Watch:
    """Wakes one watcher: notified from any thread, awaited in the event loop that created it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._notified = asyncio.Event()

    def notify(self) -> None:
        self._loop.call_soon_threadsafe(self._notified.set)

    async def wait(self, seconds: float) -> bool:
        """Waits up to ``seconds``; returns whether there was a notification since the last wait."""
        try:
            await asyncio.wait_for(self._notified.wait(), seconds)
        except TimeoutError:
            return False
        self._notified.clear()
        return True


class Inbox:
    """Entries by number. ``first`` is the first number: a time, so that numbers grow over restarts."""

    def __init__(self, first: int, ring: int = MAX_ENTRIES) -> None:
        self._lock = threading.Lock()
        self._next = first
        self._good: deque[Entry] = deque(maxlen=ring)
        self._bad: deque[Entry] = deque(maxlen=ring)
        self._tasks: OrderedDict[str, TaskLine] = OrderedDict()
        self._watches: set[Watch] = set()

    def add(self, received_at: int, outcome: Outcome, view: Mapping[str, Json]) -> Entry:
        with self._lock:
            entry = Entry(self._next, received_at, outcome, view)
            self._next += 1
            (self._bad if outcome == "refused" else self._good).append(entry)
            watches = tuple(self._watches)
        for watch in watches:
            watch.notify()
        return entry

    def note_task(self, line: TaskLine) -> None:
        """Keeps the line with the greater event number; if it has no state, it keeps the older one's."""
        with self._lock:
            known = self._tasks.pop(line.task_id, None)
            self._tasks[line.task_id] = _newer(known, line)
            while len(self._tasks) > TASKS:
                self._tasks.popitem(last=False)

    def after(self, number: int) -> tuple[Entry, ...]:
        """The entries after ``number`` that are still kept, in order."""
        with self._lock:
            kept = [*self._good, *self._bad]
        return tuple(sorted((entry for entry in kept if entry.number > number), key=lambda entry: entry.number))

    def tasks(self) -> tuple[TaskLine, ...]:
        """The newest known state of each task, the last updated task first."""
        with self._lock:
            return tuple(reversed(self._tasks.values()))

    @contextmanager
    def watch(self) -> Iterator[Watch | None]:
        """A watch for as long as the context is open; None when there are too many watchers."""
        watch = Watch()
        with self._lock:
            full = len(self._watches) >= WATCHERS
            if not full:
                self._watches.add(watch)
        try:
            yield None if full else watch
        finally:
            with self._lock:
                self._watches.discard(watch)


def _newer(known: TaskLine | None, line: TaskLine) -> TaskLine:
    if known is None:
        return line
    older, newer = sorted((known, line), key=lambda each: each.event_number)
    return TaskLine(newer.task_id, newer.event_number, newer.state or older.state)
