"""Budgets of work: what each use of the system may cost, as a line ``a + b * n``, and the scenario that is counted.

``tests/costs/test_budgets.py`` counts each at n, 2n and 4n; ``docs/guarantees.md`` shows the table.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from a2a_serverless import Schedule, current_task
from a2a_serverless.domain.budgets import Budget as TaskBudget
from a2a_serverless.domain.origins import origin_of
from a2a_serverless.domain.outcomes import Outcome
from a2a_serverless.domain.queue_messages import TickMessage
from a2a_serverless.protocol.v1 import ListTasksRequest, Task, TaskState, TaskStatus
from a2a_serverless.services.callbacks import find_event_address, store_event
from a2a_serverless.services.listing import list_tasks
from a2a_serverless.services.streams import TURN_ENDS, StreamContext, follow_events
from a2a_serverless.services.sweep import sweep
from a2a_serverless.services.ticks import TickOutcome, handle_tick
from a2a_serverless.testing.deployment import LIFE
from tests.costs.counting import CountingWorld
from tests.echo import agent_of
from tests.world import HOUR_MS, ME, MINUTE_MS, Siblings, accepting

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Mapping

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.protocol.v1 import Message, TaskPushNotificationConfig

T = TypeVar("T")
SHOWN: Final = ("queries", "writes", "messages", "POSTs", "invocations")
QUICK_MS: Final = 300  # a chunk after this time is an event of its own
PAGE: Final = 50


class Line(NamedTuple):
    """``a + b * n``."""

    a: float
    b: float

    def at(self, n: int) -> float:
        return self.a + self.b * n

    def __str__(self) -> str:
        slope = f"{self.b:g} n".removeprefix("1 ")
        return " + ".join([f"{self.a:g}"] * bool(self.a or not self.b) + [slope] * bool(self.b))


class Goal(NamedTuple):
    """A limit that the project has set itself, with the number under which ``bench`` reports it."""

    number: str
    most: Mapping[str, Line]


@dataclass(frozen=True)
class Budget:
    """``count(n)`` may use ``a + b * n`` of what ``most`` names, for ``n`` times its unit.

    What it does not name is not used at all; calls of the queue are named only where messages go out together.
    """

    what: str
    unit: str
    n: int
    count: Callable[[int], Mapping[str, int]]
    most: Mapping[str, Line]
    goal: Goal | None = None


def ordinary_tasks(n: int) -> Counter[str]:
    """Counts ``n`` tasks that make one small artifact, without a webhook."""

    async def writes(task: TaskContext) -> None:
        await task.emit("document.md", "text", last=True)

    world = CountingWorld([agent_of(writes)])
    for _ in range(n):
        world.send(push=False)
    world.settle()
    return world.used


def events(n: int, *, push: bool = False) -> Counter[str]:
    """Counts a task that makes ``n`` events."""

    async def emits(task: TaskContext) -> None:
        for number in range(n):
            await task.emit("talk.txt", f"word {number} ", append=True)
            await asyncio.sleep(QUICK_MS / 1000)

    world = CountingWorld([agent_of(emits)])
    task = world.send(push=push)
    world.settle()
    used = world.used.copy()
    assert len(world.events(task.id)) == n + 3
    return used


def delivered_events(n: int) -> Counter[str]:
    """Counts what a webhook adds to a task of ``n`` events."""
    used = events(n, push=True)
    used.subtract(events(n))
    return used


def streamed_chunks(n: int) -> Counter[str]:
    """Counts ``n`` chunks, a hundred in a second."""

    async def talks(task: TaskContext) -> None:
        for number in range(n):
            await task.emit("talk.txt", f"word {number} and a few more ", append=True)
            await asyncio.sleep(0.01)

    world = CountingWorld([agent_of(talks)])
    world.send(push=False, agent="echo")
    world.settle()
    return world.used


def steps(n: int) -> Counter[str]:
    """Counts a task of ``n`` quick steps."""

    async def works(task: TaskContext) -> None:
        for number in range(n):
            await task.step(f"step {number}", quick, number)

    async def quick(number: int) -> int:
        return number

    world = CountingWorld([agent_of(works)])
    world.send(push=False, agent="echo")
    world.settle()
    return world.used


def bounded_steps(n: int) -> Counter[str]:
    """Counts a task of ``n`` quick steps with a cost, whose agent and whose owner have a budget."""

    async def works(task: TaskContext) -> None:
        for number in range(n):
            await task.step(f"step {number}", spend)

    async def spend() -> None:
        await current_task().record_usage("model", cost_usd=0.01)

    world = CountingWorld([replace(agent_of(works), budget=TaskBudget(usd=1000))])
    world.engine = replace(world.engine, owner_usd=1000)
    world.send(push=False, agent="echo")
    world.settle()
    return world.used


def sleeps(n: int) -> Counter[str]:
    """Counts a task that sleeps for two hours ``n`` times."""

    async def naps(task: TaskContext) -> None:
        for _ in range(n):
            await task.sleep("nap", 7200)

    world = CountingWorld([agent_of(naps)])
    world.send(push=False, agent="echo")
    world.settle()
    return world.used


def ticks(n: int) -> Counter[str]:
    """Counts ``n`` ticks of a schedule with the tasks that they start."""
    schedule = Schedule("hourly", "0 * * * ? *", "Work.")

    async def works(task: TaskContext) -> str:
        return task.text()

    world = CountingWorld([replace(agent_of(works), schedules=(schedule,))])
    for _ in range(n):
        world.wait(HOUR_MS)
        tick = TickMessage(schedule.key("echo"), world.engine.now() // MINUTE_MS * MINUTE_MS)
        assert handle_tick(world.engine, LIFE, tick) is TickOutcome.STARTED
        world.settle()
    return world.used


def outside_events(n: int) -> Counter[str]:
    """Counts a task that waits for ``n`` events from outside, one after the other; without making the addresses."""
    urls: list[str] = []

    async def waits(task: TaskContext) -> None:
        callbacks = [await task.callback(f"event {number}") for number in range(n)]
        urls[:] = [one.url for one in callbacks]
        for one in callbacks:
            await one.received()

    world = CountingWorld([agent_of(waits)])
    world.send(push=False, agent="echo")
    world.wait(MINUTE_MS)
    made = world.used.copy()
    for url in [*urls]:
        address = find_event_address(world.service, url.rpartition("/")[2])
        assert store_event(world.service, address, {}, b"{}")
        world.settle()
    world.used.subtract(made)
    return world.used


def hand_overs(n: int) -> Counter[str]:
    """Counts a task that is handed over ``n`` times, because the time of its function ends."""

    async def works(task: TaskContext) -> None:
        for number in range(n + 1):
            await task.step(f"step {number}", asyncio.sleep, 50)

    world = CountingWorld([agent_of(works)], run_ms=80_000)
    world.send(push=False, agent="echo")
    world.settle()
    return world.used


def child_events(n: int) -> Counter[str]:
    """Counts a task that waits for another agent's task of ``n`` events."""

    async def parent(task: TaskContext) -> None:
        await task.call("child", "child", "hello")

    async def child(task: TaskContext) -> None:
        await asyncio.sleep(60)
        for number in range(n):
            await task.emit("talk.txt", f"word {number} ", append=True)
            await asyncio.sleep(QUICK_MS / 1000)

    world = CountingWorld([agent_of(parent), agent_of(child, "child")])
    world.send(push=False, agent="echo")
    world.settle()
    return world.used


