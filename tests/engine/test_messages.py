"""Questions, progress, answers and failures with parts; the request and the task as the agent sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from a2a_serverless import current_task
from a2a_serverless.domain.agent_errors import TaskFailed, TaskRejected
from a2a_serverless.domain.events import StatusEvent
from a2a_serverless.protocol.v1 import Message, Part, Role, SendMessageRequest, Task
from a2a_serverless.services import tasks
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.testing import AgentTestHarness
from tests.echo import agent_of
from tests.world import ME, World

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext

Work = Callable[["TaskContext"], Awaitable[Any]]
FORM = [Part(text="Which?"), Part(data={"choices": ["a", "b"]})]
URI = "https://example.com/extension"


def world_with_task(work: Work) -> tuple[World, Task]:
    world = World([agent_of(work)])
    task = world.send("hello", push=False)
    world.settle()
    return world, world.get(task.id)


def said(task: Task) -> Message:
    assert task.status.message
    return task.status.message


def own(parts: list[Part] | None = None, **fields: Any) -> Message:
    return Message(message_id="mine", role=Role.AGENT, parts=tuple(FORM if parts is None else parts), **fields)


CONTENTS = {"parts": FORM, "a message": own(extensions=(URI,), metadata={"a": 1})}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_rule_07_a_question_with_parts_is_asked_once_and_its_answer_comes_back(content: Any) -> None:
    async def work(task: TaskContext) -> str:
        answer = await task.ask(content)
        again = await task.ask(content, metadata={"again": True})
        return f"{answer.text()} {again.text()}"

    world, task = world_with_task(work)
    assert list(said(task).parts) == FORM
    assert said(task).task_id == task.id
    world.send("a", task_id=task.id, push=False)
    world.settle()
    assert said(world.get(task.id)).metadata == {"again": True}
    world.send("b", task_id=task.id, push=False)
    world.settle()
    assert said(world.get(task.id)).text() == "a b"


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("way", ["completed", "failed", "rejected"])
def test_the_last_word_has_the_parts_that_the_agent_gave_it(way: str, content: Any) -> None:
    async def work(_: TaskContext) -> Any:
        if way == "completed":
            return content
        raise TaskFailed(content) if way == "failed" else TaskRejected(content)

    _, task = world_with_task(work)
    assert task.status.state == way
    assert list(said(task).parts) == FORM
    assert (said(task).context_id, said(task).task_id) == (task.context_id, task.id)


@pytest.mark.parametrize("content", [[], 5, own([])])
@pytest.mark.parametrize("raised", [True, False])
def test_content_that_is_no_message_fails_the_task_with_a_reference(content: Any, raised: bool) -> None:  # noqa: FBT001
    async def work(_: TaskContext) -> Any:
        if raised:
            raise TaskFailed(content)
        return content

    _, task = world_with_task(work)
    assert task.status.state == "failed"
    assert "(reference " in said(task).text()


def test_a_reason_may_be_another_exception_whose_text_the_client_reads() -> None:
    async def work(_: TaskContext) -> None:
        raise TaskFailed(OSError("no route"))

    assert said(world_with_task(work)[1]).text() == "no route"


def test_progress_may_have_parts_and_metadata() -> None:
    async def work(task: TaskContext) -> None:
        await task.report_progress(FORM, metadata={"percent": 10})

    world, task = world_with_task(work)
    told = [event.message for event in world.events(task.id) if isinstance(event, StatusEvent) and event.message]
    assert [(list(one.parts), one.metadata) for one in told] == [(FORM, {"percent": 10})]


def test_an_artifact_has_the_metadata_and_extensions_of_its_first_chunk() -> None:
    async def work(task: TaskContext) -> None:
        await task.emit("a", "1", append=True, metadata={"a": 1}, extensions=[URI])
        await task.emit("a", "2", append=True, last=True)

    _, task = world_with_task(work)
    (artifact,) = task.artifacts
    assert (artifact.metadata, artifact.extensions, artifact.text()) == ({"a": 1}, (URI,), "12")


def test_the_agent_sees_the_request_of_its_task_and_after_an_answer_that_of_the_answer() -> None:
    async def work(task: TaskContext) -> str:
        first = task.request
        await task.ask("More?")
        return f"{first.metadata} {first.extensions} {task.request.metadata} {task.caller.owner}"

    world = World([agent_of(work)])
    service = world.service

    def send(metadata: Any, task_id: str | None = None) -> str:
        message = Message(message_id=world.ids.new(), role=Role.USER, parts=(Part(text="x"),), task_id=task_id)
        request = SendMessageRequest(message=message, metadata=metadata)
        begun = tasks.accept_message(service, RequestContext(ME, "echo", "1.0", extensions=(URI,)), request)
        assert not isinstance(begun, Message)
        tasks.enqueue_task(service, begun.head)
        world.settle()
        return begun.head.key.task

    task_id = send({"a": 1})
    send({"b": 2}, task_id)
    assert said(world.get(task_id)).text() == f"{{'a': 1}} {(URI,)} {{'b': 2}} me"


def test_the_agent_sees_its_task_with_what_it_has_just_emitted() -> None:
    async def work(task: TaskContext) -> str:
        await task.emit("a", "1", append=True)
        seen = await task.get_task()
        return f"{seen.status.state} {seen.artifacts[0].text()} {seen.history[0].text()}"

    _, task = world_with_task(work)
    assert said(task).text() == "working 1 hello"


async def in_its_own_thread() -> str:
    return await asyncio.to_thread(lambda: current_task().id)


async def in_anyio_s_thread() -> str:
    return await anyio.to_thread.run_sync(lambda: current_task().id)


async def in_an_asyncio_task() -> str:
    async def found() -> str:
        return current_task().id

    return await asyncio.create_task(found())


@pytest.mark.parametrize("found", [in_its_own_thread, in_anyio_s_thread, in_an_asyncio_task])
def test_an_agent_and_its_step_get_the_current_task(found: Callable[[], Awaitable[str]]) -> None:
    async def work(task: TaskContext) -> str:
        assert current_task() is task
        return await found() + await task.step("s", found)

    _, task = world_with_task(work)
    assert said(task).text() == task.id * 2


def test_an_inline_agent_answers_with_parts_and_knows_its_caller_without_a_task() -> None:
    async def work(_: TaskContext) -> list[Part]:
        return [Part(text=current_task().caller.owner), Part(data=current_task().request.metadata)]

    harness = AgentTestHarness(replace(agent_of(work), runs="inline"))
    answer = harness.send("hello").answer
    assert isinstance(answer, Message)
    assert (answer.text(), answer.data()) == ("client", None)


def test_asking_for_the_current_task_outside_of_an_agent_raises_lookup_error() -> None:
    world_with_task(lambda task: task.report_progress("x"))
    with pytest.raises(LookupError):
        current_task()
