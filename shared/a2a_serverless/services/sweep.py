"""Every minute: rings for whatever is due and silent, fails what is too old, forgets what needs nobody any more.

Bells may be lost; this is why nothing is lost with them. A head that was rung for and stays silent is rung for again
after a wait that doubles. The work is proportional to what is due: an item costs a read, a write and a tenth of a call
to the queue. It goes on until everything is done or the time is nearly over; the next minute goes on from there. Two
sweepers at once do no harm: bells ring twice, and of two writes the second is refused.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.domain import head as heads
from a2a_serverless.domain.bells import Bell, DeliveryBell, WorkBell
from a2a_serverless.domain.failures import described
from a2a_serverless.domain.measures import UNMEASURED
from a2a_serverless.domain.model import Message, Part, Role, TaskKey, TaskState
from a2a_serverless.domain.push import Cursor, CursorState
from a2a_serverless.domain.states import RUNNABLE
from a2a_serverless.ports import SHARDS, Bells, Clock, Due, Ids, Metrics, PushStore, TaskLog

if TYPE_CHECKING:
    from a2a_serverless.domain.head import Head, Look

WAIT_MS: Final = 60_000
WAIT_LIMIT_MS: Final = 3_600_000
BATCH: Final = 100
FAILURES: Final = 10
MARGIN_MS: Final = 10_000  # what a batch may take when the table throttles

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Broom:
    """What the sweeper needs. ``each`` is ``map``, or one that makes several calls at a time."""

    log: TaskLog
    store: PushStore
    bells: Bells
    clock: Clock
    ids: Ids
    metrics: Metrics = UNMEASURED
    each: Callable[..., Iterable[Any]] = map


@dataclass(frozen=True, slots=True)
class _Swept:
    """What a look at an item has found: whom to ring for, and what to write once that is done.

    In this order a sweeper that dies between the two rings once more, and not never. ``late_ms`` is by how much its
    webhooks are late; ``error`` is why it could not be looked at.
    """

    due: Due
    bells: tuple[Bell, ...] = ()
    write: Callable[[], object] | None = None
    late_ms: int = 0
    error: Exception | None = None


def sweep(broom: Broom, remaining_ms: Callable[[], int] = lambda: MARGIN_MS) -> int:
    """Looks at everything that is due, until less than ``MARGIN_MS`` are left; returns how much that was.

    An item that cannot be looked at (only a newer release can read it) is put off and keeps nobody else waiting. What
    the store raises then is raised at the end, or once that has happened ``FAILURES`` times.
    """
    seen, late_ms, put_off, failed = 0, 0, 0, list[Exception]()
    for batch in _batches(broom):
        if remaining_ms() < MARGIN_MS:
            logger.warning("time is over, the next sweep goes on", extra={"count": seen})
            break
        swept = _swept(broom, batch)
        seen += len(batch)
        late_ms = max([late_ms, *(one.late_ms for one in swept)])
        unread = [one for one in swept if one.error]
        _tell(unread[: max(0, FAILURES - put_off)])
        put_off += len(unread)
        failed += filter(None, broom.each(lambda one: _put_off(broom, one.due), unread))
        if len(failed) >= FAILURES:
            break
    broom.metrics.count("Sweeps")
    broom.metrics.measure({"OldestDueDelivery": late_ms // 1000})
    if put_off:
        broom.metrics.measure({"ItemsPutOff": put_off})
    if failed:
        raise failed[0]
    return seen


def _batches(broom: Broom) -> Iterator[list[Due]]:
    """What is due now, a batch of each shard in turn, so that none waits until another is done."""
    now = broom.clock.now()
    shards = deque(broom.log.due(shard, now) for shard in range(SHARDS))
    while shards:
        shard = shards.popleft()
        if batch := list(islice(shard, BATCH)):
            yield batch
            shards.append(shard)


def _swept(broom: Broom, batch: list[Due]) -> list[_Swept]:
    """Does what the items need. Raises what the queue raises: then they stay due, and the next sweep rings."""
    found = list(broom.each(lambda due: _look_at(broom, due), batch))
    if bells := [bell for one in found for bell in one.bells]:
        broom.bells.ring_many(bells)
    return list(broom.each(_written, found))


def _look_at(broom: Broom, due: Due) -> _Swept:
    if due.key is None:
        return _Swept(due, error=ValueError("an item of another release"))
    try:
        if due.config_id is None:
            return _sweep_head(broom, due, due.key)
        return _sweep_cursor(broom, due, due.key, due.config_id)
    except Exception as error:  # noqa: BLE001 - it keeps nobody else waiting
        return _Swept(due, error=error)


def _written(swept: _Swept) -> _Swept:
    try:
        if swept.write:
            swept.write()
    except Exception as error:  # noqa: BLE001 - it keeps nobody else waiting
        return replace(swept, error=error)
    return swept


def _put_off(broom: Broom, due: Due) -> Exception | None:
    """Puts off what could not be looked at; gives what the store raised."""
    try:
        broom.log.put_off(due, broom.clock.now())
    except Exception as error:  # noqa: BLE001 - raised at the end of the sweep
        return error
    return None


def _tell(unread: list[_Swept]) -> None:
    for one in unread:
        said = {"task": one.due.key.task if one.due.key else None, "config": one.due.config_id}
        logger.error("not swept, put off", extra=(described(one.error) if one.error else {}) | said)


def _sweep_head(broom: Broom, due: Due, key: TaskKey) -> _Swept:
    """By how many ms its webhooks are late, as far as that can be told without the log: since it fell silent."""
    look, now = broom.log.look(key), broom.clock.now()
    if look is None or look.head.due_at is None or look.head.due_at > now:
        return _Swept(due)
    head = look.head
    if not head.ended and now >= head.deadline:
        _give_up(broom, look, now)
        return _Swept(due)
    behind = _webhooks_behind(broom, look, now) if head.push else []
    late_ms = max((now - max(head.status_at, cursor.next_at) for cursor in behind if head.ended), default=0)
    told = tuple(DeliveryBell(key, cursor.config_id) for cursor in behind)
    if head.parked and not head.leased(now):
        # The one write that comes first: a bell for a task that is still parked does nothing.
        broom.log.touch(head, heads.woken(head, now=now))
        return _Swept(due, (*told, WorkBell(key)), None, late_ms)
    after, rings = _waiting(head, now, behind=bool(behind))
    return _Swept(due, (*told, WorkBell(key)) if rings else told, lambda: broom.log.touch(head, after), late_ms)


def _waiting(head: Head, now: int, *, behind: bool) -> tuple[Head, bool]:
    """The head after the look, and whether its work is rung for."""
    if head.leased(now):
        return heads.due_again(head, at=head.lease_until, rang=False), False
    if head.state in RUNNABLE or head.children:
        return heads.due_again(head, at=now + _wait(head), rang=True), True
    if behind:
        return heads.due_again(head, at=now + _wait(head), rang=True), False
    return heads.due_again(head, at=None if head.ended else head.deadline, rang=False), False


def _webhooks_behind(broom: Broom, look: Look, now: int) -> list[Cursor]:
    """The cursors of the task's webhooks that are behind, also while it runs on in silence."""
    return [cursor for cursor in broom.store.cursors(look.head.key) if _behind(cursor, look.last, now)]


