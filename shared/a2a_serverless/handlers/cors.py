"""CORS (the Fetch standard): lets browser pages of the configured origins call us; off by default.

Callers authenticate by a header and never by a cookie, so credentials are not allowed. CORS holds for agents' paths and
public documents, not for the operator's API and the callbacks.
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
# API Gateway's REST APIs rename WWW-Authenticate.
EXPOSED_HEADERS: Final = (
    "a2a-extensions, x-a2a-extensions, www-authenticate, x-amzn-remapped-www-authenticate, retry-after, etag, "
    "last-modified, allow"
)


def preflight(request: HttpRequest, origins: tuple[str, ...]) -> HttpResponse | None:
    """Returns the answer to a preflight request; None if it is no such request, or its origin is not allowed."""
    asked = request.verb == "OPTIONS" and "access-control-request-method" in request.headers
    if not (asked and _named(request, origins)):
        return None
    allowed = {"access-control-allow-methods": "GET, POST, DELETE", "access-control-allow-headers": ALLOWED_HEADERS}
    return HttpResponse(204, headers=allowed | {"access-control-max-age": str(MAX_AGE_S)})


def add_cors_headers(answer: HttpResponse, request: HttpRequest, origins: tuple[str, ...]) -> HttpResponse:
    """Returns the answer with CORS headers for an allowed origin, and ``Vary: Origin`` unless all are allowed."""
    if not origins:
        return answer
    varies = {} if ANY in origins else {"vary": "Origin"}
    origin = _named(request, origins)
    told = {"access-control-allow-origin": origin, "access-control-expose-headers": EXPOSED_HEADERS} if origin else {}
    return replace(answer, headers={**answer.headers, **varies, **told})


def _named(request: HttpRequest, origins: tuple[str, ...]) -> str:
    """Returns the allowed origin for the request: its own, ``*`` if all are allowed, "" if it is not."""
    origin = request.headers.get("origin", "")
    if not origin:
        return ""
    return ANY if ANY in origins else origin if origin in origins else ""
