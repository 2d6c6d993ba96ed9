"""Webhooks of a task: the configuration, its cursor in the log, the attempts, and the rules of delivery.

The cursor is separate from the configuration because it changes with every delivery. Both have the same
``incarnation``; a replacement has another incarnation, so a late writer cannot restore a deleted or replaced webhook.

The rules (docs/webhooks.md): a configuration's first notification is a snapshot of the task as of its registration;
then every status change and artifact chunk follows in log order. 0.3 receivers get the whole task at each status change
and finished artifact. A configuration that wants less than "all" events gets no notification of an artifact. An
undelivered ``working`` without a message may be skipped when there is a later status. A cursor that is ``BACKLOG``
events or more behind gets a snapshot instead of them. The snapshot ends at the first status among them that ends the
task or needs its client. That status is always sent as its own notification. Times and chance are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from hashlib import sha256
from http import HTTPStatus
from itertools import takewhile
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from a2a_serverless.domain.events import ArtifactEvent, Event, StatusEvent
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.protocol.operations import ProtocolVersion  # noqa: TC001 - tests build records by their annotations
from a2a_serverless.protocol.v1 import TaskState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.outbound import Outcome

Chunks: TypeAlias = Literal["all", "last", "none"]
"""The chunks of an artifact that are notified: each, only the last one, or none."""
WebhookEvents: TypeAlias = Literal["all", "results", "states"]
"""The events of a task of which a webhook is notified (docs/webhooks.md). "states": each state, without artifacts.
"results": each state, and at the task's end the whole task. "all": each state and each chunk of an artifact.
"""


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
class PushConfig:
    """A stored webhook. ``token`` and ``credentials`` are sealed text, bound to the task and this configuration.

    ``events`` are the events of which it is notified.
    """

    config_id: str
    url: str
    wire: ProtocolVersion
    incarnation: str
    created_at: int
    scheme: str | None = None
    token: str | None = field(default=None, repr=False)
    credentials: str | None = field(default=None, repr=False)
    events: WebhookEvents = "all"


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


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to deliver event ``n``, the ``k``-th in a row, begun at ``at`` (ms). ``address`` is an IP address."""

    config_id: str
    n: int
    k: int
    at: int
    ms: int
    status: int | None = None
    address: str | None = None
    error: str | None = None
    kid: str | None = None
    next_at: int | None = None


@dataclass(frozen=True, slots=True)
class WebhookStatus:
    """A webhook with its cursor, the number of its task's last event, and its latest attempts, oldest first."""

    key: TaskKey
    config: PushConfig
    cursor: Cursor
    last: int
    attempts: tuple[Attempt, ...]


DELAYS_S: Final = (0, 5, 30, 120, 600, 1800, 3600, 7200, 14_400, 28_800, 43_200, 72_000)
JITTER: Final = 0.2
RETRY_AFTER_LIMIT_S: Final = 3600
PERMANENT_FAILURE_TRIES: Final = 5
BACKLOG: Final = 100
SNAPSHOT_LIMIT: Final = 262_144  # bytes: a larger task is sent event by event in any case
CURSOR_LEASE_MS: Final = 20_000
POST_DEADLINE_MS: Final = 15_000
DUE_SLACK_MS: Final = 5_000
CLOCK_SKEW_MS: Final = 2_000
REDRIVE_MS: Final = 120_000
GIVE_UP_MS: Final = int(sum(DELAYS_S) * 1000 * (1 + JITTER))

_WORTH_A_RETRY: Final = frozenset({408, 409, 425, 429})


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


@dataclass(frozen=True, slots=True)
class NextNotification:
    """The next notification: event ``n``, or the snapshot at ``n`` without ``event``. ``skipped`` are not sent."""

    n: int
    event: Event | None
    skipped: int = 0


def snapshot_for_backlog(cursor: Cursor, events: Sequence[Event], chunks: Chunks = "all") -> NextNotification | None:
    """A snapshot instead of the pending events; None below ``BACKLOG`` events, or for the first notification.

    Chunks count unless ``chunks`` is "none".
    """
    if cursor.position == 0:
        return None
    pending = [event for event in events if chunks != "none" or isinstance(event, StatusEvent)]
    passed = list(takewhile(lambda event: not requires_notification(event), pending))
    return NextNotification(passed[-1].n, None) if len(passed) >= BACKLOG else None


def requires_notification(event: Event) -> bool:
    """Whether the event needs its own notification: a status that ends the task or needs its client."""
    return isinstance(event, StatusEvent) and event.state in INTERRUPTED | TERMINAL


def find_next(cursor: Cursor, events: Sequence[Event], chunks: Chunks = "all") -> NextNotification | None:
    """The next notification, from the events after the cursor. None without events. Other ``chunks`` are skipped.

    For a cursor at 0, a ``NextNotification`` without an event is the first snapshot. If all events may be skipped,
    it has the last event's number, all of them as ``skipped`` and no event: the cursor just moves.
    """
    if not events:
        return None
    if cursor.position == 0:
        return NextNotification(cursor.start, None)
    last_status = max((event.n for event in events if isinstance(event, StatusEvent)), default=0)
    for skipped, event in enumerate(events):
        if not _may_skip(event, last_status, chunks):
            return NextNotification(event.n, event, skipped)
    return NextNotification(events[-1].n, None, len(events))


def _may_skip(event: Event, last_status: int, chunks: Chunks) -> bool:
    if isinstance(event, ArtifactEvent):
        return chunks == "none" or (chunks == "last" and not event.last_chunk)
    plain = event.state is TaskState.WORKING and event.message is None
    return plain and event.n < last_status


def notification_id(key: TaskKey, config: PushConfig, n: int) -> str:
    """The id of event ``n`` for this incarnation of the configuration; the same for every attempt."""
    text = "\n".join((key.tenant, key.owner, key.task, config.config_id, config.incarnation, str(n)))
    return sha256(text.encode()).hexdigest()[:32]


def notification_claims(  # noqa: PLR0913 - the claims of a token
    key: TaskKey, config: PushConfig, n: int, body: bytes, *, issuer: str, now: int, jti: str
) -> dict[str, str | int]:
    """The claims of a notification's token (RFC 7519; our own are in docs/webhooks.md). Times are in seconds."""
    return challenge_claims(config, body, issuer=issuer, now=now, jti=jti) | {
        "sub": key.task,
        "taskId": key.task,
        "configId": config.config_id,
        "notificationId": notification_id(key, config, n),
        "eventNumber": n,
    }


TOKEN_LIFE_S: Final = 300


def challenge_claims(config: PushConfig, body: bytes, *, issuer: str, now: int, jti: str) -> dict[str, str | int]:
    """The claims of an ownership challenge's token; every other token has them too."""
    issued = now // 1000
    return {
        "iss": issuer,
        "aud": config.url,
        "iat": issued,
        "exp": issued + TOKEN_LIFE_S,
        "jti": jti,
        "request_body_sha256": sha256(body).hexdigest(),
    }
