"""Acts of a task that meet: budgets, tries, maps, calls, pauses, and the retry of the whole task."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import (
    Budget,
    Message,
    Part,
    Retry,
    Schedule,
    Step,
    StepFailed,
    Task,
    TaskFailed,
    TaskState,
    current_task,
)
from a2a_serverless.domain.budgets import METADATA_KEY
from a2a_serverless.domain.call_records import OpenedCall, SentCall
from a2a_serverless.domain.record_names import call_name
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.engine.budgets import TaskBudget
from a2a_serverless.protocol.v1 import Role
from a2a_serverless.store.stores import agent_pause
from a2a_serverless.testing import CLIENT, AgentTestHarness
from tests.echo import agent_of

if TYPE_CHECKING:
    from a2a_serverless import Agent, TaskContext

HOUR_MS = 3_600_000


class Unstorable(Exception):
    """An error of which no copy can be made."""

    def __init__(self) -> None:
        super().__init__("no equal error", object())


class Model:
    """Steps that record 100 tokens and 0.1 USD each. Those in ``broken`` raise after that."""

    def __init__(self, *broken: str) -> None:
        self.broken = {*broken}
        self.ran: list[str] = []

    async def think(self, name: str, takes: float = 1) -> str:
        await current_task().record_usage("model", cost_usd=0.1, input_tokens=100)
        await asyncio.sleep(takes)
        self.ran.append(name)
        if name in self.broken:
            raise OSError(name)
        return name

    def mended(self) -> list[str]:
        """Repairs the steps; returns the list of those that run from now on."""
        self.broken.clear()
        self.ran.clear()
        return self.ran


def thrifty(work: object, budget: Budget, name: str = "echo") -> Agent:
    return replace(agent_of(work, name), budget=budget)


def said_by(called: Task | Message) -> str:
    assert isinstance(called, Task)
    assert called.status.message
    return called.status.message.text()


def state_of(called: Task | Message) -> str:
    assert isinstance(called, Task)
    return called.status.state.name


def spent(harness: AgentTestHarness, task: Task) -> Any:
    metadata: Any = harness.reply(task.id).task.metadata or {}
    return metadata[METADATA_KEY]["spent"]


def test_a_spent_budget_ends_the_task_before_the_pause_of_a_step_and_not_after_it() -> None:
    model = Model("a")

    async def work(task: TaskContext) -> str:
        return await task.step(Step("a", retry=Retry(tries=5, first_s=3600, most_s=3600)), model.think, "a")

    harness = AgentTestHarness(thrifty(work, Budget(tokens=100)))
    began = harness.now
    reply = harness.send("go")
    assert reply.said == "The budget of the agent is spent: 100 of 100 tokens."
    assert model.ran == ["a"]
    assert harness.runs[-1][2] - began < 60_000, "nobody waits for an hour"


def test_each_try_counts_as_a_step_and_with_its_usage_also_in_later_runs() -> None:
    model = Model("a")

    async def work(task: TaskContext) -> str:
        with suppress(OSError):
            await task.step(Step("a", retry=Retry(tries=3, first_s=60)), model.think, "a")
        await task.sleep("nap", 60)
        return str(await task.budget_left())

    harness = AgentTestHarness(thrifty(work, Budget(usd=1, tokens=1000, steps=10)))
    assert harness.send("go").said == str(Budget(usd=0.7, tokens=700, steps=7))


@pytest.mark.parametrize("seconds", [1, 3600])
def test_a_spent_budget_inside_of_a_step_is_not_tried_again(seconds: int) -> None:
    outer: list[int] = []
    model = Model()

    async def work(task: TaskContext) -> str:
        async def nested() -> str:
            outer.append(1)
            try:
                await task.step("a", model.think, "a")
                return await task.step("b", model.think, "b")
            except Exception as error:
                raise OSError("as libraries do") from error

        return await task.step(Step("outer", retry=Retry(first_s=seconds, most_s=seconds)), nested)

    reply = AgentTestHarness(thrifty(work, Budget(tokens=100))).send("go")
    assert reply.said == "The budget of the agent is spent: 100 of 100 tokens."
    assert (outer, model.ran) == ([1], ["a"])


@pytest.mark.parametrize("tolerate", [0, 9])
def test_a_spent_budget_never_stands_in_the_list_of_a_map(tolerate: int) -> None:
    model, seen = Model(), list[object]()

    async def work(task: TaskContext) -> str:
        seen.append(await task.map("each", model.think, list("abcdef"), limit=2, tolerate=tolerate))
        return "all"

    reply = AgentTestHarness(thrifty(work, Budget(steps=3))).send("go")
    assert reply.said == "The budget of the agent is spent: 3 of 3 steps."
    assert {"a", "b"} <= {*model.ran}
    assert len(model.ran) <= 3
    assert seen == []


def test_the_share_of_a_call_that_is_canceled_while_its_message_is_sent_counts_once_it_is_sent() -> None:
    name, results = call_name("work"), dict[str, StepResult]()
    opened: Any = OpenedCall("a", "c", "m", "t", 0, "u", "a", budget={"usd": 0.5}).value
    sent: Any = SentCall("a", "child").value
    budget = TaskBudget(Budget(usd=2))
    left = [budget.left().usd]
    for record, value in ((name.opened, opened), (name.canceled, "no"), (name.sent, sent), (name.done, None)):
        results[record] = StepResult("", value)
        budget.count(record, results[record], results)
        left.append(budget.left().usd)
    assert left == [2, 1.5, 1.5, 1.5, 1.5]
    again = TaskBudget(Budget(usd=2))
    for record, result in sorted(results.items()):
        again.count(record, result, results)
    assert budget.spent() == again.spent()


# ---- The retry of a task


def test_a_task_whose_steps_were_spent_goes_on_when_it_is_retried() -> None:
    model = Model()

    async def work(task: TaskContext) -> str:
        return " ".join([await task.step(name, model.think, name) for name in "abcde"])

    harness = AgentTestHarness(thrifty(work, Budget(usd=9, steps=3)))
    failed = harness.send("go")
    assert failed.said == "The budget of the agent is spent: 3 of 3 steps."
    ran = model.mended()
    retried = harness.retry(failed.task.id)
    assert retried.said == "a b c d e"
    assert ran == ["d", "e"]
    assert spent(harness, retried.task) == {"usd": 0.2, "tokens": 200, "steps": 2}


def test_the_spending_of_copied_calls_is_not_counted_again() -> None:
    model = Model("b")

    async def child(task: TaskContext) -> str:
        return await task.step("child", Model().think, "child")

    async def work(task: TaskContext) -> str:
        await task.call("work", "child", "go")
        return await task.step("b", model.think, "b")

    harness = AgentTestHarness(thrifty(work, Budget(usd=1)), agent_of(child, "child"))
    failed = harness.send("go")
    assert spent(harness, failed.task)["usd"] == 0.2
    model.mended()
    assert spent(harness, harness.retry(failed.task.id).task)["usd"] == 0.1


def test_a_call_that_was_canceled_before_the_failure_is_canceled_in_the_retry() -> None:
    model, said = Model("b"), list[str]()

    async def child(task: TaskContext) -> str:
        if task.text() == "slow":
            await task.sleep("for long", 86_400)
        return f"{task.text()} is done"

    async def work(task: TaskContext) -> str:
        calls = {asyncio.ensure_future(task.call(name, "child", name)) for name in ("slow", "quick")}
        done, others = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        for other in others:
            other.cancel()
        said.extend(str(one) for one in await asyncio.gather(*others, return_exceptions=True))
        return said_by(done.pop().result()) + await task.step("b", model.think, "b")

    harness = AgentTestHarness(agent_of(work), agent_of(child, "child"))
    failed = harness.send("go")
    assert failed.state is TaskState.FAILED
    model.mended()
    assert harness.retry(failed.task.id).said == "quick is doneb"


def test_a_call_that_a_failure_canceled_is_made_again_by_the_retry() -> None:
    model = Model("b")

    async def child(task: TaskContext) -> str:
        await task.sleep("for long", 600)
        return "done"

    async def work(task: TaskContext) -> str:
        async with asyncio.TaskGroup() as group:
            called = group.create_task(task.call("work", "child", "go"))
            group.create_task(task.step("b", model.think, "b", 20))
        return said_by(called.result())

    harness = AgentTestHarness(agent_of(work), agent_of(child, "child"))
    failed = harness.send("go")
    assert failed.state is TaskState.FAILED
    model.mended()
    assert harness.retry(failed.task.id).said == "done"


def test_a_named_call_that_was_canceled_is_made_again() -> None:
    model = Model("b")

    async def child(task: TaskContext) -> str:
        await task.sleep("for long", 600)
        return "done"

    async def work(task: TaskContext) -> str:
        with suppress(TimeoutError):
            async with task.timeout("limit", 60):
                await task.call("work", "child", "go")
        return await task.step("b", model.think, "b")

    harness = AgentTestHarness(agent_of(work), agent_of(child, "child"))
    failed = harness.send("go")
    model.mended()
    assert harness.retry(failed.task.id).said == "b"
    assert harness.retry(failed.task.id, from_step="work").said == "b"


def test_a_step_between_two_tries_begins_anew_in_a_retry() -> None:
    """Its tries, their pauses and its total time count from the retry."""
    model = Model("a", "b")

    async def work(task: TaskContext) -> str:
        options = Step("a", retry=Retry(tries=2, first_s=300, most_s=300, total_s=400))
        async with asyncio.TaskGroup() as group:
            group.create_task(task.step(options, model.think, "a"))
            group.create_task(after(task))
        return "all"

    async def after(task: TaskContext) -> None:
        await task.sleep("nap", 60)
        await task.step("other", model.think, "other")
        await task.step("b", model.think, "b")

    harness = AgentTestHarness(agent_of(work))
    failed = harness.send("go")
    assert failed.state is TaskState.FAILED
    assert model.ran == ["a", "other", "b"]
    model.ran.clear()
    model.broken = {"a"}
    harness.wait(HOUR_MS)
    harness.at(harness.now + 100_000, model.broken.clear)
    assert harness.retry(failed.task.id).said == "all"
    assert model.ran == ["a", "b", "a"]


def test_a_retried_map_runs_the_failed_item_with_all_its_tries_and_no_other() -> None:
    model = Model("c")

    async def work(task: TaskContext) -> str:
        each = Step("each", retry=Retry(tries=3, first_s=60))
        return " ".join(await task.map(each, model.think, list("abcde"), limit=2))

    harness = AgentTestHarness(agent_of(work))
    failed = harness.send("go")
    assert failed.state is TaskState.FAILED
    assert model.ran.count("c") == 3
    before = model.mended()
    model.broken.add("c")
    harness.at(harness.now + 90_000, model.broken.clear)
    assert harness.retry(failed.task.id).said == "a b c d e"
    assert before == ["c", "c", "c"]


def test_the_tries_of_a_step_count_anew_if_another_run_ended_the_task() -> None:
    """The run that reads the last try's error back stores no note of it."""
    model = Model("a")

    async def work(task: TaskContext) -> str:
        try:
            return await task.step(Step("a", retry=Retry(tries=3, first_s=60)), model.think, "a")
        finally:
            await task.sleep("nap", 600)

    harness = AgentTestHarness(agent_of(work))
    failed = harness.send("go")
    assert failed.state is TaskState.FAILED
    before = model.mended()
    model.broken.add("a")
    harness.at(harness.now + 90_000, model.broken.clear)
    assert harness.retry(failed.task.id).said == "a"
    assert before == ["a", "a", "a"]


