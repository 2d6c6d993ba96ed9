"""Joins chunks before they are written: an agent may emit a hundred a second, and each write costs at least 1 KB.

Chunks wait until ``DELAY_S`` (seconds) are over or they have ``SIZE`` bytes. One event then holds all waiting chunks of
an artifact, their texts joined, and the range of their emit numbers. The resulting task is the same as with single
events.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.events import event_size, join_chunks

if TYPE_CHECKING:
    from a2a_serverless.domain.events import ArtifactEvent

DELAY_S: Final = 0.25
SIZE: Final = 16 * 1024


class ChunkBuffer:
    """The waiting chunks: one list for each artifact, in the order of arrival. ``some`` is set while any chunk waits.

    A chunk is an event without number, time and author: it gets these when it is written.
    """

    def __init__(self) -> None:
        self.some = asyncio.Event()
        self._waiting: dict[str, list[ArtifactEvent]] = {}
        self._size = 0

    @property
    def is_full(self) -> bool:
        """Whether the waiting chunks should be written now."""
        return self._size >= SIZE

    def add(self, chunk: ArtifactEvent) -> bool:
        """Adds a chunk. False, without a change, if a waiting chunk of the artifact cannot be joined with it."""
        waiting = self._waiting.setdefault(chunk.artifact.artifact_id, [])
        if waiting and not _can_join(waiting[-1], chunk):
            return False
        waiting.append(chunk)
        self._size += event_size(chunk)
        self.some.set()
        return True

    def take(self) -> list[ArtifactEvent]:
        """Removes all waiting chunks; returns one for each artifact."""
        waiting, self._waiting, self._size = self._waiting, {}, 0
        self.some.clear()
        return [_joined(chunks) for chunks in waiting.values()]


def _joined(chunks: list[ArtifactEvent]) -> ArtifactEvent:
    first, last = chunks[0], chunks[-1]
    if first is last:
        return first
    parts = join_chunks(chunk.artifact.parts for chunk in chunks)
    artifact = first.artifact.model_copy(update={"parts": parts})
    return first._replace(artifact=artifact, emits=(first.emits[0], last.emits[1]), last_chunk=last.last_chunk)


def _can_join(before: ArtifactEvent, after: ArtifactEvent) -> bool:
    """Whether two chunks can be one: the second appends, the first is not the last, and all but the parts is equal."""
    same = after.artifact.model_copy(update={"parts": before.artifact.parts}) == before.artifact and (
        after.step,
        after.attempt,
    ) == (before.step, before.attempt)
    return after.append and same and not before.last_chunk
