"""An A2A webhook receiver in one file: a Lambda function behind API Gateway or a function URL, with PyJWT only.

Set ISSUER, AUDIENCE (this function's URL, exactly as registered) and WEBHOOK_TOKEN (which you register as ``token``),
and change ``handle``. Rules and their order are those of the full receiver: ``vectors/vectors.json`` tests both.
"""

import base64
import hmac
import json
import logging
import math
import os
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from hashlib import sha256
from http.client import HTTPException
from typing import Any, NoReturn

from jwt import InvalidTokenError, PyJWS
from jwt.algorithms import ECAlgorithm

Json = Any
Keys = Mapping[str, Any]

NOTIFICATION, CHALLENGE = "a2a-notification+jwt", "a2a-challenge+jwt"
FETCH_SECONDS = 3.0
SKEW, MAX_LIFETIME, COOL_DOWN, REFRESH_AFTER, STALE_AFTER = 60_000, 300_000, 30_000, 240_000, 86_400_000
MAX_KEYS, MAX_KEY_BYTES, MAX_TOKEN, MAX_DEPTH, MAX_DIGITS = 16, 64 * 1024, 8192, 64, 300
OWN_HEADER = "x-a2a-notification-jwt"
SINGLE = {"authorization", OWN_HEADER, "x-a2a-notification-token", "a2a-version", "content-type", "content-encoding"}
KEY_ID = re.compile(r"[A-Za-z0-9_.~-]{1,128}")
INTERRUPTED, TERMINAL = ["input-required", "auth-required"], ["completed", "failed", "canceled", "rejected"]
STATES = ["submitted", "working", *INTERRUPTED, *TERMINAL]
STATES_1_0 = [f"TASK_STATE_{state.upper().replace('-', '_')}" for state in STATES]
STATUS = {"unsupported-media": 415, "unreadable-body": 400, "unsupported-version": 400}

logger = logging.getLogger()


def handle(notification: dict[str, Json]) -> None:
    """Replace this. It may be called again for the same notification: store ``claims["notificationId"]``."""
    claims = notification["claims"]
    logger.info("task %s, event %d", claims["taskId"], claims["eventNumber"])


