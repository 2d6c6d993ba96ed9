"""What one instance knows of the hosts, and what the instances tell each other."""

from __future__ import annotations

import pytest

from a2a_serverless.domain.challenges import ANSWERED_S, UNANSWERED_S, ChallengeState
from a2a_serverless.domain.circuit_breaker import FAILURE_THRESHOLD, FORCED_TRY_MS, OPEN_MS, OpenBreaker
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.domain.outcomes import OutboundError, Outcome
from a2a_serverless.services.circuit_breakers import (
    ANSWERED_MS,
    HOSTS_KEPT,
    REFRESH_MS,
    ChallengeLimiter,
    CircuitBreakers,
    CircuitOpen,
    HostBusy,
)
from a2a_serverless.store.stores import BreakerStore
from a2a_serverless.testing.memory import MemoryMetrics, MemoryStores, MemoryTable

NOW = 1_790_000_000_000
KEY = TaskKey("tenant", "owner", "task")
HOST = "hooks.example.com"
SILENT = Outcome(error=OutboundError.CONNECT)


class Breakers(BreakerStore):
    """Open breakers in memory, with the numbers of reads and writes."""

    def __init__(self) -> None:
        super().__init__(MemoryTable(lambda: NOW))
        self.tries: dict[str, tuple[str, int]] = {}
        self.reads = 0
        self.writes = 0

    def get_open_breaker(self, host: str) -> OpenBreaker | None:
        self.reads += 1
        return super().get_open_breaker(host)

    def store_open_breaker(self, host: str, open_breaker: OpenBreaker) -> None:
        self.writes += 1
        super().store_open_breaker(host, open_breaker)

    def claim_try(self, host: str, holder: str, until: int) -> bool:
        claimed = super().claim_try(host, holder, until)
        if claimed:
            self.tries[host] = (holder, until)
        return claimed


def visited(hosts: CircuitBreakers, outcome: Outcome, now: int, host: str = HOST) -> None:
    with hosts.request_slot(host, now):
        pass
    hosts.learn(host, outcome, now)


def test_a_host_has_so_many_requests_in_flight_and_no_more() -> None:
    hosts = CircuitBreakers(Breakers(), in_flight=2)
    with hosts.request_slot(HOST, NOW), hosts.request_slot(HOST, NOW):
        with pytest.raises(HostBusy), hosts.request_slot(HOST, NOW):
            pass
        with hosts.request_slot("other.example.com", NOW):
            pass
    with hosts.request_slot(HOST, NOW):
        pass


def test_a_visit_that_fails_gives_its_place_back() -> None:
    hosts = CircuitBreakers(Breakers(), in_flight=1)
    with pytest.raises(ZeroDivisionError), hosts.request_slot(HOST, NOW):
        raise ZeroDivisionError
    with hosts.request_slot(HOST, NOW):
        pass


def test_a_trip_is_told_once_and_nothing_else_is_written() -> None:
    store = Breakers()
    hosts = CircuitBreakers(store)
    visited(hosts, Outcome(status=200), NOW)
    for _ in range(FAILURE_THRESHOLD):
        visited(hosts, SILENT, NOW)
    hosts.learn(HOST, SILENT, NOW)
    assert (store.writes, store.get_open_breaker(HOST)) == (1, OpenBreaker(NOW + OPEN_MS))
    with pytest.raises(CircuitOpen) as alone, hosts.request_slot(HOST, NOW):
        pass
    assert alone.value.until == NOW + OPEN_MS


def test_breakers_that_open_and_close_are_counted() -> None:
    metrics = MemoryMetrics()
    hosts = CircuitBreakers(Breakers(), metrics=metrics)
    for host in ("a.example.com", "b.example.com"):
        for _ in range(FAILURE_THRESHOLD + 1):
            hosts.learn(host, SILENT, NOW)
    hosts.learn("a.example.com", Outcome(status=200), NOW)
    assert metrics.measured == [
        ("OpenCircuits", 1, {"host": "a.example.com"}),
        ("OpenCircuits", 2, {"host": "b.example.com"}),
        ("OpenCircuits", 1, {"host": "a.example.com"}),
    ]


def test_hosts_that_have_not_answered_the_last_request_are_silent() -> None:
    hosts = CircuitBreakers(Breakers())
    visited(hosts, SILENT, NOW, "once.example.com")
    for _ in range(FAILURE_THRESHOLD):
        visited(hosts, SILENT, NOW, "open.example.com")
    visited(hosts, SILENT, NOW, "back.example.com")
    visited(hosts, Outcome(status=500), NOW, "back.example.com")
    assert hosts.list_silent() == ["once.example.com", "open.example.com"]


def test_another_instance_reads_the_open_breaker_and_leaves_the_host_alone() -> None:
    store = Breakers()
    first, second = CircuitBreakers(store), CircuitBreakers(store)
    for _ in range(FAILURE_THRESHOLD):
        visited(first, SILENT, NOW)
    with pytest.raises(CircuitOpen):
        second.check(HOST, NOW)
    second.check("other.example.com", NOW)


