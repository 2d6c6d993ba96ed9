"""What is kept of owners, to give each its share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.share import Share, Unfinished
from tests.contract.backends import NOW

if TYPE_CHECKING:
    from tests.contract.backends import Store

ALICE, BOB = Principal("acme", "alice"), Principal("acme", "bob")


def test_a_share_is_replaced_while_it_is_what_was_seen_and_each_owner_has_its_own(store: Store) -> None:
    first, second = Share(5_000, NOW, 1), Share(4_000, NOW + 1, 2)
    assert store.owners.share(ALICE) is None
    store.owners.keep_share(ALICE, None, first)
    assert store.owners.share(ALICE) == first
    assert store.owners.share(BOB) is None
    assert not store.owners.keep_share(ALICE, second, first)
    assert not store.owners.keep_share(BOB, first, second)


def test_of_two_who_saw_the_same_share_one_replaces_it(store: Store) -> None:
    first = Share(5_000, NOW, 1)
    store.owners.keep_share(ALICE, None, first)
    store.owners.keep_share(ALICE, first, Share(4_000, NOW, 2))
    store.owners.keep_share(ALICE, first, Share(3_000, NOW, 9))
    assert store.owners.share(ALICE) == Share(4_000, NOW, 2)


def test_unfinished_tasks_are_kept_as_counted(store: Store) -> None:
    assert store.owners.unfinished(ALICE) is None
    for tasks in (frozenset({"a", "b"}), frozenset[str]()):
        store.owners.keep_unfinished(ALICE, Unfinished(NOW, tasks))
        assert store.owners.unfinished(ALICE) == Unfinished(NOW, tasks)
    assert store.owners.unfinished(BOB) is None


def test_streams_are_counted_until_they_are_closed_or_must_have_ended(store: Store) -> None:
    for name in ("one", "two", "three"):
        store.owners.hold_stream(ALICE, name, NOW + 10_000)
    assert (store.owners.streams(ALICE, 10), store.owners.streams(ALICE, 2), store.owners.streams(BOB, 9)) == (3, 2, 0)
    store.owners.drop_stream(ALICE, "one")
    store.owners.drop_stream(ALICE, "one")
    assert store.owners.streams(ALICE, 10) == 2
    store.now.ms = NOW + 10_000
    assert store.owners.streams(ALICE, 10) == 0
