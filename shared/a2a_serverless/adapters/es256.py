"""ES256 keys and signatures, and tokens with the key ring's current key. PyJWT is imported on first use."""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, cast

from a2a_serverless.domain.key_ring import SigningKey
from a2a_serverless.ports.system import Signed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

    from a2a_serverless.domain.key_ring import KeyRing
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
        public = {**jwk, "kid": kid, "use": "sig", "alg": ALGORITHM}
        return SigningKey(kid, public, private.decode(), now)

    def sign(self, key: SigningKey, content: bytes) -> bytes:
        from jwt.algorithms import ECAlgorithm

        return ECAlgorithm(ECAlgorithm.SHA256).sign(content, _private(key.private))


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

    required = {name: jwk[name] for name in ("crv", "kty", "x", "y")}  # in the order of RFC 7638, 3.2
    canonical = json.dumps(required, separators=(",", ":")).encode()
    return base64url_encode(sha256(canonical).digest()).decode()


class KeyRingSigner:
    """``ports.Signer`` with the ring's current key."""

    def __init__(self, ring: Callable[[], KeyRing | None]) -> None:
        self._ring = ring

    def sign(self, typ: str, claims: Mapping[str, str | int]) -> Signed:
        import jwt

        ring = self._ring()
        if ring is None:
            raise NoKeyRing
        key = ring.current
        return Signed(jwt.encode(dict(claims), _private(key.private), ALGORITHM, {"typ": typ, "kid": key.kid}), key.kid)


@lru_cache(maxsize=2)
def _private(pem: str) -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    return cast("EllipticCurvePrivateKey", load_pem_private_key(pem.encode(), None))