class Far(Siblings):
    """An agent elsewhere whose task never ends."""

    def address(self, agent: str) -> str:
        return f"https://far.example.com/{agent}"

    def send(self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig) -> Task:
        del message, callback
        return self.get(caller, agent, "far")

    def get(self, caller: Caller, agent: str, task_id: str) -> Task:
        del caller, agent
        return Task(id=task_id, context_id="c", status=TaskStatus(state=TaskState.WORKING, timestamp=0)).as_of(1)


def hours_of_waiting(n: int, *, has_called_back: bool) -> Counter[str]:
    """Counts a task that waits ``n`` hours for an agent elsewhere that is silent; it may have called back before."""

    async def calls(task: TaskContext) -> None:
        await task.call("child", "far", "hello")

    world = CountingWorld([agent_of(calls)])
    far = Far(world)
    if has_called_back:
        world.table.note_webhook(origin_of(far.address("far")), world.now)
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=far))
    world.send(push=False)
    world.wait(n * HOUR_MS)
    return world.used


def hours_of_asking(n: int) -> Counter[str]:
    """Counts a task that waits ``n`` hours for its client, with a webhook."""

    async def asks(task: TaskContext) -> None:
        await task.ask("When?")

    world = CountingWorld([agent_of(asks)])
    world.send()
    world.wait(n * HOUR_MS)
    return world.used


