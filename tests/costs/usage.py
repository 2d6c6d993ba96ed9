"""What one queued task uses of AWS, counted: the real use cases in a world of their own, every call of a port noted.

A task whose answer is its last message, with a webhook, sent and fetched once: it is notified twice, by two runs of the
notifier, in three POSTs, the ownership challenge counted in. Ten of them by one owner are counted and divided, because
an owner's share is drawn for ten. ``python -m tests.costs.usage`` writes ``bench/usage.json``.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.adapters.logs import IdsOnly
from a2a_serverless.adapters.metrics import EmfMetrics
from a2a_serverless.aws.batches import make_queue_handler
from a2a_serverless.domain.access import Quota
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.domain.trace import new_trace
from a2a_serverless.http.api import AllowAnonymous
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.protocol.protojson import as_json
from a2a_serverless.services.circuit_breakers import CircuitBreakers
from a2a_serverless.services.rate_limiter import RateLimiter
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from tests.contexts import Context
from tests.doubles import MemoryOwnerStore
from tests.echo import agent_of
from tests.edge import Edge
from tests.faults.plans import Count, Frail
from tests.world import World

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext

USAGE: Final = Path(__file__).parents[2] / "bench/usage.json"
PORTS: Final = frozenset({"table", "queue", "receiver", "sealer", "signer"})
TEXT: Final = "Write a short document about the sea. " * 13
TASKS: Final = 10
QUOTA: Final = Quota(sends=1200, streams=100)  # the template's defaults
WRITES: Final = {
    "count_webhook": 1,
    "count": 1,
    "move_cursor": 1,
    "record_attempt": 1,
    "update_head": 1,
}
TASK_UNITS: Final = 26  # create, take, the end: tests/contract/test_capacity.py, without the chunk
CONFIG_UNITS: Final = 4  # a configuration and its cursor, in the transaction that makes the task
TASK_WRITES: Final = frozenset({"create", "append", "append_chunk"})


async def writes(_: TaskContext) -> str:
    """One message."""
    return TEXT


class Counted(World):
    """A world that knows which function makes a call, and what that function would log."""

    def __init__(self) -> None:
        self.noted = Noted(self)
        super().__init__([agent_of(writes)], faults=self.noted)
        self.lines: list[str] = []
        owners: Any = Frail(MemoryOwnerStore(lambda: self.now), "table", self.noted)
        self.limiter = RateLimiter(owners, self.clock, self.ids, QUOTA)
        metrics = EmfMetrics("A2AServerless", "a2a-serverless", self.lines.append)
        self.service = self.service._replace(metrics=metrics)
        self.trace = new_trace("a")
        self.engine = replace(self.engine, metrics=metrics)
        self.post = replace(self.post, metrics=metrics, breakers=CircuitBreakers(self.post.store, metrics=metrics))  # type: ignore[arg-type]

    def tell_at_once(self) -> None:
        """The first notification goes out before a worker is free: so it takes a run of the notifier for itself."""
        work = self.queue.pop()
        assert work is not None
        self.work_off()
        self.noted.within("sweeper", lambda: self.queue.enqueue(work))

    def work_off(self) -> None:
        """Does what is due now."""
        self.wait(0)

    def answer(self, message: Any) -> Any:
        """What the function behind the queue does, through its handler, so that it logs what it would log."""
        name = "worker" if isinstance(message, WorkMessage) else "notifier"
        work: Any = super().answer
        handler: Any = make_queue_handler(type(message), lambda one, *_: work(one))
        body = {
            "v": 1,
            "kind": "work",
            "tenant": message.key.tenant,
            "owner": message.key.owner,
            "task": message.key.task,
        }
        body |= {} if name == "worker" else {"kind": "deliver", "config": message.config_id}
        event = {"Records": [{"messageId": "m", "body": json.dumps(body)}]}
        return self.noted.within(name, lambda: handler(event, Context()))

    def relay_changes(self) -> bool:
        return bool(self.noted.within("relay", super().relay_changes))

    def sweep_due(self, number: int = 0) -> bool:
        return bool(self.noted.within("sweeper", lambda: super(Counted, self).sweep_due(number)))


class Noted(Count):
    """The calls by function."""

    def __init__(self, world: World) -> None:
        super().__init__(PORTS)
        self.world = world
        self.by: Counter[tuple[str, str]] = Counter()
        self.invocations: Counter[str] = Counter()
        self.function = "api"

    def before(self, port: str, call: str) -> None:
        """The sweeper comes every minute, for all tasks together: its calls are nobody's."""
        if self.function == "sweeper":
            return
        self.by[self.function, f"{port}.{call}"] += 1

    def within(self, function: str, work: Any) -> Any:
        """Does ``work`` as that function; an invocation that called nothing is none."""
        before, self.function = self.function, function
        called = sum(self.by.values())
        try:
            return work()
        finally:
            self.invocations[function] += sum(self.by.values()) > called
            self.function = before


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(IdsOnly().format(record))


