"""The hosts that this instance sends to: how many requests each has in flight, and which of them are left alone.

Health lives in memory. Only a trip is told to the other instances, by one item of the host's that expires; they look
at it when they first meet the host and every half minute. Safe between threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import breaker
from a2a_serverless.domain.breaker import Health, Trip
from a2a_serverless.domain.measures import UNMEASURED

if TYPE_CHECKING:
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.outbound import Outcome
    from a2a_serverless.ports import HostBoard, Metrics

IN_FLIGHT: Final = 5
ASK_MS: Final = 30_000
ANSWERED_MS: Final = 600_000
HOSTS_KEPT: Final = 4_096


class Busy(Exception):
    """The host has as many requests in flight as it may have."""


class LeftAlone(Exception):
    """The host is left alone until ``until`` (ms)."""

    def __init__(self, until: int) -> None:
        super().__init__(f"left alone until {until}")
        self.until = until


@dataclass
class _Host:
    health: Health = field(default_factory=Health)
    in_flight: int = 0
    asked_at: int | None = None


class Answered:
    """Which hosts have answered a challenge of which owners, as far as this instance knows. Safe between threads."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, str, str], int] = {}
        self._lock = Lock()

    def knows(self, key: TaskKey, host: str, now: int) -> bool:
        return self._until.get((key.tenant, key.owner, host), 0) > now

    def learn(self, key: TaskKey, host: str, now: int) -> None:
        """Remembers it for ten minutes; then the table is asked again."""
        with self._lock:
            if len(self._until) >= HOSTS_KEPT:
                self._until.clear()
            self._until[key.tenant, key.owner, host] = now + ANSWERED_MS


class NoBoard:
    """For one instance alone: nobody is told, and nobody tells."""

    def tripped(self, host: str) -> Trip | None:
        del host
        return None

    def trip(self, host: str, trip: Trip) -> None:
        pass


class Hosts:
    """What this instance knows of the hosts. ``in_flight`` is how many requests each may have at a time."""

    def __init__(
        self, board: HostBoard | None = None, in_flight: int = IN_FLIGHT, metrics: Metrics = UNMEASURED
    ) -> None:
        self._board = board or NoBoard()
        self._metrics = metrics
        self._limit = in_flight
        self._lock = Lock()
        self._hosts: dict[str, _Host] = {}

    def __len__(self) -> int:
        return len(self._hosts)

    def check(self, name: str, now: int) -> None:
        """Raises LeftAlone while the host is to be left alone."""
        self._ask(name, now)
        with self._lock:
            until = breaker.blocked_until(self._of(name).health, now)
        if until:
            raise LeftAlone(until)

    @contextmanager
    def visit(self, name: str, now: int) -> Iterator[None]:
        """One request to the host. Raises LeftAlone, or Busy when it has enough of them."""
        with self._lock:
            host = self._of(name)
            if until := breaker.blocked_until(host.health, now):
                raise LeftAlone(until)
            if host.in_flight >= self._limit:
                raise Busy
            host.health = breaker.begun(host.health, now)
            host.in_flight += 1
        try:
            yield
        finally:
            with self._lock:
                host.in_flight -= 1

    def learn(self, name: str, outcome: Outcome, now: int) -> None:
        """Takes in what became of a request. The others are told of a trip."""
        with self._lock:
            host = self._of(name)
            before, host.health = host.health.trip, breaker.ended(host.health, outcome, now)
            trip = host.health.trip
            alone = sum(1 for one in self._hosts.values() if one.health.trip)
        if (trip is None) != (before is None):
            self._metrics.measure({"HostsLeftAlone": alone}, host=name)
        if trip and trip != before:
            self._board.trip(name, trip)

    def _ask(self, name: str, now: int) -> None:
        with self._lock:
            host = self._of(name)
            if host.asked_at is not None and now - host.asked_at < ASK_MS:
                return
            host.asked_at = now
        trip = self._board.tripped(name)
        with self._lock:
            host.health = breaker.learned(host.health, trip)

    def _of(self, name: str) -> _Host:
        if name not in self._hosts and len(self._hosts) >= HOSTS_KEPT:
            self._hosts = {name: host for name, host in self._hosts.items() if host.in_flight or host.health.trip}
        return self._hosts.setdefault(name, _Host())
