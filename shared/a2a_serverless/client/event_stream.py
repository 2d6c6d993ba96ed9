"""The parser of server-sent events (WHATWG HTML, 9.2.5 and 9.2.6): fed with bytes, linear in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.errors import InvalidAgentResponse
from a2a_serverless.protocol.sse import last_event_id

if TYPE_CHECKING:
    from collections.abc import Iterator

BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event. ``number`` is its id; None if that is not a number."""

    data: bytes
    number: int | None = None


class EventStreamParser:
    """Makes events of the bytes of a stream, in blocks of any size. An event has at most ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line = bytearray()
        self._data = bytearray()
        self._size = 0
        self._number: int | None = None
        self._is_first_line, self._skips_newline = True, False

    def feed(self, block: bytes) -> Iterator[ServerEvent]:
        """Yields the events that the block completes. Raises InvalidAgentResponse for one over the limit."""
        if self._skips_newline and block:  # a line end of two bytes may come in two blocks
            block = block.removeprefix(b"\n")
            self._skips_newline = False
        if not block:
            return
        self._skips_newline = block.endswith(b"\r")
        *ended, rest = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for piece in ended:
            self._extend(piece)
            line, self._line = bytes(self._line), bytearray()
            if event := self._take(line):
                yield event
        self._extend(rest)

    def _extend(self, piece: bytes) -> None:
        self._line += piece
        if len(self._line) + self._size > self._limit:
            raise InvalidAgentResponse("The agent's stream has an event that is too large.")

    def _take(self, line: bytes) -> ServerEvent | None:
        """Takes one line; returns the event that it ends."""
        if self._is_first_line:
            self._is_first_line, line = False, line.removeprefix(BOM)
        if not line:
            data, self._data, self._size = self._data, bytearray(), 0
            return ServerEvent(bytes(data[:-1]), self._number) if data else None
        self._size += len(line) + 1
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data += value + b"\n"
        elif name == b"id" and b"\0" not in value:
            self._number = last_event_id(value.decode("ascii", "replace"))
        elif not name:
            self._size -= len(line) + 1  # a comment: a peer keeps the connection alive with them
        return None
