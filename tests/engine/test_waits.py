"""Waits: sleeps, time limits, questions with deadlines and reminders, alone and together."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest

from a2a_serverless import Task, TaskState
from a2a_serverless.domain.events import StatusEvent
from a2a_serverless.testing import CLIENT, AgentTestHarness
from tests.echo import agent_of
from tests.faults.plans import At, die
from tests.world import World

if TYPE_CHECKING:
    from a2a_serverless import TaskContext
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.testing import Reply

DAY_S = 86_400


def questions(harness: AgentTestHarness, reply: Reply) -> list[tuple[int, str, str]]:
    """The questions of a task, in the order of its log: second, text and message id."""
    read = harness.table.read_log(CLIENT.key(reply.task.id))
    assert read
    asked = [event for event in read[1] if isinstance(event, StatusEvent) and event.state == TaskState.INPUT_REQUIRED]
    return [
        ((event.at - read[0].created_at) // 1000, event.message.text(), event.message.message_id)
        for event in asked
        if event.message
    ]


def begun(harness: AgentTestHarness) -> Task:
    task = harness.begin("go")
    assert isinstance(task, Task)
    return task


# ---- Clocks


@pytest.mark.parametrize("seconds", [1, 899, 901, 5 * DAY_S])
def test_a_sleep_until_a_moment_ends_then_and_not_more_than_two_seconds_later(seconds: int) -> None:
    at = datetime.fromtimestamp((AgentTestHarness(agent_of(_nothing)).now) / 1000 + seconds, UTC)

    async def work(task: TaskContext) -> str:
        await task.sleep_until("moment", at)
        return "awake"

    harness = AgentTestHarness(agent_of(work))
    assert harness.send("go").said == "awake"
    assert 0 <= harness.runs[-1][1] - at.timestamp() * 1000 <= 2000
    assert len(harness.runs) == 2


def test_the_first_run_that_comes_to_a_sleep_decides_when_it_ends() -> None:
    moments = iter([60, 600])

    async def work(task: TaskContext) -> str:
        await task.sleep_until("moment", began + timedelta(seconds=next(moments, 6000)))
        return "awake"

    harness = AgentTestHarness(agent_of(work))
    began = datetime.fromtimestamp(harness.now / 1000, UTC)
    assert harness.send("go").said == "awake"
    assert harness.runs[-1][1] - began.timestamp() * 1000 <= 62_000


def test_a_moment_that_is_over_is_not_waited_for() -> None:
    async def work(task: TaskContext) -> str:
        await task.sleep_until("moment", datetime(2020, 1, 1, tzinfo=UTC))
        return "awake"

    harness = AgentTestHarness(agent_of(work))
    assert harness.send("go").said == "awake"
    assert len(harness.runs) == 1


def test_the_time_is_that_of_the_first_run_in_each_run() -> None:
    async def work(task: TaskContext) -> str:
        first = await task.now("begin")
        await task.sleep("nap", 100)
        return f"{first.isoformat()} {(await task.now('begin') - first).total_seconds() >= 100}"

    harness = AgentTestHarness(agent_of(work))
    began = harness.now
    assert harness.send("go").said == f"{datetime.fromtimestamp(began / 1000, UTC).isoformat()} True"


@pytest.mark.parametrize(
    ("wait", "why"),
    [
        (lambda task: task.sleep_until("moment", datetime(2030, 1, 1)), "time zone"),  # noqa: DTZ001 - that is refused
        (lambda task: task.sleep_until("moment", datetime(2090, 1, 1, tzinfo=UTC)), "maximum life"),
        (lambda task: task.sleep("nap", 8 * DAY_S), "maximum life"),
        (lambda task: task.sleep("nap", float("nan")), "0 seconds or more"),
        (lambda task: task.ask("Well?", timeout_s=-1), "0 seconds or more"),
        (lambda task: task.ask("Well?", timeout_s=8 * DAY_S), "maximum life"),
        (lambda task: task.ask("Well?", remind_s=0), "60 seconds"),
        (lambda task: task.ask("Well?", remind_s=8 * DAY_S), "maximum life"),
        (lambda task: task.ask("Well?", remind_s=float("inf")), "0 seconds or more"),
    ],
)
def test_a_time_that_cannot_be_waited_for_is_refused_at_once(wait: Any, why: str) -> None:
    async def work(task: TaskContext) -> str:
        with pytest.raises(ValueError, match=why):
            await wait(task)
        return "refused"

    assert AgentTestHarness(agent_of(work)).send("go").said == "refused"


def test_each_time_limit_of_one_name_has_its_own_time() -> None:
    async def work(task: TaskContext) -> str:
        for number in range(3):
            async with task.timeout("limit", 60):
                await task.step(f"step {number}", asyncio.sleep, 40)
            await task.sleep("pause", 1)
        return "in time"

    assert AgentTestHarness(agent_of(work)).send("go").said == "in time"


def test_a_sleep_that_lost_a_race_does_not_shorten_the_next_one() -> None:
    async def work(task: TaskContext) -> str:
        nap = asyncio.create_task(task.sleep("nap", 100))
        await task.step("work", asyncio.sleep, 50)
        nap.cancel()
        await task.sleep("nap", 100)
        return "rested"

    harness = AgentTestHarness(agent_of(work))
    began = harness.now
    assert harness.send("go").said == "rested"
    assert 150_000 <= harness.runs[-1][1] - began <= 153_000


def test_a_message_that_comes_early_by_the_worker_s_clock_is_enqueued_again() -> None:
    async def work(task: TaskContext) -> str:
        await task.sleep("nap", 100)
        return "rested"

    harness = AgentTestHarness(agent_of(work))
    began = begun(harness)
    harness.settle(50_000)
    [(at, message)] = [one for one in harness.queue.waiting if one[0] - harness.now > 40_000]
    harness.queue.clear()
    harness.queue.enqueue(message, (at - harness.now) // 1000 - 1)
    harness.settle()
    assert harness.reply(began.id).said == "rested"
    assert harness.runs[-1][1] <= at + 500


# ---- Questions


def test_a_question_ends_with_its_time_and_a_late_answer_is_not_consumed() -> None:
    async def work(task: TaskContext) -> str:
        try:
            return (await task.ask("Approve?", timeout_s=2 * DAY_S)).text()
        except TimeoutError:
            await task.step("note", asyncio.sleep, 1)
            return (await task.ask("And now?")).text()

    harness = AgentTestHarness(agent_of(work))
    asked = harness.send("go")
    assert [text for _, text, _ in questions(harness, asked)] == ["Approve?", "And now?"]
    assert questions(harness, asked)[1][0] in range(2 * DAY_S, 2 * DAY_S + 4)
    assert harness.send("late", task_id=asked.task.id).said == "late"


def test_a_question_whose_time_is_over_is_not_shown_as_open() -> None:
    async def work(task: TaskContext) -> str:
        try:
            return (await task.ask("Approve?", timeout_s=60)).text()
        except TimeoutError:
            await task.sleep("afterwards", 3600)
            return "not approved"

    harness = AgentTestHarness(agent_of(work))
    task = begun(harness)
    harness.settle(1_000_000)
    reply = harness.reply(task.id)
    assert reply.state == TaskState.WORKING
    harness.begin("late", task_id=task.id)
    harness.settle()
    reply = harness.reply(task.id)
    assert (reply.state, reply.said) == (TaskState.COMPLETED, "not approved")
    assert [message.text() for message in reply.task.history] == ["go", "Approve?", "late"]


def test_a_question_within_a_time_limit_makes_way_for_the_next_one() -> None:
    async def work(task: TaskContext) -> str:
        try:
            async with task.timeout("limit", 60):
                await task.ask("First?")
        except TimeoutError:
            return (await task.ask("Second?")).text()
        return "never"

    harness = AgentTestHarness(agent_of(work))
    asked = harness.send("go")
    assert (asked.state, asked.said) == (TaskState.INPUT_REQUIRED, "Second?")
    assert harness.send("yes", task_id=asked.task.id).said == "yes"


@pytest.mark.parametrize("answers_after_s", [DAY_S // 2, DAY_S + 60, 2 * DAY_S - 60])
def test_an_approval_of_two_days_reminds_after_one(answers_after_s: int) -> None:
    async def work(task: TaskContext) -> str:
        answer = await task.ask("Approve?", timeout_s=2 * DAY_S, remind_s=DAY_S)
        await task.sleep("afterwards", 3 * DAY_S)
        return answer.text()

    harness = AgentTestHarness(agent_of(work))
    task = begun(harness)
    harness.settle(1000 * answers_after_s)
    asked = questions(harness, harness.reply(task.id))
    assert [second // 10 for second, _, _ in asked] == [0, DAY_S // 10][: 1 + (answers_after_s > DAY_S)]
    assert len({message_id for _, _, message_id in asked}) == len(asked)
    harness.begin("yes", task_id=task.id)
    harness.settle()
    assert harness.reply(task.id).said == "yes"
    assert len(questions(harness, harness.reply(task.id))) == len(asked)


def test_an_approval_that_nobody_gives_reminds_until_its_time_is_over() -> None:
    async def work(task: TaskContext) -> str:
        try:
            await task.ask("Approve?", timeout_s=3600, remind_s=1000)
        except TimeoutError:
            return "not approved"
        return "approved"

    harness = AgentTestHarness(agent_of(work))
    reply = harness.send("go")
    assert reply.said == "not approved"
    assert [second // 10 for second, _, _ in questions(harness, reply)] == [0, 100, 200, 300]


def test_of_two_questions_the_second_is_put_when_the_time_of_the_first_is_over() -> None:
    async def work(task: TaskContext) -> str:
        answers = await asyncio.gather(
            task.ask("First?", timeout_s=60), task.ask("Second?", timeout_s=7200), return_exceptions=True
        )
        return " ".join(answer.text() if isinstance(answer, type(task.message)) else "late" for answer in answers)

    harness = AgentTestHarness(agent_of(work))
    asked = harness.send("go")
    assert asked.said == "late late"
    assert [(second // 10, text) for second, text, _ in questions(harness, asked)] == [(0, "First?"), (6, "Second?")]


def test_a_question_and_a_call_and_a_sleep_in_a_group_end_in_their_own_time() -> None:
    async def child(task: TaskContext) -> str:
        await task.sleep("work", 7200)
        return "done"

    async def work(task: TaskContext) -> str:
        ends = list[str]()

        async def note(name: str, wait: Any) -> None:
            await wait
            ends.append(name)

        async with asyncio.TaskGroup() as group:
            group.create_task(note("call", task.call("child", "child", "go")))
            group.create_task(note("sleep", task.sleep("nap", 3600)))
            group.create_task(note("ask", task.ask("Approve?", remind_s=1800)))
        return " ".join(ends)

    harness = AgentTestHarness(agent_of(work), agent_of(child, "child"))
    task = begun(harness)
    harness.settle(5_000_000)
    harness.begin("yes", task_id=task.id)
    harness.settle()
    assert harness.reply(task.id).said == "sleep ask call"


def test_an_inline_agent_that_waits_goes_on_in_the_worker() -> None:
    async def work(task: TaskContext) -> str:
        await task.sleep("nap", 100)
        return "rested"

    harness = AgentTestHarness(replace(agent_of(work), runs="inline"))
    assert harness.send("go").said == "rested"


async def _nothing(task: TaskContext) -> None:
    del task


def test_rule_06_a_run_that_dies_beside_an_open_question_leaves_it_open() -> None:
    async def work(task: TaskContext) -> None:
        question = asyncio.create_task(task.ask("Which?"))
        await task.sleep("a minute", 60)
        await task.step("work", asyncio.sleep, 20)
        await question

    world = World([agent_of(work)], faults=(death := At(late=False, what=die, only="table.read_head")))
    task = world.send("go", push=False)
    world.plan(70_000, lambda: death.after_now(1))
    world.settle()
    states = [event.state for event in world.events(task.id) if isinstance(event, StatusEvent)]
    assert (world.kills, states) == (1, [TaskState.SUBMITTED, TaskState.WORKING, TaskState.INPUT_REQUIRED])


def test_a_question_that_a_chunk_has_closed_is_asked_again_before_the_task_waits() -> None:
    async def work(task: TaskContext) -> str:
        async def emit_later() -> None:
            await task.sleep("before", 600)
            await task.emit("note.txt", "late")
            await task.sleep("after", 600)

        answer, _ = await asyncio.gather(task.ask("Which colour?"), emit_later())
        return answer.text()

    world = World([agent_of(work)])
    task = world.send("go", push=False)
    world.wait(700_000)
    status = world.get(task.id).status
    assert (status.state, status.message and status.message.text()) == (TaskState.INPUT_REQUIRED, "Which colour?")
    world.send("red", task_id=task.id, push=False)
    world.settle()
    assert world.get(task.id).status.state is TaskState.COMPLETED


def test_rule_05_an_answer_of_which_only_the_head_shows_yet_is_read_later() -> None:
    async def work(task: TaskContext) -> str:
        async def think_later() -> None:
            await task.sleep("before", 600)
            await task.step("think", asyncio.sleep, 20)

        answer, _ = await asyncio.gather(task.ask("Which colour?"), think_later())
        return answer.text()

    world = World([agent_of(work)])
    torn = list[int]()

    class Torn:
        """A log whose first look at the answer comes before the whole transaction shows."""

        def __getattr__(self, name: str) -> object:
            return getattr(log, name)

        def read(self, key: TaskKey, after: int, limit: int | None = None) -> object:
            events = log.read(key, after) if limit is None else log.read(key, after, limit)
            if not torn and any(getattr(event, "incoming", None) for event in events):
                torn.append(after)
                return []
            return events

    log: Any = world.engine.log
    world.engine = replace(world.engine, log=cast("Any", Torn()))
    task = world.send("go", push=False)
    world.wait(610_000)
    assert world.get(task.id).status.state is TaskState.INPUT_REQUIRED
    world.send("red", task_id=task.id, push=False)
    world.settle()
    status = world.get(task.id).status
    assert (len(torn), status.state, status.message and status.message.text()) == (1, TaskState.COMPLETED, "red")
