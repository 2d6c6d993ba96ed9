"""What one instance knows of the hosts, and what the instances tell each other."""

from __future__ import annotations

import pytest

from a2a_serverless.adapters.memory import MemoryTable
from a2a_serverless.domain.breaker import OPEN_MS, TRIP_AFTER, Trip
from a2a_serverless.domain.outbound import OutboundError, Outcome
from a2a_serverless.services.hosts import ASK_MS, HOSTS_KEPT, Busy, Hosts, LeftAlone

NOW = 1_790_000_000_000
HOST = "hooks.example.com"
SILENT = Outcome(error=OutboundError.CONNECT)


class Board:
    """A board that counts who looks at it and who writes."""

    def __init__(self) -> None:
        self.trips: dict[str, Trip] = {}
        self.asked = 0
        self.told = 0

    def tripped(self, host: str) -> Trip | None:
        self.asked += 1
        return self.trips.get(host)

    def trip(self, host: str, trip: Trip) -> None:
        self.told += 1
        self.trips[host] = trip


def visited(hosts: Hosts, outcome: Outcome, now: int, host: str = HOST) -> None:
    with hosts.visit(host, now):
        pass
    hosts.learn(host, outcome, now)


def test_a_host_has_so_many_requests_in_flight_and_no_more() -> None:
    hosts = Hosts(in_flight=2)
    with hosts.visit(HOST, NOW), hosts.visit(HOST, NOW):
        with pytest.raises(Busy), hosts.visit(HOST, NOW):
            pass
        with hosts.visit("other.example.com", NOW):
            pass
    with hosts.visit(HOST, NOW):
        pass


def test_a_visit_that_fails_gives_its_place_back() -> None:
    hosts = Hosts(in_flight=1)
    with pytest.raises(ZeroDivisionError), hosts.visit(HOST, NOW):
        raise ZeroDivisionError
    with hosts.visit(HOST, NOW):
        pass


def test_a_trip_is_told_once_and_nothing_else_is_written() -> None:
    board = Board()
    hosts = Hosts(board)
    visited(hosts, Outcome(status=200), NOW)
    for _ in range(TRIP_AFTER):
        visited(hosts, SILENT, NOW)
    hosts.learn(HOST, SILENT, NOW)
    assert (board.told, board.trips) == (1, {HOST: Trip(NOW + OPEN_MS)})
    with pytest.raises(LeftAlone) as alone, hosts.visit(HOST, NOW):
        pass
    assert alone.value.until == NOW + OPEN_MS


def test_another_instance_leaves_the_host_alone_too() -> None:
    board = Board()
    first, second = Hosts(board), Hosts(board)
    for _ in range(TRIP_AFTER):
        visited(first, SILENT, NOW)
    with pytest.raises(LeftAlone):
        second.check(HOST, NOW)
    second.check("other.example.com", NOW)


def test_the_board_is_looked_at_every_half_minute_and_not_for_every_bell() -> None:
    board = Board()
    hosts = Hosts(board)
    for ms in range(0, ASK_MS, 1_000):
        hosts.check(HOST, NOW + ms)
    assert board.asked == 1
    hosts.check(HOST, NOW + ASK_MS)
    assert board.asked == 2


def test_after_a_trip_one_visitor_at_a_time_finds_out() -> None:
    hosts, later = Hosts(), NOW + OPEN_MS
    for _ in range(TRIP_AFTER):
        visited(hosts, SILENT, NOW)
    with hosts.visit(HOST, later), pytest.raises(LeftAlone), hosts.visit(HOST, later):
        pass
    hosts.learn(HOST, Outcome(status=200), later)
    with hosts.visit(HOST, later), hosts.visit(HOST, later):
        pass


def test_many_hosts_do_not_fill_the_memory_and_a_trip_is_not_forgotten_for_them() -> None:
    hosts = Hosts()
    for _ in range(TRIP_AFTER):
        visited(hosts, SILENT, NOW)
    for number in range(2 * HOSTS_KEPT):
        hosts.check(f"h{number}.example.com", NOW)
    assert len(hosts) <= HOSTS_KEPT
    with pytest.raises(LeftAlone):
        hosts.check(HOST, NOW)


def test_the_word_of_a_trip_expires() -> None:
    now = [NOW]
    table = MemoryTable(lambda: now[0])
    table.trip(HOST, Trip(NOW + OPEN_MS))
    assert table.tripped(HOST) == Trip(NOW + OPEN_MS)
    now[0] += OPEN_MS + 3_600_000
    assert table.tripped(HOST) is None