def handler(event: dict[str, Json], _context: object) -> dict[str, Json]:
    """The Lambda entry point."""
    return answer_event(event, key_cache, time.time_ns() // 1_000_000)


def answer_event(event: dict[str, Json], cache: "KeyCache", now: int) -> dict[str, Json]:
    """Answers one request, at ``now`` (milliseconds since the epoch)."""
    body = event.get("body") or ""
    raw = base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()
    expectations = [{"token": os.environ["WEBHOOK_TOKEN"], "expires": math.inf}]
    try:
        headers = header_pairs(event)
        keys = cache.keys_for(read_envelope(headers)["kid"], now)
        issuer, audience = os.environ["ISSUER"], os.environ["AUDIENCE"]
        proven = verify(headers, raw, keys, now, issuer=issuer, audience=audience, expectations=expectations)
    except Refused as refusal:
        logger.warning("refused code=%s", refusal.code)
        return refuse(refusal)
    except KeysUnavailable:
        logger.warning("refused code=keys-unavailable")
        return answer(503, {"error": "keys-unavailable"}, {"Retry-After": "30"})
    if "challenge" in proven:
        return answer(200, proven)
    handle(proven)
    return answer(200, {"received": True})


def header_pairs(event: dict[str, Json]) -> list[tuple[str, str]]:
    """All headers: a REST API lists duplicates separately, other APIs join them with commas."""
    several: dict[str, list[str]] | None = event.get("multiValueHeaders")
    if several is not None:
        return [(name, value) for name, values in several.items() for value in values]
    return list((event.get("headers") or {}).items())


def refuse(refusal: "Refused") -> dict[str, Json]:
    """The answer to a refused request: the same for everything that is not authentic."""
    status = STATUS.get(refusal.code)
    if status is None:
        return answer(401, {"error": "unauthenticated"}, {"WWW-Authenticate": "Bearer"})
    return answer(status, {"error": refusal.code})


def answer(status: int, content: dict[str, Json], headers: Mapping[str, str] | None = None) -> dict[str, Json]:
    """An answer in the form of API Gateway and function URLs."""
    return {
        "statusCode": status,
        "headers": {"Content-Type": "application/json", "Cache-Control": "no-store", **(headers or {})},
        "body": json.dumps(content),
    }


class Refused(Exception):
    """A request that must have no effect. ``code`` names the rule that it breaks; do not send it to the sender."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class KeysUnavailable(Exception):
    """The issuer's keys cannot be fetched now."""


class KeyCache:
    """The issuer's keys: at most one fetch in 30 seconds, successful or not; old keys stay valid for a day.

    A function instance handles one request at a time, so nothing here is shared between threads.
    """

    def __init__(self, fetch: Callable[[], bytes]) -> None:
        self._fetch = fetch
        self._keys: Keys = {}
        self._fetched = self._tried = -STALE_AFTER

    def keys_for(self, kid: str, now: int) -> Keys:
        """The current keys. Raises KeysUnavailable."""
        known = kid in self._keys and now - self._fetched < STALE_AFTER
        due = not known or now - self._fetched >= REFRESH_AFTER
        if due and now - self._tried >= COOL_DOWN:
            self._refresh(now)
        if self._fetched < self._tried and (kid not in self._keys or now - self._fetched >= STALE_AFTER):
            raise KeysUnavailable
        return self._keys

    def _refresh(self, now: int) -> None:
        self._tried = now
        try:
            self._keys = parse_keys(self._fetch())
            self._fetched = now
        except (OSError, ValueError, HTTPException):
            logger.warning("the issuer's keys could not be fetched")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_args: object, **_keywords: object) -> None:
        return None


def fetch_keys(seconds: float = FETCH_SECONDS) -> bytes:
    """Fetches the issuer's key set: no redirect, no proxy, three seconds for the whole exchange, 64 KiB."""
    answer: Future[bytes] = Future()

    def run() -> None:
        try:
            answer.set_result(_download())
        except Exception as error:  # noqa: BLE001 - the caller gets any error
            answer.set_exception(error)

    threading.Thread(target=run, daemon=True).start()  # a socket's timeout applies to each read only
    return answer.result(seconds)


def _download() -> bytes:
    opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))
    url = f"{os.environ['ISSUER']}/.well-known/jwks.json"
    with opener.open(url, timeout=FETCH_SECONDS) as response:
        content: bytes = response.read(MAX_KEY_BYTES + 1)
    return content


key_cache = KeyCache(fetch_keys)


def parse_keys(raw: bytes) -> Keys:
    """The usable keys of a JWK set: P-256 keys for signatures. Raises ValueError."""
    listed = parse_object(raw).get("keys")
    if len(raw) > MAX_KEY_BYTES or not isinstance(listed, list) or len(listed) > MAX_KEYS:
        raise ValueError("no key set of a reasonable size")
    usable = [jwk for jwk in listed if _is_usable(jwk)]
    keys = {jwk["kid"]: ECAlgorithm.from_jwk(jwk) for jwk in usable}
    if not keys or len(keys) != len(usable):
        raise ValueError("no usable key, or a key id twice")
    return keys


def _is_usable(jwk: Json) -> bool:
    if not isinstance(jwk, dict) or "d" in jwk or not isinstance(jwk.get("kid"), str):
        return False
    kinds = (jwk.get("kty"), jwk.get("crv"), jwk.get("use", "sig"), jwk.get("alg", "ES256"))
    allowed = "verify" in jwk.get("key_ops", ["verify"])
    return allowed and kinds == ("EC", "P-256", "sig", "ES256") and bool(KEY_ID.fullmatch(jwk["kid"]))


