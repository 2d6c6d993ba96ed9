"""Verifies that a webhook is genuine: pure functions over headers, raw body, keys, the time and the expectations.

The issuer signs each attempt with an ES256 JWT of its own type, bound to one receiver, a short time and the bytes of
one body. Everything else that a JWT may contain is refused, not ignored: the token's header may hold only ``alg``,
``typ`` and ``kid``, so an embedded key, key URL, critical extension or compression is never used.

PyJWT checks the signature. Claims are checked here, against the ``now`` that the caller passes.
"""

import hmac
import re
from collections.abc import Collection, Iterable
from dataclasses import InitVar, dataclass, replace
from hashlib import sha256
from typing import Final

from jwt import InvalidTokenError, PyJWS
from jwt.utils import base64url_decode, base64url_encode

from a2a_webhook_receiver import strict_json
from a2a_webhook_receiver.body import Content, read_challenge, read_content
from a2a_webhook_receiver.errors import (
    AmbiguousSignature,
    DuplicateHeader,
    Expired,
    ForbiddenHeader,
    LivesTooLong,
    MalformedClaims,
    MalformedToken,
    NoSignature,
    NotYetValid,
    UnexpectedChallenge,
    UnknownKey,
    UnsupportedMedia,
    WrongAlgorithm,
    WrongAudience,
    WrongBody,
    WrongIssuer,
    WrongSignature,
    WrongTask,
    WrongType,
    naming,
)
from a2a_webhook_receiver.expectations import Expectation, Presented, match
from a2a_webhook_receiver.keys import KEY_ID, KeySet
from a2a_webhook_receiver.strict_json import Json
from a2a_webhook_receiver.subject import Subject

Headers = Iterable[tuple[str, str]]

NOTIFICATION_TYPE = "a2a-notification+jwt"
CHALLENGE_TYPE = "a2a-challenge+jwt"
TOKEN_HEADER = "x-a2a-notification-jwt"  # noqa: S105 - a header's name
CLIENT_TOKEN_HEADER = "x-a2a-notification-token"  # noqa: S105 - a header's name
MEDIA_TYPES = frozenset({"application/a2a+json", "application/json"})

CLOCK_SKEW = 60_000
MAX_LIFETIME = 300_000
MAX_TOKEN = 8192
MAX_NUMBER = 2**53 - 1

