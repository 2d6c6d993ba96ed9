"""The sweeper: every due task in one run, its calls for each, and whether its time grows as the number of tasks (N20).

The use case of the sweeper function enqueues tasks that nobody has taken: over the in-memory store, and over
dynoxide with as many calls at a time as the function makes. Messages go to a client of SQS that only counts its calls,
of up to ten messages each. Needs `make dynoxide`.
"""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.adapters.clock import SystemClock, UuidIds
from a2a_serverless.adapters.sqs import SqsQueues
from a2a_serverless.services.sweep import SWEEPS_AT_ONCE, Sweeper, sweep
from a2a_serverless.testing.memory import MemoryStores
from capacity import Database, database, fill, new_task, ordinary
from deployment import DAY_MS, WHO
from measuring import Report, figure, goal, main, ratios

if TYPE_CHECKING:
    from collections.abc import Callable

FEW, MANY, STORED = 10_000, 100_000, 10_000
QUEUE_CALLS: Final = 0.101  # a tenth; the last call of a shard may have fewer than ten messages
LINEAR: Final = 1.25
SOON_MS: Final = 60_000  # by then the newest task is due, too
READS: Final = frozenset({"list_due", "read_head"})


@dataclass
class Counted:
    """The store's port with its calls counted."""

    inner: Any
    calls: Counter[str] = field(default_factory=Counter)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        self.calls[name] += 1
        call: Callable[..., Any] = getattr(self.inner, name)
        return call

    @property
    def writes(self) -> int:
        return sum(count for name, count in self.calls.items() if name not in READS)


@dataclass(frozen=True)
class Swept:
    """One run over ``due`` tasks: how many it did, its time for one (microseconds), and its calls for one."""

    due: int
    done: int
    us: float
    writes: float
    queue_calls: float


def in_memory(due: int) -> Swept:
    """Sweeps tasks in memory; the time is the processor's."""
    store, now = MemoryStores(SystemClock().now), SystemClock().now()
    for number in range(due):
        store.create(new_task(WHO, number, due, now))
    counted = Counted(store)
    return _swept(counted, store, lambda: counted.writes, due, time.process_time, map)


def on_dynamodb(of: Database) -> Swept:
    """Sweeps tasks on dynoxide; the time is the clock's."""
    fill(of.client, WHO, STORED)
    service = of.deploy(ordinary).service
    of.meter.reset()
    with ThreadPoolExecutor(SWEEPS_AT_ONCE) as pool:
        return _swept(
            service.log, service.webhooks().store, lambda: of.meter.writes, STORED, time.perf_counter, pool.map
        )


def _swept(
    log: Any,  # noqa: ANN401 - any store's ports
    store: Any,  # noqa: ANN401
    writes: Callable[[], int],
    due: int,
    timer: Callable[[], float],
    each: Callable[..., Any],
) -> Swept:
    batches: list[Any] = []

    def send_message_batch(**batch: object) -> dict[str, Any]:
        batches.append(batch)
        return {}

    sqs: Any = SimpleNamespace(send_message_batch=send_message_batch)
    clock: Any = SimpleNamespace(now=lambda: SystemClock().now() + SOON_MS)
    sweeper = Sweeper(log, store, SqsQueues(sqs, "work", "delivery"), clock, UuidIds(), each=each)
    began = timer()
    done = sweep(sweeper, lambda: DAY_MS)
    return Swept(due, done, (timer() - began) / due * 1e6, writes() / due, len(batches) / due)


def measure(rounds: int) -> Report:
    """Measures the in-memory store in each round, dynoxide once: its calls do not vary."""
    in_memory(FEW)
    few, many = zip(*((in_memory(FEW), in_memory(MANY)) for _ in range(rounds)), strict=True)
    with database() as of:
        stored = on_dynamodb(of)
    runs = (*many, stored)
    growth = ratios([one.us for one in many], [one.us for one in few])
    return Report(
        "The sweeper",
        __doc__ or "",
        [
            figure(f"a task, {FEW:,} in memory", "us of a core", [one.us for one in few], ours=True),
            figure(f"a task, {MANY:,} in memory", "us of a core", [one.us for one in many], ours=True),
            figure(f"a task, {STORED:,} on dynoxide", "us by the clock", [stored.us], ours=True),
        ],
        [
            goal("N20", f"share of {MANY:,} in memory that one run does", ">=", 1, [one.done / MANY for one in many]),
            goal("N20", f"share of {STORED:,} on dynoxide that one run does", ">=", 1, [stored.done / STORED]),
            goal("N20", "write calls a task", "<=", 1, [max(one.writes for one in runs)]),
            goal("N20", "queue calls a task", "<=", QUEUE_CALLS, [max(one.queue_calls for one in runs)]),
            goal("N20", f"time of a task at {MANY:,} by that at {FEW:,}", "<=", LINEAR, growth),
        ],
        [f"{LINEAR:g} leaves room for the processor's caches; quadratic work would have {MANY // FEW}."],
    )


if __name__ == "__main__":
    main(measure, rounds=1)
