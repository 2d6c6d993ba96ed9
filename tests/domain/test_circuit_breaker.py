"""When a host is left alone, and when it is asked again."""

from __future__ import annotations

import pytest

from a2a_serverless.domain.circuit_breaker import (
    FAILURE_THRESHOLD,
    OPEN_LIMIT_MS,
    OPEN_MS,
    PROBE_MS,
    BreakerState,
    OpenBreaker,
    blocked_until,
    host_of,
    merge_open_breaker,
    record_outcome,
    start_attempt,
)
from a2a_serverless.domain.outcomes import OutboundError, Outcome

NOW = 1_790_000_000_000
SILENT = Outcome(error=OutboundError.TIMEOUT)


def after(*outcomes: Outcome, health: BreakerState | None = None, now: int = NOW) -> BreakerState:
    health = health or BreakerState()
    for outcome in outcomes:
        health = record_outcome(health, outcome, now)
    return health


def test_a_host_is_left_alone_after_a_few_failures_in_a_row() -> None:
    assert blocked_until(after(*[SILENT] * (FAILURE_THRESHOLD - 1)), NOW) == 0
    assert blocked_until(after(*[SILENT] * FAILURE_THRESHOLD), NOW) == NOW + OPEN_MS


@pytest.mark.parametrize("status", [200, 404, 410, 429, 500, 503])
def test_any_answer_of_a_host_resets_the_count_of_failures(status: int) -> None:
    assert after(SILENT, SILENT, Outcome(status=status), SILENT).open_breaker is None


def test_a_refusal_by_our_own_policy_opens_no_breaker() -> None:
    refused = Outcome(error=OutboundError.REFUSED)
    assert after(*[refused] * 9) == BreakerState()


@pytest.mark.parametrize("error", sorted(set(OutboundError) - {OutboundError.REFUSED}))
def test_each_error_without_an_answer_opens_the_breaker_in_the_end(error: OutboundError) -> None:
    assert after(*[Outcome(error=error)] * FAILURE_THRESHOLD).open_breaker is not None


def test_after_its_time_one_try_at_a_time_finds_out_whether_the_host_is_back() -> None:
    open_again = NOW + OPEN_MS
    health = after(*[SILENT] * FAILURE_THRESHOLD)
    assert blocked_until(health, open_again) == 0
    probed = start_attempt(health, open_again)
    assert blocked_until(probed, open_again) == open_again + PROBE_MS
    assert blocked_until(record_outcome(probed, Outcome(status=500), open_again + 1), open_again + 1) == 0


def test_each_trip_in_a_row_lasts_twice_as_long_up_to_a_limit() -> None:
    health, now, lasted = after(*[SILENT] * FAILURE_THRESHOLD), NOW, []
    for _ in range(8):
        until = blocked_until(health, now)
        lasted.append(until - now)
        now = until
        health = record_outcome(start_attempt(health, now), SILENT, now)
    assert lasted == [min(OPEN_MS * 2**n, OPEN_LIMIT_MS) for n in range(8)]


def test_a_try_from_before_the_trip_does_not_make_it_longer() -> None:
    health = after(*[SILENT] * FAILURE_THRESHOLD)
    assert after(*[SILENT] * 5, health=health) == health


def test_the_open_breaker_of_another_instance_counts_if_it_is_newer() -> None:
    open_breaker = OpenBreaker(NOW + 60_000, 2)
    assert merge_open_breaker(BreakerState(failures=1), open_breaker) == BreakerState(open_breaker=open_breaker)
    assert merge_open_breaker(BreakerState(open_breaker=open_breaker), OpenBreaker(NOW, 1)) == BreakerState(
        open_breaker=open_breaker
    )
    assert merge_open_breaker(BreakerState(failures=1), None) == BreakerState(failures=1)


def test_a_host_is_its_name_and_port() -> None:
    assert host_of("https://Hooks.Example.com:8443/a?b=c") == "hooks.example.com:8443"
