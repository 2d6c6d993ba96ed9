"""What is kept of owners, to give each its share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain.model import DAY_MS, Principal
from a2a_serverless.store.keys import UPLOADED
from tests.contract.backends import NOW

if TYPE_CHECKING:
    from tests.contract.backends import Store

ALICE, BOB = Principal("acme", "alice"), Principal("acme", "bob")


def test_streams_are_counted_until_they_are_closed_or_must_have_ended(store: Store) -> None:
    for name in ("one", "two", "three"):
        store.owners.lease_stream(ALICE, name, NOW + 10_000)
    assert (
        store.owners.count_streams(ALICE, 10),
        store.owners.count_streams(ALICE, 2),
        store.owners.count_streams(BOB, 9),
    ) == (3, 2, 0)
    store.owners.release_stream(ALICE, "one")
    store.owners.release_stream(ALICE, "one")
    assert store.owners.count_streams(ALICE, 10) == 2
    store.now.ms = NOW + 10_000
    assert store.owners.count_streams(ALICE, 10) == 0


def test_bytes_of_uploads_are_counted_by_owner_and_day_up_to_the_limit(store: Store) -> None:
    """A write that was sent twice may count twice: of what is admitted there is never too much."""
    admitted = [store.owners.count(ALICE, UPLOADED, 1, DAY_MS, 100, 1_000) for _ in range(12)]
    assert admitted.count(True) in {5, 10}
    assert sorted(admitted, reverse=True) == admitted
    assert store.owners.count(ALICE, UPLOADED, 2, DAY_MS, 500, 1_000)
    assert store.owners.count(BOB, UPLOADED, 1, DAY_MS, 500, 1_000)
    assert not store.owners.count(BOB, UPLOADED, 1, DAY_MS, 501, 1_000)
    assert not store.owners.count(Principal("acme", "carol"), UPLOADED, 1, DAY_MS, 1_001, 1_000)


@pytest.mark.parametrize("store", ["memory", "moto_client"], indirect=True)  # where every request is sent once
def test_an_owner_may_use_its_limit_to_the_last_byte(store: Store) -> None:
    admitted = [store.owners.count(ALICE, UPLOADED, 1, DAY_MS, 100, 1_000) for _ in range(12)]
    assert admitted == [True] * 10 + [False] * 2


def test_uploads_that_are_asked_for_at_once_stay_under_the_limit_together(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        admitted = [*pool.map(lambda _: store.owners.count(ALICE, UPLOADED, 1, DAY_MS, 100, 1_000), range(24))]
    assert admitted.count(True) in {5, 10}


def test_streams_of_all_owners_are_counted_together(store: Store) -> None:
    assert store.owners.count_streams(None, 10) == 0
    for principal, name in ((ALICE, "one"), (ALICE, "two"), (BOB, "three")):
        store.owners.lease_stream(principal, name, NOW + 10_000)
    assert (store.owners.count_streams(None, 10), store.owners.count_streams(None, 2)) == (3, 2)
    store.owners.release_stream(BOB, "three")
    assert store.owners.count_streams(None, 10) == 2
    store.now.ms = NOW + 10_000
    assert store.owners.count_streams(None, 10) == 0


def test_a_stream_that_is_held_again_is_one_stream_that_lasts_longer(store: Store) -> None:
    store.owners.lease_stream(ALICE, "one", NOW + 10_000)
    store.owners.lease_stream(ALICE, "one", NOW + 30_000)
    assert (store.owners.count_streams(ALICE, 10), store.owners.count_streams(None, 10)) == (1, 1)
    store.now.ms = NOW + 29_000
    assert (store.owners.count_streams(ALICE, 10), store.owners.count_streams(None, 10)) == (1, 1)
    store.now.ms = NOW + 30_000
    assert (store.owners.count_streams(ALICE, 10), store.owners.count_streams(None, 10)) == (0, 0)
