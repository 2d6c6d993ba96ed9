from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from a2a_serverless.domain.errors import InvalidAgentResponse, InvalidParams
from a2a_serverless.domain.events import ArtifactEvent, Event, StatusEvent
from a2a_serverless.domain.model import (
    Artifact,
    Json,
    Message,
    Part,
    PushRequest,
    Role,
    SendRequest,
    Task,
    TaskState,
    TaskStatus,
)
from a2a_serverless.domain.push import PushConfig
from a2a_serverless.domain.queries import (
    CancelTask,
    CreatePush,
    DeletePush,
    GetCard,
    GetPush,
    GetTask,
    ListPushes,
    PushPage,
    Request,
    SubscribeToTask,
    TaskPush,
    Update,
)
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.wire import v0_3
from tests.wire import strategies
from tests.wire.losses import without_losses
from tests.wire.schema import assert_v0_3
from tests.wire.strategies import SOME

MESSAGE: dict[str, Any] = {
    "kind": "message",
    "messageId": "m",
    "role": "user",
    "parts": [{"kind": "text", "text": "hello"}],
}
HELLO = Message("m", Role.USER, (Part("text", "hello"),))
TASK = Task("t", "c", TaskStatus(TaskState.CANCELED, 1_760_000_000_123), 3)
CONFIG = PushConfig("p", "https://example.com/hook", "0.3", "i", 0, scheme="Bearer", token="sealed")


@pytest.mark.parametrize(
    ("operation", "params", "request_"),
    [
        (Operation.SEND, {"message": MESSAGE}, SendRequest(HELLO)),
        (Operation.STREAM, {"message": MESSAGE, "metadata": {"a": 1}}, SendRequest(HELLO, metadata={"a": 1})),
        (Operation.SEND, {"message": MESSAGE, "configuration": {"blocking": True}}, SendRequest(HELLO)),
        (Operation.SEND, {"message": MESSAGE, "configuration": {}}, SendRequest(HELLO)),
        (
            Operation.SEND,
            {
                "message": MESSAGE,
                "configuration": {
                    "blocking": False,
                    "historyLength": 3,
                    "acceptedOutputModes": ["text/plain"],
                    "pushNotificationConfig": {
                        "id": "p",
                        "url": "u",
                        "token": "t",
                        "authentication": {"schemes": ["Basic", "Bearer"], "credentials": "c"},
                    },
                },
            },
            SendRequest(
                HELLO,
                return_immediately=True,
                history_length=3,
                accepted_output_modes=("text/plain",),
                push=PushRequest("u", "p", "t", "Basic", "c"),
            ),
        ),
        (Operation.GET, {"id": "t", "historyLength": 2, "metadata": {}}, GetTask("t", 2)),
        (Operation.CANCEL, {"id": "t"}, CancelTask("t")),
        (Operation.SUBSCRIBE, {"id": "t"}, SubscribeToTask("t")),
        (
            Operation.PUSH_CREATE,
            {"taskId": "t", "pushNotificationConfig": {"url": "u", "authentication": {"schemes": []}}},
            CreatePush("t", PushRequest("u", "default")),
        ),
        (Operation.PUSH_GET, {"id": "t", "pushNotificationConfigId": "p"}, GetPush("t", "p")),
        (Operation.PUSH_GET, {"id": "t"}, GetPush("t", None)),
        (Operation.PUSH_LIST, {"id": "t"}, ListPushes("t")),
        (Operation.PUSH_DELETE, {"id": "t", "pushNotificationConfigId": "p"}, DeletePush("t", "p")),
        (Operation.CARD, {}, GetCard()),
    ],
)
def test_each_operation_is_read(operation: Operation, params: Json, request_: Request) -> None:
    assert v0_3.parse(operation, params) == request_


def test_every_operation_of_the_version_has_a_reader() -> None:
    assert v0_3.REQUESTS.keys() == set(Operation) - {Operation.LIST}


@pytest.mark.parametrize("history_length", [0, "0", None])
def test_a_history_length_of_zero_means_all(history_length: Json) -> None:
    assert v0_3.parse(Operation.GET, {"id": "t", "historyLength": history_length}) == GetTask("t", None)


@pytest.mark.parametrize(
    ("schemes", "credentials", "scheme"),
    [
        (["Basic", "Bearer"], "secret", "Basic"),
        (["Basic", "bearer"], None, "bearer"),
        (["Basic"], None, "Basic"),
        ([], None, None),
    ],
)
def test_of_several_schemes_the_one_is_taken_that_can_be_served(
    schemes: list[str], credentials: str | None, scheme: str | None
) -> None:
    config: dict[str, Any] = {"url": "u", "authentication": {"schemes": schemes, "credentials": credentials}}
    request = v0_3.parse(Operation.PUSH_CREATE, {"taskId": "t", "pushNotificationConfig": config})
    assert request == CreatePush("t", PushRequest("u", "default", scheme=scheme, credentials=credentials))


