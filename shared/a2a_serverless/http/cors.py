"""CORS (the Fetch standard): lets browser pages of the configured origins call us; off by default.

Callers authenticate by a header and never by a cookie, so credentials are not allowed. CORS holds for agents' paths and
public documents, not for the callbacks. Starlette's middleware is not used: it answers 400 to preflights of other
origins, and to preflights that ask for other headers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

ANY: Final = "*"
MAX_AGE_S: Final = 7200
ALLOWED_HEADERS: Final = (
    "authorization, content-type, accept, a2a-version, a2a-extensions, x-a2a-extensions, x-api-key, last-event-id, "
    "if-none-match, traceparent"
)
# API Gateway's REST APIs rename WWW-Authenticate.
EXPOSED_HEADERS: Final = (
    "a2a-extensions, x-a2a-extensions, www-authenticate, x-amzn-remapped-www-authenticate, retry-after, etag, "
    "last-modified, allow"
)
PREFLIGHT: Final = {
    "access-control-allow-methods": "GET, POST, DELETE",
    "access-control-allow-headers": ALLOWED_HEADERS,
    "access-control-max-age": str(MAX_AGE_S),
}
WITHOUT: Final = ("callbacks", "events")


class Cors:
    """Middleware: answers preflights of allowed origins, and names the origin in every other answer to it."""

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        self._app, self._origins = app, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].strip("/").partition("/")[0] in WITHOUT:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = self._find_origin(headers.get("origin", ""))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer_headers = MutableHeaders(scope=message)
                if ANY not in self._origins:
                    answer_headers["vary"] = "Origin"
                if origin:
                    answer_headers["access-control-allow-origin"] = origin
                    answer_headers["access-control-expose-headers"] = EXPOSED_HEADERS
            await send(message)

        is_preflight = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
        await (Response(status_code=204, headers=PREFLIGHT) if is_preflight and origin else self._app)(
            scope, receive, send_with_headers
        )

    def _find_origin(self, origin: str) -> str:
        """The allowed origin: the request's own, ``*`` if all are allowed, "" if it is not allowed."""
        if not origin:
            return ""
        return ANY if ANY in self._origins else origin if origin in self._origins else ""
