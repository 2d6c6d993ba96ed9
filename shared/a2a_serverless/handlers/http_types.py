"""A request over HTTP and its answer, whoever carries them: uvicorn, API Gateway or a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol
from urllib.parse import quote

JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request. ``path`` as in the request line, without the query; header names in lower case.

    ``time_left_ms``: how long the platform will wait for the answer; None is "for as long as it takes".
    """

    verb: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    time_left_ms: int | None = None


class Frames(Protocol):
    """A body that is sent as it comes. Whoever carries it closes it in the end, also when nobody has asked for any."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Itself."""
        ...

    async def __anext__(self) -> bytes:
        """The next bytes; StopAsyncIteration at the end."""
        ...

    async def aclose(self) -> None:
        """Ends it, wherever it is. Doing it twice is doing it once."""
        ...


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An answer: ``body`` is all of it, unless there is a ``stream`` of bytes to be sent as they come."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Frames | None = None


def encode_path(path: str) -> str:
    """A decoded path as it could have stood in the request line."""
    return quote(path, safe="/:@!$&'()*+,;=")
