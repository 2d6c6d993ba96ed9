"""Who comes in: API keys and an issuer's tokens; everything else is refused the same way."""

from __future__ import annotations

import hmac
import json
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from jwt.utils import base64url_encode

from a2a_serverless.adapters.oidc import (
    COOL_DOWN_MS,
    FIRST_COOL_DOWN_MS,
    RENEW_AFTER_MS,
    STALE_AFTER_MS,
    OidcTokenVerifier,
)
from a2a_serverless.domain.access import ApiKey, Caller, InvalidToken, TrustedIssuer, digest_of, encode_key
from a2a_serverless.domain.errors import Overloaded, TaskNotFound, Unauthenticated
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.schedules import Schedule
from a2a_serverless.http.api import OidcOrApiKey
from a2a_serverless.store.api_keys import KEPT_MS, CachedApiKeyStore
from tests.doubles import MemoryApiKeyStore

if TYPE_CHECKING:
    from collections.abc import Callable

NOW_S = 1_790_000_000
ISSUER, AUDIENCE, URL = "https://issuer.example.com", "a2a", "https://issuer.example.com/keys"
RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ALICE = Principal("acme", "alice")


def key_set(*keys: dict[str, Any]) -> str:
    return json.dumps({"keys": list(keys)})


def rsa_jwk(kid: str = "r1") -> dict[str, Any]:
    return {**RSAAlgorithm.to_jwk(RSA_KEY.public_key(), as_dict=True), "kid": kid, "use": "sig", "alg": "RS256"}


def ec_jwk(kid: str = "e1") -> dict[str, Any]:
    return {**ECAlgorithm.to_jwk(EC_KEY.public_key(), as_dict=True), "kid": kid, "use": "sig", "alg": "ES256"}


class Issuer:
    """Publishes keys, and counts who asks."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.asked = 0
        self.now = 1_000_000
        self.beside: list[Callable[[], None]] = []

    def fetch(self, url: str) -> str:
        assert url == URL
        self.asked += 1
        return self.text

    def tokens(self, tenant_claim: str = "tenant", **other: Any) -> OidcTokenVerifier:
        trust = TrustedIssuer(ISSUER, AUDIENCE, URL, tenant_claim=tenant_claim, **other)
        return OidcTokenVerifier(trust, self.fetch, lambda: self.now, self.beside.append)


def claims(**other: object) -> dict[str, object]:
    return {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "tenant": "acme", "exp": 4_000_000_000, **other}


def token(said: dict[str, object], key: Any = RSA_KEY, algorithm: str = "RS256", kid: str = "r1", **head: Any) -> str:
    return jwt.encode(said, key, algorithm, headers={"kid": kid, **head})


def written(header: str, body: str) -> str:
    """A token of exactly these two texts, with a signature that is good."""
    signed = b".".join(base64url_encode(part.encode()) for part in (header, body))
    signature = RSAAlgorithm(RSAAlgorithm.SHA256).sign(signed, RSA_KEY)
    return b".".join((signed, base64url_encode(signature))).decode()


HEADER = '{"alg": "RS256", "kid": "r1"}'
BODY = json.dumps({"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "tenant": "acme", "exp": 4_000_000_000})


def confused(kid: str, key: Any) -> str:
    """A token whose "shared secret" is the issuer's public key, as it can be read by everybody."""
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    head, body = (base64url_encode(json.dumps(part).encode()) for part in ({"alg": "HS256", "kid": kid}, claims()))
    signed = b".".join((head, body))
    return b".".join((signed, base64url_encode(hmac.digest(public, signed, "sha256")))).decode()


def test_no_token_of_the_issuer_takes_the_owner_of_schedules() -> None:
    """An issuer may let its users choose their names."""
    tokens = Issuer(key_set(rsa_jwk())).tokens()
    owner = Schedule("nightly", "0 2 * * ? *", "Work.").owner
    with pytest.raises(InvalidToken):
        tokens.verify(token(claims(sub=owner)))


def test_a_token_of_the_issuer_speaks_for_its_subject_in_its_tenant() -> None:
    tokens = Issuer(key_set(rsa_jwk(), ec_jwk())).tokens()
    assert tokens.verify(token(claims())).principal == ALICE
    assert tokens.verify(token(claims(), EC_KEY, "ES256", "e1")).principal == ALICE


