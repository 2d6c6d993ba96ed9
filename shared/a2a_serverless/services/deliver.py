"""Delivers the events of a task to one webhook, from its cursor on: sign, POST, move the cursor (docs/webhooks.md).

The lease on the cursor allows one delivery at a time for each configuration. A failure is stored as the time of the
next attempt. If a notifier dies, its lease expires and its cursor has not moved, so the event is sent again.
"""

from __future__ import annotations

import json
import logging
from enum import Enum
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import cursors
from a2a_serverless.domain.cursors import (
    CLOCK_SKEW_MS,
    DUE_SLACK_MS,
    POST_DEADLINE_MS,
    Cursor,
    CursorState,
    Verdict,
    Verification,
)
from a2a_serverless.domain.errors import safe_error_fields
from a2a_serverless.domain.outcomes import OutboundError, Outcome
from a2a_serverless.domain.queue_messages import LONGEST_DELAY_S, DeliveryMessage
from a2a_serverless.protocol.notification_bodies import NotificationBody
from a2a_serverless.protocol.retry_after import seconds_to_wait
from a2a_serverless.services.circuit_breakers import CircuitOpen, HostBusy
from a2a_serverless.services.cursor_lease import CursorLease, CursorLost, TooLittleTime
from a2a_serverless.services.delivery_attempts import CHALLENGE, AttemptResult, Attempts
from a2a_serverless.services.delivery_context import DeliveryContext, count, count_exhausted
from a2a_serverless.services.memory_budget import MemoryBusy, MemoryShare
from a2a_serverless.services.notifications import Notifications, Unreadable, reading
from a2a_serverless.services.task_changes import check_written, retry_on_conflict

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.head import CurrentHead
    from a2a_serverless.domain.model import Json, TaskKey
    from a2a_serverless.domain.notifications import NextNotification
    from a2a_serverless.domain.push_configs import PushConfig

logger = logging.getLogger(__name__)

ROUND_MS: Final = POST_DEADLINE_MS + DUE_SLACK_MS
BUSY_S: Final = 2
MESSAGES_AT_ONCE: Final = 10
"""The notifier's ``BatchSize``."""


class DeliveryOutcome(Enum):
    """How a delivery session ended."""

    CAUGHT_UP = "caught up"
    MORE_CAME = "more came"
    FAILED = "failed"
    NOT_YET = "not yet"
    CIRCUIT_OPEN = "circuit open"
    NOTHING = "nothing"
    HANDED_OVER = "handed over"


def deliver(context: DeliveryContext, message: DeliveryMessage, remaining_ms: Callable[[], int]) -> DeliveryOutcome:
    """Delivers the pending events of one configuration in order, until none is left, one fails, or time runs out."""
    ending = DeliveryOutcome.MORE_CAME
    while ending is DeliveryOutcome.MORE_CAME:
        with context.memory.share(context.clock) as memory:
            ending = _Claim(context, message, remaining_ms, memory).deliver()
    return ending


