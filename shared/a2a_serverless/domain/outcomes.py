"""The outcome of a request to a URL of others. Errors of network and receiver are data, not exceptions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class OutboundError(StrEnum):
    """The reason why an exchange ended early. ``refused`` is our own policy; all others may succeed next time.

    ``unreadable``: nothing was sent, because the content to send could not be read.
    """

    REFUSED = "refused"
    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    TIMEOUT = "timeout"
    PROTOCOL = "protocol"
    TOO_LARGE = "too_large"
    RESET = "reset"
    UNREADABLE = "unreadable"


@dataclass(slots=True)
class Outcome:
    """One exchange; at most one request was written. The sender sets each field as the exchange goes on.

    ``status`` is set once a complete response head came; for a delivery it decides (``accepted``), and an ``error``
    beside it is about the body only (cut at the byte limit, late, broken). A fetch needs ``error`` None. ``address`` is
    the address of our connection (``reused``: of an earlier request's), ``connected`` says that the connection was
    made, including TLS, and ``request_sent`` that bytes of the request were sent, so the receiver may have acted on
    them even without a response. ``retry_after`` and ``content_type`` are header values as received. ``reason``
    explains ``error`` and contains no secret.
    """

    status: int | None = None
    address: str | None = None
    elapsed_ms: int = 0
    error: OutboundError | None = None
    reason: str = ""
    retry_after: str | None = None
    content_type: str | None = None
    body: bytes = b""
    connected: bool = False
    request_sent: bool = False
    reused: bool = False

    @property
    def accepted(self) -> bool:
        """Whether the response status is 2xx."""
        return self.status is not None and 200 <= self.status < 300  # noqa: PLR2004