class Discovered(Issuer):
    """An issuer that is asked where its keys are."""

    def __init__(self, text: str, document: object) -> None:
        super().__init__(text)
        self.document = document
        self.urls: list[str] = []

    def fetch(self, url: str) -> str:
        self.urls.append(url)
        return json.dumps(self.document) if url.endswith(DISCOVERY) else super().fetch(url)

    def discovering(self) -> OidcTokenVerifier:
        return OidcTokenVerifier(
            TrustedIssuer(ISSUER, AUDIENCE, "", tenant_claim="tenant"), self.fetch, lambda: self.now
        )


DISCOVERY = "/.well-known/openid-configuration"
DOCUMENT = {"issuer": ISSUER, "jwks_uri": URL}


@pytest.mark.requirement(30)
def test_the_verifier_asks_the_issuer_once_for_the_address_of_its_keys() -> None:
    issuer = Discovered(key_set(rsa_jwk()), DOCUMENT)
    tokens = issuer.discovering()
    assert tokens.verify(token(claims())).principal == ALICE
    issuer.now += COOL_DOWN_MS
    with pytest.raises(InvalidToken):
        tokens.verify(token(claims(), kid="unknown"))
    assert issuer.urls == [ISSUER + DISCOVERY, URL, URL]


def test_keys_that_have_moved_are_found_again() -> None:
    issuer = Discovered("", DOCUMENT)
    tokens = issuer.discovering()
    with pytest.raises(Overloaded):
        tokens.verify(token(claims()))
    issuer.text, issuer.now = key_set(rsa_jwk()), issuer.now + FIRST_COOL_DOWN_MS
    assert tokens.verify(token(claims())).principal == ALICE
    assert issuer.urls == [ISSUER + DISCOVERY, URL] * 2


@pytest.mark.requirement(30)
@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://other.example.com", "jwks_uri": URL},
        {"issuer": ISSUER, "jwks_uri": "http://issuer.example.com/keys"},
        {"issuer": ISSUER, "jwks_uri": ["https://issuer.example.com/keys"]},
        {"issuer": ISSUER},
        [],
        None,
    ],
)
def test_a_discovery_document_of_another_issuer_or_without_a_place_is_believed_nothing(document: object) -> None:
    issuer = Discovered(key_set(rsa_jwk()), document)
    with pytest.raises(Overloaded):
        issuer.discovering().verify(token(claims()))
    assert issuer.urls == [ISSUER + DISCOVERY]


def test_without_a_tenant_claim_all_callers_share_a_tenant() -> None:
    assert Issuer(key_set(rsa_jwk())).tokens("").verify(token(claims())).principal == Principal("default", "alice")


