"""Sends webhooks, and fetches files from clients' URLs: one request, one answer, with limits on time and bytes.

There are no redirects, cookies, ambient credentials or compression.
A request is sent at most once per call, on a reused connection too: ``services/deliver.py`` decides about a retry,
which it signs again and records as an attempt.
"""

from __future__ import annotations

import select
import ssl
import time
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

import h11

from a2a_serverless.adapters.egress import LOOKUP_SECONDS, MAX_DIALS, addresses_of, strict_ssl_context
from a2a_serverless.domain.outbound import (
    MAX_LINK,
    MAX_URL,
    EgressPolicy,
    NameUnresolved,
    UrlNotAllowed,
    WebhookTarget,
    check_url,
)
from a2a_serverless.domain.outcomes import OutboundError, Outcome
from a2a_serverless.http_client.connections import MAX_OVERHEAD, Connection, HeaderRefused, TooLarge, write_head
from a2a_serverless.http_client.sockets import Connector, Deadline, ResolveHost, connect, dial, resolve, secure

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping

MAX_IDLE_CONNECTIONS: Final = 64
MAX_IDLE_SECONDS: Final = 2.0  # servers close after 5 s or more
MAX_AGE_SECONDS: Final = 30.0  # after that the name is looked up again
Origin: TypeAlias = tuple[str, str, int]  # scheme, host, port
MAX_ANSWER: Final = 16 * 1024  # bytes of a webhook's answer body; the echo of a challenge is far smaller
MAX_HEADER_VALUE: Final = 256


class PooledConnection(Connection):
    """An open connection to ``address``. ``opened_at`` and ``idle_since`` are in seconds of the wall clock."""

    def __init__(self, sock: socket.socket, origin: Origin, address: str, opened_at: float) -> None:
        super().__init__(sock)
        self.origin = origin
        self.address = address
        self.opened_at = self.idle_since = opened_at

    def is_fresh(self, now: float) -> bool:
        """Whether the connection is young, and was idle only briefly."""
        return now - self.idle_since <= MAX_IDLE_SECONDS and 0 <= now - self.opened_at <= MAX_AGE_SECONDS

    def is_silent(self) -> bool:
        """Whether the peer has neither closed nor sent anything unasked. Looks below TLS and consumes nothing."""
        arrivals = select.poll()
        arrivals.register(self.sock, select.POLLIN)
        return not arrivals.poll(0)


