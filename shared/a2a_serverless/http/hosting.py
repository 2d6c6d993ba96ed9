"""The lifespan of an application of others, for the servers of ours that have none: ``dev`` and the api function."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

ASGI: Final = {"asgi": {"version": "3.0", "spec_version": "2.0"}}


class Hosted:
    """An application and its lifespan (ASGI's lifespan protocol, 2.0). Requests get the lifespan's state."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._state = app, dict[str, Any]()
        self._events, self._has_started = asyncio.Queue[str](), asyncio.Event()
        self._lifespan: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begins the lifespan. Raises what the application raises."""
        scope = {"type": "lifespan", "state": self._state, **ASGI}
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