@pytest.mark.parametrize(
    ("sent", "part"),
    [
        ({"text": "a"}, Part("text", "a")),
        ({"type": "text", "text": "a"}, Part("text", "a")),
        ({"kind": "text", "text": ""}, Part("text", "")),
        ({"kind": "data", "data": {"a": 1}, "metadata": {"b": 2}}, Part("data", {"a": 1}, metadata={"b": 2})),
        ({"data": {}}, Part("data", {})),
        (
            {"kind": "file", "file": {"bytes": "YQ==", "name": "f", "mimeType": "a/b"}},
            Part("raw", "YQ==", "a/b", "f"),
        ),
        ({"file": {"fileWithBytes": "YQ", "mediaType": "a/b"}}, Part("raw", "YQ==", "a/b")),
        ({"kind": "data", "data": [1, {}]}, Part("data", [1, {}])),
        ({"file": {"uri": "https://example.com"}}, Part("url", "https://example.com")),
        ({"file": {"url": "https://example.com"}}, Part("url", "https://example.com")),
        ({"file": {"file_with_uri": "https://example.com", "bytes": ""}}, Part("url", "https://example.com")),
        ({"kind": "data", "data": {"value": [1]}, "metadata": {"data_part_compat": True}}, Part("data", [1])),
        (
            {"kind": "data", "data": {"value": 1}, "metadata": {"data_part_compat": False}},
            Part("data", {"value": 1}, metadata={"data_part_compat": False}),
        ),
    ],
)
def test_parts_are_read_as_every_client_writes_them(sent: Json, part: Part) -> None:
    request = v0_3.parse(Operation.SEND, {"message": MESSAGE | {"parts": [sent]}})
    assert isinstance(request, SendRequest)
    assert request.message.parts == (part,)


def test_a_message_is_read_in_the_spelling_of_the_proto() -> None:
    sent: Json = {"message_id": "m", "role": "ROLE_USER", "content": [{"text": "hello"}]}
    assert v0_3.parse(Operation.SEND, {"message": sent}) == SendRequest(HELLO)


@pytest.mark.parametrize(
    ("operation", "params", "fields"),
    [
        (Operation.SEND, {"": ".."}, ["message"]),
        (Operation.SEND, {"message": {"kind": "message"}}, ["message.role", "message.messageId", "message.parts"]),
        (Operation.SEND, {"message": MESSAGE | {"parts": "hello"}}, ["message.parts"]),
        (Operation.SEND, {"message": MESSAGE | {"parts": []}}, ["message.parts"]),
        (Operation.SEND, {"message": MESSAGE | {"parts": [{"kind": "video"}]}}, ["message.parts[0].kind"]),
        (Operation.SEND, {"message": MESSAGE | {"parts": [{"kind": 5}]}}, ["message.parts[0].kind"]),
        (Operation.SEND, {"message": MESSAGE | {"parts": [{}]}}, ["message.parts[0].kind"]),
        (Operation.SEND, {"message": MESSAGE | {"parts": [{"kind": "text"}]}}, ["message.parts[0].text"]),
        (Operation.SEND, {"message": MESSAGE | {"parts": [{"kind": "data", "data": 1}]}}, ["message.parts[0].data"]),
        (Operation.SEND, {"message": MESSAGE | {"parts": [{"kind": "data"}]}}, ["message.parts[0].data"]),
        (Operation.SEND, {"message": MESSAGE | {"parts": [{"kind": "file"}]}}, ["message.parts[0].file"]),
        (Operation.SEND, {"message": MESSAGE | {"parts": [{"file": {}}]}}, ["message.parts[0].file"]),
        (
            Operation.SEND,
            {"message": MESSAGE | {"parts": [{"file": {"bytes": "YQ==", "uri": "u"}}]}},
            ["message.parts[0].file"],
        ),
        (Operation.SEND, {"message": MESSAGE | {"parts": [{"file": {"bytes": "?"}}]}}, ["message.parts[0].file.bytes"]),
        (Operation.SEND, {"message": MESSAGE, "configuration": {"historyLength": -1}}, ["configuration.historyLength"]),
        (Operation.GET, {"historyLength": -1}, ["id", "historyLength"]),
        (Operation.PUSH_CREATE, {"url": "u"}, ["pushNotificationConfig", "taskId"]),
        (Operation.PUSH_CREATE, {"taskId": "t", "pushNotificationConfig": {}}, ["pushNotificationConfig.url"]),
        (Operation.PUSH_GET, {}, ["id"]),
        (Operation.PUSH_DELETE, {"id": "t"}, ["pushNotificationConfigId"]),
    ],
)
def test_everything_that_is_wrong_is_named(operation: Operation, params: Json, fields: list[str]) -> None:
    with pytest.raises(InvalidParams) as caught:
        v0_3.parse(operation, params)
    assert sorted(violation.field for violation in caught.value.violations) == sorted(fields)


