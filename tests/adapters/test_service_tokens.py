"""Passes: made by the worker, sealed by KMS, opened by the api, stored by nobody."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import EndpointConnectionError

from a2a_serverless.adapters.kms import PURPOSE, SERVICE_TOKENS, CallbackSealer, KmsSealer, KmsServiceTokenSealer
from a2a_serverless.adapters.service_tokens import (
    FAILURES,
    KEPT,
    REUSED_MS,
    ServiceTokenIssuer,
    ServiceTokenVerifier,
    dump_claims,
    load_claims,
)
from a2a_serverless.domain.access import (
    CLAIMS_LIMIT,
    SEALED_BYTES,
    SERVICE_TOKEN_LEEWAY_MS,
    SERVICE_TOKEN_LIFE_MS,
    SERVICE_TOKEN_PREFIX,
    Caller,
    InvalidToken,
    ServiceToken,
    encode_key,
)
from a2a_serverless.domain.agent_errors import AgentCallFailed
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.outside_events import SECRET_LIMIT
from tests.adapters.clouds import cloud, error
from tests.doubles import MemoryServiceTokenSealer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.ports.system import ServiceTokenSealer

NOW = 1_790_000_000_000
ALICE, BOB = Principal("acme", "alice"), Principal("acme", "bob")
MADE = ServiceToken(ALICE, frozenset({"a2a:document", "a2a:read"}), "d" * 64, NOW + SERVICE_TOKEN_LIFE_MS)
GARBAGE = b"\x01\x02\x02\x00" + bytes(200)


class Counting:
    """A sealer that counts what it is asked for, and may be out of order."""

    def __init__(self, sealer: ServiceTokenSealer) -> None:
        self._sealer = sealer
        self.sealed = self.opened = 0
        self.down = False

    def seal(self, claims: str) -> bytes:
        self.sealed += 1
        if self.down:
            raise Overloaded
        return self._sealer.seal(claims)

    def open(self, sealed: bytes) -> str:
        self.opened += 1
        if self.down:
            raise Overloaded
        return self._sealer.open(sealed)


class Office:
    """A worker that makes passes and an api that opens them, at one time."""

    def __init__(self, sealer: ServiceTokenSealer) -> None:
        self.now = NOW
        self.sealer = Counting(sealer)
        self.service_tokens = ServiceTokenIssuer(self.sealer, lambda: self.now)
        self.opening = ServiceTokenVerifier(self.sealer, lambda: self.now)

    def token(self, principal: Principal = ALICE) -> str:
        return self.service_tokens.headers(Caller(principal))["X-API-Key"]

    def admits(self, token: str) -> Principal | None:
        found = self.opening.find(token)
        return found.principal if found else None


class Kms:
    """A key, and its client."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.key_id = client.create_key()["KeyMetadata"]["KeyId"]

    def sealer(self) -> KmsServiceTokenSealer:
        return KmsServiceTokenSealer(lambda: self.client, self.key_id)


@pytest.fixture
def kms() -> Iterator[Kms]:
    with cloud("kms") as client:
        yield Kms(client)


@pytest.fixture(params=["memory", "kms"])
def sealer(request: pytest.FixtureRequest) -> ServiceTokenSealer:
    if request.param == "memory":
        return MemoryServiceTokenSealer()
    made: ServiceTokenSealer = request.getfixturevalue("kms").sealer()
    return made


@pytest.fixture
def office(sealer: ServiceTokenSealer) -> Office:
    return Office(sealer)


def test_a_pass_admits_whom_it_was_made_for_and_is_made_and_opened_once(office: Office) -> None:
    for _ in range(3):
        assert office.admits(office.token(ALICE)) == ALICE
        assert office.admits(office.token(BOB)) == BOB
    assert (office.sealer.sealed, office.sealer.opened) == (2, 2)


