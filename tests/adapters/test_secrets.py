from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from cryptography.hazmat.primitives.asymmetric import ec
from jwt import PyJWK, decode, get_unverified_header
from jwt.algorithms import ECAlgorithm

from a2a_serverless.adapters import clock as system
from a2a_serverless.adapters.es256 import Es256Keys, KeyRingSigner, NoKeyRing, is_valid_signature
from a2a_serverless.adapters.key_ring_secret import (
    SecretKeyRingStore,
    UnreadableKeyRing,
    dump_key_ring,
    load_key_ring,
    rotation_times,
)
from a2a_serverless.domain.key_ring import KeyRing, RetiredKey, RotationTimes, SigningKey, create_ring
from a2a_serverless.testing.memory import MemoryKeyRingStore
from tests.adapters.clouds import cloud, error

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = 1_790_000_000_000
PUBLIC: dict[str, Any] = {"kty": "EC", "crv": "P-256", "x": "x", "y": "y", "alg": "ES256"}
CURRENT = SigningKey("one", {**PUBLIC, "kid": "one"}, "-----BEGIN PRIVATE KEY-----\none\n", NOW)
RING = KeyRing(
    CURRENT,
    replace(CURRENT, kid="two"),
    (RetiredKey("nil", PUBLIC, NOW + 1), RetiredKey("minus", PUBLIC, NOW)),
    NOW + 2,
)


@pytest.fixture
def client() -> Iterator[Any]:
    with cloud("secretsmanager") as made:
        yield made


@pytest.mark.parametrize("ring", [RING, replace(RING, previous=())])
def test_a_ring_comes_back_as_it_was_saved_last(client: Any, ring: KeyRing) -> None:
    client.create_secret(Name="ring", SecretString="{}")
    store = SecretKeyRingStore(client, "ring")
    assert store.save(RING, None)
    assert store.save(ring, RING)
    assert store.load() == ring


class Overtaken:
    """A client that somebody overtakes: it saves right before the first value is put."""

    def __init__(self, client: Any, somebody: KeyRing, before: KeyRing | None) -> None:
        self._client = client
        self._first: list[tuple[KeyRing, KeyRing | None]] = [(somebody, before)]

    def get_secret_value(self, **parameters: object) -> Any:
        return self._client.get_secret_value(**parameters)

    def put_secret_value(self, **parameters: object) -> Any:
        for ring, before in [self._first.pop() for _ in self._first]:
            assert SecretKeyRingStore(self._client, "ring").save(ring, before)
        return self._client.put_secret_value(**parameters)


@pytest.mark.parametrize("before", [None, RING])
def test_of_two_who_save_over_the_same_ring_at_once_one_is_refused(client: Any, before: KeyRing | None) -> None:
    """Moto holds a version's id to one content, as Secrets Manager does; the laptop's emulator does not."""
    client.create_secret(Name="ring", SecretString=dump_key_ring(before) if before else "{}")
    theirs, ours = (replace(RING, promoted_at=NOW + more) for more in (3, 4))
    overtaken: Any = Overtaken(client, theirs, before)
    assert not SecretKeyRingStore(overtaken, "ring").save(ours, before)
    assert SecretKeyRingStore(client, "ring").load() == theirs
    assert SecretKeyRingStore(client, "ring").save(ours, theirs)
    assert SecretKeyRingStore(client, "ring").load() == ours


def test_a_save_over_a_ring_that_is_not_stored_any_more_is_refused(client: Any) -> None:
    client.create_secret(Name="ring", SecretString=dump_key_ring(RING))
    store, other = SecretKeyRingStore(client, "ring"), replace(RING, promoted_at=NOW + 3)
    assert not store.save(other, None)
    assert not store.save(replace(other, previous=()), other)
    assert store.load() == RING


def test_a_save_that_is_tried_again_counts_as_success(client: Any) -> None:
    client.create_secret(Name="ring", SecretString="{}")
    store = SecretKeyRingStore(client, "ring")
    assert store.save(RING, None)
    assert store.save(RING, None)
    same: Any = Overtaken(client, replace(RING, promoted_at=NOW + 3), RING)
    assert SecretKeyRingStore(same, "ring").save(replace(RING, promoted_at=NOW + 3), RING)


def test_a_secret_that_may_not_be_written_is_an_error(client: Any) -> None:
    class Closed(Overtaken):
        def put_secret_value(self, **parameters: object) -> Any:
            raise error("AccessDeniedException", parameters=len(parameters))

    client.create_secret(Name="ring", SecretString="{}")
    closed: Any = Closed(client, RING, None)
    with pytest.raises(ClientError, match="AccessDenied"):
        SecretKeyRingStore(closed, "ring").save(RING, None)


@pytest.mark.parametrize("placeholder", ["{}", " ", "null"])
def test_a_placeholder_is_no_ring(client: Any, placeholder: str) -> None:
    client.create_secret(Name="ring", SecretString=placeholder)
    assert SecretKeyRingStore(client, "ring").load() is None


def test_a_secret_without_a_value_is_no_ring(client: Any) -> None:
    client.create_secret(Name="ring")
    assert SecretKeyRingStore(client, "ring").load() is None


def test_a_secret_that_may_not_be_read_is_an_error() -> None:
    class Closed:
        def get_secret_value(self, **_: object) -> object:
            raise error("AccessDeniedException")

    closed: Any = Closed()
    with pytest.raises(ClientError, match="AccessDenied"):
        SecretKeyRingStore(closed, "ring").load()


