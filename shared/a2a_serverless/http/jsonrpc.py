"""``POST /{agent}``: JSON-RPC 2.0 (specification 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.errors import (
    ContentTypeNotSupported,
    MethodNotFound,
    Overloaded,
    TooManyRequests,
    Unauthenticated,
)
from a2a_serverless.http.answers import error_answer
from a2a_serverless.http.operations import Envelope, make_handler
from a2a_serverless.http.requests import JSON
from a2a_serverless.protocol import jsonrpc, versions
from a2a_serverless.protocol.error_bodies import json_rpc_failure
from a2a_serverless.protocol.errors import VerbNotAllowed
from a2a_serverless.protocol.operations import STREAMING

if TYPE_CHECKING:
    from starlette.responses import Response

    from a2a_serverless.domain.push import WireVersion
    from a2a_serverless.http.api import Api
    from a2a_serverless.http.requests import HttpRequest
    from a2a_serverless.protocol.jsonrpc import RpcId

UNAVAILABLE: Final = 503


def answer_call(api: Api, request: HttpRequest) -> Response:
    """The answer to a call. What is wrong with a call is said in the body, with status 200."""
    agent = api.agent(request)
    if request.verb != "POST":
        raise VerbNotAllowed(("POST",))
    try:
        caller = api.sign_in(request)
    except (Unauthenticated, TooManyRequests, Overloaded) as error:
        asked = versions.asked(request.headers.get(versions.VERSION_HEADER.lower()))
        return _refusal(None, error, "1.0" if asked == "1.0" else "0.3", UNAVAILABLE)
    try:
        request.check_content_type()
    except ContentTypeNotSupported as error:
        return _refusal(None, error)
    call = jsonrpc.parse(request.body, api.limits)
    if isinstance(call, jsonrpc.RpcRefusal):
        return _refusal(call.id, call.error)
    try:
        operation, version = jsonrpc.method(call.method)
    except MethodNotFound as error:
        return _refusal(call.id, error)
    envelope = Envelope(
        content_type=JSON,
        success=lambda result: jsonrpc.success(call.id, result),
        failure=lambda error: (200, json_rpc_failure(call.id, error, version)),
        streams_errors=operation in STREAMING and (version == "0.3" or request.only_streams),
    )
    return make_handler(api, agent, caller, request, "jsonrpc", version, envelope).handle(operation, call.params)


def _refusal(call_id: RpcId, error: Exception, version: WireVersion = "1.0", status: int = 200) -> Response:
    """The answer to a call whose operation is not known. HTTP's own status goes before ``status``."""
    return error_answer(error, lambda error: (status, json_rpc_failure(call_id, error, version)))