@pytest.mark.requirement(30)
@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(token(claims(iss="https://other.example.com")), id="another issuer"),
        pytest.param(token(claims(aud="other")), id="another audience"),
        pytest.param(token(claims(exp=NOW_S // 10)), id="expired"),
        pytest.param(token({name: value for name, value in claims().items() if name != "exp"}), id="no expiry"),
        pytest.param(token({name: value for name, value in claims().items() if name != "sub"}), id="no subject"),
        pytest.param(token(claims(sub="")), id="empty subject"),
        pytest.param(token(claims(sub="x" * 300)), id="long subject"),
        pytest.param(token(claims(tenant=["acme"])), id="tenant is a list"),
        pytest.param(token(claims(), kid="unknown"), id="unknown key"),
        pytest.param(token(claims(), EC_KEY, "ES256", "r1"), id="key of another kind"),
        pytest.param(token(claims())[:-4] + "AAAA", id="altered signature"),
        pytest.param(jwt.encode(claims(), "", algorithm="none", headers={"kid": "r1"}), id="alg none"),
        pytest.param(
            jwt.encode(claims(), "a-shared-secret-of-thirty-two-bytes", "HS256", headers={"kid": "r1"}),
            id="shared secret",
        ),
        pytest.param(confused("r1", RSA_KEY), id="public key as secret"),
        pytest.param(confused("e1", EC_KEY), id="public curve key as secret"),
        pytest.param(token(claims(nbf=3_900_000_000)), id="not yet valid"),
        pytest.param(token(claims(iat=3_900_000_000)), id="issued in the future"),
        pytest.param(token(claims(aud=["other", 7, None])), id="audiences without ours"),
        pytest.param(token(claims(aud={AUDIENCE: True})), id="audience is an object"),
        pytest.param(token({name: value for name, value in claims().items() if name != "aud"}), id="no audience"),
        pytest.param(token(claims(), RSA_KEY, "RS512", "e1"), id="another algorithm"),
        pytest.param(jwt.encode(claims(), RSA_KEY, "RS256"), id="no key id"),
        pytest.param(
            jwt.encode(claims(), RSA_KEY, "RS256", headers={"kid": "r1", "crit": ["b64"], "b64": False}),
            id="critical header",
        ),
        pytest.param(f"{token(claims())}.{token(claims())}", id="two tokens"),
        pytest.param(".".join([token(claims()).split(".")[0], "e30", ""]), id="no signature"),
        pytest.param(token(claims(), typ="dpop+jwt"), id="a proof"),
        pytest.param(token(claims(), typ="logout+jwt"), id="a logout token"),
        pytest.param(token(claims(), typ="secevent+jwt"), id="a security event"),
        pytest.param(token(claims(), typ="application/secevent+jwt"), id="a security event, by its whole name"),
        pytest.param(token(claims(), typ="a2a-notification+jwt"), id="a notification"),
        pytest.param(written('{"alg": "RS256", "kid": "r1", "typ": ""}', BODY), id="a type without a name"),
        pytest.param(written('{"alg": "RS256", "kid": "r1", "typ": 7}', BODY), id="a type that is a number"),
        pytest.param(written('{"alg": "RS256", "kid": "r1", "typ": null}', BODY), id="a type that is null"),
        pytest.param(token(claims(at_hash="x")), id="an ID token"),
        pytest.param(token(claims(c_hash="x")), id="an ID token with a code"),
        pytest.param(token(claims(typ="ID")), id="an ID token of Keycloak"),
        pytest.param(token(claims(typ="Refresh")), id="a refresh token of Keycloak"),
        pytest.param(token(claims(token_use="id")), id="an ID token of Cognito"),
        pytest.param(token(claims(events={"http://schemas.openid.net/event/backchannel-logout": {}})), id="logout"),
        pytest.param(token(claims(cnf={"jkt": "x"})), id="bound to a key"),
        pytest.param(token(claims(cnf={"x5t#S256": "x"})), id="bound to a certificate"),
        pytest.param(token(claims(cnf=None)), id="bound to nothing"),
        pytest.param(token(claims(sub="alice\n")), id="subject with a line break"),
        pytest.param(token(claims(sub="ali\x00ce")), id="subject with a NUL"),
        pytest.param(token(claims(sub="ali\u200bce")), id="subject with an invisible character"),
        pytest.param(token(claims(sub="ali\ud800ce")), id="subject with half a character"),
        pytest.param(token(claims(tenant="ac\x7fme")), id="tenant with a control character"),
        pytest.param(written(HEADER, BODY[:-1] + ', "sub": "bob"}'), id="subject twice"),
        pytest.param(written(HEADER, BODY[:-1] + ', "s\\u0075b": "alice"}'), id="subject twice, written otherwise"),
        pytest.param(written(HEADER, BODY[:-1] + ', "deep": {"a": 1, "a": 2}}'), id="a name twice further down"),
        pytest.param(written('{"alg": "RS256", "kid": "r1", "kid": "e1"}', BODY), id="key id twice"),
        pytest.param(written(HEADER, "[" * 5000 + "]" * 900), id="very deep"),
        pytest.param(written(HEADER, BODY.replace("4000000000", "1e999")), id="expires never"),
        pytest.param(written(HEADER, "[]"), id="claims are a list"),
        pytest.param(written("[]", BODY), id="header is a list"),
        pytest.param("not.a.token", id="no token"),
        pytest.param("", id="nothing"),
        pytest.param("x" * 10_000, id="very long"),
    ],
)
def test_any_other_token_speaks_for_nobody(bad: str) -> None:
    with pytest.raises(InvalidToken):
        Issuer(key_set(rsa_jwk(), ec_jwk())).tokens().verify(bad)


def test_unknown_kids_ask_the_issuer_once_in_a_while_and_known_ones_never_again() -> None:
    issuer = Issuer(key_set(rsa_jwk()))
    tokens = issuer.tokens()
    tokens.verify(token(claims()))
    for number in range(50):
        with pytest.raises(InvalidToken):
            tokens.verify(token(claims(), kid=f"made-up-{number}"))
    assert issuer.asked == 1
    issuer.now += COOL_DOWN_MS
    issuer.text = key_set(rsa_jwk(), ec_jwk("fresh"))
    assert tokens.verify(token(claims(), EC_KEY, "ES256", "fresh")).principal == ALICE
    assert issuer.asked == 2


def test_an_issuer_that_does_not_answer_leaves_known_keys_working() -> None:
    issuer = Issuer(key_set(rsa_jwk()))
    tokens = issuer.tokens()
    tokens.verify(token(claims()))
    issuer.text = ""
    issuer.now += COOL_DOWN_MS
    with pytest.raises(InvalidToken):
        tokens.verify(token(claims(), kid="r2"))
    assert tokens.verify(token(claims())).principal == ALICE


def test_a_key_that_the_issuer_withdraws_is_forgotten_with_the_next_renewal() -> None:
    issuer = Issuer(key_set(rsa_jwk(), ec_jwk()))
    tokens = issuer.tokens()
    tokens.verify(token(claims()))
    issuer.text, issuer.now = key_set(ec_jwk()), issuer.now + RENEW_AFTER_MS
    assert tokens.verify(token(claims())).principal == ALICE  # nobody waits for the renewal
    assert tokens.verify(token(claims())).principal == ALICE
    (renew,) = issuer.beside
    renew()
    with pytest.raises(InvalidToken):
        tokens.verify(token(claims()))
    assert tokens.verify(token(claims(), EC_KEY, "ES256", "e1")).principal == ALICE
    assert issuer.asked == 2


def test_keys_are_not_renewed_before_it_is_time() -> None:
    issuer = Issuer(key_set(rsa_jwk()))
    tokens = issuer.tokens()
    tokens.verify(token(claims()))
    issuer.now += RENEW_AFTER_MS - 1
    tokens.verify(token(claims()))
    assert (issuer.asked, issuer.beside) == (1, [])


def test_known_keys_last_for_a_bounded_time_while_the_issuer_does_not_answer() -> None:
    issuer = Issuer(key_set(rsa_jwk()))
    tokens = issuer.tokens()
    tokens.verify(token(claims()))
    read_at, issuer.text = issuer.now, ""
    while issuer.now - read_at + COOL_DOWN_MS < STALE_AFTER_MS:
        issuer.now += COOL_DOWN_MS
        assert tokens.verify(token(claims())).principal == ALICE
        while issuer.beside:
            issuer.beside.pop()()
    issuer.now = read_at + STALE_AFTER_MS
    with pytest.raises(Overloaded):
        tokens.verify(token(claims()))
    issuer.text, issuer.now = key_set(rsa_jwk()), issuer.now + FIRST_COOL_DOWN_MS
    assert tokens.verify(token(claims())).principal == ALICE


def test_while_one_token_waits_for_a_silent_issuer_the_others_are_answered_at_once() -> None:
    issuer, asked, answers = Issuer(key_set(rsa_jwk())), Event(), Event()

    def silent(url: str) -> str:
        if issuer.asked:
            issuer.asked += 1
            asked.set()
            assert answers.wait(60)
            return ""
        return issuer.fetch(url)

    tokens = OidcTokenVerifier(TrustedIssuer(ISSUER, AUDIENCE, URL, tenant_claim="tenant"), silent, lambda: issuer.now)
    tokens.verify(token(claims()))
    issuer.now += COOL_DOWN_MS
    refused: list[Exception] = []

    def invented(number: int) -> None:
        try:
            tokens.verify(token(claims(), kid=f"made-up-{number}"))
        except (InvalidToken, Overloaded) as error:
            refused.append(error)

    first = Thread(target=invented, args=(0,))
    first.start()
    assert asked.wait(60)
    crowd = [Thread(target=invented, args=(number,)) for number in range(1, 201)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join(60)
    waiting = sum(thread.is_alive() for thread in crowd)
    answers.set()
    for thread in (first, *crowd):
        thread.join()
    assert (waiting, len(refused), issuer.asked) == (0, 201, 2)


def test_until_an_issuer_has_answered_once_nobody_is_refused_for_good() -> None:
    issuer = Issuer("")
    tokens = issuer.tokens()
    for _ in range(50):
        with pytest.raises(Overloaded, match="cannot be read now"):
            tokens.verify(token(claims()))
    assert issuer.asked == 1
    issuer.text, issuer.now = key_set(rsa_jwk()), issuer.now + FIRST_COOL_DOWN_MS
    assert tokens.verify(token(claims())).principal == ALICE


def test_a_known_key_does_not_wait_while_the_issuer_is_asked_for_another() -> None:
    issuer, asked, answers = Issuer(key_set(rsa_jwk())), Event(), Event()

    def slow(url: str) -> str:
        if issuer.asked:
            asked.set()
            answers.wait(60)
        return issuer.fetch(url)

    tokens = OidcTokenVerifier(TrustedIssuer(ISSUER, AUDIENCE, URL, tenant_claim="tenant"), slow, lambda: issuer.now)
    tokens.verify(token(claims()))
    issuer.now += COOL_DOWN_MS

    def stranger() -> None:
        with pytest.raises(InvalidToken):
            tokens.verify(token(claims(), kid="made-up"))

    waiting = Thread(target=stranger)
    waiting.start()
    assert asked.wait(60)
    assert tokens.verify(token(claims())).principal == ALICE
    answers.set()
    waiting.join()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("no json", id="no JSON"),
        pytest.param("[]", id="a list"),
        pytest.param('{"keys": 7}', id="keys is a number"),
        pytest.param('{"keys": [7, null, {}]}', id="keys are no objects"),
        pytest.param("[" * 100_000, id="very deep"),
        pytest.param(key_set({**rsa_jwk(), "use": "enc"}), id="for encryption"),
        pytest.param(key_set({"kty": "oct", "k": "c2VjcmV0", "kid": "r1", "alg": "HS256"}), id="a secret"),
        pytest.param(key_set({**rsa_jwk(), "n": 7}), id="modulus is a number"),
    ],
)
def test_a_key_set_that_cannot_be_read_admits_nobody(text: str) -> None:
    with pytest.raises((InvalidToken, Overloaded)):
        Issuer(text).tokens().verify(token(claims()))