class _Claim:
    """The claim of a delivery message to the lease of its configuration's cursor."""

    def __init__(
        self, context: DeliveryContext, message: DeliveryMessage, remaining_ms: Callable[[], int], memory: MemoryShare
    ) -> None:
        self.context, self.memory, self.remaining_ms = context, memory, remaining_ms
        self._message = message

    def deliver(self) -> DeliveryOutcome:
        """Takes the lease and delivers, if an event is pending and its time has come."""
        session: _Delivery | None = None
        try:
            first = retry_on_conflict(self._begin, lambda: DeliveryOutcome.NOT_YET)
            if isinstance(first, DeliveryOutcome):
                return first
            session = first
            return session.run()
        except CursorLost:
            return DeliveryOutcome.NOTHING
        except Unreadable as unreadable:
            ids = {"task": self._message.key.task, "config": self._message.config_id}
            logger.error("webhook not sent: unreadable", extra=safe_error_fields(unreadable) | ids)
            return session.fail_unreadable() if session else self._fail_unreadable()

    def _begin(self) -> _Delivery | DeliveryOutcome:
        """The delivery, which has the lease, or the reason why there is no delivery. Raises Conflict, Unreadable.

        It takes no lease if no event is pending: a second message for the same event changes nothing.
        """
        context, key = self.context, self._message.key
        cursor, now = context.store.get_cursor(key, self._message.config_id), context.clock.now()
        if cursor is None or cursor.state is not CursorState.ACTIVE:
            return DeliveryOutcome.NOTHING
        # Each new event of the task has a message. It must not shorten the wait after a failed attempt.
        # tests/services/test_deliver.py: test_a_message_before_the_next_try_does_not_jump_the_wait
        if max(cursor.lease_until, cursor.next_at) > now:
            return self._retry_after_lease(cursor, now)
        with reading():
            current = context.log.read_head(key)
            is_pending = current is not None and current.last > cursor.position
            config = context.store.get_config(key, cursor.config_id) if is_pending else None
        if current and not is_pending:
            return self._settle(cursor)
        if current is None or config is None:
            return DeliveryOutcome.NOTHING
        session = _Delivery(self, current, config, cursor)
        return session.begin(now) or session

    def _settle(self, cursor: Cursor) -> DeliveryOutcome:
        """Ends the due time of a cursor without a pending event (a failed read or a redrive set it)."""
        if cursor.due_at is None:
            return DeliveryOutcome.CAUGHT_UP
        context = self.context
        after = cursors.release_lease(cursors.record_success(cursor, cursor.position, now=context.clock.now()))
        check_written(context.store.move_cursor(self._message.key, cursor, after))
        return DeliveryOutcome.MORE_CAME  # an event may have come whose message met the due time: reads again

    def _retry_after_lease(self, cursor: Cursor, now: int) -> DeliveryOutcome:
        """Enqueues the message again for the end of the lease.

        If only the next attempt is not due yet, drops the message: that attempt has a message of its own. A message
        that comes less than ``CLOCK_SKEW_MS`` early may be the attempt's own, and is enqueued again.
        """
        wait_until = max(cursor.lease_until, cursor.next_at)
        # test_a_message_that_is_early_by_what_clocks_may_differ_is_sent_again_and_a_stray_one_is_not
        if cursor.lease_until > now or wait_until - now <= CLOCK_SKEW_MS:
            _enqueue_at(self.context, self._message, wait_until)
        return DeliveryOutcome.NOT_YET

    def _fail_unreadable(self) -> DeliveryOutcome:
        """Counts a head or configuration that cannot be read as a failed attempt; no other notifier may have it."""
        context, message = self.context, self._message
        cursor, now = context.store.get_cursor(message.key, message.config_id), context.clock.now()
        if cursor is None or cursor.state is not CursorState.ACTIVE or cursor.lease_until > now:
            return DeliveryOutcome.NOTHING
        after = cursors.record_failure(cursor, Verdict.RETRY, None, now=now, chance=context.chance())
        if not context.store.move_cursor(message.key, cursor, after):
            return DeliveryOutcome.NOTHING
        count_exhausted(context, message.key, after)
        _enqueue_next(context, message.key, after)
        return DeliveryOutcome.FAILED


