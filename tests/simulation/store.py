"""Stores and queues that show what DynamoDB, Secrets Manager and SQS may show, as a seed decides.

Every call takes time, in which others run. While a transaction is under way, a ``Query`` may see a part of it. The
indexes lag. The answer of a write may be lost: then it is repeated, and its conditions meet what it has written.
Messages are lost, doubled and late.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.domain.decisions import RUN_LEASE_MS, RUN_RENEWAL_MS
from a2a_serverless.store import keys
from a2a_serverless.store.items import is_live
from a2a_serverless.store.table import Check
from a2a_serverless.testing.memory import MemoryBlobStore, MemoryKeyRingStore, MemoryStores, MemoryTable, place_of
from tests.simulated import Killed, SharedQueues, next_due

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from random import Random

    from a2a_serverless.domain.key_ring import KeyRing
    from a2a_serverless.domain.queue_messages import QueueMessage
    from a2a_serverless.store.items import Item, WriteConflict
    from tests.simulated import Process, Scheduler


OUTAGES: Final = 0.15  # how many seeds have a store that fails often
OUTAGE: Final = 0.15
SLOW_AGAIN: Final = 0.4  # a process that was slow at one call


class StoreDown(Exception):
    """A store did not answer, or its answer was lost."""


@dataclass
class Weather:
    """How likely each fault is at a call, until ``until`` (ms). Afterwards nothing fails."""

    until: int
    kill: float = 0.0
    fail: float = 0.0
    stall: float = 0.0
    lose_answer: float = 0.0
    lose_message: float = 0.0
    double_message: float = 0.0
    refuse: float = 0.0

    @classmethod
    def of(cls, random: Random, until: int) -> Weather:
        """The weather of one seed: some kinds of faults, each rare or less rare."""
        often = {"kill": 0.004, "fail": 0.01, "stall": 0.005, "lose_answer": 0.1}
        often |= {"lose_message": 0.2, "double_message": 0.2, "refuse": 0.15}
        weather = cls(until, **{name: rate * random.choice([0, 0, 0.3, 1]) for name, rate in often.items()})
        if random.random() < OUTAGES:
            weather.fail = OUTAGE
        return weather


class Faults:
    """What goes wrong at each call."""

    def __init__(self, scheduler: Scheduler, weather: Weather) -> None:
        self._scheduler = scheduler
        self._random = scheduler.random
        self.weather = weather
        self.deaths = 0
        self.failures = 0

    @property
    def process(self) -> Process:
        """The running process."""
        return self._scheduler.current

    @property
    def is_outage(self) -> bool:
        """Whether this seed's store fails often."""
        return self.weather.fail == OUTAGE

    @property
    def is_stormy(self) -> bool:
        return self._scheduler.now < self.weather.until

    def happens(self, rate: float) -> bool:
        """Whether a fault of this rate happens now."""
        return self.is_stormy and rate > 0 and self._random.random() < rate

    def call(self) -> None:
        """A call of a port: takes time; the process may die, the call may fail."""
        self.take_time()
        if self.happens(self.weather.fail):
            self.failures += 1
            self._scheduler.trace("a call fails")
            raise StoreDown

    def take_time(self) -> None:
        """Lets others run, and perhaps ends the process."""
        process = self._scheduler.current
        if process.is_dead:
            raise Killed
        ms = self._random.choice((1, 1, 2, 3, 5, 20))
        process.is_slow = self.happens(SLOW_AGAIN if process.is_slow else self.weather.stall)
        if process.is_slow:
            ms = self._random.choice((200, 1_500, 5_000, 21_000, 45_000))
            self.deaths += ms >= RUN_LEASE_MS - RUN_RENEWAL_MS  # a run that stands still for so long is taken for dead
            self._scheduler.trace(f"stalls for {ms} ms")
        self._scheduler.sleep(ms)
        if self.happens(self.weather.kill):
            self.kill()

    def be_slow(self) -> None:
        """A call that is often slow, and so is what its process does next."""
        if self.happens(5 * self.weather.stall):
            self.process.is_slow = True
            self._scheduler.sleep(4_000)

    def tear(self) -> None:
        """Lets others run while a transaction is under way."""
        self._scheduler.sleep(self._random.choice((1, 10, 40, 40) if self.is_stormy else (1, 3)))

    def kill(self) -> None:
        """Ends the running process."""
        self._scheduler.trace("dies")
        self.deaths += 1
        self._scheduler.current.is_dead = True
        raise Killed


