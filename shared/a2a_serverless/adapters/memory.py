"""In-memory implementations of the storage and queue ports, for tests and for running without AWS.

They keep every contract of ``ports``: the contract tests run against them and against DynamoDB. ``MemoryTable``
implements three ports in one object, as one DynamoDB table serves all three.
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

from a2a_serverless.adapters.dynamodb import items, keys, log_format
from a2a_serverless.adapters.dynamodb.snapshots import snapshot_name
from a2a_serverless.domain.challenges import ChallengeState
from a2a_serverless.domain.circuit_breaker import FORGET_MS
from a2a_serverless.domain.contents import UploadSlot
from a2a_serverless.domain.events import replay
from a2a_serverless.domain.head import Change, Head, HeadSnapshot
from a2a_serverless.domain.push import CursorState, close_cursor
from a2a_serverless.domain.url_policy import check_addresses
from a2a_serverless.ports.tasks import DueItem, TaskEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from a2a_serverless.domain.circuit_breaker import OpenBreaker
    from a2a_serverless.domain.events import ArtifactEvent, Event
    from a2a_serverless.domain.key_ring import KeyRing
    from a2a_serverless.domain.model import Json, Principal, Task, TaskKey
    from a2a_serverless.domain.push import Attempt, Cursor, PushConfig
    from a2a_serverless.domain.queue_messages import QueueMessage
    from a2a_serverless.domain.url_policy import WebhookTarget
    from a2a_serverless.ports.agents import CallbackRequest, ExpectedCallback
    from a2a_serverless.ports.tasks import IdempotencyRecord, NewTask, StepResult

P = TypeVar("P")
K = TypeVar("K")
V = TypeVar("V")

LONGEST_DELAY_S: Final = 900
DAY_S: Final = 86_400
PUBLIC_ADDRESS: Final = "93.184.215.14"


class _ExpiringItems(Generic[P, K, V]):
    """Items of one kind by partition and name. An expired item counts as absent; ``expires`` is in seconds."""

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

    def delete(self, partition: P, name: K) -> None:
        self._items.get(partition, {}).pop(name, None)

    @property
    def raw(self) -> dict[P, dict[K, tuple[V, int]]]:
        """All items with the second in which they expire, expired ones too."""
        return self._items

    def clear(self, partition: P, *, really: bool) -> int:
        """Deletes a partition, if ``really``; returns its number of items."""
        count = len(self._items.get(partition, {}))
        if really:
            self._items.pop(partition, None)
        return count

    def everything(self) -> Iterator[tuple[P, K, V]]:
        for partition in self._items:
            yield from ((partition, name, value) for name, value in self.all(partition).items())


@dataclass(frozen=True, slots=True)
class _StoredEvent:
    """An event as text: readers cannot change the log, and a value that is not JSON fails when it is written."""

    by: str
    text: str


class MemoryTable:
    """``TaskLog``, ``PushStore`` and ``Publications`` in one. ``feed`` holds what the table's stream would carry."""

    def __init__(self, now: Callable[[], int]) -> None:
        self.feed: list[tuple[TaskKey, Event]] = []
        self._lock = RLock()
        self._heads: _ExpiringItems[TaskKey, None, Head] = _ExpiringItems(now)
        self._events: _ExpiringItems[TaskKey, int, _StoredEvent] = _ExpiringItems(now)
        self._steps: _ExpiringItems[TaskKey, str, str] = _ExpiringItems(now)
        self._configs: _ExpiringItems[TaskKey, str, PushConfig] = _ExpiringItems(now)
        self._cursors: _ExpiringItems[TaskKey, str, Cursor] = _ExpiringItems(now)
        self._attempts: _ExpiringItems[TaskKey, tuple[str, int, int, int], Attempt] = _ExpiringItems(now)
        self._breakers: _ExpiringItems[str, None, OpenBreaker] = _ExpiringItems(now)
        self._webhooks: _ExpiringItems[tuple[str, str], int, int] = _ExpiringItems(now)
        self._challenges: _ExpiringItems[tuple[str, str], str, ChallengeState] = _ExpiringItems(now)
        self._idempotency: _ExpiringItems[tuple[str, str, str], str, IdempotencyRecord] = _ExpiringItems(now)
        self._callbacks: _ExpiringItems[str, None, tuple[TaskKey, str]] = _ExpiringItems(now)
        self._documents: dict[str, str] = {}
        self._put_off: dict[tuple[str, str], str] = {}

    def create(self, opening: NewTask) -> IdempotencyRecord | None:
        head, event, receipt = opening.head, opening.event, opening.idempotency
        text = log_format.dump_event(event)
        with self._lock:
            written = self._events.get(head.key, event.n)
            if written and written.by == event.append_id:
                return None
            if receipt and (earlier := self.find_idempotency(head.key, receipt.agent, receipt.message_id)):
                return earlier
            if written:
                raise RuntimeError("there is a task with this id already")
            self._heads.put(head.key, None, head, head.expires)
            self._store_event(head.key, event, text, head.expires)
            self._store_idempotency(head, receipt)
            for config, cursor in opening.pushes:
                self._store_config(head, config, cursor)
        return None

    def find_idempotency(self, key: TaskKey, agent: str, message_id: str) -> IdempotencyRecord | None:
        with self._lock:
            return self._idempotency.get((key.tenant, key.owner, agent), message_id)

    def read_head(self, key: TaskKey) -> HeadSnapshot | None:
        with self._lock:
            head = self._heads.get(key, None)
            return HeadSnapshot(head, max(self._events.all(key))) if head else None

    def read_log(self, key: TaskKey) -> tuple[Head, list[Event]] | None:
        with self._lock:
            head = self._heads.get(key, None)
            return (head, list(self._run(key, 0))) if head else None

    def read_task(self, key: TaskKey) -> tuple[Head, Task] | None:
        with self._lock:
            head = self._heads.get(key, None)
            return (head, replay(key.task, head.context_id, self._run(key, 0))) if head else None

    def read_task_at(self, head: Head, n: int) -> Task:
        return replay(head.key.task, head.context_id, self.read(head.key, 0, n))

    def store_snapshot(self, key: TaskKey) -> str:
        """Returns the snapshot's name and stores nothing: with the log in memory, a snapshot saves no reading."""
        read = self.read_task(key)
        return snapshot_name(read[1], log_format.dump_snapshot(read[1]).encode()) if read else ""

    def read(self, key: TaskKey, after: int, limit: int = 200) -> list[Event]:
        with self._lock:
            return list(islice(self._run(key, after), limit))

    def append(self, change: Change, receipt: IdempotencyRecord | None = None) -> bool:
        key, event, text = change.before.key, change.event, log_format.dump_event(change.event)
        with self._lock:
            written = self._events.get(key, event.n)
            if written:
                return written.by == event.append_id
            if receipt and self.find_idempotency(key, receipt.agent, receipt.message_id):
                return False
            if not self._shift(change.before, change.after):
                return False
            self._store_event(key, event, text, change.after.expires)
            self._store_idempotency(change.after, receipt)
        return True

    def append_chunk(self, key: TaskKey, event: ArtifactEvent, expires: int) -> bool:
        text = log_format.dump_event(event)
        with self._lock:
            written = self._events.get(key, event.n)
            if written:
                return written.by == event.append_id
            self._store_event(key, event, text, expires)
        return True

    def update_head(self, before: Head, after: Head) -> bool:
        with self._lock:
            return self._shift(before, after) or self._heads.get(before.key, None) == after

    def read_steps(self, key: TaskKey) -> Mapping[str, StepResult]:
        with self._lock:
            return {name: log_format.load_step(text) for name, text in self._steps.all(key).items()}

    def store_step(self, key: TaskKey, name: str, result: StepResult, expires: int) -> StepResult:
        text = log_format.dump_step(result)
        with self._lock:
            kept = self._steps.get(key, name)
            if kept is None:
                self._steps.put(key, name, text, expires)
        return log_format.load_step(kept or text)

    def store_callback(self, callback: str, key: TaskKey, call: str, expires: int) -> None:
        with self._lock:
            self._callbacks.put(callback, None, (key, call), expires)

    def find_callback(self, callback: str) -> tuple[TaskKey, str] | None:
        with self._lock:
            return self._callbacks.get(callback, None)

    def list_due(self, shard: int, until: int) -> Iterator[DueItem]:
        with self._lock:
            heads = [(head.due_at, key, None) for key, _, head in self._heads.everything()]
            cursors = [
                (cursor.due_at, key, name)
                for key, name, cursor in self._cursors.everything()
                if cursor.state is not CursorState.EXHAUSTED
            ]
        rows = [(at, key, name) for at, key, name in chain(heads, cursors) if at is not None and at <= until]
        mine = sorted((row for row in rows if keys.shard(row[1]) == shard), key=lambda row: row[0])
        return (DueItem(_place(key, name), key, name) for _, key, name in mine)

    def postpone(self, due: DueItem, now: int) -> None:
        key, name = due.key, due.config_id
        if key is None:
            return
        with self._lock:
            kept = self._heads.get(key, None) if name is None else self._cursors.get(key, name)
            if kept is None or kept.due_at is None or kept.due_at > now:
                return
            item = {"due_at": {"S": keys.moment(kept.due_at)}, "put_off": {"S": self._put_off.get(due.item_key, "")}}
            after = items.postpone_item(item, now)
            self._put_off[due.item_key] = after["put_off"]["S"]
            due_at = int(after["due_at"]["S"])
            if isinstance(kept, Head):
                self._heads.change(key, None, replace(kept, due_at=due_at))
            elif name is not None:
                self._cursors.change(key, name, replace(kept, due_at=due_at))

    def list_page(
        self, principal: Principal, context_id: str | None, after: str | None, since: int, limit: int
    ) -> tuple[list[TaskEntry], str | None]:
        with self._lock:
            heads = [
                head
                for key, _, head in self._heads.everything()
                if (key.tenant, key.owner) == (principal.tenant, principal.owner)
            ]
        entries = [
            TaskEntry(
                head.key.task, head.agent, head.state, f"{keys.moment(head.status_at)}#{keys.part(head.key.task)}"
            )
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
            self._store_config(after, config, cursor)
        return True

    def close_config(self, key: TaskKey, before: Cursor) -> bool:
        with self._lock:
            kept, after = self._cursors.get(key, before.config_id), close_cursor(before)
            if kept == before:
                self._cursors.change(key, before.config_id, after)
                self._configs.delete(key, before.config_id)
            return kept in (before, after)

    def get_config(self, key: TaskKey, config_id: str) -> PushConfig | None:
        with self._lock:
            return self._configs.get(key, config_id)

    def list_configs(self, key: TaskKey) -> list[PushConfig]:
        with self._lock:
            return sorted(self._configs.all(key).values(), key=lambda config: config.config_id)

    def list_cursors(self, key: TaskKey) -> list[Cursor]:
        with self._lock:
            return sorted(self._cursors.all(key).values(), key=lambda cursor: cursor.config_id)

    def get_cursor(self, key: TaskKey, config_id: str) -> Cursor | None:
        with self._lock:
            return self._cursors.get(key, config_id)

    def move_cursor(self, key: TaskKey, before: Cursor, after: Cursor) -> bool:
        with self._lock:
            kept = self._cursors.get(key, before.config_id)
            if kept == before:
                self._cursors.change(key, before.config_id, after)
            return kept in (before, after)

    def remove_config(self, key: TaskKey, config_id: str, incarnation: str) -> None:
        with self._lock:
            kept = [one for one in (self._configs.get(key, config_id), self._cursors.get(key, config_id)) if one]
            if all(one.incarnation == incarnation for one in kept):
                self._configs.delete(key, config_id)
                self._cursors.delete(key, config_id)

    def record_attempt(self, key: TaskKey, attempt: Attempt, expires: int) -> None:
        with self._lock:
            place = (attempt.config_id, attempt.n, attempt.k, attempt.at)
            self._attempts.put(key, place, attempt, expires)

    def list_attempts(self, key: TaskKey) -> list[Attempt]:
        with self._lock:
            kept = self._attempts.all(key).values()
        return sorted(kept, key=lambda attempt: (attempt.config_id, attempt.at, attempt.n, attempt.k))

    def count_webhook(self, key: TaskKey, day: int, limit: int) -> bool:
        owner = key.tenant, key.owner
        with self._lock:
            used = self._webhooks.get(owner, day) or 0
            if used < limit:
                self._webhooks.put(owner, day, used + 1, (day + 2) * DAY_S)
        return used < limit

    def get_challenge_state(self, key: TaskKey, host: str) -> ChallengeState:
        with self._lock:
            return self._challenges.get((key.tenant, key.owner), host) or ChallengeState()

    def store_challenge_state(
        self, key: TaskKey, host: str, before: ChallengeState, after: ChallengeState, expires: int
    ) -> bool:
        with self._lock:
            kept = self.get_challenge_state(key, host)
            if kept == before:
                self._challenges.put((key.tenant, key.owner), host, after, expires)
            return kept in (before, after)

    def list_exhausted(self, limit: int = 100, since: int = 0) -> Sequence[tuple[TaskKey, str]]:
        with self._lock:
            ended = [
                (cursor.due_at or 0, (key, name))
                for key, name, cursor in self._cursors.everything()
                if cursor.state is CursorState.EXHAUSTED and cursor.due_at is not None and cursor.due_at >= since
            ]
        return [row for _, row in sorted(ended, key=lambda pair: pair[0])[:limit]]

    def get_open_breaker(self, host: str) -> OpenBreaker | None:
        with self._lock:
            return self._breakers.get(host, None)

    def store_open_breaker(self, host: str, open_breaker: OpenBreaker) -> None:
        with self._lock:
            self._breakers.put(host, None, open_breaker, (open_breaker.until + FORGET_MS) // 1000)

    def publish(self, name: str, document: Json) -> None:
        with self._lock:
            self._documents[name] = log_format.dump_document(document)

    def get_document(self, name: str) -> Json:
        with self._lock:
            return log_format.load_document(self._documents.get(name, "null"))

    def stored(self, principal: Principal, context_id: str | None) -> list[TaskKey]:
        """The owner's tasks (of one context, if given), expired ones too."""
        with self._lock:
            heads = [head for partition in self._heads.raw.values() for head, _ in partition.values()]
        return [
            head.key
            for head in heads
            if (head.key.tenant, head.key.owner) == (principal.tenant, principal.owner)
            and context_id in {None, head.context_id}
        ]

    def erase(self, key: TaskKey, *, really: bool = True) -> int:
        """Deletes a task; returns its number of items. Only counts them if not ``really``."""
        shelves = (self._heads, self._events, self._steps, self._configs, self._cursors, self._attempts)
        with self._lock:
            return sum(items.clear(key, really=really) for items in shelves)

    def erase_related(self, key: TaskKey, receipts: Iterable[tuple[str, str]], callbacks: Iterable[str]) -> int:
        """Deletes idempotency records and callback addresses; returns their number."""
        places = [((key.tenant, key.owner, agent), message_id) for agent, message_id in receipts]
        with self._lock:
            for place in places:
                self._idempotency.delete(*place)
            return len(places) + sum(self._callbacks.clear(name, really=True) for name in callbacks)

    def erase_owner(self, principal: Principal, *, really: bool = True) -> int:
        """Deletes an owner's counters and challenge states; returns their number. Only counts if not ``really``."""
        with self._lock:
            shelves = (self._webhooks, self._challenges)
            return sum(items.clear((principal.tenant, principal.owner), really=really) for items in shelves)

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
            yield log_format.load_event(written.text, n, written.by)

    def _store_event(self, key: TaskKey, event: Event, text: str, expires: int) -> None:
        self._events.put(key, event.n, _StoredEvent(event.append_id, text), expires)
        self.feed.append((key, event))

    def _store_idempotency(self, head: Head, receipt: IdempotencyRecord | None) -> None:
        if receipt:
            partition = (head.key.tenant, head.key.owner, receipt.agent)
            self._idempotency.put(partition, receipt.message_id, receipt, head.expires)

    def _store_config(self, head: Head, config: PushConfig, cursor: Cursor) -> None:
        self._configs.put(head.key, config.config_id, config, head.expires)
        self._cursors.put(head.key, cursor.config_id, cursor, head.expires)


class MemoryQueues:
    """Queue messages in a heap until they are due. Nothing consumes them: a test takes those that are due."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._lock = RLock()
        self._order = count()
        self._waiting: list[tuple[int, int, QueueMessage]] = []

    def enqueue(self, message: QueueMessage, delay_s: int = 0) -> None:
        if not 0 <= delay_s <= LONGEST_DELAY_S:
            raise ValueError(f"a delay is 0 to {LONGEST_DELAY_S} seconds, not {delay_s}")
        with self._lock:
            heapq.heappush(self._waiting, (self._now() + delay_s * 1000, next(self._order), message))

    def enqueue_many(self, queues: Sequence[QueueMessage]) -> None:
        for message in queues:
            self.enqueue(message)

    @property
    def waiting(self) -> list[tuple[int, QueueMessage]]:
        """All enqueued messages that were not taken yet: (due in ms, message), soonest first."""
        with self._lock:
            return [(due, message) for due, _, message in sorted(self._waiting, key=lambda row: row[:2])]

    def ready(self, now: int | None = None) -> list[QueueMessage]:
        """The messages that are due at ``now`` (default: the clock's time, in ms); they stay in the queue."""
        until = self._now() if now is None else now
        return [message for due, message in self.waiting if due <= until]

    def pop(self, now: int | None = None) -> QueueMessage | None:
        """Takes the soonest message that is due, or returns None. ``enqueue`` it again to simulate a redelivery."""
        until = self._now() if now is None else now
        with self._lock:
            if not self._waiting or self._waiting[0][0] > until:
                return None
            return heapq.heappop(self._waiting)[2]

    def clear(self) -> None:
        """Deletes every message; for tests of a queue that loses them."""
        with self._lock:
            self._waiting.clear()


class MemoryBlobStore:
    """``ports.PresignedBlobStore`` in a dictionary."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}

    def put(self, name: str, content: bytes) -> None:
        self.content[name] = content

    def get(self, name: str, size: int | None = None) -> bytes:
        content = self.content[name]
        if size not in {None, len(content)}:
            raise KeyError(name)
        return content

    def presign_get(self, name: str, seconds: int, filename: str | None = None) -> str:
        return f"https://blobs.example/{name}?for={seconds}&as={filename or ''}"

    def presign_put(self, name: str, sha256: str, size: int, seconds: int) -> UploadSlot:
        return UploadSlot(
            self.presign_get(name, seconds), {"content-length": str(size), "x-amz-checksum-sha256": sha256}
        )

    def size(self, name: str) -> int | None:
        content = self.content.get(name)
        return None if content is None else len(content)

    def list_names(self, prefix: str) -> Iterator[str]:
        yield from [name for name in self.content if name.startswith(prefix)]

    def delete(self, name: str) -> None:
        self.content.pop(name, None)


class MemoryKeyRingStore:
    """``ports.KeyRingStore`` in a variable."""

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


class MemoryResolver:
    """Addresses by host. A host without an entry resolves to an allowed address."""

    def __init__(self) -> None:
        self.addresses: dict[str, tuple[str, ...]] = {}

    def check(self, target: WebhookTarget) -> None:
        fitting = "127.0.0.1" if target.local else PUBLIC_ADDRESS
        check_addresses(self.addresses.get(target.host, (fitting,)), target)


class MemoryMetrics:
    """Records counts as (name, dimensions and fields), and values as (name, value, dimensions and fields)."""

    def __init__(self) -> None:
        self.counted: list[tuple[str, dict[str, str | int]]] = []
        self.measured: list[tuple[str, float, dict[str, str | int]]] = []

    def count(self, name: str, **what: str | int) -> None:
        self.counted.append((name, what))

    def record(self, values: Mapping[str, float], **what: str | int) -> None:
        self.measured += [(name, value, what) for name, value in values.items()]


class MemorySealer:
    """Binds a secret to its context but does not hide it (base64). Only for tests and laptops."""

    def seal(self, secret: str, context: str) -> str:
        return base64.b64encode(json.dumps([context, secret]).encode()).decode()

    def open(self, sealed: str, context: str) -> str:
        found = json.loads(base64.b64decode(sealed))
        if not isinstance(found, list) or found[:1] != [context]:
            raise ValueError("sealed for another context")
        return str(found[1])


class MemoryServiceTokenSealer:
    """Opens only what it sealed itself."""

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


def _position(entry: TaskEntry) -> str:
    return entry.position


class MemoryCallbackVerifier:
    """``ports.CallbackVerifier`` without signatures: the token, which ``services.callbacks`` compares, must do."""

    def verify(self, incoming: CallbackRequest, call: ExpectedCallback) -> str | None:
        del call
        said = json.loads(incoming.body or b"null")
        return said.get("challenge") if isinstance(said, dict) else None
