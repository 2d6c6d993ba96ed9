"""The handler of the api function for API Gateway's REST proxy events, by Mangum's classes.

An exchange runs the application as far as its next message when its reader wants that message, by the methods of
coroutines (``send``, ``throw``: Python's language reference, 3.4). An event loop is needed only while an answer
streams: until then nothing in the application waits, because on Lambda its endpoints block.

Mangum runs the application in an event loop. An inline agent could not run its own loop in there: asyncio allows
one running loop for each thread (docs/adr/0012-one-asgi-application.md).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Generator, Mapping
from contextlib import suppress
from types import coroutine
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

from anyio import BrokenResourceError, EndOfStream
from mangum.handlers import APIGateway
from starlette.requests import ClientDisconnect

from a2a_serverless.domain.errors import safe_error_fields
from a2a_serverless.domain.publications import CATALOG_MEDIA_TYPE
from a2a_serverless.http.messages import A2A_JSON, EXCHANGE, JSON, TIME_LEFT
from a2a_serverless.protocol import sse

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext
    from mangum.types import LambdaConfig
    from starlette.types import ASGIApp, Message, Scope

    from a2a_serverless.adapters.invocations import Event, Handler

logger = logging.getLogger(__name__)

EVENTS: Final = (b"content-type", sse.CONTENT_TYPE.encode())
# From ASGI 2.4 on, sending to a disconnected client raises. So Starlette starts no task that waits for a disconnect.
SERVER: Final = {"asgi": {"version": "3.0", "spec_version": "2.4"}, "extensions": {EXCHANGE: {}}}

NEXT_READ: Final = object()  # after each message the application waits for this value: the reader wants the next one


class Exchange:
    """A request and its answer. Status and headers are set when the exchange is made.

    ``read`` the body, or iterate over it if it ``streams``; close an exchange whose body was not read to its end.
    """

    def __init__(self, app: ASGIApp, scope: Scope, body: bytes) -> None:
        self._unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        self._message: Message = {}
        self._is_closed = self._is_over = False
        self._application: Any = app({**scope, **SERVER}, self._receive, cast("Any", self._send))
        start = self._next_now()
        self.status: int = start["status"]
        self.headers: list[tuple[bytes, bytes]] = start["headers"]
        self.streams = EVENTS in self.headers

    def read(self) -> bytes:
        """The whole body of an answer that does not stream."""
        return b"".join(message.get("body", b"") for message in iter(self._next_now, None))

    def __aiter__(self) -> Exchange:
        return self

    async def __anext__(self) -> bytes:
        while (message := await self._next()) is not None:
            if message.get("body"):
                body: bytes = message["body"]
                return body
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Ends the application, as after the client's disconnect. Idempotent."""
        self._is_closed = True
        with suppress(ClientDisconnect):
            while not self._is_over:
                await self._next()

    async def _receive(self) -> Message:
        return self._unread.pop() if self._unread else {"type": "http.disconnect"}

    @coroutine
    def _send(self, message: Message) -> Generator[object]:
        self._message = message
        yield NEXT_READ
        if self._is_closed:
            raise ClientDisconnect

    @coroutine
    def _next(self) -> Generator[Any, Any, Any]:
        """Runs the application until it sends a message, and returns the message; None at the application's end."""
        if self._is_over:
            return None
        try:
            waits_for = self._application.send(None)
            while waits_for is not NEXT_READ:
                try:
                    yield waits_for
                except BaseException as error:  # noqa: BLE001 - a cancellation is the application's, too
                    waits_for = self._application.throw(error)
                else:
                    waits_for = self._application.send(None)
        except StopIteration:
            self._is_over = True
            return None
        except BaseException:
            self._is_over = True
            raise
        return self._message

    def _next_now(self) -> Any:  # noqa: ANN401 - a message, or None
        step: Any = self._next()
        try:
            step.send(None)
        except StopIteration as end:
            return end.value
        raise RuntimeError("The application waits for something before it answers.")


# As uvicorn has it: an application that streams looks for the client's disconnect itself.
AS_SERVER: Final = {"asgi": {"version": "3.0", "spec_version": "2.3"}}


