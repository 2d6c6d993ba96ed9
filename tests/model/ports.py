"""The library's ports for an actor of a model: each call of the table, the clock or a queue is one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from a2a_serverless.domain.publications import AGENTS
from a2a_serverless.store import keys
from a2a_serverless.store.payloads import PayloadStore
from a2a_serverless.store.push_store import PushStore
from a2a_serverless.store.stores import Publications
from a2a_serverless.store.table import Check, Put
from a2a_serverless.store.task_log import TaskLog
from a2a_serverless.testing.memory import MemoryBlobStore, MemoryTable, place_of
from tests.model.explorer import BLOCKED, Call, Channel, Model, Violation, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.queue_messages import QueueMessage
    from a2a_serverless.store.items import Item, WriteConflict
    from a2a_serverless.store.table import Action

# Items on which nothing depends in any model: they are read at once (as the list of all configurations is), and not
# written.
UNREAD = (keys.ATTEMPTS, keys.WEBHOOKS, keys.document(AGENTS))


class Ports:
    """What an actor uses. ``note`` and ``take`` are the model's own calls; ``events`` is the log of its run."""

    def __init__(self, channel: Channel, model: Model) -> None:
        self._channel = channel
        self._model = model
        self.name = channel.actor
        self.clock = _Clock(channel, still=model.prompt or len(model.times) == 1)
        table = _Table(channel, self.is_late, torn=model.torn)
        self.log = TaskLog(table, PayloadStore(MemoryBlobStore()))
        self.push = PushStore(table)
        self.public = Publications(table)
        self.events: list[Event] = []
        self.ids = _Ids(channel.actor)
        self.queues = _Queues(channel)

    def is_late(self, world: World) -> bool:
        """Whether the platform has ended the actor, because its activity has taken too long."""
        return bool(self._model.limit_ms) and world.now > self.clock.began + self._model.limit_ms

    def ask(self, label: str, effect: Callable[[World, int], object], variants: int = 1) -> Any:
        """Makes a call of the model's own."""
        return self._channel.ask(Call(label, effect, variants))

    def note(self, label: str, change: Callable[[dict[str, Any]], object]) -> None:
        """Notes something that the model's properties are about, at once."""
        self._channel.ask(Call(label, lambda world, _: change(world.notes), at_once=True))

    def verify(self, label: str, check: Callable[[World], object]) -> None:
        """Compares what the actor knows with the world, at once; ``check`` raises Violation."""

        def effect(world: World, _: int) -> None:
            check(world)

        self._channel.ask(Call(label, effect, at_once=True))

    def take(self, message: QueueMessage) -> str:
        """Waits for a queue message, returns its receipt. It stays until ``ack``, so another actor may get it, too."""

        def take(world: World, variant: int) -> object:
            receipts = sorted(receipt for receipt, queued in world.queue if queued == message)
            return receipts[variant] if variant < len(receipts) else BLOCKED

        return str(self.ask(f"receives the {_kind(message)} message", take, 2))

    def ack(self, receipt: str) -> None:
        """Deletes a queue message."""

        def delete(world: World, _: int) -> None:
            world.queue = frozenset(one for one in world.queue if one[0] != receipt)

        self.ask("deletes its message", delete)


def _kind(message: QueueMessage) -> str:
    return type(message).__name__.removesuffix("Message").lower()


