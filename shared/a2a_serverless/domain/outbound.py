"""What became of one outbound HTTP exchange: what networks and strangers do is data, not an exception."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class OutboundError(StrEnum):
    """What ended an exchange early. ``refused`` is our own policy; all others may be different next time.

    ``unreadable``: nothing was sent, because what is to be sent could not be read.
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


@dataclass(frozen=True, slots=True)
class Outcome:
    """One exchange, of which at most one request was written.

    ``status`` is there once a complete response head came, and then decides about a delivery (``accepted``): an
    ``error`` beside it concerns the body only (cut at the byte limit, late, broken). A fetch needs ``error`` None.
    ``address`` was dialled (or kept open from before: ``reused``), ``connected`` says that the connection stood,
    TLS included, and ``request_sent`` that bytes of the request left, so the peer may have acted on them even when no
    answer came. ``retry_after`` and ``content_type`` are the header values as they came; ``reason`` explains ``error``
    without any secret.
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
        """The peer answered 2xx."""
        return self.status is not None and 200 <= self.status < 300  # noqa: PLR2004
