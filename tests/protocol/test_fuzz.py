"""Whatever a client sends, the edge's codecs answer with a request or with an error that the protocol names."""

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_serverless.domain.errors import A2AError
from a2a_serverless.domain.model import Json
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.protocol import jsonrpc
from a2a_serverless.protocol.codecs import Binding, codec
from a2a_serverless.protocol.conditional_requests import is_current
from a2a_serverless.protocol.error_bodies import json_rpc_failure
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.peers import read_card, read_item, read_task
from a2a_serverless.protocol.strict_json import dumps
from a2a_serverless.protocol.versions import activated_extensions, asked_version, check_version, requested_extensions
from tests.protocol import strategies
from tests.protocol.strategies import SOME

if TYPE_CHECKING:
    from a2a_serverless.protocol.versions import ProtocolVersion

FORMS: "list[tuple[Binding, ProtocolVersion]]" = [
    ("jsonrpc", "1.0"),
    ("jsonrpc", "0.3"),
    ("rest", "0.3"),
    ("legacy", "0.3"),
]
VERSIONS: "tuple[ProtocolVersion, ...]" = ("1.0", "0.3")

# Names that mean something, so that random values get past the first check.
NAMES = st.sampled_from(
    [
        "id",
        "tenant",
        "message",
        "messageId",
        "message_id",
        "role",
        "parts",
        "content",
        "text",
        "raw",
        "url",
        "data",
        "kind",
        "type",
        "file",
        "bytes",
        "uri",
        "fileWithBytes",
        "fileWithUri",
        "mimeType",
        "mediaType",
        "filename",
        "name",
        "metadata",
        "extensions",
        "referenceTaskIds",
        "contextId",
        "taskId",
        "state",
        "status",
        "timestamp",
        "history",
        "artifacts",
        "artifactId",
        "append",
        "lastChunk",
        "configuration",
        "historyLength",
        "blocking",
        "returnImmediately",
        "acceptedOutputModes",
        "taskPushNotificationConfig",
        "pushNotificationConfig",
        "pushNotification",
        "pushNotificationConfigId",
        "authentication",
        "scheme",
        "schemes",
        "credentials",
        "token",
        "pageSize",
        "pageToken",
        "statusTimestampAfter",
        "includeArtifacts",
        "request",
        "config",
        "config_id",
        "task",
        "statusUpdate",
        "artifactUpdate",
        "jsonrpc",
        "method",
        "params",
        "supportedInterfaces",
        "protocolVersion",
        "skills",
        "capabilities",
        "additionalInterfaces",
        "data_part_compat",
        "value",
    ]
)
WORDS = st.sampled_from(
    ["", "ROLE_USER", "user", "TASK_STATE_WORKING", "working", "text", "file", "data", "task", "status-update", "YQ==",
     "2.0", "SendMessage", "message/send", "1970-01-01T00:00:00Z", "true", "5", "-1", "\x00", "\U0001f600", "9" * 30]
)  # fmt: skip
LEAVES = WORDS | strategies.JSON
HOSTILE: st.SearchStrategy[Json] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=25,
)


@pytest.mark.parametrize(("binding", "version"), FORMS)
@given(operation=st.sampled_from(Operation), params=HOSTILE)
@SOME
def test_any_params_are_read_or_refused(
    binding: "Binding", version: "ProtocolVersion", operation: Operation, params: Json
) -> None:
    with suppress(A2AError):
        codec(binding, version, 0).read(operation, params)


@given(HOSTILE)
@SOME
def test_any_answer_of_a_peer_is_read_or_refused(value: Json) -> None:
    for version in VERSIONS:
        for read in (read_item, read_task):
            with suppress(A2AError):
                read(version, value)
    with suppress(A2AError):
        read_card(value)


@given(HOSTILE.map(dumps) | st.binary(max_size=60))
@SOME
def test_any_body_is_a_call_or_a_refusal_that_can_be_answered(body: bytes) -> None:
    call = jsonrpc.parse(body)
    if isinstance(call, jsonrpc.RpcRefusal):
        assert json_rpc_failure(call.id, call.error, "0.3")
        assert json_rpc_failure(call.id, call.error, "1.0")


@given(st.text(max_size=20), st.text(max_size=20))
@SOME
def test_any_header_is_read_or_refused(header: str, other: str) -> None:
    with suppress(A2AError):
        check_version("1.0", asked_version(header, other))
    with suppress(A2AError):
        names = requested_extensions({"a2a-extensions": header, "x-a2a-extensions": other})
        activated_extensions(names, {"urn:a": True})
    with suppress(A2AError):
        HttpRequest("POST", "/", {"content-type": header}).check_content()
    assert HttpRequest("POST", "/", {"accept": header, "content-type": other}).answer_type in {
        "application/json",
        "application/a2a+json",
    }
    assert isinstance(is_current({"if-none-match": header, "if-modified-since": other}, '"etag"', other), bool)
