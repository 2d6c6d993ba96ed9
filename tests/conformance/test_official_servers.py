"""Our client against the official servers, over both bindings and in both versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless.client import DiscoveredAgent, Unreachable, discover, open_request, text_message
from a2a_serverless.domain.errors import A2AError, TaskNotCancelable, TaskNotFound
from a2a_serverless.protocol.v1 import (
    Message,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
)
from tests.conformance.live import serving
from tests.conformance.remotes import REMOTES, NoServer, Remote, serving_remote
from tests.echo import agent_of
from tests.observed import observed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.client import Client
    from a2a_serverless.domain.task_context import TaskContext

pytestmark = pytest.mark.enable_socket

BREAKS_OFF: Final = "Python 0.3.26 0.3 HTTP+JSON"
"""It does not refuse a subscription: it breaks the stream off."""
LEAVES_TASKS_OPEN: Final = "Rust 0.15.0"
"""If a client does not wait for an answer that is a message, it gets a task that never ends."""


@pytest.fixture(scope="module", params=REMOTES, ids=str)
def found(request: pytest.FixtureRequest) -> Iterator[DiscoveredAgent]:
    remote: Remote = request.param
    try:
        with serving_remote(remote) as url:
            agent = discover(url, open_request)
            assert (agent.client.version, agent.client.binding) == (remote.version, remote.binding)
            yield agent
    except NoServer as why:
        pytest.skip(f"OFFICIAL SERVER NOT RUN: {remote.name}: {why}")


@pytest.fixture
def client(found: DiscoveredAgent) -> Client:
    return found.client


def asked(text: str, *, at_once: bool = False) -> SendMessageRequest:
    configuration = SendMessageConfiguration(return_immediately=at_once)
    return SendMessageRequest(message=text_message(text), configuration=configuration)


def test_a_stream_has_the_states_and_the_chunks(client: Client) -> None:
    items = list(client.stream(asked("stream 3")))
    assert [item.state for item in items if item.state] == ["submitted", "working", "working", "completed"]
    chunks = [item.content for item in items if isinstance(item.content, TaskArtifactUpdateEvent)]
    assert [chunk.artifact.text() for chunk in chunks] == ["0\n", "1\n", "2\n"]
    assert [chunk.append for chunk in chunks] == [False, True, True]


def test_a_task_is_waited_for_and_read(client: Client) -> None:
    task = client.send(asked("stream 3"))
    assert isinstance(task, Task)
    assert task.status.state is TaskState.COMPLETED
    assert client.get(task.id).artifacts[0].text() == "0\n1\n2\n"


def test_a_message_is_answered_by_a_message(client: Client) -> None:
    answer = client.send(asked("message Ada"))
    assert isinstance(answer, Message)
    assert answer.text() == "Hello, Ada"


def test_a_task_that_runs_is_subscribed_to(client: Client) -> None:
    task = client.send(asked("hang 1", at_once=True))
    assert isinstance(task, Task)
    assert [item.state for item in client.subscribe(task.id) if item.state][-1] is TaskState.COMPLETED


def test_a_task_that_runs_is_canceled(client: Client) -> None:
    task = client.send(asked("slow", at_once=True))
    assert isinstance(task, Task)
    assert client.cancel(task.id).status.state is TaskState.CANCELED


def test_the_client_answers_a_question_of_an_official_server(client: Client) -> None:
    task = client.send(asked("ask"))
    assert isinstance(task, Task)
    assert task.status.state is TaskState.INPUT_REQUIRED
    assert task.status.message
    assert task.status.message.data() == {"n": 1}
    answer = text_message("red", task_id=task.id, context_id=task.context_id)
    answered = client.send(SendMessageRequest(message=answer))
    assert isinstance(answered, Task)
    assert answered.status.state is TaskState.COMPLETED


def test_errors_have_the_classes_of_the_protocol(client: Client, request: pytest.FixtureRequest) -> None:
    with pytest.raises(TaskNotFound):
        client.get("no-such-task")
    with pytest.raises(TaskNotFound):
        client.cancel("no-such-task")
    with pytest.raises(Unreachable if BREAKS_OFF in request.node.nodeid else A2AError):
        list(client.subscribe("no-such-task"))
    task = client.send(asked("stream 1"))
    assert isinstance(task, Task)
    with pytest.raises(TaskNotCancelable):
        client.cancel(task.id)


def test_an_agent_of_ours_calls_an_official_server(found: DiscoveredAgent, request: pytest.FixtureRequest) -> None:
    answers_in_time = LEAVES_TASKS_OPEN not in request.node.nodeid

    async def ask(task: TaskContext) -> str:
        answer: Any = await task.call("stream", "far", "stream 3")
        said: Any = await task.call("message", "far", "message Ada") if answers_in_time else text_message("Hello, Ada")
        return f"{answer.artifacts[0].text()}{said.text()}"

    with serving([agent_of(ask, "parent")], others={"far": found.client.url}) as here:
        ours = discover(f"{here}/parent", observed(here), binding="HTTP+JSON").client
        *_, last = ours.stream(asked("go"))
    assert last.status
    assert last.status.message
    assert last.status.message.text() == "0\n1\n2\nHello, Ada"
