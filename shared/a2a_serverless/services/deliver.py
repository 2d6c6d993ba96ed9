"""Delivers the events of a task to one webhook, from its cursor on: sign, POST, move the cursor (docs/webhooks.md).

The lease on the cursor allows one delivery at a time for each configuration. A failure is stored as the time of the
next attempt. If a notifier dies, its lease expires and its cursor has not moved, so the event is sent again.
"""

from __future__ import annotations

import json
import logging
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import delivery, trace
from a2a_serverless.domain.circuit_breaker import host_of
from a2a_serverless.domain.delivery import CLOCK_SKEW_MS, DUE_SLACK_MS, POST_DEADLINE_MS, NextNotification, Verdict
from a2a_serverless.domain.error_fields import safe_error_fields
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.domain.events import Event, TaskReplay, update_of
from a2a_serverless.domain.model import Json, Principal, TaskKey
from a2a_serverless.domain.outbound import OutboundError, Outcome
from a2a_serverless.domain.push import Attempt, Cursor, CursorState, PushConfig, Verification
from a2a_serverless.domain.queue_messages import LONGEST_DELAY_S, DeliveryMessage
from a2a_serverless.ports.tracing import NULL_TRACER
from a2a_serverless.protocol.webhooks import NotificationBody, notification, tells_whole_task
from a2a_serverless.services.circuit_breakers import ChallengeLimiter, CircuitBreakers, CircuitOpen, HostBusy
from a2a_serverless.services.contents import resolve_contents
from a2a_serverless.services.memory_budget import MemoryBudget, MemoryBusy, MemoryShare
from a2a_serverless.services.task_changes import check_written, retry_on_conflict
from a2a_serverless.services.webhooks import sealing_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from a2a_serverless.domain.head import Head
    from a2a_serverless.ports.contents import ContentStore
    from a2a_serverless.ports.delivery import PushStore, Sender
    from a2a_serverless.ports.keys import Sealer, Signed, Signer
    from a2a_serverless.ports.system import Clock, Ids, Metrics, Queues
    from a2a_serverless.ports.tasks import TaskLog
    from a2a_serverless.ports.tracing import Tracer
    from a2a_serverless.protocol.v1 import StreamContent, Task

logger = logging.getLogger(__name__)

NOTIFICATION_TYP: Final = "a2a-notification+jwt"
CHALLENGE_TYP: Final = "a2a-challenge+jwt"
JWT_HEADER: Final = "X-A2A-Notification-JWT"
TOKEN_HEADER: Final = "X-A2A-Notification-Token"  # noqa: S105 - a name, not a token
CHALLENGE: Final = 0  # in place of an event's number
PAGE: Final = 200
PAGE_BYTES: Final = 4 * 1024 * 1024
STOPPED: Final = frozenset({CursorState.CLOSED, CursorState.PAUSED})
ROUND_MS: Final = POST_DEADLINE_MS + DUE_SLACK_MS
BUSY_S: Final = 2
SLOT_WAIT_MS: Final = 2_000
SLOT_POLL_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class DeliveryContext:
    """The notifier's dependencies. ``issuer`` is the deployment's base URL; ``chance`` returns numbers in [0, 1).

    It reads pages of ``page_bytes`` bytes of events.
    """

    log: TaskLog
    store: PushStore
    queues: Queues
    sender: Sender
    signer: Signer
    sealer: Sealer
    clock: Clock
    ids: Ids
    issuer: str
    chance: Callable[[], float]
    hosts: CircuitBreakers
    metrics: Metrics
    enforce_ownership: bool = True
    contents: ContentStore | None = None
    challenges: ChallengeLimiter = field(default_factory=ChallengeLimiter)
    tracer: Tracer = NULL_TRACER
    memory: MemoryBudget = field(default_factory=MemoryBudget)
    page_bytes: int = PAGE_BYTES


