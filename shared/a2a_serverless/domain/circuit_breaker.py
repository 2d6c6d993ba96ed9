"""When a host is left alone: after failures in a row to get any answer from it, for a time that doubles.

An answer of any status is a sign of life: what one receiver on a shared host does wrong must not hold back the others.
Once the time is over, one try at a time finds out whether the host is back (half-open). Arithmetic only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from a2a_serverless.domain.outbound import OutboundError

if TYPE_CHECKING:
    from a2a_serverless.domain.outbound import Outcome

FAILURE_THRESHOLD: Final = 3
OPEN_MS: Final = 30_000
OPEN_LIMIT_MS: Final = 600_000
PROBE_MS: Final = 20_000
FORGET_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class OpenBreaker:
    """The host is left alone until ``until`` (ms); ``count`` trips have followed each other."""

    until: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class BreakerState:
    """What is known of a host: failures in a row, the last trip since it answered, and a try that finds out."""

    failures: int = 0
    open_breaker: OpenBreaker | None = None
    probed_until: int = 0


def host_of(url: str) -> str:
    """The host and port of a URL that passed the policy, in lower case."""
    return urlsplit(url).netloc.lower()


def blocked_until(health: BreakerState, now: int) -> int:
    """When (ms) to come again; 0 when the host may be tried now."""
    if health.open_breaker is None:
        return 0
    until = max(health.open_breaker.until, health.probed_until)
    return until if until > now else 0


def start_attempt(health: BreakerState, now: int) -> BreakerState:
    """The health while a try is under way: after a trip it is the only one."""
    return replace(health, probed_until=now + PROBE_MS) if health.open_breaker else health


def record_outcome(health: BreakerState, outcome: Outcome, now: int) -> BreakerState:
    """The health after a try. A try that began before the trip and fails after it trips no more."""
    if not _silent(outcome):
        return BreakerState() if outcome.status is not None else replace(health, probed_until=0)
    if health.open_breaker and health.open_breaker.until > now:
        return health
    failures = health.failures + 1
    if health.open_breaker is None and failures < FAILURE_THRESHOLD:
        return replace(health, failures=failures)
    count = health.open_breaker.count + 1 if health.open_breaker else 1
    return BreakerState(open_breaker=OpenBreaker(now + min(OPEN_MS << (count - 1), OPEN_LIMIT_MS), count))


def merge_open_breaker(health: BreakerState, open_breaker: OpenBreaker | None) -> BreakerState:
    """The health, given what another instance has found out."""
    known = health.open_breaker.until if health.open_breaker else 0
    return BreakerState(open_breaker=open_breaker) if open_breaker and open_breaker.until > known else health


def _silent(outcome: Outcome) -> bool:
    return outcome.status is None and outcome.error is not OutboundError.REFUSED