def verify(  # noqa: PLR0913 - a pure function: everything is a parameter
    headers: Iterable[tuple[str, str]],
    body: bytes,
    keys: Keys,
    now: int,
    *,
    issuer: str,
    audience: str,
    expectations: Iterable[Mapping[str, Json]],
) -> dict[str, Json]:
    """Returns ``{"claims": ..., "body": ...}`` for a genuine notification, ``{"challenge": ...}`` for a challenge.

    Raises Refused with the code of the first rule that it breaks.
    ``now`` is in milliseconds since the epoch. An expectation has ``expires``, ``taskId`` or ``token`` or both, and
    ``authorization`` if you registered credentials.
    """
    envelope = read_envelope(headers)
    claims = _read_claims(_check_signature(envelope, keys), envelope["typ"])
    if claims["iss"] != issuer:
        raise Refused("wrong-issuer")
    if claims["aud"] != audience:
        raise Refused("wrong-audience")
    _check_times(claims["iat"] * 1000, claims["exp"] * 1000, now)
    if not hmac.compare_digest(sha256(body).hexdigest(), claims["request_body_sha256"]):
        raise Refused("wrong-body")
    current = [each for each in expectations if each["expires"] > now]
    if envelope["typ"] == CHALLENGE:
        return {"challenge": _read_challenge(body, expected=bool(current))}
    _match(envelope, claims["taskId"], current)
    task_id, content = _read_body(body, envelope["version"])
    if task_id != claims["taskId"]:
        raise Refused("wrong-task")
    return {"claims": claims, "body": content}


def read_envelope(headers: Iterable[tuple[str, str]]) -> dict[str, Json]:
    """What the headers contain, parsed but not verified. Raises Refused."""
    single = _single(headers)
    _check_media(single)
    token, authorization = _find_token(single)
    jose = _jose_header(token)
    if jose.get("alg") != "ES256":
        raise Refused("wrong-algorithm")
    if jose.get("typ") not in (NOTIFICATION, CHALLENGE):
        raise Refused("wrong-type")
    kid = jose.get("kid")
    if not isinstance(kid, str) or not KEY_ID.fullmatch(kid):
        raise Refused("malformed-token")
    client_token, version = single.get("x-a2a-notification-token"), single.get("a2a-version", "0.3")
    proof = {"token": token, "authorization": authorization, "client_token": client_token}
    return {"typ": jose["typ"], "kid": kid, "version": version, **proof}


def _single(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers:
        if name.lower() in found:
            raise Refused("duplicate-header")
        if name.lower() in SINGLE:
            found[name.lower()] = value
    return found


def _check_media(single: dict[str, str]) -> None:
    media_type, _, parameters = single.get("content-type", "").partition(";")
    charset = parameters.strip().lower().replace('"', "")
    is_json = media_type.strip().lower() in ("application/a2a+json", "application/json")
    is_plain = single.get("content-encoding", "identity").lower() == "identity"
    if not (is_json and is_plain and charset in ("", "charset=utf-8")):
        raise Refused("unsupported-media")


def _find_token(single: dict[str, str]) -> tuple[str, str | None]:
    authorization, own = single.get("authorization"), single.get(OWN_HEADER)
    bearer = re.fullmatch(r"(?i:Bearer) (\S+)", authorization or "")
    if own is None and bearer is None:
        raise Refused("no-signature")
    if own is None:
        return str(bearer and bearer[1]), None
    if bearer is not None and _claims_our_type(bearer[1]):
        raise Refused("ambiguous-signature")
    return own, authorization


def _claims_our_type(token: str) -> bool:
    try:
        return _jose_header(token).get("typ") in (NOTIFICATION, CHALLENGE)
    except Refused:
        return False


def _jose_header(token: str) -> dict[str, Json]:
    if len(token) > MAX_TOKEN or not re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){2}", token):
        raise Refused("malformed-token")
    try:
        jose = _parse_header(*map(_decode, token.split(".")))
    except ValueError:
        raise Refused("malformed-token") from None
    if not jose.keys() <= {"alg", "typ", "kid"}:
        raise Refused("forbidden-header")
    return jose