class DeliveryOutcome(Enum):
    """How a delivery session ended."""

    CAUGHT_UP = "caught up"
    MORE_CAME = "more came"
    FAILED = "failed"
    NOT_YET = "not yet"
    CIRCUIT_OPEN = "circuit open"
    NOTHING = "nothing"
    HANDED_OVER = "handed over"


@dataclass(frozen=True, slots=True)
class _DeliverySession:
    """The facts that stay the same during one lease of one cursor. ``last`` was the task's last event at its begin."""

    key: TaskKey
    head: Head
    last: int
    memory: MemoryShare
    config: PushConfig
    host: str
    remaining_ms: Callable[[], int]
    verification: Verification
    replayer: TaskReplayer
    warned: bool = False
    large: bool = False
    try_id: str = ""


@dataclass(frozen=True, slots=True)
class _Notification:
    """What is signed and sent. ``n`` is the event's number, or ``CHALLENGE``."""

    n: int
    body: NotificationBody


@dataclass(frozen=True, slots=True)
class _AttemptResult:
    """The result of one POST, when it began (ms), its trace, and the id of the key that signed it (None: not sent)."""

    outcome: Outcome
    at: int
    kid: str | None
    trace: str = ""


class _CursorLost(Exception):
    """The notifier no longer holds the cursor: it was deleted, replaced or paused, or the lease expired."""


class _TimeLimitReached(Exception):
    """Too little time is left for a POST. ``cursor`` has the lease, which the notifier still holds."""

    def __init__(self, cursor: Cursor) -> None:
        super().__init__("too little time for a POST")
        self.cursor = cursor


class _Unreadable(Exception):
    """The notification's content cannot be read: it is damaged, missing, or of a newer release. See the cause."""


@contextmanager
def _reading() -> Iterator[None]:
    """Raises _Unreadable for what fails inside, but not if a store or this instance is busy."""
    try:
        yield
    except (Overloaded, MemoryBusy):
        raise
    except Exception as error:
        raise _Unreadable from error


def deliver(context: DeliveryContext, message: DeliveryMessage, remaining_ms: Callable[[], int]) -> DeliveryOutcome:
    """Delivers the pending events of one configuration in order, until none is left, one fails, or time runs out."""
    ending = DeliveryOutcome.MORE_CAME
    while ending is DeliveryOutcome.MORE_CAME:
        with context.memory.share(context.clock) as memory:
            ending = _claim_and_deliver(context, message, remaining_ms, memory)
    return ending


def _claim_and_deliver(
    context: DeliveryContext, message: DeliveryMessage, remaining_ms: Callable[[], int], memory: MemoryShare
) -> DeliveryOutcome:
    session: _DeliverySession | None = None
    held = Cursor(message.config_id, "")
    try:
        claimed = retry_on_conflict(
            lambda: _claim(context, message, remaining_ms, memory), lambda: DeliveryOutcome.NOT_YET
        )
        if isinstance(claimed, DeliveryOutcome):
            return claimed
        session, held = claimed
        return _deliver_pending(context, session, held)
    except _CursorLost:
        return DeliveryOutcome.NOTHING
    except _Unreadable as unreadable:
        return _fail_unreadable(context, message, session, held, unreadable)


def _fail_unreadable(
    context: DeliveryContext,
    message: DeliveryMessage,
    session: _DeliverySession | None,
    held: Cursor,
    unreadable: _Unreadable,
) -> DeliveryOutcome:
    """Records unreadable content as a failed attempt: it is retried on schedule and given up in the end."""
    ids = {"task": message.key.task, "config": message.config_id}
    logger.error("webhook not sent: unreadable", extra=safe_error_fields(unreadable) | ids)
    cursor, now = context.store.get_cursor(message.key, message.config_id), context.clock.now()
    if session and cursor and (cursor.incarnation, cursor.lease_no) == (held.incarnation, held.lease_no):
        n = cursor.position + 1 if cursor.position else cursor.start
        result = _AttemptResult(Outcome(error=OutboundError.UNREADABLE), now, None)
        return _record_failed(
            context, replace(session, verification=cursor.verification), cursor, n, result, Verdict.RETRY
        )
    if session or cursor is None or cursor.state is not CursorState.ACTIVE or cursor.lease_until > now:
        return DeliveryOutcome.NOTHING
    after = delivery.record_failure(cursor, Verdict.RETRY, None, now=now, chance=context.chance())
    if not context.store.move_cursor(message.key, cursor, after):
        return DeliveryOutcome.NOTHING
    _count_exhausted(context, message.key, after)
    _enqueue_next(context, message.key, after)
    return DeliveryOutcome.FAILED


