"""A world that counts what AWS would bill: calls of the table, queue messages, invocations and POSTs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.domain.queue_messages import DeliveryMessage
from a2a_serverless.store.payloads import PayloadCorrupted
from a2a_serverless.testing.memory import MemoryStores, MemoryTable
from tests.faults.plans import NoFaults
from tests.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.outcomes import Outcome
    from a2a_serverless.domain.queue_messages import QueueMessage
    from a2a_serverless.store.items import Item, WriteConflict
    from tests.simulated import SharedQueues

TRUSTING: Final = EgressPolicy(trusted_domains=("example.com",))


class CountedItems(MemoryTable):
    """Counts queries and writes. The sweeper's looks at the due index are not counted: they are one for all tasks."""

    used: Counter[str]

    def get(self, pk: str, sk: str, *, consistent: bool = True) -> Item | None:
        self.used["queries"] += 1
        return super().get(pk, sk, consistent=consistent)

    def query_range(self, pk: str, first: str, last: str, **how: Any) -> Iterator[Item]:
        self.used["queries"] += 1
        return super().query_range(pk, first, last, **how)

    def query_newest(self, *what: Any) -> list[Item]:
        self.used["queries"] += 1
        return super().query_newest(*what)

    def query_index(self, *what: Any) -> list[Item]:
        self.used["queries"] += 1
        return super().query_index(*what)

    def write(self, *actions: Any) -> WriteConflict | None:
        self.used["writes"] += 1
        return super().write(*actions)


class CountedTable(MemoryStores):
    """The stores over counted items."""

    make_table = CountedItems


class CountedQueues:
    """Counts messages, and the calls that enqueue them: ten messages fit into one."""

    def __init__(self, inner: SharedQueues, used: Counter[str]) -> None:
        self._inner = inner
        self._used = used

    def enqueue(self, message: QueueMessage, delay_s: int = 0) -> None:
        self._used.update(("messages", "queue calls"))
        self._inner.enqueue(message, delay_s)

    def enqueue_many(self, messages: Sequence[QueueMessage]) -> None:
        self._used["messages"] += len(messages)
        self._used["queue calls"] += -(-len(messages) // 10)
        self._inner.enqueue_many(messages)

    def delay(self, receipt: int, seconds: int) -> None:
        self._used["queue calls"] += 1
        self._inner.delay(receipt, seconds)


class Posts(NoFaults):
    """Counts POSTs of webhooks, and makes the calls in ``unreadable`` fail as content of a later release does."""

    def __init__(self, used: Counter[str]) -> None:
        self._used = used
        self.unreadable: frozenset[str] = frozenset()

    def before(self, port: str, call: str) -> None:
        self._used["POSTs"] += (port, call) == ("receiver", "post")

    def after(self, port: str, call: str) -> None:
        if f"{port}.{call}" in self.unreadable:
            raise PayloadCorrupted


class CountingWorld(World):
    """``used`` has what was used so far.

    Invocations are those that a message, a batch of the table's stream or a callback of another agent starts.
    """

    def __init__(self, agents: Sequence[Agent], *, run_ms: int | None = None) -> None:
        self.used = Counter[str]()

        def table(now: Any) -> CountedTable:
            made = CountedTable(now)
            made.items.used = self.used  # type: ignore[attr-defined]
            return made

        self.posts = Posts(self.used)
        super().__init__(
            agents,
            faults=self.posts,
            table=table,
            between=lambda queues: CountedQueues(queues, self.used),
            policy=TRUSTING,
        )
        self.run_ms = run_ms or self.run_ms

    def answer(self, message: QueueMessage) -> object:
        self.used["invocations"] += isinstance(message, DeliveryMessage) or not self.busy
        return super().answer(message)

    def relay_changes(self) -> bool:
        relayed = super().relay_changes()
        self.used["invocations"] += relayed
        return relayed

    def called_back(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        self.used["invocations"] += 1
        return super().called_back(url, headers, body)
