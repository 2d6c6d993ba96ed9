"""Reads the other tasks that an agent may see: tasks of the same tenant and owner whose agents the caller may read."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.errors import IllegalTransition, safe_error_fields
from a2a_serverless.engine.signals import StoreFailed
from a2a_serverless.store.items import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.protocol.v1 import Task
    from a2a_serverless.store.items import TaskEntry
    from a2a_serverless.store.stores import TaskIndex
    from a2a_serverless.store.task_log import TaskLog

logger = logging.getLogger(__name__)

FURTHER: Final = 300
"""The index entries that are read at most, if the newest belong to agents that the caller may not read."""


@dataclass(frozen=True, slots=True)
class TaskReader:
    """Reads tasks for the caller of the task ``key``: that caller's own tasks, within its present scopes."""

    log: TaskLog
    index: TaskIndex
    key: TaskKey

    def read_tasks(self, caller: Caller, task_ids: Iterable[str]) -> list[Task]:
        """The tasks with these ids, as far as they exist, can be read, and the caller may read them."""
        tasks = (self._task(caller, task_id) for task_id in dict.fromkeys(task_ids))
        return [task for task in tasks if task]

    def list_context(self, caller: Caller, context_id: str, limit: int) -> list[Task]:
        """The newest tasks of a conversation that the caller may read, without this one."""
        entries = self._entries(caller, context_id, limit)
        others = (entry.task for entry in entries if entry.task != self.key.task and caller.allows(entry.agent, "read"))
        return self.read_tasks(caller, islice(others, limit))

    def _entries(self, caller: Caller, context_id: str, limit: int) -> Iterator[TaskEntry]:
        """The newest entries of a conversation: as many as needed, and a bounded number."""
        after: str | None = None
        for size in (limit + 1, FURTHER):
            entries, after = self.index.list_page(caller.principal, context_id, after, 0, size)
            yield from entries
            if after is None:
                return

    def _task(self, caller: Caller, task_id: str) -> Task | None:
        try:
            head_and_task = self.log.read_task(caller.principal.key(task_id))
        except (IllegalTransition, StoreFailed) as failed:
            cause = failed.cause if isinstance(failed, StoreFailed) else failed
            # Of a task that nobody can read, each later task of its conversation would fail.
            # tests/services/test_unreadable_items.py: test_an_agent_gets_the_other_tasks_of_its_conversation
            if not isinstance(cause, UNREADABLE) or task_id == self.key.task:
                raise
            logger.error("task unreadable", extra=safe_error_fields(cause) | {"task": task_id})
            return None
        return head_and_task[1] if head_and_task and caller.allows(head_and_task[0].agent, "read") else None