def test_copied_steps_do_not_count_for_the_owner_s_day() -> None:
    model = Model("b")

    async def work(task: TaskContext) -> str:
        await task.step("a", model.think, "a")
        return await task.step("b", model.think, "b")

    harness = AgentTestHarness(agent_of(work))
    harness.engine = replace(harness.engine, owner_usd=9)
    failed = harness.send("go")
    model.mended()
    assert harness.retry(failed.task.id).said == "b"
    assert harness.table.read_spent(CLIENT.key(""), harness.now) == 300_000


# ---- Pauses


def pause(harness: AgentTestHarness, name: str = "echo") -> None:
    harness.table.add_pause(agent_pause(name), harness.now)


def resume(harness: AgentTestHarness, name: str = "echo") -> None:
    harness.table.remove_pause(agent_pause(name))


def test_a_map_whose_agent_is_paused_waits_and_pays_no_item_twice() -> None:
    model = Model("c")

    async def work(task: TaskContext) -> str:
        each = Step("each", retry=Retry(tries=3, first_s=60))
        results = await task.map(each, lambda name: model.think(name, 15), list("abcdef"), limit=2, tolerate=1)
        return " ".join(map(str, results))

    harness = AgentTestHarness(agent_of(work))
    harness.at(harness.now + 20_000, lambda: pause(harness))
    harness.at(harness.now + 600_000, lambda: resume(harness))
    assert harness.send("go").said == "a b c d e f"
    assert sorted(model.ran) == sorted("abcccdef")


