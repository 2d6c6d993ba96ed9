"""Twins of the storage and queue adapters that live in the process: for tests, and for what shall run without AWS.

They keep every promise of ``ports`` (the contract tests run over them and over DynamoDB alike), so a use case that
works over a twin works over the real thing. ``MemoryTable`` is one object for three ports because one table is.
"""

from __future__ import annotations

import base64
import hashlib
import heapq
import json
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from threading import RLock
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from a2a_serverless.adapters import items, keys, stored
from a2a_serverless.adapters.folds import name_of
from a2a_serverless.domain.breaker import FORGET_MS
from a2a_serverless.domain.challenges import Asked
from a2a_serverless.domain.contents import Slot
from a2a_serverless.domain.events import fold
from a2a_serverless.domain.head import Change, Head, Look
from a2a_serverless.domain.push import CursorState, closed
from a2a_serverless.domain.url_policy import check_addresses
from a2a_serverless.ports import Due, Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from a2a_serverless.domain.bells import Bell
    from a2a_serverless.domain.breaker import Trip
    from a2a_serverless.domain.events import ArtifactEvent, Event
    from a2a_serverless.domain.key_ring import KeyRing
    from a2a_serverless.domain.model import Json, Principal, Task, TaskKey
    from a2a_serverless.domain.push import Attempt, Cursor, PushConfig
    from a2a_serverless.domain.url_policy import WebhookTarget
    from a2a_serverless.ports import ExpectedNews, News, Opening, Receipt, StepResult

P = TypeVar("P")
K = TypeVar("K")
V = TypeVar("V")

LONGEST_DELAY_S: Final = 900
DAY_S: Final = 86_400
PUBLIC_ADDRESS: Final = "93.184.215.14"