@pytest.mark.parametrize(
    "text",
    [
        dump_key_ring(RING).replace('"v": 1', '"v": 2'),
        dump_key_ring(RING).replace('"current"', '"now"'),
        "{garbage",
        '"garbage"',
        '["garbage"]',
    ],
)
def test_a_secret_that_holds_no_ring_is_an_error_that_says_what_restores_it_and_quotes_nothing(text: str) -> None:
    with pytest.raises(UnreadableKeyRing, match=r"put-secret-value .* AWSPREVIOUS") as raised:
        load_key_ring(text)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None
    assert "garbage" not in str(raised.value)


def test_the_previous_version_stored_as_a_new_one_is_the_ring_and_can_be_replaced(client: Any) -> None:
    client.create_secret(Name="ring", SecretString=dump_key_ring(RING))
    client.put_secret_value(SecretId="ring", SecretString="{garbage")
    store = SecretKeyRingStore(client, "ring")
    with pytest.raises(UnreadableKeyRing):
        store.load()
    previous = client.get_secret_value(SecretId="ring", VersionStage="AWSPREVIOUS")["SecretString"]
    client.put_secret_value(SecretId="ring", SecretString=previous)
    assert store.load() == RING
    assert store.save(replace(RING, previous=()), RING)


def test_a_signature_is_valid_for_its_key_and_content_only() -> None:
    mine, other = Es256Keys().make(NOW), Es256Keys().make(NOW)
    signature = Es256Keys().sign(mine, b"content")
    assert is_valid_signature(mine.public, b"content", signature)
    assert not is_valid_signature(other.public, b"content", signature)
    assert not is_valid_signature(mine.public, b"other content", signature)
    assert not is_valid_signature(mine.public, b"content", signature[:-1])


@pytest.mark.parametrize("curve", [ec.SECP384R1(), ec.SECP521R1()])
def test_a_signature_by_a_key_of_another_curve_is_not_valid(curve: ec.EllipticCurve) -> None:
    key, made = ec.generate_private_key(curve), ECAlgorithm(ECAlgorithm.SHA256)
    public: dict[str, Any] = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    assert not is_valid_signature(public, b"content", made.sign(b"content", key))


def test_a_signature_by_a_key_of_another_type_is_not_valid() -> None:
    assert not is_valid_signature({"kty": "oct", "k": "c2VjcmV0"}, b"content", b"signature")


class Counting(MemoryKeyRingStore):
    """A vault that counts its loads, and fails while ``down``."""

    def __init__(self, ring: KeyRing | None) -> None:
        super().__init__(ring)
        self.loads = 0
        self.down = False

    def load(self) -> KeyRing | None:
        self.loads += 1
        if self.down:
            raise ConnectionError("down")
        return super().load()


class Cached:
    """A counting vault behind a cache of a minute, at a time that a test sets."""

    def __init__(self, ring: KeyRing | None = RING) -> None:
        self.now = NOW
        self.store = Counting(ring)
        self.cache = system.Cached(self.store.load, lambda: self.now, 60_000)


def test_a_cached_ring_is_loaded_once_until_it_is_too_old() -> None:
    cached = Cached()
    assert [cached.cache(), cached.cache()] == [RING, RING]
    cached.now += 59_999
    assert (cached.cache(), cached.store.loads) == (RING, 1)
    cached.now += 1
    assert (cached.cache(), cached.store.loads) == (RING, 2)


def test_a_ring_that_is_too_old_is_not_used_although_the_vault_fails() -> None:
    cached = Cached()
    cached.cache()
    cached.store.down = True
    assert cached.cache() == RING
    cached.now += 60_000
    with pytest.raises(ConnectionError):
        cached.cache()


def test_the_cache_asks_again_after_it_met_no_key_ring() -> None:
    cached = Cached(None)
    assert cached.cache() is None
    cached.store.ring = RING
    assert cached.cache() == RING


# ---- Keys and tokens


def test_a_key_is_named_by_its_thumbprint_and_says_what_it_is_for() -> None:
    public: Any = Es256Keys().make(NOW).public
    members = f'{{"crv":"P-256","kty":"EC","x":"{public["x"]}","y":"{public["y"]}"}}'  # RFC 7638, 3.2
    named = urlsafe_b64encode(sha256(members.encode()).digest()).decode().rstrip("=")
    assert set(public) == {"kty", "crv", "x", "y", "kid", "use", "alg"}
    assert (public["kid"], public["use"], public["alg"]) == (named, "sig", "ES256")


def test_a_token_is_signed_with_the_key_that_is_current_now() -> None:
    one, two, three = (Es256Keys().make(NOW) for _ in range(3))
    rings = [create_ring(one, two, now=NOW), create_ring(one, two, now=NOW), create_ring(two, three, now=NOW)]
    signer = KeyRingSigner(lambda: rings.pop(0))
    for key in (one, one, two):
        signed = signer.sign("a2a-notification+jwt", {"sub": "task"})
        assert signed.kid == key.kid
        assert get_unverified_header(signed.token) == {"alg": "ES256", "kid": key.kid, "typ": "a2a-notification+jwt"}
        assert decode(signed.token, PyJWK(key.public).key, ["ES256"]) == {"sub": "task"}


def test_without_a_ring_nothing_is_signed() -> None:
    with pytest.raises(NoKeyRing):
        KeyRingSigner(lambda: None).sign("a2a-notification+jwt", {})


def test_a_key_is_public_for_62_minutes_before_it_signs_and_for_72_after_it_if_receivers_cache_for_an_hour() -> None:
    assert rotation_times(3600) == RotationTimes(publish_ms=62 * 60_000, retire_ms=72 * 60_000)


def test_a_private_key_does_not_show_in_a_ring_that_is_printed() -> None:
    assert "PRIVATE" not in repr(RING)
