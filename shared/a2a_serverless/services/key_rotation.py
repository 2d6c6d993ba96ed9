"""The life of the key ring: first keys, rotation, revocation, and the published key set and signed cards.

A ring is saved only if the stored ring is still the ring that it was made from, and published after that. So of two
concurrent rotators one succeeds, and only the stored ring is published. The published key set is stored with the time
at which it first listed each key; a key signs only after it was listed for long enough. So a rotator may die at any
point: a ring that was saved but not published signs with keys that were public before, and the next run publishes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from a2a_serverless.domain.key_ring import KeyRing, RotationTimes, create_ring, promotable_at, revoke, rotate
from a2a_serverless.domain.publications import JWKS
from a2a_serverless.services.publish import CardPublisher, find_altered, publish, publish_cards
from a2a_serverless.services.task_changes import Conflict, check_written, retry_on_conflict

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.ports.system import KeyFactory, KeyRingStore

CHANGED: Final = (
    "the key ring has changed at every attempt to save it; or its secret was set back to an older version, after which "
    "no other can be saved: store the ring's text as a new version"
)


class KeyRingError(Exception):
    """The rotator cannot do something, or has met a problem. The texts are for operators and quote no client."""


@dataclass(frozen=True, slots=True)
class KeyRotation:
    """The rotator's dependencies. The schedule replaces the current key when it is ``age_ms`` old."""

    store: KeyRingStore
    maker: KeyFactory
    publisher: CardPublisher
    waits: RotationTimes
    age_ms: int


def ensure_ring(rotation: KeyRotation) -> KeyRing:
    """Makes a ring if there is none, publishes its key set and the cards, and returns it."""

    def attempt() -> KeyRing:
        ring = rotation.store.load()
        if ring is None:
            now = rotation.publisher.clock.now()
            rotation.store.save(create_ring(rotation.maker.make(now), rotation.maker.make(now), now=now), None)
            raise Conflict  # another rotator has made the first ring: read it
        return ring

    return _publish(rotation, retry_on_conflict(attempt, _give_up))


def rotate_ring(rotation: KeyRotation) -> KeyRing:
    """Promotes the next key if it has been public for long enough; returns the ring."""

    def promote(before: KeyRing, now: int) -> KeyRing:
        listed_at = _listed_at(rotation, before.next.kid)
        return rotate(before, rotation.maker.make(now), now=now, waits=rotation.waits, listed_at=listed_at)

    return _change_ring(rotation, promote)


def rotate_when_old(rotation: KeyRotation) -> KeyRing:
    """Runs on the schedule: rotates if the current key is ``age_ms`` old, else only publishes.

    If a published document had been altered, raises KeyRingError after it has published every document again.
    """
    stored_ring = rotation.store.load()
    names = find_altered(rotation.publisher, _public_keys(stored_ring)) if stored_ring else []
    ring = ensure_ring(rotation)
    if rotation.publisher.clock.now() - ring.promoted_at >= rotation.age_ms:
        ring = rotate_ring(rotation)
    if names:
        raise KeyRingError(f"published documents were altered and have been restored: {', '.join(names)}")
    return ring


def revoke_key(rotation: KeyRotation, kid: str) -> KeyRing:
    """Removes a key from the ring and the published key set at once; raises KeyRingError for an unknown key."""

    def remove(before: KeyRing, now: int) -> KeyRing:
        if kid not in before.kids:
            raise KeyRingError(f"no key of the ring is named {kid!r}; there are {', '.join(before.kids)}")
        return revoke(before, kid, rotation.maker.make(now), now=now)

    return _change_ring(rotation, remove)


def _change_ring(rotation: KeyRotation, change: Callable[[KeyRing, int], KeyRing]) -> KeyRing:
    """Saves and publishes the ring that ``change`` makes from the stored ring; returns it."""

    def attempt() -> KeyRing:
        before = ensure_ring(rotation)
        ring = change(before, rotation.publisher.clock.now())
        if ring == before:
            return before
        check_written(rotation.store.save(ring, before))
        return _publish(rotation, ring)

    return retry_on_conflict(attempt, _give_up)


def describe(rotation: KeyRotation) -> dict[str, Json]:
    """Describes the ring without its private keys; times are in ms."""
    ring = ensure_ring(rotation)
    current, following = ring.current, ring.next
    promotable = promotable_at(ring, rotation.waits, _listed_at(rotation, following.kid))
    previous: list[Json] = [{"kid": old.kid, "until": old.until} for old in ring.previous]
    return {
        "current": {"kid": current.kid, "madeAt": current.made_at, "signsSince": ring.promoted_at},
        "next": {"kid": following.kid, "madeAt": following.made_at, "promotableAt": promotable},
        "previous": previous,
    }


def _public_keys(ring: KeyRing) -> list[Json]:
    """Every key that the ring's key set may list."""
    public = [ring.current.public, ring.next.public, *(old.public for old in ring.previous)]
    return [{**key} for key in public]


def _publish(rotation: KeyRotation, ring: KeyRing) -> KeyRing:
    """Publishes the ring's documents until the ring is the stored one; returns the stored ring.

    If the stored ring has changed meanwhile, its rotator may have published before us, so its documents are published
    again.
    """

    def attempt() -> KeyRing:
        nonlocal ring
        _publish_once(rotation, ring)
        latest = rotation.store.load() or ring
        if latest != ring:
            ring = latest
            raise Conflict
        return ring

    return retry_on_conflict(attempt, _give_up)


def _give_up() -> NoReturn:
    raise KeyRingError(CHANGED)


def _publish_once(rotation: KeyRotation, ring: KeyRing) -> None:
    now = rotation.publisher.clock.now()
    keys = ring.jwks(now)
    publish(rotation.publisher, JWKS, keys, more=lambda before: _listing_times(keys, before, now))
    publish_cards(rotation.publisher, ring.current.kid, lambda content: rotation.maker.sign(ring.current, content))


def _listing_times(keys: dict[str, Json], before: Json, now: int) -> JsonObject:
    """The time (ms) at which the key set first listed each key; a key that was listed before keeps its time."""
    times_before = _stored_listing_times(before)
    return {"since": {kid: times_before.get(kid, now) for kid in _kids(keys)}}


def _listed_at(rotation: KeyRotation, kid: str) -> int:
    return _stored_listing_times(rotation.publisher.public.get_document(JWKS)).get(kid, rotation.publisher.clock.now())


def _stored_listing_times(stored: Json) -> dict[str, int]:
    """The time (ms) at which the stored key set first listed each key."""
    since = stored.get("since") if isinstance(stored, dict) else None
    return {kid: int(str(at)) for kid, at in since.items()} if isinstance(since, dict) else {}


def _kids(keys: dict[str, Json]) -> list[str]:
    jwks = keys["keys"]
    return [str(key["kid"]) for key in jwks if isinstance(key, dict)] if isinstance(jwks, list) else []
