"""Whatever a peer sends, reading it takes little: bounds hold, and what is wrong is not collected without end."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from a2a_serverless.domain.errors import InvalidAgentResponse, InvalidParams
from a2a_serverless.protocol import v0_3, v1
from a2a_serverless.protocol.protojson import read_model, read_peer
from a2a_serverless.protocol.strict_json import LIMITS, Limits

MESSAGE: dict[str, Any] = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "a"}]}
PEER = Limits(parts=100_000, items=10_000)


def test_millions_of_wrong_parts_are_refused_by_the_first_of_them() -> None:
    artifacts = [{"artifactId": "a", "parts": [{}] * 100_000}] * 50
    answer = {"task": {"id": "t", "status": {"state": "TASK_STATE_WORKING"}, "artifacts": artifacts}}
    tracemalloc.start()
    try:
        with pytest.raises(InvalidAgentResponse, match="has a wrong item among the 256 from number 1"):
            read_peer(v1.StreamResponse, answer)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


def test_a_long_artifact_of_a_peer_is_read_whole() -> None:
    parts = [{"text": str(n)} for n in range(1000)]
    artifact = v1.Artifact.model_validate({"artifactId": "a", "parts": parts}, context=PEER)
    assert [part.text for part in artifact.parts] == [str(n) for n in range(1000)]


def test_as_many_violations_are_named_as_the_limit_says() -> None:
    with pytest.raises(InvalidParams) as refused:
        read_model(v1.SendMessageRequest, {"message": MESSAGE | {"parts": [{}] * 200}})
    assert len(refused.value.violations) == LIMITS.violations


@pytest.mark.parametrize(
    ("change", "field", "description"),
    [
        ({"messageId": "x" * 257}, "message.messageId", "1 to 256 bytes"),
        ({"parts": [{"text": "a"}] * 257}, "message.parts", "a list of at most 256"),
        ({"parts": [{"text": "a", "mediaType": "x" * 257}]}, "message.parts[0].mediaType", "at most 256 characters"),
        ({"parts": [{"text": "a", "filename": "x" * 1025}]}, "message.parts[0].filename", "at most 1024 characters"),
        ({"parts": [{"url": "x" * 2049}]}, "message.parts[0].url", "at most 2048 characters"),
        ({"extensions": ["a"] * 65}, "message.extensions", "a list of at most 64"),
        ({"referenceTaskIds": ["x" * 1025]}, "message.referenceTaskIds[0]", "1 to 1024 bytes"),
        ({"metadata": {"é": "x" * 65_536}}, "message.metadata", "at most 65536 bytes"),
    ],
)
def test_each_bound_holds_for_what_clients_send(change: dict[str, Any], field: str, description: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        read_model(v1.SendMessageRequest, {"message": MESSAGE | change})
    ((found, said),) = [(one.field, one.description) for one in refused.value.violations]
    assert (found, description in said) == (field, True)
    v1.Message.model_validate(MESSAGE | change)  # ours has no bounds


def test_a_refusal_of_a_request_repeats_no_value_of_it() -> None:
    config = {"url": "u", "token": ["hunter2"], "authentication": {"schemes": ["Basic"], "credentials": ["hunter2"]}}
    for model, params in (
        (v1.CreateTaskPushNotificationConfigRequest, config | {"taskId": ["hunter2"]}),
        (v0_3.TaskPushNotificationConfig, {"taskId": "t", "pushNotificationConfig": config}),
    ):
        with pytest.raises(InvalidParams) as refused:
            read_model(model, params)
        assert "hunter2" not in str(refused.value) + repr(refused.value.violations)


def test_secrets_are_in_no_representation() -> None:
    authentication = v1.AuthenticationInfo(scheme="Basic", credentials="hunter2")
    config = v1.TaskPushNotificationConfig(url="u", token="hunter2", authentication=authentication)
    assert "hunter2" not in repr(config)


def test_assigning_to_a_field_of_a_model_is_refused() -> None:
    part = v1.Part(text="a")
    with pytest.raises(ValueError, match="frozen"):
        part.text = "b"  # type: ignore[misc]


def test_messages_and_artifacts_give_their_parts_as_text_and_data() -> None:
    file = v1.Part(raw="aGk=", media_type="text/plain")
    parts = (v1.Part(text="a"), file, v1.Part(raw="aGk="), v1.Part(url="u"), v1.Part(data=None), v1.Part(data=5))
    message = v1.Message(role=v1.Role.USER, message_id="m", parts=parts)
    artifact = v1.Artifact(artifact_id="a", parts=parts)
    assert (message.text(), artifact.text()) == ("a\n\nhi", "ahi")
    assert message.data() is None
    assert v1.data_of(parts[-1:]) == 5
    assert [(part.kind, part.value) for part in parts[2:5]] == [("raw", "aGk="), ("url", "u"), ("data", None)]
