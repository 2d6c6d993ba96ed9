"""HTTP/1.1 connections whose reads and writes have a deadline and a byte limit, and a pool of idle ones.

A connection is reused only while it is young, was idle only briefly and has nothing to read, so that a request rarely
meets the peer's idle timeout. Its address was checked when it was opened, at most MAX_AGE_SECONDS ago. Its age is
measured on the wall clock: a monotonic clock may stop while Lambda freezes the instance, and connections die then.
"""

from __future__ import annotations

import socket
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import h11

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.http_client.sockets import Deadline

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


class TooLarge(Exception):
    """The peer sent more bytes than allowed."""


class Connection:
    """An open connection to ``address``; ``opened_at`` in seconds of the wall clock."""

    def __init__(self, sock: socket.socket, address: str, opened_at: float) -> None:
        self.address = address
        self.opened_at = opened_at
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
        received = 0
        while not isinstance(event, h11.EndOfMessage):
            if event is h11.NEED_DATA:
                received += self._feed(deadline, first=not received)
                if received > budget:
                    raise TooLarge("the answer is larger than its byte budget")
            event = self._next_event()
            if isinstance(event, h11.Event):
                yield event

    def finish(self) -> bool:
        """Prepares for the next request; False if the connection cannot be used again."""
        done = self._http.our_state is self._http.their_state is h11.DONE and self._http.trailing_data == (b"", False)
        if done:
            self._http.start_next_cycle()
        return done

    def is_silent(self) -> bool:
        """Whether the peer has neither closed nor sent anything unasked. Peeks below TLS and consumes nothing."""
        self._sock.settimeout(0)
        try:
            socket.socket.recv(self._sock, 1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

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


class _Idle(NamedTuple):
    origin: Origin
    since: float
    connection: Connection

    def is_fresh(self, now: float) -> bool:
        return now - self.since <= MAX_IDLE_SECONDS and 0 <= now - self.connection.opened_at <= MAX_AGE_SECONDS


class ConnectionPool:
    """Up to MAX_IDLE_CONNECTIONS idle connections; the newest is reused first. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle: list[_Idle] = []

    def take(self, origin: Origin, now: float) -> Connection | None:
        """An idle connection to ``origin`` that can still be used, or None."""
        while (found := self._pop(origin)) is not None:
            if found.is_fresh(now) and found.connection.is_silent():
                return found.connection
            found.connection.close()
        return None

    def put_back(self, origin: Origin, connection: Connection, now: float) -> None:
        with self._lock:
            self._idle.append(_Idle(origin, now, connection))
            surplus = self._idle[:-MAX_IDLE_CONNECTIONS]
            self._idle = self._idle[-MAX_IDLE_CONNECTIONS:]
        _close(surplus)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        _close(idle)

    def _pop(self, origin: Origin) -> _Idle | None:
        with self._lock:
            for index in range(len(self._idle) - 1, -1, -1):
                if self._idle[index].origin == origin:
                    return self._idle.pop(index)
        return None


def _close(entries: list[_Idle]) -> None:
    for entry in entries:
        entry.connection.close()
