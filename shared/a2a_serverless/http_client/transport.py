"""The client's transport: a function that opens a request and gives its response, which is read as it arrives.

The built-in transport uses ``urllib``: it is in the standard library, is imported in a quarter of the time of the best
maintained alternative, and uses the environment's proxy for hosts other than this machine. It follows no redirects,
because credentials would go to the redirect's target, and it accepts http and https only. One deadline covers the whole
exchange: DNS lookup, connect, TLS, writing and reading (``http_client/connections.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias
from urllib.parse import urlsplit

from a2a_serverless.domain.loopback import LOOPBACK_NAMES
from a2a_serverless.http_client.sockets import Deadline


class Unreachable(Exception):
    """There was no answer from ``url``, or the connection broke. The request may or may not have taken effect."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"{url}: {why}")
        self.url = url
        self.why = why


class ResponseTimeout(Unreachable):
    """The peer did not answer within the time limit."""


def always() -> bool:
    """True: an answer is read to its end."""
    return True


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A request. ``seconds`` limits the whole exchange, up to the last byte that is read of the answer.

    With ``waits`` it limits each single wait for the peer instead: for a stream, or a big file. A wait also ends, as if
    its time were over, within half a second after ``goes_on`` returns False.
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


@contextmanager
def over_urllib(call: ClientRequest) -> Iterator[ClientResponse]:
    """Opens a request with the standard library."""
    from http.client import HTTPException

    if urlsplit(call.url).scheme not in {"http", "https"}:
        raise Unreachable(call.url, "not an http or https URL")
    try:
        with _opened(call) as raw:
            headers = {name.lower(): value for name, value in raw.headers.items()}
            yield ClientResponse(raw.status, headers, raw)
    except (OSError, HTTPException) as error:
        cause = getattr(error, "reason", error)  # urllib wraps errors of connecting
        if isinstance(cause, TimeoutError):
            raise ResponseTimeout(call.url, f"no answer in {call.seconds:g} s") from error
        text = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        raise Unreachable(call.url, str(text)) from error


def _opened(call: ClientRequest) -> Any:  # noqa: ANN401 - urllib's responses have no common type
    from urllib.error import HTTPError
    from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

    from a2a_serverless.http_client.connections import BoundedHandler

    class Stay(HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    request = Request(call.url, call.body, dict(call.headers), method=call.verb)  # noqa: S310 - the scheme was checked
    left = (lambda: call.seconds) if call.waits else Deadline(call.seconds).left
    no_proxy = [ProxyHandler({})] if is_local(call.url) else []
    try:
        return build_opener(BoundedHandler(left, goes_on=call.goes_on), Stay, *no_proxy).open(
            request, timeout=call.seconds
        )
    except HTTPError as error:
        return error  # a response like any other
    except (ValueError, OverflowError) as error:  # a port above 65535, or characters that no request line may have
        raise Unreachable(call.url, "not a valid URL") from error
