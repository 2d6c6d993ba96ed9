"""Retries of failed tasks: what the new task has of the failed one, and what its agent does again."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain.agent_errors import TaskFailed
from a2a_serverless.domain.errors import InvalidParams, UnsupportedOperation
from a2a_serverless.domain.events import StatusEvent
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.testing import CLIENT
from a2a_serverless.testing.harness import AgentTestHarness
from tests.echo import agent_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.testing.replies import Reply


class Work:
    """Steps that note that they ran. Those in ``broken`` raise."""

    def __init__(self, *broken: str) -> None:
        self.broken = {*broken}
        self.ran: list[str] = []

    async def do(self, name: str, *more: object, takes: float = 0) -> str:
        del more
        await asyncio.sleep(takes)
        self.ran.append(name)
        if name in self.broken:
            raise ValueError(f"{name} is broken")
        return f"{name} done"

    def mended(self) -> list[str]:
        """Repairs the steps; returns the list of those that run from now on."""
        self.broken.clear()
        self.ran.clear()
        return self.ran


def harness_of(agent: Callable[[TaskContext], Awaitable[object]]) -> AgentTestHarness:
    return AgentTestHarness(agent_of(agent))


def failed(harness: AgentTestHarness) -> str:
    reply = harness.send("hello")
    assert reply.state is TaskState.FAILED
    return reply.task.id


def texts(reply: Reply) -> dict[str, str]:
    return {name: artifact.text() for name, artifact in reply.artifacts.items()}


def test_a_retry_runs_the_failed_step_and_none_of_those_before_it() -> None:
    work = Work("c")

    async def agent(task: TaskContext) -> str:
        return " ".join([await task.step(name, work.do, name) for name in "abcd"])

    harness = harness_of(agent)
    first = failed(harness)
    ran = work.mended()
    retried = harness.retry(first)
    assert retried.said == "a done b done c done d done"
    assert ran == ["c", "d"]
    assert retried.task.id != first
    assert retried.task.context_id == harness.reply(first).task.context_id
    retry = (retried.task.metadata or {})["a2a-serverless/retry"]
    assert isinstance(retry, dict)
    assert retry["taskId"] == first
    assert harness.reply(first).state is TaskState.FAILED


def test_a_named_step_and_those_after_it_run_again() -> None:
    work = Work("d")

    async def agent(task: TaskContext) -> str:
        return " ".join([await task.step(name, work.do, name) for name in "abcd"])

    harness = harness_of(agent)
    first = failed(harness)
    ran = work.mended()
    assert harness.retry(first, from_step="b").state is TaskState.COMPLETED
    assert ran == ["b", "c", "d"]


def test_steps_that_were_at_work_when_another_one_failed_are_kept_if_they_ended_well() -> None:
    work = Work("b")

    async def agent(task: TaskContext) -> str:
        every = [task.step(name, work.do, name, takes=at + 1) for at, name in enumerate("abc")]
        results = await asyncio.gather(*every, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                await task.step("undo", work.do, "undo")
                raise result
        return " ".join(map(str, results))

    harness = harness_of(agent)
    first = failed(harness)
    assert work.ran == ["a", "b", "c", "undo"]
    ran = work.mended()
    assert harness.retry(first).said == "a done b done c done"
    assert ran == ["b"]


def test_a_retry_that_fails_again_repeats_the_step_that_undoes() -> None:
    work = Work("b")

    async def agent(task: TaskContext) -> str:
        try:
            return await task.step("b", work.do, "b")
        except ValueError:
            await task.step("undo", work.do, "undo")
            raise

    harness = harness_of(agent)
    first = failed(harness)
    work.ran.clear()
    assert harness.retry(first).state is TaskState.FAILED
    assert work.ran == ["b", "undo"]


def test_an_answer_that_was_given_before_is_not_asked_for_again() -> None:
    work = Work("c")

    async def agent(task: TaskContext) -> str:
        await task.step("a", work.do, "a")
        await task.report_progress("Nearly there.")
        answer = await task.ask("Really?")
        return answer.text() + await task.step("c", work.do, "c", answer.text())

    harness = harness_of(agent)
    asked = harness.send("hello")
    assert harness.send("Yes: ", task_id=asked.task.id).state is TaskState.FAILED
    ran = work.mended()
    retried = harness.retry(asked.task.id)
    assert retried.said == "Yes: c done"
    assert ran == ["c"]
    said = [message.text() for message in retried.task.history]
    assert said == ["hello", "Nearly there.", "Really?", "Yes: "]
    assert {message.task_id for message in retried.task.history} == {retried.task.id}


def test_a_question_that_came_after_the_named_step_is_asked_again() -> None:
    work = Work("c")

    async def agent(task: TaskContext) -> str:
        await task.step("a", work.do, "a")
        return (await task.ask("Really?")).text() + await task.step("c", work.do, "c")

    harness = harness_of(agent)
    asked = harness.send("hello")
    harness.send("Yes: ", task_id=asked.task.id)
    ran = work.mended()
    retried = harness.retry(asked.task.id, from_step="a")
    assert (retried.state, retried.said) == (TaskState.INPUT_REQUIRED, "Really?")
    assert [message.text() for message in retried.task.history] == ["hello"]
    assert harness.send("No: ", task_id=retried.task.id).said == "No: c done"
    assert ran == ["a", "c"]


def test_artifacts_are_complete_and_emitted_once() -> None:
    work = Work("c")

    async def agent(task: TaskContext) -> None:
        async def chapter(name: str) -> None:
            await task.emit("book", f"{name} ", append=True)
            await work.do(name)
            await task.emit("book", f"{name}! ", append=True)

        await task.emit("book", "intro ")
        await task.emit("notes", "mine")
        for name in "abcd":
            await task.step(name, chapter, name)
            await task.emit("book", f"after {name} ", append=True)

    harness = harness_of(agent)
    first = failed(harness)
    whole = "intro a a! after a b b! after b c c! after c d d! after d "
    work.mended()
    retried = harness.retry(first)
    assert texts(retried) == {"book": whole, "notes": "mine"}
    assert texts(harness.reply(first))["book"] == "intro a a! after a b b! after b c "
    again = harness_of(agent)
    assert texts(again.send("hello")) == texts(retried)


def test_a_task_that_is_retried_twice_takes_over_what_both_came_to() -> None:
    work = Work("b", "d")

    async def agent(task: TaskContext) -> str:
        said = []
        for name in "abcd":
            said.append(await task.step(name, work.do, name))
            await task.emit("log", f"{name} ", append=True)
        return " ".join(said) + (await task.ask("Well?")).text()

    harness = harness_of(agent)
    first = failed(harness)
    work.broken.remove("b")
    second = harness.retry(first)
    assert second.state is TaskState.FAILED
    ran = work.mended()
    third = harness.retry(second.task.id)
    assert ran == ["d"]
    assert third.text("log") == "a b c d "
    work.ran.clear()
    fourth = harness.retry(second.task.id, from_step="b")
    assert work.ran == ["b", "c", "d"]
    assert fourth.text("log") == "a b c d "


def test_the_ids_of_messages_and_artifacts_are_those_of_the_first_task_in_every_generation() -> None:
    work = Work("a", "b", "c")

    async def agent(task: TaskContext) -> str:
        asked = (await task.ask("Well?")).text()
        for name in "abc":
            await task.report_progress(f"now {name}")
            await task.emit(name, task.text())
            with task.scope("in it"):
                await task.report_progress(task.text())
            await task.step(name, work.do, name, task.id, task.message)
        return asked

    harness = harness_of(agent)
    replies = [harness.send("yes", task_id=harness.send("hello").task.id)]
    for name in "abc":
        assert replies[-1].state is TaskState.FAILED
        work.broken.remove(name)
        replies.append(harness.retry(replies[-1].task.id))
    assert (replies[-1].state, replies[-1].said) == (TaskState.COMPLETED, "yes")
    assert work.ran == ["a", "a", "b", "b", "c", "c"]
    ids = [[(artifact.name, artifact.artifact_id) for artifact in reply.task.artifacts] for reply in replies]
    assert [name for name, _ in ids[-1]] == ["a", "b", "c"]
    assert all(earlier == ids[-1][: len(earlier)] for earlier in ids)
    said = [_said_by(harness, reply.task.id) for reply in replies]
    for earlier, later in pairwise(said):
        assert earlier == later[: len(earlier)]
    assert len({*said[-1]}) == len(said[-1])
    assert [text for _, text in said[-1]] == ["Well?", *(text for name in "abc" for text in (f"now {name}", "hello"))]


def _said_by(harness: AgentTestHarness, task_id: str) -> list[tuple[str, str]]:
    """The ids and texts of the agent's messages, without the last one, which ended the task."""
    events = harness.table.read(CLIENT.key(task_id), 0)
    own = (event for event in events if isinstance(event, StatusEvent) and event.state not in TERMINAL)
    return [(event.message.message_id, event.message.text()) for event in own if event.message]


