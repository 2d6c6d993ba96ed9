"""The client's transport: a function that opens a request and gives its response, which is read as it arrives.

The built-in transport is ``open_request``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias
from urllib.parse import urlsplit

from a2a_serverless.domain.loopback import LOOPBACK_NAMES
from a2a_serverless.http_client.sockets import always


class Unreachable(Exception):
    """There was no answer from ``url``, or the connection broke. The request may or may not have taken effect."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"{url}: {why}")
        self.url = url
        self.why = why


class ResponseTimeout(Unreachable):
    """The peer did not answer within the time limit."""


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A request. ``seconds`` limits the whole exchange, up to the last byte that is read of the answer.

    With ``waits`` it limits each single wait for the peer instead: for a stream, or a big file. Any wait also ends, as
    if its time were over, within half a second after ``goes_on`` returns False.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = None
    seconds: float = 30.0
    put: bool = False
    waits: bool = False
    goes_on: Callable[[], bool] = always

    @property
    def verb(self) -> str:
        """POST with a body (PUT for an upload), GET without."""
        return "GET" if self.body is None else "PUT" if self.put else "POST"


class ResponseBody(Protocol):
    """The body of a response, read as it arrives."""

    def read(self, limit: int, /) -> bytes:
        """Returns at most ``limit`` bytes; empty at the end of the body."""

    def read1(self, limit: int, /) -> bytes:
        """Returns the bytes that have come, at most ``limit``; waits for the first; empty at the end of the body."""


@dataclass(frozen=True, slots=True)
class ClientResponse:
    """A response whose body may still be arriving. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: ResponseBody


Transport: TypeAlias = Callable[[ClientRequest], AbstractContextManager[ClientResponse]]
"""Opens a request; leaving the context closes the connection. Raises Unreachable, also inside the context."""


def is_local(url: str) -> bool:
    """True if the host of the URL is this machine."""
    return urlsplit(url).hostname in LOOPBACK_NAMES
