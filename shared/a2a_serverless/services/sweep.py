"""The sweeper, every minute: enqueues overdue tasks and deliveries again, and fails tasks past their deadline.

Queue messages may be lost; the sweeper makes up for it. A task that stays due although it was enqueued is enqueued
again after a wait that doubles. What needs no more work leaves the due index. The cost is proportional to what is due:
an item costs a read, a write and a tenth of a call to the queue. A sweep goes on until everything is done or its time
is nearly over; the next one continues. Two sweepers at once do no harm: messages come twice, and one of two writes is
refused.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.domain import decisions
from a2a_serverless.domain.cursors import CursorState
from a2a_serverless.domain.errors import safe_error_fields
from a2a_serverless.domain.metrics import NULL_METRICS
from a2a_serverless.domain.queue_messages import DeliveryMessage, QueueMessage, WorkMessage
from a2a_serverless.services.task_changes import fail_task
from a2a_serverless.store.keys import SHARDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.ports.system import Clock, Ids, Metrics, Queues
    from a2a_serverless.store.items import DueItem
    from a2a_serverless.store.push_store import PushStore
    from a2a_serverless.store.task_log import TaskLog

WAIT_MS: Final = 60_000
WAIT_LIMIT_MS: Final = 3_600_000
BATCH: Final = 100
SWEEPS_AT_ONCE: Final = 8
FAILURES: Final = 10
OVERDUE_MS: Final = 120_000  # what is due for less than two sweeps is no fault
MARGIN_MS: Final = 10_000  # what a batch may take when the table throttles

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sweeper:
    """The sweeper's dependencies. ``each`` is ``map``, or a version that makes several calls at a time."""

    log: TaskLog
    store: PushStore
    queues: Queues
    clock: Clock
    ids: Ids
    metrics: Metrics = NULL_METRICS
    each: Callable[..., Iterable[Any]] = map


@dataclass(frozen=True, slots=True)
class _SweepResult:
    """The needs of one item: messages to enqueue, then a write.

    In this order a sweeper that dies in between enqueues twice instead of never. ``task_late_ms`` is by how much the
    item's task is late, ``late_ms`` is that of its webhooks; ``error`` is the reason why the item could not be read.
    """

    due: DueItem
    messages: tuple[QueueMessage, ...] = ()
    write: Callable[[], object] | None = None
    late_ms: int = 0
    task_late_ms: int = 0
    error: Exception | None = None


