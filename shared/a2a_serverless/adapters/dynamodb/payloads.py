"""Stores the texts of the log: in their item, or, above the inline limit, as a blob that the item points to.

The blob is written before the item and its name ends with its SHA-256, so a pointer always finds complete content.

Snapshots of long logs are blobs too; they save readers a replay from the beginning. The log alone holds the same task.
The head names a snapshot by the number of its last event, its size in bytes and its SHA-256.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.adapters.dynamodb import keys, log_format
from a2a_serverless.domain.events import TaskReplay

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.adapters.dynamodb.items import Item
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.ports.contents import BlobStore
    from a2a_serverless.protocol.v1 import Task

INLINE_LIMIT: Final = 300 * 1024


class PayloadCorrupted(RuntimeError):
    """A blob is missing, or its content is not what was stored."""


class PayloadStore:
    """Stores texts of any size. ``limit`` is the longest (in bytes of UTF-8) that stays in an item."""

    def __init__(self, blobs: BlobStore, limit: int = INLINE_LIMIT) -> None:
        self._blobs = blobs
        self._limit = limit

    def store(self, key: TaskKey, text: str) -> Item:
        """Stores a text; returns the attributes that hold it or point to its blob."""
        content = text.encode()
        if len(content) <= self._limit:
            return {"body": {"S": text}}
        return self.put(key, content)

    def put(self, key: TaskKey, content: bytes) -> Item:
        """Stores content as a blob, whatever its size; returns the attributes that point to it."""
        digest = sha256(content).hexdigest()
        self._blobs.put(_name(key, digest), content)
        return pointer(key, digest, len(content))

    def fetch(self, item: Mapping[str, Any]) -> str:
        """The text for which ``store`` returned ``item``; raises PayloadCorrupted for a missing or changed blob."""
        if "body" in item:
            return str(item["body"]["S"])
        name, size = str(item["blob"]["S"]), int(item["size"]["N"])
        try:
            content = self._blobs.get(name, size)
        except KeyError:
            content = b""
        if len(content) != size or not name.endswith(sha256(content).hexdigest()):
            raise PayloadCorrupted(f"blob {name} is gone or is not what was stored")
        return content.decode()


def pointer(key: TaskKey, digest: str, size: int) -> Item:
    """The attributes that point to a blob of a task, by its SHA-256 (hex) and its size in bytes."""
    return {"blob": {"S": _name(key, digest)}, "size": {"N": str(size)}}


def _name(key: TaskKey, digest: str) -> str:
    return f"{keys.path(key.tenant, key.owner, key.task)}/{digest}"


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
