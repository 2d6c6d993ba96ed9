"""The key ring's secret in Secrets Manager, and the times of its keys."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError
from pydantic import TypeAdapter

from a2a_serverless.domain.key_ring import KeyRing, RotationTimes
from a2a_serverless.domain.notifications import TOKEN_LIFE_S

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

KEY_RING_CACHE_MS: Final = 300_000
SKEW_S: Final = 120


class UnreadableKeyRing(ValueError):
    """The secret's text is no key ring. The message says what restores it, and quotes nothing of the secret."""

    def __init__(self) -> None:
        aws = "aws secretsmanager"
        get = f"{aws} get-secret-value --secret-id ID --version-stage AWSPREVIOUS"
        super().__init__(
            "the secret ID (output KeyRingSecretId) holds no key ring of this release's form. After a rollback deploy "
            "the newer release again; else store the secret's previous version as a new one: "
            f'{aws} put-secret-value --secret-id ID --secret-string "$({get} --query SecretString --output text)"'
        )


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
    """The ring that ``dump_key_ring`` wrote, or None for a placeholder; raises UnreadableKeyRing for anything else."""
    with suppress(ValueError):  # its text would quote the secret
        body = json.loads(text) if text.strip() else {}
        if not body:
            return None
        if isinstance(body, dict) and body.get("v") == 1:
            return TypeAdapter(KeyRing).validate_python(body)  # members that a newer release added are ignored
    raise UnreadableKeyRing
