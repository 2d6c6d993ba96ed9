"""In-memory implementations of the storage and queue ports, for tests and for running without AWS.

``MemoryTable`` is a ``store.table.Table`` over a dictionary, so the stores are those of AWS, with their keys and items.
The contract tests run against them and against DynamoDB.
"""

from __future__ import annotations

import base64
import heapq
import json
from bisect import bisect_left, bisect_right, insort
from itertools import count, islice
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.domain.contents import UploadSlot
from a2a_serverless.domain.outbound import WebhookTarget, check_addresses
from a2a_serverless.domain.queue_messages import LONGEST_DELAY_S
from a2a_serverless.store import keys
from a2a_serverless.store.items import Item, WriteConflict, is_live, make_place
from a2a_serverless.store.payloads import PayloadStore
from a2a_serverless.store.push_store import PushStore
from a2a_serverless.store.stores import BreakerStore, PauseStore, Publications, TaskIndex
from a2a_serverless.store.table import Check, Count, Delete, Put, PutNew, Update
from a2a_serverless.store.task_log import TaskLog
from a2a_serverless.store.value_store import ValueStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from a2a_serverless.domain.key_ring import KeyRing
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.queue_messages import QueueMessage
    from a2a_serverless.ports.agents import ExpectedCallback, IncomingNotification
    from a2a_serverless.store.table import Action

    Change = tuple[tuple[str, str], Item | None]
    """The item that a write puts at a partition and sort key; None if it deletes the item there."""

VISIBILITY_S: Final = 90
MOST_RECEIVES: Final = 5  # as in template.yaml
PUBLIC_ADDRESS: Final = "93.184.215.14"


def place_of(action: Action) -> tuple[str, str]:
    """Partition and sort key of the item of an action."""
    where = action.item if isinstance(action, Put | PutNew) else action.where
    return where["pk"]["S"], where["sk"]["S"]


class MemoryTable:
    """``store.table.Table`` over a dictionary. ``now`` is in ms.

    ``save`` gets the changes of each write before they are made. ``on_put`` gets every item that a write puts.
    """

    def __init__(
        self,
        now: Callable[[], int],
        on_put: Callable[[Item], None] = lambda _: None,
        save: Callable[[Sequence[Change]], None] = lambda _: None,
    ) -> None:
        self.now = now
        self._on_put, self._save = on_put, save
        self._lock = RLock()
        self.partitions: dict[str, dict[str, Item]] = {}
        self._sort_keys: dict[str, list[str]] = {}
        self._index_items: dict[tuple[str, str], Item] = {}

    def get(self, pk: str, sk: str, *, consistent: bool = True) -> Item | None:
        del consistent
        item = self._find(pk, sk)
        return item if is_live(item, self.now()) else None

    def has_any(self, pk: str, *sks: str) -> bool:
        return any(self.get(pk, sk) for sk in sks)

    def query_range(
        self, pk: str, first: str, last: str, *, limit: int = 0, newest_first: bool = False
    ) -> Iterator[Item]:
        if first > last:
            raise ValueError("DynamoDB refuses a range whose end is before its begin")
        with self._lock:
            names = self._sort_keys.get(pk, [])
            in_range = names[bisect_left(names, first) : bisect_right(names, last)]
            rows = [self.partitions[pk][sk] for sk in (reversed(in_range) if newest_first else in_range)]
        return islice(self._live(rows), limit or None)

    def query_prefix(self, pk: str, prefix: str, *only: str) -> Iterator[Item]:
        del only
        return self.query_range(pk, prefix, prefix + chr(0x10FFFF))

    def query_due(self, shard: str, until: str, limit: int = 0, since: str = "0") -> Iterator[Item]:
        rows = self._query_index(("due_shard", shard), "due_at", since, until)
        return islice(self._live(rows), limit or None)

    def query_newest(self, index: str, partition: tuple[str, str], first: str, last: str, limit: int) -> list[Item]:
        del index
        return list(islice(self._live(reversed(self._query_index(partition, "st", first, last))), limit))

    def query_index(self, index: str, partition: tuple[str, str], after: str | None, limit: int) -> list[Item]:
        del index
        rows = self._query_index(partition, "st", after or "", keys.NEWEST)
        return [item for item in rows if item["st"]["S"] != after][:limit]

    def list_keys(self, pk: str, prefix: str = "") -> list[Item]:
        with self._lock:
            return [make_place(pk, sk) for sk in self._sort_keys.get(pk, []) if sk.startswith(prefix)]

    def scan(self, sk: str = "") -> Iterator[Item]:
        with self._lock:
            each = [item for partition in self.partitions.values() for item in partition.values()]
        return self._live(item for item in each if sk in {"", item["sk"]["S"]})

    def erase(self, places: Iterable[Item]) -> int:
        with self._lock:
            changes: list[Change] = [((place["pk"]["S"], place["sk"]["S"]), None) for place in places]
            self._save(changes)
            return sum(self._remove(*place) for place, _ in changes)

    def write(self, *actions: Action) -> WriteConflict | None:
        with self._lock:
            stored_items = [self._find(*place_of(action)) for action in actions]
            refusals = [not self._is_allowed(action, item) for action, item in zip(actions, stored_items, strict=True)]
            if any(refusals):
                return WriteConflict(
                    tuple(item if no else None for item, no in zip(stored_items, refusals, strict=True))
                )
            changes = [
                (place_of(action), _result(action, item))
                for action, item in zip(actions, stored_items, strict=True)
                if not isinstance(action, Check)
            ]
            self._save(changes)
            for place, item in changes:
                self._store(place, item)
                if item is not None:
                    self._on_put(item)
        return None

    def load(self, items: Iterable[Item]) -> None:
        """Puts items that were saved before."""
        for item in items:
            self._store((item["pk"]["S"], item["sk"]["S"]), item)

    def _is_allowed(self, action: Action, old_item: Item | None) -> bool:
        """Whether the condition of an action holds for the stored item ``old_item``; None is no item."""
        match action:
            case Put():
                return True
            case PutNew(item, unlike):
                differs = bool(unlike and old_item and unlike in old_item and old_item[unlike] != item[unlike])
                return differs or not is_live(old_item, self.now())
            case Update():
                return is_live(old_item, self.now()) and _matches(old_item, action.expected)
            case Count():
                return _number(old_item, action.attribute) + action.by <= action.limit
            case Check():
                return _matches(old_item, action.expected)
            case Delete():
                return old_item is None or _matches(old_item, action.expected)

    def _find(self, pk: str, sk: str) -> Item | None:
        return self.partitions.get(pk, {}).get(sk)

    def _store(self, place: tuple[str, str], item: Item | None) -> None:
        pk, sk = place
        if item is None:
            self._remove(pk, sk)
            return
        if self._find(pk, sk) is None:
            insort(self._sort_keys.setdefault(pk, []), sk)
        self.partitions.setdefault(pk, {})[sk] = item
        self._index_items.pop(place, None)
        if "st" in item or "due_shard" in item:
            self._index_items[place] = item

    def _remove(self, pk: str, sk: str) -> int:
        """Removes an item, if it exists; returns the number of keys, 1, as the table's ``erase`` counts them."""
        if self.partitions.get(pk, {}).pop(sk, None):
            self._sort_keys[pk].remove(sk)
        self._index_items.pop((pk, sk), None)
        return 1

    def _query_index(self, partition: tuple[str, str], by: str, first: str, last: str) -> list[Item]:
        name, value = partition
        with self._lock:
            mine = [item for item in self._index_items.values() if item.get(name) == {"S": value} and by in item]
        return sorted((item for item in mine if first <= item[by]["S"] <= last), key=lambda item: item[by]["S"])

    def _live(self, rows: Iterable[Item]) -> Iterator[Item]:
        now = self.now()
        return (item for item in rows if is_live(item, now))


