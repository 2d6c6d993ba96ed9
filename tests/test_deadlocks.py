"""The test harness says which code waits for something that never comes, instead of hanging."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.testing import AgentTestHarness, Deadlock
from a2a_serverless.testing.simulated_loop import SimulatedLoop
from tests.echo import agent_of

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext


async def never() -> str:
    future = asyncio.get_running_loop().create_future()
    return str(await future)


def deadlock_of(harness: AgentTestHarness) -> str:
    with pytest.raises(Deadlock) as raised:
        harness.send("go")
    return str(raised.value)


def test_a_future_that_nobody_sets_is_named_outside_of_steps() -> None:
    async def work(_: TaskContext) -> str:
        return await never()

    said = deadlock_of(AgentTestHarness(agent_of(work)))
    assert "task id-" in said
    assert "outside of steps" in said
    assert f"{__file__}:" in said
    assert "never: return str(await future)" in said


def test_a_loop_in_which_nothing_is_scheduled_says_so() -> None:
    loop = SimulatedLoop(lambda: 0, lambda _: None)
    with closing(loop), pytest.raises(Deadlock, match=r"Everything waits, and nothing is scheduled\."):
        loop.run_until_complete(loop.create_future())


def test_a_step_that_waits_for_a_future_that_nobody_sets_is_named() -> None:
    async def work(task: TaskContext) -> str:
        await task.step("first", lambda: 1)
        return str(await task.step("second", never))

    said = deadlock_of(AgentTestHarness(agent_of(work)))
    assert "step 'second'" in said
    assert "step 'first'" not in said
    assert "in never: " in said


def test_a_plain_function_that_waits_for_the_loop_that_it_blocks_is_named() -> None:
    def block() -> object:
        return asyncio.run_coroutine_threadsafe(asyncio.sleep(1), asyncio.get_running_loop()).result()

    async def work(_: TaskContext) -> str:
        return str(block())

    said = deadlock_of(AgentTestHarness(agent_of(work)))
    assert "blocks its event loop" in said
    assert f"{__file__}:" in said
    assert "block: return asyncio.run_coroutine_threadsafe" in said


def test_a_thread_that_waits_for_a_future_that_nobody_sets_is_named() -> None:
    def block() -> object:
        return Future[None]().result()

    async def work(task: TaskContext) -> str:
        return str(await task.step("block", block))

    said = deadlock_of(AgentTestHarness(agent_of(work)))
    assert "step 'block'" in said
    assert "block: return Future[None]().result()" in said


def test_a_step_that_never_ends_beside_a_durable_time_limit_is_no_deadlock() -> None:
    async def work(task: TaskContext) -> str:
        try:
            async with task.timeout("limit", 600):
                return str(await task.step("hang", never))
        except TimeoutError:
            return "after ten minutes"

    assert AgentTestHarness(agent_of(work)).send("go").said == "after ten minutes"


def test_waiting_for_an_event_that_a_planned_action_sets_is_no_deadlock() -> None:
    come = threading.Event()

    async def work(task: TaskContext) -> str:
        loop, event = asyncio.get_running_loop(), asyncio.Event()

        async def hang() -> str:
            harness.at(harness.now + 300_000, lambda: loop.call_soon_threadsafe(event.set))
            await event.wait()
            come.set()
            return "it came"

        return str(await task.step("hang", hang))

    harness = AgentTestHarness(agent_of(work))
    assert harness.send("go").said == "it came"
    assert come.is_set()


def test_an_inline_agent_that_blocks_the_request_is_named() -> None:
    async def work(_: TaskContext) -> str:
        threading.Event().wait()
        return "never"

    said = deadlock_of(AgentTestHarness(replace(agent_of(work), runs="inline")))
    assert "The agent blocks its event loop" in said
    assert "work: threading.Event().wait()" in said