def test_usage_of_copied_steps_is_not_counted_again() -> None:
    work = Work("b")

    async def agent(task: TaskContext) -> None:
        async def model(name: str) -> str:
            await task.record_usage("m", tokens=10)
            return await work.do(name)

        await task.record_usage("m", tokens=1)
        await task.step("a", model, "a")
        await task.step("b", model, "b")

    harness = harness_of(agent)
    first = failed(harness)
    work.mended()
    metadata = harness.retry(first).task.metadata or {}
    assert metadata["a2a-serverless/usage"] == {"m": {"tokens": 10}}


def test_arguments_that_hold_the_task_s_id_fit() -> None:
    work = Work("b")

    async def agent(task: TaskContext) -> None:
        await task.step("a", work.do, "a", task.id, task.message)
        await task.step("b", work.do, "b")

    harness = harness_of(agent)
    first = failed(harness)
    ran = work.mended()
    assert harness.retry(first).state is TaskState.COMPLETED
    assert ran == ["b"]


def test_a_step_that_no_longer_fits_says_so_before_anything_runs() -> None:
    work = Work("c")

    def version(argument: str) -> Callable[[TaskContext], Awaitable[object]]:
        async def agent(task: TaskContext) -> None:
            async def second() -> None:
                await task.step("a", work.do, "a")
                await task.step("b", work.do, "b", argument)

            async def third() -> None:
                await task.step("c", work.do, "c")

            await asyncio.gather(third(), second())

        return agent

    harness = harness_of(version("old"))

    async def one_by_one(task: TaskContext) -> None:
        await task.step("a", work.do, "a")
        await task.step("b", work.do, "b", "old")
        await task.step("c", work.do, "c")

    harness.deploy(agent_of(one_by_one))
    first = failed(harness)
    harness.deploy(agent_of(version("new")))
    ran = work.mended()
    retried = harness.retry(first)
    assert retried.state is TaskState.FAILED
    assert retried.said.startswith("The step 'b' was stored with other arguments. Stored: ")
    assert retried.said.endswith(
        " This task repeats another one: if its code has changed, retry that one from an earlier step."
    )
    assert ran == []
    assert harness.retry(first, from_step="b").state is TaskState.COMPLETED
    assert sorted(ran) == ["b", "c"]


