"""HTTP requests for the endpoints, and the answers of the application: JSON, streams of events, errors.

An ASGI scope comes from uvicorn, API Gateway or a test. Errors are in the form of the binding.
"""

from __future__ import annotations

import logging
import re
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qsl, quote

from anyio import CancelScope
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from a2a_serverless.domain.errors import A2AError, ContentTypeNotSupported, safe_error_fields
from a2a_serverless.domain.trace import trace_id
from a2a_serverless.protocol import sse
from a2a_serverless.protocol.error_codes import ContentEncodingNotSupported, HttpMethodNotAllowed, code_of, headers_of
from a2a_serverless.protocol.operations import Operation

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from starlette.types import Receive, Scope, Send

    from a2a_serverless.ports.system import Metrics

    Failure = Callable[[Exception], tuple[int, bytes]]

logger = logging.getLogger(__name__)

JSON: Final = "application/json"
A2A_JSON: Final = "application/a2a+json"
TIME_LEFT: Final = "a2a.time_left_ms"
EXCHANGE: Final = "a2a.exchange"
"""The ASGI extension of a server that fetches each message, and whose ``send`` raises ClientDisconnect."""


class HttpRequest(NamedTuple):
    """A request. ``path`` is percent-encoded and without the query; header names are in lower case.

    ``params`` are the path's parameters, decoded. ``time_left_ms`` is how long the platform waits for the answer; None
    means without a limit.
    """

    verb: str
    path: str
    headers: Mapping[str, str] = MappingProxyType({})
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    time_left_ms: int | None = None
    params: Mapping[str, str] = MappingProxyType({})

    @property
    def answer_type(self) -> str:
        """The media type of the answer: the accepted one by name, else the body's, else ``application/json``."""
        modes = [mode for mode in _accepted(self) if mode in {JSON, A2A_JSON}]
        content_type = _essence(self.headers.get("content-type", ""))
        return modes[0] if modes else content_type if content_type == A2A_JSON else JSON

    @property
    def only_streams(self) -> bool:
        """Whether the client accepts nothing but a stream of events, and would not read an error in JSON."""
        modes = set(_accepted(self))
        return sse.CONTENT_TYPE in modes and modes.isdisjoint({JSON, A2A_JSON, "application/*", "*/*"})

    def check_content(self) -> None:
        """Raises ContentEncodingNotSupported for a coded body, ContentTypeNotSupported for another type than JSON."""
        if self.headers.get("content-encoding", "").strip().lower() not in {"", "identity"}:
            raise ContentEncodingNotSupported
        content_type = self.headers.get("content-type")
        if content_type is not None and _essence(content_type) not in {JSON, A2A_JSON}:
            raise ContentTypeNotSupported(f"Send {JSON} or {A2A_JSON}.")


def _accepted(request: HttpRequest) -> list[str]:
    return [_essence(mode) for mode in request.headers.get("accept", "").split(",")]


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
    """The path as in the request line, without slashes at its end; encoded if the scope has only the decoded path.

    Without the path at which another application has mounted this one (``root_path``). The colon of an operation may be
    encoded: some libraries encode it, and some gateways decode it.
    """
    raw = scope.get("raw_path")
    path = raw.decode("ascii", "replace").partition("?")[0] if raw else quote(scope["path"], safe=_SAFE)
    root = scope.get("root_path", "")
    # A proxy may have taken the other application's own root_path away from the path. Starlette's Mount tells it.
    for taken in (root, root.removeprefix(scope.get("app_root_path", ""))):
        mount = quote(taken, safe=_SAFE).rstrip("/")
        if mount and f"{path}/".startswith(f"{mount}/"):
            path = path.removeprefix(mount)
            break
    return "/" + _ENCODED_COLON.sub(":", path.strip("/"))


async def read_body(receive: Receive, limit: int) -> bytes:
    """Reads a body, and stops when it exceeds the limit: the parser then refuses it as too large."""
    body, more = bytearray(), True
    while more and len(body) <= limit:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return bytes(body)


_VERBS: Final = "|".join(operation.path.rpartition(":")[2] for operation in Operation if ":" in operation.path)
_ENCODED_COLON: Final = re.compile(rf"%3A(?=(?:{_VERBS})$)", re.IGNORECASE)
_SAFE: Final = "/:@!$&'()*+,;="
NO_STORE: Final = {"cache-control": "no-store"}
STREAM_HEADERS: Final = NO_STORE | {"content-type": sse.CONTENT_TYPE, "x-accel-buffering": "no"}


def json_answer(body: bytes, headers: Mapping[str, str] = NO_STORE, content_type: str = JSON) -> Response:
    """An answer with a JSON body."""
    return Response(body, headers={"content-type": content_type, **headers})


class EventStream(StreamingResponse):
    """A stream of events. At its end ``close`` is awaited, also after an error and if nothing was read."""

    def __init__(
        self,
        frames: AsyncGenerator[bytes],
        headers: Mapping[str, str],
        close: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        super().__init__(frames, headers={**STREAM_HEADERS, **headers})
        self._frames, self._close = frames, close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if EXCHANGE in scope.get("extensions", {}):
                await self.stream_response(send)  # Starlette would take an OSError of the frames for a lost client
            else:
                await super().__call__(scope, receive, send)
        finally:
            if not isinstance(sys.exception(), GeneratorExit):  # the generator was dropped: it cannot await any more
                with CancelScope(shield=True):
                    await self._end()

    async def _end(self) -> None:
        try:
            await self._frames.aclose()
            if self._close:
                await self._close()
        except Exception as error:  # noqa: BLE001 - the client has the whole stream
            logger.error("stream not closed", extra=safe_error_fields(error))


def error_answer(error: Exception, failure: Failure, content_type: str = JSON, *, in_stream: bool = False) -> Response:
    """The answer for an error. Errors with an HTTP status in every binding are never sent in a stream."""
    (status, body), code = failure(error), code_of(error)
    if in_stream and not code.by_http:
        return EventStream(_single_frame(sse.frame(body)), headers_of(error))
    headers = NO_STORE | {"content-type": content_type} | headers_of(error)
    if isinstance(error, HttpMethodNotAllowed):
        headers["allow"] = ", ".join(error.allowed)
    return Response(body, code.http if code.by_http else status, headers)


async def _single_frame(frame: bytes) -> AsyncGenerator[bytes]:
    yield frame


def log_error(error: Exception, metrics: Metrics, trace: str = "") -> Exception:
    """Returns the error; logs and counts it if it is a server error, whose reason only the log shows."""
    if not isinstance(error, A2AError):
        logger.error("request failed", extra=safe_error_fields(error) | {"trace": trace_id(trace)})
        metrics.count("ServerErrors")
    return error
