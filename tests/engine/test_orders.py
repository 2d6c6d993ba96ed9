"""A set of asyncio tasks has one order in each run, whatever ran before it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import TaskContext, TaskState
from a2a_serverless.testing import AgentTestHarness
from tests.echo import agent_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a_serverless.testing import Reply

SIZE = 7
EARLIER = [0, 1, 7, 31, 100]
"""The order of a set wraps at its size, which is a power of two."""


async def answer(task: TaskContext) -> str:
    return f"echo {task.text()}"


async def nothing(_: TaskContext) -> None:
    """Nothing comes before."""


async def call(task: TaskContext) -> None:
    await task.call("before", "echo", "hello")


async def limited(task: TaskContext) -> None:
    async with task.timeout("limit", 3600):
        await task.step("before", asyncio.sleep, 0)


async def remind(task: TaskContext) -> None:
    with suppress(TimeoutError):
        await task.ask("Before?", remind_s=60, timeout_s=150)


async def gather(task: TaskContext) -> None:
    await asyncio.gather(task.sleep("one", 60), task.step("before", asyncio.sleep, 0))


BEFORE = [nothing, call, limited, remind, gather]


async def add(task: TaskContext, number: int) -> int:
    await task.step(f"add {number}", asyncio.sleep, 0)
    return number


async def wait_for_all(task: TaskContext) -> list[int]:
    done, _ = await asyncio.wait([asyncio.ensure_future(add(task, number)) for number in range(SIZE)])
    return [one.result() for one in done]


async def wait_for_the_first(task: TaskContext) -> list[int]:
    rest, order = {asyncio.create_task(add(task, number)) for number in range(SIZE)}, []
    while rest:
        done, rest = await asyncio.wait(rest, return_when=asyncio.FIRST_COMPLETED)
        order += [one.result() for one in done]
    return order


async def take_as_completed(task: TaskContext) -> list[int]:
    sums = [asyncio.ensure_future(add(task, number)) for number in range(SIZE)]
    return [await one for one in asyncio.as_completed(sums)]


async def make_a_set(task: TaskContext) -> list[int]:
    return [await one for one in {asyncio.create_task(add(task, number)) for number in range(SIZE)}]


WAYS: list[Callable[[TaskContext], Awaitable[list[int]]]] = [
    wait_for_all,
    wait_for_the_first,
    take_as_completed,
    make_a_set,
]


def answered(harness: AgentTestHarness, reply: Reply) -> Reply:
    while reply.state == TaskState.INPUT_REQUIRED:
        reply = harness.send("yes", task_id=reply.task.id)
    return reply


def orders_in_two_runs(before: Any, way: Any, earlier: int) -> list[list[int]]:
    """The order of a set in the run that has acted, and in the one after an answer. The steps after it follow it."""
    orders: list[list[int]] = []

    async def work(task: TaskContext) -> str:
        await asyncio.gather(*(asyncio.sleep(0) for _ in range(earlier)))
        await before(task)
        order = await way(task)
        orders.append([await task.step(f"use {number}", int, number) for number in order])
        await task.ask("Go on?")
        return "done"

    harness = AgentTestHarness(agent_of(work, "work"), agent_of(answer), replay=False)
    reply = answered(harness, harness.send("go"))
    assert (reply.state, reply.said) == (TaskState.COMPLETED, "done")
    return orders


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("before", BEFORE)
def test_rule_07_a_set_of_tasks_has_one_order_in_each_run(before: Any, way: Any) -> None:
    for earlier in EARLIER:
        orders = orders_in_two_runs(before, way, earlier)
        assert len({*map(tuple, orders)}) == 1, (earlier, orders)
        assert sorted(orders[0]) == [*range(SIZE)]


@pytest.mark.parametrize("way", WAYS)
def test_rule_07_a_set_of_tasks_has_one_order_wherever_a_run_ends(way: Any) -> None:
    async def work(task: TaskContext) -> str:
        async with task.timeout("limit", 3600):
            return str([await task.step(f"use {number}", int, number) for number in await way(task)])

    assert AgentTestHarness(agent_of(work)).send("go").state == TaskState.COMPLETED


# ---- as_completed over coroutines


async def use_in_order(task: TaskContext, sums: Any) -> str:
    """Steps of one name, which get what they shall do in the order in which the tasks of ``sums`` begin."""
    begun: list[int] = []

    async def begin(number: int) -> int:
        begun.append(number)
        return await add(task, number)

    for one in asyncio.as_completed(sums(begin)):
        await one
    return str(begun)


def test_as_completed_over_tasks_that_ensure_future_has_made_begins_them_in_the_order_of_the_list() -> None:
    async def work(task: TaskContext) -> str:
        return await use_in_order(task, lambda add: [asyncio.ensure_future(add(number)) for number in range(SIZE)])

    assert AgentTestHarness(agent_of(work)).send("go").said == str([*range(SIZE)])
