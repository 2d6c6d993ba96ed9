"""The cursor of a webhook: its progress in the task's log, its leases, and the times of its attempts.

The cursor is separate from the configuration because it changes with every delivery. Both have the same
``incarnation``; a replacement has another incarnation, so a late writer cannot restore a deleted or replaced webhook.
Times and chance are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from a2a_serverless.domain.outcomes import Outcome

DELAYS_S: Final = (0, 5, 30, 120, 600, 1800, 3600, 7200, 14_400, 28_800, 43_200, 72_000)
JITTER: Final = 0.2
RETRY_AFTER_LIMIT_S: Final = 3600
PERMANENT_FAILURE_TRIES: Final = 5
CURSOR_LEASE_MS: Final = 20_000
POST_DEADLINE_MS: Final = 15_000
DUE_SLACK_MS: Final = 5_000
CLOCK_SKEW_MS: Final = 2_000
REDRIVE_MS: Final = 120_000
GIVE_UP_MS: Final = int(sum(DELAYS_S) * 1000 * (1 + JITTER))
_WORTH_A_RETRY: Final = frozenset({408, 409, 425, 429})


class Verification(StrEnum):
    """Whether the URL's owner has confirmed that it wants notifications."""

    UNVERIFIED = "unverified"
    VERIFIED = "verified"
    TRUSTED = "trusted"
    REFUSED = "refused"


class CursorState(StrEnum):
    """Whether notifications are still delivered, and if not, why."""

    ACTIVE = "active"
    PAUSED = "paused"
    EXHAUSTED = "exhausted"
    GONE = "gone"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Cursor:
    """The progress of a webhook: all events up to number ``position`` are delivered; 0 means none.

    The first notification is a snapshot as of event ``start``, the last event at registration, so that retries send the
    same snapshot.

    ``attempt`` counts failures in a row since ``failing_since``; ``next_at`` (ms) is the time of the next try, 0 for
    at once. ``lease_no`` counts the leases and ``holder`` names the worker, so that no worker takes another's lease
    for its own. ``due_at`` is the time of the sweeper's next check; for an exhausted cursor, the time of giving it up.
    ``unanswered`` is not 0 while the host has to wait until ``next_at``: that many requests to it got no answer.
    ``redriven_at`` (ms) is the time at which an operator asked for an attempt that is still to come.
    ``verification`` is here and not in the configuration, so that its change needs no extra write.
    """

    config_id: str
    incarnation: str
    start: int = 1
    position: int = 0
    attempt: int = 0
    next_at: int = 0
    lease_until: int = 0
    lease_no: int = 0
    holder: str = ""
    state: CursorState = CursorState.ACTIVE
    due_at: int | None = None
    failing_since: int = 0
    verification: Verification = Verification.UNVERIFIED
    unanswered: int = 0
    redriven_at: int = 0


def close_cursor(cursor: Cursor) -> Cursor:
    """The cursor of a deleted configuration; it is kept while an attempt may be under way."""
    return replace(cursor, state=CursorState.CLOSED, due_at=None)


class Verdict(Enum):
    """The meaning of an attempt's outcome for the webhook."""

    DELIVERED = "delivered"
    RETRY = "retry"
    PERMANENT = "permanent"
    GONE = "gone"


def classify_outcome(outcome: Outcome) -> Verdict:
    """2xx is delivered, 410 ends the webhook; 3xx and 4xx are permanent, but for 408, 409, 425, 429; else retry."""
    status = outcome.status
    if status is None:
        return Verdict.RETRY
    if outcome.accepted:
        return Verdict.DELIVERED
    if status == HTTPStatus.GONE:
        return Verdict.GONE
    permanent = status // 100 in {3, 4} and status not in _WORTH_A_RETRY
    return Verdict.PERMANENT if permanent else Verdict.RETRY