def test_a_new_pass_is_made_before_the_old_one_ends_which_it_does_within_the_hour(office: Office) -> None:
    first = office.token()
    assert office.admits(first) == ALICE
    office.now += REUSED_MS
    second = office.token()
    assert (office.admits(first), office.admits(second)) == (ALICE, ALICE)
    office.now += SERVICE_TOKEN_LIFE_MS - REUSED_MS
    assert (office.admits(first), office.admits(second)) == (None, ALICE)


def test_a_pass_that_nobody_remembers_ends_too(office: Office) -> None:
    token = office.token()
    office.now += SERVICE_TOKEN_LIFE_MS
    assert office.admits(token) is None


def test_a_pass_keeps_scopes_and_key(office: Office) -> None:
    token = office.service_tokens.headers(Caller(ALICE, MADE.scopes, key=MADE.api_key))["X-API-Key"]
    assert office.opening.find(token) == MADE


@pytest.mark.parametrize("owner", ["x", "x" * 256, "\U0001f600" * 256])
def test_a_token_with_the_longest_names_fits_into_the_headers(office: Office, owner: str) -> None:
    principal = Principal(owner, owner)
    token = office.token(principal)
    assert office.admits(token) == principal
    assert len(token) < 6_000  # API Gateway takes 10,240 bytes of headers


