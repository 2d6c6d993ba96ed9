"""The order in which waits and steps end: by the time at which they were due, and the same in each run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain.events import ArtifactEvent
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.testing import AgentTestHarness
from tests.echo import agent_of
from tests.faults.plans import At, die
from tests.world import World

if TYPE_CHECKING:
    from a2a_serverless import Agent, TaskContext


def test_rule_07_sleeps_that_were_over_before_the_run_began_end_in_the_order_in_which_they_were_due() -> None:
    async def work(task: TaskContext) -> str:
        order = list[int]()

        async def nap(seconds: int) -> None:
            await task.sleep(f"nap {seconds}", seconds)
            order.append(seconds)

        naps = [asyncio.create_task(nap(seconds)) for seconds in (30, 10, 20)]
        await asyncio.sleep(0)
        answer = (await task.ask("Go on?")).text()
        await asyncio.gather(*naps)
        return f"{answer} {order}"

    world = World([agent_of(work)])
    task = world.send("go")
    world.wait(1_000)
    world.busy = True  # no worker is free until all three are over
    world.wait(60_000)
    world.busy = False
    world.send("yes", task_id=task.id)
    world.settle()
    said = world.get(task.id).status.message
    assert said
    assert said.text() == "yes [10, 20, 30]"


def test_a_sleep_beside_a_step_that_works_is_over_when_it_is_due() -> None:
    seen = list[int]()

    async def work(task: TaskContext) -> None:
        async def nap() -> None:
            began = harness.now
            await task.sleep("nap", 0.3)
            seen.append(harness.now - began)

        async with asyncio.TaskGroup() as both:
            both.create_task(task.step("work", asyncio.sleep, 20))
            both.create_task(nap())

    harness = AgentTestHarness(agent_of(work))
    harness.send("go")
    assert 300 <= seen[0] < 310


def test_rule_07_new_code_that_comes_no_more_to_what_ended_first_goes_on_with_what_ended_later() -> None:
    async def first(task: TaskContext) -> str:
        async with asyncio.TaskGroup() as both:
            for name, seconds in (("quick", 1), ("slow", 2)):
                both.create_task(task.step(name, wait, name, seconds))
        return (await task.ask("Go on?")).text()

    async def second(task: TaskContext) -> str:
        slow = await task.step("slow", wait, "slow", 2)
        new = await task.step("new", wait, "new", 1)
        return f"{slow} {new} {(await task.ask('Go on?')).text()}"

    done = list[str]()

    async def wait(name: str, seconds: float) -> str:
        await asyncio.sleep(seconds)
        done.append(name)
        return name

    harness = AgentTestHarness(agent_of(first))
    task = harness.send("go").task
    harness.deploy(agent_of(second))
    assert harness.send("yes", task_id=task.id).said == "slow new yes"
    assert done == ["quick", "slow", "new"]


def test_a_step_that_works_on_after_the_steps_inside_it_is_not_suspended_for_a_sleep_beside_it() -> None:
    began = list[str]()

    async def work(task: TaskContext) -> None:
        async def outer() -> None:
            began.append("outer")
            await asyncio.gather(*(task.step(name, asyncio.sleep, 1) for name in ("one", "two")))
            await asyncio.sleep(30)
            await asyncio.gather(*(task.step(name, asyncio.sleep, 1) for name in ("three", "four", "five")))
            await asyncio.sleep(30)

        async with asyncio.TaskGroup() as both:
            both.create_task(task.step("outer", outer))
            both.create_task(task.sleep("nap", 600))

    AgentTestHarness(agent_of(work)).send("go")
    assert began == ["outer"]


@pytest.mark.parametrize("beside", ["a step", "a timer of the agent"])
def test_a_sleep_beside_other_work_is_not_begun_anew_by_the_run_after_a_death(beside: str) -> None:
    ends = list[int]()

    async def work(task: TaskContext) -> None:
        async def nap() -> None:
            await task.sleep("nap", 60)
            ends.append(world.now - began)

        other = task.step("work", asyncio.sleep, 200) if beside == "a step" else asyncio.sleep(200)
        await asyncio.gather(nap(), other)

    world = World([agent_of(work)], faults=At(30, late=False, what=die, only="table.read_head"))
    began = world.now
    task = world.send("go", push=False)
    world.settle()
    assert (world.kills, world.get(task.id).status.state) == (1, TaskState.COMPLETED)
    assert ends[0] < 75_000, "the next run begins when the lease of the dead one is over"


def test_a_timer_of_the_agent_ends_in_time_beside_a_long_sleep() -> None:
    async def work(task: TaskContext) -> None:
        async def emit_soon() -> None:
            await asyncio.sleep(5)
            await task.emit("a", "soon")

        await asyncio.gather(emit_soon(), task.sleep("an hour", 3600))

    world = World([agent_of(work)])
    began = world.now
    task = world.send("go", push=False)
    world.settle()
    chunk = next(event for event in world.events(task.id) if isinstance(event, ArtifactEvent))
    assert chunk.at - began < 7_000


def test_rule_07_a_step_that_an_inner_end_cancels_is_not_begun_after_a_death_in_the_outer_step() -> None:
    began = list[str]()

    async def note(name: str, seconds: float) -> None:
        began.append(name)
        await asyncio.sleep(seconds)

    async def work(task: TaskContext) -> None:
        rival = asyncio.create_task(task.step("rival", note, "rival", 100))

        async def outer() -> None:
            await task.step("inner", note, "inner", 2)
            rival.cancel()
            await note("rest", 20)

        await task.step("outer", outer)

    world = World([agent_of(work)], faults=At(12, late=False, what=die, only="table.read_head"))
    task = world.send("go", push=False)
    world.settle()
    assert (world.kills, world.get(task.id).status.state) == (1, TaskState.COMPLETED)
    assert began == ["inner", "rival", "rest", "rest"]


def test_rule_07_new_code_does_not_begin_a_step_that_an_end_within_an_open_step_cancels() -> None:
    began = list[str]()

    async def note(name: str, seconds: float) -> None:
        began.append(name)
        await asyncio.sleep(seconds)

    def agent(*, with_old: bool) -> Agent:
        async def work(task: TaskContext) -> None:
            async def outer() -> None:
                lost = asyncio.create_task(task.step("lost", note, "lost", 100))
                await task.step("won", note, "won", 1)
                lost.cancel()
                await task.ask("Go on?")

            if with_old:
                await asyncio.gather(task.step("old", note, "old", 1), task.step("older", note, "older", 2))
            await task.step("outer", outer)

        return agent_of(work)

    harness = AgentTestHarness(agent(with_old=True))
    task = harness.send("go").task
    harness.deploy(agent(with_old=False))
    assert harness.send("yes", task_id=task.id).state is TaskState.COMPLETED
    assert began.count("lost") == 1


def test_an_end_that_new_code_passes_over_does_not_hold_up_a_later_one_beside_a_timer() -> None:
    reached = list[int]()

    async def wait(seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def first(task: TaskContext) -> None:
        await asyncio.gather(*(task.step(f"step {seconds}", wait, seconds) for seconds in (1, 2, 3, 4)))
        await task.ask("Go on?")

    async def second(task: TaskContext) -> None:
        await task.step("step 2", wait, 2)
        timer = asyncio.create_task(asyncio.sleep(30))
        for seconds in (3, 4):
            await task.step(f"step {seconds}", wait, seconds)
        reached.append(harness.now)
        await timer
        await task.ask("Go on?")

    harness = AgentTestHarness(agent_of(first))
    task = harness.send("go").task
    harness.deploy(agent_of(second))
    began = harness.now
    harness.send("yes", task_id=task.id)
    assert reached[0] - began < 5_000


@pytest.mark.parametrize("hops", range(12))
def test_rule_07_ends_at_one_moment_come_in_the_same_order_in_each_run(hops: int) -> None:
    orders = list[list[str]]()

    async def work(task: TaskContext) -> None:
        orders.append(order := [])

        async def wait(number: int) -> None:
            await asyncio.sleep(1)
            for _ in range(number * hops):
                await asyncio.sleep(0)

        async def step(number: int) -> None:
            for again in range(2):
                await task.step(f"step {number} {again}", wait, number)
                order.append(f"{number} {again}")

        await asyncio.gather(*map(step, range(5)))
        await task.ask("Go on?")

    harness = AgentTestHarness(agent_of(work))
    task = harness.send("go").task
    harness.send("yes", task_id=task.id)
    assert len(orders) > 1
    assert all(order == orders[-1][: len(order)] for order in orders)