def hours_of_refusals(n: int) -> Counter[str]:
    """Counts a task whose webhook refuses everything for ``n`` hours."""

    async def says(_: TaskContext) -> str:
        return "done"

    world = CountingWorld([agent_of(says)])
    back = world.now + n * HOUR_MS
    world.receiver.answers = lambda number: accepting(number) if world.now >= back else Outcome(status=503)
    world.send()
    world.wait(n * HOUR_MS)
    assert world.receiver.posts == []
    return world.used


def crowd(n: int) -> CountingWorld:
    """Makes ``n`` tasks that are due."""
    world = CountingWorld([agent_of(lambda _: None)])
    for _ in range(n):
        world.send(push=False)
    world.queue.clear()
    world.used.clear()
    world.now += MINUTE_MS
    return world


def due_tasks(n: int) -> Counter[str]:
    """Counts a sweep of ``n`` due tasks."""
    world = crowd(n)
    assert sweep(world.sweeper) == n
    return world.used


def unreadable_items(n: int) -> Counter[str]:
    """Counts a sweep of ``n`` due items that this release cannot read."""
    world = crowd(n)
    world.posts.unreadable = frozenset({"table.read_head"})
    assert sweep(world.sweeper) == n
    return world.used


def polls_of_events(n: int) -> Counter[str]:
    """Counts one GetTask of a task with ``n`` events."""

    async def emits(task: TaskContext) -> None:
        for number in range(n):
            await task.emit(f"{number}.txt", "text", last=True)

    world = CountingWorld([agent_of(emits)])
    task = world.send(push=False)
    world.settle()
    world.used.clear()
    world.get(task.id)
    return world.used


def lists_of_tasks(n: int) -> Counter[str]:
    """Counts the first page of a list of ``n`` tasks."""
    world = crowd(n)
    page = list_tasks(world.service.lister(), ME, "echo", ListTasksRequest(page_size=PAGE))
    assert len(page.tasks) == PAGE
    return world.used


def quiet_seconds(n: int) -> Counter[str]:
    """Counts a stream that is open for ``n`` seconds while nothing happens."""

    async def asks(task: TaskContext) -> None:
        await task.ask("When?")

    world = CountingWorld([agent_of(asks)])
    task = world.send(push=False)
    world.settle()
    world.used.clear()

    async def now(call: Callable[[], T]) -> T:
        return call()

    async def follow() -> None:
        stream = StreamContext(world.table, world.clock, world.now + n * 1000, now)
        async for _ in follow_events(stream, ME.key(task.id), len(world.events(task.id)), TURN_ENDS):
            pass

    world.play(follow())
    return world.used


def _lines(**most: tuple[float, float]) -> dict[str, Line]:
    return {name.replace("_", " "): Line(*line) for name, line in most.items()}


