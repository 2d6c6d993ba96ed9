"""The first run gives the agent what each later run gives it: neither holds an object that only one of them has."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import TaskContext, TaskState
from a2a_serverless.engine.framework_task import NoResult
from a2a_serverless.engine.loop import OUTSIDE_STEPS, RunLoop, create_engine_task, play
from a2a_serverless.testing import AgentTestHarness
from tests.echo import agent_of

if TYPE_CHECKING:
    from collections.abc import Coroutine

user: ContextVar[str] = ContextVar("user", default="nobody")


def texts_of_two_runs(work: Any) -> tuple[object, object]:
    """What the work gives in the run that has acted, and in the one after a question. It asks last."""
    seen = list[object]()

    async def ask(task: TaskContext) -> str:
        seen.append(await work(task))
        await task.ask("Go on?")
        return "done"

    harness = AgentTestHarness(agent_of(ask))
    reply = harness.send("go")
    assert reply.state == TaskState.INPUT_REQUIRED, reply
    assert harness.send("yes", task_id=reply.task.id).state == TaskState.COMPLETED
    first, second = seen
    return first, second


# ---- Contexts


def test_a_context_variable_that_a_step_sets_is_set_in_its_work_only() -> None:
    async def sign_in() -> str:
        user.set("ada")
        await asyncio.sleep(0)
        return user.get()

    async def work(task: TaskContext) -> object:
        return await task.step("sign in", sign_in), user.get()

    assert texts_of_two_runs(work) == (("ada", "nobody"), ("ada", "nobody"))


def test_the_work_of_a_step_sees_the_variables_of_the_code_around_it() -> None:
    async def read() -> str:
        return user.get()

    async def work(task: TaskContext) -> object:
        user.set("grace")
        return await task.step("read", read)

    assert texts_of_two_runs(work) == ("grace", "grace")


def test_a_cancellation_reaches_the_work_in_its_context() -> None:
    seen = list[str]()

    async def wait() -> None:
        user.set("ada")
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(user.get())

    async def work(task: TaskContext) -> str:
        running = asyncio.ensure_future(task.step("wait", wait))
        await task.step("other", asyncio.sleep, 0)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        return user.get()

    assert AgentTestHarness(agent_of(work)).send("go").said == "nobody"
    assert seen == ["ada"]


def test_a_timeout_inside_the_work_of_a_step_still_works() -> None:
    async def slow() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            return "late"
        return "early"

    async def work(task: TaskContext) -> str:
        return await task.step("slow", slow)

    assert AgentTestHarness(agent_of(work)).send("go").said == "late"


# ---- Errors


class Refused(Exception):
    """An error of the project's own."""


def no_file() -> None:
    raise FileNotFoundError(2, "No such file", "plan.txt")


def no_json() -> None:
    json.loads("{")


def caused() -> None:
    try:
        no_file()
    except OSError as error:
        raise Refused("no plan") from error


def noted() -> None:
    error = Refused("no plan")
    error.add_note("Ask for it.")
    error.remedy = "ask"  # type: ignore[attr-defined]
    raise error


def nameless() -> None:
    raise NameError("no such name", name="plan")


class Busy(Exception):
    """As those of HTTP libraries: it takes more than its text, and holds an object."""

    def __init__(self, text: str, *, response: object) -> None:
        super().__init__(text)
        self.response = response


def busy() -> None:
    raise Busy("503", response=object())


def unstored() -> None:
    class Local(Exception):
        """Nobody finds it by its name."""

    raise Local("no")


def grouped() -> None:
    raise ExceptionGroup("two", [ValueError("no"), FileNotFoundError(2, "No such file", "plan.txt")])


@pytest.mark.parametrize("fail", [no_file, no_json, caused, noted, nameless, busy, unstored])
def test_an_error_of_a_step_is_the_same_in_the_first_run_as_in_a_later_one(fail: Any) -> None:
    async def work(task: TaskContext) -> object:
        try:
            await task.step("read", fail)
        except Exception as error:  # noqa: BLE001 - it compares all of it
            attributes = [getattr(error, name, None) for name in ("filename", "doc", "pos", "name", "remedy")]
            links = (error.__cause__, error.__context__, getattr(error, "__notes__", None))
            return type(error), str(error), error.args, attributes, links
        return "no error"

    first, second = texts_of_two_runs(work)
    assert first == second
    assert first != "no error"


