"""Around the application on a developer's machine, which uvicorn serves: what API Gateway does in AWS, and more."""

from __future__ import annotations

import asyncio
import logging
from importlib.metadata import metadata
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse

from a2a_serverless.domain.loopback import LOOPBACK_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

    from a2a_serverless.ports.tracing import Tracer

logger = logging.getLogger(__name__)


def find_documents(environment: Mapping[str, str], package: str = "a2a-serverless") -> str:
    """The URL of the documents: ``DOCUMENTS_URL``, or as the package's metadata has it; "" if neither does."""
    urls = dict(one.split(", ", 1) for one in metadata(package).get_all("Project-URL", []))
    return environment.get("DOCUMENTS_URL") or urls.get("Documentation", "")


def flush_after(app: ASGIApp, tracer: Tracer) -> ASGIApp:
    """Middleware: exports spans after each request, if they are recorded."""
    if not tracer.is_on:
        return app

    async def flushed(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        finally:
            await asyncio.to_thread(tracer.flush)

    return flushed


def refuse_foreign_pages(app: ASGIApp, host: str, origins: tuple[str, ...]) -> ASGIApp:
    """Restricts the application for a developer's machine: ``Host`` has to be a loopback name or ``host``.

    Requests of browser pages are refused unless their origin is our own or among ``origins`` (``CorsOrigins``).
    """
    hosts = [*LOOPBACK_NAMES, "[::1]", host]
    return TrustedHostMiddleware(RefuseForeignPages(app, origins), allowed_hosts=hosts, www_redirect=False)


class RefuseForeignPages:
    """Middleware: answers 403 to requests of pages of other origins (``Origin``, and Fetch Metadata without it).

    What another program opens in the browser is read only, and so is a link of a page on this machine.
    """

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._foreign(scope["method"], Headers(scope=scope)):
            refusal = PlainTextResponse("Pages of other origins are not served: see CorsOrigins.\n", 403)
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _foreign(self, method: str, headers: Headers) -> bool:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is None:
            opens = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
            # an address that was typed, a link elsewhere, or one of the inbox
            is_opening = method in {"GET", "HEAD"} and (site == "none" or (site == "same-site" and opens))
            return site is not None and site != "same-origin" and not is_opening
        return origin != f"http://{headers.get('host')}" and not {"*", origin} & set(self._origins)
