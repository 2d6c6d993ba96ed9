"""HTTP connections of the standard library with one deadline for the whole exchange.

A socket's timeout limits one operation, and ``http.client`` makes many in one exchange: it looks up a name, tries each
of its addresses, does the TLS handshake, writes, and reads the headers line by line. A slow peer could keep each of
them just below the timeout. Here each operation gets only the time that is left.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from io import BufferedReader, RawIOBase
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from urllib.request import AbstractHTTPHandler, HTTPHandler, HTTPSHandler, Request

from a2a_serverless.http_client.sockets import Deadline, ResolveHost, connect, dial, look_up, resolve

if TYPE_CHECKING:
    import socket
    from socket import SocketIO

    from _typeshed import WriteableBuffer

Left: TypeAlias = Callable[[], float]
"""Returns the seconds that are left, more than 0; raises TimeoutError when none are left."""


LOOK_S: Final = 0.5
"""How often a reader that waits asks whether it is to wait on."""


class BoundedHandler(HTTPHandler, HTTPSHandler):
    """Opens http and https URLs for ``urllib``, in place of its own handlers."""

    def __init__(self, left: Left, resolver: ResolveHost = resolve, goes_on: Callable[[], bool] = lambda: True) -> None:
        AbstractHTTPHandler.__init__(self)
        self._options: dict[str, Any] = {"left": left, "resolver": resolver, "goes_on": goes_on}

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_Connection, **self._options), req)

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_TlsConnection, **self._options), req)


class _Connection(HTTPConnection):
    """Connects by ``_connected``.

    ``http.client`` has no public name for that. A ``connect`` of our own would have to repeat the tunnel through a
    proxy, whose names are private, too. ``tests/http_client`` fails if a version of Python has other names.
    """

    def __init__(
        self,
        host: str,
        *,
        left: Left,
        resolver: ResolveHost,
        goes_on: Callable[[], bool],
        **keywords: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(host, **keywords)
        self._left = left
        self._create_connection = partial(_connected, left=left, resolver=resolver)
        self.response_class = partial(_Response, left=left, goes_on=goes_on)  # type: ignore[assignment]

    def send(self, data: Any) -> None:  # noqa: ANN401 - always bytes here
        if self.sock is None:
            self.connect()
        rest = memoryview(data)
        while rest:
            self.sock.settimeout(self._left())
            rest = rest[self.sock.send(rest) :]


class _TlsConnection(_Connection, HTTPSConnection):
    """CPython applies the timeout that ``_connected`` has set on the socket to the whole TLS handshake."""


class _Response(HTTPResponse):
    def __init__(
        self,
        sock: socket.socket,
        *args: Any,  # noqa: ANN401 - as above
        left: Left,
        goes_on: Callable[[], bool],
        **keywords: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(cast("socket.socket", _BoundedSocket(sock, left, goes_on)), *args, **keywords)


class _BoundedSocket:
    """The part of a socket that ``HTTPResponse`` uses: a file to read from."""

    def __init__(self, sock: socket.socket, left: Left, goes_on: Callable[[], bool]) -> None:
        self._reader = partial(_SocketReader, sock, left, goes_on)

    def makefile(self, mode: str) -> BufferedReader:
        """The file of the socket; before each read it limits the socket to the remaining time."""
        del mode
        return BufferedReader(self._reader())


class _SocketReader(RawIOBase):
    def __init__(self, sock: socket.socket, left: Left, goes_on: Callable[[], bool]) -> None:
        self._sock, self._left, self._goes_on = sock, left, goes_on
        self._raw: SocketIO = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        deadline = Deadline(self._left())
        while self._goes_on():
            self._sock.settimeout(min(LOOK_S, deadline.left()))
            with suppress(TimeoutError):
                return self._sock.recv_into(buffer)  # ``_raw`` would read nothing any more after a timeout
        raise TimeoutError("nobody waits for the answer any more")

    def close(self) -> None:
        self._raw.close()
        super().close()


def _connected(address: tuple[str, int], *_: object, left: Left, resolver: ResolveHost) -> socket.socket:
    host, port = address
    sock = dial(look_up(host, port, resolver, left()), port, left, connect)
    sock.settimeout(left())
    return sock
