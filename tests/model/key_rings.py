"""Models of the key ring: two rotators at once, over the adapter of Secrets Manager.

**First ring**: two rotators start in an empty deployment. **Two rotators**: both rotate while the clock passes. In the
last model one of them dies at any call, and the other runs later.

A verifier fetches the key set and keeps it for up to ``CACHED_MS``; a token is valid for ``VALID_MS``. So the key that
signs must have been in every key set that a verifier may hold, and stay in the set until its last token has expired.

Assumed: a rotator runs for at most ``LIMIT_MS`` (then Lambda ends it; the rotation's times contain that); one clock,
read at the moment of the answer before it; Secrets Manager refuses a second content for a version id and reads its
current version consistently; the stored documents are read and written one at a time; there are no agents, so no cards.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from a2a_serverless.adapters.key_ring_secret import SecretKeyRingStore, load_key_ring
from a2a_serverless.domain.key_ring import RotationTimes, SigningKey
from a2a_serverless.domain.publications import JWKS
from a2a_serverless.services.key_rotation import KeyRingError, KeyRotation, ensure_ring, rotate_ring
from a2a_serverless.services.publish import CardPublisher
from a2a_serverless.store import keys
from a2a_serverless.store.stores import Publications
from tests.model.explorer import BLOCKED, Actor, Model
from tests.model.ports import require
from tests.model.tasks import START

if TYPE_CHECKING:
    from a2a_serverless.domain.key_ring import KeyRing
    from a2a_serverless.domain.model import Json
    from tests.model.explorer import World
    from tests.model.ports import Ports

CACHED_MS, VALID_MS, LIMIT_MS = 1000, 1000, 600
TIMES = RotationTimes(publish_ms=CACHED_MS + LIMIT_MS, retire_ms=VALID_MS + LIMIT_MS)


class _Secrets:
    """The calls of Secrets Manager that the adapter makes. The secret's versions are in the notes."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def get_secret_value(self, **_: str) -> dict[str, str]:
        held = self._ports.ask("reads the secret", lambda world, _: world.notes.get("secret"))
        if held is None:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "GetSecretValue")
        return {"VersionId": held[0], "SecretString": held[1]}

    def put_secret_value(self, *, SecretId: str, SecretString: str, ClientRequestToken: str) -> None:  # noqa: N803 - AWS's
        del SecretId

        def put(world: World, _: int) -> object:
            if self._ports.is_late(world):
                return BLOCKED
            versions = dict(world.notes.get("versions", ()))
            if versions.setdefault(ClientRequestToken, SecretString) != SecretString:
                return False
            world.notes.update(versions=tuple(versions.items()), secret=(ClientRequestToken, SecretString))
            _note_ring(world, SecretString)
            return True

        if not self._ports.ask("stores the secret", put):
            raise ClientError({"Error": {"Code": "ResourceExistsException"}}, "PutSecretValue")


class _Keys:
    """Makes keys with names of their own."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def make(self, now: int) -> SigningKey:
        kid = self._ports.ids.new()
        return SigningKey(kid, {"kty": "EC", "kid": kid}, f"private {kid}", now)

    def sign(self, key: SigningKey, content: bytes) -> bytes:
        del content
        return key.kid.encode()


def _note_ring(world: World, text: str) -> None:
    """Notes which key signs, and until when the one before it may have signed."""
    ring = load_key_ring(text)
    assert ring
    signed = dict(world.notes.get("signed", ()))
    if "signs" in world.notes and world.notes["signs"] != ring.current.kid:
        signed[world.notes["signs"]] = world.now
    world.notes.update(signs=ring.current.kid, signed=tuple(signed.items()))


class _Public(Publications):
    """The published documents. It notes since when each key is in the key set that verifiers get."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def publish(self, name: str, document: Json) -> None:
        self._ports.public.publish(name, document)
        self._ports.verify("the documents are public", _note_listed)

    def get_document(self, name: str) -> Json:
        return self._ports.public.get_document(name)


def _note_listed(world: World) -> None:
    item = world.items.get(keys.PUBLIC, keys.document(JWKS))
    if item:
        found = json.loads(json.loads(item["body"]["S"])["body"])["keys"]
        before = dict(world.notes.get("listed", ()))
        world.notes["listed"] = tuple((key["kid"], before.get(key["kid"], world.now)) for key in found)
        world.notes.setdefault("first", tuple(key["kid"] for key in found))


def _rotation(ports: Ports) -> KeyRotation:
    publisher = CardPublisher(_Public(ports), ports.clock, {}, "https://agents.example")
    client: Any = _Secrets(ports)
    ports.clock.now()  # the function begins now, and ends ``LIMIT_MS`` later at the latest
    return KeyRotation(SecretKeyRingStore(client, "secret"), _Keys(ports), publisher, TIMES, age_ms=0)


def _ensure(ports: Ports) -> None:
    with suppress(KeyRingError):
        _note_ready(ports, ensure_ring(_rotation(ports)))


def _rotate(ports: Ports) -> None:
    ports.ask("begins", lambda world, _: None if world.now >= START + TIMES.publish_ms else BLOCKED)
    with suppress(KeyRingError):
        _note_ready(ports, rotate_ring(_rotation(ports)))


def _note_ready(ports: Ports, ring: KeyRing) -> None:
    kid = ring.next.kid
    ports.note("has its ring", lambda notes: notes.update(ready=tuple(sorted({*notes.get("ready", ()), kid}))))


def _check(world: World) -> None:
    """The key that signs has been public long enough; the keys that signed stay public until their tokens expire."""
    if "listed" not in world.notes or "signs" not in world.notes:
        return
    listed, kid = dict(world.notes["listed"]), world.notes["signs"]
    require(kid in listed, "a key signs that is not in the key set")
    is_first = kid in world.notes["first"]
    require(is_first or world.now >= listed[kid] + CACHED_MS, "a key signs that verifiers may not have yet")
    for old, until in world.notes["signed"]:
        require(old in listed or world.now >= until + VALID_MS, "a key left the set before its tokens have expired")


def _check_end(world: World) -> None:
    """The stored ring is published, if a rotator that returned it is not dead."""
    ring = load_key_ring(world.notes["secret"][1])
    assert ring
    if ring.next.kid in world.notes.get("ready", ()):
        listed = {kid for kid, _ in world.notes["listed"]}
        require({ring.current.kid, ring.next.kid} <= listed, "the stored ring is not the published one")


def models() -> list[Model]:
    shared: dict[str, Any] = {"prepare": lambda _: None, "check": _check}
    rotation = shared | {"prepare": _ensure}
    first = tuple(Actor(f"rotator {name}", (_ensure,)) for name in "AB")
    rotators = tuple(Actor(f"rotator {name}", (_rotate,), mortal=True) for name in "AB")
    late, later = START + TIMES.publish_ms, START + 2 * TIMES.publish_ms + 500
    return [
        Model("key ring: the first", first, times=(START,), check_end=_check_end, **shared),
        Model(
            "key ring: a rotation and a publication",
            (rotators[0], Actor("publisher", (_ensure,))),
            times=(START, late),
            check_end=_check_end,
            **rotation,
        ),
        Model(
            "key ring: two rotators",
            rotators,
            times=(START, late, late + 500),
            limit_ms=LIMIT_MS,
            check_end=_check_end,
            **rotation,
        ),
        Model(
            "key ring: a rotator that dies",
            rotators,
            times=(START, late, later),
            limit_ms=LIMIT_MS,
            deaths=1,
            **rotation,
        ),
    ]
