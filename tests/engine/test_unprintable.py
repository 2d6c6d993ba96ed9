"""What readers of JSON cannot read is refused where an agent says it: no log, answer or webhook ever has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless.domain.agent_errors import TaskFailed, TaskRejected
from a2a_serverless.engine.engine import RunOutcome
from a2a_serverless.protocol import v0_3, v0_3_rest, v1
from a2a_serverless.protocol.peers import read_item
from a2a_serverless.protocol.protojson import printed
from a2a_serverless.protocol.strict_json import ANSWER_LIMITS, LIMITS, loads
from a2a_serverless.protocol.v1 import Message, Part, Role, TaskState
from a2a_serverless.testing import AgentTestHarness
from a2a_webhook_receiver import strict_json as receiver
from tests.echo import agent_of
from tests.engine.test_run import last_word, world_with_task

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a_serverless.domain.task_context import Content, TaskContext

ALONE: Final = "\ud800"
LONG: Final = 10**LIMITS.digits  # a digit more than is allowed; readers of Python stop at 4,300 digits, others at 309
LONGEST: Final = 10**LIMITS.digits - 1
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


def nested(levels: int, innermost: object = 1) -> Any:
    """A value of so many objects within each other."""
    for _ in range(levels):
        innermost = {"a": innermost}
    return innermost


async def returned_number(_: TaskContext) -> object:
    return {"number": LONG}


REFUSED: Final[dict[str, Callable[[TaskContext], Awaitable[object]]]] = {
    "the text of a chunk": emitted(f"a {ALONE}", append=True),
    "a value of data": emitted({"a": [ALONE]}),
    "a name in data": emitted({ALONE: 1}),
    "a number that JSON does not have": emitted({"a": float("nan")}),
    "a number with many digits": emitted({"a": LONG}),
    "a negative number with many digits": emitted([-LONG]),
    "a number that no reader reads": emitted({"a": 10**5000}),
    "a number with many digits in metadata": emitted("a", metadata={"a": LONG}),
    "a number with many digits in a part's metadata": emitted(Part(text="a", metadata={"a": LONG})),
    "data with many levels": emitted(nested(LIMITS.depth)),
    "metadata with many levels": emitted("a", metadata=nested(LIMITS.depth)),
    "data with more levels than pydantic writes": emitted(nested(300)),
    "a value of metadata": emitted(Part(text="a", metadata={"a": ALONE})),
    "a name in metadata": emitted(Part(text="a", metadata={ALONE: 1})),
    "a file's name": emitted(Part(text="a", filename=ALONE)),
    "a media type": emitted("a", media_type=ALONE),
    "an artifact's name": emitted("a", name=ALONE),
    "an artifact's description": emitted("a", description=ALONE),
    "a name in an artifact's metadata": emitted("a", metadata={ALONE: 1}),
    "a chunk of a step": emitted_in_a_step,
    "progress": lambda task: task.report_progress(ALONE),
    "progress with a number with many digits": lambda task: task.report_progress({"a": LONG}),
    "a question with a number with many digits": lambda task: task.ask({"a": LONG}),
    "a returned number with many digits": returned_number,
    "the metadata of progress": lambda task: task.report_progress("a", metadata={"a": [ALONE]}),
    "a question": lambda task: task.ask(ALONE),
    "a returned text": returned_text,
    "a returned message": returned_message,
}


@pytest.mark.parametrize("where", REFUSED)
def test_a_value_that_json_cannot_hold_fails_the_task_and_is_not_stored(where: str) -> None:
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


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"a": LONG}, f"an integer has more than {LIMITS.digits} digits"),
        (nested(LIMITS.depth), f"it has more than {LIMITS.depth} levels"),
        (float("inf"), "Infinity is not a JSON number"),
        (ALONE, "a lone surrogate"),
    ],
)
def test_the_final_message_names_the_fault_of_an_unprintable_value(content: Any, reason: str) -> None:
    reply = AgentTestHarness(agent_of(emitted(content))).send("go")
    assert (reply.state, reason in (reply.said or "")) == ("failed", True), reply.said


DEEPEST: Final = nested(LIMITS.depth - 4, "x")
FITS: Final[dict[str, Any]] = {
    "an object": {"number": LONGEST, "negative": -(LONGEST // 10), "text": "9" * 5000, "deep": DEEPEST},
    "a list, which 0.3 has to wrap": [DEEPEST],
}


@pytest.mark.parametrize("data", FITS.values(), ids=FITS)
def test_data_of_the_greatest_depth_is_read_in_every_version_and_by_other_agents(data: Any) -> None:
    """An artifact has three levels around its data."""

    async def work(task: TaskContext) -> object:
        await task.emit("a.json", Part(data=data), last=True)
        return (Part(data=data),)

    world, key = world_with_task(work, push=True)
    assert world.run(key) is RunOutcome.ENDED
    world.settle()
    task = world.get(key.task)
    assert task.artifacts, last_word(task)
    assert [task.artifacts[0].data(), task.status.message and task.status.message.data()] == [data, data]
    for version, binding, content in (
        ("1.0", "JSONRPC", v1.stream_response(task).json_bytes()),
        ("0.3", "JSONRPC", v0_3.FAMILY.json_bytes(task)),
        ("0.3", "HTTP+JSON", b'{"task":' + v0_3_rest.FAMILY.json_bytes(task) + b"}"),
    ):
        answer = loads(b'{"jsonrpc":"2.0","result":' + content + b"}", ANSWER_LIMITS)
        received = read_item(version, answer["result"], binding)  # type: ignore[arg-type,call-overload,index]
        shown = received.artifacts[0].data()  # type: ignore[union-attr]
        assert shown == data or (binding == "HTTP+JSON" and shown == {"value": data}), "its parts have no mark"
        assert receiver.parse(content)


def test_every_character_that_utf8_has_is_sent() -> None:
    text = "\ufffd \ufffe \U0001f600 \x00 \x7f"

    async def work(task: TaskContext) -> str:
        await task.emit(text, text, last=True, description=text)
        return text

    reply = AgentTestHarness(agent_of(work)).send("go")
    assert (reply.state, reply.said, reply.text(text)) == ("completed", text, text)
