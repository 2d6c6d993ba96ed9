"""Circuit breakers and limits for the hosts that this instance sends to. Thread-safe.

A breaker's state lives in memory. Instances share its opening and closing by one item per host, which expires. They
read the item at their first request to the host, then every ``REFRESH_MS``, and for a redriven webhook.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

from a2a_serverless.domain import challenges, circuit_breaker
from a2a_serverless.domain.circuit_breaker import BreakerState, OpenBreaker
from a2a_serverless.domain.errors import TooManyRequests
from a2a_serverless.domain.metrics import NULL_METRICS
from a2a_serverless.services.task_changes import check_written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_serverless.domain.challenges import ChallengeState
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.outcomes import Outcome
    from a2a_serverless.ports.system import Metrics
    from a2a_serverless.store.push_store import PushStore
    from a2a_serverless.store.stores import BreakerStore

    Step: TypeAlias = Callable[[ChallengeState], ChallengeState | None]

IN_FLIGHT: Final = 5
REFRESH_MS: Final = 30_000
ANSWERED_MS: Final = 600_000
HOSTS_KEPT: Final = 4_096


class HostBusy(Exception):
    """The host has reached its limit of requests in flight."""


class CircuitOpen(Exception):
    """The host gets no request until ``until`` (ms), because ``unanswered`` requests in a row got no answer."""

    def __init__(self, until: int, unanswered: int) -> None:
        super().__init__(f"circuit open until {until}")
        self.until, self.unanswered = until, unanswered


@dataclass
class _Host:
    health: BreakerState = field(default_factory=BreakerState)
    in_flight: int = 0
    asked_at: int | None = None


class ChallengeLimiter:
    """Limits the webhooks and challenges of each owner at hosts that have never answered (``domain/challenges.py``).

    Remembers a host's answer for ``ANSWERED_MS`` at most; then it reads the table again. Thread-safe.
    """

    def __init__(self) -> None:
        self._until: dict[tuple[str, str, str], int] = {}
        self._lock = Lock()

    def count_webhook(self, store: PushStore, key: TaskKey, host: str, now: int) -> None:
        """Counts one more webhook at a host without an answer; raises TooManyRequests at the limit, Conflict."""
        if self._advance(store, key, host, now, challenges.add_webhook):
            text = (
                f"{challenges.WEBHOOKS} webhooks at {host} have not answered their challenge yet. "
                "More can be registered there once one of them has."
            )
            raise TooManyRequests(text, challenges.RECHECK_MS // 1000)

    def count_challenge(self, store: PushStore, key: TaskKey, host: str, now: int) -> None:
        """Counts one more challenge. Raises CircuitOpen if it is too early, Conflict."""
        early = self._advance(store, key, host, now, lambda before: challenges.add_challenge(before, now))
        if early:
            raise CircuitOpen(challenges.next_check_at(early, now), early.sent)

    def record_answer(self, store: PushStore, key: TaskKey, host: str, now: int) -> None:
        """Stores that the host has answered, which ends the limits; raises Conflict."""
        self._advance(store, key, host, now, lambda _: challenges.ANSWERED)

    def _advance(self, store: PushStore, key: TaskKey, host: str, now: int, step: Step) -> ChallengeState | None:
        """Stores the next state of a host that has not answered; returns the present one if ``step`` allows none."""
        cache_key = (key.tenant, key.owner, host)
        if self._until.get(cache_key, 0) > now:
            return None
        before = store.get_challenge_state(key, host)
        after = before if before.answered else step(before)
        if after is None:
            return before
        if not before.answered:
            expires = now // 1000 + (challenges.ANSWERED_S if after.answered else challenges.UNANSWERED_S)
            check_written(store.store_challenge_state(key, host, before, after, expires))
        if after.answered:
            with self._lock:
                if len(self._until) >= HOSTS_KEPT:
                    self._until.clear()
                self._until[cache_key] = now + ANSWERED_MS
        return None


class CircuitBreakers:
    """The breakers of all hosts, in this instance. ``in_flight`` is the limit of concurrent requests to one host."""

    def __init__(self, store: BreakerStore, in_flight: int = IN_FLIGHT, metrics: Metrics = NULL_METRICS) -> None:
        self._store = store
        self._metrics = metrics
        self._limit = in_flight
        self._lock = Lock()
        self._hosts: dict[str, _Host] = {}

    def __len__(self) -> int:
        return len(self._hosts)

    def check(self, name: str, now: int, try_id: str = "") -> None:
        """Raises CircuitOpen while the host's breaker is open.

        A redriven webhook has a ``try_id``. It passes the breaker if it gets the one try that all redriven webhooks
        share.
        """
        self._refresh(name, now, 0 if try_id else REFRESH_MS)
        with self._lock:
            host = self._state_of(name)
            if not circuit_breaker.blocked_until(host.health, now):
                return
            wait = _open_circuit(host.health, now)
            is_tried = host.health.probed_until > now
        if not try_id:
            raise wait
        if is_tried or not self.claim_try(name, try_id, now):
            raise CircuitOpen(min(wait.until, now + circuit_breaker.FORCED_TRY_MS), wait.unanswered)
        with self._lock:
            host.health = circuit_breaker.force_try(host.health, now)

    def claim_try(self, name: str, try_id: str, now: int) -> bool:
        """Claims the one try that the redriven webhooks of a host have in ``FORCED_TRY_MS``, in all instances."""
        return self._store.claim_try(name, try_id, now + circuit_breaker.FORCED_TRY_MS)

    def list_silent(self) -> list[str]:
        """The hosts that have not answered the last request."""
        with self._lock:
            return [name for name, host in self._hosts.items() if host.health.failures or host.health.open_breaker]

    @contextmanager
    def request_slot(self, name: str, now: int) -> Iterator[None]:
        """Counts one request to the host while it lasts. Raises CircuitOpen, or HostBusy at the limit."""
        with self._lock:
            host = self._state_of(name)
            if circuit_breaker.blocked_until(host.health, now):
                raise _open_circuit(host.health, now)
            if host.in_flight >= self._limit:
                raise HostBusy
            host.health = circuit_breaker.start_attempt(host.health, now)
            host.in_flight += 1
        try:
            yield
        finally:
            with self._lock:
                host.in_flight -= 1

    def learn(self, name: str, outcome: Outcome, now: int) -> None:
        """Records a request's outcome. Stores a breaker that just opened or closed, for the other instances."""
        with self._lock:
            host = self._state_of(name)
            before, host.health = host.health.open_breaker, circuit_breaker.record_outcome(host.health, outcome, now)
            open_breaker = host.health.open_breaker
            alone = sum(1 for state in self._hosts.values() if state.health.open_breaker)
        if (open_breaker is None) != (before is None):
            self._metrics.record({"OpenCircuits": alone}, host=name)
        if open_breaker != before:
            self._store.store_open_breaker(name, open_breaker or OpenBreaker(now, 0))

    def _refresh(self, name: str, now: int, every_ms: int) -> None:
        with self._lock:
            host = self._state_of(name)
            if host.asked_at is not None and now - host.asked_at < every_ms:
                return
            host.asked_at = now
        open_breaker = self._store.get_open_breaker(name)
        with self._lock:
            host.health = circuit_breaker.merge_open_breaker(host.health, open_breaker)

    def _state_of(self, name: str) -> _Host:
        if name not in self._hosts and len(self._hosts) >= HOSTS_KEPT:
            self._hosts = {
                name: host for name, host in self._hosts.items() if host.in_flight or host.health.open_breaker
            }
        return self._hosts.setdefault(name, _Host())


def _open_circuit(health: BreakerState, now: int) -> CircuitOpen:
    unanswered = health.open_breaker.unanswered if health.open_breaker else 0
    return CircuitOpen(circuit_breaker.blocked_until(health, now), unanswered)
