"""The attempts to deliver to one webhook: the next notification, a token for each attempt, a POST, and its record.

Notifications go in the order of the task's log. The lease is on the webhook's cursor and outlasts a POST. Only the
notifier that has it POSTs, and every result moves the cursor.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import cursors, notifications, trace
from a2a_serverless.domain.circuit_breaker import host_of
from a2a_serverless.domain.cursors import POST_DEADLINE_MS, Cursor, CursorState
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.domain.events import Event, StatusEvent, update_of
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.outbound import OutboundError, Outcome
from a2a_serverless.domain.push_configs import Attempt
from a2a_serverless.domain.replay import TaskReplay
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.ports.tracing import NULL_TRACER
from a2a_serverless.protocol.notification_bodies import NotificationBody, notification, tells_whole_task
from a2a_serverless.services.circuit_breakers import ChallengeLimiter, CircuitBreakers, HostBusy
from a2a_serverless.services.content_links import resolve_contents
from a2a_serverless.services.memory_budget import MemoryBudget, MemoryBusy, MemoryShare
from a2a_serverless.services.task_changes import check_written
from a2a_serverless.services.webhooks import sealing_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from a2a_serverless.domain.cursors import Cursor
    from a2a_serverless.domain.head import Head, HeadSnapshot
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.notifications import Chunks, NextNotification
    from a2a_serverless.domain.push_configs import PushConfig
    from a2a_serverless.ports.system import Clock, Ids, Metrics, Queues, Sealer, Sender, Signed, Signer
    from a2a_serverless.ports.tracing import Tracer
    from a2a_serverless.protocol.notification_bodies import NotificationBody
    from a2a_serverless.protocol.v1 import StreamContent, Task
    from a2a_serverless.store.push_store import PushStore
    from a2a_serverless.store.stores import ContentStore
    from a2a_serverless.store.task_log import TaskLog

PAGE: Final = 200
PAGE_BYTES: Final = 4 * 1024 * 1024


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


class Unreadable(Exception):
    """The notification's content cannot be read: it is damaged, missing, or of a newer release. See the cause."""


@contextmanager
def reading() -> Iterator[None]:
    """Raises Unreadable for an error in the block, except if a store or this instance is busy."""
    try:
        yield
    except (Overloaded, MemoryBusy):
        raise
    except Exception as error:
        raise Unreadable from error


class Notifications:
    """The notifications of the webhook ``config``; ``snapshot`` is the task's head at the beginning of the delivery.

    They share one reading of the log: each page is read once. ``memory`` is the delivery's share.
    """

    def __init__(
        self, context: DeliveryContext, snapshot: HeadSnapshot, config: PushConfig, memory: MemoryShare
    ) -> None:
        self._context, self._memory, self._wire, self._wanted = context, memory, config.wire, config.events
        self._chunks: Chunks = "last" if tells_whole_task(self._wire) else "all"
        if self._wanted != "all":
            self._chunks = "none"
        self._head, self._last = snapshot
        self._events: list[Event] = []
        self._replayer = TaskReplayer(context.log, self._head, memory.take)
        self._is_large = False

    def next(self, cursor: Cursor) -> NextNotification | None:
        """The next notification after the cursor; None if there is no later event. Raises Unreadable, MemoryBusy."""
        events = [event for event in self._events if event.n > cursor.position]
        self._events = events or self._read_page(cursor.position)
        return notifications.find_next(cursor, self._events, self._chunks)

    def summarize(self, cursor: Cursor, upcoming: NextNotification) -> NextNotification:
        """Replaces a long backlog by a snapshot, unless the task is large; that is determined once."""
        in_place = None if self._is_large else notifications.snapshot_for_backlog(cursor, self._events, self._chunks)
        if in_place is None:
            return upcoming
        self._is_large = len(self.body(in_place).content) > notifications.SNAPSHOT_LIMIT
        return upcoming if self._is_large else in_place

    def is_last(self, upcoming: NextNotification) -> bool:
        """Whether no later event is known."""
        return upcoming.n >= max(self._last, self._events[-1].n)

    def body(self, upcoming: NextNotification) -> NotificationBody:
        """The event itself for 1.0; the task as of that event for snapshots, results and 0.3. Raises as ``next``."""
        key, event = self._head.key, upcoming.event
        is_result = self._wanted == "results" and isinstance(event, StatusEvent) and event.state in TERMINAL
        with reading():
            item: StreamContent
            if event is None or is_result or tells_whole_task(self._wire):
                item = self._replayer.at(upcoming.n, self._events)
                ends = item.status.state in TERMINAL
                item = item.limited(None, artifacts=self._wanted == "all" or (self._wanted == "results" and ends))
            else:
                item = update_of(event, key.task, self._head.context_id)
            item = resolve_contents(self._context.contents, Principal(key.tenant, key.owner), item)
            return notification(self._wire, item)

    def _read_page(self, position: int) -> list[Event]:
        """The next events: at most ``PAGE`` and ``page_bytes``, but at least one if the log has more."""
        context, memory = self._context, self._memory
        if not tells_whole_task(self._wire):  # the events of the page before are not needed any more
            memory.release()
        before = memory.size

        def admit(size: int) -> bool:
            page = memory.size - before
            return (not page or page + size <= context.page_bytes) and memory.take(size)

        with reading():
            return context.log.read(self._head.key, position, PAGE, admit)


