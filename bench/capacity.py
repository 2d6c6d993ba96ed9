"""DynamoDB cost of tasks: calls and capacity units on dynoxide, a DynamoDB in Rust (N5, N6, N11).

Beside it, without a database: the memory and CPU of a page of the largest tasks that the api accepts (N11).
The real use cases and engine run over the real adapter. Needs `make dynoxide`.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from deployment import DAY_MS, SKILL, WHO, Deployment, deployed
from measuring import ROOT, Figure, Report, figure, goal, main

sys.path.insert(0, str(ROOT))

from a2a_serverless import Agent, TaskContext
from a2a_serverless.adapters.clock import SystemClock, UuidIds
from a2a_serverless.adapters.es256 import Es256Keys, KeyRingSigner
from a2a_serverless.domain.cursors import Cursor, Verification
from a2a_serverless.domain.decisions import TaskLifetime, submit
from a2a_serverless.domain.events import Incoming
from a2a_serverless.domain.key_ring import create_ring
from a2a_serverless.domain.metrics import NULL_METRICS
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.new_task import NewTask
from a2a_serverless.domain.outcomes import Outcome
from a2a_serverless.domain.push_configs import PushConfig
from a2a_serverless.domain.queue_messages import DeliveryMessage
from a2a_serverless.engine.loop import play
from a2a_serverless.protocol.v1 import ListTasksRequest, Message, Part, Role, TaskState
from a2a_serverless.services import tasks
from a2a_serverless.services.circuit_breakers import CircuitBreakers
from a2a_serverless.services.deliver import DeliveryOutcome, deliver
from a2a_serverless.services.delivery_context import DeliveryContext
from a2a_serverless.services.listing import list_tasks
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.store import items, keys
from a2a_serverless.store.dynamodb import DynamoTable, RetryPolicy
from a2a_serverless.store.payloads import PayloadStore
from a2a_serverless.store.push_store import PushStore
from a2a_serverless.store.stored_forms import dump_event
from a2a_serverless.store.stores import BreakerStore, TaskIndex
from a2a_serverless.store.task_log import TaskLog
from a2a_serverless.testing.memory import MemoryBlobStore, MemorySealer
from tests.contract.backends import client_at
from tests.contract.dynoxide import dynoxide
from tests.contract.meter import Meter, metering
from tests.contract.schema import table_schema

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

NAME: Final = "bench"
TEXT: Final = "Write a short document about the sea. " * 13  # half a kilobyte
CHUNKS: Final = 1000
LARGEST: Final = {"CPU seconds": 2.0, "MB": 300.0}
SECONDS: Final = 10
FEW, MANY, PAGE = 1_000, 100_000, 50
ORDINARY: Final = {
    "write units": 27,
    "write calls": 4,
    "GetTask, calls": 1,
    "poll of the status, strongly consistent, read units": 1,
}
FULL: Final = 120  # of the listed tasks, how many also have their first event


@dataclass(frozen=True)
class Database:
    """An empty table and the meter of its calls."""

    client: DynamoDBClient
    meter: Meter

    @property
    def table(self) -> DynamoTable:
        """The table as the adapters use it."""
        return DynamoTable(self.client, NAME, SystemClock().now, RetryPolicy(time.sleep, lambda: 0.5))

    def deploy(self, work: Callable[[TaskContext], Awaitable[Any]]) -> Deployment:
        """Deploys an agent over this table."""
        table = self.table
        log = TaskLog(table, PayloadStore(MemoryBlobStore()))
        agent = Agent("bench", "Bench", "Is measured", (SKILL,), work)
        return deployed(agent, log, TaskIndex(table), PushStore(table))


@contextmanager
def database() -> Iterator[Database]:
    """Runs dynoxide with an empty table."""
    with TemporaryDirectory() as folder, dynoxide(Path(folder)) as url, client_at(url) as client:
        client.create_table(TableName=NAME, **table_schema())
        with metering(client) as meter:
            yield Database(client, meter)


async def ordinary(task: TaskContext) -> None:
    """Emits one small artifact."""
    await task.emit("document.md", TEXT, last=True)


async def talkative(task: TaskContext) -> None:
    """Emits chunks evenly over ``SECONDS``, as a model's answer arrives."""
    begun = time.monotonic()
    for number in range(CHUNKS):
        await task.emit("talk.txt", f"word {number} and a few more ", append=True)
        await asyncio.sleep(max(0.0, begun + (number + 1) * SECONDS / CHUNKS - time.monotonic()))


