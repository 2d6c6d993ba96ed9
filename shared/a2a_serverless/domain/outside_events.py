"""Events from outside: requests of other systems to the address of a task's callback, and their signatures.

Signatures are HMACs with SHA-256 over the exact body, in the schemes that ``task.callback`` knows. Sources:
docs.stripe.com/webhooks/signature, docs.github.com/webhooks ("Validating webhook deliveries"), standardwebhooks.com
(specification 1.0.0, symmetric signatures).
"""

from __future__ import annotations

import base64
import hmac
import re
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from a2a_serverless.domain.errors import InvalidSignature
from a2a_serverless.domain.task_context import CallbackRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.domain.model import Json

TOLERANCE_S: Final = 300
SECRET_LIMIT: Final = 1024
STANDARD: Final = "standard-webhooks"
_TIME: Final = re.compile(r"[0-9]{1,12}")


class SignedWith(NamedTuple):
    """The scheme in which a provider signs, and the name of the project's secret with which it does."""

    scheme: str
    secret: str


class _Signature(NamedTuple):
    """The content that was signed, the signatures of which one has to be right, and the time (seconds) if signed."""

    content: bytes
    given: list[str]
    at: str | None = None


def parse_signed_with(text: str) -> SignedWith:
    """Parses ``scheme:secret``. Raises ValueError, which lists the schemes."""
    scheme, _, secret = text.partition(":")
    if scheme not in _SCHEMES or not secret:
        raise ValueError(f"signed_with is a scheme, a colon and a secret's name; {text!r} is not. Schemes: {_LISTED}.")
    return SignedWith(scheme, secret)


def check_secret(signed_with: SignedWith, secret: str) -> None:
    """Raises ValueError, without the secret, if the scheme cannot use it."""
    try:
        usable = bool(_key_of(signed_with.scheme, secret)) and len(secret.encode()) <= SECRET_LIMIT
    except ValueError:
        usable = False
    if not usable:
        form = " in base64, after whsec_" if signed_with.scheme == STANDARD else ""
        raise ValueError(f"The secret {signed_with.secret!r} is not 1 to {SECRET_LIMIT} bytes{form}.")


def check_signature(scheme: str, secret: str, headers: Mapping[str, str], body: bytes, now: int) -> None:
    """Raises InvalidSignature unless the request has a signature of now (ms). ``headers`` have names in lower case."""
    name, read, encode = _SCHEMES[scheme]
    if name not in headers:
        raise InvalidSignature(f"This address takes requests with the header {name} only.")
    content, signatures, at = read(headers, body)
    right = encode(hmac.digest(_key_of(scheme, secret), content, sha256)).encode()
    if not any(hmac.compare_digest(right, one.encode()) for one in signatures):
        raise InvalidSignature(f"The signature in {name} is not one of this body with the secret of this address.")
    if at is not None and not (_TIME.fullmatch(at) and abs(now / 1000 - int(at)) <= TOLERANCE_S):
        raise InvalidSignature(f"The signature in {name} is not of the last {TOLERANCE_S // 60} minutes.")


def _key_of(scheme: str, secret: str) -> bytes:
    if scheme == STANDARD:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    return secret.encode()


def _read_github(headers: Mapping[str, str], body: bytes) -> _Signature:
    kind, _, signature = headers["x-hub-signature-256"].partition("=")
    return _Signature(body, [signature] if kind == "sha256" else [])


def _read_stripe(headers: Mapping[str, str], body: bytes) -> _Signature:
    items = [item.strip().partition("=") for item in headers["stripe-signature"].split(",")]
    at = next((value for name, _, value in items if name == "t"), "")
    return _Signature(at.encode() + b"." + body, [value for name, _, value in items if name == "v1"], at)


def _read_standard(headers: Mapping[str, str], body: bytes) -> _Signature:
    """An id with a full stop has no signature: parts of the body could be moved into it."""
    webhook_id, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    items = [item.partition(",") for item in headers["webhook-signature"].split()]
    signatures = [value for version, _, value in items if version == "v1" and "." not in webhook_id]
    return _Signature(f"{webhook_id}.{at}.".encode() + body, signatures, at)


_SCHEMES: Final[dict[str, tuple[str, Callable[[Mapping[str, str], bytes], _Signature], Callable[[bytes], str]]]] = {
    "github": ("x-hub-signature-256", _read_github, bytes.hex),
    STANDARD: ("webhook-signature", _read_standard, lambda digest: base64.b64encode(digest).decode()),
    "stripe": ("stripe-signature", _read_stripe, bytes.hex),
}
"""By scheme: the header with the signatures, the function that reads it, and how a digest is written there."""
_LISTED: Final = ", ".join(_SCHEMES)


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
