"""Events from outside: requests of other systems to the address of a task's callback."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

from a2a_serverless.domain.agent import CallbackRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.domain.model import Json

EVENT_LIMIT: Final = 256 * 1024
"""The longest body, in bytes."""
REQUESTS_A_MINUTE: Final = 10
_HEADERS: Final = frozenset(
    {
        *("content-type", "content-encoding", "user-agent", "date", "idempotency-key", "x-request-id"),
        *("webhook-id", "webhook-timestamp", "webhook-signature", "stripe-signature"),
        *("x-hub-signature-256", "x-github-event", "x-github-delivery"),
    }
)
"""What an agent gets. Nothing with credentials, cookies or addresses."""
_HEADER_LIMIT: Final = 4096


def event_digest(address: str) -> str:
    """The name under which an address, or the id at its end, is looked up: the id is not in there."""
    return sha256(address.rpartition("/")[2].encode(errors="surrogatepass")).hexdigest()


def dump_event(headers: Mapping[str, str], body: bytes, at: int) -> Json:
    """What is stored of a request that came at ``at`` (ms)."""
    allowed = {name: text for name, text in headers.items() if name in _HEADERS and len(text) <= _HEADER_LIMIT}
    return {"at": at, "headers": cast("Json", allowed), "body": base64.b64encode(body).decode()}


def load_event(stored: Json) -> CallbackRequest:
    """The request that ``dump_event`` wrote."""
    record = cast("dict[str, Any]", stored)
    received_at = datetime.fromtimestamp(record["at"] / 1000, UTC)
    return CallbackRequest(base64.b64decode(record["body"]), record["headers"], received_at)
