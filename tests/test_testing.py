"""The test harness for agents: how it reports failures, and its clock beside real threads."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio.to_thread
import pytest

from a2a_serverless.domain.agent_errors import TaskFailed
from a2a_serverless.domain.errors import Overloaded, TooManyRequests
from a2a_serverless.protocol.v1 import Task, TaskState
from a2a_serverless.testing import AgentTestHarness, NoArtifact
from a2a_serverless.testing.simulated_loop import THREADS_S
from tests.echo import agent_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a_serverless.domain.outbound import WebhookTarget
    from a2a_serverless.domain.task_context import TaskContext

MANY = 300_000


def count_to_many() -> int:
    """Works for some hundredths of a second without waiting for a lock, a queue or a socket."""
    return sum(1 for _ in range(MANY))


async def at_once() -> int:
    return await asyncio.to_thread(count_to_many)


async def in_a_pool() -> int:
    with ThreadPoolExecutor(1) as pool:
        return await asyncio.get_running_loop().run_in_executor(pool, count_to_many)


async def in_anyio_s_threads() -> int:
    return await anyio.to_thread.run_sync(count_to_many)


async def in_a_thread_of_its_own() -> int:
    loop = asyncio.get_running_loop()
    counted: asyncio.Future[int] = loop.create_future()

    def work() -> None:
        number = count_to_many()
        loop.call_soon_threadsafe(counted.set_result, number)

    threading.Thread(target=work, daemon=True).start()
    return await counted


async def sleep_and_count() -> int:
    await asyncio.sleep(0.2)
    return count_to_many()


async def in_a_loop_of_a_thread() -> int:
    return await anyio.to_thread.run_sync(lambda: asyncio.run(sleep_and_count()))


async def in_a_loop_at_once() -> int:
    return await asyncio.to_thread(lambda: asyncio.run(sleep_and_count()))


async def after_a_real_wait() -> int:
    await anyio.to_thread.run_sync(lambda: threading.Event().wait(0.2))
    return MANY


THREADS: list[Callable[[], Awaitable[int]]] = [
    at_once,
    in_a_pool,
    in_anyio_s_threads,
    in_a_thread_of_its_own,
    in_a_loop_of_a_thread,
    in_a_loop_at_once,
    after_a_real_wait,
]


@pytest.mark.parametrize("counted", THREADS)
def test_the_clock_stands_still_while_a_thread_works(counted: Callable[[], Awaitable[int]]) -> None:
    async def work(task: TaskContext) -> str:
        numbers = [await task.step(f"count {number}", counted) for number in range(3)]
        return str(sum(numbers))

    harness = AgentTestHarness(agent_of(work))
    began = harness.now
    reply = harness.send("count")
    assert reply.said == str(3 * MANY)
    assert len(harness.runs) == 1
    assert reply.task.status.timestamp - began < 30_000, "a few looks of the engine at most, of a second each"


def test_the_clock_moves_while_a_thread_waits_for_the_loop() -> None:
    async def work(_: TaskContext) -> str:
        loop = asyncio.get_running_loop()

        def wait() -> str:
            return asyncio.run_coroutine_threadsafe(asyncio.sleep(600, "slept"), loop).result()

        with ThreadPoolExecutor(1) as pool:
            return await loop.run_in_executor(pool, wait)

    harness = AgentTestHarness(agent_of(work))
    began = harness.now
    assert harness.send("sleep").said == "slept"
    assert 600_000 <= harness.now - began < 660_000


def test_the_clock_moves_beside_threads_that_have_nothing_to_do() -> None:
    pool = ThreadPoolExecutor(1)

    async def work(_: TaskContext) -> str:
        await asyncio.get_running_loop().run_in_executor(pool, count_to_many)
        await asyncio.sleep(60)
        return "slept"

    harness = AgentTestHarness(agent_of(work))
    began = harness.now
    assert harness.send("sleep").said == "slept"
    assert 60_000 <= harness.now - began < 90_000
    pool.shutdown()


def test_an_agent_may_use_a_harness_itself() -> None:
    async def inner(task: TaskContext) -> str:
        await task.step("slow", asyncio.sleep, 600)
        return "slept"

    async def outer(task: TaskContext) -> str:
        async def ask() -> str:
            return other.send("go").said

        return await task.step("ask", ask)

    other, began = AgentTestHarness(agent_of(inner)), time.monotonic()
    assert AgentTestHarness(agent_of(outer)).send("go").said == "slept"
    assert time.monotonic() - began < THREADS_S, "it has not waited for the thread that waits for it"


# ---- Lost messages


def a_wait(kind: str) -> AgentTestHarness:
    async def work(task: TaskContext) -> str:
        if kind == "question":
            return (await task.ask("Which?")).text()
        if kind == "event":
            callback = await task.callback("paid")
            urls.append(callback.url)
            return (await callback.received()).body.decode()
        if kind == "sleep":
            await task.sleep("nap", 7200)
        return "go"

    return AgentTestHarness(agent_of(work))


urls: list[str] = []


@pytest.mark.parametrize("kind", ["none", "question", "event", "sleep"])
def test_a_process_that_dies_before_it_enqueues_a_task_does_not_lose_it(kind: str) -> None:
    harness = a_wait(kind)
    task = harness.begin("go")
    assert isinstance(task, Task)
    if kind != "none":
        harness.settle(60_000)
        assert [wait.kind for wait in harness.waits(task.id)] == [kind]
    if kind == "question":
        harness.begin("go", task_id=task.id)
    if kind == "event":
        assert harness.send_event(urls.pop(), "go") == 200
    assert kind == "sleep" or harness.queue.waiting
    harness.queue.clear()
    harness.settle()
    assert harness.reply(task.id).said == "go"


# ---- Failures


def failing(error: Exception) -> AgentTestHarness:
    async def work(task: TaskContext) -> None:
        await task.emit("draft.md", "begun")
        raise error

    return AgentTestHarness(agent_of(work))


@pytest.mark.parametrize("error", [ZeroDivisionError("division by zero"), TaskFailed("The oven is cold.")])
def test_the_reply_has_what_the_agent_raised_with_its_way(error: Exception) -> None:
    reply = failing(error).send("go")
    assert reply.state is TaskState.FAILED
    assert reply.error is error
    assert error.__traceback__ is not None


def test_asking_for_an_artifact_that_is_not_there_raises_what_the_agent_raised() -> None:
    error = ZeroDivisionError("division by zero")
    reply = failing(error).send("go")
    assert reply.text("draft.md") == "begun"
    asks: list[Callable[[], object]] = [
        lambda: reply.text("plan.md"),
        lambda: reply.data("plan.md"),
        lambda: reply.artifacts["plan.md"],
    ]
    for ask in asks:
        with pytest.raises(NoArtifact) as raised:
            ask()
        assert "no artifact 'plan.md' (there is: 'draft.md'); the task is failed" in str(raised.value)
        assert "The agent raised ZeroDivisionError: division by zero" in str(raised.value)
        assert raised.value.__cause__ is error


def test_a_task_that_ended_well_has_no_error() -> None:
    async def work(_: TaskContext) -> str:
        return "done"

    reply = AgentTestHarness(agent_of(work)).send("go")
    assert (reply.error, reply.said) == (None, "done")
    with pytest.raises(NoArtifact, match=r"no artifact 'plan.md' \(there is: none\); the task is completed: done"):
        reply.text("plan.md")


def test_an_agent_s_traceback_is_on_stderr_from_its_own_line_on_so_that_a_failing_test_shows_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def cut(_: TaskContext) -> None:
        raise ValueError("the needle is blunt")

    reply = AgentTestHarness(agent_of(cut)).send("a coat")
    heading, begin, place, *_, last = capsys.readouterr().err.splitlines()
    reference = reply.said.removeprefix("The agent stopped with an error ").removesuffix(".")
    assert heading == f"The agent of the task {reply.task.id} stopped with an error {reference}:"
    assert (begin, last) == ("Traceback (most recent call last):", "ValueError: the needle is blunt")
    assert place.endswith(", in cut")
    assert __file__ in place


def test_a_limit_of_the_deployment_delays_a_call_and_does_not_fail_it() -> None:
    async def call(task: TaskContext) -> str:
        answer = await task.call("ask", "echo", "hello")
        return str(answer.status.state if isinstance(answer, Task) else answer)

    async def answer(task: TaskContext) -> str:
        return task.text()

    harness = AgentTestHarness(agent_of(call, "caller"), agent_of(answer))
    refusals = [TooManyRequests("Slow down.", 120), Overloaded()]

    def resolve(target: WebhookTarget) -> object:
        if refusals:
            raise refusals.pop(0)
        return target

    hooks = replace(harness.service.webhooks(), resolver=resolve)
    harness.service = harness.service._replace(webhooks=lambda: hooks)
    began = harness.now
    assert harness.send("go").said == "completed"
    assert harness.now - began >= 120_000
