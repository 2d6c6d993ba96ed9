"""The task as of one event after another: what a webhook is told that gets whole tasks.

The log is read once, however many of its moments are told: what was folded for one goes on for the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless.domain.events import Fold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import Task
    from a2a_serverless.ports import TaskLog


class Telling:
    """The moments of one task. ``head`` is as of the beginning."""

    def __init__(self, log: TaskLog, head: Head) -> None:
        self._log = log
        self._head = head
        self._fold = Fold(head.key.task, head.context_id)

    def at(self, n: int, events: Sequence[Event]) -> Task:
        """The task as of event ``n``; ``events`` is a run of the log that was read already."""
        if self._fold.n == n:
            return self._fold.task()
        if not events[0].n - 1 <= self._fold.n <= n <= events[-1].n:
            return self._task_at(n)
        return self._fold.after(event for event in events if self._fold.n < event.n <= n)

    def _task_at(self, n: int) -> Task:
        if 0 < self._fold.n < n:
            return self._fold.after(self._log.read(self._head.key, self._fold.n, n - self._fold.n))
        task = self._log.task_at(self._head, n)
        self._fold = Fold.of(task)
        return task
