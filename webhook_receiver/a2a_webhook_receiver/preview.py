"""The parts of a request that the inbox shows: short plain data, safe to store and to send to a page.

Everything is cut to a fixed size. Only small PNGs are shown as pictures, and only if their first bytes are a PNG's;
formats that can hold a script (SVG, HTML) never are. The page inserts all of it as text.
"""

import base64
import binascii
import json
from typing import TYPE_CHECKING

from a2a_webhook_receiver import strict_json
from a2a_webhook_receiver.body import Artifact, Content, Part
from a2a_webhook_receiver.errors import Refused
from a2a_webhook_receiver.strict_json import Json
from a2a_webhook_receiver.tasks import Delivery
from a2a_webhook_receiver.verifier import Headers, VerifiedChallenge, VerifiedNotification

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXT = 4000
PARTS = 8
PICTURE = 128 * 1024
CLAIM = 200
_PNG = b"\x89PNG\r\n\x1a\n"
_SHOWN_CLAIMS = ("iss", "aud", "sub", "taskId", "configId", "notificationId", "eventNumber", "jti", "iat", "exp")


def view_delivery(delivery: Delivery) -> dict[str, Json]:
    """An accepted notification, with the task that was fetched for it."""
    notification = delivery.notification
    content = notification.content
    return {
        **view_claims(notification),
        "kind": content.kind,
        "version": content.version,
        "state": content.state,
        "contextId": content.context_id,
        "finished": content.finished,
        "message": _parts(content.message),
        "artifacts": _artifacts(content),
        "task": _task(delivery),
    }


def view_claims(notification: VerifiedNotification) -> dict[str, Json]:
    """The claims that the issuer signed."""
    claims, subject = notification.claims, notification.subject
    return {
        "kid": notification.kid,
        "jti": claims.jti,
        "issuer": claims.issuer,
        "audience": claims.audience,
        "issuedAt": claims.issued_at,
        "expiresAt": claims.expires_at,
        "bodySha256": claims.body_sha256,
        "taskId": subject.task_id,
        "configId": subject.config_id,
        "notificationId": subject.notification_id,
        "eventNumber": subject.event_number,
    }


def view_challenge(challenge: VerifiedChallenge) -> dict[str, Json]:
    """An answered challenge."""
    return {"kid": challenge.kid, "jti": challenge.jti}


def view_refusal(refusal: Refused, headers: Headers) -> dict[str, Json]:
    """Why a request was refused, and its claims, which are not verified."""
    return {
        "refusal": {"code": refusal.code, "step": refusal.step, "reason": str(refusal)},
        "claimed": _peek(headers),
    }


def _peek(headers: Headers) -> dict[str, Json]:
    """The token's header and claims, unverified and cut, to help find a mistake. Empty when they cannot be read."""
    values = [value for name, value in headers if name.lower() in ("authorization", "x-a2a-notification-jwt")]
    segments = values[-1].rpartition(" ")[2].split(".") if values else []
    if len(segments) != len(("header", "claims", "signature")):
        return {}
    header, claims = (_read_segment(segment) for segment in segments[:2])
    words = {name: header.get(name) for name in ("alg", "typ", "kid")} | {n: claims.get(n) for n in _SHOWN_CLAIMS}
    return {name: _cut(value, CLAIM) for name, value in words.items() if value is not None}


def _read_segment(segment: str) -> dict[str, Json]:
    try:
        return strict_json.parse_object(base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4)))
    except ValueError:
        return {}


def _cut(value: Json, limit: int) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return text if len(text) <= limit else text[:limit] + "…"


def _artifacts(content: Content) -> list[Json]:
    return [_artifact(artifact) for artifact in content.artifacts[:PARTS]]


def _artifact(artifact: Artifact) -> Json:
    return {"name": _cut(artifact.name or artifact.artifact_id, CLAIM), "parts": _parts(artifact.parts)}


def _parts(parts: tuple[Part, ...]) -> list[Json]:
    return [_part(part) for part in parts[:PARTS]]


def _part(part: Part) -> Json:
    if part.kind != "file":
        return {"kind": part.kind, "text": _cut(part.value, TEXT)}
    encoded = part.value if isinstance(part.value, str) else ""
    if _is_small_png(encoded):
        return {"kind": "image", "text": _cut(part.filename, CLAIM), "source": f"data:image/png;base64,{encoded}"}
    about = [part.filename or "a file", part.media_type or "of unknown type", f"{len(encoded) * 3 // 4:,} bytes"]
    return {"kind": "file", "text": _cut(", ".join(about), CLAIM)}


def _is_small_png(encoded: str) -> bool:
    if len(encoded) > PICTURE * 4 // 3 + 4:
        return False
    try:
        return base64.b64decode(encoded, validate=True).startswith(_PNG)
    except (binascii.Error, ValueError):
        return False


def _task(delivery: Delivery) -> Json:
    fetched: Mapping[str, Json] | None = None
    if delivery.task is not None:
        task = delivery.task
        fetched = {"state": task.state, "artifacts": _artifacts(task), "message": _parts(task.message)}
    return None if fetched is None and delivery.trouble is None else {**(fetched or {}), "trouble": delivery.trouble}
