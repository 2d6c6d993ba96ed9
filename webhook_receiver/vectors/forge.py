"""Makes signed requests, good and bad, with the same bytes every time: deterministic ES256 and keys from a seed.

For vectors and tests. The keys protect nothing.
"""

import base64
import hmac
import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of the base point of P-256."""

Json = Any


def make_key(seed: str, curve: ec.EllipticCurve | None = None) -> ec.EllipticCurvePrivateKey:
    """The private key that is derived from ``seed``."""
    return ec.derive_private_key(int.from_bytes(sha256(seed.encode()).digest()), curve or ec.SECP256R1())


def encode(raw: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def to_json(value: Json) -> bytes:
    """Compact JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def to_jwk(key: ec.EllipticCurvePrivateKey) -> dict[str, str]:
    """The public JWK, with its RFC 7638 thumbprint as key id."""
    numbers = key.public_key().public_numbers()
    size = (key.curve.key_size + 7) // 8
    required = {
        "crv": f"P-{key.curve.key_size}",
        "kty": "EC",
        "x": encode(numbers.x.to_bytes(size)),
        "y": encode(numbers.y.to_bytes(size)),
    }
    thumbprint = encode(sha256(to_json(required)).digest())
    return required | {"kid": thumbprint, "use": "sig", "alg": f"ES{key.curve.key_size}"}


def sign_raw(signing_input: bytes, key: ec.EllipticCurvePrivateKey) -> bytes:
    """The signature as r and s, concatenated (RFC 7518, section 3.4)."""
    r, s = decode_dss_signature(sign_der(signing_input, key))
    size = (key.curve.key_size + 7) // 8
    return r.to_bytes(size) + s.to_bytes(size)


def sign_der(signing_input: bytes, key: ec.EllipticCurvePrivateKey) -> bytes:
    """The signature as ASN.1, which JWTs do not use."""
    algorithm = hashes.SHA384() if key.curve.key_size == 384 else hashes.SHA256()  # noqa: PLR2004 - bits
    return key.sign(signing_input, ec.ECDSA(algorithm, deterministic_signing=True))


def make_token(header: Json, claims: Json, key: ec.EllipticCurvePrivateKey) -> str:
    """A signed compact JWT. ``header`` and ``claims`` may be bytes, which are used unchanged."""
    signing_input = f"{_segment(header)}.{_segment(claims)}"
    return f"{signing_input}.{encode(sign_raw(signing_input.encode(), key))}"


def make_hmac_token(header: Mapping[str, Json], claims: Json, secret: bytes) -> str:
    """A compact JWT whose key is a shared secret."""
    signing_input = f"{_segment(header)}.{_segment(claims)}"
    return f"{signing_input}.{encode(hmac.digest(secret, signing_input.encode(), 'sha256'))}"


def _segment(value: Json) -> str:
    return encode(value if isinstance(value, bytes) else to_json(value))