def counted() -> dict[str, Any]:
    """The usage of one task, on average."""
    world, kept = Counted(), _Kept()
    ours = logging.getLogger("a2a_serverless")
    before = ours.level
    ours.setLevel(logging.INFO)
    ours.addHandler(kept)
    try:
        _play(world)  # an owner's first webhook at a host is counted until its challenge is answered
        for seen in (world.noted.by, world.noted.invocations, kept.lines, world.lines):
            seen.clear()
        for _ in range(TASKS):
            _play(world)
    finally:
        ours.removeHandler(kept)
        ours.setLevel(before)
    return _summed(world, [*kept.lines, *world.lines])


def _play(world: Counted) -> None:
    task = _call(world, "SendMessage", as_json(world.request(TEXT)))["result"]["task"]["id"]
    world.tell_at_once()
    world.work_off()
    _call(world, "GetTask", {"id": task})


def _call(world: Counted, method: str, params: dict[str, Any]) -> dict[str, Any]:
    edge = Edge(
        world.service,
        world.engine.agents,
        AllowAnonymous(),
        MemoryCallbackVerifier(),
        60,
        limiter=world.limiter,
    )
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    headers = {"content-type": "application/json", "a2a-version": "1.0"}
    world.noted.invocations["api"] += 1
    return dict(json.loads(edge.answer(HttpRequest("POST", "/echo", headers, body=body)).body))


def _summed(world: Counted, lines: list[str]) -> dict[str, Any]:
    by = world.noted.by
    calls = {function: Counter[str]() for function in world.noted.invocations}
    for (function, call), count in by.items():
        calls[function][call] += count
    table = Counter({call.removeprefix("table."): by_call for call, by_call in _totals(by).items() if "table." in call})
    wrote = sum(WRITES.get(call, 0) * count for call, count in table.items())
    read = sum(count for call, count in table.items() if call not in TASK_WRITES | set(WRITES))
    return {
        "requests": 2,
        "posts": _each(_totals(by)["receiver.post"]),
        "queue_messages": _each(_totals(by)["queue.enqueue"]),
        "queue_delays": _each(_totals(by)["queue.delay"]),
        "write_units": TASK_UNITS + CONFIG_UNITS + _each(wrote),
        "read_units": _each(read),
        "log_lines": _each(len(lines)),
        "log_bytes": round(_each(sum(len(line) for line in lines)), -2),
        "functions": {
            function: {
                "invocations": _each(count),
                "table_calls": _each(sum(n for call, n in calls[function].items() if call.startswith("table."))),
                "queue_messages": _each(calls[function]["queue.enqueue"]),
                "queue_delays": _each(calls[function]["queue.delay"]),
                "posts": _each(calls[function]["receiver.post"]),
            }
            for function, count in sorted(world.noted.invocations.items())
            if count
        },
    }


def _each(count: int) -> float:
    return count / TASKS


def _totals(by: Counter[tuple[str, str]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for (_, call), count in by.items():
        found[call] += count
    return found


if __name__ == "__main__":
    USAGE.write_text(json.dumps(counted(), indent=2) + "\n")
