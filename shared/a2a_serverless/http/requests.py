"""An HTTP request as the endpoints read it. One that ASGI describes comes from uvicorn, API Gateway or a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote

from starlette.requests import ClientDisconnect

from a2a_serverless.domain.errors import ContentTypeNotSupported
from a2a_serverless.protocol import sse

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

JSON: Final = "application/json"
A2A_JSON: Final = "application/a2a+json"
TIME_LEFT: Final = "a2a.time_left_ms"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request. ``path`` is percent-encoded and without the query; header names are in lower case.

    ``params`` are the path's parameters, decoded. ``time_left_ms`` is how long the platform waits for the answer; None
    is without a limit.
    """

    verb: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    time_left_ms: int | None = None
    params: Mapping[str, str] = field(default_factory=dict)

    @property
    def answer_type(self) -> str:
        """The media type of the answer: what is accepted by name, else what was sent, else ``application/json``."""
        wanted = [one for one in _accepted(self) if one in {JSON, A2A_JSON}]
        sent = _essence(self.headers.get("content-type", ""))
        return wanted[0] if wanted else sent if sent == A2A_JSON else JSON

    @property
    def only_streams(self) -> bool:
        """Whether the client accepts nothing but a stream of events, and would not read an error in JSON."""
        wanted = set(_accepted(self))
        return sse.CONTENT_TYPE in wanted and wanted.isdisjoint({JSON, A2A_JSON, "application/*", "*/*"})

    def check_content_type(self) -> None:
        """Raises ContentTypeNotSupported if the body is said to be anything but JSON."""
        sent = self.headers.get("content-type")
        if sent is not None and _essence(sent) not in {JSON, A2A_JSON}:
            raise ContentTypeNotSupported(f"Send {JSON} or {A2A_JSON}.")


def _accepted(request: HttpRequest) -> list[str]:
    return [_essence(one) for one in request.headers.get("accept", "").split(",")]


def _essence(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


def read_request(scope: Scope, body: bytes = b"") -> HttpRequest:
    """The request that an ASGI scope describes. Of several headers of one name, the first counts."""
    return HttpRequest(
        verb=scope["method"],
        path=encoded_path(scope),
        headers={name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])},
        query=tuple(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)),
        body=body,
        time_left_ms=scope.get(TIME_LEFT),
        params=scope.get("path_params", {}),
    )


def encoded_path(scope: Scope) -> str:
    """The path as in the request line, without slashes at its end. Where there is only the decoded one, encodes it."""
    raw = scope.get("raw_path")
    path = raw.decode("ascii", "replace").partition("?")[0] if raw else quote(scope["path"], safe="/:@!$&'()*+,;=")
    return "/" + path.strip("/")


async def read_body(receive: Receive, limit: int) -> bytes:
    """Reads a body, and stops when it exceeds the limit: whoever parses it then refuses it as too large."""
    body, more = bytearray(), True
    while more and len(body) <= limit:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return bytes(body)
