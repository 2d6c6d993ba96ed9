import base64
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from jwt import InvalidSignatureError, PyJWS

from a2a_serverless.domain.model import Json
from a2a_serverless.protocol.card_signatures import canonical, signature, signed_forms
from a2a_serverless.protocol.protojson import as_json
from a2a_serverless.protocol.v0_3_card import union_card
from tests.protocol.schema import assert_v1
from tests.protocol.test_cards import FULL, KEY, PLAIN, changed, requirement


@pytest.mark.requirement(101)
def test_the_canonical_form_is_sorted_compact_and_without_signatures() -> None:
    card: dict[str, Json] = {"b": 1.0, "a": "é", "signatures": [{}], "\U0001f600": None, "\ufb33": True}
    assert canonical(card) == '{"a":"é","b":1,"\U0001f600":null,"\ufb33":true}'.encode()


PRIVATE = ec.generate_private_key(ec.SECP256R1())


def sign(content: bytes) -> bytes:
    r, s = decode_dss_signature(PRIVATE.sign(content, ec.ECDSA(SHA256())))
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def verified(parts: Json, payload: bytes) -> dict[str, Any]:
    """The protected header of a signature that fits the payload; raises when it does not fit."""
    assert isinstance(parts, dict)
    carried = base64.urlsafe_b64encode(payload).rstrip(b"=").decode()
    token = f"{parts['protected']}.{carried}.{parts['signature']}"
    header: dict[str, Any] = PyJWS().decode_complete(token, PRIVATE.public_key(), algorithms=["ES256"])["header"]
    return header


@pytest.mark.requirement(101, 102)
def test_a_signature_is_a_detached_jws_over_the_canonical_card() -> None:
    card = as_json(FULL)
    made = signature(card, "kid-1", sign, jku="https://example.com/jwks.json")
    signed: dict[str, Json] = card | {"signatures": [made]}
    assert_v1("AgentCard", signed)
    assert canonical(signed) == canonical(card)
    assert verified(made, canonical(signed)) == {
        "alg": "ES256",
        "kid": "kid-1",
        "typ": "JOSE",
        "jku": "https://example.com/jwks.json",
    }


def test_a_signature_does_not_fit_another_card() -> None:
    made = signature(as_json(PLAIN), "kid-1", sign)
    with pytest.raises(InvalidSignatureError):
        verified(made, canonical(as_json(FULL)))


def test_a_card_of_1_0_without_empties_is_signed_in_one_form() -> None:
    assert signed_forms(as_json(PLAIN), as_json(PLAIN)) == [as_json(PLAIN)]


def test_a_card_with_an_empty_member_is_also_signed_as_the_official_sdk_reads_it() -> None:
    card = as_json(changed(PLAIN, security_schemes={"key": KEY}, security_requirements=(requirement(key=()),)))
    without = {name: value for name, value in card.items() if name != "securityRequirements"}
    assert signed_forms(card, card) == [card, without]


@pytest.mark.requirement(101)
def test_a_card_among_members_of_0_3_is_signed_alone_and_as_it_is_served() -> None:
    assert signed_forms(as_json(PLAIN), union_card(PLAIN)) == [as_json(PLAIN), union_card(PLAIN)]
