"""The key ring's life: first keys, rotation, revocation, and the public key set and signed cards that go with it.

A ring is saved only in place of the one that it was made of, and published after that: of two rotators at once one
wins, and only what is in the vault is published. The published key set says since when it lists each key, and a key
signs only when it has been listed for long enough. So a rotator may die anywhere: a ring that was saved and not
published signs with keys that were public before, and the next run publishes what the vault holds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.key_ring import KeyRing, RotationTimes, create_ring, promotable_at, revoke, rotate
from a2a_serverless.domain.publications import JWKS
from a2a_serverless.services.publish import CardPublisher, find_altered, publish, publish_cards

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.ports import KeyFactory, KeyRingStore

TRIES: Final = 10
CHANGED: Final = (
    "the key ring is changed by others all the time; or its secret was set back to an older version, which cannot be "
    "followed by another one: store the ring's text as a new version"
)


class KeyRingError(Exception):
    """What the rotator cannot do, or has found. The texts are for operators and quote nobody else."""


class DocumentsAltered(KeyRingError):
    """Somebody else has changed what is published."""


class UnknownKey(KeyRingError, ValueError):
    """No key of the ring has that name."""


class RingChanged(KeyRingError, RuntimeError):
    """The ring was changed by others whenever it was to be stored."""

    def __init__(self) -> None:
        super().__init__(CHANGED)


@dataclass(frozen=True, slots=True)
class KeyRotation:
    """What the rotator needs. ``age_ms`` is how old the current key may get before the schedule replaces it."""

    store: KeyRingStore
    maker: KeyFactory
    publisher: CardPublisher
    waits: RotationTimes
    age_ms: int


def ensure_ring(rotation: KeyRotation) -> KeyRing:
    """The ring, made if there is none, with its key set published."""
    for _ in range(TRIES):
        ring = rotation.store.load()
        if ring is not None:
            return _publish(rotation, ring)
        now = rotation.publisher.clock.now()
        rotation.store.save(create_ring(rotation.maker.make(now), rotation.maker.make(now), now=now), None)
    raise RingChanged


def rotate_ring(rotation: KeyRotation) -> KeyRing:
    """Promotes the next key when it has been public for long enough."""
    for _ in range(TRIES):
        before = ensure_ring(rotation)
        now, listed_at = rotation.publisher.clock.now(), _listed_at(rotation, before.next.kid)
        ring = rotate(before, rotation.maker.make(now), now=now, waits=rotation.waits, listed_at=listed_at)
        if ring == before:
            return before
        if rotation.store.save(ring, before):
            return _publish(rotation, ring)
    raise RingChanged


def rotate_when_old(rotation: KeyRotation) -> KeyRing:
    """What the schedule does: rotates once the current key is older than ``age_ms``, else only publishes.

    Raises Altered, once all is published as it should be, when something else was there: nobody but us may write it.
    """
    held = rotation.store.load()
    names = find_altered(rotation.publisher, _public_keys(held)) if held else []
    ring = ensure_ring(rotation)
    if rotation.publisher.clock.now() - ring.promoted_at >= rotation.age_ms:
        ring = rotate_ring(rotation)
    if names:
        raise DocumentsAltered(f"published documents had been altered, and are as they were: {', '.join(names)}")
    return ring


def revoke_key(rotation: KeyRotation, kid: str) -> KeyRing:
    """Takes a key out of use and off the list at once; raises UnknownKey when there is none of that name."""
    for _ in range(TRIES):
        before, now = ensure_ring(rotation), rotation.publisher.clock.now()
        if kid not in before.kids:
            raise UnknownKey(f"no key of the ring is named {kid!r}; there are {', '.join(before.kids)}")
        ring = revoke(before, kid, rotation.maker.make(now), now=now)
        if rotation.store.save(ring, before):
            return _publish(rotation, ring)
    raise RingChanged


def describe(rotation: KeyRotation) -> dict[str, Json]:
    """The ring without its secrets; times are ms."""
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
    """All that the ring's key set may ever have listed."""
    return [ring.current.public, ring.next.public, *(old.public for old in ring.previous)]


def _publish(rotation: KeyRotation, ring: KeyRing) -> KeyRing:
    """Publishes what belongs to the ring, and once more while the vault holds another one; gives that which it holds.

    Whoever saved that one may have published it before us.
    """
    for _ in range(TRIES):
        _publish_once(rotation, ring)
        held = rotation.store.load()
        if held is None or held == ring:
            return ring
        ring = held
    raise RingChanged


def _publish_once(rotation: KeyRotation, ring: KeyRing) -> None:
    now = rotation.publisher.clock.now()
    keys = ring.jwks(now)
    publish(rotation.publisher, JWKS, keys, more=lambda before: _listing_times(keys, before, now))
    publish_cards(rotation.publisher, ring.current.kid, lambda content: rotation.maker.sign(ring.current, content))


def _listing_times(keys: dict[str, Json], before: Json, now: int) -> JsonObject:
    """Since when (ms) each key is in the key set that is being published: what was listed before has its time."""
    known = _stored_listing_times(before)
    return {"since": {kid: known.get(kid, now) for kid in _kids(keys)}}


def _listed_at(rotation: KeyRotation, kid: str) -> int:
    return _stored_listing_times(rotation.publisher.public.get_document(JWKS)).get(kid, rotation.publisher.clock.now())


def _stored_listing_times(stored: Json) -> dict[str, int]:
    """Since when (ms) each key is in the stored key set. One of an earlier release says only when it changed last."""
    if not isinstance(stored, dict):
        return {}
    since = stored.get("since")
    if isinstance(since, dict):
        return {kid: int(str(at)) for kid, at in since.items()}
    changed = int(parsedate_to_datetime(str(stored["modified"])).timestamp() * 1000)
    return dict.fromkeys(_kids(json.loads(str(stored["body"]))), changed)


def _kids(keys: dict[str, Json]) -> list[str]:
    listed = keys["keys"]
    return [str(key["kid"]) for key in listed if isinstance(key, dict)] if isinstance(listed, list) else []