BROKEN: list[Any] = [
    7,
    None,
    {},
    {"kty": ["RSA"], "kid": "x"},
    {"kty": {}, "kid": "x"},
    {**rsa_jwk("x"), "n": 7},
    {**rsa_jwk("x"), "n": "A"},
    {**rsa_jwk("x"), "e": "AA"},
    {**rsa_jwk("x"), "alg": ["RS256"]},
    {**rsa_jwk("x"), "alg": {"a": 1}},
    {**ec_jwk("x"), "crv": []},
    {**ec_jwk("x"), "x": "AA"},
    {"kty": "EC", "kid": "x"},
    {"kty": "OKP", "crv": [], "x": 7, "kid": "x"},
    {**rsa_jwk(), "kid": ["r1"]},
    {**rsa_jwk(), "kid": None},
]


@pytest.mark.parametrize("broken", BROKEN, ids=range(len(BROKEN)))
def test_a_key_that_is_malformed_is_left_out_and_the_others_count(broken: Any) -> None:
    tokens = Issuer(key_set(broken, rsa_jwk(), broken)).tokens()
    assert tokens.verify(token(claims())).principal == ALICE
    with pytest.raises(InvalidToken):
        tokens.verify(token(claims(), kid="x"))


@pytest.mark.parametrize(("bits", "taken"), [(1024, False), (2047, False), (2048, True)])
def test_rsa_keys_of_less_than_2048_bits_are_left_out(bits: int, taken: bool) -> None:  # noqa: FBT001
    key = rsa.generate_private_key(65537, bits)
    jwk = {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": "weak", "alg": "RS256"}
    public = jwt.PyJWK(jwk).key
    tokens = Issuer(key_set(rsa_jwk(), jwk)).tokens()
    signed = base64url_encode(b'{"alg": "RS256", "kid": "weak"}') + b"." + base64url_encode(BODY.encode())
    signature = RSAAlgorithm(RSAAlgorithm.SHA256).sign(signed, key)
    assert RSAAlgorithm(RSAAlgorithm.SHA256).verify(signed, public, signature)
    if taken:
        assert tokens.verify((signed + b"." + base64url_encode(signature)).decode()).principal == ALICE
    else:
        with pytest.raises(InvalidToken):
            tokens.verify((signed + b"." + base64url_encode(signature)).decode())


@pytest.mark.parametrize("kind", ["JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt"])
def test_an_access_token_may_say_its_kind(kind: str) -> None:
    tokens = Issuer(key_set(rsa_jwk())).tokens()
    assert tokens.verify(token(claims(typ="Bearer", token_use="access"), typ=kind)).principal == ALICE
    assert tokens.verify(written(HEADER, BODY)).principal == ALICE  # or leave it out


# ---- What an issuer calls things


def test_the_claims_that_name_audience_and_owner_can_be_others() -> None:
    tokens = Issuer(key_set(rsa_jwk())).tokens(audience_claim="client_id", owner_claim="oid")
    said = {**claims(client_id=AUDIENCE, oid="o-1"), "aud": "elsewhere"}
    assert tokens.verify(token(said)).principal == Principal("acme", "o-1")
    for bad in (claims(oid="o-1"), claims(client_id="other", oid="o-1"), claims(client_id=AUDIENCE)):
        with pytest.raises(InvalidToken):
            tokens.verify(token(bad))


@pytest.mark.parametrize(
    ("said", "scopes"),
    [
        ({"scope": "openid agents/a2a:document agents/a2a:read"}, {"a2a:document", "a2a:read"}),
        ({"roles": ["agents/a2a", "admin"]}, {"a2a"}),
        ({"scope": "agents/a2a:image", "roles": ["agents/a2a:read"]}, {"a2a:image", "a2a:read"}),
        ({"scope": "a2a a2a:read"}, set()),
        ({"scope": {"agents/a2a": 1}, "roles": [7, None]}, set()),
        ({}, set()),
    ],
)
def test_scopes_are_read_from_texts_and_lists_behind_their_prefix(said: dict[str, Any], scopes: set[str]) -> None:
    tokens = Issuer(key_set(rsa_jwk())).tokens(scope_claims=("scope", "roles"), scope_prefix="agents/")
    assert tokens.verify(token(claims(**said))).scopes == scopes


def test_without_a_scope_claim_a_token_may_do_everything() -> None:
    caller = Issuer(key_set(rsa_jwk())).tokens().verify(token(claims(scope="a2a:read")))
    assert caller.scopes == {"a2a"}


KEY = encode_key(b"k" * 32)


def authenticator() -> OidcOrApiKey:
    keys = MemoryApiKeyStore()
    keys.add(ApiKey(digest_of(KEY), ALICE, "laptop", 0))
    return OidcOrApiKey(keys.find, Issuer(key_set(rsa_jwk())).tokens().verify)


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ({"x-api-key": KEY}, digest_of(KEY)),
        ({"authorization": f"Bearer {KEY}"}, digest_of(KEY)),
        ({"authorization": f"bearer {token(claims())}"}, ""),
    ],
)
def test_a_key_or_a_token_admits_its_principal(headers: dict[str, str], key: str) -> None:
    assert authenticator().authenticate(headers) == Caller(ALICE, key=key)


