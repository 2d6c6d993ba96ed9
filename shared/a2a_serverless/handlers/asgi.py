"""FastAPI around the edge: the routes with their OpenAPI description, for uvicorn, and for Mangum on Lambda.

Every route passes its request unchanged to ``Edge.answer``: only ``wire`` decides what is accepted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from anyio import CancelScope, CapacityLimiter, to_thread
from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from starlette.datastructures import Headers
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect

from a2a_serverless.handlers.http_types import HttpRequest, encode_path
from a2a_serverless.handlers.lambda_proxy import BUFFERED_MS
from a2a_serverless.handlers.openapi import operation_object, path_of
from a2a_serverless.wire import rest

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from a2a_serverless.handlers.http import Edge
    from a2a_serverless.handlers.http_types import Frames

Endpoint = Callable[[Request], Awaitable[Response]]

_PUBLIC: Final = ("/agents", "/.well-known/jwks.json", "/{agent}/.well-known/agent-card.json")
_ALIASES: Final = ("/.well-known/agent-card.json", "/.well-known/agent.json", "/{agent}/.well-known/agent.json")
CALLS: Final = 200
BODY_S: Final = 30.0
_EVERY_VERB: Final = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1", "[::1]")

logger = logging.getLogger(__name__)


def make_asgi_app(edge: Edge, body_seconds: float = BODY_S) -> FastAPI:
    """Returns the ASGI application. A request whose body has not arrived after ``body_seconds`` gets 408."""
    app = FastAPI(title="A2A Serverless", version="1.0", docs_url=None, redoc_url=None, redirect_slashes=False)
    endpoint = _endpoint(edge, body_seconds)

    def add(path: str, verb: str, name: str, *, shown: bool = True, **said: object) -> None:
        app.add_api_route(
            path, endpoint, methods=[verb], name=name, operation_id=name, include_in_schema=shown, openapi_extra=said
        )

    for path in _PUBLIC:
        add(path, "GET", f"get {path}")
    for path in _ALIASES:
        add(path, "GET", f"get {path}", shown=False)
    add("/{agent}", "POST", "JSON-RPC")
    for route in rest.ROUTES:
        name = f"{route.operation} {route.version} {route.verb}"
        add(path_of(route), route.verb, name, **operation_object(route, edge.agents))
    app.add_route("/{path:path}", endpoint, methods=_EVERY_VERB, include_in_schema=False)
    return app


def refuse_foreign_pages(web: FastAPI, host: str, origins: tuple[str, ...]) -> FastAPI:
    """Restricts the application for a developer's machine: ``Host`` has to be a loopback name or ``host``.

    Requests of browser pages are refused unless their origin is our own or among ``origins`` (``CorsOrigins``).
    """
    web.add_middleware(RefuseForeignPages, origins=origins)
    web.add_middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, host], www_redirect=False)
    return web


class RefuseForeignPages:
    """Middleware: answers 403 to requests of pages of other origins (``Origin``, and Fetch Metadata without it)."""

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._foreign(Headers(scope=scope)):
            refusal = PlainTextResponse("Pages of other origins are not served: see CorsOrigins.\n", 403)
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _foreign(self, headers: Headers) -> bool:
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}
        return origin != f"http://{headers.get('host')}" and not {"*", origin} & set(self._origins)


class _Streamed(StreamingResponse):
    """Closes its stream in every case, also if the client disconnected before the first byte."""

    def __init__(self, frames: Frames, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(frames, status, headers)
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            with CancelScope(shield=True):
                await self._frames.aclose()


def _endpoint(edge: Edge, body_seconds: float) -> Endpoint:
    limiter = CapacityLimiter(CALLS)  # a blocking send holds its thread while it waits

    async def answer(request: Request) -> Response:
        try:
            async with asyncio.timeout(body_seconds):
                body = await _read(request, edge.limits.body)
        except TimeoutError:
            logger.warning("request refused: its body did not arrive in time", extra={"seconds": body_seconds})
            return PlainTextResponse("The body did not arrive in time.\n", 408, {"connection": "close"})
        except ClientDisconnect:
            logger.warning("request dropped: its client left before the body was there")
            return Response(status_code=400)  # the client does not read it
        given = HttpRequest(
            verb=request.method,
            path=_path(request),
            headers=dict(request.headers),
            query=tuple(request.query_params.multi_items()),
            body=body,
            time_left_ms=_time_left(request),
        )
        answered = await to_thread.run_sync(edge.answer, given, limiter=limiter)
        if answered.stream is not None:
            return _Streamed(answered.stream, answered.status, dict(answered.headers))
        return Response(answered.body, answered.status, dict(answered.headers))

    return answer


def _path(request: Request) -> str:
    """The path as in the request line. Mangum has only the decoded one, which is encoded again."""
    raw = request.scope.get("raw_path")
    return raw.decode("ascii", "replace").partition("?")[0] if raw else encode_path(request.scope["path"])


def _time_left(request: Request) -> int | None:
    """How many ms are left, from Mangum's Lambda context; None for uvicorn, which has no limit."""
    context = request.scope.get("aws.context")
    return context and min(context.get_remaining_time_in_millis(), BUFFERED_MS)


async def _read(request: Request, limit: int) -> bytes:
    """Reads the body, and stops when it exceeds the limit: the edge then refuses it as too large."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            break
    return bytes(body)