def _claim(
    context: DeliveryContext, message: DeliveryMessage, remaining_ms: Callable[[], int], memory: MemoryShare
) -> tuple[_DeliverySession, Cursor] | DeliveryOutcome:
    cursor, now = context.store.get_cursor(message.key, message.config_id), context.clock.now()
    if cursor is None or cursor.state is not CursorState.ACTIVE:
        return DeliveryOutcome.NOTHING
    if max(cursor.lease_until, cursor.next_at) > now:
        return _retry_after_lease(context, message, cursor, now)
    session = _open_session(context, message.key, cursor, remaining_ms, memory)
    if isinstance(session, DeliveryOutcome):
        return session
    try:
        context.hosts.check(session.host, now, session.try_id)
    except CircuitOpen as wait:
        return _retry_when_closed(context, session, cursor, wait)
    held = delivery.claim_lease(cursor, context.ids.new(), now=now)
    check_written(context.store.move_cursor(message.key, cursor, held))
    if cursor.lease_until:
        context.metrics.count("LeaseLost", of="notifier", task=message.key.task, config=message.config_id)
    return session, held


def _open_session(
    context: DeliveryContext, key: TaskKey, cursor: Cursor, remaining_ms: Callable[[], int], memory: MemoryShare
) -> _DeliverySession | DeliveryOutcome:
    """Reads what a session needs, if an event is pending: a second message for the same event takes no lease."""
    with _reading():
        snapshot = context.log.read_head(key)
        if snapshot is None:
            return DeliveryOutcome.NOTHING
        is_pending = snapshot.last > cursor.position
        config = context.store.get_config(key, cursor.config_id) if is_pending else None
    if not is_pending:
        return _settle(context, key, cursor)
    if config is None:
        return DeliveryOutcome.NOTHING
    return _DeliverySession(
        key,
        snapshot.head,
        snapshot.last,
        memory,
        config,
        host_of(config.url),
        remaining_ms,
        cursor.verification,
        TaskReplayer(context.log, snapshot.head, memory.take),
        try_id=context.ids.new() if delivery.passes_breaker(cursor, context.clock.now()) else "",
    )


def _settle(context: DeliveryContext, key: TaskKey, cursor: Cursor) -> DeliveryOutcome:
    """Ends the due time of a cursor that has no pending event (a failed read or a redrive gave it one)."""
    if cursor.due_at is None:
        return DeliveryOutcome.CAUGHT_UP
    after = delivery.release_lease(delivery.record_success(cursor, cursor.position, now=context.clock.now()))
    check_written(context.store.move_cursor(key, cursor, after))
    return DeliveryOutcome.MORE_CAME  # reads again: an event may have come, whose message met the due time


def _retry_after_lease(context: DeliveryContext, message: DeliveryMessage, cursor: Cursor, now: int) -> DeliveryOutcome:
    """Enqueues the message again for the end of the lease.

    If only the next attempt is not due yet, drops the message: that attempt has a message of its own. One that comes
    less than ``CLOCK_SKEW_MS`` early may be that message, and is enqueued again.
    """
    wait_until = max(cursor.lease_until, cursor.next_at)
    if cursor.lease_until > now or wait_until - now <= CLOCK_SKEW_MS:
        _enqueue_at(context, message, wait_until)
    return DeliveryOutcome.NOT_YET


