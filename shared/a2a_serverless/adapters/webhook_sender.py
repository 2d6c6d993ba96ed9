"""Sends webhooks, and fetches files from clients' URLs: one request, one answer, with limits on time and bytes.

The parser of answers is h11: strict, maintained and without I/O, so one deadline and one byte limit apply to every
read. Requests have one form and are written here. There are no redirects, cookies, ambient credentials or compression.
A request is sent at most once per call, on a reused connection too: ``services/deliver.py`` decides about a retry,
which it signs again and records as an attempt.
"""

from __future__ import annotations

import re
import select
import ssl
import time
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

import h11

from a2a_serverless.adapters.egress import LOOKUP_SECONDS, MAX_DIALS, addresses_of, secure, strict_ssl_context
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
from a2a_serverless.http_client.sockets import Connector, Deadline, ResolveHost, connect, dial, resolve

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Mapping

CHUNK: Final = 16 * 1024  # the largest TLS record, so a read leaves no decrypted bytes behind
MAX_HEAD: Final = 16 * 1024
MAX_IDLE_CONNECTIONS: Final = 64
MAX_IDLE_SECONDS: Final = 2.0  # servers close after 5 s or more
MAX_AGE_SECONDS: Final = 30.0  # after that the name is looked up again
_HEADER_FIELDS_TOO_LARGE: Final = 431
# A stand-in request, so that h11 expects an answer; the bytes that are sent are the caller's.
_SOME_REQUEST: Final = h11.Request(method="POST", target="/", headers=[("Host", "any")])
_ITS_END: Final = h11.EndOfMessage()

Origin: TypeAlias = tuple[str, str, int]  # scheme, host, port
MAX_ANSWER: Final = 16 * 1024  # bytes of a webhook's answer body; the echo of a challenge is far smaller
MAX_OVERHEAD: Final = 48 * 1024  # bytes of heads, interim answers, chunk framing and trailers together
MAX_HEADER_VALUE: Final = 256
_OUR_HEADERS: Final = frozenset(
    {"accept-encoding", "connection", "content-length", "expect", "host", "te", "transfer-encoding", "upgrade"}
)

# RFC 9110, 5.1 and 5.5, ASCII only: a token, and text that neither begins nor ends with a blank.
_FIELD: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: (?:[!-~](?:[\t -~]*[!-~])?)?")


class TooLarge(Exception):
    """The peer sent more bytes than allowed."""


class Connection:
    """An open connection to ``address``. ``opened_at`` and ``idle_since`` are in seconds of the wall clock."""

    def __init__(self, sock: socket.socket, origin: Origin, address: str, opened_at: float) -> None:
        self.origin = origin
        self.address = address
        self.opened_at = self.idle_since = opened_at
        self._sock = sock
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)

    def send(self, request: bytes, deadline: Deadline) -> None:
        """Writes a whole request, with or without a body. Not for HEAD, whose answer has no body."""
        self._http.send(_SOME_REQUEST)
        self._http.send(_ITS_END)
        view = memoryview(request)
        while view:
            self._sock.settimeout(deadline.left())
            view = view[self._sock.send(view) :]

    def receive(self, deadline: Deadline, budget: int) -> Iterator[h11.Event]:
        """The events of one answer, until it ends. Raises TooLarge, h11.RemoteProtocolError, OSError."""
        event: object = h11.NEED_DATA
        size = 0
        while not isinstance(event, h11.EndOfMessage):
            if event is h11.NEED_DATA:
                size += self._feed(deadline, first=not size)
                if size > budget:
                    raise TooLarge("the answer is larger than its byte budget")
            event = self._next_event()
            if isinstance(event, h11.Event):
                yield event

    def finish(self) -> bool:
        """Prepares for the next request; False if the connection cannot be used again."""
        is_whole = self._http.our_state is self._http.their_state is h11.DONE and self._http.trailing_data == (
            b"",
            False,
        )
        if is_whole:
            self._http.start_next_cycle()
        return is_whole

    def is_fresh(self, now: float) -> bool:
        """Whether the connection is young, and was idle only briefly."""
        return now - self.idle_since <= MAX_IDLE_SECONDS and 0 <= now - self.opened_at <= MAX_AGE_SECONDS

    def is_silent(self) -> bool:
        """Whether the peer has neither closed nor sent anything unasked. Looks below TLS and consumes nothing."""
        arrivals = select.poll()
        arrivals.register(self._sock, select.POLLIN)
        return not arrivals.poll(0)

    def close(self) -> None:
        self._sock.close()

    def _next_event(self) -> object:
        try:
            return self._http.next_event()
        except h11.RemoteProtocolError as error:
            if error.error_status_hint == _HEADER_FIELDS_TOO_LARGE:
                raise TooLarge("the head is larger than the limit") from error
            raise

    def _feed(self, deadline: Deadline, *, first: bool) -> int:
        self._sock.settimeout(deadline.left())
        data = self._sock.recv(CHUNK)
        if first and not data:
            raise ConnectionResetError("closed without an answer")
        self._http.receive_data(data)
        return len(data)