def test_a_retried_task_of_a_paused_agent_waits() -> None:
    model = Model("a")

    async def work(task: TaskContext) -> str:
        return await task.step("a", model.think, "a")

    harness = AgentTestHarness(agent_of(work))
    failed = harness.send("go")
    ran = model.mended()
    pause(harness)
    harness.at(harness.now + 600_000, lambda: resume(harness))
    runs = len(harness.runs)
    assert harness.retry(failed.task.id).said == "a"
    assert ran == ["a"]
    assert harness.runs[runs][1] > 0


# ---- More of budgets


def test_a_step_whose_error_cannot_be_stored_counts_like_any_other() -> None:
    ran = list[int]()

    async def fail() -> None:
        await current_task().record_usage("model", input_tokens=100)
        ran.append(1)
        raise Unstorable

    async def work(task: TaskContext) -> str:
        for _ in range(20):
            with suppress(StepFailed):
                await task.step("a", fail)
        return "never ends"

    for budget, text in ((Budget(steps=3), "3 of 3 steps"), (Budget(tokens=250), "300 of 250 tokens")):
        ran.clear()
        said = AgentTestHarness(thrifty(work, budget)).send("go").said
        assert said == f"The budget of the agent is spent: {text}."
        assert len(ran) == 3


def test_a_call_waits_for_another_one_that_a_later_run_has_not_gone_on_with_yet() -> None:
    async def napping(task: TaskContext) -> str:
        await task.sleep("nap", 3600)
        return await task.step("a", Model().think, "a")

    async def work(task: TaskContext) -> str:
        async def second() -> str:
            await task.step("first", asyncio.sleep, 5)
            return state_of(await task.call("second", "child", "go"))

        async def first() -> str:
            return state_of(await task.call("first", "child", "go"))

        return " ".join(await asyncio.gather(second(), first()))

    harness = AgentTestHarness(thrifty(work, Budget(usd=2)), agent_of(napping, "child"))
    assert harness.send("go").said == "COMPLETED COMPLETED"