def _retry_when_closed(
    context: DeliveryContext, session: _DeliverySession, cursor: Cursor, wait: CircuitOpen
) -> DeliveryOutcome:
    """Postpones the next attempt until the host may be tried. The cursor is unleased, or leased by us."""
    now, chance = context.clock.now(), context.chance()
    after = delivery.postpone(cursor, wait.until, wait.unanswered, now=now, chance=chance)
    if _move_cursor(context, session, cursor, after):
        _enqueue_next(context, session.key, after)
    return DeliveryOutcome.CIRCUIT_OPEN


def _deliver_pending(context: DeliveryContext, session: _DeliverySession, cursor: Cursor) -> DeliveryOutcome:
    """Delivers until nothing is left. Each page of events is read once, however many deliveries it needs."""
    events: list[Event] = []
    while True:
        events = [event for event in events if event.n > cursor.position]
        try:
            events = events or _read_page(context, session, cursor.position)
            upcoming = delivery.find_next(cursor, events, whole_tasks=tells_whole_task(session.config.wire))
            if upcoming is None:
                return _release(context, session, cursor)
            if session.remaining_ms() < ROUND_MS:
                return _hand_over(context, session, cursor, DeliveryOutcome.HANDED_OVER)
            if _needs_challenge(context, session, cursor):
                walked = _send_challenge(context, session, cursor)
                if isinstance(walked, DeliveryOutcome):
                    return walked
                session, cursor = walked
                continue
            session, upcoming = _use_snapshot(context, session, cursor, events, upcoming)
            last = upcoming.n >= max(session.last, events[-1].n)
            told = _notify(context, session, cursor, upcoming, events, last=last)
        except MemoryBusy:
            return _hand_over(context, session, cursor, DeliveryOutcome.NOT_YET, BUSY_S)
        if isinstance(told, DeliveryOutcome):
            return told
        cursor = told


def _read_page(context: DeliveryContext, session: _DeliverySession, position: int) -> list[Event]:
    """The next events, ``PAGE`` and ``page_bytes`` at most, but at least one if there is one. Raises MemoryBusy."""
    if not tells_whole_task(session.config.wire):  # what was read before is no longer held
        session.memory.release()
    before = session.memory.size

    def admit(size: int) -> bool:
        held = session.memory.size - before
        return (not held or held + size <= context.page_bytes) and session.memory.take(size)

    with _reading():
        return context.log.read(session.key, position, PAGE, admit)


def _use_snapshot(
    context: DeliveryContext, session: _DeliverySession, cursor: Cursor, events: list[Event], upcoming: NextNotification
) -> tuple[_DeliverySession, NextNotification]:
    """Replaces a long backlog by a snapshot, unless the task is large; that is determined once in a session."""
    in_place = None if session.large else delivery.snapshot_for_backlog(cursor, events)
    if in_place is None:
        return session, upcoming
    large = len(_body(context, session, in_place, events).content) > delivery.SNAPSHOT_LIMIT
    return (replace(session, large=True), upcoming) if large else (session, in_place)


def _notify(
    context: DeliveryContext,
    session: _DeliverySession,
    cursor: Cursor,
    upcoming: NextNotification,
    events: list[Event],
    *,
    last: bool,
) -> Cursor | DeliveryOutcome:
    """Sends one notification and moves the cursor by the result; for the ``last`` one that also releases the lease."""
    if upcoming.event is None and upcoming.skipped:
        return _move_or_raise(
            context, session, cursor, delivery.record_success(cursor, upcoming.n, now=context.clock.now())
        )
    notification = _Notification(upcoming.n, _body(context, session, upcoming, events))
    if upcoming.event and not cursor.failing_since:
        waited = context.clock.now() - upcoming.event.at
        context.metrics.record({"QueueAge": waited}, queue="delivery", task=session.key.task, config=cursor.config_id)
    sent = _send(context, session, cursor, notification)
    if isinstance(sent, DeliveryOutcome):
        return sent
    cursor, result = sent
    if not result.outcome.accepted:
        return _record_failed(context, session, cursor, upcoming.n, result, delivery.classify_outcome(result.outcome))
    _record(context, session, cursor, upcoming.n, result, None)
    if session.verification is Verification.UNVERIFIED:
        _count(context, session.key, "DeliveryUnverified", session.config.config_id)
    after = delivery.record_success(cursor, upcoming.n, now=context.clock.now())
    return _release(context, session, cursor, after) if last else _move_or_raise(context, session, cursor, after)