def test_a_step_that_there_is_not_is_refused_with_the_place_where_the_steps_are_listed() -> None:
    work = Work("c")

    async def agent(task: TaskContext) -> None:
        for name in "abc":
            await task.step(name, work.do, name)

    harness = harness_of(agent)
    first = failed(harness)
    with pytest.raises(InvalidParams) as refused:
        harness.retry(first, from_step="x")
    assert refused.value.violations[0].field == "fromStep"
    assert refused.value.violations[0].description.endswith("The task's timeline lists its steps.")


@pytest.mark.parametrize("state", ["completed", "rejected", "canceled", "input-required"])
def test_only_a_failed_task_can_be_retried(state: str) -> None:
    async def agent(task: TaskContext) -> None:
        if state == "rejected":
            from a2a_serverless.domain.agent_errors import TaskRejected

            raise TaskRejected("no")
        if state != "completed":
            await task.ask("Well?")

    harness = harness_of(agent)
    task = harness.send("hello").task
    if state == "canceled":
        harness.cancel(task.id)
    with pytest.raises(UnsupportedOperation, match=f"this one is {state}"):
        harness.retry(task.id)


def test_values_sleeps_and_the_time_are_those_of_the_failed_task() -> None:
    work = Work("b")
    seen: list[object] = []

    async def agent(task: TaskContext) -> None:
        async def write() -> None:
            await task.store.put("key", "value")

        await task.step("a", write)
        seen.append(await task.now("begin"))
        await task.sleep("hour", 3600)
        value = await task.store.get("key")
        seen.append(value and value.value)
        async with task.timeout("limit", 60):
            await task.step("b", work.do, "b", takes=1)

    harness = harness_of(agent)
    first = failed(harness)
    work.mended()
    before = harness.now
    assert harness.retry(first).state is TaskState.COMPLETED
    assert harness.now - before < 3_600_000
    assert {str(one) for one in seen} == {str(seen[0]), "value"}