class HostedExchange(Exchange):
    """A request and its answer by an application of others, in an event loop. It always ``streams``.

    The application may wait for anything before it answers, and its middlewares start tasks. So it is a task of the
    loop from its beginning to its end.
    """

    def __init__(self, app: ASGIApp, scope: Scope, body: bytes, loop: asyncio.AbstractEventLoop) -> None:
        from anyio import create_memory_object_stream  # agents alone do not pay for it

        self._unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        self._disconnected, self._is_complete = asyncio.Event(), False
        self._sent, self._messages = create_memory_object_stream[Any](0)
        self._task = loop.create_task(self._serve(app, {**scope, **AS_SERVER}))
        try:
            start = loop.run_until_complete(self._next())
        except BaseException:
            self._messages.close()
            raise
        if start is None:
            self._messages.close()
            raise RuntimeError("The application has not answered.")
        self.status = start["status"]
        self.headers = [*start.get("headers", ())]
        self.streams = True

    async def aclose(self) -> None:
        """Ends the application, as after the client's disconnect. Idempotent."""
        self._disconnected.set()
        self._messages.close()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)  # an error that nobody has read is logged already

    async def _serve(self, app: ASGIApp, scope: Scope) -> None:
        async with self._sent:
            try:
                await app(scope, self._receive, self._sent.send)
            except BrokenResourceError:
                logger.info("the client has gone")
            except Exception as error:
                logger.error("application failed", extra=safe_error_fields(error))
                if not self._is_complete:  # the client has to see that the answer is not whole
                    raise

    async def _receive(self) -> Message:
        if not self._unread:
            await self._disconnected.wait()
            return {"type": "http.disconnect"}
        return self._unread.pop()

    async def _next(self) -> Message | None:  # type: ignore[override] # theirs is a generator's
        """The next message; None at the end. Raises what the application raises before that."""
        try:
            message: Message = await self._messages.receive()
        except EndOfStream:
            await self._task
            return None
        self._is_complete = message["type"] == "http.response.body" and not message.get("more_body")
        return message


# Media types that are sent as text; others would be sent in base64, which API Gateway does not decode here.
TEXT: Final = ["text/", JSON, A2A_JSON, CATALOG_MEDIA_TYPE]
CONFIG: Final[LambdaConfig] = {"api_gateway_base_path": "/", "text_mime_types": TEXT, "exclude_headers": []}
BUFFERED_MS: Final = 29_000  # how long API Gateway waits for an answer that is not streamed
SECURE: Final = (b"strict-transport-security", b"max-age=31536000")  # API Gateway speaks TLS only (specification 13.4)


class NotHttp(ValueError):
    """The event is not a REST proxy event: a schedule, a queue message, another kind of HTTP event, a console test."""


def make_gateway_handler(app: ASGIApp, loop: asyncio.AbstractEventLoop | None = None) -> Handler:
    """Returns a Lambda handler for proxy integrations. It collects a stream before it answers.

    With a ``loop`` the application runs in it.
    """

    def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
        time_left_ms = min(context.get_remaining_time_in_millis(), BUFFERED_MS)
        scope = proxy_scope(proxy_event(event), context, time_left_ms)
        exchange = open_exchange(app, scope, proxy_body(event), loop)
        run = loop.run_until_complete if loop else asyncio.run
        body = run(_collect(exchange)) if exchange.streams else exchange.read()
        answer: Any = {"status": exchange.status, "headers": [*exchange.headers, SECURE], "body": body}
        return APIGateway(dict(event), cast("Any", context), CONFIG)(answer)

    return handler


def open_exchange(app: ASGIApp, scope: Scope, body: bytes, loop: asyncio.AbstractEventLoop | None) -> Exchange:
    """Begins an exchange: in the loop, if there is one."""
    return HostedExchange(app, scope, body, loop) if loop else Exchange(app, scope, body)


def proxy_scope(event: Event, context: LambdaContext | None, time_left_ms: int) -> Scope:
    """The ASGI scope of a proxy event. Several headers of one name are joined by a comma (RFC 9110, 5.3)."""
    scope = APIGateway(dict(event), cast("Any", context), CONFIG).scope
    # API Gateway passes the path as the client sent it. Mangum decodes it, and a name may have an encoded slash in it.
    raw_path = quote(event["path"], safe="/:@!$&'()*+,;=%").encode()
    return {**scope, "raw_path": raw_path, TIME_LEFT: time_left_ms}


def proxy_event(event: object) -> Event:
    """Returns the event; raises NotHttp if it is no event of API Gateway."""
    if not (isinstance(event, Mapping) and APIGateway.infer(cast("Any", event), cast("Any", None), CONFIG)):
        raise NotHttp("This function answers proxy events of API Gateway's REST APIs, and this event is none.")
    return event


async def _collect(exchange: Exchange) -> bytes:
    try:
        return b"".join([frame async for frame in exchange])
    finally:
        await exchange.aclose()


def proxy_body(event: Event) -> bytes:
    """The body of a proxy event; empty if its base64 is invalid."""
    body = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return str(body).encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(body)
    except (binascii.Error, ValueError):
        return b""
