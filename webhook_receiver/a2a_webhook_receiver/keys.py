"""The issuer's public keys: a ``KeySet`` holds only valid P-256 signature keys, by key id.

A JWK set may hold keys of other types (RFC 7517, section 5: ignore what you do not understand); they are left out. A
set that is ambiguous, too large or without a usable key is refused as a whole.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TypeGuard, cast

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from jwt import InvalidKeyError
from jwt.algorithms import ECAlgorithm

from a2a_webhook_receiver import strict_json
from a2a_webhook_receiver.strict_json import Json

MAX_BYTES = 64 * 1024
MAX_KEYS = 16
KEY_ID = re.compile(r"[A-Za-z0-9_.~-]{1,128}")
"""Long enough for an RFC 7638 thumbprint; no character with a meaning in a path, a query or a header."""


class BadKeySet(ValueError):
    """The issuer's document is not a usable key set."""


class KeySet(Mapping[str, EllipticCurvePublicKey]):
    """Keys by key id. Only ``parse_key_set`` creates a non-empty one."""

    def __init__(self, keys: Mapping[str, EllipticCurvePublicKey]) -> None:
        self._keys = dict(keys)

    def __getitem__(self, kid: str) -> EllipticCurvePublicKey:
        return self._keys[kid]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def parse_key_set(raw: bytes) -> KeySet:
    """The usable keys of a JWK set (RFC 7517). Raises BadKeySet."""
    if len(raw) > MAX_BYTES:
        raise BadKeySet(f"more than {MAX_BYTES} bytes")
    try:
        members = strict_json.parse_object(raw).get("keys")
    except ValueError as error:
        raise BadKeySet(f"not JSON: {error}") from error
    if not isinstance(members, list) or len(members) > MAX_KEYS:
        raise BadKeySet(f"no list of at most {MAX_KEYS} keys")
    pairs = [(str(jwk["kid"]), _public_key(jwk)) for jwk in members if _is_usable(jwk)]
    keys = KeySet(dict(pairs))
    if not keys or len(keys) != len(pairs):
        raise BadKeySet("no usable key" if not keys else "a key id comes twice")
    return keys


def _is_usable(jwk: Json) -> TypeGuard[dict[str, Json]]:
    """Whether it is a public P-256 key for verifying. A published private key has leaked, so it is not used."""
    if not isinstance(jwk, dict) or "d" in jwk:
        return False
    kid, operations = jwk.get("kid"), jwk.get("key_ops", ["verify"])
    return (
        isinstance(kid, str)
        and KEY_ID.fullmatch(kid) is not None
        and (jwk.get("kty"), jwk.get("crv")) == ("EC", "P-256")
        and jwk.get("use", "sig") == "sig"
        and jwk.get("alg", "ES256") == "ES256"
        and isinstance(operations, list)
        and "verify" in operations
    )


def _public_key(jwk: dict[str, Json]) -> EllipticCurvePublicKey:
    try:
        return cast("EllipticCurvePublicKey", ECAlgorithm.from_jwk(jwk))  # private only with a member d
    except (InvalidKeyError, ValueError, TypeError) as error:
        raise BadKeySet("a key is not a point on P-256") from error
