"""What a run did is known by its place: code that a later run skips changes nothing of what comes after it."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import Step, TaskContext, TaskState
from a2a_serverless.domain.agent_errors import TaskEnded, TaskFailed
from a2a_serverless.domain.events import ArtifactEvent
from a2a_serverless.testing import CLIENT, AgentTestHarness, ReplayDiffers
from tests.echo import agent_of

if TYPE_CHECKING:
    from a2a_serverless.testing import Reply

Work = "Callable[[TaskContext], Awaitable[object]]"
HOUR_MS = 3_600_000


def answered(work: Any, answers: int = 1) -> tuple[AgentTestHarness, Reply]:
    """Sends a message, and answers each question with its own text."""
    harness = AgentTestHarness(agent_of(work))
    reply = harness.send("go")
    for _ in range(answers):
        assert reply.state == TaskState.INPUT_REQUIRED, reply
        reply = harness.send(f"re {reply.said}", task_id=reply.task.id)
    return harness, reply


# ---- Identities by scope


def test_rule_07_equal_questions_of_branches_have_an_answer_each() -> None:
    async def branch(task: TaskContext, name: str) -> str:
        with task.scope(name):
            return (await task.ask("Approve?")).text()

    async def work(task: TaskContext) -> str:
        return str([await branch(task, "one"), await branch(task, "two"), await branch(task, "one")])

    harness = AgentTestHarness(agent_of(work))
    reply = harness.send("go")
    for answer in ("yes", "no", "later"):
        assert reply.state == TaskState.INPUT_REQUIRED
        reply = harness.send(answer, task_id=reply.task.id)
    assert reply.said == "['yes', 'no', 'later']"


def test_rule_07_names_that_repeat_within_a_stored_step_are_not_those_outside() -> None:
    async def think(what: str) -> str:
        return what

    async def outer(task: TaskContext) -> str:
        return str(await task.step(Step("think", repeat=True), think, "inside"))

    async def work(task: TaskContext) -> str:
        first = await task.step("outer", partial(outer, task))
        second = await task.step(Step("think", repeat=True), think, "outside")
        await task.ask("Go on?")
        third = await task.step(Step("think", repeat=True), think, "outside again")
        return f"{first} {second} {third}"

    assert answered(work)[1].said == "inside outside outside again"


def test_rule_07_a_step_that_raised_once_takes_no_number() -> None:
    tries: list[int] = []

    async def flaky(what: str) -> str:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("busy")
        return what

    async def work(task: TaskContext) -> str:
        try:
            first = await task.step(Step("think", repeat=True), flaky, "one")
        except OSError:
            first = await task.step(Step("think", repeat=True), flaky, "one")
        second = await task.step(Step("think", repeat=True), flaky, "two")
        await task.ask("Go on?")
        return f"{first} {second}"

    assert (answered(work)[1].said, len(tries)) == ("one two", 3)


def test_rule_07_the_plan_b_of_the_first_run_is_that_of_each_run() -> None:
    booked: list[str] = []
    runs: list[int] = []

    async def flight() -> None:
        if len(runs) == 1:
            raise OSError("sold out")
        booked.append("flight")

    async def train() -> None:
        booked.append("train")

    async def work(task: TaskContext) -> None:
        runs.append(1)
        try:
            await task.step("flight", flight)
        except OSError:
            await task.step("train", train)
        await task.ask("Is that right?")

    assert answered(work)[1].state == TaskState.COMPLETED
    assert booked == ["train"]


def test_rule_07_progress_and_usage_after_a_question_count_whatever_came_before() -> None:
    runs: list[int] = []

    async def think(task: TaskContext) -> None:
        await task.report_progress("working")
        await task.record_usage("model", tokens=1)

    async def work(task: TaskContext) -> None:
        runs.append(1)
        await task.step("think", partial(think, task))
        await task.ask("Go on?")
        await task.report_progress("working")
        await task.record_usage("model", tokens=1)
        await task.record_usage("model", tokens=1)

    harness, reply = answered(work)
    told = [event.message.text() for event in harness.table.read_log(_key(reply))[1] if _is_progress(event)]
    assert told == ["working", "working"]
    assert (reply.task.metadata or {})["a2a-serverless/usage"] == {"model": {"tokens": 3}}


def test_rule_07_a_step_that_its_agent_cancelled_can_be_tried_again() -> None:
    async def slow(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "done"

    async def work(task: TaskContext) -> str:
        try:
            async with asyncio.timeout(5):
                await task.step("slow", slow, 60)
        except TimeoutError:
            return str(await task.step("slow", slow, 1))
        return "never"

    # No later run sees that asyncio's timeout was over: that is what task.timeout is for.
    assert AgentTestHarness(agent_of(work), replay=False).send("go").said == "done"


@pytest.mark.parametrize("first", ["", "draft"])
@pytest.mark.parametrize("second", ["", "text"])
def test_rule_07_chunks_of_the_second_try_of_a_step_stay_in_later_runs(first: str, second: str) -> None:
    async def write(task: TaskContext, text: str, *, fails: bool) -> None:
        if text:
            await task.emit("art", text)
        if fails:
            raise OSError("no")

    async def work(task: TaskContext) -> None:
        with suppress(OSError):
            await task.step("write", partial(write, task, first, fails=True))
        await task.step("write", partial(write, task, second, fails=False))
        for number in range(2):
            await task.ask(f"{number}?")

    harness = AgentTestHarness(agent_of(work))
    reply = harness.send("go")
    assert [artifact.text() for artifact in reply.task.artifacts] == [second] * bool(first or second)
    chunks = _chunks(harness, reply)
    for _ in range(2):
        reply = harness.send("yes", task_id=reply.task.id)
    assert _chunks(harness, reply) == chunks


def test_rule_07_an_asyncio_task_that_outlives_its_scope_is_refused_there() -> None:
    left: list[asyncio.Task[Any]] = []

    async def late(task: TaskContext) -> None:
        await asyncio.sleep(1)
        await task.step("late", asyncio.sleep, 0)

    async def work(task: TaskContext) -> None:
        with task.scope("branch"):
            left.append(asyncio.create_task(late(task)))
        await left[0]

    reply = AgentTestHarness(agent_of(work)).send("go")
    assert (reply.state, reply.said[:17]) == (TaskState.FAILED, "'branch' is over,")


# ---- What is stored is what was given


def test_a_value_that_changes_after_it_was_emitted_or_returned_changes_nothing() -> None:
    async def make() -> dict[str, Any]:
        return {"n": 1}

    async def work(task: TaskContext) -> str:
        value: dict[str, Any] = {"n": 1}
        await task.emit("data", value)
        value["n"] = float("nan")
        made = await task.step("make", make)
        made["n"] = 2
        await task.ask("Go on?")
        return str(await task.step("again", make))

    _, reply = answered(work)
    assert (reply.data("data"), reply.said) == ({"n": 1}, "{'n': 1}")


# ---- The order of endings


def test_rule_07_the_winner_of_a_race_of_steps_is_the_same_in_each_run() -> None:
    paid: list[str] = []

    async def offer(name: str, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return name

    async def pay(name: str) -> None:
        paid.append(name)

    async def work(task: TaskContext) -> str:
        offers = [task.step(f"offer {name}", offer, name, seconds) for name, seconds in (("slow", 20), ("quick", 5))]
        first = await next(iter(asyncio.as_completed(offers)))
        await asyncio.sleep(30)
        await task.step(f"pay {first}", pay, first)
        await task.ask("Go on?")
        return str(first)

    assert (answered(work)[1].said, paid) == ("quick", ["quick"])


def test_a_question_waits_for_the_steps_beside_it() -> None:
    paid: list[int] = []

    async def pay(amount: int) -> int:
        await asyncio.sleep(5)
        paid.append(amount)
        return amount

    async def work(task: TaskContext) -> str:
        async def branch(amount: int) -> str:
            await task.step(f"pay {amount}", pay, amount)
            return (await task.ask(f"{amount}?")).text()

        return str(await asyncio.gather(branch(1), branch(2)))

    assert (answered(work, 2)[1].said, sorted(paid)) == ("['re 1?', 're 2?']", [1, 2])


@pytest.mark.parametrize("seconds", [5, 7200])
def test_a_sleep_uses_no_compute_and_runs_the_agent_only_when_it_is_over(seconds: int) -> None:
    async def work(task: TaskContext) -> str:
        await task.step("first", asyncio.sleep, 1)
        await task.sleep("nap", seconds)
        return "rested"

    harness = AgentTestHarness(agent_of(work))
    began = harness.now
    assert harness.send("go").said == "rested"
    assert len(harness.runs) == 2
    assert sum(end - begin for _, begin, end in harness.runs) < 4000
    assert 0 <= harness.runs[-1][1] - began - 1000 * seconds < 4000


def test_a_durable_timeout_cancels_the_step_for_good() -> None:
    began: list[int] = []

    async def slow() -> None:
        began.append(1)
        await asyncio.sleep(600)

    async def work(task: TaskContext) -> str:
        try:
            async with task.timeout("all", 60):
                await task.step("slow", slow)
        except TimeoutError:
            await task.ask("Too slow?")
        return "late"

    assert (answered(work)[1].said, began) == ("late", [1])


def test_a_plain_timer_that_outlives_the_run_says_what_to_use() -> None:
    async def work(task: TaskContext) -> str:
        async with asyncio.timeout(86_400):
            return (await task.ask("Which?")).text()

    reply = AgentTestHarness(agent_of(work)).send("go")
    assert reply.state == TaskState.FAILED
    assert "Use task.sleep or task.timeout" in reply.said


# ---- The end


def test_rule_02_an_asyncio_task_that_is_left_behind_writes_nothing_behind_the_end() -> None:
    errors: list[str] = []
    left: list[asyncio.Task[Any]] = []

    async def late(task: TaskContext) -> None:
        while not errors:
            try:
                await task.emit("log", "more", append=True)
                await asyncio.sleep(0.1)
            except asyncio.CancelledError:
                continue  # as some libraries do
            except TaskEnded as error:
                errors.append(type(error).__name__)

    async def work(task: TaskContext) -> str:
        left.append(asyncio.create_task(late(task)))
        await asyncio.sleep(1)
        return "done"

    harness = AgentTestHarness(agent_of(work))
    reply = harness.send("go")
    assert (reply.state, errors) == (TaskState.COMPLETED, ["TaskEnded"])
    assert harness.table.read_log(_key(reply))[1][-1].state is TaskState.COMPLETED


@pytest.mark.parametrize("fails", [False, True])
def test_rule_02_an_asyncio_task_that_is_started_at_the_end_writes_nothing(fails: bool) -> None:  # noqa: FBT001
    left: list[asyncio.Task[Any]] = []

    async def work(task: TaskContext) -> str:
        left.append(asyncio.create_task(task.report_progress("late")))
        if fails:
            raise TaskFailed("no")
        return "done"

    reply = AgentTestHarness(agent_of(work)).send("go")
    assert [message.text() for message in reply.task.history] == ["go"]
    assert isinstance(left[0].exception(), TaskEnded)


class _Own(BaseException):
    pass


@pytest.mark.parametrize("error", [SystemExit("bye"), KeyboardInterrupt("stop"), _Own("own")])
@pytest.mark.parametrize("inside", [True, False])
def test_an_agent_that_leaves_the_interpreter_fails_at_once(error: BaseException, inside: bool) -> None:  # noqa: FBT001
    runs: list[int] = []

    async def leave() -> None:
        if isinstance(error, SystemExit):
            sys.exit("bye")
        raise error

    async def work(task: TaskContext) -> None:
        runs.append(1)
        await (task.step("leave", leave) if inside else asyncio.create_task(leave()))

    reply = AgentTestHarness(agent_of(work)).send("go")
    assert (reply.state, len(runs)) == (TaskState.FAILED, 1)


def test_code_outside_of_steps_that_never_ends_fails_after_three_runs_and_says_what_to_do() -> None:
    async def work(task: TaskContext) -> None:
        del task
        await asyncio.sleep(86_400)

    harness = AgentTestHarness(agent_of(work))
    reply = harness.send("go")
    assert (reply.state, len(harness.runs)) == (TaskState.FAILED, 3)
    assert "Code outside of steps runs again in each run: put long work into steps." in reply.said


def _key(reply: Reply) -> Any:

    return CLIENT.key(reply.task.id)


def _chunks(harness: AgentTestHarness, reply: Reply) -> list[Any]:
    return [event for event in harness.table.read_log(_key(reply))[1] if isinstance(event, ArtifactEvent)]


def _is_progress(event: Any) -> bool:
    return getattr(event, "state", None) is TaskState.WORKING and event.fence > 0 and event.message is not None


# ---- acts in steps that have ended


async def _sleep(task: TaskContext) -> None:
    await task.sleep("x", 60)


async def _now(task: TaskContext) -> None:
    await task.now("x")


async def _receive(task: TaskContext) -> None:
    callback = await task.callback("x")
    with suppress(TimeoutError):
        await callback.received(5)


async def _ask(task: TaskContext) -> None:
    with suppress(TimeoutError):
        await task.ask("Now?", timeout_s=60, remind_s=60)


async def _sleep_in_a_scope(task: TaskContext) -> None:
    with task.scope("inside"):
        await task.sleep("x", 60)


@pytest.mark.parametrize("name", ["outer", "o" * 250], ids=["short", "long"])
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("inner", [_sleep, _now, _receive, _ask, _sleep_in_a_scope])
def test_a_later_run_need_not_come_to_an_act_in_a_step_that_has_ended(inner: Any, name: str, *, fails: bool) -> None:
    async def outer(task: TaskContext) -> None:
        await inner(task)
        if fails:
            raise ValueError("no")

    async def work(task: TaskContext) -> str:
        with suppress(ValueError):
            await task.step(name, partial(outer, task))
        for after in ("one", "two", "three"):
            await task.step(after, str, after)
        return "done"

    assert AgentTestHarness(agent_of(work)).send("go").said == "done"


def test_rule_07_a_step_that_a_later_run_does_not_come_to_is_a_difference_also_with_a_long_name() -> None:
    runs = count()

    async def work(task: TaskContext) -> None:
        run = next(runs)
        with task.scope("s" * 200):
            for name in "abcde":
                if run < 3 or name != "b":
                    await task.step(name * 100, str, name)

    with pytest.raises(ReplayDiffers):
        AgentTestHarness(agent_of(work)).send("go")


def test_rule_07_a_name_that_ends_with_a_number_is_no_second_use_of_another_name() -> None:
    async def work(task: TaskContext) -> str:
        begin = await task.now("begin")
        for seconds, name in enumerate(("x#2", "x", "x", "x#2"), 1):
            await task.sleep(name, 60 * seconds)
        return str(await task.now("end") - begin)

    assert AgentTestHarness(agent_of(work)).send("go").said == "0:10:00"