def _parse_header(header: bytes, _claims: bytes, _signature: bytes) -> dict[str, Json]:
    return parse_object(header)


def _decode(segment: str) -> bytes:
    decoded = base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
    if base64.urlsafe_b64encode(decoded).rstrip(b"=") != segment.encode():
        raise ValueError("not canonical base64url")
    return decoded


def _check_signature(envelope: dict[str, Json], keys: Keys) -> bytes:
    if envelope["kid"] not in keys:
        raise Refused("unknown-key")
    try:
        signed = PyJWS(algorithms=["ES256"]).decode_complete(
            envelope["token"], keys[envelope["kid"]], algorithms=["ES256"]
        )
    except InvalidTokenError:
        raise Refused("wrong-signature") from None
    payload: bytes = signed["payload"]
    return payload


def _read_claims(payload: bytes, typ: str) -> dict[str, Json]:
    try:
        claims = parse_object(payload)
        _check_common(claims)
        if typ == NOTIFICATION:
            _check_subject(claims)
    except ValueError:
        raise Refused("malformed-claims") from None
    return claims


def _check_common(claims: dict[str, Json]) -> None:
    for name in ("iss", "aud"):
        _text(claims.get(name), r"(?s:.){1,2048}")
    for name in ("iat", "exp"):
        _number(claims.get(name))
    _text(claims.get("jti"))
    _text(claims.get("request_body_sha256"), r"[0-9a-f]{64}")
    if "nbf" in claims and _number(claims["nbf"]) > claims["iat"]:
        raise ValueError("nbf is after iat")


def _check_subject(claims: dict[str, Json]) -> None:
    for name in ("taskId", "sub", "notificationId"):
        _text(claims.get(name))
    _text(claims.get("configId"), r"[^\x00-\x1f\x7f]{1,256}")
    _number(claims.get("eventNumber"))
    if claims["sub"] != claims["taskId"]:
        raise ValueError("sub is not the task")


def _check_times(issued: int, expires: int, now: int) -> None:
    if not 0 < expires - issued <= MAX_LIFETIME:
        raise Refused("lives-too-long")
    if issued > now + SKEW:
        raise Refused("not-yet-valid")
    if expires + SKEW <= now:
        raise Refused("expired")


def _match(envelope: dict[str, Json], task_id: str, current: list[Mapping[str, Json]]) -> None:
    named = [each for each in current if each.get("taskId", task_id) == task_id]
    right = [each for each in named if _same(each.get("token"), envelope["client_token"])]
    if not right:
        raise Refused("wrong-token" if any(each.get("taskId") == task_id for each in current) else "unknown-task")
    if not [each for each in right if _same(each.get("authorization"), envelope["authorization"])]:
        raise Refused("wrong-credentials")


def _same(expected: str | None, given: str | None) -> bool:
    """Compares in constant time. If nothing is expected, any value matches."""
    if expected is None:
        return True
    pair = [sha256((value or "").encode("utf-8", "surrogatepass")).digest() for value in (expected, given)]
    return hmac.compare_digest(*pair)


def _read_challenge(body: bytes, *, expected: bool) -> str:
    if not expected:
        raise Refused("unexpected-challenge")
    try:
        content = parse_object(body)
        _text(content.get("type"), r"a2a\.webhook\.challenge")
        return _text(content.get("challenge"), r"(?s:.){1,512}")
    except ValueError:
        raise Refused("unreadable-body") from None


def _read_body(body: bytes, version: str) -> tuple[str, dict[str, Json]]:
    readers = {"1.0": _task_of_1_0, "0.3": _task_of_0_3}
    if version not in readers:
        raise Refused("unsupported-version")
    try:
        content = parse_object(body)
        return readers[version](content), content
    except (ValueError, TypeError, KeyError):
        raise Refused("unreadable-body") from None