@pytest.mark.requirement(30)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-api-key": KEY + "x"},
        {"x-api-key": "x" * 100_000},
        {"authorization": f"Basic {KEY}"},
        {"authorization": "Bearer"},
        {"authorization": "Bearer a2a_unknown"},
        {"authorization": f"Bearer {token(claims(aud='other'))}"},
        {"x-api-key": "unknown", "authorization": f"Bearer {KEY}"},
    ],
)
def test_headers_without_a_valid_token_or_key_admit_nobody(headers: dict[str, str]) -> None:
    with pytest.raises(Unauthenticated):
        authenticator().authenticate(headers)


def test_another_tenant_does_not_exist_for_a_caller() -> None:
    assert authenticator().enter_tenant(ALICE, "acme") == ALICE
    with pytest.raises(TaskNotFound):
        authenticator().enter_tenant(ALICE, "other")


@pytest.mark.requirement(121)
def test_a_revoked_key_works_for_as_long_as_it_is_remembered_and_no_longer() -> None:
    keys, now = MemoryApiKeyStore(), [0]
    keys.add(ApiKey(digest_of(KEY), ALICE, "laptop", 0))
    remembered = CachedApiKeyStore(keys, lambda: now[0])
    assert remembered.find(digest_of(KEY)) is not None
    keys.revoke(digest_of(KEY))
    assert remembered.find(digest_of(KEY)) is not None
    now[0] = KEPT_MS
    assert remembered.find(digest_of(KEY)) is None
    assert remembered.find(digest_of("never seen")) is None


def test_the_digest_of_a_key_does_not_tell_the_key() -> None:
    assert KEY not in repr(ApiKey(digest_of(KEY), ALICE, "laptop", 0))
