"""Stored folds of long logs: a shortcut for readers, never the truth. Without one, the whole log says the same.

A fold lies among its task's other blobs, under a name that ends with its SHA-256, so erasing the task erases it. The
head names it by its last event's number, its size in bytes and that SHA-256.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from a2a_serverless.adapters import stored
from a2a_serverless.adapters.bodies import Damaged, pointer
from a2a_serverless.domain.events import Fold

if TYPE_CHECKING:
    from a2a_serverless.adapters.bodies import Bodies
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import Task, TaskKey


def name_of(task: Task, content: bytes) -> str:
    """What the head calls the fold that has this content."""
    return f"{task.n} {len(content)} {sha256(content).hexdigest()}"


class Folds:
    """The folds of all tasks."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies

    def keep(self, key: TaskKey, task: Task) -> str:
        """Stores the task as of its ``n``; the head is to name it so. Doing it twice is doing it once."""
        content = stored.fold_text(task).encode()
        self._bodies.put(key, content)
        return name_of(task, content)

    def begin(self, head: Head, most: int) -> Fold:
        """A fold to go on with, of no event after ``most``: the one that the head names, or an empty one.

        It is empty too when the named one is gone, damaged or in another form.
        """
        task = self._find(head) if 0 < head.folded <= most else None
        return Fold.of(task) if task else Fold(head.key.task, head.context_id)

    def _find(self, head: Head) -> Task | None:
        _, size, digest = head.fold.split(" ")
        try:
            return stored.fold_of(self._bodies.fetch(pointer(head.key, digest, int(size))))
        except (Damaged, ValueError):
            return None