def test_the_share_of_a_call_under_way_at_the_task_s_end_counts_for_its_caller() -> None:
    async def napping(task: TaskContext) -> str:
        await task.sleep("nap", 3600)
        return "rested"

    async def child(task: TaskContext) -> str:
        call = task.call("far", "far", "go", budget=Budget(usd=0.5))
        await asyncio.gather(call, task.step("b", Model("b").think, "b", 20))
        return "never"

    async def work(task: TaskContext) -> str:
        await task.call("child", "child", "go")
        return str(await task.budget_left())

    harness = AgentTestHarness(thrifty(work, Budget(usd=2)), agent_of(child, "child"), agent_of(napping, "far"))
    assert harness.send("go").said == str(Budget(usd=1.4))


def test_a_retried_task_has_the_bound_of_its_first_caller_and_has_spent_nothing() -> None:
    model = Model()

    async def work(task: TaskContext) -> str:
        return " ".join([await task.step(name, model.think, name) for name in "abcde"])

    harness = AgentTestHarness(agent_of(work))
    metadata: Any = {METADATA_KEY: {"tokens": 200}}
    message = Message(role=Role.USER, message_id=harness.ids.new(), parts=(Part(text="go"),), metadata=metadata)
    task = harness.take("echo", message)
    assert isinstance(task, Task)
    harness.settle()
    second = harness.retry(task.id)
    assert second.said == "The budget of the caller is spent: 200 of 200 tokens."
    assert harness.retry(second.task.id).said == "a b c d e"
    assert model.ran == list("abcde")


def test_a_retry_repeats_a_failed_step_though_the_agent_has_undone_its_work() -> None:
    model = Model("a")

    async def work(task: TaskContext) -> str:
        try:
            return await task.step("a", model.think, "a")
        finally:
            await task.step("undo", model.think, "undo")
            await task.sleep("nap", 600)

    harness = AgentTestHarness(agent_of(work))
    failed = harness.send("go")
    assert failed.state is TaskState.FAILED
    ran = model.mended()
    assert harness.retry(failed.task.id).said == "a"
    assert ran == ["a", "undo"]


# ---- More of pauses


