"""Stored folds of long logs: a shortcut for readers, never the truth. Without one, the whole log says the same.

A fold lies among its task's other blobs, under a name that ends with its SHA-256, so erasing the task erases it. The
head names it by its last event's number, its size in bytes and that SHA-256.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from a2a_serverless.adapters import log_format
from a2a_serverless.adapters.payloads import PayloadCorrupted, pointer
from a2a_serverless.domain.events import TaskReplay

if TYPE_CHECKING:
    from a2a_serverless.adapters.payloads import PayloadStore
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import Task, TaskKey


def snapshot_name(task: Task, content: bytes) -> str:
    """What the head calls the fold that has this content."""
    return f"{task.n} {len(content)} {sha256(content).hexdigest()}"


class SnapshotStore:
    """The folds of all tasks."""

    def __init__(self, payloads: PayloadStore) -> None:
        self._payloads = payloads

    def store(self, key: TaskKey, task: Task) -> str:
        """Stores the task as of its ``n``; the head is to name it so. Doing it twice is doing it once."""
        content = log_format.dump_snapshot(task).encode()
        self._payloads.put(key, content)
        return snapshot_name(task, content)

    def start_replay(self, head: Head, most: int) -> TaskReplay:
        """A fold to go on with, of no event after ``most``: the one that the head names, or an empty one.

        It is empty too when the named one is gone, damaged or in another form.
        """
        task = self._find(head) if 0 < head.snapshot_position <= most else None
        return TaskReplay.from_task(task) if task else TaskReplay(head.key.task, head.context_id)

    def _find(self, head: Head) -> Task | None:
        _, size, digest = head.fold.split(" ")
        try:
            return log_format.load_snapshot(self._payloads.fetch(pointer(head.key, digest, int(size))))
        except (PayloadCorrupted, ValueError):
            return None
