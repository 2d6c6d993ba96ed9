"""An act that the agent's function calls and forgets does nothing: the task fails, and says where."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import TaskContext, TaskState
from a2a_serverless.domain.agent_errors import StepConflict
from a2a_serverless.testing import AgentTestHarness
from tests.echo import agent_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from a2a_serverless.testing import Reply

HERE = Path(__file__).name
KEPT: list[asyncio.Future[Any]] = []
"""asyncio tasks that nobody awaits: their loop keeps none of them."""


async def note(text: str = "done") -> str:
    return text


async def stand() -> None:
    await asyncio.Event().wait()


async def answer(task: TaskContext) -> str:
    return f"echo {task.text()}"


echo = agent_of(answer)


def play(work: Any) -> Reply:
    return AgentTestHarness(agent_of(work, "work"), echo).send("go")


def line_of(text: str) -> int:
    """The number of the line of this file that ends with the comment."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {text}"))


# ---- Forgotten

ACTS: dict[str, Callable[[TaskContext], Coroutine[Any, Any, Any]]] = {
    "task.step": lambda task: task.step("charge", note),
    "task.map": lambda task: task.map("charge", note, ["a"]),
    "task.call": lambda task: task.call("ask echo", "echo", "hello"),
    "task.ask": lambda task: task.ask("Go on?"),
    "task.emit": lambda task: task.emit("text", "hello"),
    "task.sleep": lambda task: task.sleep("night", 1),
    "task.sleep_until": lambda task: task.sleep_until("night", datetime.now(UTC)),
    "task.now": lambda task: task.now("start"),
    "task.record_usage": lambda task: task.record_usage("model", input_tokens=1),
    "task.budget_left": lambda task: task.budget_left(),
    "task.read_file": lambda task: task.read_file(task.message.parts[0]),
    "task.secret": lambda task: task.secret("key"),
    "task.report_progress": lambda task: task.report_progress("half"),
    "task.callback": lambda task: task.callback("paid"),
    "task.get_card": lambda task: task.get_card("echo"),
    "task.find_agents": lambda task: task.find_agents(),
    "task.get_task": lambda task: task.get_task(),
    "task.get_referenced_tasks": lambda task: task.get_referenced_tasks(),
    "task.get_previous_tasks": lambda task: task.get_previous_tasks(),
    "KeyValueStore.get": lambda task: task.store.get("key"),
    "KeyValueStore.list": lambda task: task.store.list(),
    "KeyValueStore.put": lambda task: task.store.put("key", 1),
    "KeyValueStore.delete": lambda task: task.conversation.delete("key"),
}


def test_each_async_method_of_the_task_is_among_these_acts() -> None:
    methods = {name for name, method in inspect.getmembers(TaskContext) if inspect.iscoroutinefunction(method)}
    assert {f"task.{name}" for name in methods} == {name for name in ACTS if name.startswith("task.")}


@pytest.mark.parametrize("name", ACTS)
def test_an_act_without_await_fails_the_task_with_file_and_line(name: str) -> None:
    async def work(task: TaskContext) -> str:
        ACTS[name](task)  # type: ignore[unused-coroutine]
        await task.step("more", note)
        return "done"

    reply = play(work)
    assert reply.state == TaskState.FAILED
    assert reply.said.startswith(f"{name} was called and never awaited: {HERE}, line ")


def test_the_text_names_the_line_of_the_call() -> None:
    async def work(task: TaskContext) -> str:
        task.step("charge", note)  # type: ignore[unused-coroutine] # the forgotten call
        return "done"

    assert f"{HERE}, line {line_of('the forgotten call')}." in play(work).said


def test_the_wait_for_a_callback_without_await_fails_the_task() -> None:
    async def work(task: TaskContext) -> str:
        callback = await task.callback("paid")
        callback.received()  # type: ignore[unused-coroutine]
        return callback.url

    assert "callback.received was called and never awaited" in play(work).said


def test_an_act_that_the_work_of_a_step_forgets_fails_the_task_although_a_later_run_reads_the_step() -> None:
    async def work(task: TaskContext) -> str:
        async def outer() -> str:
            task.emit("text", "hello")  # type: ignore[unused-coroutine]
            return "done"

        await task.step("outer", outer)
        return (await task.ask("Go on?")).text()

    reply = play(work)
    assert (reply.state, "task.emit was called and never awaited" in reply.said) == (TaskState.FAILED, True)


def test_an_act_of_a_framework_without_await_is_forgotten_too() -> None:
    async def work(task: TaskContext) -> str:
        from a2a_serverless.engine.framework_task import framework_task

        framework_task(task).step("charge", note)  # type: ignore[unused-coroutine]
        return "done"

    assert play(work).state == TaskState.FAILED


@pytest.mark.parametrize("count", [1, 3])
def test_an_asyncio_task_that_has_not_begun_its_act_when_the_function_returns_is_forgotten(count: int) -> None:
    async def work(task: TaskContext) -> str:
        steps = [task.step(f"charge {number}", note) for number in range(count)]  # the late step
        KEPT.extend(map(asyncio.ensure_future, steps))
        return "done"

    reply = play(work)
    place = f"{HERE}, line {line_of('the late step')}"
    assert reply.said == (
        f"The function has returned before the step that {place} calls began. Await the step, or cancel it."
    )


def test_a_function_that_fails_fails_by_its_own_error() -> None:
    async def work(task: TaskContext) -> str:
        task.step("charge", note)  # type: ignore[unused-coroutine]
        raise StepConflict("my own")

    assert play(work).said == "my own"


