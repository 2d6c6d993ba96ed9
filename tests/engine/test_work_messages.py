"""Work messages stay few: one for each thing to do, and none for each time that it was tried."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.head import RUN_LEASE_MS
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.engine.run import RunOutcome
from a2a_serverless.protocol.v1 import TaskState
from tests.echo import Writer, agent_of
from tests.faults.plans import At, die
from tests.together import Together
from tests.workers import Workers
from tests.world import HOUR_MS, ME, MINUTE_MS, World

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import TaskContext
    from a2a_serverless.domain.head import Head

HOURS = 3
MESSAGES = 30


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


def test_rule_05_a_task_of_hours_has_one_message_in_flight_for_its_run_and_none_for_those_before() -> None:
    world = Workers(hours)
    task_id = world.send(push=False).id
    world.settle()
    runs = head_of(world, task_id).fence
    assert (world.state(task_id), runs >= HOURS * 4) == (TaskState.COMPLETED, True)
    assert world.most <= 2, "the run's own, and for a moment that of the run before or the hand-over's"
    assert len(world.answered) <= runs * 2 + HOURS * HOUR_MS // RUN_LEASE_MS
    assert world.counts.calls.count("table.read_log") <= runs + 1, "who only meets the lease does not read the log"


def test_rule_05_messages_of_a_client_to_a_running_task_leave_no_work_messages_behind() -> None:
    world = Workers(ten_minutes)
    task_id = world.send(push=False).id
    for number in range(MESSAGES):
        world.plan(5_000 + 1_000 * number, lambda: world.send("more", push=False, task_id=task_id))
    world.wait(MINUTE_MS)
    assert [message for _, message in world.queue.waiting] == [WorkMessage(ME.key(task_id), 1)], "the run's own"
    world.settle()
    assert world.state(task_id) is TaskState.COMPLETED
    assert len(world.get(task_id).history) == 1 + MESSAGES
    assert len(world.answered) <= 1 + MESSAGES + 10 * MINUTE_MS // RUN_LEASE_MS
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


# ---- The message of a run


def together_with(fence: int) -> tuple[World, list[object]]:
    """A run of 50 s that is met by a message after 15 s."""
    world = World([agent_of(ten_minutes)])
    key = ME.key(world.send(push=False).id)
    world.queue.clear()
    together = Together(world)
    endings = together.run(
        together.worker(key, time_ms=70_000), together.later(15_000, together.worker(key, fence=fence))
    )
    return world, endings


def test_rule_05_a_message_that_meets_a_live_lease_is_dropped() -> None:
    world, endings = together_with(fence=0)
    assert endings == [RunOutcome.HANDED_OVER, RunOutcome.LEASED]
    assert sorted(message.fence for _, message in world.queue.waiting if isinstance(message, WorkMessage)) == [0, 1]


@pytest.mark.parametrize(("fence", "waiting"), [(1, [0, 1, 1]), (2, [0, 1]), (7, [0, 1])])
def test_rule_05_only_the_message_of_the_very_run_that_holds_the_lease_is_sent_on(
    fence: int, waiting: list[int]
) -> None:
    world, endings = together_with(fence)
    assert endings == [RunOutcome.HANDED_OVER, RunOutcome.LEASED]
    assert sorted(message.fence for _, message in world.queue.waiting if isinstance(message, WorkMessage)) == waiting


def test_rule_06_a_run_that_dies_is_found_by_its_own_message_when_its_lease_is_over() -> None:
    world = Workers(ten_minutes, At(100, late=False, what=die, only="table.read_head"))
    task_id = world.send(push=False).id
    world.sweeper = replace(world.sweeper, log=_nothing_due(world))
    world.settle()
    assert (world.kills, world.state(task_id)) == (1, TaskState.COMPLETED)
    taken = [event.at for event in world.events(task_id) if event.state is TaskState.WORKING]
    assert len(taken) == 2
    assert taken[1] - taken[0] <= 100_000 + RUN_LEASE_MS + 1_000


def _nothing_due(world: World) -> Any:
    """A log of which the sweeper is told nothing."""

    class Silent:
        def __getattr__(self, name: str) -> object:
            return getattr(world.table, name)

        def list_due(self, *_: object) -> list[object]:
            return []

    return Silent()


def test_rule_06_a_run_that_dies_at_any_call_is_found_within_two_minutes() -> None:
    """Its lease, and the sweeper's next minute; in the end its step of 20 s is done again."""
    quiet = Workers(Writer(seconds=20).work)
    task_id = quiet.send(push=False).id
    quiet.settle()
    in_peace = quiet.get(task_id).status.timestamp
    for number in range(1, 100, 3):
        world = Workers(Writer(seconds=20).work, At(number, late=number % 2 == 0, what=die))
        task_id = world.send(push=False).id
        world.settle()
        task = world.get(task_id)
        assert task.status.state is TaskState.COMPLETED, f"call {number}"
        assert task.status.timestamp - in_peace <= 20_000 + RUN_LEASE_MS + MINUTE_MS + 2_000, f"call {number}"
        assert task.artifacts[0].text() == "one: hello. two: hello. three: hello. ", f"call {number}"
