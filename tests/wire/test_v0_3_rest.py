from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from a2a_serverless.domain.errors import InvalidParams
from a2a_serverless.domain.events import Event
from a2a_serverless.domain.model import Json, Message, Part, PushRequest, Role, SendRequest, Task, TaskState, TaskStatus
from a2a_serverless.domain.push import PushConfig
from a2a_serverless.domain.queries import CreatePush, DeletePush, GetPush, GetTask, PushPage, TaskPush, Update
from a2a_serverless.protocol.limits import LIMITS
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.wire import rest, v0_3_rest
from a2a_serverless.wire.fields import read
from tests.wire import strategies
from tests.wire.losses import without_losses
from tests.wire.strategies import SOME

HELLO = Message("m", Role.USER, (Part("text", "hello"),))
TASK = Task("t", "c", TaskStatus(TaskState.CANCELED, 0, HELLO), 1, history=(HELLO,), metadata={"theirKey": 1})
CONFIG = PushConfig("p", "https://example.com/hook", "0.3", "i", 0, scheme="Bearer", token="sealed")


@pytest.mark.parametrize(
    "params",
    [
        {"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hello"}]}},
        {"message": {"message_id": "m", "role": "ROLE_USER", "content": [{"text": "hello"}]}},
        {"request": {"message_id": "m", "role": "ROLE_USER", "content": [{"text": "hello"}]}},
        {
            "message": {
                "kind": "message",
                "messageId": "m",
                "role": "user",
                "parts": [{"kind": "text", "text": "hello"}],
            }
        },
    ],
)
def test_a_message_is_read_in_each_of_its_spellings(params: Json) -> None:
    assert v0_3_rest.parse(Operation.SEND, params) == SendRequest(HELLO)


def test_the_configuration_is_read_in_the_spelling_of_the_proto() -> None:
    params: dict[str, Any] = {
        "request": {"message_id": "m", "role": "ROLE_USER", "content": [{"text": "hello"}]},
        "configuration": {
            "accepted_output_modes": ["text/plain"],
            "push_notification": {"url": "u", "authentication": {"schemes": ["Bearer"]}},
            "history_length": 4,
            "blocking": False,
        },
    }
    assert v0_3_rest.parse(Operation.STREAM, params) == SendRequest(
        HELLO,
        return_immediately=True,
        history_length=4,
        accepted_output_modes=("text/plain",),
        push=PushRequest("u", "default", scheme="Bearer"),
    )


