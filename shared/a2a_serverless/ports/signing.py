"""Signing keys and sealed secrets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.domain.key_ring import KeyRing, SigningKey


class ServiceTokenSealer(Protocol):
    """Seals the claims of service tokens (``domain.access``): holders can neither create nor change a token."""

    def seal(self, claims: str) -> bytes:
        """The sealed claims. Raises Overloaded when sealing is not possible now."""

    def open(self, sealed: bytes) -> str:
        """The claims. Raises ValueError if this deployment did not seal them as a service token, else as ``seal``."""


class Sealer(Protocol):
    """Seals small secrets. A secret sealed for one ``context`` cannot be opened for another."""

    def seal(self, secret: str, context: str) -> str:
        """The sealed secret as text that may be stored."""

    def open(self, sealed: str, context: str) -> str:
        """The secret; raises ValueError when it was not sealed for ``context``."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A compact JWS, and the key that signed it."""

    token: str
    kid: str


class Signer(Protocol):
    """Signs tokens with the ring's current key."""

    def sign(self, typ: str, claims: Mapping[str, str | int]) -> Signed:
        """A JWT (ES256) with that ``typ``."""


class KeyFactory(Protocol):
    """Makes signing keys, and signs content other than tokens with them."""

    def sign(self, key: SigningKey, content: bytes) -> bytes:
        """An ES256 signature in JWS form: 64 bytes, R and S."""

    def make(self, now: int) -> SigningKey:
        """A new ES256 key, made at ``now`` (ms); its ``kid`` is the RFC 7638 thumbprint."""


class KeyRingStore(Protocol):
    """Stores the key ring in one secret value."""

    def load(self) -> KeyRing | None:
        """The key ring; None before the first one is stored."""

    def save(self, ring: KeyRing, before: KeyRing | None) -> bool:
        """Stores ``ring`` if the stored ring equals ``before`` (or ``ring`` already); False otherwise."""