class SimulatedItems(MemoryTable):
    """The table's items. ``stored`` shows them without time and faults."""

    def __init__(self, faults: Faults, now: Callable[[], int], on_put: Callable[[Item], None]) -> None:
        super().__init__(now)
        self.stored = MemoryTable(now, on_put)
        self.partitions = self.stored.partitions
        self._faults = faults
        self._clock = now
        self._random = faults._random  # noqa: SLF001 - one source of chance
        self._torn: list[tuple[str, str, Item | None, Item | None]] = []
        self._index_items: dict[tuple[str, str], Item] = {}
        self._lagging: dict[tuple[str, str], tuple[int, Item | None]] = {}
        self._soonest: int | None = None

    def get(self, pk: str, sk: str, *, consistent: bool = True) -> Item | None:
        self._faults.call()
        return self.stored.get(pk, sk, consistent=consistent)

    def query_range(
        self, pk: str, first: str, last: str, *, limit: int = 0, newest_first: bool = False
    ) -> Iterator[Item]:
        self._faults.call()
        rows = {item["sk"]["S"]: item for item in self.stored.query_range(pk, first, last)}
        for of, sk, before, after in self._torn:
            if of == pk and first <= sk <= last and self.item_at(pk, sk) is after and self._random.random() < 0.5:
                if before is None:
                    rows.pop(sk, None)
                else:
                    rows[sk] = before
        found = [rows[sk] for sk in sorted(rows, reverse=newest_first)]
        return iter(found[:limit] if limit else found)

    def query_due(self, shard: str, until: str, limit: int = 0, since: str = "0") -> Iterator[Item]:
        self._faults.call()
        rows = self._from_index(("due_shard", shard), "due_at", since, until)
        return islice(self._live_items(rows), limit or None)

    def query_newest(self, index: str, partition: tuple[str, str], first: str, last: str, limit: int) -> list[Item]:
        del index
        rows = self._from_index(partition, "st", first, last)
        return list(islice(self._live_items(reversed(rows)), limit))

    def query_index(self, index: str, partition: tuple[str, str], after: str | None, limit: int) -> list[Item]:
        del index
        rows = self._from_index(partition, "st", after or "", keys.NEWEST)
        return [item for item in rows if item["st"]["S"] != after][:limit]

    def list_keys(self, pk: str, prefix: str = "") -> list[Item]:
        self._faults.call()
        return self.stored.list_keys(pk, prefix)

    def erase(self, places: Iterable[Item]) -> int:
        erased = 0
        for place in [*places]:
            self._faults.call()
            erased += self.stored.erase([place])
            self._soonest = None
            self._index_items.pop((place["pk"]["S"], place["sk"]["S"]), None)
        return erased

    def write(self, *actions: Any) -> WriteConflict | None:
        self._faults.call()
        places = [place_of(action) for action in actions if not isinstance(action, Check)]
        before = [(*place, self.item_at(*place)) for place in places]
        refusal = self._write_to_index(places, actions)
        if refusal is None:
            self._show_torn(before if len(before) > 1 else [])
            if self._faults.happens(self._faults.weather.lose_answer):
                refusal = self._write_to_index(places, actions)
        self._faults.call()
        return refusal

    def item_at(self, pk: str, sk: str) -> Item | None:
        """The stored item, without a call."""
        return self.partitions.get(pk, {}).get(sk)

    def _show_torn(self, before: list[tuple[str, str, Item | None]]) -> None:
        """For a moment, a query may see a part of what was written together."""
        torn = [(pk, sk, old, self.item_at(pk, sk)) for pk, sk, old in before]
        self._torn += torn
        try:
            if torn:
                self._faults.tear()
        finally:
            for one in torn:
                self._torn.remove(one)

    def _write_to_index(self, places: list[tuple[str, str]], actions: tuple[Any, ...]) -> WriteConflict | None:
        """Writes, and lets the indexes lag behind."""
        if refusal := self.stored.write(*actions):
            return refusal
        self._soonest = None
        for place in places:
            item, old = self.item_at(*place), self._index_items.pop(place, None)
            if old is not None or (item and "due_shard" in item):
                lag_ms = self._random.choice((0, 50, 500, 3_000)) if self._faults.is_stormy else 0
                self._lagging[place] = self._clock() + lag_ms, old
            if item and ("st" in item or "due_shard" in item):
                self._index_items[place] = item
        return None

    def _from_index(self, partition: tuple[str, str], by: str, first: str, last: str) -> list[Item]:
        name, value = partition
        now, current = self._clock(), dict(self._index_items)
        for place, (until, old) in [*self._lagging.items()]:
            if until <= now:
                del self._lagging[place]
            elif old is None:
                current.pop(place, None)
            else:
                current[place] = old
        mine = [item for item in current.values() if item.get(name) == {"S": value} and by in item]
        return sorted((item for item in mine if first <= item[by]["S"] <= last), key=lambda item: item[by]["S"])

    def _live_items(self, rows: Iterable[Item]) -> Iterator[Item]:
        now = self._clock()
        return (item for item in rows if is_live(item, now))

    def next_due(self) -> int:
        """When the next item is due for the sweeper (ms)."""
        if self._soonest is None:
            self._soonest = next_due(self)
        return self._soonest