def test_an_answer_that_comes_during_a_pause_counts_after_it() -> None:
    model = Model()

    async def work(task: TaskContext) -> str:
        await task.step("a", model.think, "a", 20)
        answer, done = await asyncio.gather(task.ask("Go on?"), task.step("b", model.think, "b"))
        return answer.text() + done

    harness = AgentTestHarness(agent_of(work))
    harness.at(harness.now + 5_000, lambda: pause(harness))
    task = harness.begin("go")
    assert isinstance(task, Task)
    harness.settle(300_000)
    assert {wait.kind for wait in harness.waits(task.id)} == {"pause"}, "a question is an act, too"
    resume(harness)
    harness.settle(HOUR_MS)
    assert harness.reply(task.id).state is TaskState.INPUT_REQUIRED
    pause(harness)
    harness.wait(20_000)
    harness.at(harness.now + 600_000, lambda: resume(harness))
    runs = len(harness.runs)
    assert harness.send("yes ", task_id=task.id).said == "yes b"
    assert len(harness.runs) == runs + 1, "no run begins before the pause is over"
    assert model.ran == ["a", "b"]


def test_a_task_that_a_schedule_starts_during_a_pause_waits_and_the_next_tick_is_skipped() -> None:
    model = Model()

    async def work(task: TaskContext) -> str:
        return await task.step("a", model.think, "a")

    nightly = Schedule("nightly", cron="30 1 * * ? *", text="go")
    harness = AgentTestHarness(replace(agent_of(work), schedules=(nightly,)))
    pause(harness)
    harness.settle(3 * 86_400_000)
    assert [harness.reply(entry.task).state for entry in harness.tasks()] == [TaskState.SUBMITTED]
    resume(harness)
    harness.settle(HOUR_MS)
    assert [harness.reply(entry.task).said for entry in harness.tasks()] == ["a"]


def test_a_retry_keeps_inner_steps_between_the_first_error_and_the_end_of_the_budget() -> None:
    model, tries = Model(), list[int]()

    async def work(task: TaskContext) -> str:
        async def outer() -> str:
            tries.append(1)
            if len(tries) == 1:
                raise OSError("once")
            return " ".join([await task.step(name, model.think, name) for name in "abc"])

        with suppress(OSError):
            return await task.step("outer", outer)
        return await task.step("outer", outer)

    harness = AgentTestHarness(thrifty(work, Budget(tokens=200)))
    failed = harness.send("go")
    assert failed.said == "The budget of the agent is spent: 200 of 200 tokens."
    assert harness.retry(failed.task.id).said == "a b c"
    assert model.ran == list("abc")


@pytest.mark.parametrize(
    ("kind", "again"), [("no copy of its error can be made", 100), ("a step in it is refused", 200)]
)
def test_the_spending_of_a_failed_step_counts_for_task_and_owner(kind: str, again: int) -> None:
    model = Model()

    async def work(task: TaskContext) -> str:
        async def outer() -> None:
            await current_task().record_usage("model", cost_usd=0.1, input_tokens=100)
            if kind == "no copy of its error can be made":
                raise Unstorable
            await task.step("a", model.think, "a")
            await task.step("b", model.think, "b")

        with suppress(StepFailed):
            await task.step("outer", outer)
        await task.sleep("nap", 60)
        raise TaskFailed("That is all.")

    harness = AgentTestHarness(thrifty(work, Budget(usd=9, steps=2)))
    harness.engine = replace(harness.engine, owner_usd=9)
    task = harness.send("go").task
    paid = 100 * (1 + len(model.ran))
    assert spent(harness, task)["tokens"] == paid
    assert (task.metadata or {})["a2a-serverless/usage"] == {"model": {"cost_usd": paid / 1000, "input_tokens": paid}}
    assert harness.table.read_spent(CLIENT.key(""), harness.now) == paid * 1000
    retried = harness.retry(task.id)
    assert spent(harness, retried.task)["tokens"] == again


def test_the_retry_of_a_schedule_s_task_delays_no_tick_and_is_its_owner_s() -> None:
    model = Model("a")

    async def work(task: TaskContext) -> str:
        await task.step("a", model.think, "a")
        return (await task.ask("Go on?")).text()

    nightly = Schedule("nightly", cron="30 1 * * ? *", text="go", owner=CLIENT.owner, tenant=CLIENT.tenant)
    harness = AgentTestHarness(replace(agent_of(work), schedules=(nightly,)))
    failed = harness.tick("nightly")
    assert failed
    assert failed.state is TaskState.FAILED
    model.mended()
    retried = harness.retry(failed.task.id)
    assert retried.state is TaskState.INPUT_REQUIRED
    assert retried.task.metadata
    harness.wait(HOUR_MS)
    second = harness.tick("nightly")
    assert second
    assert second.state is TaskState.INPUT_REQUIRED, "of a task that was retried nothing is known"
    harness.wait(HOUR_MS)
    assert harness.tick("nightly") is None, "the second one waits for its answer"
