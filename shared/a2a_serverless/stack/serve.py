"""``python -m a2a_serverless.stack.serve APP FOLDER PORT``: uvicorn on 127.0.0.1, for a developer's machine.

uvicorn has no time limit for the headers of a request. Here it is ``HEAD_S`` seconds; the application limits the body.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, ClassVar, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

LOOPBACK: Final = "127.0.0.1"
HEAD_S: Final = 30.0

logger = logging.getLogger("uvicorn.error")


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


def main() -> None:
    """Serve until a signal ends the process."""
    app, folder, port = sys.argv[1:]
    uvicorn.run(
        app,
        factory=True,
        app_dir=folder,
        host=LOOPBACK,
        port=int(port),
        http=BoundedHead,
        access_log=False,
        timeout_graceful_shutdown=3,
    )


if __name__ == "__main__":
    main()
