"""What ends a run wins over whatever an agent, or a library that it uses, makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.events import StatusEvent
from a2a_serverless.domain.task_context import CancelReason
from a2a_serverless.engine.engine import RunOutcome
from a2a_serverless.protocol.v1 import Task, TaskState
from a2a_serverless.testing import AgentTestHarness
from tests.echo import agent_of
from tests.faults.plans import At, fail
from tests.simulated import Killed
from tests.world import ME, World

if TYPE_CHECKING:
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.task_context import TaskContext

Work = Callable[["TaskContext"], Awaitable[object]]
Library = Callable[[Awaitable[object]], Awaitable[object]]


def world_with_task(work: Work, **world: Any) -> tuple[World, TaskKey]:
    made = World([agent_of(work)], **world)
    key = ME.key(made.send("hello", push=False).id)
    made.queue.clear()
    return made, key


def last_word(task: Task) -> str:
    assert task.status.message
    return task.status.message.text()


async def dropping(call: Awaitable[object]) -> object:
    try:
        return await call
    except BaseException:  # noqa: BLE001 - what such libraries do
        return "the tool failed"


async def converting(call: Awaitable[object]) -> object:
    try:
        return await call
    except BaseException as error:
        raise RuntimeError("the tool failed") from error


async def grouping(call: Awaitable[object]) -> object:
    async with asyncio.TaskGroup() as group:
        running: asyncio.Task[object] = group.create_task(call)  # type: ignore[arg-type]
    return running.result()


async def forgetting(call: Awaitable[object]) -> object:
    try:
        return await call
    except BaseException as error:
        raise error from None


async def replacing(call: Awaitable[object]) -> object:
    try:
        return await call
    except Exception as error:  # noqa: BLE001 - what such libraries do
        return f"The tool said: {error}"


LIBRARIES: dict[str, Library] = {"drops it": dropping, "converts it": converting, "puts it into a group": grouping}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_question_waits_for_its_answer_when_a_library(library: str) -> None:
    async def work(task: TaskContext) -> str:
        answer: Any = await LIBRARIES[library](task.ask("Which colour?"))
        return str(answer.text())

    world, key = world_with_task(work)
    assert world.run(key) is RunOutcome.WAITING
    task = world.get(key.task)
    assert (task.status.state, last_word(task)) == (TaskState.INPUT_REQUIRED, "Which colour?")
    world.send("red", push=False, task_id=key.task)
    world.settle()
    assert last_word(world.get(key.task)) == "red"


def test_after_a_question_every_call_raises_again_and_leaves_nothing_behind() -> None:
    swallowed: list[str] = []

    async def work(task: TaskContext) -> str:
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: task.ask("Which colour?"),
            lambda: task.step("paint", asyncio.sleep, 1),
            lambda: task.emit("picture", "nothing"),
            lambda: task.report_progress("painting"),
            lambda: task.ask("Which size?"),
            lambda: task.call("help", "other", "paint"),
            lambda: task.get_card("other"),
            task.get_previous_tasks,
            task.get_referenced_tasks,
            lambda: task.read_file(task.message.parts[0]),
        ]
        for call in calls:
            try:
                await call()
            except BaseException as error:  # noqa: BLE001 - what such libraries do
                swallowed.append(type(error).__name__)
        return "painted"

    world, key = world_with_task(work)
    assert world.run(key) is RunOutcome.WAITING
    assert swallowed == ["CancelledError"] + ["Suspended"] * 9
    assert [event.n for event in world.events(key.task)] == [1, 2, 3]
    assert world.get(key.task).status.state is TaskState.INPUT_REQUIRED


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_store_that_fails_is_not_the_agent_s_failure_when_a_library(library: str) -> None:
    ran: list[int] = []

    async def work(task: TaskContext) -> str:
        async def think() -> str:
            ran.append(1)
            return "thought"

        return str(await LIBRARIES[library](task.step("think", think)))

    world, key = world_with_task(work, faults=At(1, late=False, what=fail, only="table.store_step"))
    assert world.run(key) is RunOutcome.HANDED_OVER
    world.settle()
    task = world.get(key.task)
    assert (task.status.state, last_word(task), len(ran)) == (TaskState.COMPLETED, "thought", 1)


@pytest.mark.parametrize("kind", [TypeError, Killed])
def test_the_error_of_a_store_stays_known_though_a_library_raises_it_again_from_none(kind: type[BaseException]) -> None:
    def raise_it() -> None:
        raise kind

    async def work(task: TaskContext) -> str:
        return str(await forgetting(task.step("think", asyncio.sleep, 0)))

    world, key = world_with_task(work, faults=At(1, late=False, what=raise_it, only="table.store_step"))
    with pytest.raises(kind):
        world.run(key)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_run_that_was_overtaken_says_nothing_more_when_a_library(library: str) -> None:
    async def work(task: TaskContext) -> str:
        async def think() -> None:
            world.cancel(key.task)

        await LIBRARIES[library](task.step("think", think))
        await LIBRARIES[library](task.report_progress("on"))
        return "thought"

    world, key = world_with_task(work)
    assert world.run(key) is RunOutcome.LEASE_LOST
    assert world.get(key.task).status.state is TaskState.CANCELED


@pytest.mark.parametrize("library", [*LIBRARIES.values(), replacing])
def test_rule_07_a_step_that_means_two_things_fails_the_task_whatever_a_library_makes_of_it(library: Library) -> None:
    async def work(task: TaskContext) -> str:
        await task.step("think", asyncio.sleep, 0)
        return str(await library(task.step("think", asyncio.sleep, 0)))

    world, key = world_with_task(work)
    assert world.run(key) is RunOutcome.ENDED
    task = world.get(key.task)
    reason = "The step 'think' was used twice. Give each step its own name."
    assert (task.status.state, last_word(task)) == (TaskState.FAILED, reason)


def test_an_agent_that_works_on_after_its_question_is_stopped_after_a_few_seconds() -> None:
    """A library that drops the signal would go on and on, and pay for it."""
    model_calls: list[int] = []

    async def work(task: TaskContext) -> None:
        await dropping(task.ask("Which colour?"))
        while True:
            model_calls.append(1)
            await asyncio.sleep(1)

    world, key = world_with_task(work)
    assert world.run(key) is RunOutcome.WAITING
    assert len(model_calls) < 10


def test_an_inline_agent_that_used_its_task_gets_one_whatever_a_library_makes_of_the_signal() -> None:
    async def work(task: TaskContext) -> str:
        said = await dropping(task.step("greet", asyncio.sleep, 0, "hello"))
        return f"The answer is {said}"

    reply = AgentTestHarness(replace(agent_of(work), runs="inline")).send("hello")
    assert (reply.state, reply.said) == (TaskState.COMPLETED, "The answer is hello")


# ---- Why an agent is being cancelled


class Cancelled:
    """An agent that notes why its work is cancelled, in its first run."""

    def __init__(self) -> None:
        self.why: list[CancelReason | None] = []

    async def work(self, task: TaskContext) -> None:
        self.why.append(task.cancellation)
        if len(self.why) > 2:
            return
        try:
            await task.emit("a", "x")
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            self.why.append(task.cancellation)
            raise


def test_an_agent_learns_that_its_client_has_canceled() -> None:
    agent = Cancelled()
    world, key = world_with_task(agent.work)
    world.plan(3_000, lambda: world.cancel(key.task))
    world.run(key)
    assert agent.why == [None, CancelReason.CLIENT]


def test_an_agent_learns_that_another_run_goes_on_with_its_work() -> None:
    agent = Cancelled()
    world, key = world_with_task(agent.work)
    world.run_ms = 25_000
    world.run(key)
    assert agent.why == [None, CancelReason.HAND_OVER]


def test_an_agent_that_waits_for_another_one_learns_that_another_run_goes_on_with_its_work() -> None:
    why: list[CancelReason | None] = []

    async def other(task: TaskContext) -> str:
        return (await task.ask("Which?")).text()

    async def work(task: TaskContext) -> None:
        try:
            await task.call("help", "other", "please")
        except asyncio.CancelledError:
            why.append(task.cancellation)
            raise

    world = World([agent_of(work), agent_of(other, "other")])
    key = ME.key(world.send("hello", push=False).id)
    world.run(key)
    assert why == [CancelReason.HAND_OVER]


def test_an_agent_learns_that_another_run_has_taken_its_task() -> None:
    agent = Cancelled()
    world, key = world_with_task(
        agent.work, faults=At(3, late=False, what=lambda: world.elsewhere(300_000), only="table.read_head")
    )
    assert world.run(key) is RunOutcome.LEASE_LOST
    assert agent.why == [None, None, CancelReason.LEASE_LOST]
    assert world.get(key.task).status.state is TaskState.COMPLETED


def test_an_agent_learns_that_the_store_has_failed() -> None:
    agent = Cancelled()
    world, key = world_with_task(agent.work, faults=At(1, late=False, what=fail, only="table.append_chunk"))
    world.survives(lambda: world.run(key))
    assert agent.why == [None, CancelReason.STORE]


def test_no_question_is_asked_after_a_conflict_that_another_branch_of_the_agent_catches() -> None:
    async def work(task: TaskContext) -> None:
        question = asyncio.create_task(task.ask("Which?"))
        await asyncio.sleep(0)
        await dropping(task.step("", asyncio.sleep, 0))
        await question

    world, key = world_with_task(work)
    world.run(key)
    states = [event.state for event in world.events(key.task) if isinstance(event, StatusEvent)]
    assert states == [TaskState.SUBMITTED, TaskState.WORKING, TaskState.FAILED]


def test_the_first_of_two_signals_ends_the_run() -> None:
    async def work(task: TaskContext) -> None:
        other = asyncio.create_task(task.step("other", asyncio.sleep, 0.3))
        await asyncio.sleep(0)
        await dropping(task.step("", asyncio.sleep, 0))
        await other

    world, key = world_with_task(work, faults=At(1, late=False, what=fail, only="table.store_step"))
    assert world.run(key) is RunOutcome.ENDED
    assert (world.get(key.task).status.state, world.table.read_head(key).head.fence) == (TaskState.FAILED, 1)
