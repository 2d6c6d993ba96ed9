"""What JSON in UTF-8 cannot hold is refused where an agent says it: no log, answer or webhook ever has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless.domain.agent_errors import TaskFailed, TaskRejected
from a2a_serverless.engine.engine import RunOutcome
from a2a_serverless.protocol.protojson import printed
from a2a_serverless.protocol.v1 import Message, Part, Role, TaskState
from a2a_serverless.testing import AgentTestHarness
from tests.echo import agent_of
from tests.engine.test_run import last_word, world_with_task

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a_serverless.domain.task_context import Content, TaskContext

ALONE: Final = "\ud800"
REASON: Final = "cannot be written as JSON in UTF-8"


def emitted(content: Content, name: str = "a.txt", **more: Any) -> Callable[[TaskContext], Awaitable[object]]:
    return lambda task: task.emit(name, content, **more)


async def emitted_in_a_step(task: TaskContext) -> object:
    async def speak() -> None:
        await task.emit("a.txt", ALONE, append=True)

    return await task.step("speak", speak)


async def returned_text(_: TaskContext) -> object:
    return f"Done {ALONE}"


async def returned_message(_: TaskContext) -> object:
    return Message(message_id="mine", role=Role.AGENT, parts=(Part(text="x"),), metadata={ALONE: 1})


REFUSED: Final[dict[str, Callable[[TaskContext], Awaitable[object]]]] = {
    "the text of a chunk": emitted(f"a {ALONE}", append=True),
    "a value of data": emitted({"a": [ALONE]}),
    "a name in data": emitted({ALONE: 1}),
    "a number that JSON does not have": emitted({"a": float("nan")}),
    "a value of metadata": emitted(Part(text="a", metadata={"a": ALONE})),
    "a name in metadata": emitted(Part(text="a", metadata={ALONE: 1})),
    "a file's name": emitted(Part(text="a", filename=ALONE)),
    "a media type": emitted("a", media_type=ALONE),
    "an artifact's name": emitted("a", name=ALONE),
    "an artifact's description": emitted("a", description=ALONE),
    "a name in an artifact's metadata": emitted("a", metadata={ALONE: 1}),
    "a chunk of a step": emitted_in_a_step,
    "progress": lambda task: task.report_progress(ALONE),
    "the metadata of progress": lambda task: task.report_progress("a", metadata={"a": [ALONE]}),
    "a question": lambda task: task.ask(ALONE),
    "a returned text": returned_text,
    "a returned message": returned_message,
}


@pytest.mark.parametrize("where", REFUSED)
def test_what_json_cannot_hold_fails_the_task_and_is_not_stored(where: str) -> None:
    async def work(task: TaskContext) -> object:
        await task.emit("good.txt", "good", last=True)
        return await REFUSED[where](task)

    world, key = world_with_task(work, push=True)
    assert world.run(key) is RunOutcome.ENDED
    world.settle()
    task = world.get(key.task)
    assert task.status.state is TaskState.FAILED
    assert REASON in last_word(task)
    assert [artifact.text() for artifact in task.artifacts] == ["good"]
    assert printed(task)


@pytest.mark.parametrize("error", [TaskRejected, TaskFailed])
@pytest.mark.parametrize("content", [f"No {ALONE}.", (Part(data=float("nan")),)])
def test_a_reason_that_json_cannot_hold_fails_the_task_with_that_reason(error: type[Exception], content: Any) -> None:
    async def work(_: TaskContext) -> None:
        raise error(content)

    reply = AgentTestHarness(agent_of(work)).send("go")
    assert (reply.state, REASON in (reply.said or "")) == ("failed", True)


def test_an_agent_that_goes_on_after_a_refusal_says_nothing_twice() -> None:
    """The refused chunk takes no number: the next run skips the same chunks."""

    async def work(task: TaskContext) -> None:
        for text in ("one ", ALONE, "two "):
            try:
                await task.emit("a.txt", text, append=True)
            except TaskFailed:
                await task.emit("a.txt", "(refused) ", append=True)
        await task.ask("Go on?")
        await task.emit("a.txt", "three", append=True, last=True)

    harness = AgentTestHarness(agent_of(work))
    asked = harness.send("go").task
    assert harness.send("yes", task_id=asked.id).text("a.txt") == "one (refused) two three"


def test_a_call_of_another_agent_with_what_json_cannot_hold_fails_the_task() -> None:
    async def work(task: TaskContext) -> None:
        await task.call("it", "other", ALONE)

    reply = AgentTestHarness(agent_of(work)).send("go")
    assert (reply.state, REASON in (reply.said or "")) == ("failed", True)


def test_every_character_that_utf8_has_is_sent() -> None:
    text = "\ufffd \ufffe \U0001f600 \x00 \x7f"

    async def work(task: TaskContext) -> str:
        await task.emit(text, text, last=True, description=text)
        return text

    reply = AgentTestHarness(agent_of(work)).send("go")
    assert (reply.state, reply.said, reply.text(text)) == ("completed", text, text)