def lived(of: Database, work: Callable[[TaskContext], Awaitable[Any]]) -> tuple[Deployment, str]:
    """Sends and runs a task; the meter counts only that."""
    deployment = of.deploy(work)
    of.meter.reset()
    task = deployment.send(TEXT)
    play(deployment.run(task))
    return deployment, task.id


def counted(meter: Meter) -> tuple[float, float, float]:
    """Returns write calls, write units and read units since the last reset."""
    return float(meter.writes), meter.units - meter.read, meter.read


def fill(client: DynamoDBClient, principal: Principal, count: int) -> None:
    """Stores ``count`` new tasks of an owner; all but the newest ``FULL`` have only their heads."""
    now = SystemClock().now()
    puts = ({"PutRequest": {"Item": item}} for number in range(count) for item in _items(principal, number, count, now))
    while some := list(islice(puts, 25)):
        left: Any = {NAME: some}
        while left:
            left = client.batch_write_item(RequestItems=left)["UnprocessedItems"]


def new_task(principal: Principal, number: int, count: int, now: int) -> NewTask:
    """Makes the task ``number`` of ``count`` tasks that were sent a second apart, the last one a second ago."""
    key = principal.key(f"task-{number:06d}")
    incoming = Incoming(
        Message(
            message_id=f"m-{number}",
            role=Role.USER,
            parts=(Part(text=TEXT),),
            context_id=f"context-{number % 10}",
            task_id=key.task,
        )
    )
    life = TaskLifetime(7 * DAY_MS, 30 * DAY_MS)
    at = now - (count - number) * 1000
    head, event = submit(
        key, "bench", f"context-{number % 10}", incoming, now=at, by=f"by-{number}", life=life, push=False
    )
    return NewTask(head, event, None)


def _items(principal: Principal, number: int, count: int, now: int) -> list[dict[str, Any]]:
    task = new_task(principal, number, count, now)
    head, event = task.head, task.event
    pk, expires = keys.task(head.key), head.expires
    made = [items.make_item(pk, keys.HEAD, expires, items.head_item(head))]
    if number >= count - FULL:
        body = {"by": {"S": event.append_id}, "body": {"S": dump_event(event)}}
        made.append(items.make_item(pk, keys.event(1), expires, body))
    return made


def listed(of: Database, principal: Principal) -> tuple[float, float]:
    """Returns calls and read units of listing the first page of the newest tasks."""
    deployment = of.deploy(ordinary)
    of.meter.reset()
    page = list_tasks(deployment.service.lister(), principal, "bench", ListTasksRequest(page_size=PAGE))
    if len(page.tasks) != PAGE:
        raise SystemExit(f"a page of {len(page.tasks)}")
    return float(len(of.meter.calls)), of.meter.units


def delivered(of: Database) -> float:
    """Returns the write units of a notification that a webhook accepts, from the queue message on."""
    service, clock, ids = of.deploy(ordinary).service, SystemClock(), UuidIds()
    sender: Any = SimpleNamespace(post=lambda *_: Outcome(status=200, connected=True, request_sent=True))
    made = Es256Keys()
    ring, task = create_ring(made.make(0), made.make(0), now=0), new_task(WHO, 0, 1, clock.now())
    config = PushConfig("c", "https://client.example.com/a2a", "1.0", ids.new(), clock.now())
    cursor = Cursor("c", config.incarnation, verification=Verification.TRUSTED)
    service.log.create(task._replace(head=task.head._replace(push=True), pushes=((config, cursor),)))
    of.meter.reset()
    context = DeliveryContext(
        log=service.log,
        store=service.webhooks().store,
        queues=service.queues,
        sender=sender,
        signer=KeyRingSigner(lambda: ring),
        sealer=MemorySealer(),
        clock=clock,
        ids=ids,
        issuer="https://agents.example.com",
        chance=lambda: 0.5,
        breakers=CircuitBreakers(BreakerStore(of.table)),
        metrics=NULL_METRICS,
    )
    if deliver(context, DeliveryMessage(task.head.key, "c"), lambda: DAY_MS) is not DeliveryOutcome.CAUGHT_UP:
        raise SystemExit("the notification was not delivered")
    return counted(of.meter)[1]