class ConnectionPool:
    """Up to MAX_IDLE_CONNECTIONS idle connections; the newest is reused first. Thread-safe.

    A connection is reused only while it is young, was idle only briefly and has nothing to read, so that a request
    rarely meets the peer's idle timeout. Its address was checked when it was opened, at most MAX_AGE_SECONDS ago. Its
    age is measured on the wall clock: a monotonic clock may stop while Lambda freezes the instance, and connections
    die then.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle: list[PooledConnection] = []

    def take(self, origin: Origin, now: float) -> PooledConnection | None:
        """An idle connection to ``origin`` that can still be used, or None."""
        while (connection := self._pop(origin)) is not None:
            if connection.is_fresh(now) and connection.is_silent():
                return connection
            connection.close()
        return None

    def put_back(self, connection: PooledConnection, now: float) -> None:
        connection.idle_since = now
        with self._lock:
            self._idle.append(connection)
            surplus = self._idle[:-MAX_IDLE_CONNECTIONS]
            self._idle = self._idle[-MAX_IDLE_CONNECTIONS:]
        for oldest in surplus:
            oldest.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _pop(self, origin: Origin) -> PooledConnection | None:
        with self._lock:
            newest = next((connection for connection in reversed(self._idle) if connection.origin == origin), None)
            if newest:
                self._idle.remove(newest)
            return newest


# The first class that matches decides.
_ERRORS: Final[tuple[tuple[type[Exception], OutboundError], ...]] = (
    (UrlNotAllowed, OutboundError.REFUSED),
    (HeaderRefused, OutboundError.REFUSED),
    (NameUnresolved, OutboundError.DNS),
    (TooLarge, OutboundError.TOO_LARGE),
    (h11.RemoteProtocolError, OutboundError.PROTOCOL),
    (TimeoutError, OutboundError.TIMEOUT),
    (ssl.SSLEOFError, OutboundError.RESET),
    (ssl.SSLSyscallError, OutboundError.RESET),
    (ssl.SSLError, OutboundError.TLS),
    (ConnectionRefusedError, OutboundError.CONNECT),
    (ConnectionError, OutboundError.RESET),
    (OSError, OutboundError.CONNECT),
)
_EXPECTED: Final = tuple(kind for kind, _ in _ERRORS)


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    limit: int
    longest: int = MAX_URL

    def head(self, target: WebhookTarget) -> bytes:
        """The head of the request. Raises HeaderRefused."""
        length = {"Content-Length": str(len(self.body))} if self.method == "POST" else {}
        return write_head(self.method, target.authority, target.path_and_query, self.headers, length)


class WebhookSender:
    """Sends all requests to clients' URLs. Thread-safe; ``close`` closes the idle connections."""

    def __init__(
        self,
        policy: EgressPolicy,
        *,
        resolver: ResolveHost = resolve,
        connector: Connector = connect,
        ssl_context: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._policy = policy
        self._resolver = resolver
        self._connector = connector
        self._ssl_context = ssl_context or strict_ssl_context()
        self._clock = clock
        self._wall_clock = wall_clock
        self._pool = ConnectionPool()

    def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_ms: int) -> Outcome:
        """POSTs once, within ``deadline_ms`` from now, and reads at most MAX_ANSWER bytes of the answer's body."""
        return self._run(_Request("POST", url, headers, body, MAX_ANSWER), deadline_ms)

    def get(self, url: str, headers: Mapping[str, str], deadline_ms: int, limit: int) -> Outcome:
        """GETs once; cuts a body over ``limit`` bytes there, with the error ``too_large``."""
        return self._run(_Request("GET", url, headers, b"", limit, MAX_LINK), deadline_ms)

    def close(self) -> None:
        self._pool.close()

    def _run(self, request: _Request, deadline_ms: int) -> Outcome:
        deadline, outcome = Deadline(deadline_ms / 1000, self._clock), Outcome()
        try:
            target = check_url(request.url, self._policy, request.longest)
            self._exchange(request, target, deadline, outcome)
        except _EXPECTED as error:
            outcome.error = next(name for kind, name in _ERRORS if isinstance(error, kind))
            ours = isinstance(error, (UrlNotAllowed, HeaderRefused, NameUnresolved, TooLarge))
            outcome.reason = str(error) if ours else getattr(error, "verify_message", "")
        outcome.elapsed_ms = deadline.elapsed_ms()
        return outcome

    def _exchange(self, request: _Request, target: WebhookTarget, deadline: Deadline, outcome: Outcome) -> None:
        head, body, reusable = request.head(target), bytearray(), False
        connection, most = self._connection(target, deadline, outcome), request.limit + MAX_OVERHEAD
        try:
            outcome.request_sent = True
            connection.send(head, request.body, deadline)
            while not isinstance(event := connection.next_event(deadline, most), h11.EndOfMessage):
                if isinstance(event, h11.Response):
                    outcome.status, headers = event.status_code, dict(event.headers)
                    outcome.retry_after = _text_of(headers.get(b"retry-after"))
                    outcome.content_type = _text_of(headers.get(b"content-type"))
                elif isinstance(event, h11.Data):
                    body += event.data[: request.limit - len(body) + 1]
                    if len(body) > request.limit:
                        raise TooLarge("the body is larger than the limit")
            reusable = connection.finish()
        finally:
            outcome.body = bytes(body[: request.limit])
            if reusable:
                self._pool.put_back(connection, self._wall_clock())
            else:
                connection.close()

    def _connection(self, target: WebhookTarget, deadline: Deadline, outcome: Outcome) -> PooledConnection:
        connection = self._pool.take(target.origin, self._wall_clock())
        if connection is None:
            return self._open(target, deadline, outcome)
        outcome.address, outcome.connected, outcome.reused = connection.address, True, True
        return connection

    def _open(self, target: WebhookTarget, deadline: Deadline, outcome: Outcome) -> PooledConnection:
        def connector(address: str, port: int, seconds: float) -> socket.socket:
            outcome.address = address
            return self._connector(address, port, seconds)

        addresses = addresses_of(target, self._resolver, min(LOOKUP_SECONDS, deadline.left()))
        sock = dial(addresses[:MAX_DIALS], target.port, deadline, connector)
        outcome.connected = True
        if target.scheme == "https":
            sock = secure(sock, target.host.strip("[]"), self._ssl_context, deadline)
        return PooledConnection(sock, target.origin, outcome.address or "", self._wall_clock())


def _text_of(value: bytes | None) -> str | None:
    """The value of a header of the answer, cut at ``MAX_HEADER_VALUE`` bytes."""
    return None if value is None else value[:MAX_HEADER_VALUE].decode("latin-1")
