"""The times of the code that must hold relations to each other: the table in ``docs/internals.md`` is drawn from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from a2a_serverless.adapters import aws
from a2a_serverless.adapters.key_ring_secret import KEY_RING_CACHE_MS, rotation_times
from a2a_serverless.domain import access, circuit_breaker, cursors, decisions, notifications
from a2a_serverless.engine import calls, lease, run
from a2a_serverless.http import runtime
from a2a_serverless.http.api import STREAM_MS
from a2a_serverless.services import deliver, rate_limiter, streams, sweep
from a2a_serverless.settings import Settings
from a2a_serverless.store import api_keys
from a2a_serverless.store.dynamodb import FIRST_PAUSE_S, LONGEST_PAUSE_S, TRIES
from a2a_serverless_tools.operators import erasure
from a2a_webhook_receiver import jwks, replay, verifier

if TYPE_CHECKING:
    from collections.abc import Mapping

PAUSES_MS = 2 * sum(1000 * min(FIRST_PAUSE_S * 2**number, LONGEST_PAUSE_S) for number in range(TRIES))
CLOCKS_MS = 2_000  # what two clocks may differ by (docs/internals.md#clocks)
MAX_AGE_MS = Settings(values={}).jwks_max_age_seconds * 1000
KEYS = rotation_times(MAX_AGE_MS // 1000)


@dataclass(frozen=True)
class Time:
    """A time in ms, where it is set, and what must hold of it: in words, and as a check."""

    what: str
    ms: float
    place: str
    relations: Mapping[str, bool] = field(default_factory=dict)


TIMES = [
    Time(
        "clocks differ by",
        cursors.CLOCK_SKEW_MS,
        "domain/cursors.py: CLOCK_SKEW_MS",
        {"what the lease of a cursor and the waits are computed with": cursors.CLOCK_SKEW_MS == CLOCKS_MS},
    ),
    Time(
        "a run's lease",
        decisions.RUN_LEASE_MS,
        "domain/decisions.py: RUN_LEASE_MS",
        {
            "longer than its renewal twice, and the clocks": decisions.RUN_LEASE_MS
            > 2 * decisions.RUN_RENEWAL_MS + CLOCKS_MS
        },
    ),
    Time(
        "a task is erased after its end by",
        erasure.ERASE_AFTER_MS,
        "a2a_serverless_tools/operators/erasure.py: ERASE_AFTER_MS",
        {
            "a run's lease, all tries of a write that began in it, and the clocks fit into it": erasure.ERASE_AFTER_MS
            > decisions.RUN_LEASE_MS + aws.TRIES * (aws.CONNECT_S + aws.READ_S) * 1000 + PAUSES_MS + CLOCKS_MS
        },
    ),
    Time(
        "its renewal",
        decisions.RUN_RENEWAL_MS,
        "domain/decisions.py: RUN_RENEWAL_MS",
        {"longer than the time between two looks at the head": decisions.RUN_RENEWAL_MS > run.WATCH_S * 1000},
    ),
    Time(
        "a message that looks whether a run lives takes",
        run.LOOK_DELAY_S * 1000,
        "engine/run.py: LOOK_DELAY_S",
        {"longer than a run's lease, and the clocks": run.LOOK_DELAY_S * 1000 > decisions.RUN_LEASE_MS + CLOCKS_MS},
    ),
    Time(
        "a run hands over before Lambda's time ends by",
        lease.MARGIN_MS,
        "engine/lease.py: MARGIN_MS",
        {
            "more than an agent has to clean up": lease.MARGIN_MS > run.CLEAN_UP_S * 1000,
            "the run's requests end within the clean-up": calls.HAND_OVER_S + calls.CLOSE_S < run.CLEAN_UP_S,
            "the clean-up fits into what is left of a lease": run.CLEAN_UP_S * 1000 + CLOCKS_MS
            < decisions.RUN_LEASE_MS - decisions.RUN_RENEWAL_MS,
        },
    ),
    Time(
        "a new task is due after",
        decisions.GRACE_MS,
        "domain/decisions.py: GRACE_MS",
        {
            "as long as a run's lease, or taking a new task would cost an index write": decisions.GRACE_MS
            == decisions.RUN_LEASE_MS,
            "at most `SOON_MS`": decisions.GRACE_MS <= decisions.SOON_MS,
        },
    ),
    Time(
        "a POST of a webhook",
        cursors.POST_DEADLINE_MS,
        "domain/cursors.py: POST_DEADLINE_MS",
        {"shorter than a cursor's lease": cursors.POST_DEADLINE_MS < cursors.CURSOR_LEASE_MS},
    ),
    Time(
        "a cursor's lease",
        cursors.CURSOR_LEASE_MS,
        "domain/cursors.py: CURSOR_LEASE_MS",
        {
            "a POST and the clocks fit into it": cursors.CURSOR_LEASE_MS
            >= cursors.POST_DEADLINE_MS + cursors.CLOCK_SKEW_MS
        },
    ),
    Time(
        "a notifier begins no POST with less left than",
        deliver.ROUND_MS,
        "services/deliver.py: ROUND_MS",
        {"longer than a POST": deliver.ROUND_MS > cursors.POST_DEADLINE_MS},
    ),
    Time(
        "the first wait of a retry",
        cursors.DELAYS_S[1] * 1000,
        "domain/cursors.py: DELAYS_S",
        {
            "longer than the clocks": cursors.DELAYS_S[1] * 1000 > cursors.CLOCK_SKEW_MS,
            "later waits are longer": list(cursors.DELAYS_S) == sorted({*cursors.DELAYS_S}),
        },
    ),
    Time(
        "a webhook is given up after",
        cursors.GIVE_UP_MS,
        "domain/cursors.py: GIVE_UP_MS",
        {
            "all waits with the most jitter": int(sum(cursors.DELAYS_S) * 1200) == cursors.GIVE_UP_MS,
            "a receiver remembers notifications for longer": replay.REMEMBER > cursors.GIVE_UP_MS,
        },
    ),
    Time(
        "the try of a half-open circuit breaker",
        circuit_breaker.PROBE_MS,
        "domain/circuit_breaker.py: PROBE_MS",
        {"longer than a POST and the clocks": circuit_breaker.PROBE_MS > cursors.POST_DEADLINE_MS + CLOCKS_MS},
    ),
    Time(
        "the sweeper ends before Lambda's time by",
        sweep.MARGIN_MS,
        "services/sweep.py: MARGIN_MS",
        {"less than the wait before it enqueues a task again": sweep.MARGIN_MS < sweep.WAIT_MS},
    ),
    Time(
        "a webhook's token is valid for",
        notifications.TOKEN_LIFE_S * 1000,
        "domain/notifications.py: TOKEN_LIFE_S",
        {
            "longer than a POST and the clocks": notifications.TOKEN_LIFE_S * 1000
            > cursors.POST_DEADLINE_MS + CLOCKS_MS,
            "receivers accept no longer ones": notifications.TOKEN_LIFE_S * 1000 <= verifier.MAX_LIFETIME,
        },
    ),
    Time(
        "a key set may be cached for",
        MAX_AGE_MS,
        "settings.py: jwks_max_age_seconds",
        {"a receiver reads it again before": jwks.REFRESH_AFTER <= MAX_AGE_MS},
    ),
    Time(
        "a key is published before it signs",
        KEYS.publish_ms,
        "adapters/key_ring_secret.py: SKEW_S",
        {
            "every cache of the key set, and a receiver's clock": KEYS.publish_ms
            >= MAX_AGE_MS + max(CLOCKS_MS, verifier.CLOCK_SKEW)
        },
    ),
    Time(
        "a notifier caches the key ring for",
        KEY_RING_CACHE_MS,
        "adapters/key_ring_secret.py: KEY_RING_CACHE_MS",
        {"less than a key is published before it signs": KEYS.publish_ms > KEY_RING_CACHE_MS},
    ),
    Time(
        "a retired key is published for",
        KEYS.retire_ms,
        "adapters/key_ring_secret.py: rotation_times",
        {
            "the notifier's cache, the last token's life and a receiver's clock": KEYS.retire_ms
            >= KEY_RING_CACHE_MS + notifications.TOKEN_LIFE_S * 1000 + verifier.CLOCK_SKEW
        },
    ),
    Time(
        "a service token is valid for",
        access.SERVICE_TOKEN_LIFE_MS,
        "domain/access.py: SERVICE_TOKEN_LIFE_MS",
        {"longer than a revoked API key is accepted": access.SERVICE_TOKEN_LIFE_MS > api_keys.KEPT_MS},
    ),
    Time(
        "the lease of an open stream",
        rate_limiter.STREAM_LEASE_MS,
        "services/rate_limiter.py: STREAM_LEASE_MS",
        {
            "a renewal, a heartbeat and a slow write fit into it": rate_limiter.STREAM_LEASE_MS
            > rate_limiter.STREAM_RENEW_MS + streams.HEARTBEAT_MS + runtime.WRITE_TIMEOUT_S * 1000,
            "shorter than a stream": rate_limiter.STREAM_LEASE_MS < STREAM_MS,
        },
    ),
]


def table() -> str:
    """Every time, where it is set, and what must hold of it."""
    lines = ["| | | set in | must hold |", "|---|---:|---|---|"]
    lines += [f"| {one.what} | {_said(one.ms)} | `{one.place}` | {'; '.join(one.relations)} |" for one in TIMES]
    return "\n".join(lines)


def _said(ms: float) -> str:
    units = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))
    size, unit = next((unit for unit in units if ms >= 2 * unit[0] or ms == unit[0]), units[-1])
    return f"{ms / size:.3g} {unit}"
