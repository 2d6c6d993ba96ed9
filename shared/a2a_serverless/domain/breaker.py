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

TRIP_AFTER: Final = 3
OPEN_MS: Final = 30_000
OPEN_LIMIT_MS: Final = 600_000
PROBE_MS: Final = 20_000
FORGET_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class Trip:
    """The host is left alone until ``until`` (ms); ``count`` trips have followed each other."""

    until: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class Health:
    """What is known of a host: failures in a row, the last trip since it answered, and a try that finds out."""

    failures: int = 0
    trip: Trip | None = None
    probed_until: int = 0


def host_of(url: str) -> str:
    """The host and port of a URL that passed the policy, in lower case."""
    return urlsplit(url).netloc.lower()


def blocked_until(health: Health, now: int) -> int:
    """When (ms) to come again; 0 when the host may be tried now."""
    if health.trip is None:
        return 0
    until = max(health.trip.until, health.probed_until)
    return until if until > now else 0


def begun(health: Health, now: int) -> Health:
    """The health while a try is under way: after a trip it is the only one."""
    return replace(health, probed_until=now + PROBE_MS) if health.trip else health


def ended(health: Health, outcome: Outcome, now: int) -> Health:
    """The health after a try. A try that began before the trip and fails after it trips no more."""
    if not _silent(outcome):
        return Health() if outcome.status is not None else replace(health, probed_until=0)
    if health.trip and health.trip.until > now:
        return health
    failures = health.failures + 1
    if health.trip is None and failures < TRIP_AFTER:
        return replace(health, failures=failures)
    count = health.trip.count + 1 if health.trip else 1
    return Health(trip=Trip(now + min(OPEN_MS << (count - 1), OPEN_LIMIT_MS), count))


def learned(health: Health, trip: Trip | None) -> Health:
    """The health, given what another instance has found out."""
    known = health.trip.until if health.trip else 0
    return Health(trip=trip) if trip and trip.until > known else health


def _silent(outcome: Outcome) -> bool:
    return outcome.status is None and outcome.error is not OutboundError.REFUSED