@pytest.mark.parametrize(("fail", "caught"), [(busy, "Busy"), (unstored, "StepFailed"), (grouped, "ExceptionGroup")])
def test_the_type_that_an_except_gets_is_the_same_in_each_run_and_the_work_is_done_once(fail: Any, caught: str) -> None:
    count = 0

    def count_and_fail() -> None:
        nonlocal count
        count += 1
        fail()

    async def work(task: TaskContext) -> object:
        try:
            await task.step("read", count_and_fail)
        except Exception as error:  # noqa: BLE001 - it compares the type
            return type(error).__name__
        return "no error"

    assert texts_of_two_runs(work) == (caught, caught)
    assert count == 1


def test_an_except_star_gets_the_errors_of_a_group_in_each_run() -> None:
    async def work(task: TaskContext) -> object:
        names = []
        try:
            await task.step("read", grouped)
        except* FileNotFoundError as group:
            names += [error.filename for error in group.exceptions]  # type: ignore[union-attr]
        except* ValueError as group:
            names += [str(error) for error in group.exceptions]
        return names

    assert texts_of_two_runs(work) == (["plan.txt", "no"], ["plan.txt", "no"])


def test_a_file_that_is_missing_keeps_its_name() -> None:
    async def work(task: TaskContext) -> object:
        with pytest.raises(FileNotFoundError) as failed:
            await task.step("read", no_file)
        return failed.value.filename

    assert texts_of_two_runs(work) == ("plan.txt", "plan.txt")


def test_an_error_of_a_step_in_a_step_has_the_traceback_of_its_work(capsys: pytest.CaptureFixture[str]) -> None:
    async def work(task: TaskContext) -> None:
        async def outer() -> None:
            await task.step("inner", no_file)

        await task.step("outer", outer)

    assert AgentTestHarness(agent_of(work)).send("go").state == TaskState.FAILED
    assert "in no_file" in capsys.readouterr().err


# ---- Orders


@pytest.mark.parametrize("before", [0, 1, 3, 6, 40, 100])
def test_a_set_of_tasks_has_the_same_order_in_each_run(before: int) -> None:
    """The code goes through the set that ``asyncio.wait`` returns, and acts in that order."""

    async def add_up(task: TaskContext, number: int) -> int:
        return await task.step(f"add {number}", lambda: number)

    async def work(task: TaskContext) -> list[int]:
        if before:
            await asyncio.gather(*(asyncio.sleep(0) for _ in range(before)))
        async with task.timeout("soon", 60):
            sums = [asyncio.ensure_future(add_up(task, number)) for number in range(12)]
            done, _ = await asyncio.wait(sums)
        return [await task.step(f"double {one.result()}", int, one.result()) for one in done]

    first, second = texts_of_two_runs(work)
    assert first == second


async def wait_for_all(count: int) -> list[int]:
    """The order in which a set has ``count`` tasks that return their numbers."""
    OUTSIDE_STEPS.set(True)
    done, _ = await asyncio.wait([asyncio.ensure_future(asyncio.sleep(0, number)) for number in range(count)])
    return [task.result() for task in done]


def play_with_garbage(work: Coroutine[Any, Any, list[int]], kept: list[object]) -> list[int]:
    """Plays the work where other objects have the places that an earlier play had in memory."""
    kept.append([object() for _ in range(997)])
    return play(work, RunLoop())


def test_the_order_of_a_set_of_tasks_does_not_depend_on_their_places_in_memory() -> None:
    kept = list[object]()
    assert {tuple(play_with_garbage(wait_for_all(12), kept)) for _ in range(20)} == {tuple(range(12))}


@pytest.mark.parametrize("is_outside", [True, False])
def test_tasks_that_the_engine_or_a_step_starts_are_not_counted(*, is_outside: bool) -> None:
    async def work() -> int:
        OUTSIDE_STEPS.set(is_outside)
        await (create_engine_task if is_outside else asyncio.create_task)(asyncio.sleep(0))
        OUTSIDE_STEPS.set(True)
        return hash(asyncio.ensure_future(asyncio.sleep(0)))

    assert play(work(), RunLoop()) == 1


def test_the_step_of_a_framework_that_has_no_result_yet_runs_again() -> None:
    async def work(task: TaskContext) -> object:
        def ask_first() -> None:
            raise NoResult(object())

        try:
            await task.step("tool", ask_first)
        except NoResult as request:
            return len(request.args)
        return "no error"

    assert texts_of_two_runs(work) == (1, 1)