class TaskReplayer:
    """Makes the task as of one event after another; ``head`` may be older than the log.

    The replay for an event continues from the event before, so the log is read once. ``admit`` is ``TaskLog.read``'s.
    """

    def __init__(self, log: TaskLog, head: Head, admit: Callable[[int], bool] = lambda _: True) -> None:
        self._log = log
        self._head = head
        self._admit = admit
        self._replay = TaskReplay(head.key.task, head.context_id)

    def at(self, n: int, events: Sequence[Event]) -> Task:
        """Returns the task as of event ``n``; ``events`` is a contiguous piece of the log that was read before."""
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


logger = logging.getLogger(__name__)

NOTIFICATION_TYP: Final = "a2a-notification+jwt"
CHALLENGE_TYP: Final = "a2a-challenge+jwt"
JWT_HEADER: Final = "X-A2A-Notification-JWT"
TOKEN_HEADER: Final = "X-A2A-Notification-Token"  # noqa: S105 - a name, not a token
CHALLENGE: Final = 0  # in place of an event's number
STOPPED: Final = frozenset({CursorState.CLOSED, CursorState.PAUSED})
SLOT_WAIT_MS: Final = 2_000
SLOT_POLL_S: Final = 0.01


class CursorLost(Exception):
    """The notifier has lost the cursor: the cursor was deleted, replaced or paused, or the lease expired."""


class TooLittleTime(Exception):
    """Too little time is left for a POST. The notifier still has its lease."""


class CursorLease:
    """A webhook's cursor, and this notifier's lease on it.

    ``cursor`` is the last cursor that this notifier has read or written. ``verification`` is stored with the next move.
    """

    def __init__(self, context: DeliveryContext, key: TaskKey, cursor: Cursor, remaining_ms: Callable[[], int]) -> None:
        self._context, self._key, self._remaining_ms = context, key, remaining_ms
        self.cursor, self.verification = cursor, cursor.verification

    def take(self, now: int) -> None:
        """Stores a new lease. Raises Conflict if the stored cursor has changed."""
        leased_cursor = cursors.claim_lease(self.cursor, self._context.ids.new(), now=now)
        check_written(self._context.store.move_cursor(self._key, self.cursor, leased_cursor))
        self.cursor = leased_cursor

    def extend(self) -> None:
        """Makes the lease outlast a POST; raises CursorLost or TooLittleTime.

        So nothing is sent after a deletion has returned. It is called right before each attempt, because the work
        before it (storage, keys, a challenge) may have taken any time. So may the renewal itself: it is repeated if its
        answer came late, while the time suffices for the POST.
        """
        while not cursors.covers_attempt(self.cursor, now := self._context.clock.now()):
            self.move(cursors.renew_lease(self.cursor, now=now))
            if self._remaining_ms() < POST_DEADLINE_MS:
                raise TooLittleTime

    def move(self, after: Cursor) -> None:
        """Moves the cursor; raises CursorLost."""
        if not self.try_to_move(after):
            raise CursorLost

    def try_to_move(self, after: Cursor) -> bool:
        """Moves the cursor and stores the verification state with it; False if the stored cursor has changed.

        If the cursor was closed or paused meanwhile, this stores the move, releases the lease and keeps the new state.
        If the cursor was replaced, the replacement still has our lease and waits for its end, so this releases the
        lease too. If the sweeper has postponed its next look meanwhile, this moves the cursor all the same.
        """
        store, before, after = self._context.store, self.cursor, replace(after, verification=self.verification)
        if store.move_cursor(self._key, before, after):
            self.cursor = after
            count_exhausted(self._context, self._key, after)
            return True
        stored = store.get_cursor(self._key, before.config_id)
        if stored and stored != before and replace(stored, due_at=before.due_at) == before:
            self.cursor = stored
            return self.try_to_move(after)
        if stored and stored.state in STOPPED and self.is_of(stored):
            store.move_cursor(self._key, stored, replace(after, state=stored.state, lease_until=0, due_at=None))
        elif stored and stored.incarnation != before.incarnation and cursors.same_lease(stored, before):
            store.move_cursor(self._key, stored, cursors.release_lease(stored))
        return False

    def is_of(self, stored: Cursor) -> bool:
        """Whether ``stored`` is a cursor of the same webhook, and no other lease of it was taken since."""
        return (stored.incarnation, stored.lease_no) == (self.cursor.incarnation, self.cursor.lease_no)


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """The result of one POST, its beginning (ms), its trace, and the id of the key that signed it (None: not sent)."""

    outcome: Outcome
    at: int
    kid: str | None
    trace: str = ""

    @property
    def was_reset(self) -> bool:
        """Whether the connection of an earlier request was reset before an answer. The POST may have arrived."""
        outcome = self.outcome
        return outcome.status is None and outcome.reused and outcome.error is OutboundError.RESET


