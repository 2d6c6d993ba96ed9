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
    from a2a_serverless import TaskContext


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
