"""Serves an application by uvicorn on 127.0.0.1, on a developer's machine.

uvicorn has no time limit for the headers of a request. Here it is ``HEAD_S`` seconds; the application limits the body.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from a2a_serverless.domain.loopback import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp

HEAD_S: Final = 30.0
Listener: TypeAlias = socket.socket

logger = logging.getLogger("uvicorn.error")


class PortInUse(Exception):
    """Another program listens on the port."""

    def __init__(self, port: int, why: str) -> None:
        super().__init__(f"Port {port} on {LOOPBACK} cannot be used: {why}.")
        self.port = port


def listen(port: int) -> Listener:
    """A socket that listens on 127.0.0.1; port 0 picks a free one. Raises PortInUse.

    Its protocol is named: asyncio sets TCP_NODELAY only then, and without it each answer may wait for 40 ms.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # elsewhere two programs could then listen on one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise PortInUse(port, error.strerror or type(error).__name__) from error
    return listener


class BoundedHead(H11Protocol):
    """HTTP/1.1 that closes a connection when a request's headers do not arrive within ``head_seconds``."""

    head_seconds: ClassVar[float] = HEAD_S
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._watch()
        else:
            self._unwatch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.head_seconds, self._give_up)

    def _unwatch(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        logger.warning("connection closed: no request headers within %g s", self.head_seconds)
        self.transport.close()


class Server(uvicorn.Server):
    """A server within a process that handles signals itself: ``should_exit`` ends it, open streams after a second.

    ``ready`` is set when it answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                interface="asgi3",
                http=BoundedHead,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                timeout_graceful_shutdown=1,
            )
        )
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[Listener] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