def test_a_token_that_was_changed_on_the_way_admits_nobody(office: Office) -> None:
    token = office.token()
    for place in (len(SERVICE_TOKEN_PREFIX) + 70, len(token) // 2, len(token) - 4):
        letter = "A" if token[place] != "A" else "B"
        assert office.admits(token[:place] + letter + token[place + 1 :]) is None


@pytest.mark.parametrize(
    "token",
    [
        "",
        SERVICE_TOKEN_PREFIX,
        SERVICE_TOKEN_PREFIX + "f" * 43,
        SERVICE_TOKEN_PREFIX + "f" * 84,
        SERVICE_TOKEN_PREFIX + "f" * 101,
        "a2a_" + "f" * 300,
        SERVICE_TOKEN_PREFIX + "f" * 299 + "=",
        SERVICE_TOKEN_PREFIX + "f" * 299 + "+",
        SERVICE_TOKEN_PREFIX + "f" * 299 + "\n",
        SERVICE_TOKEN_PREFIX + "\u00e9" * 300,
        SERVICE_TOKEN_PREFIX + "f" * 301,
        SERVICE_TOKEN_PREFIX + "A" * 301 + "B",
        SERVICE_TOKEN_PREFIX + "A" * 8_000,
        SERVICE_TOKEN_PREFIX + "A" * 1_000_000,
    ],
)
def test_text_that_cannot_be_a_token_is_refused_without_a_call_of_kms(office: Office, token: str) -> None:
    assert office.admits(token) is None
    assert office.sealer.opened == 0


def test_an_invented_pass_is_opened_once() -> None:
    office = Office(MemoryServiceTokenSealer())
    for _ in range(100):
        assert office.admits(encode_key(GARBAGE, SERVICE_TOKEN_PREFIX)) is None
    assert office.sealer.opened == 1


def test_invented_passes_cost_a_bounded_number_of_calls_a_second_and_known_ones_go_on_working() -> None:
    office = Office(MemoryServiceTokenSealer())
    known = office.token()
    assert office.admits(known) == ALICE
    refused = 0
    for second in range(3):
        office.now = NOW + second * 1_000
        for number in range(500):
            try:
                assert (
                    office.admits(
                        encode_key(GARBAGE + bytes([second, number // 256, number % 256]), SERVICE_TOKEN_PREFIX)
                    )
                    is None
                )
            except Overloaded:
                refused += 1
        assert office.admits(known) == ALICE
    assert office.sealer.opened == 1 + 3 * FAILURES
    assert refused == 3 * (500 - FAILURES)
    office.now += 1_000
    assert office.admits(office.token(BOB)) == BOB


def test_a_bounded_number_of_passes_is_remembered() -> None:
    office = Office(MemoryServiceTokenSealer())
    tokens = [office.token(Principal("acme", str(number))) for number in range(KEPT + 1)]
    for token in tokens:
        assert office.admits(token)
    assert office.admits(tokens[-1])
    assert office.sealer.opened == KEPT + 1
    assert office.admits(tokens[0])
    assert office.sealer.opened == KEPT + 2


def test_while_passes_cannot_be_opened_they_are_not_called_bad_and_are_opened_later() -> None:
    office = Office(MemoryServiceTokenSealer())
    token = office.token()
    office.sealer.down = True
    for _ in range(3 * FAILURES):
        with pytest.raises(Overloaded):
            office.admits(token)
    assert office.sealer.opened == FAILURES
    office.sealer.down, office.now = False, NOW + 1_000
    assert office.admits(token) == ALICE


def test_while_no_pass_can_be_made_the_call_fails_and_the_next_one_may_have_one() -> None:
    office = Office(MemoryServiceTokenSealer())
    office.sealer.down = True
    with pytest.raises(AgentCallFailed):
        office.token()
    office.sealer.down = False
    assert office.admits(office.token()) == ALICE


def test_claims_that_kms_would_not_take_are_refused_by_their_reason() -> None:
    office = Office(MemoryServiceTokenSealer())
    scopes = frozenset(f"a2a:agent-{number}" for number in range(CLAIMS_LIMIT // 8))
    with pytest.raises(AgentCallFailed, match="too many scopes"):
        office.service_tokens.headers(Caller(ALICE, scopes))
    assert office.sealer.sealed == 0


SAID = json.loads(dump_claims(MADE))


def test_claims_are_read_as_they_were_written() -> None:
    assert load_claims(dump_claims(MADE), NOW) == MADE
    none = ServiceToken(ALICE, frozenset(), "", NOW + 1)
    assert load_claims(dump_claims(none), NOW) == none


@pytest.mark.parametrize(
    "claims",
    [
        "",
        "null",
        "[]",
        "\x00\xff",
        "[" * 2_000,
        json.dumps(SAID | {"v": 2}),
        json.dumps(SAID | {"v": True}),
        json.dumps(SAID | {"more": 1}),
        json.dumps({name: one for name, one in SAID.items() if name != "parent"}),
        json.dumps(SAID | {"owner": ""}),
        json.dumps(SAID | {"tenant": ""}),
        json.dumps(SAID | {"owner": ["alice"]}),
        json.dumps(SAID | {"parent": None}),
        json.dumps(SAID | {"scopes": "a2a"}),
        json.dumps(SAID | {"scopes": ["openid"]}),
        json.dumps(SAID | {"scopes": [1]}),
        json.dumps(SAID | {"ends": NOW}),
        json.dumps(SAID | {"ends": NOW + SERVICE_TOKEN_LIFE_MS + SERVICE_TOKEN_LEEWAY_MS + 1}),
        json.dumps(SAID | {"ends": str(NOW + 1)}),
        json.dumps(SAID | {"ends": NOW + 0.5}),
    ],
)
def test_a_token_with_wrong_claims_admits_nobody(claims: str) -> None:
    with pytest.raises(InvalidToken):
        load_claims(claims, NOW)
    sealer = MemoryServiceTokenSealer()
    assert ServiceTokenVerifier(sealer, lambda: NOW).find(encode_key(sealer.seal(claims), SERVICE_TOKEN_PREFIX)) is None


@pytest.mark.parametrize("context", [PURPOSE, {}, SERVICE_TOKENS | {"more": "1"}, {"purpose": "A2A-service-token"}])
def test_claims_that_were_encrypted_for_anything_else_admit_nobody(kms: Kms, context: dict[str, str]) -> None:
    office = Office(kms.sealer())
    claims = dump_claims(MADE).encode()
    sealed = kms.client.encrypt(KeyId=kms.key_id, Plaintext=claims, EncryptionContext=context)["CiphertextBlob"]
    assert office.admits(encode_key(sealed, SERVICE_TOKEN_PREFIX)) is None
    assert office.sealer.opened == 1


def test_a_data_key_is_no_pass_and_a_pass_no_data_key(kms: Kms) -> None:
    office, webhooks = Office(kms.sealer()), KmsSealer(lambda: kms.client, kms.key_id, lambda: NOW)
    made = kms.client.generate_data_key(KeyId=kms.key_id, KeySpec="AES_256", EncryptionContext=SERVICE_TOKENS)
    wrapped = webhooks.seal("secret", "context").split(".")[1]
    assert office.admits(encode_key(made["CiphertextBlob"], SERVICE_TOKEN_PREFIX)) is None
    assert office.admits(SERVICE_TOKEN_PREFIX + wrapped) is None
    token = office.token().removeprefix(SERVICE_TOKEN_PREFIX)
    with pytest.raises(ValueError, match="not sealed"):
        webhooks.open(f"1.{token}.{'A' * 40}", "context")


def test_the_secret_of_a_callback_is_opened_for_its_address_only_and_is_no_pass(office: Office) -> None:
    callbacks = CallbackSealer(office.sealer)
    for secret in ("whsec_ü", "\0" * SECRET_LIMIT, "ü" * (SECRET_LIMIT // 2), dump_claims(MADE)):
        sealed = callbacks.seal(secret, "d" * 64)
        assert callbacks.open(sealed, "d" * 64) == secret
        assert secret not in sealed
        with pytest.raises(ValueError, match="not sealed for this context"):
            callbacks.open(sealed, "e" * 64)
        assert office.admits(SERVICE_TOKEN_PREFIX + sealed) is None
    with pytest.raises(ValueError, match="not sealed for this context"):
        callbacks.open(office.token().removeprefix(SERVICE_TOKEN_PREFIX), "d" * 64)


def test_the_secret_of_a_callback_is_opened_once_for_all_requests_to_its_address(office: Office) -> None:
    sealed = CallbackSealer(office.sealer).seal("secret", "d" * 64)
    callbacks = CallbackSealer(office.sealer)
    assert [callbacks.open(sealed, "d" * 64) for _ in range(3)] == ["secret"] * 3
    assert office.sealer.opened == 1


def test_the_longest_claims_are_sealed_within_what_is_opened(kms: Kms) -> None:
    sealed = kms.sealer().seal("x" * CLAIMS_LIMIT)
    assert len(sealed) in SEALED_BYTES
    assert kms.sealer().open(sealed) == "x" * CLAIMS_LIMIT


def test_a_pass_shows_nothing_of_its_claims(kms: Kms) -> None:
    sealed = kms.sealer().seal(dump_claims(MADE))
    claims = (MADE.principal.tenant, MADE.principal.owner, MADE.api_key, *MADE.scopes)
    for claim in claims:  # not a short word: moto puts the key's random id first
        assert claim.encode() not in sealed


class Failing:
    """A KMS that fails."""

    def __init__(self, failure: Exception) -> None:
        self.failure = failure

    def __getattr__(self, name: str) -> Any:
        def call(**_: object) -> object:
            raise self.failure

        return call


@pytest.mark.parametrize("code", ["KMSInternalException", "ThrottlingException", "AccessDeniedException"])
def test_a_kms_that_fails_does_not_make_a_pass_bad(code: str) -> None:
    failing: Any = Failing(error(code))
    sealer = KmsServiceTokenSealer(lambda: failing, "key")
    with pytest.raises(Overloaded):
        sealer.open(os.urandom(200))
    with pytest.raises(Overloaded):
        sealer.seal("claims")


def test_a_kms_that_cannot_be_reached_does_not_make_a_pass_bad() -> None:
    failing: Any = Failing(EndpointConnectionError(endpoint_url="https://kms.example"))
    with pytest.raises(Overloaded):
        KmsServiceTokenSealer(lambda: failing, "key").open(os.urandom(200))


@pytest.mark.parametrize("code", ["InvalidCiphertextException", "IncorrectKeyException"])
def test_a_ciphertext_that_kms_refuses_for_this_key_is_not_sealed(code: str) -> None:
    failing: Any = Failing(error(code))
    with pytest.raises(ValueError, match="not sealed"):
        KmsServiceTokenSealer(lambda: failing, "key").open(os.urandom(200))
