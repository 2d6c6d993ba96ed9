"""Circuit breaker for a host: it opens after failures in a row, for a time that doubles. Arithmetic only.

Only a request without any answer is a failure: an error status of one receiver must not block others on a shared host.
When the time is over, the breaker is half-open: one try at a time checks whether the host answers again. A webhook that
was redriven may try before that, once in ``FORCED_TRY_MS`` for all instances and webhooks of the host together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from a2a_serverless.domain.outcomes import OutboundError, Outcome

FAILURE_THRESHOLD: Final = 3
OPEN_MS: Final = 30_000
OPEN_LIMIT_MS: Final = 600_000
PROBE_MS: Final = 20_000
FORCED_TRY_MS: Final = 30_000
FORGET_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class OpenBreaker:
    """No request goes to the host until ``until`` (ms). ``count`` is how often the breaker opened in a row.

    With ``count`` 0 the host has answered at ``until``: that closes the breakers that opened before.
    """

    until: int
    count: int = 1

    @property
    def unanswered(self) -> int:
        """The requests in a row that got no answer."""
        return FAILURE_THRESHOLD + self.count - 1

    @property
    def opened_at(self) -> int:
        """The time (ms) at which the breaker opened."""
        return self.until - _open_ms(self.count)


@dataclass(frozen=True, slots=True)
class BreakerState:
    """A host's failures in a row, its open breaker if any, and the end (ms) of a half-open try."""

    failures: int = 0
    open_breaker: OpenBreaker | None = None
    probed_until: int = 0


def host_of(url: str) -> str:
    """The host and port of a URL that passed the policy, in lower case."""
    return urlsplit(url).netloc.lower()


def blocked_until(health: BreakerState, now: int) -> int:
    """The time (ms) from which the next try is allowed; 0 means now."""
    if health.open_breaker is None:
        return 0
    until = max(health.open_breaker.until, health.probed_until)
    return until if until > now else 0


def force_try(health: BreakerState, now: int) -> BreakerState:
    """The state when an open breaker lets a try pass before its time: half-open."""
    return replace(health, open_breaker=replace(health.open_breaker, until=now)) if health.open_breaker else health


def start_attempt(health: BreakerState, now: int) -> BreakerState:
    """The state while a try is under way; a half-open breaker allows no other try."""
    return replace(health, probed_until=now + PROBE_MS) if health.open_breaker else health


def record_outcome(health: BreakerState, outcome: Outcome, now: int) -> BreakerState:
    """The state after a try. A failure while the breaker is open changes nothing."""
    silent = outcome.status is None and outcome.error is not OutboundError.REFUSED
    if not silent:
        return BreakerState() if outcome.status is not None else replace(health, probed_until=0)
    if health.open_breaker and health.open_breaker.until > now:
        return health
    failures = health.failures + 1
    if health.open_breaker is None and failures < FAILURE_THRESHOLD:
        return replace(health, failures=failures)
    count = health.open_breaker.count + 1 if health.open_breaker else 1
    return BreakerState(open_breaker=OpenBreaker(now + _open_ms(count), count))


def _open_ms(count: int) -> int:
    return min(OPEN_MS << (count - 1), OPEN_LIMIT_MS)


def merge_open_breaker(health: BreakerState, shared: OpenBreaker | None) -> BreakerState:
    """The state, merged with the stored state of another instance."""
    breaker = health.open_breaker
    if shared is None:
        return health
    if not shared.count:
        return BreakerState() if breaker and shared.until >= breaker.opened_at else health
    return BreakerState(open_breaker=shared) if shared.until > (breaker.until if breaker else 0) else health