def _record_failed(
    context: DeliveryContext,
    session: _DeliverySession,
    cursor: Cursor,
    n: int,
    result: _AttemptResult,
    verdict: Verdict,
) -> DeliveryOutcome:
    """Stores a failure and enqueues the next attempt. If that message is lost, the sweeper enqueues another one."""
    now, retry_after = context.clock.now(), _seconds(result.outcome.retry_after)
    after = delivery.record_failure(cursor, verdict, retry_after, now=now, chance=context.chance())
    _record(context, session, cursor, n, result, after.next_at if after.state is CursorState.ACTIVE else None)
    if n == CHALLENGE and after.state is not CursorState.ACTIVE:
        session = replace(session, verification=Verification.REFUSED)
    if not _move_cursor(context, session, cursor, after):
        return DeliveryOutcome.NOTHING
    _enqueue_next(context, session.key, after)
    return DeliveryOutcome.FAILED


def _send(
    context: DeliveryContext, session: _DeliverySession, cursor: Cursor, notification: _Notification
) -> tuple[Cursor, _AttemptResult] | DeliveryOutcome:
    """POSTs, within the host's limits and the time left; if these do not allow it, ends the session.

    A reset on a reused connection is not counted as a failure and is retried once, immediately.
    """
    try:
        cursor, result = _post_once(context, session, cursor, notification)
        outcome = result.outcome
        gone = outcome.status is None and outcome.reused and outcome.error is OutboundError.RESET
        if gone and session.remaining_ms() >= ROUND_MS:
            _record(context, session, cursor, notification.n, result, context.clock.now())
            cursor, result = _post_once(context, session, cursor, notification)
    except CircuitOpen as wait:
        return _retry_when_closed(context, session, cursor, wait)
    except HostBusy:
        return _hand_over(context, session, cursor, DeliveryOutcome.NOT_YET, BUSY_S)
    except _TimeLimitReached as reached:
        return _hand_over(context, session, reached.cursor, DeliveryOutcome.HANDED_OVER)
    return cursor, result


def _post_once(
    context: DeliveryContext, session: _DeliverySession, cursor: Cursor, notification: _Notification
) -> tuple[Cursor, _AttemptResult]:
    jti = context.ids.new()
    signed, traced = _sign(context, session, notification, jti), trace.child_of(session.head.trace, jti)
    with _reading():
        headers = _headers(context, session, notification.body, signed)
        if traced:
            headers[trace.HEADER] = traced
    with _reserve_host(context, session.host):
        cursor, at = _extend_lease(context, session, cursor), context.clock.now()
        outcome = context.sender.post(session.config.url, headers, notification.body.content, POST_DEADLINE_MS)
    if not (outcome.status is None and outcome.reused):
        context.hosts.learn(session.host, outcome, context.clock.now())
    return cursor, _AttemptResult(outcome, at, signed.kid, traced)


@contextmanager
def _reserve_host(context: DeliveryContext, host: str) -> Iterator[None]:
    """Reserves one of the host's request slots; waits ``SLOT_WAIT_MS`` for one, then raises HostBusy."""
    until = context.clock.now() + SLOT_WAIT_MS
    while True:
        with ExitStack() as visits:
            try:
                visits.enter_context(context.hosts.request_slot(host, context.clock.now()))
            except HostBusy:
                if context.clock.now() >= until:
                    raise
            else:
                yield
                return
        context.clock.sleep(SLOT_POLL_S)


