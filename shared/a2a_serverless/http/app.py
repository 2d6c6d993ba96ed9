"""The api as one ASGI application, for API Gateway, uvicorn and tests.

JSON-RPC, public documents and callbacks need Starlette only. All other routes are FastAPI's, which is imported when the
first such request comes: a cold start that serves JSON-RPC does not pay for it.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect
from starlette.routing import Mount, Route, Router

from a2a_serverless.handlers.invocations import InvocationFailed
from a2a_serverless.http.answers import error_answer, log_error
from a2a_serverless.http.api import Responder
from a2a_serverless.http.callbacks import answer_callback
from a2a_serverless.http.documents import DOCUMENTS, serve_document
from a2a_serverless.http.jsonrpc import answer_call
from a2a_serverless.http.requests import encoded_path, read_request
from a2a_serverless.protocol.error_bodies import http_failure

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from a2a_serverless.domain.push import WireVersion
    from a2a_serverless.http.api import Api

logger = logging.getLogger(__name__)


def make_asgi_app(api: Api) -> ASGIApp:
    """The application."""
    rest = Late(api)
    routes = [
        Route("/agents", Responder(api, partial(serve_document, DOCUMENTS["/agents"]))),
        Route("/docs", rest),
        Route("/openapi.json", rest),
        Route("/{agent}", Responder(api, answer_call)),
        Route("/callbacks/{id}", Responder(api, answer_callback)),
        *(Route(path, Responder(api, partial(serve_document, name))) for path, name in DOCUMENTS.items()),
        Mount("/", rest),
    ]
    guarded = Guard(Router(routes, redirect_slashes=False), api)
    if not api.origins:
        return guarded
    from a2a_serverless.http.cors import Cors

    return Cors(guarded, api.origins)


class Guard:
    """Middleware: every request gets an answer. A server error is logged; its text does not leave the application.

    The routes below see the path as in the request line: percent-encoded, so that a name may have a slash in it.
    """

    def __init__(self, app: ASGIApp, api: Api) -> None:
        self._app, self._api = app, api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        if scope["type"] == "http":
            scope = {**scope, "path": encoded_path(scope)}
        try:
            await self._app(scope, receive, noted)
        except ClientDisconnect:
            logger.info("the client has gone")
        except Exception as error:  # noqa: BLE001 - nothing but an answer may leave the application
            log_error(error, self._api.service)
            if begun:
                raise InvocationFailed(error) from None
            await _refusal(scope, error)(scope, receive, send)


def _refusal(scope: Scope, error: Exception) -> Response:
    """The answer for an error, in HTTP+JSON and in the version that the path belongs to."""
    words = scope["path"].strip("/").split("/")
    version: WireVersion = "0.3" if words[0] == "legacy" or words[1:2] == ["v1"] else "1.0"
    return error_answer(error, lambda error: http_failure(error, version), read_request(scope).answer_type)


class Late:
    """The routes that FastAPI serves, made when the first request for one comes."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            from a2a_serverless.http.rest import make_rest

            self._app = make_rest(self._api)
        await self._app(scope, receive, send)
