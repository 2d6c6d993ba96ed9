import json

import pytest

from a2a_serverless.client import Client, ClientRequest, HttpError, PeerError, Unreachable, discover, text_message
from a2a_serverless.domain.errors import A2AError, InvalidAgentResponse, InvalidParams, TaskNotCancelable, TaskNotFound
from a2a_serverless.protocol.error_codes import CODES
from a2a_serverless.protocol.v1 import (
    Message,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a_serverless.protocol.v1_card import AgentCard
from tests.client.deployment import BASE, Deployment, Locked, answering, rpc
from tests.echo import Asker, Writer
from tests.world import configured

AT_ONCE = SendMessageRequest(
    message=text_message("hello"), configuration=SendMessageConfiguration(return_immediately=True)
)


def deployed(**options: object) -> tuple[Deployment, Client]:
    deployment = Deployment(Writer().agent, **options)  # type: ignore[arg-type]
    return deployment, Client(f"{BASE}/echo", deployment.transport)


def body_of(call: ClientRequest) -> dict[str, object]:
    body: dict[str, object] = json.loads(call.body or b"")
    return body


def test_a_message_that_need_not_be_waited_for_gives_the_new_task() -> None:
    _, client = deployed()
    task = client.send(AT_ONCE)
    assert isinstance(task, Task)
    assert task.status.state is TaskState.SUBMITTED


def test_a_message_that_is_waited_for_gives_the_task_with_what_it_made() -> None:
    _, client = deployed()
    task = client.send(SendMessageRequest(message=text_message("hello")))
    assert isinstance(task, Task)
    assert task.status.state is TaskState.COMPLETED
    assert [artifact.text() for artifact in task.artifacts] == ["one: hello. two: hello. three: hello. "]


def test_the_webhook_goes_along_with_the_message() -> None:
    deployment, client = deployed()
    push = TaskPushNotificationConfig(url="https://hooks.example.com/a2a", token="t")
    task = client.send(configured(AT_ONCE, task_push_notification_config=push))
    deployment.world.settle()
    assert isinstance(task, Task)
    assert deployment.world.receiver.posts[-1].body["statusUpdate"]["taskId"] == task.id  # type: ignore[index,call-overload]


def test_a_task_is_read_and_canceled_by_its_id() -> None:
    _, client = deployed()
    sent = client.send(AT_ONCE)
    assert isinstance(sent, Task)
    assert client.cancel(sent.id).status.state is TaskState.CANCELED
    assert client.get(sent.id, history_length=0).history == ()


def test_a_stream_tells_every_event_with_its_number() -> None:
    _, client = deployed()
    items = list(client.stream(AT_ONCE))
    assert [item.n for item in items] == list(range(1, 8))
    assert [item.state for item in items if item.state] == ["submitted", "working", "working", "completed"]


def test_a_subscription_goes_on_behind_the_last_number_that_was_seen() -> None:
    deployment, client = deployed()
    sent = client.send(AT_ONCE)
    deployment.world.settle()
    assert isinstance(sent, Task)
    assert [item.n for item in client.subscribe(sent.id, after=4)] == [5, 6, 7]


def test_a_refusal_of_the_agent_is_raised_as_the_error_of_the_protocol() -> None:
    _, client = deployed()
    with pytest.raises(TaskNotFound, match="not found"):
        client.get("no-such-task")


def test_a_task_that_has_ended_cannot_be_canceled() -> None:
    _, client = deployed()
    task = client.send(SendMessageRequest(message=text_message("hello")))
    assert isinstance(task, Task)
    with pytest.raises(TaskNotCancelable):
        client.cancel(task.id)


def test_a_bad_parameter_is_named() -> None:
    _, client = deployed()
    with pytest.raises(InvalidParams) as refused:
        client.send(
            configured(
                AT_ONCE, task_push_notification_config=TaskPushNotificationConfig(url="http://hooks.example.com/")
            )
        )
    assert [one.field for one in refused.value.violations] == ["configuration.taskPushNotificationConfig.url"]


def test_a_refused_subscription_is_an_error_before_the_first_item() -> None:
    _, client = deployed()
    with pytest.raises(TaskNotFound):
        next(client.subscribe("no-such-task"))


def test_a_client_that_is_not_let_in_learns_the_status_and_the_reason() -> None:
    _, client = deployed(authenticator=Locked())
    with pytest.raises(HttpError, match="HTTP 401: Sign in") as refused:
        client.get("any")
    assert refused.value.status == 401


def test_credentials_go_along_and_are_not_shown() -> None:
    deployment = Deployment(Writer().agent)
    client = Client(f"{BASE}/echo", deployment.transport, {"Authorization": "Bearer secret"})
    client.send(AT_ONCE)
    assert deployment.calls[-1].headers["Authorization"] == "Bearer secret"
    assert "secret" not in repr(client) + repr(deployment.calls[-1])


def test_a_question_is_answered_by_a_message_to_the_task() -> None:
    deployment = Deployment(Asker().agent)
    client = Client(f"{BASE}/echo", deployment.transport)
    asked = client.send(SendMessageRequest(message=text_message("a boat")))
    assert isinstance(asked, Task)
    assert asked.status.state is TaskState.INPUT_REQUIRED
    answered = client.send(SendMessageRequest(message=text_message("red", task_id=asked.id)))
    assert isinstance(answered, Task)
    assert answered.artifacts[0].text() == "a boat in red"


def test_the_tenant_of_an_interface_is_named_in_every_request() -> None:
    transport, calls = answering(rpc({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}}))
    Client(BASE, transport, tenant="acme").send(AT_ONCE)
    assert body_of(calls[0])["params"]["tenant"] == "acme"  # type: ignore[index]