def _extend_lease(context: DeliveryContext, session: _DeliverySession, cursor: Cursor) -> Cursor:
    """Returns the cursor with a lease that outlasts a POST; raises _CursorLost or _TimeLimitReached.

    So nothing is sent after a deletion has returned. Called right before each attempt, because what came before it
    (storage, keys, a challenge) may have taken any time. So may the renewal itself: it is repeated if its answer came
    late, while the time suffices for the POST.
    """
    while not delivery.covers_attempt(cursor, now := context.clock.now()):
        cursor = _move_or_raise(context, session, cursor, delivery.renew_lease(cursor, now=now))
        if session.remaining_ms() < POST_DEADLINE_MS:
            raise _TimeLimitReached(cursor)
    return cursor


def _move_or_raise(context: DeliveryContext, session: _DeliverySession, before: Cursor, after: Cursor) -> Cursor:
    """Moves the cursor and returns it; raises _CursorLost."""
    if not _move_cursor(context, session, before, after):
        raise _CursorLost
    return replace(after, verification=session.verification)


def _move_cursor(context: DeliveryContext, session: _DeliverySession, before: Cursor, after: Cursor) -> bool:
    """Moves the cursor and stores the session's verification state with it; False if the stored cursor has changed.

    If the cursor was closed or paused meanwhile, this stores the same and releases the lease, but keeps that state. If
    it was replaced, the replacement still has our lease and waits for its end, so this releases the lease too.
    """
    key, after = session.key, replace(after, verification=session.verification)
    if context.store.move_cursor(key, before, after):
        _count_exhausted(context, key, after)
        return True
    kept = context.store.get_cursor(key, before.config_id)
    if kept and kept.state in STOPPED and (kept.incarnation, kept.lease_no) == (before.incarnation, before.lease_no):
        context.store.move_cursor(key, kept, replace(after, state=kept.state, lease_until=0, due_at=None))
    elif kept and kept.incarnation != before.incarnation and delivery.same_lease(kept, before):
        context.store.move_cursor(key, kept, delivery.release_lease(kept))
    return False


def _count_exhausted(context: DeliveryContext, key: TaskKey, after: Cursor) -> None:
    if after.state is CursorState.EXHAUSTED:
        _count(context, key, "DeliveryExhausted", after.config_id)


def _release(
    context: DeliveryContext, session: _DeliverySession, before: Cursor, after: Cursor | None = None
) -> DeliveryOutcome:
    """Releases the lease, then reads the head again: a message for a newer event may have met our lease."""
    after = delivery.release_lease(after or before)
    _move_or_raise(context, session, before, after)
    snapshot = context.log.read_head(session.key)
    return DeliveryOutcome.MORE_CAME if snapshot and snapshot.last > after.position else DeliveryOutcome.CAUGHT_UP


def _hand_over(
    context: DeliveryContext, session: _DeliverySession, cursor: Cursor, outcome: DeliveryOutcome, delay_s: int = 0
) -> DeliveryOutcome:
    """Releases the lease and enqueues a message for the next delivery."""
    if _move_cursor(context, session, cursor, delivery.release_lease(cursor)):
        context.queues.enqueue(DeliveryMessage(session.key, cursor.config_id), delay_s)
    return outcome


def _body(
    context: DeliveryContext, session: _DeliverySession, upcoming: NextNotification, events: list[Event]
) -> NotificationBody:
    """Returns the body: the event itself for 1.0; the task as of that event for snapshots and for 0.3."""
    with _reading():
        item: StreamContent
        if upcoming.event is None or tells_whole_task(session.config.wire):
            item = session.replayer.at(upcoming.n, events)
        else:
            item = update_of(upcoming.event, session.key.task, session.head.context_id)
        item = resolve_contents(context.contents, Principal(session.key.tenant, session.key.owner), item)
        return notification(session.config.wire, item)