# ---- Not forgotten


async def close_it(task: TaskContext) -> None:
    task.step("charge", note).close()


async def cancel_before_it_begins(task: TaskContext) -> None:
    asyncio.create_task(task.step("charge", note)).cancel()


async def throw_into_it(task: TaskContext) -> None:
    with suppress(KeyError):
        task.step("charge", note).throw(KeyError("stop"))


async def wait_for_no_time(task: TaskContext) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(task.step("charge", note), 0)


async def fail_in_a_group(task: TaskContext) -> None:
    with suppress(ExceptionGroup):
        async with asyncio.TaskGroup() as group:
            group.create_task(task.step("charge", note))
            raise ValueError("stop")


async def fail_in_a_group_later(task: TaskContext) -> None:
    with suppress(ExceptionGroup):
        async with asyncio.TaskGroup() as group:
            group.create_task(task.step("stand", stand))
            await asyncio.sleep(0)
            raise ValueError("stop")


async def await_it_later(task: TaskContext) -> None:
    waiting = [task.step(name, note) for name in ("one", "two")]
    await task.step("other", note)
    for one in waiting:
        await one


async def hedge(task: TaskContext) -> None:
    both = [asyncio.create_task(task.step("quick", note)), asyncio.create_task(task.step("slow", stand))]
    _, losers = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    for loser in losers:
        loser.cancel()


async def hedge_with_a_call(task: TaskContext) -> None:
    both = [asyncio.create_task(task.step("quick", note)), asyncio.create_task(task.call("slow", "echo", "hello"))]
    _, losers = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    for loser in losers:
        loser.cancel()


async def cancel_what_gathers(task: TaskContext) -> None:
    both = asyncio.gather(task.step("one", stand), task.step("two", stand))
    await task.step("other", note)
    both.cancel()


async def cancel_a_step_in_a_step(task: TaskContext) -> None:
    running = asyncio.create_task(task.step("outer", partial(task.step, "inner", stand)))
    await task.step("other", note)
    running.cancel()


async def cancel_work_that_takes_its_time(task: TaskContext) -> None:
    async def tidy() -> None:
        try:
            await stand()
        finally:
            await asyncio.sleep(0.01)

    running = asyncio.create_task(task.step("tidy", tidy))
    await task.step("other", note)
    running.cancel()


async def leave_a_sleep(task: TaskContext) -> None:
    KEPT.append(asyncio.ensure_future(task.sleep("night", 3600)))
    await task.step("other", note)


async def return_out_of_a_timeout(task: TaskContext) -> None:
    async with task.timeout("soon", 60):
        await task.step("other", note)


ENDINGS = [
    close_it,
    cancel_before_it_begins,
    throw_into_it,
    wait_for_no_time,
    fail_in_a_group,
    fail_in_a_group_later,
    await_it_later,
    hedge,
    hedge_with_a_call,
    cancel_what_gathers,
    cancel_a_step_in_a_step,
    cancel_work_that_takes_its_time,
    leave_a_sleep,
    return_out_of_a_timeout,
]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("asks", [False, True])
def test_an_act_that_the_agent_closes_cancels_or_throws_into_is_not_forgotten(ending: Any, *, asks: bool) -> None:
    async def work(task: TaskContext) -> str:
        await task.step("first", note)
        if asks:
            await task.ask("Go on?")
        await ending(task)
        return "done"

    harness = AgentTestHarness(agent_of(work, "work"), echo)
    reply = harness.send("go")
    if asks:
        reply = harness.send("yes", task_id=reply.task.id)
    assert (reply.state, reply.said) == (TaskState.COMPLETED, "done")


# ---- At work at the end


@pytest.mark.parametrize("is_inside", [False, True])
def test_a_step_at_work_that_nobody_cancelled_fails_the_task(*, is_inside: bool) -> None:
    async def work(task: TaskContext) -> str:
        running = partial(task.step, "inner", stand) if is_inside else stand
        KEPT.append(asyncio.ensure_future(task.step("slow", running)))
        await task.step("other", asyncio.sleep, 0)
        return "done"

    reply = play(work)
    assert reply.state == TaskState.FAILED
    assert reply.said == (
        "The function has returned while the step 'slow' was at work, and its result is lost. Await the step, or cancel"
        " it."
    )


def test_a_step_in_a_thread_that_nobody_awaits_fails_the_task() -> None:
    import threading

    go_on = threading.Event()

    async def work(task: TaskContext) -> str:
        KEPT.append(asyncio.ensure_future(task.step("slow", go_on.wait)))
        await task.step("other", asyncio.sleep, 0)
        return "done"

    harness = AgentTestHarness(agent_of(work))
    try:
        assert "'slow' was at work" in harness.send("go").said
    finally:
        go_on.set()


def test_a_step_whose_loser_ends_by_itself_before_the_function_returns_is_no_fault() -> None:
    async def work(task: TaskContext) -> str:
        first = await next(asyncio.as_completed([task.step("one", note, "one"), task.step("two", note, "two")]))
        await task.step("other", note)
        return first

    assert play(work).state == TaskState.COMPLETED


# ---- What a method of the task is


@pytest.mark.skipif(not hasattr(inspect, "markcoroutinefunction"), reason="Python 3.11 has no mark for these")
def test_a_method_of_the_task_counts_as_an_async_function() -> None:
    async def work(task: TaskContext) -> str:
        return str([inspect.iscoroutinefunction(task.step), inspect.iscoroutinefunction(partial(task.ask, "Go on?"))])

    assert play(work).said == "[True, True]"
