"""Work messages stay few: one for each thing to do, and none for each time that it was tried."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.cursors import CLOCK_SKEW_MS
from a2a_serverless.domain.decisions import RUN_LEASE_MS, RUN_RENEWAL_MS
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.engine.engine import RunOutcome
from a2a_serverless.protocol.v1 import TaskState
from tests.echo import Writer, agent_of
from tests.faults.plans import At, die
from tests.together import Together
from tests.workers import Workers
from tests.world import ME, MINUTE_MS, World

if TYPE_CHECKING:
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.task_context import TaskContext

HOURS = 3
MESSAGES = 30
IN_FLIGHT = 4
"""The messages of a run that are under way: each for 33 seconds, one every ten."""
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


def test_rule_05_a_task_of_hours_has_a_message_in_flight_for_each_renewal_of_a_lease() -> None:
    world = Workers(hours)
    task_id = world.send(push=False).id
    world.settle()
    runs, events = head_of(world, task_id).fence, world.events(task_id)
    worked_ms = events[-1].at - events[0].at
    assert (world.state(task_id), runs >= HOURS * 4) == (TaskState.COMPLETED, True)
    assert world.most <= IN_FLIGHT + 1, "the runs' own, and for a moment the hand-over's"
    assert len(world.answered) <= runs * 3 + worked_ms // RUN_RENEWAL_MS
    assert world.counts.calls.count("table.read_log") <= runs + 1, "who only meets the lease does not read the log"


def test_rule_05_messages_of_a_client_to_a_running_task_leave_no_work_messages_behind() -> None:
    world = Workers(ten_minutes)
    task_id = world.send(push=False).id
    for number in range(MESSAGES):
        world.plan(5_000 + 1_000 * number, lambda: world.send("more", push=False, task_id=task_id))
    world.wait(MINUTE_MS)
    assert {message for _, message in world.queue.waiting} == {WorkMessage(ME.key(task_id))}
    assert len(world.queue.waiting) <= IN_FLIGHT, "the run's own"
    world.settle()
    assert world.state(task_id) is TaskState.COMPLETED
    assert len(world.get(task_id).history) == 1 + MESSAGES
    assert len(world.answered) <= 2 + MESSAGES + 10 * MINUTE_MS // RUN_RENEWAL_MS
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
    together = Together(world)
    met: list[int] = []

    def meet() -> RunOutcome:
        met.append(len(world.queue.waiting))
        ending = together.worker(key)()
        met.append(len(world.queue.waiting))
        return ending

    endings = together.run(together.worker(key, time_ms=70_000), together.later(15_000, meet))
    assert endings == [RunOutcome.HANDED_OVER, RunOutcome.LEASED]
    assert met == [2, 2], "those of the run: it has looked at its head, and renewed its lease once"


def test_rule_05_each_message_of_a_run_arrives_when_the_lease_that_it_was_sent_with_is_over_on_any_clock() -> None:
    world = World([agent_of(ten_minutes)])
    key = ME.key(world.send(push=False).id)
    world.queue.clear()
    began = world.now
    Together(world).run(Together(world).worker(key, time_ms=50_000))
    due = sorted(at - began for at, message in world.queue.waiting if isinstance(message, WorkMessage))
    leases = [RUN_LEASE_MS + renewed for renewed in range(0, 30_000, RUN_RENEWAL_MS)]
    late = [at - lease for at, lease in zip(due[1:], leases, strict=False)]
    assert due[0] > 0
    assert late
    assert all(CLOCK_SKEW_MS < ms <= CLOCK_SKEW_MS + 2_000 for ms in late), late


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
    world.settle()
    task = world.get(task_id)
    assert task.status.state is TaskState.COMPLETED, f"call {number}"
    assert task.artifacts[0].text() == "one: hello. two: hello. three: hello. ", f"call {number}"
    return (died[0] - began[0], began[1] - died[0]) if len(began) > 1 else (0, 0)


def test_rule_06_a_run_that_dies_at_any_call_is_found_within_45_seconds() -> None:
    """By its message: after its lease and the clocks. Until its first message is sent: by the sweeper."""
    found = [found_after(number) for number in range(1, 100, 3)]
    assert (
        max(ms for worked, ms in found if worked > FIRST_LOOK_MS + 1) <= RUN_LEASE_MS + CLOCK_SKEW_MS + 2_000 < 45_000
    )
    assert max(ms for _, ms in found) <= RUN_LEASE_MS + MINUTE_MS + 2_000