def _sign(context: DeliveryContext, session: _DeliverySession, notification: _Notification, jti: str) -> Signed:
    """Signs a new token, for one attempt."""
    now, content = context.clock.now(), notification.body.content
    if notification.n == CHALLENGE:
        said = delivery.challenge_claims(session.config, content, issuer=context.issuer, now=now, jti=jti)
        return context.signer.sign(CHALLENGE_TYP, said)
    said = delivery.notification_claims(
        session.key, session.config, notification.n, content, issuer=context.issuer, now=now, jti=jti
    )
    return context.signer.sign(NOTIFICATION_TYP, said)


def _headers(
    context: DeliveryContext, session: _DeliverySession, body: NotificationBody, signed: Signed
) -> dict[str, str]:
    """Returns the headers. ``Authorization`` has the client's credentials, if any; the JWT then has its own header."""
    config = session.config
    sealing = sealing_context(session.key, config.config_id)
    headers = {"Content-Type": body.content_type, "A2A-Version": config.wire}
    if config.token is not None:
        headers[TOKEN_HEADER] = context.sealer.open(config.token, sealing)
    if config.credentials is None:
        return headers | {"Authorization": f"Bearer {signed.token}"}
    own = f"{config.scheme} {context.sealer.open(config.credentials, sealing)}"
    return headers | {"Authorization": own, JWT_HEADER: signed.token}


def _record(
    context: DeliveryContext,
    session: _DeliverySession,
    cursor: Cursor,
    n: int,
    result: _AttemptResult,
    next_at: int | None,
) -> None:
    outcome = result.outcome
    attempt = Attempt(
        config_id=cursor.config_id,
        n=n,
        k=cursor.attempt + 1,
        at=result.at,
        ms=outcome.elapsed_ms,
        status=outcome.status,
        address=outcome.address,
        error=outcome.error and outcome.error.value,
        kid=result.kid,
        next_at=next_at,
    )
    context.store.record_attempt(session.key, attempt, session.head.expires)
    _log_attempt(context, session, attempt, accepted=outcome.accepted)
    if context.tracer.is_on and result.trace:
        from a2a_serverless.domain.spans import delivery_span

        accepted = outcome.accepted
        context.tracer.record(delivery_span(session.head, attempt, result.trace, session.host, accepted=accepted))


def _log_attempt(context: DeliveryContext, session: _DeliverySession, attempt: Attempt, *, accepted: bool) -> None:
    """Writes the log line and the metrics of a POST: ids, numbers, the kind of error. No URL: it may hold secrets."""
    ids: dict[str, str | int] = {"task": session.key.task, "config": attempt.config_id, "event": attempt.n}
    said = {"status": attempt.status, "error": attempt.error, "ms": attempt.ms, "kid": attempt.kid}
    logger.info(
        "webhook tried", extra={**ids, "attempt": attempt.k, **said, "trace": trace.trace_id(session.head.trace)}
    )
    if accepted and attempt.n:
        context.metrics.record({"DeliverySuccess": 1, "DeliveryAttempts": attempt.k}, **ids)
    else:
        context.metrics.record({"DeliverySuccess": int(accepted)}, **ids)


def _count(context: DeliveryContext, key: TaskKey, name: str, config_id: str) -> None:
    context.metrics.count(name, tenant=key.tenant, owner=key.owner, task=key.task, config=config_id)


def _needs_challenge(context: DeliveryContext, session: _DeliverySession, cursor: Cursor) -> bool:
    """Whether a challenge has to be sent. If ownership is not enforced, only before the first notification."""
    unverified = session.verification is Verification.UNVERIFIED
    return unverified and (context.enforce_ownership or not (session.warned or cursor.position))


