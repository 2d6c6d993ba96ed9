"""Every minute: rings for whatever is due and silent, fails what is too old, forgets what needs nobody any more.

Bells may be lost; this is why nothing is lost with them. A head that was rung for and stays silent is rung for again
after a wait that doubles.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import head as heads
from a2a_serverless.domain.bells import DeliveryBell, WorkBell
from a2a_serverless.domain.failures import described
from a2a_serverless.domain.measures import UNMEASURED
from a2a_serverless.domain.model import Message, Part, Role, TaskKey, TaskState
from a2a_serverless.domain.push import Cursor, CursorState
from a2a_serverless.domain.states import RUNNABLE
from a2a_serverless.ports import SHARDS, Bells, Clock, Ids, Metrics, PushStore, TaskLog

if TYPE_CHECKING:
    from a2a_serverless.domain.head import Head, Look

WAIT_MS: Final = 60_000
WAIT_LIMIT_MS: Final = 3_600_000
BATCH: Final = 100
FAILURES: Final = 10

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Broom:
    """What the sweeper needs."""

    log: TaskLog
    store: PushStore
    bells: Bells
    clock: Clock
    ids: Ids
    metrics: Metrics = UNMEASURED


def sweep(broom: Broom) -> int:
    """Looks at everything that is due, ``BATCH`` for each shard; returns how much that was.

    What fails (an item that only a newer release can read) does not keep it from the rest: it is raised at the end, or
    once ``FAILURES`` have.
    """
    seen, late_ms, failed = 0, 0, list[Exception]()
    for key, config_id in _due(broom):
        seen += 1
        try:
            late_ms = max(late_ms, _look_at(broom, key, config_id))
        except Exception as error:  # noqa: BLE001 - raised below
            failed.append(error)
            logger.error("not swept", extra=described(error) | {"task": key.task, "config": config_id})
        if len(failed) >= FAILURES:
            break
    broom.metrics.count("Sweeps")
    broom.metrics.measure({"OldestDueDelivery": late_ms // 1000})
    if failed:
        raise failed[0]
    return seen


def _due(broom: Broom) -> Iterator[tuple[TaskKey, str | None]]:
    for shard in range(SHARDS):
        yield from broom.log.due(shard, broom.clock.now(), BATCH)


def _look_at(broom: Broom, key: TaskKey, config_id: str | None) -> int:
    return _sweep_head(broom, key) if config_id is None else _sweep_cursor(broom, key, config_id)


def _sweep_head(broom: Broom, key: TaskKey) -> int:
    """By how many ms its webhooks are late, as far as that can be told without the log: since it fell silent."""
    look, now = broom.log.look(key), broom.clock.now()
    if look is None or look.head.due_at is None or look.head.due_at > now:
        return 0
    head = look.head
    if not head.ended and now >= head.deadline:
        _give_up(broom, look, now)
        return 0
    behind = _ring_webhooks(broom, look, now) if head.push else []
    _ring_work(broom, head, now, behind=bool(behind))
    return max((now - max(head.status_at, cursor.next_at) for cursor in behind if head.ended), default=0)


def _ring_work(broom: Broom, head: Head, now: int, *, behind: bool) -> None:
    if head.leased(now):
        _again(broom, head, head.lease_until, rang=False)
    elif head.parked:
        broom.log.touch(head, heads.woken(head, now=now))
        broom.bells.ring(WorkBell(head.key))
    elif head.state in RUNNABLE or head.children:
        broom.bells.ring(WorkBell(head.key))
        _again(broom, head, now + _wait(head), rang=True)
    elif behind:
        _again(broom, head, now + _wait(head), rang=True)
    else:
        _again(broom, head, None if head.ended else head.deadline, rang=False)


def _ring_webhooks(broom: Broom, look: Look, now: int) -> list[Cursor]:
    """Rings for the task's webhooks that are behind, also while it runs on in silence; gives their cursors."""
    behind = [cursor for cursor in broom.store.cursors(look.head.key) if _behind(cursor, look.last, now)]
    for cursor in behind:
        broom.bells.ring(DeliveryBell(look.head.key, cursor.config_id))
    return behind


def _sweep_cursor(broom: Broom, key: TaskKey, config_id: str) -> int:
    """By how many ms its next try is late. What the receiver has refused is not late before its time."""
    cursor, now = broom.store.cursor(key, config_id), broom.clock.now()
    if cursor is None or cursor.due_at is None or cursor.due_at > now:
        return 0
    if cursor.state is CursorState.ACTIVE:
        broom.bells.ring(DeliveryBell(key, config_id))
    due_at = now + WAIT_MS if cursor.state is CursorState.ACTIVE else None
    broom.store.move(key, cursor, replace(cursor, due_at=due_at))
    return now - cursor.next_at if due_at and cursor.next_at else 0


def _give_up(broom: Broom, look: Look, now: int) -> None:
    head = look.head
    text = Part("text", "The task reached its maximum life.")
    message = Message(broom.ids.new(), Role.AGENT, (text,), head.context_id, head.key.task)
    if broom.log.append(heads.give_up(look, message, now=now, by=broom.ids.new())):
        broom.metrics.count("TaskStates", state=TaskState.FAILED, task=head.key.task)


def _again(broom: Broom, head: Head, at: int | None, *, rang: bool) -> None:
    broom.log.touch(head, heads.due_again(head, at=at, rang=rang))


def _wait(head: Head) -> int:
    return min(WAIT_MS << min(head.rings, 10), WAIT_LIMIT_MS)


def _behind(cursor: Cursor, last: int, now: int) -> bool:
    """Whether nobody else will ring for it: a failed attempt has put the cursor itself into the due index."""
    return cursor.state is CursorState.ACTIVE and cursor.position < last and cursor.next_at <= now
