"""Enqueues delivery messages for changes in the table's stream: one per task, configuration and batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless.domain.cursors import CursorState
from a2a_serverless.domain.queue_messages import DeliveryMessage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.ports.system import Queues
    from a2a_serverless.store.push_store import PushStore


def relay(store: PushStore, queues: Queues, tasks: Iterable[TaskKey], now: int) -> int:
    """Enqueues a message for every active configuration of the tasks, each task once; returns the number of messages.

    A configuration that waits for its next attempt is skipped: that attempt has a message of its own.
    """
    enqueued = 0
    for key in dict.fromkeys(tasks):
        for cursor in store.list_cursors(key):
            if cursor.state is CursorState.ACTIVE and cursor.next_at <= now:
                queues.enqueue(DeliveryMessage(key, cursor.config_id))
                enqueued += 1
    return enqueued
