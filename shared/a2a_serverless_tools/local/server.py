"""Serves an application by uvicorn on 127.0.0.1, on a developer's machine."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import uvicorn

from a2a_serverless.domain.loopback import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp

Listener: TypeAlias = socket.socket


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


class Server(uvicorn.Server):
    """A server within a process that handles signals itself: ``should_exit`` ends it, open streams after a second.

    ``ready`` is set when it answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                interface="asgi3",
                http="h11",
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