def _result(action: Put | PutNew | Update | Count | Delete, old_item: Item | None) -> Item | None:
    """The result of an action on the stored item ``old_item``; None is no item, as argument and as result."""
    match action:
        case Put(item) | PutNew(item):
            return item
        case Update(_, before, after):
            changes = {name: value for name, value in after.items() if before.get(name) != value}
            return {
                name: member for name, member in (old_item or {}).items() if name in after or name not in before
            } | changes
        case Count():
            number = _number(old_item, action.attribute) + action.by
            numbers = {action.attribute: {"N": str(number)}, "expires": {"N": str(action.expires)}}
            return {**action.where, **(old_item or {}), **numbers}
        case Delete():
            return None


def _matches(item: Item | None, expected: Mapping[str, Any]) -> bool:
    return item is not None and all(item.get(name) == value for name, value in expected.items())


def _number(item: Item | None, attribute: str) -> int:
    return int((item or {}).get(attribute, {"N": "0"})["N"])


class MemoryStores(TaskLog, TaskIndex, ValueStore, PushStore, BreakerStore, PauseStore, Publications):
    """The stores of a deployment over one ``MemoryTable``. ``feed`` has the key and number of each written event.

    ``on_feed`` is called after each addition to it. ``make_table`` makes the table.
    """

    make_table: Callable[..., MemoryTable] = MemoryTable

    def __init__(self, now: Callable[[], int], on_feed: Callable[[], object] = lambda: None) -> None:
        self.feed: list[tuple[TaskKey, int]] = []
        self._on_feed = on_feed
        self.items = self.make_table(now, self._add_to_feed)
        self.blobs = self.make_blobs()
        super().__init__(self.items, PayloadStore(self.blobs))

    def make_blobs(self) -> MemoryBlobStore:
        """The bucket."""
        return MemoryBlobStore()

    def _add_to_feed(self, item: Item) -> None:
        if (sk := item["sk"]["S"]).startswith(keys.EVENTS):
            self.feed.append((keys.task_key(item["pk"]["S"]), keys.event_number(sk)))
            self._on_feed()


