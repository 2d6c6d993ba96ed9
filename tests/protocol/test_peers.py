"""A client's requests, in the version that the other agent speaks."""

import json
from typing import Any

import pytest

from a2a_serverless.protocol import v1
from a2a_serverless.protocol.peers import print_params
from a2a_serverless.protocol.protojson import ProtoModel
from tests.protocol.schema import assert_v0_3

MESSAGE = v1.Message(
    message_id="m",
    role=v1.Role.USER,
    parts=(v1.Part(text="a"), v1.Part(url="u", filename="f", media_type="a/b"), v1.Part(data=[1])),
    context_id="c",
    task_id="t",
)
HOOK = v1.TaskPushNotificationConfig(
    id="p", url="u", token="t", authentication=v1.AuthenticationInfo(scheme="Basic", credentials="c")
)
SEND = v1.SendMessageRequest(
    tenant="acme",
    message=MESSAGE,
    metadata={"k": 1},
    configuration=v1.SendMessageConfiguration(
        accepted_output_modes=("a/b",), return_immediately=True, history_length=2, task_push_notification_config=HOOK
    ),
)
BLOCKING = v1.SendMessageRequest(message=v1.Message(message_id="m", role=v1.Role.USER, parts=(v1.Part(text="a"),)))


@pytest.mark.parametrize(
    ("request_", "new", "old"),
    [
        (
            v1.GetTaskRequest(id="t", history_length=0, tenant="acme"),
            {"tenant": "acme", "id": "t", "historyLength": 0},
            {"id": "t", "historyLength": 0},
        ),
        (v1.CancelTaskRequest(id="t"), {"id": "t"}, {"id": "t"}),
        (v1.SubscribeToTaskRequest(id="t"), {"id": "t"}, {"id": "t"}),
        (
            BLOCKING,
            {"message": {"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "a"}]}},
            {
                "message": {
                    "kind": "message",
                    "role": "user",
                    "messageId": "m",
                    "parts": [{"kind": "text", "text": "a"}],
                },
                "configuration": {"blocking": True},
            },
        ),
        (
            SEND,
            {
                "tenant": "acme",
                "message": {
                    "role": "ROLE_USER",
                    "messageId": "m",
                    "parts": [{"text": "a"}, {"url": "u", "filename": "f", "mediaType": "a/b"}, {"data": [1]}],
                    "contextId": "c",
                    "taskId": "t",
                },
                "metadata": {"k": 1},
                "configuration": {
                    "acceptedOutputModes": ["a/b"],
                    "taskPushNotificationConfig": {
                        "id": "p",
                        "url": "u",
                        "token": "t",
                        "authentication": {"scheme": "Basic", "credentials": "c"},
                    },
                    "historyLength": 2,
                    "returnImmediately": True,
                },
            },
            {
                "message": {
                    "kind": "message",
                    "role": "user",
                    "messageId": "m",
                    "parts": [
                        {"kind": "text", "text": "a"},
                        {"kind": "file", "file": {"uri": "u", "name": "f", "mimeType": "a/b"}},
                        {"kind": "data", "data": {"value": [1]}, "metadata": {"data_part_compat": True}},
                    ],
                    "contextId": "c",
                    "taskId": "t",
                },
                "metadata": {"k": 1},
                "configuration": {
                    "acceptedOutputModes": ["a/b"],
                    "pushNotificationConfig": {
                        "id": "p",
                        "url": "u",
                        "token": "t",
                        "authentication": {"schemes": ["Basic"], "credentials": "c"},
                    },
                    "historyLength": 2,
                    "blocking": False,
                },
            },
        ),
    ],
)
def test_a_request_is_printed_in_both_versions_with_the_clients_own_secrets(
    request_: ProtoModel, new: dict[str, Any], old: dict[str, Any]
) -> None:
    assert json.loads(print_params("1.0", request_)) == new
    assert json.loads(print_params("0.3", request_)) == old
    if isinstance(request_, v1.SendMessageRequest):
        assert_v0_3("MessageSendParams", old)


@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_does_not_have_is_not_sent(version: Any, number: float) -> None:
    message = MESSAGE.model_copy(update={"parts": (v1.Part(data={"x": number}),)})
    with pytest.raises(ValueError, match="is not a JSON number"):
        print_params(version, v1.SendMessageRequest(message=message))
