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

    # Without replay: the run that has acted goes on, and its own order is compared.
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


# ---- two acts at the same time


async def _return_at_once() -> int:
    return 1


async def _return_later() -> int:
    await asyncio.sleep(0)
    return 1


async def _fail_later() -> int:
    await asyncio.sleep(0)
    raise ValueError("no")


async def step(task: TaskContext, name: str) -> None:
    await task.step(name, _return_at_once)


async def step_in_a_thread(task: TaskContext, name: str) -> None:
    await task.step(name, str, name)


async def step_that_fails(task: TaskContext, name: str) -> None:
    with suppress(ValueError):
        await task.step(name, _fail_later)


async def step_in_a_step(task: TaskContext, name: str) -> None:
    await task.step(name, lambda: task.step("in", _return_later))


async def sleep_in_a_step(task: TaskContext, name: str) -> None:
    await task.step(name, lambda: task.sleep("in", 5))


async def emit(task: TaskContext, name: str) -> None:
    await task.emit(name, "one")
    await task.emit(name, "two", append=True, last=True)


async def report(task: TaskContext, name: str) -> None:
    await task.report_progress(name)
    await task.report_progress(f"{name} again")


async def sleep(task: TaskContext, name: str) -> None:
    await task.sleep(name, 5)


async def now(task: TaskContext, name: str) -> None:
    await task.now(name)


async def put(task: TaskContext, name: str) -> None:
    await task.store.put(name, 1)


async def ask(task: TaskContext, name: str) -> None:
    await task.ask(f"Which {name}?")


async def call_of(task: TaskContext, name: str) -> None:
    await task.call(name, "echo", name)


async def read_card(task: TaskContext, _: str) -> None:
    await task.get_card("echo")


async def turns(_: TaskContext, __: str) -> None:
    for _turn in range(2):
        await asyncio.sleep(0)


ACTS: list[Any] = [
    step,
    step_in_a_thread,
    step_that_fails,
    step_in_a_step,
    sleep_in_a_step,
    emit,
    report,
    sleep,
    now,
    put,
    ask,
    call_of,
    read_card,
    turns,
]


async def all_of(tasks: list[asyncio.Future[None]], _: list[str]) -> None:
    await asyncio.gather(*tasks)


async def the_first_of(tasks: list[asyncio.Future[None]], order: list[str]) -> None:
    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    order.append(str(sorted(map(tasks.index, done))))
    for one in rest:
        one.cancel()
    if rest:
        await asyncio.wait(rest)


def pair_of(acts: list[Any], wait: Any, orders: list[list[str]]) -> Any:
    """An agent that does the acts at the same time, and whose steps depend on the order in which they end."""

    async def work(task: TaskContext) -> str:
        orders.append(order := list[str]())

        async def end(at: int) -> None:
            await acts[at](task, f"act {at}")
            order.append(f"end {at}")

        await wait([asyncio.ensure_future(end(at)) for at in range(len(acts))], order)
        await task.step("after", str, 1)
        await task.step("order", str, str(order))
        await task.ask("Go on?")
        return str(order)

    return work


@pytest.mark.parametrize("wait", [all_of, the_first_of])
@pytest.mark.parametrize("one", ACTS)
def test_rule_07_of_two_acts_the_same_ends_first_in_each_run(one: Any, wait: Any) -> None:
    for other in ACTS:
        orders = list[list[str]]()
        pair = agent_of(pair_of([one, other], wait, orders), "work")
        harness = AgentTestHarness(pair, agent_of(answer), replay=False)  # compares the run that has acted
        reply = answered(harness, harness.send("go"))
        assert reply.state == TaskState.COMPLETED, (other, orders)
        *earlier, last = orders
        assert all(order == last[: len(order)] for order in earlier), (other, orders)
        assert reply.said == str(last)


@pytest.mark.parametrize("wait", [all_of, the_first_of])
@pytest.mark.parametrize("one", ACTS)
def test_rule_07_of_two_acts_the_same_ends_first_wherever_a_run_ends(one: Any, wait: Any) -> None:
    for other in ACTS:
        harness = AgentTestHarness(agent_of(pair_of([one, other], wait, []), "work"), agent_of(answer))
        assert answered(harness, harness.send("go")).state == TaskState.COMPLETED, other


@pytest.mark.parametrize("size", [10, 200], ids=["short names", "long names"])
def test_rule_07_steps_of_a_scope_end_in_one_order_also_with_long_names(size: int) -> None:
    orders = list[list[str]]()

    async def work(task: TaskContext) -> str:
        orders.append(order := list[str]())

        async def end(name: str, after_s: int, seconds: int) -> None:
            await asyncio.sleep(after_s)
            await task.step(name * size, asyncio.sleep, seconds)
            order.append(name)

        with task.scope("scope " * (size // 10)):
            await asyncio.gather(end("c", 0, 9), end("b", 1, 2), end("a", 1, 1))
        await task.ask("Go on?")
        return str(order)

    harness = AgentTestHarness(agent_of(work), replay=False)  # compares the run that has acted
    assert answered(harness, harness.send("go")).state == TaskState.COMPLETED
    assert orders == [["a", "b", "c"]] * 2
