"""The api as one ASGI application, for API Gateway, uvicorn and tests.

This module has JSON-RPC, public documents and callbacks, and needs Starlette only. All other routes are FastAPI's. It
is imported when the first request for them comes: a cold start that serves JSON-RPC does not pay for it.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Mount, Route, Router

from a2a_serverless.adapters.invocations import InvocationFailed
from a2a_serverless.domain.errors import (
    ContentTypeNotSupported,
    MethodNotFound,
    Overloaded,
    Unauthenticated,
)
from a2a_serverless.domain.publications import AGENTS, CATALOG, CATALOG_MEDIA_TYPE, JWKS, card_name, legacy_card_name
from a2a_serverless.http.api import API, Responder, no_such_path
from a2a_serverless.http.messages import (
    JSON,
    NO_STORE,
    encoded_path,
    error_answer,
    json_answer,
    log_error,
    read_request,
)
from a2a_serverless.http.operation_handler import Envelope, OperationHandler
from a2a_serverless.protocol import jsonrpc
from a2a_serverless.protocol.conditional_requests import is_current
from a2a_serverless.protocol.error_codes import (
    BodyTooLarge,
    ContentEncodingNotSupported,
    EventAlreadyTaken,
    HttpMethodNotAllowed,
)
from a2a_serverless.protocol.strict_json import loads
from a2a_serverless.protocol.versions import VERSION_HEADER, asked_version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from a2a_serverless.http.api import Api
    from a2a_serverless.http.messages import Failure, HttpRequest
    from a2a_serverless.protocol.jsonrpc import RpcId
    from a2a_serverless.protocol.versions import ProtocolVersion

logger = logging.getLogger(__name__)

UNAVAILABLE: Final = 503


def answer_call(api: Api, request: HttpRequest) -> Response:
    """The answer to a call. The body tells the error of a call that fails; its status is 200."""
    agent = api.agent(request)
    if api.console and request.verb in {"GET", "HEAD"} and "text/html" in request.headers.get("accept", ""):
        return Response(status_code=303, headers={"location": f"./?agent={agent.id}", "vary": "accept"} | NO_STORE)
    if request.verb != "POST":
        raise HttpMethodNotAllowed(("POST",))
    try:
        caller = api.sign_in(request)
    except (Unauthenticated, Overloaded) as error:
        is_new = asked_version(request.headers.get(VERSION_HEADER.lower())) == "1.0"
        return error_answer(error, _rpc_failure(None, "1.0" if is_new else "0.3", UNAVAILABLE))
    try:
        request.check_content()
    except (ContentTypeNotSupported, ContentEncodingNotSupported) as error:
        return error_answer(error, _rpc_failure(None, "1.0"))
    call = jsonrpc.parse(request.body)
    if isinstance(call, jsonrpc.RpcRefusal):
        return error_answer(call.error, _rpc_failure(call.id, "1.0"))
    operation, version = jsonrpc.METHODS[call.method]
    envelope = Envelope(
        content_type=JSON,
        success=lambda result: jsonrpc.success(call.id, result),
        failure=_rpc_failure(call.id, version),
        streams_errors=operation.streams and (version == "0.3" or request.only_streams),
    )
    handler = OperationHandler(api, agent, caller, request, "jsonrpc", version, envelope)
    return handler.handle(operation, call.params)


def _rpc_failure(call_id: RpcId, version: ProtocolVersion, status: int = 200) -> Failure:
    """Returns a function that makes the answer to a failed call, with that status."""

    def failure(error: Exception) -> tuple[int, bytes]:
        from a2a_serverless.protocol.error_bodies import json_rpc_failure

        return status, json_rpc_failure(call_id, error, version)

    return failure


CARD: Final = ".well-known/agent-card.json"
OLD_CARD: Final = ".well-known/agent.json"
MAX_AGE_S: Final = 300

# The name of the document at each path, or of the agent's document. Clients from before 0.3 read ``agent.json``.
DOCUMENTS: Final[Mapping[str, Callable[[str], str]]] = {
    "/agents": lambda _: AGENTS,
    "/.well-known/jwks.json": lambda _: JWKS,
    "/.well-known/ai-catalog.json": lambda _: CATALOG,
    f"/{CARD}": card_name,
    f"/{OLD_CARD}": card_name,
    f"/{{agent}}/{CARD}": card_name,
    f"/{{agent}}/{OLD_CARD}": card_name,
    f"/legacy/{{agent}}/{OLD_CARD}": legacy_card_name,
}


def serve_document(name_of: Callable[[str], str], api: Api, request: HttpRequest) -> Response:
    """A document with cache headers (specification 8.6), or 304 if the client has the current version.

    The card at the root is the first agent's.
    """
    agent = request.params.get("agent") or next(iter(api.agents), "")
    if "agent" in request.params and agent not in api.agents:
        raise no_such_path()
    if request.verb not in {"GET", "HEAD"}:
        raise HttpMethodNotAllowed(("GET", "HEAD"))
    name = name_of(agent)
    document = api.service.publications.get_document(name)
    if not isinstance(document, dict):
        raise MethodNotFound("This document has not been published yet. The rotator function does it.")
    max_age_s = api.jwks_max_age_s if name == JWKS else MAX_AGE_S
    tag, last_modified = str(document["etag"]), str(document["modified"])
    headers = {"cache-control": f"public, max-age={max_age_s}", "etag": tag, "last-modified": last_modified}
    content_type = CATALOG_MEDIA_TYPE if name == CATALOG else JSON
    if is_current(request.headers, tag, last_modified):
        return Response(status_code=304, headers=headers | {"content-type": content_type})
    return json_answer(str(document["body"]).encode(), headers, content_type)


def answer_callback(api: Api, request: HttpRequest) -> Response:
    """Resumes the task whose call the path names; echoes a challenge.

    Raises TaskNotFound for a forged request, ContentTypeNotSupported or ContentEncodingNotSupported for a
    genuine request that is not JSON.
    """
    if request.verb != "POST":
        raise no_such_path()
    from a2a_serverless.ports.agents import IncomingNotification
    from a2a_serverless.protocol.additions import CallbackResponse
    from a2a_serverless.services.callbacks import handle_callback

    def check_body(body: bytes) -> None:
        request.check_content()
        loads(body)

    news = IncomingNotification(request.headers, request.body)
    challenge = handle_callback(api.service, api.verifier, request.params["id"], news, check_body)
    return json_answer(CallbackResponse(challenge=challenge).json_bytes(), {})


def answer_event(api: Api, request: HttpRequest) -> Response:
    """Takes an event for a task: a POST of any media type. 409 answers another body than the one that was taken."""
    from a2a_serverless.domain.outside_events import EVENT_LIMIT
    from a2a_serverless.services.callbacks import find_event_address, store_event

    if request.verb != "POST":
        raise no_such_path()
    address = find_event_address(api.service, request.params["id"])
    if len(request.body) > EVENT_LIMIT:
        raise BodyTooLarge(f"The body has more than {EVENT_LIMIT} bytes.")
    if not store_event(api.service, address, request.headers, request.body):
        raise EventAlreadyTaken
    return json_answer(b"{}")


def show_console(api: Api, request: HttpRequest) -> Response:
    """The console: its page, a file of the page, or what the page asks. Raises MethodNotFound if the console is off."""
    if not api.console:
        raise no_such_path()
    if request.verb not in {"GET", "HEAD"}:
        raise HttpMethodNotAllowed(("GET", "HEAD"))
    from a2a_serverless.http.console import answer

    return answer(api, api.console, request)


def make_asgi_app(api: Api) -> ASGIApp:
    """The application with its routes and middleware."""
    rest = LazyRest()
    routes = [
        *(Route(path, Responder(partial(serve_document, name))) for path, name in DOCUMENTS.items()),
        Route("/openapi.json", rest),
        Route("/{agent}", Responder(answer_call)),
        Route("/", Responder(show_console)),
        Route("/-/{file}", Responder(show_console)),
        Route("/callbacks/{id}", Responder(answer_callback)),
        Route("/events/{id}", Responder(answer_event)),
        Mount("/", rest),
    ]
    app = ErrorMiddleware(Router(routes, redirect_slashes=False), api)
    if not api.origins:
        return app
    from a2a_serverless.http.cors import Cors

    return Cors(app, api.origins)


class ErrorMiddleware:
    """Middleware: every request gets an answer. A server error is logged; its text does not leave the application.

    The routes below get the path as in the request line: percent-encoded, so that a name may have a slash in it, and
    without the path at which another application has mounted this one.
    """

    def __init__(self, app: ASGIApp, api: Api) -> None:
        self._app, self._api = app, api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def forward(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        if scope["type"] == "http":
            path = encoded_path(scope)
            scope = {**scope, "path": path, "raw_path": path.encode(), "root_path": "", API: self._api}
        try:
            await self._app(scope, receive, forward)
        except ClientDisconnect:
            logger.info("the client has gone")
        except Exception as error:  # noqa: BLE001 - nothing but an answer may leave the application
            log_error(error, self._api.service.metrics)
            if has_begun:  # the client has the status: only breaking off tells it that the answer is not whole
                raise InvocationFailed(error) from None
            await _refusal(scope, error)(scope, receive, send)


def _refusal(scope: Scope, error: Exception) -> Response:
    """The answer for an error, in HTTP+JSON and in the version of the path."""
    from a2a_serverless.protocol.error_bodies import http_failure

    words = scope["path"].strip("/").split("/")
    version: ProtocolVersion = "0.3" if words[0] == "legacy" or words[1:2] == ["v1"] else "1.0"
    return error_answer(error, lambda error: http_failure(error, version), read_request(scope).answer_type)


class LazyRest:
    """The routes that FastAPI serves, made at the first request for one of them."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from a2a_serverless.http.rest import make_rest

        await make_rest()(scope, receive, send)
