"""API keys: who may call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless.domain.access import ApiKey, digest_of
from a2a_serverless.domain.model import Principal

if TYPE_CHECKING:
    from tests.contract.backends import Store

ALICE = ApiKey(digest_of("a2a_alice"), Principal("acme", "alice"), "laptop", 1_790_000_000_000)
BOB = ApiKey(digest_of("a2a_bob"), Principal("default", "bob"), "", 1_790_000_000_001)


def test_a_key_is_found_by_its_digest(store: Store) -> None:
    store.api_keys.add(ALICE)
    assert store.api_keys.find(ALICE.digest) == ALICE
    assert store.api_keys.find(BOB.digest) is None


def test_all_keys_are_listed_by_digest(store: Store) -> None:
    assert store.api_keys.list_all() == []
    for key in (ALICE, BOB):
        store.api_keys.add(key)
    assert store.api_keys.list_all() == sorted((ALICE, BOB), key=lambda key: key.digest)


def test_a_revoked_key_is_gone_and_revoking_it_twice_is_fine(store: Store) -> None:
    store.api_keys.add(ALICE)
    for _ in range(2):
        store.api_keys.revoke(ALICE.digest)
    assert (store.api_keys.find(ALICE.digest), store.api_keys.list_all()) == (None, [])


def test_a_key_keeps_its_scopes(store: Store) -> None:
    narrow = ALICE._replace(scopes=frozenset({"a2a:document", "a2a:read"}))
    store.api_keys.add(narrow)
    assert store.api_keys.find(ALICE.digest) == narrow
