"""Encrypts client secrets and the claims of service tokens.

Client secrets: AES-256-GCM with a data key. The data key, wrapped by KMS, is part of each sealed text. One data key is
used for many secrets (a limited number, for a limited time), so sealing calls KMS once an hour, not once a webhook.
Each secret is bound to its own context by GCM's additional data; KMS only sees the purpose.

Service tokens: KMS itself encrypts the claims, under another context, with which only the worker's role may encrypt,
and only the api's may decrypt. The secrets of signed callbacks go the same way.
"""

from __future__ import annotations

import json
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from a2a_serverless.domain.errors import Overloaded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mypy_boto3_kms import KMSClient

    from a2a_serverless.ports.system import ServiceTokenSealer

PURPOSE: Final = {"purpose": "a2a-webhook-secrets"}
SERVICE_TOKENS: Final = {"purpose": "a2a-service-token"}
KEY_LIFE_MS: Final = 3_600_000
KEY_USES: Final = 1_000_000
KEYS_KEPT: Final = 256
SECRETS_KEPT: Final = 1000
NONCE_BYTES: Final = 12
_FORM: Final = "1"
UNSEALED: Final = "A service token cannot be made now. Try again."
UNOPENED: Final = "Service tokens cannot be checked now. Try again."
_FOREIGN: Final = frozenset({"InvalidCiphertextException", "IncorrectKeyException"})


@dataclass(slots=True)
class _DataKey:
    """A data key in clear and wrapped, when it was received (ms), and how often it was used to seal."""

    plain: bytes = field(repr=False)
    wrapped: bytes
    since: int
    uses: int = 0


class KmsSealer:
    """``ports.Sealer``. Sealed texts have the form ``1.<wrapped key>.<nonce and ciphertext>``, both base64url.

    ``client`` is called only when a data key must be made or unwrapped.
    """

    def __init__(
        self, client: Callable[[], KMSClient], key_id: str, now: Callable[[], int], uses: int = KEY_USES
    ) -> None:
        self._client = client
        self._key_id = key_id
        self._now = now
        self._uses = uses
        self._lock = Lock()
        self._sealing: _DataKey | None = None
        self._opened: OrderedDict[bytes, _DataKey] = OrderedDict()

    def seal(self, secret: str, context: str) -> str:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key, nonce = self._key_for_sealing(), os.urandom(NONCE_BYTES)
        ciphertext = AESGCM(key.plain).encrypt(nonce, secret.encode(), context.encode())
        return ".".join((_FORM, _encoded(key.wrapped), _encoded(nonce + ciphertext)))

    def open(self, sealed: str, context: str) -> str:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        wrapped, box = _split(sealed)
        key = self._key_for_opening(wrapped)
        try:
            return AESGCM(key).decrypt(box[:NONCE_BYTES], box[NONCE_BYTES:], context.encode()).decode()
        except InvalidTag:
            raise ValueError("not sealed for this context") from None

    def _key_for_sealing(self) -> _DataKey:
        with self._lock:
            key = self._sealing
            if key is None or key.uses >= self._uses or self._is_old(key):
                new = self._client().generate_data_key(KeyId=self._key_id, KeySpec="AES_256", EncryptionContext=PURPOSE)
                key = self._sealing = _DataKey(new["Plaintext"], new["CiphertextBlob"], self._now())
            key.uses += 1
            return key

    def _key_for_opening(self, wrapped: bytes) -> bytes:
        with self._lock:
            key = self._opened.get(wrapped)
        if key is None or self._is_old(key):
            key = _DataKey(_decrypt(self._client(), self._key_id, wrapped, PURPOSE), wrapped, self._now())
        with self._lock:
            self._opened[wrapped] = key
            self._opened.move_to_end(wrapped)
            while len(self._opened) > KEYS_KEPT:
                self._opened.popitem(last=False)
        return key.plain

    def _is_old(self, key: _DataKey) -> bool:
        return self._now() - key.since >= KEY_LIFE_MS


class KmsServiceTokenSealer:
    """``ports.ServiceTokenSealer``. ``client`` is called with the first token."""

    def __init__(self, client: Callable[[], KMSClient], key_id: str) -> None:
        self._client = client
        self._key_id = key_id

    def seal(self, claims: str) -> bytes:
        try:
            answer = self._client().encrypt(
                KeyId=self._key_id, Plaintext=claims.encode(), EncryptionContext=SERVICE_TOKENS
            )
        except (BotoCoreError, ClientError) as error:
            raise Overloaded(UNSEALED) from error
        return answer["CiphertextBlob"]

    def open(self, sealed: bytes) -> str:
        try:
            return _decrypt(self._client(), self._key_id, sealed, SERVICE_TOKENS).decode()
        except (BotoCoreError, ClientError) as error:
            raise Overloaded(UNOPENED) from error


class CallbackSealer:
    """``ports.Sealer`` for the secrets of signed callbacks, over the sealer of service tokens.

    So the worker seals, and the api opens. No sealed secret is a service token, whose claims are a JSON object: it
    begins with the context in a JSON array. Raises Overloaded as ``tokens`` does. It keeps ``SECRETS_KEPT`` opened
    secrets in memory: anybody may send requests with a wrong signature, and each would cost a call of KMS.
    """

    def __init__(self, tokens: ServiceTokenSealer) -> None:
        self._tokens = tokens
        self.open = lru_cache(SECRETS_KEPT)(self._open)

    def seal(self, secret: str, context: str) -> str:
        return _encoded(self._tokens.seal(json.dumps([context]) + secret))

    def _open(self, sealed: str, context: str) -> str:
        content, beginning = self._tokens.open(_decoded(sealed)), json.dumps([context])
        if not content.startswith(beginning):
            raise ValueError("not sealed for this context")
        return content.removeprefix(beginning)


def _decrypt(client: KMSClient, key_id: str, content: bytes, context: Mapping[str, str]) -> bytes:
    """Decrypts with KMS; raises ValueError for content that this deployment did not encrypt in that context."""
    try:
        return client.decrypt(CiphertextBlob=content, KeyId=key_id, EncryptionContext=context)["Plaintext"]
    except ClientError as error:
        if error.response["Error"]["Code"] in _FOREIGN:
            raise ValueError("not sealed by this deployment") from None
        raise


def _encoded(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _split(sealed: str) -> tuple[bytes, bytes]:
    form, *parts = sealed.split(".")
    if form != _FORM or len(parts) != 2 or not all(parts):  # noqa: PLR2004
        raise ValueError("not a sealed text")
    return _decoded(parts[0]), _decoded(parts[1])
