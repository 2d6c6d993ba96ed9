"""Pages of other origins may call us from a browser (the Fetch standard's CORS) if they are set; off by default.

Callers sign in by a header and never by a cookie, so credentials are not asked for. Agents' paths and public documents
take part; the operator's API and the callbacks do not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from a2a_serverless.handlers.http_types import HttpRequest, HttpResponse

ANY: Final = "*"
MAX_AGE_S: Final = 7200
ALLOWED_HEADERS: Final = (
    "authorization, content-type, accept, a2a-version, a2a-extensions, x-a2a-extensions, x-api-key, last-event-id, "
    "if-none-match, traceparent"
)
# API Gateway's REST APIs give WWW-Authenticate another name.
EXPOSED_HEADERS: Final = (
    "a2a-extensions, x-a2a-extensions, www-authenticate, x-amzn-remapped-www-authenticate, retry-after, etag, "
    "last-modified, allow"
)


def preflight(request: HttpRequest, origins: tuple[str, ...]) -> HttpResponse | None:
    """The answer to a browser's question whether it may ask; None when it is no such question, or nobody may."""
    asked = request.verb == "OPTIONS" and "access-control-request-method" in request.headers
    if not (asked and _named(request, origins)):
        return None
    allowed = {"access-control-allow-methods": "GET, POST, DELETE", "access-control-allow-headers": ALLOWED_HEADERS}
    return HttpResponse(204, headers=allowed | {"access-control-max-age": str(MAX_AGE_S)})


def add_cors_headers(answer: HttpResponse, request: HttpRequest, origins: tuple[str, ...]) -> HttpResponse:
    """The answer as the page that asked may read it. Caches are told that it depends on who asks."""
    if not origins:
        return answer
    varies = {} if ANY in origins else {"vary": "Origin"}
    origin = _named(request, origins)
    told = {"access-control-allow-origin": origin, "access-control-expose-headers": EXPOSED_HEADERS} if origin else {}
    return replace(answer, headers={**answer.headers, **varies, **told})


def _named(request: HttpRequest, origins: tuple[str, ...]) -> str:
    """What the page's origin is told: itself, ``*`` where all are let in, "" where it is not."""
    origin = request.headers.get("origin", "")
    if not origin:
        return ""
    return ANY if ANY in origins else origin if origin in origins else ""
