"""Snapshots of long logs, which save readers a replay from the beginning. The log alone holds the same task.

A snapshot is stored among its task's other blobs, under a name that ends with its SHA-256, so it is erased with the
task. The head names it by the number of its last event, its size in bytes and its SHA-256.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from a2a_serverless.adapters.dynamodb import log_format
from a2a_serverless.adapters.dynamodb.payloads import PayloadCorrupted, pointer
from a2a_serverless.domain.events import TaskReplay

if TYPE_CHECKING:
    from a2a_serverless.adapters.dynamodb.payloads import PayloadStore
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.protocol.v1 import Task


def snapshot_name(task: Task, content: bytes) -> str:
    """The name by which the head refers to the snapshot with this content."""
    return f"{task.n} {len(content)} {sha256(content).hexdigest()}"


class SnapshotStore:
    """Stores and reads the snapshots of tasks."""

    def __init__(self, payloads: PayloadStore) -> None:
        self._payloads = payloads

    def store(self, key: TaskKey, task: Task) -> str:
        """Stores the task as of its event ``n``; returns the name that the head must hold. Idempotent."""
        content = log_format.dump_snapshot(task).encode()
        self._payloads.put(key, content)
        return snapshot_name(task, content)

    def start_replay(self, head: Head, most: int) -> TaskReplay:
        """The replay from which to continue: at the head's snapshot, or at the log's beginning.

        It begins with the log when the snapshot lies after event ``most``, is missing or corrupt, or has another
        format.
        """
        task = self._find(head) if 0 < head.snapshot_position <= most else None
        return TaskReplay.from_task(task) if task else TaskReplay(head.key.task, head.context_id)

    def _find(self, head: Head) -> Task | None:
        _, size, digest = head.fold.split(" ")
        try:
            return log_format.load_snapshot(self._payloads.fetch(pointer(head.key, digest, int(size))))
        except (PayloadCorrupted, ValueError):
            return None