class SimulatedBlobs(MemoryBlobStore):
    """The bucket."""

    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self._faults = faults

    def put(self, name: str, content: bytes) -> None:
        self._faults.call()
        super().put(name, content)
        self._faults.call()

    def get(self, name: str, size: int | None = None) -> bytes:
        self._faults.call()
        return super().get(name, size)

    def list_names(self, prefix: str) -> Iterator[str]:
        self._faults.call()
        return super().list_names(prefix)

    def delete(self, name: str) -> None:
        self._faults.call()
        super().delete(name)


class SimulatedTable(MemoryStores):
    """The stores over ``SimulatedItems`` and ``SimulatedBlobs``."""

    items: SimulatedItems

    def __init__(self, faults: Faults, now: Callable[[], int]) -> None:
        self._faults = faults
        super().__init__(now)

    def make_table(self, now: Callable[[], int], on_put: Callable[[Item], None]) -> MemoryTable:
        return SimulatedItems(self._faults, now, on_put)

    def make_blobs(self) -> SimulatedBlobs:
        return SimulatedBlobs(self._faults)

    def calm(self) -> MemoryStores:
        """What is stored, read without time and faults."""
        table = _CalmStores(self.items)
        table.blobs.content = self.blobs.content
        return table


class _CalmStores(MemoryStores):
    def __init__(self, items: SimulatedItems) -> None:
        self._stored = items.stored
        super().__init__(items.now)

    def make_table(self, now: Callable[[], int], on_put: Callable[[Item], None]) -> MemoryTable:
        del now, on_put
        return self._stored


class SimulatedQueues(SharedQueues):
    """Queues that lose and double messages. ``hops`` has how many functions have sent a message on, by its number.

    Lambda counts them in its trace header.
    """

    def __init__(self, faults: Faults, scheduler: Scheduler) -> None:
        super().__init__(lambda: scheduler.now)
        self._faults, self._random = faults, scheduler.random
        self.hops: dict[int, int] = {}

    def enqueue(self, message: QueueMessage, delay_s: int = 0) -> None:
        self._faults.call()
        weather = self._faults.weather
        if self._faults.happens(weather.lose_message):
            return
        self.put(message, delay_s)
        if self._faults.happens(weather.double_message):
            self.put(message, min(900, delay_s + self._random.randint(0, 30)))
        self._faults.call()

    def put(self, message: QueueMessage, delay_s: int = 0, hops: int | None = None) -> None:
        """Enqueues whatever the weather: one hop more than the message that is being handled, or with ``hops``."""
        super().enqueue(message, delay_s)
        number = max(row[1] for row in self.rows)
        self.hops[number] = self._faults.process.hops + 1 if hops is None else hops


class SimulatedKeyRingStore(MemoryKeyRingStore):
    """The key ring's secret."""

    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self._faults = faults

    def load(self) -> KeyRing | None:
        self._faults.call()
        return super().load()

    def save(self, ring: KeyRing, before: KeyRing | None) -> bool:
        self._faults.call()
        saved = super().save(ring, before)
        self._faults.call()
        return saved