def _send_challenge(
    context: DeliveryContext, session: _DeliverySession, cursor: Cursor
) -> tuple[_DeliverySession, Cursor] | DeliveryOutcome:
    """Sends a challenge; the URL accepts by a 2xx that echoes it. If ownership is not enforced, delivers anyway."""
    if context.enforce_ownership:
        try:
            _count_challenge(context, session)
        except CircuitOpen as wait:
            return _retry_when_closed(context, session, cursor, wait)
    challenge = context.ids.new()
    content = json.dumps({"type": "a2a.webhook.challenge", "challenge": challenge}).encode()
    notification = _Notification(CHALLENGE, NotificationBody("application/json", session.config.wire, content))
    sent = _send(context, session, cursor, notification)
    if isinstance(sent, DeliveryOutcome):
        return sent
    cursor, result = sent
    if result.outcome.accepted and _is_echo(result.outcome.body, challenge):
        _record(context, session, cursor, CHALLENGE, result, None)
        now = context.clock.now()
        retry_on_conflict(  # if the write is lost, the next answer is stored instead
            lambda: context.challenges.record_answer(context.store, session.key, session.host, now), lambda: None
        )
        return replace(session, verification=Verification.VERIFIED), cursor
    if not context.enforce_ownership:
        _record(context, session, cursor, CHALLENGE, result, None)
        return replace(session, warned=True), cursor
    verdict = delivery.classify_outcome(result.outcome)
    if verdict is Verdict.DELIVERED:  # a 2xx without the echo is a permanent failure, like most 4xx
        verdict = Verdict.PERMANENT
    return _record_failed(context, session, cursor, CHALLENGE, result, verdict)


def _count_challenge(context: DeliveryContext, session: _DeliverySession) -> None:
    """Counts a challenge. Raises CircuitOpen at the limit, unless a redrive has the host's one try."""
    now = context.clock.now()

    def wait() -> None:
        raise CircuitOpen(now + BUSY_S * 1000, 0)

    try:
        retry_on_conflict(
            lambda: context.challenges.count_challenge(context.store, session.key, session.host, now), wait
        )
    except CircuitOpen:
        if not (session.try_id and context.hosts.claim_try(session.host, session.try_id, now)):
            raise


def _is_echo(body: bytes, challenge: str) -> bool:
    try:
        answer: Json = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(answer, dict) and answer.get("challenge") == challenge


def _seconds(retry_after: str | None) -> int | None:
    """``Retry-After`` in seconds; None for its date form, which is ignored (our own schedule is bounded anyway)."""
    return int(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else None


def _enqueue_next(context: DeliveryContext, key: TaskKey, cursor: Cursor) -> None:
    if cursor.state is CursorState.ACTIVE:
        _enqueue_at(context, DeliveryMessage(key, cursor.config_id), cursor.next_at)


def _enqueue_at(context: DeliveryContext, message: DeliveryMessage, at: int) -> None:
    """Enqueues the message for ``at`` (ms) if a queue can delay it that long; the sweeper enqueues later ones."""
    delay_s = max(0, -(-(at - context.clock.now()) // 1000))
    if delay_s <= LONGEST_DELAY_S:
        context.queues.enqueue(message, delay_s)


class TaskReplayer:
    """Makes the task as of one event after another; ``head`` may be older than the log.

    The replay for one event continues from the one before, so the log is read once. ``admit`` is ``TaskLog.read``'s.
    """

    def __init__(self, log: TaskLog, head: Head, admit: Callable[[int], bool] = lambda _: True) -> None:
        self._log = log
        self._head = head
        self._admit = admit
        self._replay = TaskReplay(head.key.task, head.context_id)

    def at(self, n: int, events: Sequence[Event]) -> Task:
        """Returns the task as of event ``n``; ``events`` is a contiguous piece of the log that was read already."""
        if self._replay.n == n:
            return self._replay.task()
        if not events[0].n - 1 <= self._replay.n <= n <= events[-1].n:
            return self._task_at(n)
        return self._replay.after(event for event in events if self._replay.n < event.n <= n)

    def _task_at(self, n: int) -> Task:
        if 0 < self._replay.n < n:
            return self._replay.after(self._log.read(self._head.key, self._replay.n, n - self._replay.n, self._admit))
        task = self._log.read_task_at(self._head, n, self._admit)
        self._replay = TaskReplay.from_task(task)
        return task
