import copy
import json
import pickle
from dataclasses import fields, replace
from functools import cache

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from hypothesis import given
from hypothesis import strategies as st

from a2a_webhook_receiver.body import Content
from a2a_webhook_receiver.errors import Refused, Unauthentic, WrongBody, WrongType
from a2a_webhook_receiver.expectations import Expectation
from a2a_webhook_receiver.keys import KeySet, parse_key_set
from a2a_webhook_receiver.receive import WebhookRequest
from a2a_webhook_receiver.verifier import (
    Authentic,
    VerifiedChallenge,
    VerifiedNotification,
    accept,
    accept_challenge,
    authenticate,
    read_envelope,
    verify,
)
from tests.webhook_receiver.sending import EXPECTED, JWKS, signed
from vectors.cases import AUDIENCE, BODY, CHALLENGE, ISSUER, NOW, TASK, good_claims, good_headers
from vectors.forge import make_key, make_token, to_json, to_jwk

KEYS = parse_key_set(JWKS)


def check(
    request: WebhookRequest,
    *,
    keys: KeySet = KEYS,
    now: int = NOW,
    expectations: tuple[Expectation, ...] = (EXPECTED,),
) -> VerifiedNotification | VerifiedChallenge:
    return verify(request.headers, request.body, keys, now, issuer=ISSUER, audience=AUDIENCE, expectations=expectations)


def prove(request: WebhookRequest) -> Authentic:
    return authenticate(read_envelope(request.headers), request.body, KEYS, NOW, issuer=ISSUER, audience=AUDIENCE)


def test_a_verified_notification_says_what_the_issuer_vouched_for() -> None:
    verified = check(signed())
    assert isinstance(verified, VerifiedNotification)
    assert verified.subject.task_id == TASK
    assert verified.subject.event_number == 3
    assert verified.claims.issued_at == NOW
    assert verified.claims.expires_at == NOW + 300_000
    assert verified.content.state == "working"
    assert verified.expectation == EXPECTED


def test_only_the_verifier_can_make_a_verified_notification() -> None:
    verified = check(signed())
    assert isinstance(verified, VerifiedNotification)
    values = {field.name: getattr(verified, field.name) for field in fields(verified)}
    for seal in (None, object(), True):
        with pytest.raises(TypeError, match="only the verifier"):
            VerifiedNotification(**values, seal=seal)
        with pytest.raises(TypeError, match="only the verifier"):
            VerifiedChallenge("kid", "jti", "challenge", seal=seal)
        with pytest.raises(TypeError, match="only the verifier"):
            Authentic(prove(signed()).envelope, verified.claims, BODY, seal=seal)
    with pytest.raises(TypeError, match="seal"):
        VerifiedNotification(**values)


def test_a_verified_notification_cannot_be_changed() -> None:
    verified = check(signed())
    assert isinstance(verified, VerifiedNotification)
    with pytest.raises((TypeError, ValueError), match="seal"):  # TypeError from Python 3.13 on
        replace(verified, kid="another")  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        verified.kid = "another"  # type: ignore[misc]
    assert copy.copy(verified) == verified


def test_a_proof_survives_no_transport() -> None:
    content = check(signed())
    assert isinstance(content, VerifiedNotification)
    assert isinstance(pickle.loads(pickle.dumps(content.content)), Content)  # noqa: S301 - our own bytes


def test_a_challenge_is_no_notification_and_the_other_way_round() -> None:
    challenge, notification = prove(signed(CHALLENGE, challenge=True)), prove(signed())
    with pytest.raises(WrongType):
        accept(challenge, [EXPECTED], NOW)
    with pytest.raises(WrongType):
        accept_challenge(notification, expected=True)
    with pytest.raises(WrongType):
        _ = challenge.subject


def test_every_character_of_a_token_matters() -> None:
    request = signed()
    token = dict(request.headers)["Authorization"].removeprefix("Bearer ")
    for at, letter in enumerate(token):
        changed = token[:at] + ("A" if letter != "A" else "B") + token[at + 1 :]
        with pytest.raises(Unauthentic):
            check(WebhookRequest(tuple(good_headers(changed)), request.body))


def test_every_bit_of_a_body_matters() -> None:
    request = signed()
    for at in range(len(BODY) * 8):
        changed = bytearray(BODY)
        changed[at // 8] ^= 1 << at % 8
        with pytest.raises(WrongBody):
            check(replace(request, body=bytes(changed)))


def test_ten_thousand_good_requests_are_accepted_at_every_allowed_time() -> None:
    signers = [make_key(f"signer-{number}") for number in range(4)]
    keys = parse_key_set(to_json({"keys": [to_jwk(key) for key in signers]}))
    earliest, latest = NOW - 60_000, NOW + 359_999
    times = [earliest + (latest - earliest) * step // 19 for step in range(20)]
    verified = [
        check(signed_by(signers[number % 4], number + 1), keys=keys, now=now) for number in range(500) for now in times
    ]
    assert len(verified) == 10_000
    assert {each.subject.event_number for each in verified if isinstance(each, VerifiedNotification)} == {
        *range(1, 501)
    }


@cache
def signed_by(key: EllipticCurvePrivateKey, number: int) -> WebhookRequest:
    header = {"alg": "ES256", "typ": "a2a-notification+jwt", "kid": to_jwk(key)["kid"]}
    claims = good_claims(jti=f"j-{number}", notificationId=f"n-{number}", eventNumber=number)
    return WebhookRequest(tuple(good_headers(make_token(header, claims, key))), BODY)


@pytest.mark.parametrize("error", Refused.__subclasses__(), ids=lambda kind: kind.__name__)
def test_a_refusal_has_a_code_of_its_own(error: type[Refused]) -> None:
    assert error.code


HEADER = st.sampled_from(
    ["Authorization", "X-A2A-Notification-JWT", "X-A2A-Notification-Token", "Content-Type", "A2A-Version", "Via"]
)
VALUE = st.one_of(
    st.text(max_size=40), st.sampled_from([*dict(good_headers("a.b.c")).values(), *dict(signed().headers).values()])
)


@given(
    st.one_of(st.lists(st.tuples(HEADER, VALUE), max_size=8), st.permutations(signed().headers)),
    st.one_of(st.binary(max_size=60), st.just(BODY)),
)
def test_no_request_makes_the_verifier_stumble(headers: list[tuple[str, str]], body: bytes) -> None:
    try:
        verified = check(WebhookRequest(tuple(headers), body))
    except Refused:
        return
    assert isinstance(verified, VerifiedNotification)
    assert body == BODY


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(good_claims())), st.one_of(JSON, st.text("ab-1", min_size=1), st.integers(1, 9)))
def test_no_claim_makes_the_verifier_stumble(name: str, value: object) -> None:
    original = json.dumps(good_claims()[name])
    try:
        check(signed(**{name: value}))  # type: ignore[arg-type]
    except Refused:
        return
    assert json.dumps(value) == original or name in ("jti", "configId", "notificationId", "eventNumber", "iat", "exp")