def _sweep_cursor(broom: Broom, due: Due, key: TaskKey, config_id: str) -> _Swept:
    """By how many ms its next try is late. What the receiver has refused is not late before its time."""
    cursor, now = broom.store.cursor(key, config_id), broom.clock.now()
    if cursor is None or cursor.due_at is None or cursor.due_at > now:
        return _Swept(due)
    active = cursor.state is CursorState.ACTIVE
    after = replace(cursor, due_at=now + WAIT_MS if active else None)
    bells = (DeliveryBell(key, config_id),) if active else ()
    late_ms = now - cursor.next_at if active and cursor.next_at else 0
    return _Swept(due, bells, lambda: broom.store.move(key, cursor, after), late_ms)


def _give_up(broom: Broom, look: Look, now: int) -> None:
    head = look.head
    text = Part("text", "The task reached its maximum life.")
    message = Message(broom.ids.new(), Role.AGENT, (text,), head.context_id, head.key.task)
    if broom.log.append(heads.give_up(look, message, now=now, by=broom.ids.new())):
        broom.metrics.count("TaskStates", state=TaskState.FAILED, task=head.key.task)


def _wait(head: Head) -> int:
    return min(WAIT_MS << min(head.rings, 10), WAIT_LIMIT_MS)


def _behind(cursor: Cursor, last: int, now: int) -> bool:
    """Whether nobody else will ring for it: a failed attempt has put the cursor itself into the due index."""
    return cursor.state is CursorState.ACTIVE and cursor.position < last and cursor.next_at <= now
