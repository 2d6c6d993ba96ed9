"""The key ring as one secret value in Secrets Manager, and a reader that caches it for a limited time."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from a2a_serverless.domain.key_ring import KeyRing, RetiredKey, SigningKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_secretsmanager import SecretsManagerClient

    from a2a_serverless.ports.keys import KeyRingStore

KEY_RING_CACHE_MS: Final = 300_000


class SecretKeyRingStore:
    """``ports.KeyRingStore``. A secret without a value, or with the template's empty object, holds no ring.

    Secrets Manager has no conditional write, but the writer chooses a version's id, and an id cannot be used twice with
    different content. Two writers that saw the same version choose the same id for the next, so one of them is refused.
    """

    def __init__(self, client: SecretsManagerClient, secret_id: str) -> None:
        self._client = client
        self._secret_id = secret_id

    def load(self) -> KeyRing | None:
        return self._read()[0]

    def save(self, ring: KeyRing, before: KeyRing | None) -> bool:
        held, version = self._read()
        if held != before:
            return held == ring
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
            answer = self._client.get_secret_value(SecretId=self._secret_id, VersionStage="AWSCURRENT")
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceNotFoundException":
                return None, ""
            raise
        return load_key_ring(answer["SecretString"]), answer["VersionId"]


def text_of(client: SecretsManagerClient, secret_id: str) -> str:
    """The text of a secret; empty when it holds none."""
    return client.get_secret_value(SecretId=secret_id, VersionStage="AWSCURRENT").get("SecretString", "")


class CachedKeyRingStore:
    """A key ring store that is read again once the cached ring is older than ``max_age_ms``.

    It never returns an older ring, not even while the store fails: a retired key is published only for as long as the
    oldest cached ring may still sign with it.
    """

    def __init__(self, store: KeyRingStore, now: Callable[[], int], max_age_ms: int) -> None:
        self._store = store
        self._now = now
        self._max_age_ms = max_age_ms
        self._lock = Lock()
        self._kept: tuple[int, KeyRing] | None = None

    def load(self) -> KeyRing | None:
        """The ring, at most ``max_age_ms`` old."""
        with self._lock:
            asked_at = self._now()
            if self._kept and asked_at - self._kept[0] < self._max_age_ms:
                return self._kept[1]
            ring = self._store.load()
            self._kept = (asked_at, ring) if ring else None
            return ring


def dump_key_ring(ring: KeyRing) -> str:
    """A ring as the JSON text that the secret holds."""
    return json.dumps({"v": 1, **asdict(ring)}, separators=(",", ":"))


def load_key_ring(text: str) -> KeyRing | None:
    """The ring that ``dump_key_ring`` wrote, or None for a placeholder; raises ValueError for anything else."""
    body = json.loads(text) if text.strip() else {}
    if not body:
        return None
    if body.get("v") != 1:
        raise ValueError("the secret holds no key ring of this release's form")
    return KeyRing(
        current=_key_of(body["current"]),
        next=_key_of(body["next"]),
        previous=tuple(RetiredKey(**_known(RetiredKey, old)) for old in body["previous"]),
        promoted_at=body["promoted_at"],
    )


def _key_of(body: dict[str, Any]) -> SigningKey:
    return SigningKey(**_known(SigningKey, body))


def _known(kind: type[SigningKey | RetiredKey], body: dict[str, Any]) -> dict[str, Any]:
    """The fields that this release knows: a newer one may have added optional fields."""
    return {field.name: body[field.name] for field in fields(kind) if field.name in body}
