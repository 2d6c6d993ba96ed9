"""The key ring's life: first keys, rotation, revocation, and the public key set and signed cards that go with it.

The ring is saved before the key set is published, and a key signs only long after it was published, so a rotator that
dies in between leaves nothing that a verifier could miss: the next run publishes what the vault holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_serverless.domain.key_ring import KeyRing, Waits, first_ring, revoke, rotate
from a2a_serverless.services.publish import JWKS, Press, publish, publish_cards

if TYPE_CHECKING:
    from a2a_serverless.ports import KeyMaker, KeyVault


@dataclass(frozen=True, slots=True)
class Locksmith:
    """What the rotator needs. ``age_ms`` is how old the current key may get before the schedule replaces it."""

    vault: KeyVault
    maker: KeyMaker
    press: Press
    waits: Waits
    age_ms: int


def ensure_ring(smith: Locksmith) -> KeyRing:
    """The ring, made if there is none, with its key set published."""
    now = smith.press.clock.now()
    ring = smith.vault.load()
    if ring is None:
        ring = first_ring(smith.maker.make(now), smith.maker.make(now), now=now)
        smith.vault.save(ring)
    return _publish(smith, ring)


def rotate_ring(smith: Locksmith) -> KeyRing:
    """Promotes the next key when it has been public for long enough."""
    now = smith.press.clock.now()
    before = ensure_ring(smith)
    ring = rotate(before, smith.maker.make(now), now=now, waits=smith.waits)
    if ring != before:
        smith.vault.save(ring)
    return _publish(smith, ring)


def rotate_when_old(smith: Locksmith) -> KeyRing:
    """What the schedule does: rotates once the current key is older than ``age_ms``, else only publishes."""
    ring = ensure_ring(smith)
    return rotate_ring(smith) if smith.press.clock.now() - ring.promoted_at >= smith.age_ms else ring


def revoke_key(smith: Locksmith, kid: str) -> KeyRing:
    """Takes a key out of use and off the list at once."""
    now = smith.press.clock.now()
    ring = revoke(ensure_ring(smith), kid, smith.maker.make(now), now=now)
    smith.vault.save(ring)
    return _publish(smith, ring)


def _publish(smith: Locksmith, ring: KeyRing) -> KeyRing:
    publish(smith.press, JWKS, ring.jwks(smith.press.clock.now()))
    publish_cards(smith.press, ring.current.kid, lambda content: smith.maker.sign(ring.current, content))
    return ring