def _task_of_1_0(body: dict[str, Json]) -> str:
    (kind,) = [name for name in ("task", "message", "statusUpdate", "artifactUpdate") if name in body]
    event = _object(body[kind])
    if kind in ("task", "statusUpdate"):
        _check_status(event["status"], STATES_1_0)
    if kind == "message":
        _string(event["messageId"], event["role"])
        _check_parts(event["parts"])
    _optional(event, "contextId")
    _check_artifacts([event["artifact"]] if kind == "artifactUpdate" else event.get("artifacts", []), kind)
    return _string(event["id" if kind == "task" else "taskId"])


def _task_of_0_3(body: dict[str, Json]) -> str:
    if body["kind"] != "task":
        raise ValueError("not a task")
    _check_status(body["status"], STATES)
    _string(body["contextId"])
    _check_artifacts(body.get("artifacts", []), "task")
    return _string(body["id"])


def _check_status(status: Json, states: list[str]) -> None:
    if _string(_object(status)["state"]) not in states:
        raise ValueError("an unknown state")
    if "message" in status:
        _check_parts(_object(status["message"])["parts"])


def _check_artifacts(artifacts: Json, kind: str) -> None:
    if kind not in ("task", "artifactUpdate"):
        return
    for artifact in _list(artifacts):
        _string(_object(artifact)["artifactId"])
        _optional(artifact, "name")
        _check_parts(artifact["parts"])


def _check_parts(parts: Json) -> None:
    if not _list(parts):
        raise ValueError("no parts")
    for part in parts:
        _check_part(_object(part))


def _check_part(part: dict[str, Json]) -> None:
    if part.get("kind") == "file":
        file = _object(part["file"])
        _string(file["bytes"] if "bytes" in file else file["uri"])
        return _optional(file, "mimeType", "name")
    (name,) = [name for name in ("text", "data", "url", "raw") if name in part]
    if name != "data":
        _string(part[name])
    return _optional(part, "mediaType", "filename")


def _object(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return value


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


def _string(*values: Json) -> str:
    if not all(isinstance(value, str) for value in values):
        raise TypeError("not a string")
    return str(values[0])


def _optional(holder: dict[str, Json], *names: str) -> None:
    for name in names:
        if holder.get(name) is not None:
            _string(holder[name])


def _text(value: Json, pattern: str = r"[\x21-\x7e]{1,256}") -> str:
    if not isinstance(value, str) or not re.fullmatch(pattern, value):
        raise ValueError("not a text of that form")
    return value


def _number(value: Json) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**53:
        raise ValueError("not a whole number from 1")
    return value


def parse_object(raw: bytes) -> dict[str, Json]:
    """Parses a JSON object that every parser reads the same way. Raises ValueError.

    UTF-8 without byte order mark, no duplicate name in an object, numbers in range, no lone surrogates, at most 64
    levels.
    """
    try:
        value = json.loads(
            raw.decode(),
            object_pairs_hook=_refuse_duplicates,
            parse_constant=_no_constant,
            parse_float=_in_range,
            parse_int=_in_range,
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level, depth = [value], 1
    while level := [child for item in level for child in _children(item)]:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - one error for one bad text
    return value


def _children(item: Json) -> list[Json]:
    texts = [item] if isinstance(item, str) else item if isinstance(item, dict) else []
    for text in texts:
        text.encode()  # a lone surrogate raises UnicodeEncodeError, which is a ValueError
    if isinstance(item, dict):
        return list(item.values())
    return item if isinstance(item, list) else []


def _refuse_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a name comes twice in one object")
    return dict(pairs)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _in_range(digits: str) -> int | float:
    number: int | float = float(digits)
    if math.isinf(number) or (digits.lstrip("-").isdecimal() and len(digits) > MAX_DIGITS):
        raise ValueError("a number is out of range")
    return int(digits) if digits.lstrip("-").isdecimal() else number
