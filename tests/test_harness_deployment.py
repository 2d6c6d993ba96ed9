"""The test harness does what a deployment does: it refuses the same requests, serves all tasks, and ends lives."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import AgentCallFailed, AgentExtension, Message, Part, Skill, TaskFailed
from a2a_serverless.agent_loader import AgentImportError
from a2a_serverless.client import Client, ClientRequest, Unreachable
from a2a_serverless.domain.errors import A2AError, ContentTypeNotSupported, InvalidParams
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.protocol.v1 import Role, SendMessageConfiguration, SendMessageRequest, Task, TaskState
from a2a_serverless.testing import CLIENT, AgentTestHarness
from a2a_serverless.testing.deployment import LIFE
from a2a_serverless.testing.in_process_http import InProcessHttp
from a2a_serverless.testing.memory import MOST_RECEIVES, VISIBILITY_S, MemoryQueues
from tests.client.deployment import BASE, Deployment
from tests.echo import agent_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless import Agent
    from a2a_serverless.domain.task_context import TaskContext

HOUR_MS = 3_600_000


async def greet(task: TaskContext) -> str:
    return f"Hello, {task.text()}!"


# ---- Agents

REFUSED_AGENTS: dict[str, tuple[Callable[[], list[Agent]], str]] = {
    "no tag": (
        lambda: [replace(agent_of(greet), skills=(Skill("greet", "Greet", "Greets", ()),))],
        "the card of echo needs a skill with a tag, and media types in and out",
    ),
    "no media type": (lambda: [replace(agent_of(greet), input_modes=())], "needs a skill with a tag, and media types"),
    "a reserved name": (lambda: [agent_of(greet, "agents")], "an agent cannot be called agents"),
    "one id for two": (lambda: [agent_of(greet), agent_of(greet)], "two agents have the same id: echo"),
}


@pytest.mark.parametrize("name", REFUSED_AGENTS)
def test_the_harness_refuses_an_agent_as_the_build_does(name: str) -> None:
    make, reason = REFUSED_AGENTS[name]
    with pytest.raises(ValueError, match=reason):
        AgentTestHarness(*make())
    with pytest.raises(ValueError, match=reason):
        AgentTestHarness(agent_of(greet, "other")).deploy(*make())


def test_the_harness_refuses_a_lock_beside_an_agents_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "lock", asyncio.Lock(), raising=False)
    with pytest.raises(AgentImportError, match=r"test_harness_deployment\.lock is a Lock of asyncio"):
        AgentTestHarness(agent_of(greet))


# ---- Requests


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def message_of(*parts: Part, **fields: Any) -> Message:
    fields = {"message_id": "m-1"} | fields
    return Message(role=Role.USER, parts=parts or (Part(text="Ada"),), **fields)


REFUSED = {
    "media type": lambda: message_of(Part(raw="iVBORw0KGgo=", media_type="image/png")),
    "size": lambda: message_of(Part(text="a" * 5_900_000)),
    "depth": lambda: message_of(Part(data=nested(100))),
    "parts": lambda: message_of(*[Part(text="Ada")] * 300),
    "message id": lambda: message_of(message_id="m" * 300),
    "context id": lambda: message_of(context_id="c" * 300),
    "task": lambda: message_of(task_id="nobody"),
    "metadata": lambda: message_of(metadata={"note": "a" * 70_000}),
    "budget": lambda: message_of(metadata={"a2a-serverless/budget": {"usd": -1}}),
    "values": lambda: message_of(Part(data=[0] * 120_000)),
    "references": lambda: message_of(reference_task_ids=("t",) * 100),
}


def refusal_of(send: Callable[[], object]) -> tuple[type[A2AError], str]:
    with pytest.raises(A2AError) as raised:
        send()
    return type(raised.value), str(raised.value)


@pytest.mark.parametrize("name", REFUSED)
def test_the_harness_refuses_a_message_as_a_deployment_does(name: str) -> None:
    message, agent = REFUSED[name](), agent_of(greet)
    request = SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=True))
    client = Client(f"{BASE}/echo", Deployment(agent).transport)
    refused = refusal_of(lambda: client.send(request))
    assert refusal_of(lambda: AgentTestHarness(agent).take("echo", message)) == refused


def test_a_part_that_the_card_does_not_take_is_refused_with_the_types_that_it_takes() -> None:
    harness = AgentTestHarness(agent_of(greet))
    with pytest.raises(ContentTypeNotSupported, match=r"parts\[0\]\.mediaType must be one of text/plain"):
        harness.send([Part(raw="iVBORw0KGgo=", media_type="image/png")])
    assert harness.tasks() == []


def test_an_agent_cannot_send_what_the_card_of_another_does_not_take() -> None:
    async def work(task: TaskContext) -> str:
        try:
            await task.call("greeting", "sibling", Part(raw="iVBORw0KGgo=", media_type="image/png"))
        except AgentCallFailed as refused:
            return str(refused)
        return "accepted"

    harness = AgentTestHarness(agent_of(work), agent_of(greet, "sibling"))
    assert (
        "The agent 'sibling' refused: message.parts[0].mediaType must be one of text/plain" in harness.send("go").said
    )


def test_an_agent_that_is_not_there_is_named_as_a_deployment_names_it() -> None:
    async def work(task: TaskContext) -> str:
        try:
            await task.call("greeting", "nobody", "hello")
        except AgentCallFailed as refused:
            return str(refused)
        return "accepted"

    harness = AgentTestHarness(agent_of(work), agent_of(greet, "sibling"))
    assert harness.send("go").said == "There is no agent 'nobody' in the directory."


def test_a_retry_is_refused_as_a_deployment_does() -> None:
    async def work(_: TaskContext) -> None:
        raise TaskFailed("no")

    harness = AgentTestHarness(agent_of(work))
    task = harness.send("go").task
    with pytest.raises(InvalidParams, match="fromStep"):
        harness.retry(task.id, from_step="s" * 300)


def test_the_client_names_the_extensions_that_the_agent_requires() -> None:
    async def work(task: TaskContext) -> str:
        return ", ".join(task.request.extensions)

    extensions = (AgentExtension("urn:example:seal", required=True), AgentExtension("urn:example:wax"))
    assert AgentTestHarness(replace(agent_of(work), extensions=extensions)).send("go").said == "urn:example:seal"


def test_an_agent_elsewhere_cannot_be_reached() -> None:
    http, call = (
        InProcessHttp(BASE, lambda: pytest.fail("nothing is asked")),
        ClientRequest("https://other.example.com/echo"),
    )
    with pytest.raises(Unreachable, match="in a test"), http.open(call):
        pass


# ---- The queue


def test_a_message_that_is_never_handled_is_a_dead_letter_in_the_end() -> None:
    now = [0]
    queues, message = MemoryQueues(lambda: now[0]), WorkMessage(CLIENT.key("t-1"))
    queues.enqueue(message)
    for number in range(1, MOST_RECEIVES + 1):
        assert (queues.pop(), queues.dead_letters) == (message, []), f"it is received {number} times"
        queues.finish(message, is_handled=False)
        assert queues.pop() is None
        now[0] += VISIBILITY_S * 1000
    assert (queues.pop(), queues.dead_letters) == (None, [message])


def test_a_message_that_was_handled_may_fail_again_later() -> None:
    now = [0]
    queues, message = MemoryQueues(lambda: now[0]), WorkMessage(CLIENT.key("t-1"))
    for _ in range(MOST_RECEIVES):
        queues.enqueue(message)
        for is_handled in (False, True):
            assert queues.pop() == message
            queues.finish(message, is_handled=is_handled)
            now[0] += VISIBILITY_S * 1000
    assert (queues.waiting, queues.dead_letters) == ([], [])


def test_a_task_that_always_works_does_not_hold_up_the_others() -> None:
    async def work(task: TaskContext) -> None:
        for number in range(20):
            await task.step(f"step {number}", asyncio.sleep, 600)

    async def sleep(task: TaskContext) -> str:
        await task.sleep("nap", 600)
        return "slept"

    harness = AgentTestHarness(agent_of(work, "busy"), agent_of(sleep, "sleeper"))
    began = harness.now
    harness.begin("go", to="busy")
    task = harness.begin("go", to="sleeper")
    assert isinstance(task, Task)
    harness.settle()
    ended = harness.reply(task.id, to="sleeper").task.status.timestamp
    assert ended - began < 600_000 + 2 * harness.run_ms, "it waits for the end of a run, not for that of the task"


# ---- The longest life of a task


def test_a_task_that_never_ends_is_ended_at_the_end_of_its_life() -> None:
    async def work(task: TaskContext) -> None:
        for number in range(1000):
            await task.sleep(f"day {number}", 86_400)

    harness = AgentTestHarness(agent_of(work))
    began = harness.now
    reply = harness.send("go")
    assert (reply.state, reply.said) == (TaskState.FAILED, "The task reached its maximum life.")
    assert LIFE.max_life_ms <= reply.task.status.timestamp - began < LIFE.max_life_ms + HOUR_MS


def test_a_question_that_nobody_answers_ends_with_the_life_of_its_task() -> None:
    async def work(task: TaskContext) -> str:
        return (await task.ask("Which?")).text()

    harness = AgentTestHarness(agent_of(work))
    reply = harness.send("go")
    assert reply.state is TaskState.INPUT_REQUIRED, "send lets no time pass that only a client can use"
    harness.settle(LIFE.max_life_ms + HOUR_MS)
    reply = harness.reply(reply.task.id)
    assert (reply.state, reply.said) == (TaskState.FAILED, "The task reached its maximum life.")


# ---- Questions with a deadline


async def decide(task: TaskContext) -> str:
    try:
        return (await task.ask("Which?", timeout_s=600)).text()
    except TimeoutError:
        return "none"


def test_a_message_runs_past_a_question_with_a_deadline_unless_it_stops_there() -> None:
    harness = AgentTestHarness(agent_of(decide))
    assert harness.send("go").said == "none"
    question = harness.send("go", until_question=True)
    assert (question.state, question.said) == (TaskState.INPUT_REQUIRED, "Which?")
    assert harness.send("blue", task_id=question.task.id).said == "blue"


def test_a_message_that_stops_at_a_question_runs_to_the_end_if_nothing_is_asked() -> None:
    harness = AgentTestHarness(agent_of(greet))
    assert harness.send("Ada", until_question=True).said == "Hello, Ada!"


def test_an_inline_agent_stops_at_its_question_too() -> None:
    harness = AgentTestHarness(replace(agent_of(decide), runs="inline"))
    question = harness.send("go", until_question=True)
    assert question.said == "Which?"
    assert harness.send("blue", task_id=question.task.id, until_question=True).said == "blue"
