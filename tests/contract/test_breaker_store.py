"""What instances tell each other about hosts that do not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless.domain.circuit_breaker import FORGET_MS, OpenBreaker
from tests.contract.backends import NOW

if TYPE_CHECKING:
    from tests.contract.backends import Store

HOST = "hooks.example.com:8443"


def test_a_host_that_nobody_told_of_has_no_trip(store: Store) -> None:
    assert store.hosts.get_open_breaker(HOST) is None


def test_the_last_trip_is_the_one_that_counts(store: Store) -> None:
    store.hosts.store_open_breaker(HOST, OpenBreaker(NOW + 30_000))
    store.hosts.store_open_breaker(HOST, OpenBreaker(NOW + 90_000, 2))
    assert store.hosts.get_open_breaker(HOST) == OpenBreaker(NOW + 90_000, 2)


def test_the_open_breaker_of_a_host_holds_for_no_other_host(store: Store) -> None:
    store.hosts.store_open_breaker(HOST, OpenBreaker(NOW))
    assert store.hosts.get_open_breaker("hooks.example.com") is None
    assert store.hosts.get_open_breaker("HOST#") is None


def test_a_trip_is_forgotten_an_hour_after_its_time(store: Store) -> None:
    store.hosts.store_open_breaker(HOST, OpenBreaker(NOW))
    store.now.ms = NOW + FORGET_MS - 1000
    assert store.hosts.get_open_breaker(HOST) == OpenBreaker(NOW)
    store.now.ms = NOW + FORGET_MS
    assert store.hosts.get_open_breaker(HOST) is None


def test_the_one_try_at_a_silent_host_is_claimed_once_until_its_time(store: Store) -> None:
    assert store.hosts.claim_try(HOST, "one", NOW + 30_000)
    assert store.hosts.claim_try(HOST, "one", NOW + 30_000)
    assert not store.hosts.claim_try(HOST, "another", NOW + 30_000)
    assert store.hosts.claim_try("other.example.com", "another", NOW + 30_000)
    store.now.ms = NOW + 30_000
    assert store.hosts.claim_try(HOST, "another", NOW + 60_000)