def sweep(sweeper: Sweeper, remaining_ms: Callable[[], int] = lambda: MARGIN_MS) -> int:
    """Handles every due item until less than ``MARGIN_MS`` are left; returns how many items that was.

    An item that cannot be read (for example, of a newer release) is postponed and does not delay the others. Errors of
    the store during that are raised at the end, or once there are ``FAILURES`` of them.
    """
    seen, late_ms, task_late_ms, put_off, failed = 0, 0, 0, 0, list[Exception]()
    for batch in _batches(sweeper):
        if remaining_ms() < MARGIN_MS:
            logger.warning("time is over, the next sweep goes on", extra={"count": seen})
            break
        swept = _sweep_batch(sweeper, batch)
        seen += len(batch)
        late_ms = max([late_ms, *(one.late_ms for one in swept)])
        task_late_ms = max([task_late_ms, *(one.task_late_ms for one in swept)])
        unread = [one for one in swept if one.error]
        _log_failure(unread[: max(0, FAILURES - put_off)])
        put_off += len(unread)
        failed += filter(None, sweeper.each(lambda one: _postpone(sweeper, one.due), unread))
        if len(failed) >= FAILURES:
            break
    sweeper.metrics.count("Sweeps")
    if task_late_ms >= OVERDUE_MS:
        sweeper.metrics.record({"OldestDueTask": task_late_ms // 1000})
    if late_ms >= OVERDUE_MS:
        sweeper.metrics.record({"OldestDueDelivery": late_ms // 1000})
    if put_off:
        sweeper.metrics.record({"ItemsPostponed": put_off})
    if failed:
        raise failed[0]
    return seen


def _batches(sweeper: Sweeper) -> Iterator[list[DueItem]]:
    """Yields what is due now, a batch of each shard in turn, so that no shard waits for another to be done."""
    now = sweeper.clock.now()
    shards = deque(sweeper.log.list_due(shard, now) for shard in range(SHARDS))
    while shards:
        shard = shards.popleft()
        if batch := list(islice(shard, BATCH)):
            yield batch
            shards.append(shard)


def _sweep_batch(sweeper: Sweeper, batch: list[DueItem]) -> list[_SweepResult]:
    """Does what the items need. Raises what the queue raises: then they stay due, for the next sweep."""
    results = list(sweeper.each(lambda due: _sweep_item(sweeper, due), batch))
    if messages := [message for one in results for message in one.messages]:
        sweeper.queues.enqueue_many(messages)
    return list(sweeper.each(_write, results))


def _sweep_item(sweeper: Sweeper, due: DueItem) -> _SweepResult:
    if due.key is None:
        return _SweepResult(due, error=ValueError("an item of another release"))
    try:
        if due.config_id is None:
            return _sweep_head(sweeper, due, due.key)
        return _sweep_cursor(sweeper, due, due.key, due.config_id)
    except Exception as error:  # noqa: BLE001 - the other items go on
        return _SweepResult(due, error=error)


def _write(swept: _SweepResult) -> _SweepResult:
    return replace(swept, error=_error_of(swept.write)) if swept.write else swept


def _postpone(sweeper: Sweeper, due: DueItem) -> Exception | None:
    """Postpones an item that could not be read; returns the store's error."""
    return _error_of(lambda: sweeper.log.postpone(due, sweeper.clock.now()))


def _error_of(call: Callable[[], object]) -> Exception | None:
    """Calls the store for one item, and returns its error, so that the other items go on."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - of any kind
        return error
    return None


def _log_failure(unread: list[_SweepResult]) -> None:
    for one in unread:
        ids = {"task": one.due.key.task if one.due.key else None, "config": one.due.config_id}
        logger.error("not swept, postponed", extra=(safe_error_fields(one.error) if one.error else {}) | ids)


def _sweep_head(sweeper: Sweeper, due: DueItem, key: TaskKey) -> _SweepResult:
    """Determines the needs of a due task.

    ``late_ms`` counts from the task's end and is 0 before it: without the log the age of pending events is unknown.
    """
    current, now = sweeper.log.read_head(key), sweeper.clock.now()
    if current is None or current.head.due_at is None or current.head.due_at > now:
        return _SweepResult(due)
    head = current.head
    if not head.is_terminal and now >= head.deadline:
        text = "The task reached its maximum life."
        fail_task(sweeper.log, sweeper.ids, sweeper.metrics, current, text, now)
        return _SweepResult(due)
    cursors, unread = sweeper.store.scan_cursors(key) if head.push else ([], 0)
    pending = [one for one in cursors if one.state is CursorState.ACTIVE and one.position < current.last]
    behind = [one for one in pending if one.next_at <= now]  # one that waits for a retry is in the due index itself
    late_ms = max((now - max(head.status_at, cursor.next_at) for cursor in behind if head.is_terminal), default=0)
    messages = tuple(DeliveryMessage(key, cursor.config_id) for cursor in behind)
    if head.parked and 0 < (left_ms := head.wake_at - now) <= decisions.DELAY_LIMIT_MS:
        again_at = now + _wait(head) if pending or unread else None
        after = decisions.announce_wake(head, now=now, by=sweeper.ids.new(), again_at=again_at)
        if sweeper.log.update_head(head, after):  # of two sweepers one enqueues it; if that dies, the head is due again
            sweeper.queues.enqueue(WorkMessage(key), math.ceil(left_ms / 1000))
        return _SweepResult(due, messages, None, late_ms)
    after, is_enqueued = _reschedule(head, now, pending=bool(pending or unread))
    return _SweepResult(
        due,
        (*messages, WorkMessage(key)) if is_enqueued else messages,
        lambda: sweeper.log.update_head(head, after),
        late_ms,
        task_late_ms(head, now) if is_enqueued else 0,
    )


def task_late_ms(head: Head, now: int) -> int:
    """How long (ms) the sweeper has enqueued the task in vain: its waits so far, without the task's own wait."""
    # A head has no time at which it became runnable: a callback or a lease's end writes none. But each run sets the
    # sweeps to 0.
    in_vain_ms = sum(_wait(head._replace(sweeps_in_a_row=number)) for number in range(head.sweeps_in_a_row))
    return min(in_vain_ms, now - (head.wake_at if head.parked else head.status_at))


def _reschedule(head: Head, now: int, *, pending: bool) -> tuple[Head, bool]:
    """Returns the head with its next due time, and whether to enqueue a work message.

    A task with a ``pending`` notification stays due also while that waits for a retry: the cursor leaves the index
    with the first success, and events after it may still be pending. A cursor that cannot be read counts as pending: a
    newer release may read it.
    """
    if head.is_leased(now):
        return decisions.reschedule(head, at=head.lease_until, enqueued=False), False
    if head.is_runnable(now) or (head.is_terminal and head.children):
        return decisions.reschedule(head, at=now + _wait(head), enqueued=True), True
    at = None if head.is_terminal else decisions.due_while_suspended(head, now=now)
    if pending:
        again_at = now + _wait(head)
        at = min(again_at, at or again_at)
    return decisions.reschedule(head, at=at, enqueued=pending), False


def _sweep_cursor(sweeper: Sweeper, due: DueItem, key: TaskKey, config_id: str) -> _SweepResult:
    """Determines the needs of a due cursor. ``late_ms`` counts from the time of its next attempt."""
    cursor, now = sweeper.store.get_cursor(key, config_id), sweeper.clock.now()
    if cursor is None or cursor.due_at is None or cursor.due_at > now:
        return _SweepResult(due)
    active = cursor.state is CursorState.ACTIVE
    after = replace(cursor, due_at=now + WAIT_MS if active else None)
    messages = (DeliveryMessage(key, config_id),) if active else ()
    late_ms = now - cursor.next_at if active and cursor.next_at else 0
    return _SweepResult(due, messages, lambda: sweeper.store.move_cursor(key, cursor, after), late_ms)


def _wait(head: Head) -> int:
    return min(WAIT_MS << min(head.sweeps_in_a_row, 10), WAIT_LIMIT_MS)
