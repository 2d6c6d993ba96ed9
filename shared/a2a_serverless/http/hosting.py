"""An application of others where there is no server: its lifespan, and on Lambda its requests, in one event loop.

It may wait for anything before it answers, and its middlewares start tasks. So each request is a task of the loop from
its beginning to its end, unlike an ``Exchange`` of ``lambda_proxy.py``, which runs the agents alone.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from anyio import BrokenResourceError, EndOfStream, create_memory_object_stream

from a2a_serverless.domain.errors import safe_error_fields
from a2a_serverless.http.lambda_proxy import Exchange

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# As uvicorn has it: an application that streams looks for the client's disconnect itself.
SERVER: Final = {"asgi": {"version": "3.0", "spec_version": "2.3"}}

logger = logging.getLogger(__name__)


class Hosted:
    """An application and its lifespan (ASGI's lifespan protocol, 2.0). Requests get the lifespan's state."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._state = app, dict[str, Any]()
        self._events, self._has_started = asyncio.Queue[str](), asyncio.Event()
        self._lifespan: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begins the lifespan. Raises what the application raises."""
        scope = {"type": "lifespan", "state": self._state, **SERVER}
        self._events.put_nowait("lifespan.startup")
        self._lifespan = asyncio.ensure_future(self._run(scope))
        started = asyncio.ensure_future(self._has_started.wait())
        await asyncio.wait((self._lifespan, started), return_when=asyncio.FIRST_COMPLETED)
        if not self._has_started.is_set():
            started.cancel()
            await self._lifespan
            raise RuntimeError("The application's lifespan has ended before it began.")

    async def stop(self) -> None:
        """Ends the lifespan. Raises what the application raises."""
        if self._lifespan:
            self._events.put_nowait("lifespan.shutdown")
            await self._lifespan

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "state": {**self._state}}, receive, send)

    async def _run(self, scope: Scope) -> None:
        await self._app(scope, self._receive, self._send)

    async def _receive(self) -> Message:
        return {"type": await self._events.get()}

    async def _send(self, message: Message) -> None:
        if message["type"] == "lifespan.startup.complete":
            self._has_started.set()


class HostedExchange(Exchange):
    """A request and its answer, in an event loop. It always ``streams``: iterate over it, and close it."""

    def __init__(self, app: ASGIApp, scope: Scope, body: bytes, loop: asyncio.AbstractEventLoop) -> None:
        self._unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        self._disconnected, self._is_complete = asyncio.Event(), False
        self._sent, self._messages = create_memory_object_stream[Any](0)
        self._task = loop.create_task(self._serve(app, {**scope, **SERVER}))
        start = loop.run_until_complete(self._next())
        if start is None:
            raise RuntimeError("The application has not answered.")
        self.status = start["status"]
        self.headers = [*start["headers"]]
        self.streams = True

    async def aclose(self) -> None:
        """Ends the application, as after the client's disconnect. Idempotent."""
        self._disconnected.set()
        self._messages.close()
        self._task.cancel()
        await asyncio.wait([self._task])

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