def test_an_agent_may_answer_with_a_message() -> None:
    transport, _ = answering(rpc({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}}))
    answer = Client(BASE, transport).send(AT_ONCE)
    assert isinstance(answer, Message)
    assert answer.text() == "hi"


def test_an_event_is_no_answer_to_a_message() -> None:
    status = {"state": "TASK_STATE_WORKING"}
    update = {"statusUpdate": {"taskId": "t", "contextId": "c", "status": status}}
    transport, _ = answering(rpc(update))  # type: ignore[arg-type]
    with pytest.raises(InvalidAgentResponse, match="event"):
        Client(BASE, transport).send(AT_ONCE)


@pytest.mark.parametrize("code", [code.rpc for code in CODES.values()])
def test_every_error_of_a_peer_is_raised_with_its_text(code: int) -> None:
    transport, _ = answering(rpc(error={"code": code, "message": "Not now."}))
    with pytest.raises(A2AError, match=r"Not now\."):
        Client(BASE, transport).get("t")


def test_an_error_that_the_protocol_does_not_know_keeps_its_code() -> None:
    transport, _ = answering(rpc(error={"code": -32050, "message": "Out of paint"}))
    with pytest.raises(PeerError, match=r"Out of paint \(-32050\)"):
        Client(BASE, transport).get("t")


def test_an_error_whose_code_is_no_number_has_the_code_0() -> None:
    transport, _ = answering(rpc(error={"code": "paint", "message": "Out of paint"}))
    with pytest.raises(PeerError, match=r"Out of paint \(0\)"):
        Client(BASE, transport).get("t")


@pytest.mark.parametrize(
    "error", [{"code": "x"}, {"message": None}, {"code": -32602, "data": [{"fieldViolations": 1}]}]
)
def test_a_crooked_error_is_an_error_all_the_same(error: dict[str, object]) -> None:
    transport, _ = answering(rpc(error=error))  # type: ignore[arg-type]
    with pytest.raises((PeerError, InvalidParams)):
        Client(BASE, transport).get("t")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[" * 70 + b"]" * 70, b'{"jsonrpc":"2.0","id":1}'])
def test_an_answer_that_is_no_answer_is_the_agents_fault(body: bytes) -> None:
    transport, _ = answering((200, {}, body))
    with pytest.raises(InvalidAgentResponse):
        Client(BASE, transport).get("t")


@pytest.mark.parametrize("body", [b"Bad gateway", b"[]", b"502", b'{"message": 7}'])
def test_a_gateways_refusal_is_told_by_its_status(body: bytes) -> None:
    transport, _ = answering((502, {}, body))
    with pytest.raises(HttpError, match="HTTP 502") as refused:
        Client(BASE, transport).get("t")
    assert refused.value.status == 502


def test_a_gateways_words_are_passed_on() -> None:
    transport, _ = answering((403, {}, b'{"message": "Forbidden"}'))
    with pytest.raises(HttpError, match="HTTP 403: Forbidden"):
        Client(BASE, transport).get("t")


def test_a_task_of_many_chunks_is_read_whole() -> None:
    parts = [{"text": str(number)} for number in range(2000)]
    artifacts = [{"artifactId": "a", "parts": parts}]
    task = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": artifacts}
    transport, _ = answering(rpc(task))  # type: ignore[arg-type]
    assert len(Client(BASE, transport).get("t").artifacts[0].parts) == 2000


def test_an_agent_that_answers_a_stream_without_streaming_has_told_one_item() -> None:
    message = {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}}
    transport, _ = answering(rpc(message))  # type: ignore[arg-type]
    (item,) = Client(BASE, transport).stream(AT_ONCE)
    assert isinstance(item.content, Message)
    assert (item.state, item.task_id) == (None, None)


def test_a_call_to_a_port_without_a_server_is_unreachable() -> None:
    deployment = Deployment(Writer().agent)
    with pytest.raises(Unreachable, match="refused"):
        Client("http://127.0.0.1:9/echo", deployment.transport).get("t")


def test_the_card_tells_where_the_agent_is() -> None:
    deployment = Deployment(Writer().agent)
    found = discover(f"{BASE}/echo/", deployment.transport)
    assert isinstance(found.card, AgentCard)
    assert found.client.url == f"{BASE}/echo"
    assert found.document["name"] == "echo"
