"""The two requests that a receiver makes: its issuer's keys, and the task that a notification is about.

Addresses are fixed by configuration or by an expectation, never by a request from outside. Still: https, or http to
this machine; no redirects, no proxies from the environment; one deadline and one byte budget over the whole exchange.
"""

import http.client
import ipaddress
import ssl
import time
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

_CHUNK = 16 * 1024


class Unreachable(Exception):
    """No usable answer came. The message names the host and what went wrong, and nothing of the content."""


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
    """Whether ``host`` names this machine and nothing else."""
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
    """As ``get``, for a POST."""
    return _exchange("POST", url, body, headers, seconds=seconds, limit=limit)


def _exchange(
    method: str, url: str, body: bytes | None, headers: Mapping[str, str], *, seconds: float, limit: int
) -> bytes:
    deadline = time.monotonic() + seconds
    parts = require_safe_url(url)
    connection = _connect(parts, seconds)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(method, target, body, {"Accept": "application/json", **headers})
        answer = connection.getresponse()
        if answer.status != http.HTTPStatus.OK:
            raise Unreachable(f"{parts.hostname} answered {answer.status}")
        return _read(connection, answer, deadline, limit)
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(f"{parts.hostname}: {type(error).__name__}") from error
    finally:
        connection.close()


def _connect(parts: SplitResult, seconds: float) -> http.client.HTTPConnection:
    host = parts.hostname or ""
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, parts.port, timeout=seconds)
    return http.client.HTTPSConnection(host, parts.port, timeout=seconds, context=ssl.create_default_context())


def _read(
    connection: http.client.HTTPConnection, answer: http.client.HTTPResponse, deadline: float, limit: int
) -> bytes:
    """A peer that sends a byte now and then keeps every socket timeout happy, so the clock is asked at each chunk."""
    content = bytearray()
    while chunk := _next_chunk(connection, answer, deadline):
        content += chunk
        if len(content) > limit:
            raise Unreachable(f"more than {limit} bytes")
    return bytes(content)


def _next_chunk(connection: http.client.HTTPConnection, answer: http.client.HTTPResponse, deadline: float) -> bytes:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    if connection.sock is not None:
        connection.sock.settimeout(left)
    return answer.read1(_CHUNK)
