"""From the table's stream to delivery bells: one per (task, configuration) and batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from a2a_serverless.domain.bells import DeliveryBell
from a2a_serverless.domain.push import Cursor, CursorState

if TYPE_CHECKING:
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.ports import Bells, PushStore


def relay(store: PushStore, bells: Bells, tasks: Iterable[TaskKey], now: int) -> int:
    """Rings for every active configuration of the tasks, each task once; returns how many bells rang.

    A configuration that waits for its next try has a bell of its own; ringing it now would jump its waiting time.
    """
    rang = 0
    for key in dict.fromkeys(tasks):
        for cursor in filter(lambda cursor: _listens(cursor, now), store.cursors(key)):
            bells.ring(DeliveryBell(key, cursor.config_id))
            rang += 1
    return rang


def _listens(cursor: Cursor, now: int) -> bool:
    return cursor.state is CursorState.ACTIVE and cursor.next_at <= now
