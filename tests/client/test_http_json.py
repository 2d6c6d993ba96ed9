"""The client over HTTP+JSON, in both versions: against our own agents, and against answers of other servers."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.client import Client, HttpError, NoInterface, discover, text_message
from a2a_serverless.domain.errors import (
    A2AError,
    InternalError,
    InvalidParams,
    PushNotSupported,
    TaskNotCancelable,
    TaskNotFound,
    UnsupportedOperation,
)
from a2a_serverless.protocol.v1 import (
    ListTasksRequest,
    Message,
    Part,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from tests.client.deployment import BASE, Deployment, answering, documents
from tests.client.test_discovery import HOME, at_home, card, interface
from tests.echo import Asker, Writer, agent_of
from tests.world import configured

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.protocol.versions import ProtocolVersion

AT_ONCE = SendMessageRequest(
    message=text_message("hello"), configuration=SendMessageConfiguration(return_immediately=True)
)
VERSIONS: list[ProtocolVersion] = ["1.0", "0.3"]
both_versions = pytest.mark.parametrize("version", VERSIONS)
PNG = base64.b64encode(b"picture").decode()


def client_of(agent: Agent, version: ProtocolVersion) -> tuple[Deployment, Client]:
    deployment = Deployment(agent)
    return deployment, Client(f"{BASE}/{agent.id}", deployment.transport, version=version, binding="HTTP+JSON")


def peer(*answers: tuple[int, dict[str, str], bytes], version: ProtocolVersion = "1.0") -> Client:
    return Client("https://far.example.com/a2a/", answering(*answers)[0], version=version, binding="HTTP+JSON")


def said(document: object, status: int = 200) -> tuple[int, dict[str, str], bytes]:
    return status, {"content-type": "application/json"}, json.dumps(document).encode()


@both_versions
def test_a_message_is_sent_and_its_task_read_and_canceled(version: ProtocolVersion) -> None:
    _, client = client_of(Writer().agent, version)
    task = client.send(AT_ONCE)
    assert isinstance(task, Task)
    assert client.get(task.id).status.state is TaskState.SUBMITTED
    assert client.cancel(task.id).status.state is TaskState.CANCELED
    with pytest.raises(TaskNotCancelable):
        client.cancel(task.id)
    with pytest.raises(TaskNotFound):
        client.get("no-such-task")


@both_versions
def test_a_task_that_is_waited_for_comes_with_what_it_made(version: ProtocolVersion) -> None:
    _, client = client_of(Writer().agent, version)
    task = client.send(SendMessageRequest(message=text_message("hello")))
    assert isinstance(task, Task)
    assert [artifact.text() for artifact in task.artifacts] == ["one: hello. two: hello. three: hello. "]


@both_versions
def test_a_stream_and_a_subscription_have_the_same_items_as_over_json_rpc(version: ProtocolVersion) -> None:
    deployment, client = client_of(Writer().agent, version)
    items = list(client.stream(AT_ONCE))
    assert [item.n for item in items] == list(range(1, 8))
    assert [item.state for item in items if item.state] == ["submitted", "working", "working", "completed"]
    sent = client.send(AT_ONCE.model_copy(update={"message": text_message("again")}))
    deployment.world.settle()
    assert isinstance(sent, Task)
    assert [item.n for item in client.subscribe(sent.id, after=4)] == [5, 6, 7]


@both_versions
def test_a_refused_subscription_is_an_error_before_the_first_item(version: ProtocolVersion) -> None:
    _, client = client_of(Writer().agent, version)
    with pytest.raises(TaskNotFound):
        next(client.subscribe("no-such-task"))


@both_versions
def test_the_webhook_goes_along_with_the_message(version: ProtocolVersion) -> None:
    deployment, client = client_of(Writer().agent, version)
    push = TaskPushNotificationConfig(url="https://hooks.example.com/a2a", token="t")
    client.send(configured(AT_ONCE, task_push_notification_config=push))
    deployment.world.settle()
    assert deployment.world.receiver.posts


@both_versions
def test_parts_of_every_kind_go_there_and_back(version: ProtocolVersion) -> None:
    async def repeat(task: TaskContext) -> list[Part]:
        await task.emit("copy", list(task.message.parts), last=True)
        return list(task.message.parts)

    _, client = client_of(replace(agent_of(repeat), input_modes=("*/*",), output_modes=("*/*",)), version)
    parts = (
        Part(text="words"),
        Part(data={"data": {"number": 1}}),
        Part(raw=PNG, media_type="image/png", filename="a.png"),
        Part(url="https://files.example.com/b.png", media_type="image/png"),
    )
    message = text_message("").model_copy(update={"parts": parts})
    task = client.send(SendMessageRequest(message=message))
    assert isinstance(task, Task)
    assert task.status.message
    assert task.status.message.parts == task.artifacts[0].parts == parts


@both_versions
def test_a_question_is_answered_by_a_message_to_the_task(version: ProtocolVersion) -> None:
    _, client = client_of(Asker().agent, version)
    asked = client.send(SendMessageRequest(message=text_message("a boat")))
    assert isinstance(asked, Task)
    assert asked.status.state is TaskState.INPUT_REQUIRED
    answered = client.send(SendMessageRequest(message=text_message("red", task_id=asked.id)))
    assert isinstance(answered, Task)
    assert answered.artifacts[0].text() == "a boat in red"


def test_tasks_are_listed_by_context() -> None:
    _, client = client_of(Writer().agent, "1.0")
    task = client.send(AT_ONCE)
    assert isinstance(task, Task)
    assert [*client.task_ids(task.context_id)] == [task.id]


def test_the_tenant_and_the_ids_are_in_the_path_percent_encoded() -> None:
    transport, calls = answering(said({"id": "a/b", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}))
    client = Client("https://far.example.com/a2a/", transport, tenant="acme & co", binding="HTTP+JSON")
    client.get("a/b", history_length=0)
    client.cancel("a/b")
    assert [call.url for call in calls] == [
        "https://far.example.com/a2a/acme%20%26%20co/tasks/a%2Fb?historyLength=0",
        "https://far.example.com/a2a/acme%20%26%20co/tasks/a%2Fb:cancel",
    ]
    assert [call.verb for call in calls] == ["GET", "POST"]


def test_a_server_that_takes_get_only_is_subscribed_to_by_get() -> None:
    status = {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}
    stream = 200, {"content-type": "text/event-stream"}, b"data: %b\n\n" % json.dumps({"statusUpdate": status}).encode()
    transport, calls = answering((405, {}, b"Method Not Allowed"), stream)
    (item,) = Client(HOME, transport, binding="HTTP+JSON").subscribe("t")
    assert item.state is TaskState.COMPLETED
    assert [call.verb for call in calls] == ["POST", "GET"]


def info(reason: str) -> list[dict[str, Any]]:
    return [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org"}]


ERRORS: list[tuple[ProtocolVersion, int, object, type[Exception]]] = [
    ("1.0", 404, {"error": {"code": 404, "message": "m", "details": info("TASK_NOT_FOUND")}}, TaskNotFound),
    ("1.0", 400, {"error": {"code": 400, "message": "m", "details": info("INVALID_PARAMS")}}, InvalidParams),
    ("1.0", 500, {"error": {"code": 500, "status": "INTERNAL", "message": "m"}}, InternalError),
    ("1.0", 503, {"error": {"code": 503, "status": "INTERNAL", "message": "m"}}, HttpError),
    ("1.0", 401, {"error": {"code": 401, "message": "m", "details": info("UNAUTHENTICATED")}}, HttpError),
    ("1.0", 404, {"message": "Not Found"}, HttpError),
    ("1.0", 502, "Bad gateway", HttpError),
    ("1.0", 400, {"error": {"code": [1], "message": "m", "details": [{"reason": []}]}}, HttpError),
    ("1.0", 400, {"code": -32001, "message": "m", "details": 5}, TaskNotFound),
    ("0.3", 404, {"message": "Task not found"}, TaskNotFound),
    ("0.3", 409, {"message": "Task cannot be canceled"}, TaskNotCancelable),
    ("0.3", 501, {"message": "This operation is not supported"}, UnsupportedOperation),
    ("0.3", 501, {"error": "io.a2a.spec.PushNotificationNotSupportedError", "message": "m"}, PushNotSupported),
    ("0.3", 400, {"code": -32602, "message": "m"}, InvalidParams),
    ("0.3", 404, {"type": "PushNotificationNotSupportedError", "message": "m"}, PushNotSupported),
]


@pytest.mark.parametrize(("version", "status", "body", "kind"), ERRORS)
def test_the_error_of_another_server_is_raised_as_the_class_that_it_means(
    version: ProtocolVersion, status: int, body: object, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        peer(said(body, status), version=version).cancel("t")


def test_a_send_that_has_no_address_in_0_3_is_no_missing_task() -> None:
    with pytest.raises(HttpError, match="HTTP 404"):
        peer(said({"message": "Not Found"}, 404), version="0.3").send(AT_ONCE)


def test_a_refusal_over_http_json_names_the_wrong_fields() -> None:
    bad = {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{"field": "message.parts"}]}
    body = {"error": {"code": 400, "message": "m", "details": [*info("INVALID_PARAMS"), bad]}}
    with pytest.raises(InvalidParams) as refused:
        peer(said(body, 400)).send(AT_ONCE)
    assert [one.field for one in refused.value.violations] == ["message.parts"]


def test_an_error_in_the_middle_of_a_stream_is_raised() -> None:
    status = {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}
    lines = [{"statusUpdate": status}, {"error": {"code": 500, "status": "INTERNAL", "message": "m"}}]
    body = b"".join(b"data: %b\n\n" % json.dumps(line).encode() for line in lines)
    stream = peer((200, {"content-type": "text/event-stream"}, body)).subscribe("t")
    assert next(stream).state is TaskState.WORKING
    with pytest.raises(A2AError):
        next(stream)


def test_the_answer_of_0_3_may_have_the_names_of_the_proto() -> None:
    message = {"msg": {"messageId": "m", "role": "ROLE_AGENT", "content": [{"data": {"data": {"n": 1}}}]}}
    answer = peer(said(message), version="0.3").send(AT_ONCE)
    assert isinstance(answer, Message)
    assert answer.data() == {"n": 1}


def test_json_rpc_goes_before_http_json_and_a_newer_version_before_both() -> None:
    rpc, http = interface(f"{HOME}/rpc"), interface(f"{HOME}/http", "HTTP+JSON")
    old = interface(f"{HOME}/old", version="0.3")
    assert discover(HOME, documents(at_home(card(http, rpc)))).client.url == f"{HOME}/rpc"
    only = discover(HOME, documents(at_home(card(old, http)))).client
    assert (only.url, only.binding) == (f"{HOME}/http", "HTTP+JSON")


def test_a_binding_that_is_asked_for_is_taken_or_missed() -> None:
    served = documents(at_home(card(interface(f"{HOME}/rpc"), interface(f"{HOME}/old", "HTTP+JSON", "0.3"))))
    found = discover(HOME, served, binding="HTTP+JSON").client
    assert (found.url, found.version) == (f"{HOME}/old", "0.3")
    with pytest.raises(NoInterface, match=r"HTTP\+JSON"):
        discover(HOME, documents(at_home(card(interface(HOME)))), binding="HTTP+JSON")


def test_a_space_in_a_query_is_written_as_signers_take_it() -> None:
    """Signature Version 4 signs a query as RFC 3986 writes it, and botocore leaves a ``+`` as it is."""
    transport, calls = answering(said({"tasks": [], "nextPageToken": "", "pageSize": 1, "totalSize": 0}))
    client = Client("https://far.example.com/a2a", transport, version="1.0", binding="HTTP+JSON")
    assert [*client.tasks(ListTasksRequest(context_id="a b/c", page_size=1))] == []
    (url,) = [call.url for call in calls]
    assert "contextId=a%20b%2Fc" in url
