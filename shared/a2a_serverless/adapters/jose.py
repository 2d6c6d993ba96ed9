"""Signing keys and tokens with PyJWT and cryptography; both are imported on first use."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, cast

from a2a_serverless.domain.key_ring import KeyRing, SigningKey
from a2a_serverless.ports.keys import Signed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

    from a2a_serverless.domain.model import Json

ALGORITHM = "ES256"


class NoKeyRing(RuntimeError):
    """The key rotation has not made a key ring yet; the delivery is tried again."""


class Es256Keys:
    """``ports.KeyFactory``: P-256 keys, named by their RFC 7638 thumbprint."""

    def make(self, now: int) -> SigningKey:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from jwt.algorithms import ECAlgorithm

        key = ec.generate_private_key(ec.SECP256R1())
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        jwk = cast("dict[str, str]", ECAlgorithm.to_jwk(key.public_key(), as_dict=True))
        kid = thumbprint(jwk)
        public: dict[str, Json] = {**jwk, "kid": kid, "use": "sig", "alg": ALGORITHM}
        return SigningKey(kid, public, private.decode(), now)

    def sign(self, key: SigningKey, content: bytes) -> bytes:
        from jwt.algorithms import ECAlgorithm

        return ECAlgorithm(ECAlgorithm.SHA256).sign(content, _private(key))


def is_valid_signature(jwk: Mapping[str, Json], content: bytes, signature: bytes) -> bool:
    """Whether the key made this ES256 signature (JWS form) of the content. False for a key of another type."""
    from jwt.algorithms import ECAlgorithm
    from jwt.exceptions import InvalidKeyError

    try:
        key = ECAlgorithm.from_jwk(dict(jwk))
    except InvalidKeyError:
        return False
    return jwk.get("crv") == "P-256" and ECAlgorithm(ECAlgorithm.SHA256).verify(content, key, signature)


def thumbprint(jwk: Mapping[str, str]) -> str:
    """The RFC 7638 thumbprint of an EC key, base64url without padding."""
    from jwt.utils import base64url_encode

    required = {name: jwk[name] for name in ("crv", "kty", "x", "y")}
    canonical = json.dumps(required, sort_keys=True, separators=(",", ":")).encode()
    return base64url_encode(sha256(canonical).digest()).decode()


class KeyRingSigner:
    """``ports.Signer`` with the ring's current key. The parsed key is cached while it is the current one.

    The compact form (RFC 7515, 3.1) is built here: it is only three pieces of base64url, and ``jwt.encode`` takes as
    long to build it as the signing itself takes.
    """

    def __init__(self, ring: Callable[[], KeyRing | None]) -> None:
        self._ring = ring
        self._kept: tuple[str, EllipticCurvePrivateKey] | None = None

    def sign(self, typ: str, claims: Mapping[str, str | int]) -> Signed:
        from jwt.algorithms import ECAlgorithm

        kid, key = self._current()
        said = _header(typ, kid) + _base64url(_JSON.encode(claims).encode())
        signature = ECAlgorithm(ECAlgorithm.SHA256).sign(said, key)
        return Signed(f"{said.decode()}.{_base64url(signature).decode()}", kid)

    def _current(self) -> tuple[str, EllipticCurvePrivateKey]:
        ring = self._ring()
        if ring is None:
            raise NoKeyRing
        kept = self._kept
        if kept is None or kept[0] != ring.current.kid:
            kept = self._kept = (ring.current.kid, _private(ring.current))
        return kept


_JSON = json.JSONEncoder(separators=(",", ":"))


@lru_cache(maxsize=16)
def _header(typ: str, kid: str) -> bytes:
    """The protected header and the dot behind it. Cached: there are few types and one key at a time."""
    return _base64url(_JSON.encode({"alg": ALGORITHM, "typ": typ, "kid": kid}).encode()) + b"."


def _base64url(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


def _private(key: SigningKey) -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    return cast("EllipticCurvePrivateKey", load_pem_private_key(key.private.encode(), None))
