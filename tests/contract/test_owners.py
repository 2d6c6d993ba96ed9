"""What is kept of owners, to give each its share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.quota import SendBucket, UnfinishedTasks
from a2a_serverless.domain.times import DAY_MS
from tests.contract.backends import NOW

if TYPE_CHECKING:
    from tests.contract.backends import Store

ALICE, BOB = Principal("acme", "alice"), Principal("acme", "bob")


def test_a_share_is_replaced_while_it_is_what_was_seen_and_each_owner_has_its_own(store: Store) -> None:
    first, second = SendBucket(5_000, NOW, 1), SendBucket(4_000, NOW + 1, 2)
    assert store.owners.get_bucket(ALICE) is None
    store.owners.store_bucket(ALICE, None, first)
    assert store.owners.get_bucket(ALICE) == first
    assert store.owners.get_bucket(BOB) is None
    assert not store.owners.store_bucket(ALICE, second, first)
    assert not store.owners.store_bucket(BOB, first, second)


def test_of_two_who_saw_the_same_share_one_replaces_it(store: Store) -> None:
    first = SendBucket(5_000, NOW, 1)
    store.owners.store_bucket(ALICE, None, first)
    store.owners.store_bucket(ALICE, first, SendBucket(4_000, NOW, 2))
    store.owners.store_bucket(ALICE, first, SendBucket(3_000, NOW, 9))
    assert store.owners.get_bucket(ALICE) == SendBucket(4_000, NOW, 2)


@pytest.mark.parametrize("store", ["memory", "moto_client"], indirect=True)
def test_a_first_share_is_stored_once_and_the_second_writer_learns_it(store: Store) -> None:
    first = SendBucket(5_000, NOW, 1)
    assert store.owners.store_bucket(ALICE, None, first)
    assert not store.owners.store_bucket(ALICE, None, SendBucket(4_000, NOW, 2))
    assert store.owners.get_bucket(ALICE) == first


def test_unfinished_tasks_are_kept_as_counted(store: Store) -> None:
    assert store.owners.get_unfinished(ALICE) is None
    for tasks in (frozenset({"a", "b"}), frozenset[str]()):
        store.owners.store_unfinished(ALICE, UnfinishedTasks(NOW, tasks))
        assert store.owners.get_unfinished(ALICE) == UnfinishedTasks(NOW, tasks)
    assert store.owners.get_unfinished(BOB) is None


@pytest.mark.parametrize("store", ["memory", "moto_client"], indirect=True)
def test_what_is_kept_of_an_owner_is_forgotten_thirty_days_after_its_last_change(store: Store) -> None:
    first, second = SendBucket(5_000, NOW, 1), SendBucket(4_000, NOW + 1, 2)
    assert store.owners.store_bucket(ALICE, None, first)
    store.owners.store_unfinished(ALICE, UnfinishedTasks(NOW, frozenset({"a"})))
    store.now.ms = NOW + 20 * DAY_MS
    assert store.owners.store_bucket(ALICE, first, second)
    store.now.ms = NOW + 30 * DAY_MS - 1
    assert store.owners.get_unfinished(ALICE)
    store.now.ms = NOW + 30 * DAY_MS
    assert store.owners.get_unfinished(ALICE) is None
    store.now.ms = NOW + 50 * DAY_MS - 1
    assert store.owners.get_bucket(ALICE) == second
    store.now.ms = NOW + 50 * DAY_MS
    assert store.owners.get_bucket(ALICE) is None


def test_as_many_unfinished_tasks_as_a_limit_may_be_fit_into_the_store(store: Store) -> None:
    tasks = frozenset(str(UUID(int=number)) for number in range(10_000))
    counted = UnfinishedTasks(NOW, tasks, more=True)
    store.owners.store_unfinished(ALICE, counted)
    assert store.owners.get_unfinished(ALICE) == counted


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
    admitted = [store.owners.count_upload(ALICE, 1, 100, 1_000) for _ in range(12)]
    assert admitted.count(True) in {5, 10}
    assert sorted(admitted, reverse=True) == admitted
    assert store.owners.count_upload(ALICE, 2, 500, 1_000)
    assert store.owners.count_upload(BOB, 1, 500, 1_000)
    assert not store.owners.count_upload(BOB, 1, 501, 1_000)
    assert not store.owners.count_upload(Principal("acme", "carol"), 1, 1_001, 1_000)


def test_uploads_that_are_asked_for_at_once_stay_under_the_limit_together(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        admitted = [*pool.map(lambda _: store.owners.count_upload(ALICE, 1, 100, 1_000), range(24))]
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
