"""Connections that speak HTTP/1.1: the client and the sender of webhooks write requests and read answers by them.

The parser of answers is h11: strict, maintained and without I/O, so one deadline and one byte limit apply to every
read. Requests have one form and are written here.
"""

from __future__ import annotations

import re
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import h11

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from a2a_serverless.http_client.sockets import Deadline

CHUNK: Final = 16 * 1024  # the largest TLS record, so a read leaves no decrypted bytes behind
MAX_HEAD: Final = 16 * 1024
MAX_OVERHEAD: Final = 48 * 1024  # bytes of heads, interim answers, chunk framing and trailers together
_HEADER_FIELDS_TOO_LARGE: Final = 431
# Stand-in requests, so that h11 expects an answer; the bytes that are sent are the caller's.
_SOME_REQUEST: Final = h11.Request(method="POST", target="/", headers=[("Host", "any")])
_CONNECT: Final = h11.Request(method="CONNECT", target="any:443", headers=[("Host", "any")])
_ITS_END: Final = h11.EndOfMessage()
_OUR_HEADERS: Final = frozenset(
    {"accept-encoding", "connection", "content-length", "expect", "host", "te", "transfer-encoding", "upgrade"}
)

# RFC 9110, 5.1 and 5.5, ASCII only: a token, and text that neither begins nor ends with a blank.
_FIELD: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: (?:[!-~](?:[\t -~]*[!-~])?)?")


class TooLarge(Exception):
    """The peer sent more bytes than allowed."""


class HeaderRefused(Exception):
    """A header cannot be sent: it has line breaks, control or non-ASCII characters, or is not the caller's to set."""


def write_head(
    verb: str, authority: str, target: str, headers: Mapping[str, str], ours: Mapping[str, str] = MappingProxyType({})
) -> bytes:
    """The head of a request. Raises HeaderRefused, which repeats no value, as that may be a secret."""
    names = {name.lower() for name in headers}
    if not _OUR_HEADERS.isdisjoint(names):
        raise HeaderRefused("a header is not the caller's to set")
    ours = {"Host": authority, "User-Agent": "a2a-serverless", "Accept-Encoding": "identity", **ours}
    fields = [f"{name}: {value}" for name, value in ours.items() if name.lower() not in names]
    fields += [f"{name}: {value}" for name, value in headers.items()]
    if not all(map(_FIELD.fullmatch, fields)):
        raise HeaderRefused("a header has a name or a value that HTTP does not allow")
    return "\r\n".join([f"{verb} {target} HTTP/1.1", *fields, "\r\n"]).encode("ascii")


class Connection:
    """An open connection: requests and their answers, one after the other."""

    def __init__(self, sock: socket.socket, most_head: int = MAX_HEAD) -> None:
        self.sock = sock
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=most_head)
        self._size = 0

    def send(self, head: bytes, body: bytes, deadline: Deadline, *, connects: bool = False) -> None:
        """Writes a request, also one that ``connects`` through a proxy. Not HEAD, whose answer has no body."""
        self._http.send(_CONNECT if connects else _SOME_REQUEST)
        self._http.send(_ITS_END)
        self._size = 0
        if len(body) <= CHUNK:
            head, body = head + body, b""  # in one packet
        for piece in (head, body):
            rest = memoryview(piece)
            while rest:
                rest = rest[deadline.wait(partial(self._write, rest[:CHUNK])) :]

    def next_event(self, deadline: Deadline, most: int) -> h11.Event:
        """The next part of the answer. Raises TooLarge, h11.RemoteProtocolError, OSError.

        ``most`` is how many bytes the answer may have had until then.
        """
        while (event := self.event_at_hand()) is None:
            self._receive(deadline, most)
        return event

    def event_at_hand(self) -> h11.Event | None:
        """The next part of the answer; None if it has not come yet. Raises TooLarge, h11.RemoteProtocolError."""
        try:
            event = self._http.next_event()
        except h11.RemoteProtocolError as error:
            if error.error_status_hint == _HEADER_FIELDS_TOO_LARGE:
                raise TooLarge("the head is larger than the limit") from error
            raise
        return event if isinstance(event, h11.Event) else None

    def finish(self) -> bool:
        """Prepares for the next request; False if the connection cannot be used again."""
        is_whole = self._http.our_state is self._http.their_state is h11.DONE and self._http.trailing_data == (
            b"",
            False,
        )
        if is_whole:
            self._http.start_next_cycle()
        return is_whole

    def close(self) -> None:
        self.sock.close()

    def _write(self, data: memoryview, seconds: float) -> int:
        self.sock.settimeout(seconds)
        return self.sock.send(data)

    def _read(self, seconds: float) -> bytes:
        self.sock.settimeout(seconds)
        return self.sock.recv(CHUNK)

    def _receive(self, deadline: Deadline, most: int) -> None:
        data = deadline.wait(self._read)
        if not (data or self._size):
            raise ConnectionResetError("closed without an answer")
        self._size += len(data)
        if self._size > most:
            raise TooLarge("the answer is larger than its byte budget")
        self._http.receive_data(data)
