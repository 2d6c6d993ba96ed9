"""The key ring's life: the first keys, rotation, revocation; and the public key set that goes with each of them.

The ring is saved before the key set is published, and a key signs only long after it was published, so a rotator that
dies in between leaves nothing that a verifier could miss: the next run publishes what the vault holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from a2a_serverless.domain.key_ring import KeyRing, Waits, first_ring, revoke, rotate
from a2a_serverless.ports import Clock, KeyMaker, KeyVault, Publications

JWKS: Final = "jwks"


@dataclass(frozen=True, slots=True)
class Locksmith:
    """What the rotator needs."""

    vault: KeyVault
    public: Publications
    maker: KeyMaker
    clock: Clock
    waits: Waits


def ensure_ring(smith: Locksmith) -> KeyRing:
    """The ring, made if there is none, with its key set published."""
    now = smith.clock.now()
    ring = smith.vault.load()
    if ring is None:
        ring = first_ring(smith.maker.make(now), smith.maker.make(now), now=now)
        smith.vault.save(ring)
    return _publish(smith, ring)


def rotate_ring(smith: Locksmith) -> KeyRing:
    """Promotes the next key when it has been public for long enough."""
    now = smith.clock.now()
    before = ensure_ring(smith)
    ring = rotate(before, smith.maker.make(now), now=now, waits=smith.waits)
    if ring != before:
        smith.vault.save(ring)
    return _publish(smith, ring)


def revoke_key(smith: Locksmith, kid: str) -> KeyRing:
    """Takes a key out of use and off the list at once."""
    now = smith.clock.now()
    ring = revoke(ensure_ring(smith), kid, smith.maker.make(now), now=now)
    smith.vault.save(ring)
    return _publish(smith, ring)


def _publish(smith: Locksmith, ring: KeyRing) -> KeyRing:
    smith.public.publish(JWKS, ring.jwks(smith.clock.now()))
    return ring
