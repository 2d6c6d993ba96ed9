"""Pauses of agents and owners: nothing new starts, and what runs suspends at its next act."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from a2a_serverless import Message, Task, TaskState
from a2a_serverless.domain.model import Principal
from a2a_serverless.services.pauses import LONGEST_MS, MEMORY_MS, SHORTEST_MS
from a2a_serverless.services.sweep import sweep
from a2a_serverless.store.stores import agent_pause, owner_pause
from a2a_serverless.testing import CLIENT, AgentTestHarness
from a2a_serverless.testing.deployment import LIFE
from tests.echo import agent_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless import TaskContext

HOUR_MS = 3_600_000
AGENT = agent_pause("echo")
BOTH = pytest.mark.parametrize("name", [AGENT, owner_pause(CLIENT)])


async def three_steps(task: TaskContext) -> str:
    for number in range(3):
        await task.step(f"step {number}", asyncio.sleep, 20)
    return "done"


def begun(harness: AgentTestHarness) -> Task:
    task = harness.begin("go")
    assert isinstance(task, Task)
    return task


def pause(harness: AgentTestHarness, name: str = AGENT) -> None:
    harness.table.add_pause(name, harness.now)


def state(harness: AgentTestHarness, task: Task) -> TaskState | None:
    return harness.reply(task.id).state


@BOTH
def test_a_new_task_of_a_paused_agent_or_owner_waits_and_says_why(name: str) -> None:
    harness = AgentTestHarness(agent_of(three_steps))
    pause(harness, name)
    since, task = harness.now, begun(harness)
    harness.settle(HOUR_MS)
    assert state(harness, task) is TaskState.SUBMITTED
    assert harness.runs == []
    assert harness.waits(task.id) == (("pause", name.partition("#")[0].lower(), since, None),)
    harness.table.remove_pause(name)
    harness.settle()
    assert harness.reply(task.id).said == "done"


def test_pausing_other_agents_and_owners_does_not_stop_a_task() -> None:
    harness = AgentTestHarness(agent_of(three_steps), agent_of(three_steps, "other"))
    for name in (agent_pause("other"), owner_pause(Principal("default", "somebody")), agent_pause("ech")):
        pause(harness, name)
    assert harness.send("go").said == "done"


def test_the_owner_of_another_tenant_is_another_owner() -> None:
    harness = AgentTestHarness(agent_of(three_steps))
    pause(harness, owner_pause(replace(CLIENT, tenant=f"{CLIENT.tenant}2")))
    assert harness.send("go").said == "done"


@BOTH
def test_a_run_suspends_at_its_next_step_and_goes_on_after_the_pause(name: str) -> None:
    ran: list[int] = []

    async def note(number: int) -> None:
        await asyncio.sleep(20)
        ran.append(number)

    async def work(task: TaskContext) -> str:
        for number in range(3):
            await task.step(f"step {number}", note, number)
        return "done"

    harness = AgentTestHarness(agent_of(work))
    harness.at(harness.now + 5_000, lambda: pause(harness, name))
    task = begun(harness)
    harness.settle(60_000)
    assert ran == [0], "the step under way ends, and its result is stored"
    assert [wait.kind for wait in harness.waits(task.id)] == ["pause"]
    harness.settle(HOUR_MS)
    harness.table.remove_pause(name)
    harness.settle()
    assert ran == [0, 1, 2]
    assert harness.reply(task.id).said == "done"


@pytest.mark.parametrize(
    "act",
    [
        lambda task: task.ask("Go on?"),
        lambda task: task.call("work", "other", "go"),
        lambda task: task.step("next", asyncio.sleep, 1),
    ],
)
def test_no_step_no_call_and_no_question_begins(act: Callable[[TaskContext], object]) -> None:
    async def work(task: TaskContext) -> None:
        await task.step("first", asyncio.sleep, 20)
        await act(task)  # type: ignore[misc]

    harness = AgentTestHarness(agent_of(work), agent_of(three_steps, "other"))
    harness.at(harness.now + 5_000, lambda: pause(harness))
    task = begun(harness)
    harness.settle(10 * 60_000)
    assert state(harness, task) is TaskState.WORKING
    assert [wait.kind for wait in harness.waits(task.id)] == ["pause"]
    assert len(harness.tasks(task.context_id)) == 1


def test_steps_under_way_end_before_the_run_suspends_and_the_wait_is_listed_once() -> None:
    ran: list[int] = []

    async def note(number: int) -> None:
        await asyncio.sleep(10 + 10 * number)
        ran.append(number)

    async def work(task: TaskContext) -> str:
        async def branch(number: int) -> None:
            await task.step(f"one {number}", note, number)
            await task.step(f"two {number}", note, 3 + number)

        await asyncio.gather(*map(branch, range(3)))
        return "done"

    harness = AgentTestHarness(agent_of(work))
    harness.at(harness.now + 5_000, lambda: pause(harness))
    task = begun(harness)
    harness.settle(50_000)
    assert ran == [0, 1, 2]
    assert [wait.kind for wait in harness.waits(task.id)] == ["pause"]
    harness.table.remove_pause(AGENT)
    harness.settle()
    assert ran == [0, 1, 2, 3, 4, 5]
    assert harness.reply(task.id).said == "done"


def test_a_run_whose_steps_work_on_goes_on_itself_when_the_pause_is_over() -> None:
    async def work(task: TaskContext) -> str:
        async def short() -> None:
            await task.step("short", asyncio.sleep, 20)
            await task.step("next", asyncio.sleep, 1)

        await asyncio.gather(short(), task.step("long", asyncio.sleep, 300))
        return "done"

    harness = AgentTestHarness(agent_of(work))
    harness.at(harness.now + 5_000, lambda: pause(harness))
    harness.at(harness.now + 100_000, lambda: harness.table.remove_pause(AGENT))
    assert harness.send("go").said == "done"
    assert len(harness.runs) == 1


def test_a_task_that_waits_for_something_else_says_both_and_loses_nothing() -> None:
    async def work(task: TaskContext) -> str:
        await task.sleep("nap", 3 * 3600)
        return (await task.ask("Awake?")).text()

    harness = AgentTestHarness(agent_of(work))
    task = begun(harness)
    harness.settle(HOUR_MS)
    pause(harness)
    harness.settle(5 * HOUR_MS)
    assert [wait.kind for wait in harness.waits(task.id)] == ["sleep", "pause"]
    harness.table.remove_pause(AGENT)
    harness.settle(2 * HOUR_MS)
    assert state(harness, task) is TaskState.INPUT_REQUIRED
    harness.wait(MEMORY_MS)
    pause(harness)
    harness.engine.pauses.find("echo", CLIENT)
    harness.begin("yes", task_id=task.id)
    harness.settle(HOUR_MS)
    assert state(harness, task) is TaskState.WORKING
    harness.table.remove_pause(AGENT)
    harness.settle()
    assert harness.reply(task.id).said == "yes"


def test_a_paused_task_is_canceled_and_a_paused_task_fails_at_the_end_of_its_life() -> None:
    harness = AgentTestHarness(agent_of(three_steps))
    pause(harness)
    one, two = begun(harness), begun(harness)
    harness.settle(60_000)
    harness.cancel(one.id)
    assert state(harness, one) is TaskState.CANCELED
    harness.wait(LIFE.max_life_ms)
    sweep(harness.sweeper)
    assert state(harness, two) is TaskState.FAILED


def test_a_pause_takes_effect_within_ten_seconds_and_reads_the_list_once_in_that_time() -> None:
    reads: list[int] = []

    async def work(task: TaskContext) -> str:
        for number in range(60):
            await task.step(f"step {number}", asyncio.sleep, 1)
        return "done"

    harness = AgentTestHarness(agent_of(work))
    read = harness.engine.pauses._read  # noqa: SLF001 - counted

    def count() -> Mapping[str, int]:
        reads.append(harness.now)
        return read()

    harness.engine.pauses._read = count  # noqa: SLF001 - counted
    began = harness.now
    harness.at(harness.now + 30_000, lambda: pause(harness))
    task = begun(harness)
    harness.settle(45_000)
    assert harness.waits(task.id)
    assert harness.runs[0][2] - began <= 30_000 + MEMORY_MS + 2_000
    assert all(later - earlier >= MEMORY_MS for earlier, later in pairwise(reads))


def test_a_paused_task_tries_again_with_waits_of_up_to_an_hour_at_times_of_its_own() -> None:
    harness = AgentTestHarness(agent_of(three_steps))
    pause(harness)
    tasks, since = [begun(harness) for _ in range(5)], harness.now
    woken: dict[str, list[int]] = {task.id: [] for task in tasks}
    while harness.now - since < 8 * HOUR_MS:
        harness.wait(10_000)
        for task in tasks:
            read = harness.table.read_head(CLIENT.key(task.id))
            if read and read.head.wake_at not in {0, *woken[task.id]}:
                woken[task.id].append(read.head.wake_at)
    for times in woken.values():
        waits = [later - earlier for earlier, later in pairwise(times)]
        assert min(waits) >= SHORTEST_MS / 2
        assert LONGEST_MS / 2 <= max(waits) <= LONGEST_MS + 62_000
    assert len({times[0] for times in woken.values()}) == len(tasks)


def test_an_inline_agent_that_is_paused_answers_nothing_and_its_message_becomes_a_task() -> None:
    async def echo(task: TaskContext) -> str:
        return task.text()

    harness = AgentTestHarness(replace(agent_of(echo), runs="inline"))
    assert isinstance(harness.begin("hi"), Message)
    pause(harness)
    harness.wait(MEMORY_MS)
    task = begun(harness)
    assert state(harness, task) is TaskState.SUBMITTED
    harness.table.remove_pause(AGENT)
    harness.settle()
    assert harness.reply(task.id).said == "go"


def test_pausing_and_resuming_twice_is_as_once() -> None:
    harness = AgentTestHarness(agent_of(three_steps))
    pause(harness)
    since = harness.now
    harness.settle(60_000)
    pause(harness)
    assert harness.table.list_pauses() == {AGENT: since}
    harness.table.remove_pause(AGENT)
    harness.table.remove_pause(AGENT)
    assert harness.table.list_pauses() == {}
    assert harness.send("go").said == "done"