def record_failure(cursor: Cursor, verdict: Verdict, retry_after_s: int | None, *, now: int, chance: float) -> Cursor:
    """The cursor after a failed attempt, without a lease. ``chance`` in [0, 1) sets the jitter, which is only added."""
    attempt = cursor.attempt + 1
    free = replace(
        cursor, attempt=attempt, lease_until=0, unanswered=0, redriven_at=0, failing_since=cursor.failing_since or now
    )
    if verdict is Verdict.GONE:
        return replace(free, state=CursorState.GONE, due_at=None)
    if attempt >= len(DELAYS_S) or (verdict is Verdict.PERMANENT and attempt >= PERMANENT_FAILURE_TRIES):
        return replace(free, state=CursorState.EXHAUSTED, due_at=now)
    delay_s = max(DELAYS_S[attempt], min(retry_after_s or 0, RETRY_AFTER_LIMIT_S))
    next_at = now + int(delay_s * 1000 * (1 + JITTER * chance))
    return replace(free, next_at=next_at, due_at=next_at + DUE_SLACK_MS)


def postpone(cursor: Cursor, until: int, unanswered: int, *, now: int, chance: float) -> Cursor:
    """The cursor when its host gets no request until ``until`` (ms): no attempt is counted.

    ``unanswered`` requests to the host are the reason. After ``GIVE_UP_MS`` without a success the webhook is given up
    all the same.
    """
    free = replace(cursor, lease_until=0, unanswered=unanswered, failing_since=cursor.failing_since or now)
    if now - free.failing_since >= GIVE_UP_MS:
        return replace(free, state=CursorState.EXHAUSTED, due_at=now)
    next_at = until + int((until - now) * JITTER * chance)
    return replace(free, next_at=next_at, due_at=next_at + DUE_SLACK_MS)


def redrive(cursor: Cursor, *, now: int) -> Cursor:
    """The cursor as if it had never failed; due soon, so that the sweeper finds it if the queue message is lost."""
    refused = cursor.verification is Verification.REFUSED
    verification = Verification.UNVERIFIED if refused else cursor.verification
    again = replace(cursor, state=CursorState.ACTIVE, verification=verification, due_at=now + DUE_SLACK_MS)
    return replace(again, attempt=0, failing_since=0, next_at=0, unanswered=0, redriven_at=now)


def passes_breaker(cursor: Cursor, now: int) -> bool:
    """Whether the cursor may try a host that has to wait: it was redriven at most ``REDRIVE_MS`` ago."""
    return bool(cursor.redriven_at) and now - cursor.redriven_at < REDRIVE_MS


def record_success(cursor: Cursor, position: int, *, now: int) -> Cursor:
    """The cursor after a delivered event, with the lease extended for the next one."""
    free = replace(cursor, attempt=0, failing_since=0, next_at=0, due_at=None, unanswered=0, redriven_at=0)
    return replace(free, position=position, lease_until=now + CURSOR_LEASE_MS)


def claim_lease(cursor: Cursor, holder: str, *, now: int) -> Cursor:
    """The cursor with a new lease for ``holder``; its wait is over."""
    leased = replace(cursor, lease_until=now + CURSOR_LEASE_MS, lease_no=cursor.lease_no + 1, holder=holder)
    return replace(leased, unanswered=0, redriven_at=0)


def renew_lease(cursor: Cursor, *, now: int) -> Cursor:
    """The cursor with the same lease, extended."""
    return replace(cursor, lease_until=now + CURSOR_LEASE_MS)


def covers_attempt(cursor: Cursor, now: int) -> bool:
    """Whether the lease lasts for one more POST, plus a margin for clocks that differ."""
    return cursor.lease_until - now >= POST_DEADLINE_MS + CLOCK_SKEW_MS


def release_lease(cursor: Cursor) -> Cursor:
    """The cursor without a lease."""
    return replace(cursor, lease_until=0)


def replace_cursor(replaced: Cursor | None, first: Cursor, *, now: int) -> Cursor:
    """The ``first`` cursor of a configuration that replaces another.

    If an attempt for the old webhook is under way, the new cursor keeps its lease, so nothing is sent until the lease
    ends.
    """
    if replaced is None or replaced.lease_until <= now:
        return first
    return replace(first, lease_until=replaced.lease_until, lease_no=replaced.lease_no, holder=replaced.holder)


def same_lease(first: Cursor, second: Cursor) -> bool:
    """Whether two cursors, perhaps of different configurations, have the same lease of the same holder."""
    return (first.lease_no, first.holder, first.lease_until) == (second.lease_no, second.holder, second.lease_until)
