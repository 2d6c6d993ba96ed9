"""Snapshots of tasks with long logs: with a snapshot, readers need no replay from the beginning.

They are blobs. The log alone is enough to make the same task. The head names a snapshot by the number of its last
event, its size in bytes and its SHA-256, and then the bytes of all its blobs. A snapshot's long history and large
artifacts are separate blobs, which a reader can leave out.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.replay import TaskReplay
from a2a_serverless.store.payloads import Admit, PayloadCorrupted, PayloadStore, pointer
from a2a_serverless.store.stored_forms import MEMBER_FORMS, dump_snapshot, load_snapshot, model_text, parse_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.protocol.v1 import Task

APART_BYTES: Final = 64 * 1024


class SnapshotStore:
    """Stores and reads the snapshots of tasks."""

    def __init__(self, payloads: PayloadStore) -> None:
        self._payloads = payloads

    def store(self, key: TaskKey, task: Task) -> str:
        """Stores the task as of its event ``n``; returns the name that the head must hold. Idempotent."""
        apart, rest, total = {}, task, 0
        for name, form in MEMBER_FORMS.items():
            content = model_text(form(**{name: getattr(task, name)})).encode()
            if len(content) > APART_BYTES:
                self._payloads.put(key, content)
                apart[name] = f"{len(content)} {sha256(content).hexdigest()}"
                rest = rest.model_copy(update={name: ()})
                total += len(content)
        content = dump_snapshot(rest, apart).encode()
        self._payloads.put(key, content)
        return f"{task.n} {len(content)} {sha256(content).hexdigest()} {total + len(content)}"

    def start_replay(
        self,
        head: Head,
        most: int,
        *,
        history: bool = True,
        artifacts: bool = True,
        admit: Admit | None = None,
    ) -> tuple[TaskReplay, int]:
        """The replay from which to continue, and how many bytes of snapshots were read for it.

        It continues the head's snapshot. It begins with the log if the snapshot lies after event ``most``, is missing
        or corrupt, or has another format. Without ``artifacts`` it has no artifacts; without ``history`` it may lack
        messages.
        """
        members = {"artifacts": artifacts, "history": history}
        snapshot = self._find(head, members, admit) if 0 < head.snapshot_position <= most else None
        if snapshot is None:
            return TaskReplay(head.key.task, head.context_id, artifacts=artifacts), 0
        task, size = snapshot
        return TaskReplay.from_task(task, artifacts=artifacts), size

    def _find(self, head: Head, members: Mapping[str, bool], admit: Admit | None) -> tuple[Task, int] | None:
        """The task of the snapshot, and the bytes that were read."""
        with suppress(PayloadCorrupted, ValueError):
            text, total = self._fetch(head, head.snapshot.partition(" ")[2], admit)
            stored = load_snapshot(text)
            task = stored.task
            for name, place in stored.apart.items():
                if members[name]:
                    text, size = self._fetch(head, place, admit)
                    task = task.model_copy(update=MEMBER_FORMS[name].model_validate(parse_text(text)).__dict__)
                    total += size
            return task, total
        return None

    def _fetch(self, head: Head, place: str, admit: Admit | None) -> tuple[str, int]:
        """The text at a place, which begins with its size in bytes and its SHA-256; and that size."""
        words = place.split(" ")
        size, digest = int(words[0]), words[1]
        if admit:
            admit(size)
        return self._payloads.fetch(pointer(head.key, digest, size)), size