def measure(_rounds: int) -> Report:
    """Measures each number once: they do not vary."""
    with database() as of:
        webhook, ordinary_task, talk = delivered(of), _ordinary(of), _talkative(of)
        few, many = Principal("tenant", "few"), Principal("tenant", "many")
        fill(of.client, few, FEW)
        fill(of.client, many, MANY)
        pages = {count: listed(of, principal) for count, principal in ((FEW, few), (MANY, many))}
    largest = [*_largest_reads()]
    return Report(
        "What DynamoDB is asked",
        __doc__ or "",
        [
            _one("a queued task with one small artifact", "write units", ordinary_task["write units"]),
            _one("what its run and its send read", "read units", ordinary_task["read units"]),
            _one(f"{CHUNKS:,} chunks in {SECONDS} s", "write units", talk[1]),
            _one("GetTask", "read units", ordinary_task["GetTask, read units"]),
            *(_one(f"ListTasks, {PAGE} of {count:,}", "read units", pages[count][1]) for count in pages),
            *(_one(f"ListTasks, {PAGE} of {count:,}", "calls", pages[count][0]) for count in pages),
            *(_one(f"{what}, tasks of {kind}", unit, used) for kind, what, unit, used in largest),
        ],
        [
            *(
                goal("N5", f"queued task, {what}", "<=", limit, [ordinary_task[what]])
                for what, limit in ORDINARY.items()
            ),
            goal("N5", "webhook that is delivered, write units", "<=", 3, [webhook]),
            goal("N6", f"{CHUNKS:,} chunks within {SECONDS} s, write calls", "<=", 60, [talk[0]]),
            goal("N11", f"page of {PAGE}, calls at {MANY:,} tasks by those at {FEW:,}", "<=", 1.1, [_by(pages, 0)]),
            goal("N11", f"page of {PAGE}, read units at {MANY:,} by those at {FEW:,}", "<=", 1.1, [_by(pages, 1)]),
            *(
                goal("N11", f"largest page, {unit}", "<=", limit, [max(used for *_, of, used in largest if of == unit)])
                for unit, limit in LARGEST.items()
            ),
        ],
        [
            "N5 is for a queued task with one small artifact.",
            f"Each alone, the {CHUNKS:,} chunks were {CHUNKS + 3:,} write calls: submitted, working, end.",
        ],
    )


def _largest_reads() -> Iterator[tuple[str, str, str, float]]:
    """Kind of task, read, unit and amount for each read of the largest tasks."""
    env = {**os.environ, "MALLOC_ARENA_MAX": "1"}  # as in the notifier
    for kind in ("values", "text"):
        command = [sys.executable, str(ROOT / "bench/candidates/largest_page.py"), kind, "100"]
        done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
        for what, used in json.loads(done.stdout).items():
            yield from ((kind, what, unit, used[name]) for unit, name in (("CPU seconds", "seconds"), ("MB", "MB")))


def _ordinary(of: Database) -> dict[str, float]:
    """Measures a task with one small artifact, from its send to its end, and what reading it costs."""
    deployment, task_id = lived(of, ordinary)
    calls, writes, reads = counted(of.meter)
    of.meter.reset()
    done = tasks.get(deployment.service, RequestContext(WHO, "bench", "1.0"), task_id)
    get = {"GetTask, calls": float(len(of.meter.calls)), "GetTask, read units": of.meter.units}
    if done.status.state is not TaskState.COMPLETED:
        raise SystemExit("the task has not completed")
    of.meter.reset()
    deployment.service.log.read_head(WHO.key(task_id))
    poll = {"poll of the status, strongly consistent, read units": of.meter.units}
    return {"write units": writes, "write calls": calls, "read units": reads, **get, **poll}


def _talkative(of: Database) -> tuple[float, float, float]:
    """Measures a task that streams many chunks, as ``counted``."""
    deployment, task_id = lived(of, talkative)
    talk = counted(of.meter)
    made = tasks.get(deployment.service, RequestContext(WHO, "bench", "1.0"), task_id)
    if made.artifacts[0].text().count("word ") != CHUNKS:
        raise SystemExit("chunks are missing")
    return talk


def _by(pages: dict[int, tuple[float, float]], what: int) -> float:
    return pages[MANY][what] / pages[FEW][what]


def _one(name: str, unit: str, value: float) -> Figure:
    return figure(name, unit, [value], ours=True)


if __name__ == "__main__":
    main(measure, rounds=1)