class Attempts:
    """The attempts to deliver to the webhook ``config`` while this notifier has its ``lease``."""

    def __init__(self, context: DeliveryContext, head: Head, config: PushConfig, lease: CursorLease) -> None:
        self._context, self._head, self._config, self._lease = context, head, config, lease
        self.host = host_of(config.url)

    def post(self, n: int, body: NotificationBody) -> AttemptResult:
        """POSTs the notification of event ``n``, or the challenge (``CHALLENGE``), with a new token.

        Raises CircuitOpen or HostBusy at the host's limits, CursorLost, TooLittleTime, and Unreadable.
        """
        context = self._context
        jti = context.ids.new()
        signed, post_trace = self._sign(n, body.content, jti), trace.child_of(self._head.trace, jti)
        with reading():
            headers = self._headers(body, signed)
            if post_trace:
                headers[trace.HEADER] = post_trace
        with self._reserve_host():
            self._lease.extend()
            at = context.clock.now()
            outcome = context.sender.post(self._config.url, headers, body.content, POST_DEADLINE_MS)
        if not (outcome.status is None and outcome.reused):
            context.hosts.learn(self.host, outcome, context.clock.now())
        return AttemptResult(outcome, at, signed.kid, post_trace)

    def record(self, n: int, result: AttemptResult, next_at: int | None) -> None:
        """Stores the attempt for the webhook's owner, and reports it: log line, metrics, span."""
        context, cursor, outcome = self._context, self._lease.cursor, result.outcome
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
        context.store.record_attempt(self._head.key, attempt, self._head.expires)
        self._log(attempt, accepted=outcome.accepted)
        if context.tracer.is_on and result.trace:
            from a2a_serverless.domain.spans import delivery_span

            span = delivery_span(self._head, attempt, result.trace, self.host, accepted=outcome.accepted)
            context.tracer.record(span)

    def _sign(self, n: int, content: bytes, jti: str) -> Signed:
        config, signer, issuer = self._config, self._context.signer, self._context.issuer
        now = self._context.clock.now()
        if n == CHALLENGE:
            claims = notifications.challenge_claims(config, content, issuer=issuer, now=now, jti=jti)
            return signer.sign(CHALLENGE_TYP, claims)
        claims = notifications.notification_claims(self._head.key, config, n, content, issuer=issuer, now=now, jti=jti)
        return signer.sign(NOTIFICATION_TYP, claims)

    def _headers(self, body: NotificationBody, signed: Signed) -> dict[str, str]:
        """The headers. ``Authorization`` has the client's credentials, if any; the JWT then has its own header."""
        config, sealer = self._config, self._context.sealer
        sealing = sealing_context(self._head.key, config.config_id)
        headers = {"Content-Type": body.content_type, "A2A-Version": config.wire}
        if config.token is not None:
            headers[TOKEN_HEADER] = sealer.open(config.token, sealing)
        if config.credentials is None:
            return headers | {"Authorization": f"Bearer {signed.token}"}
        own = f"{config.scheme} {sealer.open(config.credentials, sealing)}"
        return headers | {"Authorization": own, JWT_HEADER: signed.token}

    @contextmanager
    def _reserve_host(self) -> Iterator[None]:
        """Reserves one of the host's request slots; waits at most ``SLOT_WAIT_MS``, then raises HostBusy."""
        clock = self._context.clock
        until = clock.now() + SLOT_WAIT_MS
        with ExitStack() as slots:
            while True:
                try:
                    slots.enter_context(self._context.hosts.request_slot(self.host, clock.now()))
                    break
                except HostBusy:
                    if clock.now() >= until:
                        raise
                clock.sleep(SLOT_POLL_S)
            yield

    def _log(self, attempt: Attempt, *, accepted: bool) -> None:
        """Writes the log line and the metrics of a POST: ids, numbers, the kind of error. A URL may hold secrets."""
        ids: dict[str, str | int] = {"task": self._head.key.task, "config": attempt.config_id, "event": attempt.n}
        answer = {"status": attempt.status, "error": attempt.error, "ms": attempt.ms, "kid": attempt.kid}
        extra = {**ids, "attempt": attempt.k, **answer, "trace": trace.trace_id(self._head.trace)}
        logger.info("webhook tried", extra=extra)
        if accepted and attempt.n:
            self._context.metrics.record({"DeliverySuccess": 1, "DeliveryAttempts": attempt.k}, **ids)
        else:
            self._context.metrics.record({"DeliverySuccess": int(accepted)}, **ids)


def count_exhausted(context: DeliveryContext, key: TaskKey, cursor: Cursor) -> None:
    """Counts a webhook that was given up."""
    if cursor.state is CursorState.EXHAUSTED:
        count(context, key, "DeliveryExhausted", cursor.config_id)


def count(context: DeliveryContext, key: TaskKey, name: str, config_id: str) -> None:
    """Counts one event of the metric ``name`` for a webhook."""
    context.metrics.count(name, tenant=key.tenant, owner=key.owner, task=key.task, config=config_id)
