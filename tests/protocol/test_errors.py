from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

import pytest

from a2a_serverless.domain import errors
from a2a_serverless.domain.errors import A2AError, FieldViolation
from a2a_serverless.http.messages import error_answer
from a2a_serverless.protocol import error_codes as table
from a2a_serverless.protocol.error_bodies import http_failure, json_rpc_failure
from tests.protocol.schema import assert_v0_3

if TYPE_CHECKING:
    from a2a_serverless.domain.model import JsonObject

Row: TypeAlias = tuple[Exception, int, int, int, int, str, str]

# error, JSON-RPC 1.0, JSON-RPC 0.3, HTTP 1.0.1, HTTP 0.3, google.rpc name, reason
ROWS: list[Row] = [
    (errors.ParseError(), -32700, -32700, 400, 400, "INVALID_ARGUMENT", "JSON_PARSE"),
    (errors.InvalidRequest(), -32600, -32600, 400, 400, "INVALID_ARGUMENT", "INVALID_REQUEST"),
    (table.BodyTooLarge(), -32600, -32600, 413, 413, "INVALID_ARGUMENT", "INVALID_REQUEST"),
    (table.EventAlreadyTaken(), -32600, -32600, 409, 409, "ALREADY_EXISTS", "INVALID_REQUEST"),
    (errors.MethodNotFound(), -32601, -32601, 404, 404, "NOT_FOUND", "METHOD_NOT_FOUND"),
    (table.HttpMethodNotAllowed(["GET"]), -32601, -32601, 405, 405, "UNIMPLEMENTED", "METHOD_NOT_FOUND"),
    (errors.InvalidParams(), -32602, -32602, 400, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
    (errors.InternalError(), -32603, -32603, 500, 500, "INTERNAL", "INTERNAL"),
    (errors.TaskNotFound(), -32001, -32001, 404, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
    (errors.TaskNotCancelable(), -32002, -32002, 400, 409, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
    (errors.PushNotSupported(), -32003, -32003, 400, 501, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED"),
    (errors.UnsupportedOperation(), -32004, -32004, 400, 501, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
    (errors.ContentTypeNotSupported(), -32005, -32005, 400, 415, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
    (errors.InvalidAgentResponse(), -32006, -32006, 500, 502, "INTERNAL", "INVALID_AGENT_RESPONSE"),
    (
        errors.ExtendedCardNotConfigured(),
        -32007,
        -32007,
        400,
        404,
        "FAILED_PRECONDITION",
        "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    ),
    (errors.ExtensionRequired(), -32008, -32603, 400, 400, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED"),
    (errors.VersionNotSupported(), -32009, -32603, 400, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
    (errors.Overloaded(), -32000, -32603, 503, 503, "UNAVAILABLE", "OVERLOADED"),
    (KeyError("secret"), -32603, -32603, 500, 500, "INTERNAL", "INTERNAL"),
]


# The same, and what else the details say, and the header.
BY_HTTP: list[tuple[A2AError, int, int, str, JsonObject, JsonObject | None, dict[str, str]]] = [
    (
        errors.Unauthenticated(),
        -31401,
        401,
        "UNAUTHENTICATED",
        {"reason": "UNAUTHENTICATED"},
        None,
        {"www-authenticate": 'Bearer realm="a2a"'},
    ),
    (
        table.ContentEncodingNotSupported(),
        -32600,
        415,
        "INVALID_ARGUMENT",
        {"reason": "INVALID_REQUEST"},
        None,
        {"accept-encoding": "identity"},
    ),
    (
        errors.Unauthenticated(given=True),
        -31401,
        401,
        "UNAUTHENTICATED",
        {"reason": "UNAUTHENTICATED"},
        None,
        {"www-authenticate": 'Bearer realm="a2a", error="invalid_token"'},
    ),
    (
        errors.InvalidSignature("It is old."),
        -31401,
        401,
        "UNAUTHENTICATED",
        {"reason": "UNAUTHENTICATED"},
        None,
        {"www-authenticate": 'Bearer realm="a2a"'},
    ),
    (
        errors.InsufficientScope("a2a:echo"),
        -31403,
        403,
        "PERMISSION_DENIED",
        {"reason": "INSUFFICIENT_SCOPE", "metadata": {"scope": "a2a:echo"}},
        None,
        {"www-authenticate": 'Bearer realm="a2a", error="insufficient_scope", scope="a2a:echo"'},
    ),
    (
        errors.TooManyRequests("Slow down.", 7),
        -31429,
        429,
        "RESOURCE_EXHAUSTED",
        {"reason": "TOO_MANY_REQUESTS"},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"},
        {"retry-after": "7"},
    ),
]


@pytest.mark.requirement(31, 33)
@pytest.mark.parametrize(("error", "code", "status", "grpc", "said", "more", "headers"), BY_HTTP)
def test_an_error_with_an_http_status_keeps_it_in_every_binding_and_version(
    error: A2AError,
    code: int,
    status: int,
    grpc: str,
    said: JsonObject,
    more: JsonObject | None,
    headers: dict[str, str],
) -> None:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "domain": "a2a-protocol.org"} | said
    details = [info, more] if more else [info]
    new, old = (json.loads(json_rpc_failure("i", error, version))["error"] for version in ("1.0", "0.3"))
    assert (new["code"], new["data"], new["message"]) == (code, details, str(error))
    assert (old["code"], old["data"]) == (-32600 if code == -32600 else -32603, details)
    body = {"error": {"code": status, "status": grpc, "message": str(error), "details": details}}
    assert (http_failure(error, "1.0")[0], json.loads(http_failure(error, "1.0")[1])) == (status, body)
    assert http_failure(error, "0.3")[0] == error_answer(error, lambda _: (200, b"")).status_code == status
    assert table.headers_of(error) == headers


@pytest.mark.requirement(29, 40, 41, 83, 108, 112)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: type(row[0]).__name__)
def test_each_error_has_its_code_in_each_binding_and_version(row: Row) -> None:
    error, code, old_code, http, old_http, grpc, reason = row
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org"}

    new = json.loads(json_rpc_failure("i", error, "1.0"))
    again = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}
    details = [info, again] if isinstance(error, errors.Overloaded) else [info]
    assert (new["error"]["code"], new["error"]["data"]) == (code, details)

    old = json.loads(json_rpc_failure("i", error, "0.3"))
    assert old["error"]["code"] == old_code
    assert_v0_3("JSONRPCErrorResponse", old)

    status, body = http_failure(error, "1.0")
    assert status == http
    message = new["error"]["message"]
    assert json.loads(body) == {"error": {"code": http, "status": grpc, "message": message, "details": details}}

    status, body = http_failure(error, "0.3")
    assert status == old_http
    error_of_1_0 = {"code": old_http, "status": grpc, "message": message, "details": details}
    kind = table.code_of(error).name
    assert json.loads(body) == {"code": old_code, "type": kind, "message": message, "error": error_of_1_0}


@pytest.mark.requirement(83)
def test_every_error_of_the_protocol_has_a_row_and_a_test() -> None:
    named = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, A2AError)}
    assert named - {A2AError} <= table.CODES.keys()
    assert {type(row[0]) for row in (*ROWS, *BY_HTTP)} - {KeyError} == table.CODES.keys()


def test_an_internal_error_shows_nothing_of_its_text() -> None:
    body = json_rpc_failure(1, ValueError("password in the clear"), "1.0")
    assert b"password" not in body
    assert b"An internal error happened" in body


def test_a_bare_a2a_error_is_internal_but_says_its_text() -> None:
    error = A2AError("Something of ours.")
    assert json.loads(json_rpc_failure(1, error, "1.0"))["error"]["code"] == -32603
    assert table.text_of(error) == "Something of ours."


@pytest.mark.requirement(36, 41, 108)
def test_wrong_fields_are_named_in_a_bad_request() -> None:
    error = errors.InvalidParams(violations=(FieldViolation("message.parts[0]", "must be an object"),))
    details = [
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "INVALID_PARAMS",
            "domain": "a2a-protocol.org",
        },
        {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": "message.parts[0]", "description": "must be an object"}],
        },
    ]
    assert json.loads(json_rpc_failure(1, error, "1.0"))["error"]["data"] == details
    assert json.loads(http_failure(error, "1.0")[1])["error"]["details"] == details
    assert json.loads(http_failure(error, "0.3")[1]) == {
        "code": -32602,
        "type": "InvalidParamsError",
        "message": "message.parts[0] must be an object.",
        "error": {
            "code": 400,
            "status": "INVALID_ARGUMENT",
            "message": "message.parts[0] must be an object.",
            "details": details,
        },
    }


@pytest.mark.requirement(29, 36, 40)
def test_the_text_names_the_first_wrong_fields_and_is_of_bounded_length() -> None:
    (one, *_) = many = [FieldViolation(f"parts[{at}]", "must be an object") for at in range(16)]
    assert str(errors.InvalidParams(violations=(one,))) == "parts[0] must be an object."
    assert str(errors.InvalidParams("A text.", violations=(one,))) == "A text."
    assert str(errors.InvalidParams(violations=(FieldViolation("", "must have one of a, b"),))) == (
        "The object must have one of a, b."
    )
    assert str(errors.InvalidParams(violations=tuple(many))) == (
        "parts[0] must be an object. parts[1] must be an object. parts[2] must be an object. "
        "13 more under fieldViolations."
    )
    long = FieldViolation("x" * 100_000, "y" * 100_000)
    assert len(str(errors.InvalidParams(violations=(long, long, long, long)))) < 1_500