class _Table(MemoryTable):
    """A table each call of which is a step of the actor, in the world of that moment. For leases its time is 0."""

    def __init__(self, channel: Channel, is_late: Callable[[World], bool], *, torn: bool) -> None:
        super().__init__(lambda: 0)
        self._channel = channel
        self._is_late = is_late
        self._torn = torn

    def get(self, pk: str, sk: str, *, consistent: bool = True) -> Item | None:
        del consistent
        call = Call(f"gets {sk}", lambda world, _: world.items.get(pk, sk), at_once=sk.startswith(UNREAD))
        found: Item | None = self._channel.ask(call)
        return found

    def query_range(
        self, pk: str, first: str, last: str, *, limit: int = 0, newest_first: bool = False
    ) -> Iterator[Item]:
        def query(world: World, variant: int) -> object:
            rows = _torn_world(world, variant, self._channel.actor) if variant else world.items
            if rows is None:
                return BLOCKED
            return list(rows.query_range(pk, first, last, limit=limit, newest_first=newest_first))

        label = f"queries {first} to {last}"
        return iter(self._channel.ask(Call(label, query, 3 if self._torn else 1, at_once=first == keys.PUSHES)))

    def query_prefix(self, pk: str, prefix: str, *only: str) -> Iterator[Item]:
        del only
        return self.query_range(pk, prefix, prefix + chr(0x10FFFF))

    def query_due(self, shard: str, until: str, limit: int = 0, since: str = "0") -> Iterator[Item]:
        def query(world: World, _: int) -> object:
            return list(world.items.query_due(shard, until, limit, since))

        call = Call("queries what is due", query, at_once=True)
        return iter(self._channel.ask(call))

    def write(self, *actions: Action) -> WriteConflict | None:
        actor, places = self._channel.actor, [place_of(action) for action in actions if not isinstance(action, Check)]

        def write(world: World, _: int) -> object:
            if self._is_late(world):
                return BLOCKED
            if any(place in dict(torn) for one, torn in world.torn.items() if one != actor for place in places):
                return BLOCKED  # DynamoDB refuses with TransactionConflict, and the table sends it again
            before = tuple((place, world.items.partitions.get(place[0], {}).get(place[1])) for place in places)
            refusal = world.items.write(*actions)
            if self._torn and refusal is None and len(before) > 1:
                world.torn[actor] = before
            return refusal

        def answered(world: World, _: int) -> None:
            world.torn.pop(actor, None)

        if all(sk.startswith(UNREAD) for _, sk in places):
            return None
        label = f"writes {', '.join(sk for _, sk in places)}"
        refusal: WriteConflict | None = self._channel.ask(Call(label, write, writes=True))
        if self._torn and refusal is None and len(places) > 1:
            self._channel.ask(Call("the transaction is complete", answered))
        return refusal


def _torn_world(world: World, half: int, reader: str) -> MemoryTable | None:
    """The rows as a query may see them while a transaction is not complete: all but one of its items are new."""
    before = [one for actor, torn in world.torn.items() if actor != reader for one in torn]
    if len(before) < half:
        return None
    (pk, sk), old = before[half - 1]
    items = MemoryTable(lambda: world.now)
    kept = [item for rows in world.items.partitions.values() for item in rows.values()]
    items.write(*(Put(item) for item in kept))
    items.erase([{"pk": {"S": pk}, "sk": {"S": sk}}])
    if old is not None:
        items.write(Put(old))
    return items


class _Clock:
    def __init__(self, channel: Channel, *, still: bool) -> None:
        self._channel = channel
        self._still = still
        self.began = 0
        self._read = 0

    def now(self) -> int:
        self._read = int(self._channel.ask(Call("reads the clock", lambda w, _: w.now, at_once=self._still)))
        self.began = self.began or self._read
        return self._read

    def sleep(self, seconds: float) -> None:
        del seconds
        since = self._read

        def sleep(world: World, _: int) -> object:
            return None if world.now > since else BLOCKED

        self._channel.ask(Call("sleeps", sleep))


class _Ids:
    def __init__(self, actor: str) -> None:
        self._actor = actor
        self._made = 0

    def new(self) -> str:
        self._made += 1
        return f"{self._actor}-{self._made}"

    def secret(self) -> str:
        return self.new()


class _Queues:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._sent = 0

    def enqueue(self, message: QueueMessage, delay_s: int = 0) -> None:
        del delay_s
        self._sent += 1
        receipt = f"{self._channel.actor}-{self._sent}"

        def enqueue(world: World, _: int) -> None:
            world.queue |= {(receipt, message)}

        self._channel.ask(Call(f"enqueues a {_kind(message)} message", enqueue))

    def enqueue_many(self, messages: Iterable[QueueMessage]) -> None:
        for message in messages:
            self.enqueue(message)


def require(holds: object, said: str) -> None:
    """Raises Violation with what was ``said`` if it does not hold."""
    if not holds:
        raise Violation(said)