class ConnectionPool:
    """Up to MAX_IDLE_CONNECTIONS idle connections; the newest is reused first. Thread-safe.

    A connection is reused only while it is young, was idle only briefly and has nothing to read, so that a request
    rarely meets the peer's idle timeout. Its address was checked when it was opened, at most MAX_AGE_SECONDS ago. Its
    age is measured on the wall clock: a monotonic clock may stop while Lambda freezes the instance, and connections
    die then.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle: list[Connection] = []

    def take(self, origin: Origin, now: float) -> Connection | None:
        """An idle connection to ``origin`` that can still be used, or None."""
        while (connection := self._pop(origin)) is not None:
            if connection.is_fresh(now) and connection.is_silent():
                return connection
            connection.close()
        return None

    def put_back(self, connection: Connection, now: float) -> None:
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

    def _pop(self, origin: Origin) -> Connection | None:
        with self._lock:
            newest = next((connection for connection in reversed(self._idle) if connection.origin == origin), None)
            if newest:
                self._idle.remove(newest)
            return newest


class HeaderRefused(Exception):
    """A header cannot be sent: it has line breaks, control or non-ASCII characters, or the sender itself sets it."""


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

    def written(self, target: WebhookTarget) -> bytes:
        """The bytes of the request. Raises HeaderRefused, which repeats no value, as that may be a secret."""
        if not _OUR_HEADERS.isdisjoint(map(str.lower, self.headers)):
            raise HeaderRefused("a header is not the caller's to set")
        ours = {"Host": target.authority, "User-Agent": "a2a-serverless", "Accept-Encoding": "identity"}
        length = {"Content-Length": str(len(self.body))} if self.method == "POST" else {}
        fields = [f"{name}: {value}" for name, value in (ours | length | dict(self.headers)).items()]
        if not all(map(_FIELD.fullmatch, fields)):
            raise HeaderRefused("a header has a name or a value that HTTP does not allow")
        head = "\r\n".join([f"{self.method} {target.path_and_query} HTTP/1.1", *fields, "\r\n"])
        return head.encode("ascii") + self.body


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
        content, body, reusable = request.written(target), bytearray(), False
        connection = self._connection(target, deadline, outcome)
        try:
            outcome.request_sent = True
            connection.send(content, deadline)
            for event in connection.receive(deadline, request.limit + MAX_OVERHEAD):
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

    def _connection(self, target: WebhookTarget, deadline: Deadline, outcome: Outcome) -> Connection:
        connection = self._pool.take(target.origin, self._wall_clock())
        if connection is None:
            return self._open(target, deadline, outcome)
        outcome.address, outcome.connected, outcome.reused = connection.address, True, True
        return connection

    def _open(self, target: WebhookTarget, deadline: Deadline, outcome: Outcome) -> Connection:
        def connector(address: str, port: int, seconds: float) -> socket.socket:
            outcome.address = address
            return self._connector(address, port, seconds)

        addresses = addresses_of(target, self._resolver, min(LOOKUP_SECONDS, deadline.left()))
        sock = dial(addresses[:MAX_DIALS], target.port, deadline.left, connector)
        outcome.connected = True
        if target.scheme == "https":
            sock = secure(sock, target, self._ssl_context, deadline)
        return Connection(sock, target.origin, outcome.address or "", self._wall_clock())


def _text_of(value: bytes | None) -> str | None:
    """The value of a header of the answer, cut at ``MAX_HEADER_VALUE`` bytes."""
    return None if value is None else value[:MAX_HEADER_VALUE].decode("latin-1")
