import json

import pytest

from a2a_serverless.domain.errors import InvalidParams, InvalidRequest, MethodNotFound, ParseError, TaskNotFound
from a2a_serverless.protocol import jsonrpc
from a2a_serverless.protocol.error_bodies import json_rpc_failure
from a2a_serverless.protocol.jsonrpc import RpcRefusal, RpcRequest
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.strict_json import LIMITS
from tests.protocol.schema import assert_v0_3


def call(call_id: str | int | None, method: str, params: dict[str, str]) -> RpcRequest:
    return RpcRequest(id=call_id, jsonrpc="2.0", method=method, params=params)


def test_a_sound_envelope_is_a_call() -> None:
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "t"}, "extra": true}'
    assert jsonrpc.parse(body) == call(1, "GetTask", {"id": "t"})


@pytest.mark.parametrize("call_id", ["abc", "", 0, -7, 2**70, None])
def test_an_id_is_a_string_an_integer_or_null(call_id: str | int | None) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": call_id, "method": "GetTask"}).encode()
    assert jsonrpc.parse(body) == call(call_id, "GetTask", {})


@pytest.mark.parametrize(
    ("written", "echo"),
    [("1.0", b"1.0"), ("1e0", b"1.0"), ("10E-1", b"1.0"), ("-7.0", b"-7.0"), ("1e3", b"1000.0"), ("1e300", b"1e+300")],
)
def test_an_integer_is_an_id_however_it_is_written(written: str, echo: bytes) -> None:
    request = jsonrpc.parse(f'{{"jsonrpc": "2.0", "id": {written}, "method": "GetTask"}}'.encode())
    assert isinstance(request, RpcRequest)
    assert jsonrpc.success(request.id, b"1") == b'{"jsonrpc":"2.0","id":%b,"result":1}' % echo
    assert json_rpc_failure(request.id, TaskNotFound(), "1.0").startswith(b'{"jsonrpc":"2.0","id":%b,' % echo)


@pytest.mark.parametrize("params", ["{}", "null"])
def test_params_may_be_absent_null_or_empty(params: str) -> None:
    body = f'{{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {params}}}'.encode()
    assert jsonrpc.parse(body) == call(1, "GetTask", {})


def test_a_request_without_an_id_is_answered_with_the_id_null() -> None:
    assert jsonrpc.parse(b'{"jsonrpc": "2.0", "method": "GetTask"}') == call(None, "GetTask", {})


@pytest.mark.parametrize(
    ("body", "call_id", "error", "text"),
    [
        (b"not json", None, ParseError, "not valid JSON"),
        (b"[]", None, InvalidRequest, "batches are not supported"),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "GetTask"}]', None, InvalidRequest, "batches are not supported"),
        (b'"text"', None, InvalidRequest, "one JSON-RPC request"),
        (b"{}", None, InvalidRequest, "jsonrpc must be"),
        (b'{"id": 3, "method": "GetTask"}', 3, InvalidRequest, "jsonrpc must be"),
        (b'{"jsonrpc": "1.0", "id": "x", "method": "GetTask"}', "x", InvalidRequest, "jsonrpc must be"),
        (b'{"jsonrpc": 2.0, "id": "x", "method": "GetTask"}', "x", InvalidRequest, "jsonrpc must be"),
        (b'{"jsonrpc": "2.0", "id": 3}', 3, InvalidRequest, "method must be"),
        (b'{"jsonrpc": "2.0", "id": 3, "method": 5}', 3, InvalidRequest, "method must be"),
        (b'{"jsonrpc": "2.0", "id": 3, "method": ""}', 3, InvalidRequest, "method must be"),
        (b'{"jsonrpc": "2.0", "id": true, "method": "GetTask"}', None, InvalidRequest, "id must be"),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "GetTask"}', None, InvalidRequest, "id must be"),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "GetTask"}', None, InvalidRequest, "id must be"),
        (b'{"jsonrpc": "2.0", "id": 3, "method": "GetTask", "params": []}', 3, InvalidParams, "must be an object"),
        (b'{"jsonrpc": "2.0", "id": 3, "method": "GetTask", "params": "x"}', 3, InvalidParams, "must be an object"),
        (b'{"jsonrpc": "2.0", "id": "' + b"x" * 2000 + b'", "method": "GetTask"}', None, InvalidRequest, "id must be"),
    ],
)
def test_a_bad_envelope_is_refused_with_the_id_that_could_be_read(
    body: bytes, call_id: str | int | None, error: type[Exception], text: str
) -> None:
    refusal = jsonrpc.parse(body)
    assert isinstance(refusal, RpcRefusal)
    assert refusal.id == call_id
    assert type(refusal.error) is error
    assert text in str(refusal.error)


def test_a_body_over_the_limit_is_refused() -> None:
    refusal = jsonrpc.parse(b'{"jsonrpc": "2.0", "id": 1, "method": "GetTask"}'.ljust(LIMITS.body + 1))
    assert isinstance(refusal, RpcRefusal)
    assert f"at most {LIMITS.body} are allowed" in str(refusal.error)


@pytest.mark.parametrize(
    ("name", "expected"),
    [(operation.value, (operation, "1.0")) for operation in Operation]
    + [
        ("message/send", (Operation.SEND, "0.3")),
        ("message.send", (Operation.SEND, "0.3")),
        ("message/stream", (Operation.STREAM, "0.3")),
        ("tasks/get", (Operation.GET, "0.3")),
        ("tasks/cancel", (Operation.CANCEL, "0.3")),
        ("tasks/resubscribe", (Operation.SUBSCRIBE, "0.3")),
        ("tasks/subscribe", (Operation.SUBSCRIBE, "0.3")),
        ("tasks/pushNotificationConfig/set", (Operation.PUSH_CREATE, "0.3")),
        ("tasks/pushNotificationConfig/get", (Operation.PUSH_GET, "0.3")),
        ("tasks/pushNotificationConfig/list", (Operation.PUSH_LIST, "0.3")),
        ("tasks/pushNotificationConfig/delete", (Operation.PUSH_DELETE, "0.3")),
        ("agent/getAuthenticatedExtendedCard", (Operation.CARD, "0.3")),
        ("agent/authenticatedExtendedCard", (Operation.CARD, "0.3")),
    ],
)
def test_a_method_is_an_operation_in_a_version(name: str, expected: tuple[Operation, str]) -> None:
    assert jsonrpc.METHODS[name] == expected


@pytest.mark.parametrize("name", ["sendMessage", "tasks/list", "SendMessage ", "category/action"])
def test_an_unknown_method_is_not_found(name: str) -> None:
    refusal = jsonrpc.parse(json.dumps({"jsonrpc": "2.0", "id": 3, "method": name}).encode())
    assert isinstance(refusal, RpcRefusal)
    assert (refusal.id, type(refusal.error)) == (3, MethodNotFound)


def test_of_two_names_the_specification_s_is_sent() -> None:
    assert jsonrpc.name_of(Operation.SUBSCRIBE, "0.3") == "tasks/resubscribe"


def test_a_result_of_null_is_printed() -> None:
    body = json.loads(jsonrpc.success("a", b"null"))
    assert body == {"jsonrpc": "2.0", "id": "a", "result": None}
    assert_v0_3("DeleteTaskPushNotificationConfigSuccessResponse", body)


def test_an_error_has_code_text_and_details_only() -> None:
    assert json.loads(json_rpc_failure(7, TaskNotFound(), "1.0")) == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {
            "code": -32001,
            "message": "The task was not found.",
            "data": [
                {
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "TASK_NOT_FOUND",
                    "domain": "a2a-protocol.org",
                }
            ],
        },
    }
