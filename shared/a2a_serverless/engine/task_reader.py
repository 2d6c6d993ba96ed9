"""Reads the other tasks that an agent may see: only those of the same tenant and owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_serverless.domain.model import Principal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.ports.tasks import TaskIndex, TaskLog
    from a2a_serverless.protocol.v1 import Task


@dataclass(frozen=True, slots=True)
class TaskReader:
    """Reads tasks of the same owner as the task ``key``."""

    log: TaskLog
    index: TaskIndex
    key: TaskKey

    @property
    def _principal(self) -> Principal:
        return Principal(self.key.tenant, self.key.owner)

    def read_tasks(self, task_ids: Iterable[str]) -> list[Task]:
        """The tasks with these ids, as far as they exist."""
        found = (self._task(task_id) for task_id in dict.fromkeys(task_ids))
        return [task for task in found if task]

    def list_context(self, context_id: str, limit: int) -> list[Task]:
        """The newest tasks of a conversation, without this one."""
        entries, _ = self.index.list_page(self._principal, context_id, None, 0, limit + 1)
        return self.read_tasks(entry.task for entry in entries if entry.task != self.key.task)[:limit]

    def _task(self, task_id: str) -> Task | None:
        found = self.log.read_task(self._principal.key(task_id))
        return found[1] if found else None
