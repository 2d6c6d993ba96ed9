"""The latest requests, accepted or refused and why: bounded lists in memory, with notification of watchers.

The inbox is for people. What must survive (replay memory, expectations) is in a store; what must reach an application
goes through a relay. Accepted entries have a list of their own, and so has each reason for refusal: a flood of bad
requests displaces no accepted entry, and no refusal with another reason.
"""

import asyncio
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from a2a_webhook_receiver.exchange import WebhookRequest
from a2a_webhook_receiver.strict_json import Json

Outcome = Literal["accepted", "late", "duplicate", "challenge", "refused"]

MAX_ENTRIES = 200
PER_REASON = 10
"""Refused entries that are kept of each reason; there are about thirty reasons."""
REQUEST_BYTES = 32 * 1024 * 1024
REFUSED_BYTES = 4 * 1024 * 1024
TASKS = 100
LABELS = 1000
WATCHERS = 32


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: its status, and the milliseconds from the request's arrival to it."""

    status: int
    ms: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One request. ``number`` grows with every entry, over restarts too. ``received_at``: ms since the epoch.

    ``request`` is None when it is no longer kept, ``answer`` until the answer has been sent.
    """

    number: int
    received_at: int
    outcome: Outcome
    view: Mapping[str, Json]
    request: WebhookRequest | None = field(default=None, repr=False)
    answer: Answer | None = None

    @property
    def reason(self) -> str:
        """The code of the rule that it broke; empty if it was not refused."""
        refusal = self.view.get("refusal")
        return str(refusal["code"]) if isinstance(refusal, dict) else ""

    def as_json(self) -> dict[str, Json]:
        answer: Json = {"status": self.answer.status, "ms": self.answer.ms} if self.answer else None
        about = {"number": self.number, "receivedAt": self.received_at, "outcome": self.outcome, "answer": answer}
        return {**about, **self.view}


@dataclass(frozen=True, slots=True)
class TaskLine:
    """The newest known state of a task, by event number and not by arrival.

    ``agent`` and ``prompt`` (the beginning of the client's message) are None while they are not known.
    """

    task_id: str
    event_number: int
    state: str | None
    agent: str | None = None
    prompt: str | None = None

    def as_json(self) -> dict[str, Json]:
        about: dict[str, Json] = {"taskId": self.task_id, "eventNumber": self.event_number, "state": self.state}
        return {**about, "agent": self.agent, "prompt": self.prompt}


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

    def __init__(self, first: int, ring: int = MAX_ENTRIES, per_reason: int = PER_REASON) -> None:
        self._lock = threading.Lock()
        self._next = first
        self._good = _EntryList(ring, ring, REQUEST_BYTES)
        self._bad = _EntryList(ring * 2, per_reason, REFUSED_BYTES)
        self._outcomes: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._tasks: OrderedDict[str, TaskLine] = OrderedDict()
        self._labels: OrderedDict[str, str] = OrderedDict()
        self._watches: set[Watch] = set()

    def add(
        self, received_at: int, outcome: Outcome, view: Mapping[str, Json], request: WebhookRequest | None = None
    ) -> Entry:
        with self._lock:
            entry = Entry(self._next, received_at, outcome, view, request)
            self._next += 1
            self._keep(entry)
            watches = tuple(self._watches)
        for watch in watches:
            watch.notify()
        return entry

    def _keep(self, entry: Entry) -> None:
        self._outcomes[entry.outcome] += 1
        if entry.outcome == "refused":
            self._refused[entry.reason] += 1
            self._bad.add(entry)
        else:
            self._good.add(entry)

    def note_answer(self, request: WebhookRequest, answer: Answer) -> None:
        """Adds the answer to the entry of this very request, if there is one."""
        with self._lock:
            if not self._good.note_answer(request, answer):
                self._bad.note_answer(request, answer)

    def note_task(self, line: TaskLine) -> None:
        """Keeps the line with the greater event number; what it does not know is kept from the older one."""
        with self._lock:
            previous = self._tasks.pop(line.task_id, None)
            self._tasks[line.task_id] = _newer(previous, line)
            _limit(self._tasks, TASKS)

    def note_label(self, expectation_id: str, agent: str) -> None:
        """Keeps the name of the agent for which a token was registered."""
        with self._lock:
            self._labels[expectation_id] = agent
            _limit(self._labels, LABELS)

    def label_of(self, expectation_id: str) -> str | None:
        with self._lock:
            return self._labels.get(expectation_id)

    def find(self, number: int) -> Entry | None:
        """The entry with this number, if it is still kept."""
        with self._lock:
            return self._good.entries.get(number) or self._bad.entries.get(number)

    def after(self, number: int) -> tuple[Entry, ...]:
        """The entries after ``number`` that are still kept, in order."""
        with self._lock:
            entries = [*self._good.entries.values(), *self._bad.entries.values()]
        return tuple(sorted((entry for entry in entries if entry.number > number), key=lambda entry: entry.number))

    def tasks(self) -> tuple[TaskLine, ...]:
        """The newest known state of each task, the last updated task first."""
        with self._lock:
            return tuple(reversed(self._tasks.values()))

    def outcomes(self) -> dict[str, int]:
        """How many requests had each outcome, kept or not."""
        with self._lock:
            return dict(self._outcomes)

    def refused(self) -> dict[str, int]:
        """How many requests were refused for each reason, kept or not."""
        with self._lock:
            return dict(self._refused)

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


class _EntryList:
    """The newest ``count`` entries, ``per_reason`` of one reason, and the newest requests: ``size`` bytes of them."""

    def __init__(self, count: int, per_reason: int, size: int) -> None:
        self.entries: OrderedDict[int, Entry] = OrderedDict()
        self._count, self._per_reason, self._size = count, per_reason, size

    def add(self, entry: Entry) -> None:
        self.entries[entry.number] = entry
        alike = [each.number for each in self.entries.values() if each.reason == entry.reason]
        if len(alike) > self._per_reason:
            del self.entries[alike[0]]
        _limit(self.entries, self._count)
        self._drop_requests()

    def note_answer(self, request: WebhookRequest, answer: Answer) -> bool:
        for number, entry in reversed(self.entries.items()):
            if entry.request is request:
                self.entries[number] = replace(entry, answer=answer)
                return True
        return False

    def _drop_requests(self) -> None:
        """Forgets the oldest requests, down to ``size`` bytes; their entries stay."""
        total = 0
        for number, entry in reversed(self.entries.items()):
            total += entry.request.size if entry.request else 0
            if entry.request and total > self._size:
                self.entries[number] = replace(entry, request=None)


def _limit(values: OrderedDict[Any, Any], count: int) -> None:
    while len(values) > count:
        values.popitem(last=False)


def _newer(previous: TaskLine | None, line: TaskLine) -> TaskLine:
    if previous is None:
        return line
    older, newer = sorted((previous, line), key=lambda each: each.event_number)
    agent, prompt = previous.agent or line.agent, previous.prompt or line.prompt
    return replace(newer, state=newer.state or older.state, agent=agent, prompt=prompt)
