"""Work messages stay few: one for each thing to do, and none for each time that it was tried."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain import decisions
from a2a_serverless.domain.cursors import CLOCK_SKEW_MS
from a2a_serverless.domain.decisions import RUN_LEASE_MS, RUN_RENEWAL_MS
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.engine.engine import RunOutcome
from a2a_serverless.engine.lease import recover_tasks
from a2a_serverless.engine.run import run
from a2a_serverless.protocol.v1 import TaskState
from tests.echo import Writer, agent_of
from tests.faults.plans import At, die
from tests.workers import Workers
from tests.world import ME, MINUTE_MS, World

if TYPE_CHECKING:
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.task_context import TaskContext

HOURS = 3
MESSAGES = 30
FIRST_LOOK_MS = 1_000


async def minutes(task: TaskContext, number: int) -> None:
    for minute in range(number):
        await task.step(f"minute {minute}", asyncio.sleep, 60)


async def hours(task: TaskContext) -> None:
    await minutes(task, HOURS * 60)


async def ten_minutes(task: TaskContext) -> None:
    await minutes(task, 10)


def head_of(world: World, task_id: str) -> Head:
    head: Head = world.table.read_head(ME.key(task_id)).head
    return head


def test_rule_05_a_task_of_hours_has_one_message_which_is_hidden_while_its_run_lasts() -> None:
    world = Workers(hours)
    task_id = world.send(push=False).id
    world.settle()
    runs = head_of(world, task_id).fence
    assert (world.state(task_id), runs >= HOURS * 4) == (TaskState.COMPLETED, True)
    assert world.most == 1
    assert len(world.answered) == runs
    assert world.counts.calls.count("table.read_log") <= runs + 1, "who only meets the lease does not read the log"


def test_rule_05_messages_of_a_client_to_a_running_task_leave_no_work_messages_behind() -> None:
    world = Workers(ten_minutes)
    task_id = world.send(push=False).id
    for number in range(MESSAGES):
        world.plan(5_000 + 1_000 * number, lambda: world.send("more", push=False, task_id=task_id))
    world.wait(MINUTE_MS)
    assert {message for _, message in world.queue.waiting} == {WorkMessage(ME.key(task_id))}
    assert len(world.queue.waiting) == 1, "the run's own"
    world.settle()
    assert world.state(task_id) is TaskState.COMPLETED
    assert len(world.get(task_id).history) == 1 + MESSAGES
    assert len(world.answered) <= 2 + MESSAGES
    assert world.counts.calls.count("table.read_log") == 1


async def asks(task: TaskContext) -> None:
    await task.step("think", asyncio.sleep, 20)
    await task.ask("Which colour?")


@pytest.mark.parametrize("ms", range(19_000, 23_000, 500))
def test_rule_05_an_answer_that_comes_while_the_question_is_being_asked_is_not_lost(ms: int) -> None:
    world = Workers(asks)
    task_id = world.send(push=False).id
    world.plan(ms, lambda: world.send("red", push=False, task_id=task_id))
    world.settle(MINUTE_MS)
    events = world.events(task_id)
    asked = next(event.n for event in events if event.state is TaskState.INPUT_REQUIRED)
    answered = next(event.n for event in events[1:] if event.incoming) > asked
    assert world.state(task_id) is (TaskState.COMPLETED if answered else TaskState.INPUT_REQUIRED)
    assert answered or ms <= 20_000
    assert head_of(world, task_id).lease_until == 0


# ---- The messages of a run


def test_rule_05_a_message_that_meets_a_live_lease_is_dropped() -> None:
    world = World([agent_of(ten_minutes)])
    key = ME.key(world.send(push=False).id)
    world.queue.clear()
    met: list[int] = []

    def meet() -> RunOutcome:
        met.append(len(world.queue.waiting))
        ending = world.worker(key)()
        met.append(len(world.queue.waiting))
        return ending

    endings = world.together(world.worker(key, time_ms=70_000), world.later(7_500, meet))
    assert endings == [RunOutcome.HANDED_OVER, RunOutcome.LEASED]
    assert met == [2, 2], "those of the run: it has looked at its head, and renewed its lease once"


def test_rule_05_each_message_of_a_run_arrives_when_the_lease_that_it_was_sent_with_is_over_on_any_clock() -> None:
    world = World([agent_of(ten_minutes)])
    key = ME.key(world.send(push=False).id)
    world.queue.clear()
    began = world.now
    world.together(world.worker(key, time_ms=35_000))
    due = sorted(at - began for at, message in world.queue.waiting if isinstance(message, WorkMessage))
    leases = [RUN_LEASE_MS + renewed for renewed in range(0, 30_000, RUN_RENEWAL_MS)]
    late = [at - lease for at, lease in zip(due[1:], leases, strict=False)]
    assert due[0] > 0
    assert late
    assert all(CLOCK_SKEW_MS < ms <= CLOCK_SKEW_MS + 2_001 for ms in late), late  # a loop sleeps whole milliseconds


def test_rule_06_a_run_that_dies_is_found_by_its_own_message_when_its_lease_is_over() -> None:
    began: list[int] = []

    async def work(task: TaskContext) -> None:
        began.append(world.now)
        await ten_minutes(task)

    world = Workers(work, At(9, late=False, what=die, only="table.update_head"))
    task_id = world.send(push=False).id
    world.sweeper = replace(world.sweeper, log=_nothing_due(world))
    world.settle()
    assert (world.kills, world.state(task_id), len(began)) == (1, TaskState.COMPLETED, 2)
    assert began[1] - began[0] <= 100_000 + RUN_LEASE_MS + 1_000


def _nothing_due(world: World) -> Any:
    """A log of which the sweeper is told nothing."""

    class Silent:
        def __getattr__(self, name: str) -> object:
            return getattr(world.table, name)

        def list_due(self, *_: object) -> list[object]:
            return []

    return Silent()


def found_after(number: int) -> tuple[int, int]:
    """How long a run had worked when it died at its call ``number``, and how long after that the next one began."""
    died: list[int] = []
    began: list[int] = []
    writer = Writer(seconds=20)

    def die_now() -> None:
        died.append(world.now)
        die()

    async def work(task: TaskContext) -> None:
        began.append(world.now)
        await writer.work(task)

    world = Workers(work, At(number, late=number % 2 == 0, what=die_now))
    task_id = world.send(push=False).id
    world.sweeper = replace(world.sweeper, log=_nothing_due(world))
    world.settle()
    task = world.get(task_id)
    assert task.status.state is TaskState.COMPLETED, f"call {number}"
    assert task.artifacts[0].text() == "one: hello. two: hello. three: hello. ", f"call {number}"
    return (died[0] - began[0], began[-1] - died[0]) if died and began[-1] > died[0] else (0, 0)


def test_rule_06_a_run_that_dies_at_any_call_also_in_its_first_second_is_found_by_its_own_message() -> None:
    found = [found_after(number) for number in range(1, 100, 2)]
    assert len([ms for worked, ms in found if worked <= FIRST_LOOK_MS and ms]) >= 2, "also before the first look"
    assert max(ms for _, ms in found) <= RUN_LEASE_MS + CLOCK_SKEW_MS + 2_000 < 20_000


def test_rule_06_a_run_whose_message_is_gone_enqueues_another_before_each_renewal() -> None:
    world = World([agent_of(ten_minutes)])
    key = ME.key(world.send(push=False).id)
    world.queue.clear()
    asked: list[int] = []

    def delay(seconds: int) -> None:
        asked.append(seconds)
        if len(asked) >= 3:
            raise KeyError("the queue no longer has the message")

    world.run_ms = 40_000
    world.play(run(world.engine, key, world._time_left(world.run_ms), delay))  # noqa: SLF001 - as a worker does
    looks = [at for at, _ in world.queue.waiting if at > world.now]
    assert (len(asked), len(looks)) == (4, 2)


@pytest.mark.parametrize(("worked_s", "looks"), [(3, []), (9, []), (13, [5])])
def test_rule_06_a_look_that_meets_a_lease_that_should_have_been_renewed_comes_again(
    worked_s: int, looks: list[int]
) -> None:
    world = World([agent_of(ten_minutes)])
    key = ME.key(world.send(push=False).id)
    world.queue.clear()
    world.table.append(decisions.start_run(world.table.read_head(key), now=world.now, by="x", run="died"))
    world.wait(worked_s * 1000)
    world.queue.clear()
    world.play(run(world.engine, key, world._time_left(world.run_ms)))  # noqa: SLF001 - as a worker does
    assert [at - world.now for at, _ in world.queue.waiting] == [1000 * seconds for seconds in looks]
    if looks:
        world.wait(looks[0] * 1000)
        assert head_of(world, key.task).lost == 1


# ---- A worker with a name


def named(world: World, name: str) -> World:
    world.engine = replace(world.engine, worker=name)
    return world


def test_rule_06_a_worker_that_starts_again_under_its_name_goes_on_with_its_tasks_at_once() -> None:
    began: list[int] = []

    async def work(task: TaskContext) -> None:
        began.append(world.now)
        await task.step("work", asyncio.sleep, 10)

    world = World([agent_of(work)], faults=At(8, late=False, what=die, only="table.read_head"))
    named(world, "one")
    task_id = world.send(push=False).id
    world.wait(9_000)
    assert (world.kills, len(began)) == (1, 1)
    assert recover_tasks(named(world, "two").engine) == []
    assert recover_tasks(named(world, "on").engine) == []
    restarted = world.now
    assert recover_tasks(named(world, "one").engine) == [ME.key(task_id)]
    world.wait(1_000)
    assert (began[1:], head_of(world, task_id).lost) == ([restarted], 1)
    world.settle()
    assert world.get(task_id).status.state is TaskState.COMPLETED


def test_a_task_that_cannot_be_read_does_not_keep_a_worker_from_its_others(caplog: pytest.LogCaptureFixture) -> None:
    world = named(World([agent_of(ten_minutes)]), "one")
    keys = [ME.key(world.send(push=False).id) for _ in range(2)]
    world.queue.clear()
    for key in keys:
        head = world.table.read_head(key)
        world.table.append(decisions.start_run(head, now=world.now, by="x", run="one/1"))

    class Unreadable:
        def __getattr__(self, name: str) -> object:
            return getattr(world.table, name)

        def read_head(self, key: TaskKey) -> object:
            if key == keys[0]:
                raise ValueError("an item of a newer release")
            return world.table.read_head(key)

    log: Any = Unreadable()
    assert recover_tasks(replace(world.engine, log=log)) == [keys[1]]
    assert world.queue.ready() == [WorkMessage(keys[1])]
    assert "task not recovered" in caplog.text
