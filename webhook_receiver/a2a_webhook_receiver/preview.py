"""The parts of a request that the inbox shows: short plain data, safe to store and to send to a page.

Everything is cut to a fixed size; one part of a request that is still kept can be viewed whole. A file is a picture if
its first bytes are those of a PNG, JPEG, GIF or WebP; formats that can hold a script (SVG, HTML) never are. The page
inserts all of it as text.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping

from a2a_webhook_receiver import strict_json
from a2a_webhook_receiver.body import Artifact, Content, Part, read_content
from a2a_webhook_receiver.errors import Refused, Unreadable
from a2a_webhook_receiver.exchange import WebhookRequest
from a2a_webhook_receiver.strict_json import Json
from a2a_webhook_receiver.tasks import Delivery
from a2a_webhook_receiver.verifier import Headers, VerifiedChallenge, VerifiedNotification

TEXT = 4000
PARTS = 8
CLAIM = 200
_PICTURES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
_USER = ("ROLE_USER", "user")
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
        "append": _appends(content),
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
    """Why a request was refused, and its claims, which are not verified; and its event, if the request is authentic."""
    about = {"code": refusal.code, "step": refusal.step, "reason": str(refusal), "remedy": refusal.remedy}
    values = {name: _cut(text, CLAIM) for name in ("expected", "received") if (text := getattr(refusal, name))}
    subject = refusal.subject
    ids: dict[str, Json] = {"taskId": subject.task_id, "eventNumber": subject.event_number} if subject else {}
    return {
        **ids,
        "refusal": {**about, **values},
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


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _cut(value: Json, limit: int) -> str:
    text = _as_text(value)
    return text if len(text) <= limit else text[:limit] + "…"


def _artifacts(content: Content) -> list[Json]:
    views: list[Json] = []
    first = len(content.message)
    for artifact in content.artifacts[:PARTS]:
        about: dict[str, Json] = {"id": _cut(artifact.artifact_id, CLAIM), "name": _name(artifact)}
        views.append({**about, "parts": _parts(artifact.parts, first)})
        first += len(artifact.parts)
    return views


def _parts(parts: tuple[Part, ...], first: int = 0) -> list[Json]:
    """Views of the first parts. ``at`` is the number of a part in its notification: message first, then artifacts."""
    return [{"at": first + index, **_part(part)} for index, part in enumerate(parts[:PARTS])]


def _part(part: Part) -> dict[str, Json]:
    if part.kind == "file":
        return _file(part)
    text = _as_text(part.value)
    about = {"type": _cut(part.media_type, CLAIM), "name": _cut(part.filename, CLAIM)}
    return {"kind": part.kind, **about, "text": _cut(text, TEXT), "length": len(text), "cut": len(text) > TEXT}


def _file(part: Part) -> dict[str, Json]:
    encoded = part.value if isinstance(part.value, str) else ""
    size = len(encoded.rstrip("=")) * 3 // 4
    about = [part.filename or "a file", part.media_type or "of unknown type", f"{size:,} bytes"]
    kind = "file" if _media_type(_decode(encoded[:32])) is None else "image"
    return {"kind": kind, "text": _cut(", ".join(about), CLAIM), "name": _cut(part.filename, CLAIM), "bytes": size}


def _decode(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _media_type(start: bytes) -> str | None:
    return next((name for name, magic in _PICTURES.items() if magic.match(start)), None)


def view_part(request: WebhookRequest, at: int) -> dict[str, Json] | None:
    """One part of a notification, whole: its text, or a picture as ``source``, a data URL. None if there is no such."""
    version = next((value for name, value in request.headers if name.lower() == "a2a-version"), "0.3")
    try:
        content = read_content(request.body, version)
    except Unreadable:
        return None
    parts = [*content.message, *(part for artifact in content.artifacts for part in artifact.parts)]
    return _whole(parts[at]) if at < len(parts) else None


def _whole(part: Part) -> dict[str, Json]:
    if part.kind != "file":
        return {"text": _as_text(part.value)}
    decoded = _decode(part.value if isinstance(part.value, str) else "")
    media_type = _media_type(decoded)
    return {"source": f"data:{media_type};base64,{base64.b64encode(decoded).decode()}"} if media_type else {}


def view_prompt(content: Content) -> str | None:
    """The beginning of the client's first message, if the task's history is in the content."""
    task = content.payload.get("task", dict(content.payload))
    for message in _objects(_as_object(task).get("history")):
        if message.get("role") in _USER:
            return _first_words(_objects(message.get("parts")))
    return None


def _first_words(parts: Iterable[Mapping[str, Json]]) -> str | None:
    for part in parts:
        words = part.get("text") or part.get("filename") or _as_object(part.get("file")).get("name")
        if isinstance(words, str) and words.strip():
            return _cut(words.strip().partition("\n")[0].lstrip("# ").strip(), CLAIM)
    return None


def _appends(content: Content) -> bool:
    return _as_object(content.payload.get("artifactUpdate")).get("append") is True


def _objects(value: Json) -> list[dict[str, Json]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _as_object(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _task(delivery: Delivery) -> Json:
    fetched: Mapping[str, Json] | None = None
    if delivery.task is not None:
        task = delivery.task
        fetched = {"state": task.state, "artifacts": [{"name": _name(artifact)} for artifact in task.artifacts[:PARTS]]}
    return None if fetched is None and delivery.trouble is None else {**(fetched or {}), "trouble": delivery.trouble}


def _name(artifact: Artifact) -> str:
    return _cut(artifact.name or artifact.artifact_id, CLAIM)
