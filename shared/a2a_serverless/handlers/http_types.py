"""An HTTP request and its answer, independent of the server: uvicorn, API Gateway or a test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request. ``path`` as in the request line, without the query; header names in lower case.

    ``time_left_ms`` is how long the platform waits for the answer; None is without a limit.
    """

    verb: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    time_left_ms: int | None = None


class Frames(Protocol):
    """A streamed body. The server closes it in the end, also if it has not read any of it."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Returns itself."""
        ...

    async def __anext__(self) -> bytes:
        """Returns the next bytes; raises StopAsyncIteration at the end."""
        ...

    async def aclose(self) -> None:
        """Ends it at any point. Idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An answer. ``body`` is the whole body, unless there is a ``stream``, whose bytes are sent as they come."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Frames | None = None


def encode_path(path: str) -> str:
    """Percent-encodes a decoded path, as for a request line."""
    return quote(path, safe="/:@!$&'()*+,;=")
