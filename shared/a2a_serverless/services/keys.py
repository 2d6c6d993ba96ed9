"""The key ring's life: first keys, rotation, revocation, and the public key set and signed cards that go with it.

A key set is published before the ring that it belongs to is saved: what is in the ring has been public since, and a
rotator that dies in between has only published a key that never signs. A revocation goes the other way round: it must
not leave a key in use that no verifier takes any more. The next run publishes what the vault holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_serverless.domain.key_ring import KeyRing, Waits, first_ring, promotable_at, revoke, rotate
from a2a_serverless.domain.publications import JWKS
from a2a_serverless.services.publish import Press, publish, publish_cards

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json
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
        ring = _install(smith, first_ring(smith.maker.make(now), smith.maker.make(now), now=now))
    return _publish(smith, ring)


def rotate_ring(smith: Locksmith) -> KeyRing:
    """Promotes the next key when it has been public for long enough."""
    now = smith.press.clock.now()
    before = ensure_ring(smith)
    ring = rotate(before, smith.maker.make(now), now=now, waits=smith.waits)
    return _publish(smith, ring if ring == before else _install(smith, ring))


def rotate_when_old(smith: Locksmith) -> KeyRing:
    """What the schedule does: rotates once the current key is older than ``age_ms``, else only publishes."""
    ring = ensure_ring(smith)
    return rotate_ring(smith) if smith.press.clock.now() - ring.promoted_at >= smith.age_ms else ring


def revoke_key(smith: Locksmith, kid: str) -> KeyRing:
    """Takes a key out of use and off the list at once; raises ValueError when there is none of that name."""
    now = smith.press.clock.now()
    before = ensure_ring(smith)
    if kid not in before.kids:
        raise ValueError(f"no key of the ring is named {kid!r}; there are {', '.join(before.kids)}")
    ring = revoke(before, kid, smith.maker.make(now), now=now)
    smith.vault.save(ring)
    return _publish(smith, ring)


def describe(smith: Locksmith) -> dict[str, Json]:
    """The ring without its secrets; times are ms."""
    ring = ensure_ring(smith)
    current, following = ring.current, ring.next
    previous: list[Json] = [{"kid": old.kid, "until": old.until} for old in ring.previous]
    return {
        "current": {"kid": current.kid, "madeAt": current.made_at, "signsSince": ring.promoted_at},
        "next": {"kid": following.kid, "madeAt": following.made_at, "promotableAt": promotable_at(ring, smith.waits)},
        "previous": previous,
    }


def _install(smith: Locksmith, ring: KeyRing) -> KeyRing:
    publish(smith.press, JWKS, ring.jwks(smith.press.clock.now()))
    smith.vault.save(ring)
    return ring


def _publish(smith: Locksmith, ring: KeyRing) -> KeyRing:
    publish(smith.press, JWKS, ring.jwks(smith.press.clock.now()))
    publish_cards(smith.press, ring.current.kid, lambda content: smith.maker.sign(ring.current, content))
    return ring
