"""The receiver's own requests: it fetches the issuer's keys and the tasks that notifications are about.

Their URLs come from configuration or an expectation, never from an incoming webhook. Still they are limited: https, or
http to this machine; no redirects, no proxies from the environment; one deadline for the whole exchange (lookup,
connection, TLS, writing, reading) and one byte limit.
"""

import http.client
import io
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Left = Callable[[], float]
"""The seconds that are left, more than 0; raises TimeoutError when the time is up."""


class Unreachable(Exception):
    """There was no usable answer. The message has the host and the problem, and nothing of the content."""


def require_safe_url(url: str) -> SplitResult:
    """The parts of an absolute URL that is https, or http to this machine. Raises ValueError."""
    parts = urlsplit(url)
    if not parts.hostname or parts.username is not None or parts.fragment or not url.isascii() or " " in url:
        raise ValueError("not an absolute URL without user and fragment")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname)):
        raise ValueError("neither https nor http to this machine")
    _ = parts.port  # raises ValueError when it is no number
    return parts


def is_loopback(host: str) -> bool:
    """Whether ``host`` is a loopback address or ``localhost``."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def get(url: str, *, seconds: float, limit: int) -> bytes:
    """The body of a 200 answer of at most ``limit`` bytes within ``seconds``. Raises Unreachable."""
    return _exchange("GET", url, None, {}, seconds=seconds, limit=limit)


def post(url: str, body: bytes, headers: Mapping[str, str], *, seconds: float, limit: int) -> bytes:
    """Like ``get``, for a POST."""
    return _exchange("POST", url, body, headers, seconds=seconds, limit=limit)


def _exchange(
    method: str, url: str, body: bytes | None, headers: Mapping[str, str], *, seconds: float, limit: int
) -> bytes:
    parts, left = require_safe_url(url), _countdown(seconds)
    connection = _TlsConnection(parts, left) if parts.scheme == "https" else _Connection(parts, left)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(method, target, body, {"Accept": "application/json", **headers})
        answer = connection.getresponse()
        if answer.status != http.HTTPStatus.OK:
            raise Unreachable(f"{parts.hostname} answered {answer.status}")
        content = answer.read(limit + 1)
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(f"{parts.hostname}: {type(error).__name__}") from error
    finally:
        connection.close()
    if len(content) > limit:
        raise Unreachable(f"more than {limit} bytes")
    return content


def _countdown(seconds: float) -> Left:
    end = time.monotonic() + seconds

    def left() -> float:
        if (rest := end - time.monotonic()) <= 0:
            raise TimeoutError
        return rest

    return left


class _Connection(http.client.HTTPConnection):
    """Every operation gets the time that is left; a timeout per operation would not stop a peer that trickles bytes."""

    def __init__(self, parts: SplitResult, left: Left) -> None:
        super().__init__(parts.hostname or "", parts.port)
        self._left = left
        self._create_connection = self._connected
        self.response_class = partial(_Response, left=left)  # type: ignore[assignment]

    def send(self, data: Any) -> None:  # noqa: ANN401 - always bytes here
        if self.sock is None:
            self.connect()
        rest = memoryview(data)
        while rest:
            self.sock.settimeout(self._left())
            rest = rest[self.sock.send(rest) :]

    def _connected(self, address: tuple[str, int], *_: object) -> socket.socket:
        """Connects to the first address that answers; each try gets its share of the time. The rest is for TLS."""
        addresses = _looked_up(*address, self._left())
        for index, one in enumerate(addresses):
            try:
                sock = socket.create_connection((one, address[1]), self._left() / (len(addresses) - index))
            except OSError:
                if one == addresses[-1]:
                    raise
            else:
                sock.settimeout(self._left())
                return sock
        raise OSError("the name has no address")


class _TlsConnection(_Connection, http.client.HTTPSConnection):
    """``_Connection`` with TLS: certificate and host name are checked."""


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, left: Left, **keywords: Any) -> None:  # noqa: ANN401 - as given
        super().__init__(sock, *args, **keywords)
        self.fp = io.BufferedReader(_Reader(sock, self.fp.detach(), left))


class _Reader(io.RawIOBase):
    """Reads from a socket by its file ``raw``, each read with the time that is left."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase, left: Left) -> None:
        self._sock = sock
        self._raw = raw
        self._left = left

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int | None:
        self._sock.settimeout(self._left())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _looked_up(host: str, port: int, seconds: float) -> list[str]:
    """The addresses of a name. getaddrinfo cannot be interrupted, so it runs in a thread, which a timeout abandons."""
    answer: Future[list[str]] = Future()

    def run() -> None:
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answer.set_result(list(dict.fromkeys(str(one[4][0]) for one in addresses)))
        except Exception as error:  # noqa: BLE001 - the caller gets any error
            answer.set_exception(error)

    threading.Thread(target=run, name="lookup", daemon=True).start()
    return answer.result(seconds)