class _Delivery:
    """The delivery to the webhook ``config`` during one lease of its cursor. ``current`` is the head before the lease.

    A method that returns an outcome ends the delivery; a method that returns None lets it go on.
    """

    def __init__(self, claim: _Claim, current: CurrentHead, config: PushConfig, cursor: Cursor) -> None:
        self._context, self._config, self._remaining_ms = claim.context, config, claim.remaining_ms
        self._key, context = current.head.key, claim.context
        self._lease = CursorLease(context, self._key, cursor, claim.remaining_ms)
        self._attempts = Attempts(context, current.head, config, self._lease)
        self._notifications = Notifications(context, current, config, claim.memory)
        self._try_id = context.ids.new() if cursors.passes_breaker(cursor, context.clock.now()) else ""
        self._was_challenged = False

    def begin(self, now: int) -> DeliveryOutcome | None:
        """Takes the lease, unless the host may not be tried. Raises Conflict."""
        cursor = self._lease.cursor
        try:
            self._context.breakers.check(self._attempts.host, now, self._try_id)
        except CircuitOpen as wait:
            return self._postpone(wait)
        self._lease.take(now)
        if cursor.lease_until:
            self._context.metrics.count("LeaseLost", of="notifier", task=self._key.task, config=cursor.config_id)
        return None

    def run(self) -> DeliveryOutcome:
        """Delivers until nothing is left, an attempt fails, or none is possible now. Raises CursorLost, Unreadable."""
        ending: DeliveryOutcome | None = None
        try:
            while ending is None:
                ending = self._deliver_next()
        except CircuitOpen as wait:
            return self._postpone(wait)
        except (HostBusy, MemoryBusy):
            return self._hand_over(DeliveryOutcome.NOT_YET, BUSY_S)
        except TooLittleTime:
            return self._hand_over(DeliveryOutcome.HANDED_OVER)
        return ending

    def fail_unreadable(self) -> DeliveryOutcome:
        """Records unreadable content as a failed attempt: it is retried on schedule and given up in the end."""
        lease, now = self._lease, self._context.clock.now()
        cursor = self._context.store.get_cursor(self._key, lease.cursor.config_id)
        if cursor is None or not lease.is_of(cursor):
            return DeliveryOutcome.NOTHING
        lease.cursor, lease.verification = cursor, cursor.verification
        n = cursor.position + 1 if cursor.position else cursor.start
        return self._fail(n, AttemptResult(Outcome(error=OutboundError.UNREADABLE), now, None), Verdict.RETRY)

    def _deliver_next(self) -> DeliveryOutcome | None:
        upcoming = self._notifications.next(self._lease.cursor)
        if upcoming is None:
            return self._release(self._lease.cursor)
        if self._remaining_ms() < ROUND_MS:
            raise TooLittleTime
        if self._needs_challenge():
            return self._challenge()
        return self._notify(self._notifications.summarize(self._lease.cursor, upcoming))

    def _notify(self, upcoming: NextNotification) -> DeliveryOutcome | None:
        """Sends one notification and moves the cursor by the result; after the last notification releases the lease."""
        context, cursor = self._context, self._lease.cursor
        is_last = self._notifications.is_last(upcoming)
        if upcoming.event is None and upcoming.skipped:
            self._lease.move(cursors.record_success(cursor, upcoming.n, now=context.clock.now()))
            return None
        body = self._notifications.body(upcoming)
        if upcoming.event and not cursor.failing_since:
            waited = context.clock.now() - upcoming.event.at
            context.metrics.record({"QueueAge": waited}, queue="delivery", task=self._key.task, config=cursor.config_id)
        result = self._send(upcoming.n, body)
        if not result.outcome.accepted:
            return self._fail(upcoming.n, result, cursors.classify_outcome(result.outcome))
        self._attempts.record(upcoming.n, result, None)
        if self._lease.verification is Verification.UNVERIFIED:
            count(context, self._key, "DeliveryUnverified", cursor.config_id)
        after = cursors.record_success(self._lease.cursor, upcoming.n, now=context.clock.now())
        if is_last:
            return self._release(after)
        self._lease.move(after)
        return None

    def _send(self, n: int, body: NotificationBody) -> AttemptResult:
        """POSTs. A reset on a reused connection is not counted as a failure and is retried once, immediately."""
        result = self._attempts.post(n, body)
        # Without enough time the function would end during the POST, and the lease would delay the next attempt.
        # tests/services/test_deliver.py: test_no_event_is_sent_again_when_the_time_is_too_short
        if result.was_reset and self._remaining_ms() >= ROUND_MS:
            self._attempts.record(n, result, self._context.clock.now())
            result = self._attempts.post(n, body)
        return result

    def _fail(self, n: int, result: AttemptResult, verdict: Verdict) -> DeliveryOutcome:
        """Stores a failure and enqueues the next attempt. If that message is lost, the sweeper enqueues it again."""
        context, cursor, now = self._context, self._lease.cursor, self._context.clock.now()
        retry_after, chance = seconds_to_wait(result.outcome.retry_after, now), context.chance()
        after = cursors.record_failure(cursor, verdict, retry_after, now=now, chance=chance)
        self._attempts.record(n, result, after.next_at if after.state is CursorState.ACTIVE else None)
        if n == CHALLENGE and after.state is not CursorState.ACTIVE:
            self._lease.verification = Verification.REFUSED
        if not self._lease.try_to_move(after):
            return DeliveryOutcome.NOTHING
        _enqueue_next(context, self._key, after)
        return DeliveryOutcome.FAILED

    def _release(self, after: Cursor) -> DeliveryOutcome:
        """Releases the lease, then reads the head again: a message for a newer event may have met our lease."""
        self._lease.move(cursors.release_lease(after))
        # In this order: the message of an event that comes before the release is dropped, because it meets the lease.
        # tests/services/test_deliver.py: test_an_event_that_is_appended_as_a_notifier_lets_go_is_delivered
        current = self._context.log.read_head(self._key)
        return DeliveryOutcome.MORE_CAME if current and current.last > after.position else DeliveryOutcome.CAUGHT_UP

    def _hand_over(self, ending: DeliveryOutcome, delay_s: int = 0) -> DeliveryOutcome:
        """Releases the lease and enqueues a message for the next delivery."""
        cursor = self._lease.cursor
        if self._lease.try_to_move(cursors.release_lease(cursor)):
            self._context.queues.enqueue(DeliveryMessage(self._key, cursor.config_id), delay_s)
        return ending

    def _postpone(self, wait: CircuitOpen) -> DeliveryOutcome:
        """Postpones the next attempt until the host may be tried. The cursor is unleased, or leased by us."""
        now, chance = self._context.clock.now(), self._context.chance()
        after = cursors.postpone(self._lease.cursor, wait.until, wait.unanswered, now=now, chance=chance)
        if self._lease.try_to_move(after):
            _enqueue_next(self._context, self._key, after)
        return DeliveryOutcome.CIRCUIT_OPEN

    def _needs_challenge(self) -> bool:
        """Whether a challenge has to be sent. If ownership is not enforced, only before the first notification."""
        is_first = not (self._was_challenged or self._lease.cursor.position)
        return self._lease.verification is Verification.UNVERIFIED and (self._context.enforce_ownership or is_first)

    def _challenge(self) -> DeliveryOutcome | None:
        """Sends a challenge; the URL accepts by a 2xx that echoes it. If ownership is not enforced, delivers anyway."""
        context = self._context
        if context.enforce_ownership:
            self._count_challenge()
        challenge = context.ids.new()
        content = json.dumps({"type": "a2a.webhook.challenge", "challenge": challenge}).encode()
        result = self._send(CHALLENGE, NotificationBody("application/json", self._config.version, content))
        if result.outcome.accepted and _is_echo(result.outcome.body, challenge):
            self._attempts.record(CHALLENGE, result, None)
            host, now = self._attempts.host, context.clock.now()
            retry_on_conflict(  # if the write is lost, the next answer is stored instead
                lambda: context.challenges.record_answer(context.store, self._key, host, now), lambda: None
            )
            self._lease.verification = Verification.VERIFIED
            return None
        if not context.enforce_ownership:
            self._attempts.record(CHALLENGE, result, None)
            self._was_challenged = True
            return None
        verdict = cursors.classify_outcome(result.outcome)
        if verdict is Verdict.DELIVERED:  # a 2xx without the echo is a permanent failure, like most 4xx
            verdict = Verdict.PERMANENT
        return self._fail(CHALLENGE, result, verdict)

    def _count_challenge(self) -> None:
        """Counts a challenge. Raises CircuitOpen at the limit, unless a redrive has the host's one try."""
        context, host = self._context, self._attempts.host
        now = context.clock.now()

        def wait() -> None:
            raise CircuitOpen(now + BUSY_S * 1000, 0)

        try:
            retry_on_conflict(lambda: context.challenges.count_challenge(context.store, self._key, host, now), wait)
        except CircuitOpen:
            if not (self._try_id and context.breakers.claim_try(host, self._try_id, now)):
                raise


def _is_echo(body: bytes, challenge: str) -> bool:
    try:
        answer: Json = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(answer, dict) and answer.get("challenge") == challenge


def _enqueue_next(context: DeliveryContext, key: TaskKey, cursor: Cursor) -> None:
    if cursor.state is CursorState.ACTIVE:
        _enqueue_at(context, DeliveryMessage(key, cursor.config_id), cursor.next_at)


def _enqueue_at(context: DeliveryContext, message: DeliveryMessage, at: int) -> None:
    """Enqueues the message for ``at`` (ms) if a queue can delay it that long; else the sweeper enqueues it later."""
    delay_s = max(0, -(-(at - context.clock.now()) // 1000))
    if delay_s <= LONGEST_DELAY_S:
        context.queues.enqueue(message, delay_s)
