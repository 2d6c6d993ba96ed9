"""Makes the task as of one event after another, for webhooks that get whole tasks.

The replay for one event continues from the one before, so the log is read once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless.domain.events import Event, TaskReplay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_serverless.domain.head import Head
    from a2a_serverless.ports.tasks import TaskLog
    from a2a_serverless.protocol.v1 import Task


class TaskReplayer:
    """The replayer of one task. ``head`` may be older than the log."""

    def __init__(self, log: TaskLog, head: Head) -> None:
        self._log = log
        self._head = head
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
            return self._replay.after(self._log.read(self._head.key, self._replay.n, n - self._replay.n))
        task = self._log.read_task_at(self._head, n)
        self._replay = TaskReplay.from_task(task)
        return task
