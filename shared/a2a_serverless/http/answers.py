"""What leaves the application: JSON, streams of events, and errors in the form of the binding."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Final

from anyio import CancelScope
from starlette.responses import Response, StreamingResponse

from a2a_serverless.domain.error_fields import safe_error_fields
from a2a_serverless.domain.errors import A2AError
from a2a_serverless.domain.trace import trace_id
from a2a_serverless.http.exchange import ASGI
from a2a_serverless.http.requests import JSON
from a2a_serverless.protocol import sse
from a2a_serverless.protocol.errors import VerbNotAllowed, code_of, headers_of, status_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Receive, Scope, Send

    from a2a_serverless.services.tasks import TaskService

    Failure = Callable[[Exception], tuple[int, bytes]]

logger = logging.getLogger(__name__)

UNCACHED: Final = {"cache-control": "no-store"}
STREAM_HEADERS: Final = UNCACHED | {"content-type": sse.CONTENT_TYPE, "x-accel-buffering": "no"}


def json_answer(body: bytes, headers: Mapping[str, str] = UNCACHED, content_type: str = JSON) -> Response:
    """An answer that holds JSON."""
    return Response(body, headers={"content-type": content_type, **headers})


class EventStream(StreamingResponse):
    """A stream of events. Whatever happens, ``close`` is awaited in the end, also if nothing of it was read."""

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
            if scope.get("asgi") is ASGI:
                await self.stream_response(send)
            else:  # whether the client has gone is for Starlette to ask
                await super().__call__(scope, receive, send)
        finally:
            if not isinstance(sys.exception(), GeneratorExit):  # dropped: nothing can be awaited any more
                with CancelScope(shield=True):
                    await self._end()

    async def _end(self) -> None:
        try:
            await self._frames.aclose()
            if self._close:
                await self._close()
        except Exception as error:  # noqa: BLE001 - what was streamed is whole
            logger.error("stream not closed", extra=safe_error_fields(error))


def error_answer(error: Exception, failure: Failure, content_type: str = JSON, *, in_stream: bool = False) -> Response:
    """The answer for an error. Errors with an HTTP status in every binding are never sent in a stream."""
    status, body = failure(error)
    if in_stream and not code_of(error).by_http:
        return EventStream(_single_frame(sse.frame(body)), headers_of(error))
    headers = UNCACHED | {"content-type": content_type} | headers_of(error)
    if isinstance(error, VerbNotAllowed):
        headers["allow"] = ", ".join(error.allowed)
    return Response(body, status_of(error, status), headers)


async def _single_frame(frame: bytes) -> AsyncGenerator[bytes]:
    yield frame


def log_error(error: Exception, service: TaskService) -> Exception:
    """Returns the error; logs and counts it if it is a server error, whose reason only the log shows."""
    if not isinstance(error, A2AError):
        logger.error("request failed", extra=safe_error_fields(error) | {"trace": trace_id(service.trace)})
        service.metrics.count("ServerErrors")
    return error