@pytest.mark.parametrize(("configuration", "at_once"), [({}, True), ({"blocking": True}, False), (None, False)])
def test_a_configuration_that_does_not_say_it_blocks_does_not_block(configuration: Json, *, at_once: bool) -> None:
    message: Json = {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hello"}]}
    request = v0_3_rest.parse(Operation.SEND, {"message": message, "configuration": configuration})
    assert request == SendRequest(HELLO, return_immediately=at_once)


@pytest.mark.parametrize(
    ("sent", "part"),
    [
        ({"data": {"data": {"a": 1}}}, Part("data", {"a": 1})),
        ({"data": {"a": 1}}, Part("data", {"a": 1})),
        ({"kind": "data", "data": {"data": {"a": 1}}}, Part("data", {"data": {"a": 1}})),
        (
            {"data": {"data": {"value": 5}}, "metadata": {"data_part_compat": True, "x": 1}},
            Part("data", 5, metadata={"x": 1}),
        ),
        ({"file": {"file_with_uri": "u", "mime_type": "a/b", "name": "f"}}, Part("url", "u", "a/b", "f")),
        ({"file": {"fileWithBytes": "YQ==", "mimeType": ""}}, Part("raw", "YQ==")),
        ({"file": {"file_with_uri": "", "file_with_bytes": "YQ=="}}, Part("raw", "YQ==")),
    ],
)
def test_parts_are_read_as_the_proto_nests_them(sent: Json, part: Part) -> None:
    params: Json = {"message": {"messageId": "m", "role": "ROLE_USER", "content": [sent]}}
    assert v0_3_rest.parse(Operation.SEND, params) == SendRequest(replace(HELLO, parts=(part,)))


@pytest.mark.parametrize(
    ("params", "config_id"),
    [
        ({"url": "u", "id": "p"}, "p"),
        ({"pushNotificationConfig": {"url": "u", "id": "p"}}, "p"),
        (
            {"config": {"name": "tasks/t/pushNotificationConfigs/p", "push_notification_config": {"url": "u"}}},
            "default",
        ),
        (
            {"parent": "tasks/t", "config_id": "p", "config": {"pushNotificationConfig": {"url": "u", "token": ""}}},
            "p",
        ),
    ],
)
def test_a_webhook_is_read_at_any_depth_that_clients_nest_it(params: dict[str, Any], config_id: str) -> None:
    request = v0_3_rest.parse(Operation.PUSH_CREATE, params | {"taskId": "t"})
    assert request == CreatePush("t", PushRequest("u", config_id))


def test_the_paths_names_are_the_requests_fields() -> None:
    path: Json = {"id": "t", "pushNotificationConfigId": "p"}
    assert v0_3_rest.parse(Operation.PUSH_GET, path) == GetPush("t", "p")
    assert v0_3_rest.parse(Operation.PUSH_DELETE, path) == DeletePush("t", "p")
    assert v0_3_rest.parse(Operation.GET, {"id": "t", "history_length": "2"}) == GetTask("t", 2)


def test_what_is_wrong_is_named_where_the_client_wrote_it() -> None:
    params: Json = {"message": {"role": "ROLE_UNSPECIFIED", "content": []}}
    with pytest.raises(InvalidParams) as caught:
        v0_3_rest.parse(Operation.SEND, params)
    assert {one.field for one in caught.value.violations} == {"message.role", "message.messageId", "message.content"}


def test_a_task_is_printed_as_the_proto_has_it() -> None:
    message = {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hello"}]}
    task = {
        "id": "t",
        "contextId": "c",
        "status": {"state": "TASK_STATE_CANCELLED", "timestamp": "1970-01-01T00:00:00.000Z", "message": message},
        "history": [message],
        "metadata": {"theirKey": 1},
    }
    assert v0_3_rest.answer(Operation.GET, TASK) == task
    assert v0_3_rest.answer(Operation.SEND, TASK) == {"task": task}
    assert v0_3_rest.answer(Operation.SEND, HELLO) == {"message": message}


def test_the_names_of_the_proto_leave_metadata_alone() -> None:
    printed = v0_3_rest.with_proto_names(v0_3_rest.answer(Operation.GET, TASK))
    assert isinstance(printed, dict)
    assert printed["context_id"] == "c"
    assert printed["metadata"] == {"theirKey": 1}
    assert printed["history"] == [{"message_id": "m", "role": "ROLE_USER", "content": [{"text": "hello"}]}]


def test_webhooks_have_resource_names_and_no_secrets() -> None:
    printed = {
        "name": "tasks/t/pushNotificationConfigs/p",
        "pushNotificationConfig": {
            "id": "p",
            "url": "https://example.com/hook",
            "authentication": {"schemes": ["Bearer"]},
        },
    }
    assert v0_3_rest.answer(Operation.PUSH_CREATE, TaskPush("t", CONFIG)) == printed
    assert v0_3_rest.answer(Operation.PUSH_LIST, PushPage((TaskPush("t", CONFIG),))) == {"configs": [printed]}


@given(strategies.EVENTS)
@SOME
def test_an_event_is_wrapped_and_read_back_but_for_the_known_losses(event: Event) -> None:
    printed = v0_3_rest.stream_item(event, "t", "c")
    ((name, update),) = printed.items()
    assert isinstance(update, dict)
    assert ("final" in update) == (name == "statusUpdate")
    reader = {
        "statusUpdate": v0_3_rest.DIALECT.status_update,
        "artifactUpdate": v0_3_rest.DIALECT.artifact_update,
    }[name]
    assert read(update, LIMITS, reader) == Update("t", "c", without_losses(event, rest=True))


@given(strategies.TASKS)
@SOME
def test_a_task_is_read_back_but_for_the_known_losses(task: Task) -> None:
    printed = v0_3_rest.stream_item(task, "t", "c")
    assert read(printed["task"], LIMITS, v0_3_rest.DIALECT.task) == without_losses(task, rest=True)


def test_a_message_streams_wrapped() -> None:
    assert v0_3_rest.stream_item(HELLO, "t", "c") == v0_3_rest.answer(Operation.SEND, HELLO)


def test_the_name_of_a_configuration_is_its_path_whatever_its_client_calls_it() -> None:
    config = replace(CONFIG, config_id="../a b")
    printed = v0_3_rest.print_push(TaskPush("t", config))
    assert printed["name"] == "tasks/t/pushNotificationConfigs/..%2Fa%20b"
    path = f"/v1/{printed['name']}"
    assert rest.match("GET", path).fields == {"id": "t", "pushNotificationConfigId": "../a b"}