class MemoryQueues:
    """Queue messages in a heap until they are due. The user of the queue takes the messages that are due.

    ``on_enqueue`` is called after each new message.
    """

    def __init__(self, now: Callable[[], int], on_enqueue: Callable[[], object] = lambda: None) -> None:
        self._now = now
        self._on_enqueue = on_enqueue
        self._lock = RLock()
        self._order = count()
        self._heap: list[tuple[int, int, QueueMessage]] = []
        self._failures: dict[QueueMessage, int] = {}
        self.dead_letters: list[QueueMessage] = []

    def enqueue(self, message: QueueMessage, delay_s: int = 0) -> None:
        if not 0 <= delay_s <= LONGEST_DELAY_S:
            raise ValueError(f"a delay is 0 to {LONGEST_DELAY_S} seconds, not {delay_s}")
        with self._lock:
            self._push(self._now() + delay_s * 1000, message)
        self._on_enqueue()

    def _push(self, due: int, message: QueueMessage) -> int:
        """Adds a message, and returns its number."""
        number = next(self._order)
        heapq.heappush(self._heap, (due, number, message))
        return number

    def enqueue_many(self, messages: Sequence[QueueMessage]) -> None:
        for message in messages:
            self.enqueue(message)

    @property
    def waiting(self) -> list[tuple[int, QueueMessage]]:
        """All enqueued messages that nobody took yet: (due in ms, message), soonest first."""
        with self._lock:
            return [(due, message) for due, _, message in sorted(self._heap, key=lambda row: row[:2])]

    def ready(self, now: int | None = None) -> list[QueueMessage]:
        """The messages that are due at ``now`` (default: the clock's time, in ms); they stay in the queue."""
        until = self._now() if now is None else now
        return [message for due, message in self.waiting if due <= until]

    def pop(self, now: int | None = None) -> QueueMessage | None:
        """Takes the soonest due message, or returns None. ``enqueue`` it again to simulate a redelivery."""
        until = self._now() if now is None else now
        with self._lock:
            row = self._take(until)
        return row[2] if row else None

    def _take(self, until: int) -> tuple[int, int, QueueMessage] | None:
        return heapq.heappop(self._heap) if self._heap and self._heap[0][0] <= until else None

    def clear(self) -> None:
        """Deletes every message; for tests with a queue that loses messages."""
        with self._lock:
            self._heap.clear()

    def drop(self, is_superfluous: Callable[[QueueMessage], bool]) -> None:
        """Deletes the due messages of which that is true."""
        with self._lock:
            until = self._now()
            self._heap = [row for row in self._heap if row[0] > until or not is_superfluous(row[2])]
            heapq.heapify(self._heap)

    def finish(self, message: QueueMessage, *, is_handled: bool) -> None:
        """Ends the handling of a message that was taken.

        One that was not handled comes again after ``VISIBILITY_S``; after ``MOST_RECEIVES`` it is a dead letter.
        """
        with self._lock:
            failures = 0 if is_handled else self._failures.pop(message, 0) + 1
            comes_again = 0 < failures < MOST_RECEIVES
            if comes_again:
                self._failures[message] = failures
            elif failures:
                self.dead_letters.append(message)
            else:
                self._failures.pop(message, None)
        if comes_again:
            self.enqueue(message, VISIBILITY_S)


class MemoryBlobStore:
    """``ports.BlobStore`` in a dictionary."""

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
        default = "127.0.0.1" if target.local else PUBLIC_ADDRESS
        check_addresses(self.addresses.get(target.host, (default,)), target)


class MemoryMetrics:
    """Records counts as (name, dimensions and fields), and values as (name, value, dimensions and fields)."""

    def __init__(self) -> None:
        self.counted: list[tuple[str, dict[str, str | int]]] = []
        self.measured: list[tuple[str, float, dict[str, str | int]]] = []

    def count(self, name: str, **fields: str | int) -> None:
        self.counted.append((name, fields))

    def record(self, values: Mapping[str, float], **fields: str | int) -> None:
        self.measured += [(name, value, fields) for name, value in values.items()]


class MemorySealer:
    """Binds a secret to its context but does not hide it (base64). Only for tests and laptops."""

    def seal(self, secret: str, context: str) -> str:
        return base64.b64encode(json.dumps([context, secret]).encode()).decode()

    def open(self, sealed: str, context: str) -> str:
        content = json.loads(base64.b64decode(sealed))
        if not isinstance(content, list) or content[:1] != [context]:
            raise ValueError("sealed for another context")
        return str(content[1])


class MemoryCallbackVerifier:
    """``ports.CallbackVerifier`` without signatures: the token, which ``services.callbacks`` compares, is enough."""

    def verify(self, incoming: IncomingNotification, call: ExpectedCallback) -> str | None:
        del call
        body = json.loads(incoming.body or b"null")
        return body.get("challenge") if isinstance(body, dict) else None
