"""The webhook request as received, and the form in which the inbox shows it: secrets are replaced.

Shown are the signed tokens of this protocol, which are valid for minutes and for one body only. All other values of
headers that may hold a secret (the client's token and credentials, cookies, keys) are not.
"""

import base64
import re
from dataclasses import dataclass
from typing import Final

from a2a_webhook_receiver.strict_json import Json
from a2a_webhook_receiver.verifier import is_webhook_token

REDACTED: Final = "<redacted>"
_SECRET = re.compile(r"auth|token|jwt|key|secret|cookie|signature|password", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """A request as received. ``headers`` are in order and with duplicates."""

    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def size(self) -> int:
        """Bytes that it takes in memory, about."""
        return len(self.body) + sum(len(name) + len(value) for name, value in self.headers)


def view_request(request: WebhookRequest) -> dict[str, Json]:
    """Headers in order, secrets replaced, and the body: as text, or in base64 if it is not UTF-8."""
    headers: list[Json] = [[name, _shown(name, value)] for name, value in request.headers]
    return {"headers": headers, "bytes": len(request.body), **_view_body(request.body)}


def _shown(name: str, value: str) -> str:
    scheme, _, token = value.rpartition(" ")
    is_signature = scheme.lower() in ("", "bearer") and is_webhook_token(token)
    return value if is_signature or _SECRET.search(name) is None else REDACTED


def _view_body(body: bytes) -> dict[str, Json]:
    try:
        return {"body": body.decode("utf-8")}
    except UnicodeDecodeError:
        return {"bodyBase64": base64.b64encode(body).decode("ascii")}