BUDGETS: Final = (
    Budget(
        "tasks with one small artifact, without a webhook",
        "task",
        8,
        ordinary_tasks,
        _lines(queries=(1, 4), writes=(0, 4), messages=(0, 1), invocations=(1, 2)),
        Goal("N5", _lines(writes=(0, 5))),
    ),
    Budget(
        "events of a task",
        "event",
        8,
        events,
        _lines(queries=(8, 1.3), writes=(3, 1.04), messages=(1, 0), invocations=(5, 1)),
    ),
    Budget(
        "a webhook that gets each of them at once",
        "event",
        8,
        delivered_events,
        _lines(queries=(15, 5), writes=(10, 3), messages=(3, 1), POSTs=(3, 1), invocations=(3, 1)),
    ),
    Budget(
        "chunks, a hundred in a second",
        "chunk",
        250,
        streamed_chunks,
        _lines(queries=(7, 0.055), writes=(5, 0.042), messages=(1, 0), invocations=(5, 0.042)),
        Goal("N6", _lines(writes=(0, 0.06))),
    ),
    Budget(
        "quick steps",
        "step",
        8,
        steps,
        _lines(queries=(5, 0), writes=(3, 1), messages=(1, 0), invocations=(3, 0)),
    ),
    Budget(
        "quick steps of a task and an owner with a budget",
        "step",
        8,
        bounded_steps,
        _lines(queries=(6, 0), writes=(3, 1), messages=(1, 0), invocations=(3, 0)),
    ),
    Budget(
        "sleeps of two hours",
        "sleep",
        3,
        sleeps,
        _lines(queries=(6, 6), writes=(3, 3), messages=(1, 1), invocations=(4, 1)),
        Goal("N22", _lines(writes=(3, 3))),
    ),
    Budget(
        "ticks of a schedule, with tasks that answer at once",
        "tick",
        3,
        ticks,
        _lines(queries=(0, 8), writes=(0, 3), messages=(0, 1), invocations=(0, 3)),
    ),
    Budget(
        "events from outside, which resume a task",
        "event",
        3,
        outside_events,
        _lines(queries=(0, 10), writes=(0, 3), messages=(0, 1), invocations=(2, 1)),
        Goal("N23", _lines(writes=(3, 3))),
    ),
    Budget(
        "runs of a minute that hand over",
        "hand-over",
        3,
        hand_overs,
        _lines(queries=(55, 67), writes=(13, 16), messages=(1, 1), invocations=(4, 1)),
    ),
    Budget(
        "a call of another agent, which makes events",
        "event",
        8,
        child_events,
        # Each of the three callbacks reads the records of its call alone, one by one, and not those of the whole task.
        _lines(queries=(116, 7.3), writes=(38, 4.05), messages=(6, 1), POSTs=(3, 0), invocations=(14, 2)),
    ),
    Budget(
        "a call of a silent agent elsewhere",
        "hour",
        6,
        partial(hours_of_waiting, has_called_back=True),
        _lines(queries=(9, 7), writes=(8, 3), messages=(1, 1), invocations=(3, 1)),
    ),
    Budget(
        "a call of one whose webhook never came",
        "hour",
        6,
        partial(hours_of_waiting, has_called_back=False),
        _lines(queries=(60, 360), writes=(30, 120), messages=(12, 60), invocations=(12, 60)),
    ),
    Budget(
        "a question to the client, with a webhook",
        "hour",
        6,
        hours_of_asking,
        _lines(queries=(16, 0), writes=(10, 0), messages=(3, 0), POSTs=(2, 0), invocations=(5, 0)),
    ),
    Budget(
        "a webhook that refuses",
        "hour",
        12,
        hours_of_refusals,
        _lines(queries=(61, 2.4), writes=(39, 1.25), messages=(11, 0.05), POSTs=(9, 0.05), invocations=(13, 0.05)),
    ),
    Budget(
        "overdue tasks, found by the sweeper",
        "task",
        100,
        due_tasks,
        _lines(queries=(0, 1), writes=(0, 1), messages=(0, 1), queue_calls=(7, 0.09)),
        Goal("N20", _lines(writes=(0, 1), queue_calls=(8, 0.1))),
    ),
    Budget(
        "unreadable items, found by the sweeper",
        "item",
        50,
        unreadable_items,
        _lines(queries=(0, 2), writes=(0, 1)),
    ),
    Budget(
        "GetTask",
        "event",
        20,
        polls_of_events,
        _lines(queries=(1, 0)),
        Goal("N5", _lines(queries=(1, 0))),
    ),
    Budget(
        "ListTasks, a page of 50",
        "task",
        100,
        lists_of_tasks,
        _lines(queries=(PAGE + 1, 0)),
        Goal("N11", _lines(queries=(PAGE + 1, 0))),
    ),
    Budget(
        "an open stream while nothing happens",
        "second",
        20,
        quiet_seconds,
        _lines(queries=(32, 4)),
    ),
)


def table() -> str:
    """Draws the budgets as a table of Markdown."""
    lines = [f"| n | what | {' | '.join(SHOWN)} |", f"|---|---|{'---:|' * len(SHOWN)}"]
    for one in BUDGETS:
        cells = " | ".join(str(one.most.get(name, "")) for name in SHOWN)
        lines.append(f"| {one.unit}s | {one.what} | {cells} |")
    return "\n".join(lines)