def test_an_event_that_came_is_kept_with_its_address() -> None:
    work = Work("c")
    urls: list[str] = []

    async def submit(url: str) -> None:
        urls.append(url)

    async def agent(task: TaskContext) -> str:
        finished = await task.callback("finished")
        await task.step("submit", submit, finished.url)
        request = await finished.received(timeout_s=60)
        await task.step("c", work.do, "c")
        return str(request.json())

    harness = harness_of(agent)
    harness.at(harness.now + 1000, lambda: harness.send_event(urls[0], "42"))
    first = failed(harness)
    work.mended()
    assert harness.retry(first).said == "42"
    assert len(urls) == 1


def test_an_address_at_which_nothing_came_is_made_anew() -> None:
    urls: list[str] = []

    async def agent(task: TaskContext) -> str:
        finished = await task.callback("finished")
        urls.append(finished.url)
        return str((await finished.received(timeout_s=60)).json())

    harness = harness_of(agent)
    first = failed(harness)
    harness.at(harness.now + 1000, lambda: harness.send_event(urls[-1], "42"))
    assert harness.retry(first).said == "42"
    assert urls[0] != urls[-1]


def test_a_time_limit_that_ended_before_the_failed_step_is_not_waited_for_again() -> None:
    work = Work("b")

    async def agent(task: TaskContext) -> str:
        try:
            return (await task.ask("Well?", timeout_s=3600)).text()
        except TimeoutError:
            return await task.step("b", work.do, "b")

    harness = harness_of(agent)
    first = failed(harness)
    work.mended()
    before = harness.now
    assert harness.retry(first).said == "b done"
    assert harness.now - before < 3_600_000


def test_a_call_that_was_answered_is_not_made_again_and_one_that_failed_is() -> None:
    work = Work("child")

    async def child(task: TaskContext) -> str:
        work.ran.append(task.text())
        if task.text() in work.broken:
            raise TaskFailed("broken")
        return task.text()

    async def parent(task: TaskContext) -> str:
        one = await task.call("one", "child", "one")
        other = await task.call("other", "child", "other")
        assert not isinstance(other, str)
        if other.status.state is TaskState.FAILED:  # type: ignore[union-attr]
            raise TaskFailed("The child has failed.")
        return f"{one.status.message.text()}"  # type: ignore[union-attr]

    work.broken = {"other"}
    harness = AgentTestHarness(agent_of(parent), agent_of(child, "child"))
    first = failed(harness)
    ran = work.mended()
    assert harness.retry(first, from_step="other").said == "one"
    assert ran == ["other"]


def test_the_plan_b_of_the_failed_task_is_that_of_its_retry() -> None:
    work = Work("a", "c")

    async def agent(task: TaskContext) -> str:
        try:
            said = await task.step("a", work.do, "a")
        except ValueError:
            await task.sleep("a pause", 1)
            said = await task.step("b", work.do, "b")
        return said + await task.step("c", work.do, "c", said)

    harness = harness_of(agent)
    first = failed(harness)
    ran = work.mended()
    assert harness.retry(first).said == "b donec done"
    assert ran == ["c"]