_SINGLE = ("authorization", TOKEN_HEADER, CLIENT_TOKEN_HEADER, "a2a-version", "content-type", "content-encoding")
_COMPACT = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")
_BEARER = re.compile(r"Bearer (\S+)", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[\x21-\x7e]{1,256}")
_LABEL = re.compile(r"[^\x00-\x1f\x7f]+")
_HEX_SHA256 = re.compile(r"[0-9a-f]{64}")
_ES256: Final = PyJWS(algorithms=["ES256"])
_SEAL: Final = object()


@dataclass(frozen=True, slots=True)
class Envelope:
    """What the headers contain, parsed but not verified."""

    token: str
    type: str
    kid: str
    client_token: str | None
    authorization: str | None
    version: str


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims that the issuer signed. Times are milliseconds since the epoch. A challenge has no subject."""

    issuer: str
    audience: str
    issued_at: int
    expires_at: int
    jti: str
    body_sha256: str
    subject: Subject | None


@dataclass(frozen=True, slots=True)
class VerifiedNotification:
    """A notification that passed every check. Only the verifier can create one, so having one is the proof."""

    kid: str
    claims: Claims
    subject: Subject
    content: Content
    expectation: Expectation
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        _check_seal(seal)


@dataclass(frozen=True, slots=True)
class VerifiedChallenge:
    """The issuer's challenge: it asks whether this URL wants webhooks. Only the verifier can create one."""

    kid: str
    jti: str
    challenge: str
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        _check_seal(seal)


@dataclass(frozen=True, slots=True)
class Authentic:
    """The issuer signed this body for us, recently; expectations are not checked yet. Only the verifier creates one."""

    envelope: Envelope
    claims: Claims
    body: bytes
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        _check_seal(seal)

    @property
    def subject(self) -> Subject:
        """The event that it is about. Raises WrongType for a challenge, which has none."""
        if self.claims.subject is None:
            raise WrongType("a challenge is not a notification")
        return self.claims.subject

    @property
    def presented(self) -> Presented:
        """The values that are matched against the expectations."""
        return Presented(self.subject.task_id, self.envelope.client_token, self.envelope.authorization)


def verify(  # noqa: PLR0913 - a pure function: everything is a parameter
    headers: Headers,
    body: bytes,
    keys: KeySet,
    now: int,
    *,
    issuer: str,
    audience: str,
    expectations: Collection[Expectation],
) -> VerifiedNotification | VerifiedChallenge:
    """Verifies a request. Raises the ``Refused`` of the first rule that it breaks."""
    authentic = authenticate(read_envelope(headers), body, keys, now, issuer=issuer, audience=audience)
    if is_challenge(authentic.envelope):
        return accept_challenge(authentic, expected=any(each.expires > now for each in expectations))
    with naming(authentic.subject):
        return accept(authentic, expectations, now)


def read_envelope(headers: Headers) -> Envelope:
    """Finds the request's token and its key id. Raises Refused for wrong headers or a wrong token header."""
    single = _single_headers(headers)
    _check_media(single)
    token, authorization = _find_token(single)
    jose = _jose_header(token)
    return Envelope(
        token=token,
        type=_check_type(jose),
        kid=_check_kid(jose),
        client_token=single.get(CLIENT_TOKEN_HEADER),
        authorization=authorization,
        version=single.get("a2a-version", "0.3"),
    )


def is_challenge(envelope: Envelope) -> bool:
    """Whether this is a challenge, not a notification."""
    return envelope.type == CHALLENGE_TYPE


def authenticate(envelope: Envelope, body: bytes, keys: KeySet, now: int, *, issuer: str, audience: str) -> Authentic:
    """Verifies that ``issuer`` signed this body for ``audience`` and that the token is valid at ``now``."""
    claims = _read_claims(_check_signature(envelope, keys), challenge=is_challenge(envelope))
    if claims.issuer != issuer:
        raise WrongIssuer(f"the issuer is not {issuer}", issuer, claims.issuer)
    if claims.audience != audience:
        raise WrongAudience(f"the audience is not {audience}", audience, claims.audience)
    _check_times(claims, now)
    body_sha256 = sha256(body).hexdigest()
    if not hmac.compare_digest(body_sha256, claims.body_sha256):
        raise WrongBody("the body is not the one that was signed", claims.body_sha256, body_sha256)
    return Authentic(envelope, claims, body, seal=_SEAL)


def accept(authentic: Authentic, expectations: Iterable[Expectation], now: int) -> VerifiedNotification:
    """Verifies that we asked for this notification and that its body is about the task in its token."""
    expectation = match(authentic.presented, expectations, now)
    content = read_content(authentic.body, authentic.envelope.version)
    if content.task_id != authentic.subject.task_id:
        raise WrongTask("the body speaks of another task than the token", authentic.subject.task_id, content.task_id)
    return VerifiedNotification(
        authentic.envelope.kid, authentic.claims, authentic.subject, content, expectation, seal=_SEAL
    )


def accept_challenge(authentic: Authentic, *, expected: bool) -> VerifiedChallenge:
    """The challenge to send back. Raises UnexpectedChallenge when no token or task is registered here."""
    if not is_challenge(authentic.envelope):
        raise WrongType("a notification is not a challenge")
    if not expected:
        raise UnexpectedChallenge("a challenge, but no token or task is registered here")
    return VerifiedChallenge(authentic.envelope.kid, authentic.claims.jti, read_challenge(authentic.body), seal=_SEAL)


def _check_seal(seal: object) -> None:
    if seal is not _SEAL:
        raise TypeError("only the verifier may create this")


def _single_headers(headers: Headers) -> dict[str, str]:
    """The headers that the verifier uses. Raises DuplicateHeader when one of them comes twice."""
    values: dict[str, str] = {}
    for name, value in headers:
        lower = name.lower()
        if lower in values:
            raise DuplicateHeader(f"{lower} comes twice")
        if lower in _SINGLE:
            values[lower] = value
    return values


def _check_media(single: dict[str, str]) -> None:
    media_type, _, parameters = single.get("content-type", "").partition(";")
    charset = parameters.strip().lower().replace('"', "")
    if media_type.strip().lower() not in MEDIA_TYPES or charset not in ("", "charset=utf-8"):
        types = " or ".join(sorted(MEDIA_TYPES))
        raise UnsupportedMedia("the content type is another one", types, single.get("content-type", "none"))
    if single.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMedia("the body is compressed")


def _find_token(single: dict[str, str]) -> tuple[str, str | None]:
    """The token, and the client's own ``Authorization`` when the token is in a header of its own."""
    authorization = single.get("authorization")
    bearer = _BEARER.fullmatch(authorization or "")
    own = single.get(TOKEN_HEADER)
    if own is None:
        if bearer is None:
            raise NoSignature("no Bearer token and no X-A2A-Notification-JWT")
        return bearer.group(1), None
    if bearer is not None and is_webhook_token(bearer.group(1)):
        raise AmbiguousSignature("a token of ours in two headers")
    return own, authorization


def is_webhook_token(token: str) -> bool:
    """Whether the token says that it is a notification's or a challenge's. Nothing is verified."""
    try:
        jose = _jose_header(token)
    except (MalformedToken, ForbiddenHeader):
        return False
    return jose.get("typ") in (NOTIFICATION_TYPE, CHALLENGE_TYPE)


def _jose_header(token: str) -> dict[str, Json]:
    shape = _COMPACT.fullmatch(token) if len(token) <= MAX_TOKEN else None
    if shape is None:
        raise MalformedToken("not three segments of base64url")
    segments = [_canonical(segment) for segment in shape.groups()]
    try:
        jose = strict_json.parse_object(segments[0])
    except ValueError as error:
        raise MalformedToken(f"the token's header: {error}") from error
    if not jose.keys() <= {"alg", "typ", "kid"}:
        raise ForbiddenHeader("the token's header names more than alg, typ and kid")
    return jose


def _canonical(segment: str) -> bytes:
    """The decoded segment. Only the canonical encoding is accepted, not others that decode to the same bytes."""
    try:
        decoded = base64url_decode(segment)
    except ValueError as error:
        raise MalformedToken("a segment is not base64url") from error
    if base64url_encode(decoded) != segment.encode("ascii"):
        raise MalformedToken("a segment is not canonical base64url")
    return decoded


def _check_type(jose: dict[str, Json]) -> str:
    if jose.get("alg") != "ES256":
        raise WrongAlgorithm("the algorithm is not ES256", "ES256", str(jose.get("alg")))
    for token_type in (NOTIFICATION_TYPE, CHALLENGE_TYPE):
        if jose.get("typ") == token_type:
            return token_type
    raise WrongType(WrongType.reason, f"{NOTIFICATION_TYPE} or {CHALLENGE_TYPE}", str(jose.get("typ")))


def _check_kid(jose: dict[str, Json]) -> str:
    kid = jose.get("kid")
    if not isinstance(kid, str) or KEY_ID.fullmatch(kid) is None:
        raise MalformedToken("the token names no key")
    return kid


def _check_signature(envelope: Envelope, keys: KeySet) -> bytes:
    """The claims as bytes, once their signature is verified with the key that the token names."""
    key = keys.get(envelope.kid)
    if key is None:
        raise UnknownKey("the issuer publishes no such key", " or ".join(keys) or "a key", envelope.kid)
    try:
        decoded = _ES256.decode_complete(envelope.token, key, algorithms=["ES256"])
    except InvalidTokenError as error:
        raise WrongSignature("the key that the token names did not sign it") from error
    payload: bytes = decoded["payload"]
    return payload


def _read_claims(payload: bytes, *, challenge: bool) -> Claims:
    try:
        claims = strict_json.parse_object(payload)
        common = _common_claims(claims)
        return common if challenge else replace(common, subject=_read_subject(claims))
    except ValueError as error:
        raise MalformedClaims(str(error)) from error


def _common_claims(claims: dict[str, Json]) -> Claims:
    if "nbf" in claims and _number(claims, "nbf") > _number(claims, "iat"):
        raise ValueError("nbf is after iat")
    return Claims(
        issuer=_string(claims, "iss", 2048),
        audience=_string(claims, "aud", 2048),
        issued_at=_number(claims, "iat") * 1000,
        expires_at=_number(claims, "exp") * 1000,
        jti=_identifier(claims, "jti"),
        body_sha256=_hash(claims, "request_body_sha256"),
        subject=None,
    )


def _read_subject(claims: dict[str, Json]) -> Subject:
    task_id = _identifier(claims, "taskId")
    if _identifier(claims, "sub") != task_id:
        raise ValueError("sub is not the task")
    return Subject(
        task_id=task_id,
        config_id=_label(claims, "configId"),
        notification_id=_identifier(claims, "notificationId"),
        event_number=_number(claims, "eventNumber"),
    )


def _check_times(claims: Claims, now: int) -> None:
    lifetime = claims.expires_at - claims.issued_at
    if not 0 < lifetime <= MAX_LIFETIME:
        limit = f"1 to {MAX_LIFETIME // 1000} s from iat to exp"
        raise LivesTooLong(f"not {limit}", limit, f"{lifetime // 1000} s")
    early, old = (claims.issued_at - now) // 1000, (now - claims.expires_at) // 1000
    if claims.issued_at > now + CLOCK_SKEW:
        raise NotYetValid(f"issued {early} s ahead of our clock", f"at most {CLOCK_SKEW // 1000} s ahead", f"{early} s")
    if claims.expires_at + CLOCK_SKEW <= now:
        raise Expired(f"expired {old} s ago", f"less than {CLOCK_SKEW // 1000} s ago by our clock", f"{old} s ago")


def _string(claims: dict[str, Json], name: str, limit: int) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= limit:
        raise ValueError(f"{name} is not a string of at most {limit} characters")
    return value


def _identifier(claims: dict[str, Json], name: str) -> str:
    value = _string(claims, name, 256)
    if _IDENTIFIER.fullmatch(value) is None:
        raise ValueError(f"{name} holds more than visible ASCII characters")
    return value


def _label(claims: dict[str, Json], name: str) -> str:
    """A name that a client chose: any characters except control characters."""
    value = _string(claims, name, 256)
    if _LABEL.fullmatch(value) is None:
        raise ValueError(f"{name} holds control characters")
    return value


def _number(claims: dict[str, Json], name: str) -> int:
    value = claims.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= MAX_NUMBER:
        raise ValueError(f"{name} is not a whole number from 1")
    return value


def _hash(claims: dict[str, Json], name: str) -> str:
    value = _string(claims, name, 64)
    if _HEX_SHA256.fullmatch(value) is None:
        raise ValueError(f"{name} is not 64 lower-case hex digits")
    return value
