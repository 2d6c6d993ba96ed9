"""The key ring: its secret in Secrets Manager, its keys and tokens with PyJWT, which is imported on first use."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Final, cast

from botocore.exceptions import ClientError
from pydantic import TypeAdapter, ValidationError

from a2a_serverless.domain.key_ring import KeyRing, RotationTimes, SigningKey
from a2a_serverless.domain.notifications import TOKEN_LIFE_S
from a2a_serverless.ports.system import Signed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from mypy_boto3_secretsmanager import SecretsManagerClient

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


KEY_RING_CACHE_MS: Final = 300_000
SKEW_S: Final = 120


def rotation_times(max_age_s: int) -> RotationTimes:
    """How long keys are published, if receivers may cache the key set for ``max_age_s`` seconds."""
    publish_ms = (max_age_s + SKEW_S) * 1000
    return RotationTimes(publish_ms, publish_ms + TOKEN_LIFE_S * 1000 + KEY_RING_CACHE_MS)


class SecretKeyRingStore:
    """``ports.KeyRingStore``. A secret without a value, or with the template's empty object, holds no ring.

    Secrets Manager has no conditional write, but the writer chooses a version's id, and an id cannot be used twice with
    different content. Two writers that saw the same version choose the same id for the next one, so one writer is
    refused.
    """

    def __init__(self, client: SecretsManagerClient, secret_id: str) -> None:
        self._client = client
        self._secret_id = secret_id

    def load(self) -> KeyRing | None:
        return self._read()[0]

    def save(self, ring: KeyRing, before: KeyRing | None) -> bool:
        stored_ring, version = self._read()
        if stored_ring != before:
            return stored_ring == ring
        following = sha256(f"after {version}".encode()).hexdigest()
        try:
            self._client.put_secret_value(
                SecretId=self._secret_id, SecretString=dump_key_ring(ring), ClientRequestToken=following
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceExistsException":
                return False
            raise
        return True

    def _read(self) -> tuple[KeyRing | None, str]:
        """The ring and its version's id; None and an empty id when the secret has no value."""
        try:
            answer = self._client.get_secret_value(SecretId=self._secret_id)
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceNotFoundException":
                return None, ""
            raise
        return load_key_ring(answer["SecretString"]), answer["VersionId"]


def dump_key_ring(ring: KeyRing) -> str:
    """A ring as the JSON text that the secret holds."""
    return json.dumps({"v": 1, **asdict(ring)})


def load_key_ring(text: str) -> KeyRing | None:
    """The ring that ``dump_key_ring`` wrote, or None for a placeholder; raises ValueError for anything else."""
    body = json.loads(text) if text.strip() else {}
    if not body:
        return None
    with suppress(ValidationError):  # its text would quote the secret
        if body.get("v") == 1:
            return TypeAdapter(KeyRing).validate_python(body)  # members that a newer release added are ignored
    raise ValueError("the secret holds no key ring of this release's form")
