"""One request to an ASGI application, which runs as far as its next message whenever that is asked for.

An event loop is needed only while an answer streams: until then nothing in the application waits, because on Lambda its
endpoints block. So an answer costs no loop and no task, and an inline agent may run a loop of its own.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from types import coroutine
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import ClientDisconnect

from a2a_serverless.protocol import sse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Scope

ASGI: Final = {"version": "3.0", "spec_version": "2.4"}  # by which an application knows that an exchange runs it
EVENTS: Final = (b"content-type", sse.CONTENT_TYPE.encode())


class Sent:
    """What the application waits for after it has sent a message: that the next one is asked for."""

    def __await__(self) -> Generator[Sent]:
        yield self


SENT: Final = Sent()


class Exchange:
    """A request and its answer. Status and headers are there at once.

    ``read`` the body, or iterate over it if it ``streams``; close what has not been read to its end.
    """

    def __init__(self, app: ASGIApp, scope: Scope, body: bytes) -> None:
        self._unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        self._message: Message = {}
        self._is_closed = self._is_over = False
        self._application: Any = app({**scope, "asgi": ASGI}, self._receive, self._send)
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
        """Lets the application end, as when the client has gone. Idempotent."""
        self._is_closed = True
        with suppress(ClientDisconnect):
            while not self._is_over:
                await self._next()

    async def _receive(self) -> Message:
        return self._unread.pop() if self._unread else {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self._message = message
        await SENT
        if self._is_closed:
            raise ClientDisconnect

    @coroutine
    def _next(self) -> Generator[Any, Any, Any]:
        """Runs the application until it sends a message, which is returned; None at its end."""
        if self._is_over:
            return None
        try:
            waits_for = self._application.send(None)
            while waits_for is not SENT:
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
        except StopIteration as done:
            return done.value
        raise RuntimeError("The application waits for something before it answers.")
