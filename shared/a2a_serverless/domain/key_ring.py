"""The key ring: next (published, not yet used), current (signs), previous (published, no longer signs).

A key is published for at least the JWKS max-age plus clock skew before it signs, so that every verifier's cache has
it. After its last signature it stays published until all tokens signed by it have expired. Times are arguments, so
tests can simulate years of rotation.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json


@dataclass(frozen=True, slots=True)
class SigningKey:
    """An ES256 key: ``kid`` is its RFC 7638 thumbprint, ``private`` a PEM text that never leaves the secret."""

    kid: str
    public: dict[str, str]
    private: str = field(repr=False)
    made_at: int = 0


@dataclass(frozen=True, slots=True)
class RetiredKey:
    """A public key that no longer signs, and when (ms) it is removed from the key set."""

    kid: str
    public: dict[str, str]
    until: int


@dataclass(frozen=True, slots=True)
class RotationTimes:
    """How long a key is published before it signs (``publish_ms``) and after its last signature (``retire_ms``)."""

    publish_ms: int
    retire_ms: int


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The keys, and when (ms) the current key was promoted."""

    current: SigningKey
    next: SigningKey
    previous: tuple[RetiredKey, ...] = ()
    promoted_at: int = 0

    @property
    def kids(self) -> tuple[str, ...]:
        """The ids of all keys: current, next, previous."""
        return (self.current.kid, self.next.kid, *(old.kid for old in self.previous))

    def jwks(self, now: int) -> dict[str, Json]:
        """The public key set (RFC 7517): current, next, and previous keys that may still have valid tokens."""
        keys: list[Json] = [{**self.current.public}, {**self.next.public}]
        keys += [{**old.public} for old in self.previous if old.until > now]
        return {"keys": keys}


def create_ring(current: SigningKey, following: SigningKey, *, now: int) -> KeyRing:
    """The ring of a new deployment. No verifier has a cache yet, so the first key may sign at once."""
    return KeyRing(current, following, promoted_at=now)


def promotable_at(ring: KeyRing, waits: RotationTimes, listed_at: int = 0) -> int:
    """When (ms) the next key, which has been in the public key set since ``listed_at``, may become current."""
    return max(ring.next.made_at, listed_at) + waits.publish_ms


def rotate(ring: KeyRing, fresh: SigningKey, *, now: int, waits: RotationTimes, listed_at: int = 0) -> KeyRing:
    """Promotes the next key and makes ``fresh`` the next key. If it is too early, only removes expired keys."""
    previous = tuple(old for old in ring.previous if old.until > now)
    if now < promotable_at(ring, waits, listed_at):
        return replace(ring, previous=previous)
    retired = RetiredKey(ring.current.kid, ring.current.public, now + waits.retire_ms)
    return KeyRing(ring.next, fresh, (retired, *previous), promoted_at=now)


def revoke(ring: KeyRing, kid: str, fresh: SigningKey, *, now: int) -> KeyRing:
    """Removes a key at once (in an emergency). If it is the current key, the next key becomes current at once."""
    if kid == ring.current.kid:
        return KeyRing(ring.next, fresh, ring.previous, promoted_at=now)
    if kid == ring.next.kid:
        return replace(ring, next=fresh)
    return replace(ring, previous=tuple(old for old in ring.previous if old.kid != kid))