class _Shelf(Generic[P, K, V]):
    """Items of one kind by partition and name. An expired one is not there; ``expires`` is in seconds."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._items: dict[P, dict[K, tuple[V, int]]] = {}

    def get(self, partition: P, name: K) -> V | None:
        return self.all(partition, (name,)).get(name)

    def all(self, partition: P, names: Sequence[K] | None = None) -> dict[K, V]:
        items = self._items.get(partition, {})
        found = items if names is None else {name: items[name] for name in names if name in items}
        return {name: value for name, (value, expires) in found.items() if expires * 1000 > self._now()}

    def put(self, partition: P, name: K, value: V, expires: int) -> None:
        self._items.setdefault(partition, {})[name] = (value, expires)

    def change(self, partition: P, name: K, value: V) -> None:
        self.put(partition, name, value, self._items[partition][name][1])

    def drop(self, partition: P, name: K) -> None:
        self._items.get(partition, {}).pop(name, None)

    @property
    def raw(self) -> dict[P, dict[K, tuple[V, int]]]:
        """All items with the second in which they expire, expired ones too."""
        return self._items

    def clear(self, partition: P, *, really: bool) -> int:
        """Drops a partition, if ``really``; returns how many items that is."""
        count = len(self._items.get(partition, {}))
        if really:
            self._items.pop(partition, None)
        return count

    def everything(self) -> Iterator[tuple[P, K, V]]:
        for partition in self._items:
            yield from ((partition, name, value) for name, value in self.all(partition).items())


@dataclass(frozen=True, slots=True)
class _Written:
    """An event as text: what a reader does to it cannot reach the log, and what is no JSON is found out."""

    by: str
    text: str


class MemoryTable:
    """``TaskLog``, ``PushStore`` and ``Publications`` in one; ``feed`` is what a table's stream would carry."""

    def __init__(self, now: Callable[[], int]) -> None:
        self.feed: list[tuple[TaskKey, Event]] = []
        self._lock = RLock()
        self._heads: _Shelf[TaskKey, None, Head] = _Shelf(now)
        self._events: _Shelf[TaskKey, int, _Written] = _Shelf(now)
        self._steps: _Shelf[TaskKey, str, str] = _Shelf(now)
        self._configs: _Shelf[TaskKey, str, PushConfig] = _Shelf(now)
        self._cursors: _Shelf[TaskKey, str, Cursor] = _Shelf(now)
        self._attempts: _Shelf[TaskKey, tuple[str, int, int, int], Attempt] = _Shelf(now)
        self._trips: _Shelf[str, None, Trip] = _Shelf(now)
        self._webhooks: _Shelf[tuple[str, str], int, int] = _Shelf(now)
        self._asked: _Shelf[tuple[str, str], str, Asked] = _Shelf(now)
        self._receipts: _Shelf[tuple[str, str, str], str, Receipt] = _Shelf(now)
        self._callbacks: _Shelf[str, None, tuple[TaskKey, str]] = _Shelf(now)
        self._documents: dict[str, str] = {}
        self._put_off: dict[tuple[str, str], str] = {}

    def create(self, opening: Opening) -> Receipt | None:
        head, event, receipt = opening.head, opening.event, opening.receipt
        text = stored.event_text(event)
        with self._lock:
            written = self._events.get(head.key, event.n)
            if written and written.by == event.by:
                return None
            if receipt and (earlier := self.receipt(head.key, receipt.agent, receipt.message_id)):
                return earlier
            if written:
                raise RuntimeError("there is a task with this id already")
            self._heads.put(head.key, None, head, head.expires)
            self._keep_event(head.key, event, text, head.expires)
            self._keep_receipt(head, receipt)
            for config, cursor in opening.pushes:
                self._keep_config(head, config, cursor)
        return None

    def receipt(self, key: TaskKey, agent: str, message_id: str) -> Receipt | None:
        with self._lock:
            return self._receipts.get((key.tenant, key.owner, agent), message_id)

    def look(self, key: TaskKey) -> Look | None:
        with self._lock:
            head = self._heads.get(key, None)
            return Look(head, max(self._events.all(key))) if head else None

    def load(self, key: TaskKey) -> tuple[Head, list[Event]] | None:
        with self._lock:
            head = self._heads.get(key, None)
            return (head, list(self._run(key, 0))) if head else None

    def task(self, key: TaskKey) -> tuple[Head, Task] | None:
        with self._lock:
            head = self._heads.get(key, None)
            return (head, fold(key.task, head.context_id, self._run(key, 0))) if head else None

    def task_at(self, head: Head, n: int) -> Task:
        return fold(head.key.task, head.context_id, self.read(head.key, 0, n))

    def keep_fold(self, key: TaskKey) -> str:
        """Names it and keeps nothing: where the log is at hand, a fold saves no reading."""
        read = self.task(key)
        return name_of(read[1], stored.fold_text(read[1]).encode()) if read else ""

    def read(self, key: TaskKey, after: int, limit: int = 200) -> list[Event]:
        with self._lock:
            return list(islice(self._run(key, after), limit))

    def append(self, change: Change, receipt: Receipt | None = None) -> bool:
        key, event, text = change.before.key, change.event, stored.event_text(change.event)
        with self._lock:
            written = self._events.get(key, event.n)
            if written:
                return written.by == event.by
            if receipt and self.receipt(key, receipt.agent, receipt.message_id):
                return False
            if not self._shift(change.before, change.after):
                return False
            self._keep_event(key, event, text, change.after.expires)
            self._keep_receipt(change.after, receipt)
        return True

    def append_chunk(self, key: TaskKey, event: ArtifactEvent, expires: int) -> bool:
        text = stored.event_text(event)
        with self._lock:
            written = self._events.get(key, event.n)
            if written:
                return written.by == event.by
            self._keep_event(key, event, text, expires)
        return True

    def touch(self, before: Head, after: Head) -> bool:
        with self._lock:
            return self._shift(before, after) or self._heads.get(before.key, None) == after

    def steps(self, key: TaskKey) -> Mapping[str, StepResult]:
        with self._lock:
            return {name: stored.step_of(text) for name, text in self._steps.all(key).items()}

    def keep_step(self, key: TaskKey, name: str, result: StepResult, expires: int) -> StepResult:
        text = stored.step_text(result)
        with self._lock:
            kept = self._steps.get(key, name)
            if kept is None:
                self._steps.put(key, name, text, expires)
        return stored.step_of(kept or text)

    def keep_callback(self, callback: str, key: TaskKey, call: str, expires: int) -> None:
        with self._lock:
            self._callbacks.put(callback, None, (key, call), expires)

    def callback(self, callback: str) -> tuple[TaskKey, str] | None:
        with self._lock:
            return self._callbacks.get(callback, None)

    def due(self, shard: int, until: int) -> Iterator[Due]:
        with self._lock:
            heads = [(head.due_at, key, None) for key, _, head in self._heads.everything()]
            cursors = [
                (cursor.due_at, key, name)
                for key, name, cursor in self._cursors.everything()
                if cursor.state is not CursorState.EXHAUSTED
            ]
        rows = [(at, key, name) for at, key, name in chain(heads, cursors) if at is not None and at <= until]
        mine = sorted((row for row in rows if keys.shard(row[1]) == shard), key=lambda row: row[0])
        return (Due(_place(key, name), key, name) for _, key, name in mine)

    def put_off(self, due: Due, now: int) -> None:
        key, name = due.key, due.config_id
        if key is None:
            return
        with self._lock:
            kept = self._heads.get(key, None) if name is None else self._cursors.get(key, name)
            if kept is None or kept.due_at is None or kept.due_at > now:
                return
            item = {"due_at": {"S": keys.moment(kept.due_at)}, "put_off": {"S": self._put_off.get(due.place, "")}}
            after = items.put_off(item, now)
            self._put_off[due.place] = after["put_off"]["S"]
            due_at = int(after["due_at"]["S"])
            if isinstance(kept, Head):
                self._heads.change(key, None, replace(kept, due_at=due_at))
            elif name is not None:
                self._cursors.change(key, name, replace(kept, due_at=due_at))

    def page(
        self, who: Principal, context_id: str | None, after: str | None, since: int, limit: int
    ) -> tuple[list[Entry], str | None]:
        with self._lock:
            heads = [
                head for key, _, head in self._heads.everything() if (key.tenant, key.owner) == (who.tenant, who.owner)
            ]
        entries = [
            Entry(head.key.task, head.agent, head.state, f"{keys.moment(head.status_at)}#{keys.part(head.key.task)}")
            for head in heads
            if head.status_at >= since and context_id in {None, head.context_id}
        ]
        rest = sorted((entry for entry in entries if not after or entry.position < after), key=_position, reverse=True)
        return rest[:limit], rest[limit - 1].position if len(rest) > limit else None

    def add_config(
        self, before: Head, after: Head, config: PushConfig, cursor: Cursor, replaced: Cursor | None = None
    ) -> bool:
        with self._lock:
            kept = self._configs.get(before.key, config.config_id)
            if kept and kept.incarnation == config.incarnation:
                return True
            if self._cursors.get(before.key, config.config_id) != replaced or not self._shift(before, after):
                return False
            self._keep_config(after, config, cursor)
        return True

    def close_config(self, key: TaskKey, before: Cursor) -> bool:
        with self._lock:
            kept, after = self._cursors.get(key, before.config_id), closed(before)
            if kept == before:
                self._cursors.change(key, before.config_id, after)
                self._configs.drop(key, before.config_id)
            return kept in (before, after)

    def config(self, key: TaskKey, config_id: str) -> PushConfig | None:
        with self._lock:
            return self._configs.get(key, config_id)

    def configs(self, key: TaskKey) -> list[PushConfig]:
        with self._lock:
            return sorted(self._configs.all(key).values(), key=lambda config: config.config_id)

    def cursors(self, key: TaskKey) -> list[Cursor]:
        with self._lock:
            return sorted(self._cursors.all(key).values(), key=lambda cursor: cursor.config_id)

    def cursor(self, key: TaskKey, config_id: str) -> Cursor | None:
        with self._lock:
            return self._cursors.get(key, config_id)

    def move(self, key: TaskKey, before: Cursor, after: Cursor) -> bool:
        with self._lock:
            kept = self._cursors.get(key, before.config_id)
            if kept == before:
                self._cursors.change(key, before.config_id, after)
            return kept in (before, after)

    def remove(self, key: TaskKey, config_id: str, incarnation: str) -> None:
        with self._lock:
            kept = [one for one in (self._configs.get(key, config_id), self._cursors.get(key, config_id)) if one]
            if all(one.incarnation == incarnation for one in kept):
                self._configs.drop(key, config_id)
                self._cursors.drop(key, config_id)

    def record(self, key: TaskKey, attempt: Attempt, expires: int) -> None:
        with self._lock:
            place = (attempt.config_id, attempt.n, attempt.k, attempt.at)
            self._attempts.put(key, place, attempt, expires)

    def attempts(self, key: TaskKey) -> list[Attempt]:
        with self._lock:
            kept = self._attempts.all(key).values()
        return sorted(kept, key=lambda attempt: (attempt.config_id, attempt.at, attempt.n, attempt.k))

    def admit(self, key: TaskKey, day: int, limit: int) -> bool:
        owner = key.tenant, key.owner
        with self._lock:
            used = self._webhooks.get(owner, day) or 0
            if used < limit:
                self._webhooks.put(owner, day, used + 1, (day + 2) * DAY_S)
        return used < limit

    def asked(self, key: TaskKey, host: str) -> Asked:
        with self._lock:
            return self._asked.get((key.tenant, key.owner), host) or Asked()

    def keep_asked(self, key: TaskKey, host: str, before: Asked, after: Asked, expires: int) -> bool:
        with self._lock:
            kept = self.asked(key, host)
            if kept == before:
                self._asked.put((key.tenant, key.owner), host, after, expires)
            return kept in (before, after)

    def exhausted(self, limit: int = 100, since: int = 0) -> Sequence[tuple[TaskKey, str]]:
        with self._lock:
            ended = [
                (cursor.due_at or 0, (key, name))
                for key, name, cursor in self._cursors.everything()
                if cursor.state is CursorState.EXHAUSTED and cursor.due_at is not None and cursor.due_at >= since
            ]
        return [row for _, row in sorted(ended, key=lambda pair: pair[0])[:limit]]

    def tripped(self, host: str) -> Trip | None:
        with self._lock:
            return self._trips.get(host, None)

    def trip(self, host: str, trip: Trip) -> None:
        with self._lock:
            self._trips.put(host, None, trip, (trip.until + FORGET_MS) // 1000)

    def publish(self, name: str, document: Json) -> None:
        with self._lock:
            self._documents[name] = stored.document_text(document)

    def published(self, name: str) -> Json:
        with self._lock:
            return stored.document_of(self._documents.get(name, "null"))

    def stored(self, who: Principal, context_id: str | None) -> list[TaskKey]:
        """The owner's tasks (of a context), expired ones too."""
        with self._lock:
            heads = [head for partition in self._heads.raw.values() for head, _ in partition.values()]
        return [
            head.key
            for head in heads
            if (head.key.tenant, head.key.owner) == (who.tenant, who.owner) and context_id in {None, head.context_id}
        ]

    def erase(self, key: TaskKey, *, really: bool = True) -> int:
        """Forgets a task; returns how many items that is."""
        shelves = (self._heads, self._events, self._steps, self._configs, self._cursors, self._attempts)
        with self._lock:
            return sum(shelf.clear(key, really=really) for shelf in shelves)

    def erase_beside(self, key: TaskKey, receipts: Iterable[tuple[str, str]], callbacks: Iterable[str]) -> int:
        """Forgets receipts and addresses of calls; returns how many items that is."""
        places = [((key.tenant, key.owner, agent), message_id) for agent, message_id in receipts]
        with self._lock:
            for place in places:
                self._receipts.drop(*place)
            return len(places) + sum(self._callbacks.clear(name, really=True) for name in callbacks)

    def erase_owner(self, who: Principal, *, really: bool = True) -> int:
        """Forgets what was counted for an owner; returns how many items that is."""
        with self._lock:
            shelves = (self._webhooks, self._asked)
            return sum(shelf.clear((who.tenant, who.owner), really=really) for shelf in shelves)

    def _shift(self, before: Head, after: Head) -> bool:
        head = self._heads.get(before.key, None)
        if head is None or head.rev != before.rev:
            return False
        self._heads.change(before.key, None, after)
        return True

    def _run(self, key: TaskKey, after: int) -> Iterator[Event]:
        for n in count(after + 1):
            written = self._events.get(key, n)
            if written is None:
                return
            yield stored.event_of(written.text, n, written.by)

    def _keep_event(self, key: TaskKey, event: Event, text: str, expires: int) -> None:
        self._events.put(key, event.n, _Written(event.by, text), expires)
        self.feed.append((key, event))

    def _keep_receipt(self, head: Head, receipt: Receipt | None) -> None:
        if receipt:
            partition = (head.key.tenant, head.key.owner, receipt.agent)
            self._receipts.put(partition, receipt.message_id, receipt, head.expires)

    def _keep_config(self, head: Head, config: PushConfig, cursor: Cursor) -> None:
        self._configs.put(head.key, config.config_id, config, head.expires)
        self._cursors.put(head.key, cursor.config_id, cursor, head.expires)


class MemoryBells:
    """Bells that wait in a heap until they are due. Nothing rings by itself: a test takes what is ready."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._lock = RLock()
        self._order = count()
        self._waiting: list[tuple[int, int, Bell]] = []

    def ring(self, bell: Bell, delay_s: int = 0) -> None:
        if not 0 <= delay_s <= LONGEST_DELAY_S:
            raise ValueError(f"a delay is 0 to {LONGEST_DELAY_S} seconds, not {delay_s}")
        with self._lock:
            heapq.heappush(self._waiting, (self._now() + delay_s * 1000, next(self._order), bell))

    def ring_many(self, bells: Sequence[Bell]) -> None:
        for bell in bells:
            self.ring(bell)

    @property
    def waiting(self) -> list[tuple[int, Bell]]:
        """All bells that were rung and not taken: (due in ms, bell), soonest first."""
        with self._lock:
            return [(due, bell) for due, _, bell in sorted(self._waiting, key=lambda row: row[:2])]

    def ready(self, now: int | None = None) -> list[Bell]:
        """The bells that are due at ``now`` (default: the clock's); they stay."""
        until = self._now() if now is None else now
        return [bell for due, bell in self.waiting if due <= until]

    def pop(self, now: int | None = None) -> Bell | None:
        """Takes the soonest bell that is due, or returns None. ``ring`` it again for a redelivery."""
        until = self._now() if now is None else now
        with self._lock:
            if not self._waiting or self._waiting[0][0] > until:
                return None
            return heapq.heappop(self._waiting)[2]

    def lose(self) -> None:
        """Forgets every bell, as a queue may."""
        with self._lock:
            self._waiting.clear()


class MemoryBlobs:
    """Content by name."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}

    def put(self, name: str, content: bytes) -> None:
        self.content[name] = content

    def get(self, name: str, size: int | None = None) -> bytes:
        content = self.content[name]
        if size not in {None, len(content)}:
            raise KeyError(name)
        return content

    def link(self, name: str, seconds: int, filename: str | None = None) -> str:
        return f"https://blobs.example/{name}?for={seconds}&as={filename or ''}"

    def slot(self, name: str, sha256: str, size: int, seconds: int) -> Slot:
        return Slot(self.link(name, seconds), {"content-length": str(size), "x-amz-checksum-sha256": sha256})

    def size(self, name: str) -> int | None:
        content = self.content.get(name)
        return None if content is None else len(content)

    def names(self, prefix: str) -> Iterator[str]:
        yield from [name for name in self.content if name.startswith(prefix)]

    def delete(self, name: str) -> None:
        self.content.pop(name, None)


class MemoryVault:
    """A key ring in a variable."""

    def __init__(self, ring: KeyRing | None = None) -> None:
        self.ring = ring
        self._lock = RLock()

    def load(self) -> KeyRing | None:
        return self.ring

    def save(self, ring: KeyRing, before: KeyRing | None) -> bool:
        with self._lock:
            if self.ring == before:
                self.ring = ring
            return self.ring == ring


class MemoryNames:
    """Addresses by host. A name that nobody has entered has an address that fits."""

    def __init__(self) -> None:
        self.addresses: dict[str, tuple[str, ...]] = {}

    def check(self, target: WebhookTarget) -> None:
        fitting = "127.0.0.1" if target.local else PUBLIC_ADDRESS
        check_addresses(self.addresses.get(target.host, (fitting,)), target)


class MemoryMetrics:
    """What was counted, as (name, what), and what was measured, as (name, value, what)."""

    def __init__(self) -> None:
        self.counted: list[tuple[str, dict[str, str | int]]] = []
        self.measured: list[tuple[str, float, dict[str, str | int]]] = []

    def count(self, name: str, **what: str | int) -> None:
        self.counted.append((name, what))

    def measure(self, values: Mapping[str, float], **what: str | int) -> None:
        self.measured += [(name, value, what) for name, value in values.items()]


class MemorySealer:
    """Binds a secret to its context without hiding it: base64 is no cipher. Never outside a test or a laptop."""

    def seal(self, secret: str, context: str) -> str:
        return base64.b64encode(json.dumps([context, secret]).encode()).decode()

    def open(self, sealed: str, context: str) -> str:
        found = json.loads(base64.b64decode(sealed))
        if not isinstance(found, list) or found[:1] != [context]:
            raise ValueError("sealed for another context")
        return str(found[1])


class MemoryPassSealer:
    """Opens what it has sealed itself, and nothing else."""

    def __init__(self) -> None:
        self._sealed: dict[bytes, str] = {}

    def seal(self, claims: str) -> bytes:
        sealed = hashlib.sha512(f"{len(self._sealed)}\n{claims}".encode()).digest()
        self._sealed[sealed] = claims
        return sealed

    def open(self, sealed: bytes) -> str:
        if sealed not in self._sealed:
            raise ValueError("not sealed here")
        return self._sealed[sealed]


def _place(key: TaskKey, config_id: str | None) -> tuple[str, str]:
    return keys.task(key), keys.HEAD if config_id is None else keys.cursor(config_id)


def _position(entry: Entry) -> str:
    return entry.position


class MemoryProofs:
    """``ports.Proofs`` where nothing is signed: the token, which ``services.callbacks`` compares, is enough."""

    def check(self, news: News, call: ExpectedNews) -> str | None:
        del call
        said = json.loads(news.body or b"null")
        return said.get("challenge") if isinstance(said, dict) else None