def test_an_answer_closes_the_breaker_of_every_instance() -> None:
    store = Breakers()
    first, second = CircuitBreakers(store), CircuitBreakers(store)
    for _ in range(FAILURE_THRESHOLD):
        visited(first, SILENT, NOW)
    with pytest.raises(CircuitOpen):
        second.check(HOST, NOW)
    first.check(HOST, NOW + 1, "first")
    visited(first, Outcome(status=500), NOW + 1)
    second.check(HOST, NOW + REFRESH_MS - 1, "second")
    second.check(HOST, NOW + REFRESH_MS - 1)
    assert store.tries == {HOST: ("first", NOW + 1 + FORCED_TRY_MS)}


def test_a_breaker_that_opens_after_the_answer_stays_open() -> None:
    store = Breakers()
    store.store_open_breaker(HOST, OpenBreaker(NOW - 1, 0))
    hosts = CircuitBreakers(store)
    for _ in range(FAILURE_THRESHOLD):
        visited(hosts, SILENT, NOW)
    store.store_open_breaker(HOST, OpenBreaker(NOW - 1, 0))
    with pytest.raises(CircuitOpen) as waiting:
        hosts.check(HOST, NOW)
    assert waiting.value.unanswered == FAILURE_THRESHOLD


def test_the_board_is_looked_at_every_half_minute_and_not_for_every_message() -> None:
    store = Breakers()
    hosts = CircuitBreakers(store)
    for ms in range(0, REFRESH_MS, 1_000):
        hosts.check(HOST, NOW + ms)
    assert store.reads == 1
    hosts.check(HOST, NOW + REFRESH_MS)
    assert store.reads == 2


def test_after_a_trip_one_visitor_at_a_time_finds_out() -> None:
    hosts, later = CircuitBreakers(Breakers()), NOW + OPEN_MS
    for _ in range(FAILURE_THRESHOLD):
        visited(hosts, SILENT, NOW)
    with hosts.request_slot(HOST, later), pytest.raises(CircuitOpen), hosts.request_slot(HOST, later):
        pass
    hosts.learn(HOST, Outcome(status=200), later)
    with hosts.request_slot(HOST, later), hosts.request_slot(HOST, later):
        pass


def test_many_hosts_do_not_fill_the_memory_and_a_trip_is_not_forgotten_for_them() -> None:
    hosts = CircuitBreakers(Breakers())
    for _ in range(FAILURE_THRESHOLD):
        visited(hosts, SILENT, NOW)
    for number in range(2 * HOSTS_KEPT):
        hosts.check(f"h{number}.example.com", NOW)
    assert len(hosts) <= HOSTS_KEPT
    with pytest.raises(CircuitOpen):
        hosts.check(HOST, NOW)


def test_the_record_of_an_open_breaker_expires_an_hour_after_it() -> None:
    now = [NOW]
    table = MemoryStores(lambda: now[0])
    table.store_open_breaker(HOST, OpenBreaker(NOW + OPEN_MS))
    assert table.get_open_breaker(HOST) == OpenBreaker(NOW + OPEN_MS)
    now[0] += OPEN_MS + 3_600_000
    assert table.get_open_breaker(HOST) is None


# ---- Challenges


class Challenged(MemoryStores):
    """Counts how often it is asked what a host has answered."""

    reads = 0

    def get_challenge_state(self, key: TaskKey, host: str) -> ChallengeState:
        self.reads += 1
        return super().get_challenge_state(key, host)


def test_challenges_of_a_host_expire_after_a_day_and_its_answer_after_thirty() -> None:
    now = [NOW]
    store, limiter = Challenged(lambda: now[0]), ChallengeLimiter()
    limiter.count_challenge(store, KEY, HOST, NOW)
    now[0] = NOW + UNANSWERED_S * 1000 - 1
    assert store.get_challenge_state(KEY, HOST).sent == 1
    now[0] += 1
    assert store.get_challenge_state(KEY, HOST) == ChallengeState()
    limiter.record_answer(store, KEY, HOST, NOW)
    now[0] = NOW + ANSWERED_S * 1000 - 1
    assert store.get_challenge_state(KEY, HOST).answered
    now[0] += 1
    assert not store.get_challenge_state(KEY, HOST).answered


def test_an_instance_reads_an_answer_again_after_ten_minutes_or_thousands_of_hosts() -> None:
    store, limiter = Challenged(lambda: NOW), ChallengeLimiter()
    limiter.record_answer(store, KEY, HOST, NOW)

    def reads(host: str, now: int) -> int:
        before = store.reads
        limiter.count_challenge(store, KEY, host, now)
        return store.reads - before

    assert [reads(HOST, NOW + wait) for wait in (1, ANSWERED_MS - 1, ANSWERED_MS, ANSWERED_MS + 1)] == [0, 0, 1, 0]
    for number in range(HOSTS_KEPT - 1):
        limiter.record_answer(store, KEY, f"{number}.example.com", NOW + ANSWERED_MS)
    assert reads(HOST, NOW + ANSWERED_MS + 2) == 0
    limiter.record_answer(store, KEY, "one-more.example.com", NOW + ANSWERED_MS)
    assert (reads(HOST, NOW + ANSWERED_MS + 3), reads("one-more.example.com", NOW + ANSWERED_MS + 3)) == (1, 0)