@given(strategies.TASKS)
@SOME
def test_a_task_is_printed_to_the_schema_and_read_back_but_for_the_known_losses(task: Task) -> None:
    printed = v0_3.answer(Operation.GET, task)
    assert_v0_3("Task", printed)
    assert v0_3.parse_stream_item(printed) == without_losses(task)


@given(strategies.MESSAGES)
@SOME
def test_a_direct_message_is_bare(message: Message) -> None:
    printed = v0_3.answer(Operation.SEND, message)
    assert_v0_3("Message", printed)
    assert v0_3.parse_stream_item(printed) == without_losses(message)


@given(strategies.EVENTS)
@SOME
def test_an_event_is_bare_and_read_back_but_for_the_known_losses(event: Event) -> None:
    printed = v0_3.stream_item(event, "t", "c")
    status = isinstance(event, StatusEvent)
    assert_v0_3("TaskStatusUpdateEvent" if status else "TaskArtifactUpdateEvent", printed)
    assert v0_3.parse_stream_item(printed) == Update("t", "c", without_losses(event))


@given(strategies.PARTS)
@SOME
def test_data_survives_whatever_it_is(part: Part) -> None:
    message = replace(HELLO, parts=(part,))
    read = v0_3.parse_stream_item(v0_3.answer(Operation.SEND, message))
    assert isinstance(read, Message)
    assert read.parts[0].value == part.value


def test_data_that_is_no_object_is_wrapped_and_marked() -> None:
    assert v0_3.print_part(Part("data", [1], metadata={"a": 1})) == {
        "kind": "data",
        "data": {"value": [1]},
        "metadata": {"a": 1, "data_part_compat": True},
    }


@pytest.mark.parametrize("operation", [Operation.SEND, Operation.GET, Operation.CANCEL])
def test_a_task_says_its_kind_and_is_never_wrapped(operation: Operation) -> None:
    assert v0_3.answer(operation, TASK) == {
        "kind": "task",
        "id": "t",
        "contextId": "c",
        "status": {"state": "canceled", "timestamp": "2025-10-09T08:53:20.123Z"},
    }
    assert v0_3.stream_item(TASK, "t", "c") == v0_3.answer(operation, TASK)


@pytest.mark.parametrize("state", TaskState)
def test_final_marks_the_end_and_the_wait_for_input(state: TaskState) -> None:
    printed = v0_3.stream_item(StatusEvent(1, 0, "by", state), "t", "c")
    assert printed["final"] is (state in {"completed", "failed", "canceled", "rejected", "input-required"})
    assert printed["status"] == {"state": state.value, "timestamp": "1970-01-01T00:00:00.000Z"}


def test_an_artifact_update_has_no_final() -> None:
    printed = v0_3.stream_item(ArtifactEvent(1, 0, "by", Artifact("a", HELLO.parts), append=True), "t", "c")
    assert printed == {
        "kind": "artifact-update",
        "taskId": "t",
        "contextId": "c",
        "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "hello"}]},
        "append": True,
    }


def test_a_message_streams_bare() -> None:
    assert v0_3.stream_item(HELLO, "t", "c") == MESSAGE


def test_a_webhook_is_nested_and_printed_without_its_secrets() -> None:
    printed = v0_3.answer(Operation.PUSH_GET, TaskPush("t", CONFIG))
    assert printed == {
        "taskId": "t",
        "pushNotificationConfig": {
            "id": "p",
            "url": "https://example.com/hook",
            "authentication": {"schemes": ["Bearer"]},
        },
    }
    assert_v0_3("TaskPushNotificationConfig", printed)
    bare = TaskPush("t", replace(CONFIG, scheme=None))
    assert v0_3.answer(Operation.PUSH_LIST, PushPage((bare,))) == [
        {"taskId": "t", "pushNotificationConfig": {"id": "p", "url": "https://example.com/hook"}}
    ]


def test_a_deletion_has_no_result() -> None:
    assert v0_3.answer(Operation.PUSH_DELETE, None) is None


@pytest.mark.parametrize("value", [{}, {"kind": "task"}, {"kind": "event"}, {"kind": ["task"]}, "task"])
def test_a_peers_nonsense_is_the_peers_fault(value: Json) -> None:
    with pytest.raises(InvalidAgentResponse):
        v0_3.parse_stream_item(value)
