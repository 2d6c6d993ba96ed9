"""Years of key rotation in a moment: whoever verifies, with however old a list, knows the key of a live token."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_serverless.domain.key_ring import (
    KeyRing,
    RetiredKey,
    RotationTimes,
    SigningKey,
    create_ring,
    promotable_at,
    revoke,
    rotate,
)

NOW = 1_790_000_000_000
SECOND, HOUR, DAY = 1000, 3_600_000, 86_400_000
SKEW = 120 * SECOND
MAX_AGE = HOUR  # how old a verifier's list of keys may be
RING_AGE = 300 * SECOND  # how old a signer's ring may be
TOKEN_LIFE = 300 * SECOND
WAITS = RotationTimes(publish_ms=MAX_AGE + SKEW, retire_ms=RING_AGE + TOKEN_LIFE + SKEW)


def key(name: str, made_at: int = NOW) -> SigningKey:
    return SigningKey(name, {"kty": "EC", "kid": name}, f"private {name}", made_at)


def listed(ring: KeyRing, now: int) -> list[object]:
    keys = ring.jwks(now)["keys"]
    assert isinstance(keys, list)
    return [entry["kid"] for entry in keys if isinstance(entry, dict)]


RING = create_ring(key("a"), key("b"), now=NOW)
ONCE = NOW + WAITS.publish_ms


# ---- One step at a time


def test_a_new_deployment_has_a_key_that_signs_and_a_key_that_waits() -> None:
    assert KeyRing(key("a"), key("b"), (), promoted_at=NOW) == RING
    assert listed(RING, NOW) == ["a", "b"]


def test_a_rotation_promotes_the_next_key_and_keeps_the_old_one_listed() -> None:
    turned = rotate(RING, key("c", ONCE), now=ONCE, waits=WAITS)
    old = RetiredKey("a", {"kty": "EC", "kid": "a"}, ONCE + WAITS.retire_ms)
    assert turned == KeyRing(key("b"), key("c", ONCE), (old,), promoted_at=ONCE)
    assert listed(turned, old.until - 1) == ["b", "c", "a"]
    assert listed(turned, old.until) == ["b", "c"]


def test_keys_that_retire_more_slowly_than_others_follow_are_all_listed() -> None:
    ring, now, waits = RING, NOW, replace(WAITS, retire_ms=10 * WAITS.publish_ms)
    for number, name in enumerate("cdef", 1):
        now = NOW + number * WAITS.publish_ms
        ring = rotate(ring, key(name, now), now=now, waits=waits)
    assert listed(ring, now) == ["e", "f", "d", "c", "b", "a"]


def test_a_key_that_has_not_been_public_for_long_enough_is_not_promoted() -> None:
    assert promotable_at(RING, WAITS) == ONCE
    assert rotate(RING, key("c"), now=ONCE - 1, waits=WAITS) == RING


def test_a_rotation_that_comes_too_early_still_forgets_what_has_expired() -> None:
    turned = rotate(RING, key("c", ONCE), now=ONCE, waits=replace(WAITS, retire_ms=SECOND))
    assert rotate(turned, key("d"), now=ONCE + SECOND, waits=WAITS) == replace(turned, previous=())


def test_the_key_set_of_a_ring_shows_no_private_key() -> None:
    turned = rotate(RING, key("c", ONCE), now=ONCE, waits=WAITS)
    assert "private" not in str(turned.jwks(ONCE))
    assert "private a" not in repr(turned)
    assert "private b" not in repr(turned)


# ---- Emergencies


@pytest.mark.parametrize(
    ("kid", "left"), [("b", ["c", "fresh", "a"]), ("c", ["b", "fresh", "a"]), ("a", ["b", "c"]), ("z", ["b", "c", "a"])]
)
def test_a_revoked_key_is_off_the_list_at_once_and_the_ring_stays_whole(kid: str, left: list[str]) -> None:
    turned = rotate(RING, key("c", ONCE), now=ONCE, waits=WAITS)
    revoked = revoke(turned, kid, key("fresh", ONCE), now=ONCE)
    assert listed(revoked, ONCE) == left
    assert kid not in {revoked.current.kid, revoked.next.kid}


def test_after_a_revocation_the_key_that_takes_over_was_public_already() -> None:
    revoked = revoke(RING, "a", key("c", NOW + DAY), now=NOW + DAY)
    assert revoked.current.kid in listed(RING, NOW)


def test_a_key_made_in_an_emergency_waits_like_any_other() -> None:
    revoked = revoke(RING, "a", key("c", NOW + DAY), now=NOW + DAY)
    assert rotate(revoked, key("d"), now=NOW + DAY + HOUR, waits=WAITS) == revoked


def test_a_revocation_begins_the_life_of_the_key_that_takes_over() -> None:
    at, fresh = NOW + DAY, key("c", NOW + DAY)
    assert revoke(RING, "a", fresh, now=at) == KeyRing(key("b"), fresh, (), promoted_at=at)
    assert revoke(RING, "b", fresh, now=at) == KeyRing(key("a"), fresh, (), promoted_at=NOW)


# ---- Years


@dataclass(frozen=True)
class Moment:
    """A run of the rotator, and what it left behind."""

    at: int
    ring: KeyRing

    @property
    def public(self) -> list[object]:
        """The list as it was written then: nobody shortens it between two runs."""
        return listed(self.ring, self.at)


def years(waits_ms: list[int], revokes: frozenset[int] = frozenset()) -> list[Moment]:
    """Runs of the rotator, each so long after the one before; some of them revoke the current key."""
    runs, ring, now = [Moment(NOW, RING)], RING, NOW
    for number, wait in enumerate(waits_ms):
        now += wait
        fresh = key(f"k{number}", now)
        if number in revokes:
            ring = revoke(ring, ring.current.kid, fresh, now=now)
        else:
            ring = rotate(ring, fresh, now=now, waits=WAITS)
        runs.append(Moment(now, ring))
    return runs


def at(runs: list[Moment], now: int) -> Moment:
    """What the last run until ``now`` left behind."""
    return [run for run in runs if run.at <= now][-1]


def checks(runs: list[Moment]) -> list[tuple[int, int, int]]:
    """(when the signer read the ring, when it signed, when the verifier read the list), at every edge of every run."""
    signed = {run.at + edge for run in runs for edge in (0, 1, -1, RING_AGE, RING_AGE - 1) if run.at + edge >= NOW}
    ages = product(signed, (0, RING_AGE), (0, TOKEN_LIFE + SKEW), (0, MAX_AGE))
    found = [(sign - ring_age, sign, sign + later - list_age) for sign, ring_age, later, list_age in ages]
    return [(ring, sign, read) for ring, sign, read in found if ring >= NOW and read >= NOW]


WAITING = st.lists(
    st.sampled_from([SECOND, RING_AGE, HOUR, HOUR + SKEW, HOUR + SKEW + 1, 2 * HOUR, DAY, 30 * DAY, 400 * DAY]),
    min_size=1,
    max_size=40,
)


@settings(deadline=None, max_examples=100)
@given(WAITING)
def test_through_years_of_rotation_no_live_token_meets_a_verifier_that_lacks_its_key(waits_ms: list[int]) -> None:
    runs = years(waits_ms)
    for ring_read, _, list_read in checks(runs):
        assert at(runs, ring_read).ring.current.kid in at(runs, list_read).public


@settings(deadline=None, max_examples=100)
@given(WAITING, st.frozensets(st.integers(0, 39), max_size=4))
def test_through_years_with_emergencies_a_revoked_key_never_comes_back(
    waits_ms: list[int], revokes: frozenset[int]
) -> None:
    runs = years(waits_ms, revokes)
    for number in (number for number in revokes if number < len(waits_ms)):
        kid = runs[number].ring.current.kid
        later = runs[number + 1 :]
        assert all(kid not in run.public and kid != run.ring.current.kid for run in later)


@settings(deadline=None, max_examples=50)
@given(WAITING)
def test_the_list_stays_short_and_names_no_key_twice(waits_ms: list[int]) -> None:
    for run in years(waits_ms):
        assert len(run.public) == len(set(run.public))
        assert len(run.public) <= 4


def test_the_schedule_turns_the_ring_each_time_that_it_is_ready() -> None:
    runs = years([30 * DAY] * 24)
    assert [run.ring.current.kid for run in runs] == ["a", "b", *(f"k{number}" for number in range(23))]
