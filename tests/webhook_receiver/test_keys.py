from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from a2a_webhook_receiver.keys import MAX_BYTES, BadKeySet, parse_key_set
from vectors.cases import CURRENT, KEY_SET, NEXT
from vectors.forge import encode, make_key, to_json, to_jwk

GOOD = to_jwk(CURRENT)
KID = GOOD["kid"]


def parse(*jwks: Any) -> list[str]:
    return sorted(parse_key_set(to_json({"keys": list(jwks)})))


def test_only_p256_keys_for_signatures_are_taken() -> None:
    assert sorted(parse_key_set(to_json(KEY_SET))) == sorted([KID, to_jwk(NEXT)["kid"]])


def test_a_key_needs_no_use_and_no_algorithm() -> None:
    assert parse({name: GOOD[name] for name in ("kty", "crv", "x", "y", "kid")}) == [KID]
    assert parse(GOOD | {"key_ops": ["verify"]}) == [KID]


@pytest.mark.parametrize(
    "change",
    [
        {"use": "enc"},
        {"alg": "ES384"},
        {"alg": None},
        {"crv": "P-384"},
        {"crv": "secp256k1"},
        {"kty": "RSA"},
        {"kty": "oct", "k": "c2VjcmV0"},
        {"key_ops": ["sign"]},
        {"key_ops": "verify"},
        {"d": encode(b"\x01" * 32)},
        {"kid": None},
        {"kid": 7},
        {"kid": ""},
        {"kid": "../x"},
        {"kid": "x" * 129},
    ],
    ids=repr,
)
def test_a_key_for_anything_else_is_left_out(change: dict[str, Any]) -> None:
    another = to_jwk(NEXT)
    assert parse(another, GOOD | change) == [another["kid"]]


@pytest.mark.parametrize("item", [None, 7, "key", [], {}])
def test_an_item_that_is_no_key_is_left_out(item: object) -> None:
    assert parse(GOOD, item) == [KID]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not JSON"),
        (b"[]", "not JSON"),
        (b"{}", "no list"),
        (b'{"keys":{}}', "no list"),
        (b'{"keys":[]}', "no usable key"),
        (b'{"keys":[],"keys":[]}', "not JSON"),
        (to_json({"keys": [GOOD, GOOD]}), "comes twice"),
        (to_json({"keys": [GOOD, to_jwk(NEXT) | {"kid": KID}]}), "comes twice"),
        (to_json({"keys": [to_jwk(make_key("p384", ec.SECP384R1()))]}), "no usable key"),
        (to_json({"keys": [to_jwk(make_key(str(number))) for number in range(17)]}), "at most 16"),
        (to_json({"keys": [GOOD]}) + b" " * MAX_BYTES, "bytes"),
        (to_json({"keys": [GOOD | {"y": GOOD["x"]}]}), "not a point"),
        (to_json({"keys": [GOOD | {"x": encode(bytes(32))}]}), "not a point"),
        (to_json({"keys": [GOOD | {"x": "AA"}]}), "not a point"),
        (to_json({"keys": [GOOD | {"x": 7}]}), "not a point"),
    ],
)
def test_a_set_that_is_ambiguous_large_or_useless_is_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(BadKeySet, match=reason):
        parse_key_set(raw)


@given(st.binary(max_size=80))
def test_no_answer_of_an_issuer_makes_the_parser_stumble(raw: bytes) -> None:
    with pytest.raises(BadKeySet):
        parse_key_set(raw)
