"""Reads server-sent events (WHATWG HTML, 9.2), as far as A2A streams and the receiver use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_serverless.domain.errors import InvalidAgentResponse
from a2a_serverless.protocol.sse import last_event_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.http_client.transport import ResponseBody


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event. ``number`` is its id; None if that is not a number."""

    data: bytes
    number: int | None = None


def read_events(body: ResponseBody, limit: int) -> Iterator[ServerEvent]:
    """Yields each event of a body once it is complete. Raises InvalidAgentResponse for one over ``limit`` bytes.

    An event that is incomplete when the connection breaks is dropped: the next stream repeats it.
    """
    data: list[bytes] = []
    number: int | None = None
    while line := body.readline(limit + 1):
        if len(line) + sum(map(len, data)) > limit:
            raise InvalidAgentResponse("The agent's stream has an event that is too large.")
        name, _, value = line.rstrip(b"\r\n").partition(b":")
        if not name and not value and data:
            yield ServerEvent(b"\n".join(data), number)
            data = []
        elif name == b"data":
            data.append(value.removeprefix(b" "))
        elif name == b"id":
            number = last_event_id(value.decode("ascii", "replace"))
