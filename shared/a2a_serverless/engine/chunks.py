"""Joins chunks before they are written: an agent may emit a hundred a second, and each write costs at least 1 KB.

Chunks wait until ``DELAY_S`` (seconds) are over or they have ``SIZE`` bytes. One event then holds all waiting chunks of
an artifact, part by part, and the range of their emit numbers. The resulting task is the same as with single events.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.events import part_bytes

if TYPE_CHECKING:
    from a2a_serverless.protocol.v1 import Artifact, Part

DELAY_S: Final = 0.25
SIZE: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of an artifact; ``emits`` is the closed range of the author's emit numbers that it holds.

    ``step`` is the name of the step that emitted it, or empty.
    """

    artifact: Artifact
    emits: tuple[int, int]
    append: bool
    last: bool
    step: str = ""


class ChunkBuffer:
    """The waiting chunks: one for each artifact, in the order of arrival. ``some`` is set while any chunk waits."""

    def __init__(self) -> None:
        self.some = asyncio.Event()
        self._waiting: dict[str, tuple[Chunk, list[Part]]] = {}
        self._size = 0

    @property
    def is_full(self) -> bool:
        """Whether the waiting chunks should be written now."""
        return self._size >= SIZE

    def add(self, chunk: Chunk) -> bool:
        """Adds a chunk. False, without a change, if a waiting chunk of the artifact cannot be joined with it."""
        artifact_id, parts = chunk.artifact.artifact_id, [*chunk.artifact.parts]
        if artifact_id in self._waiting:
            before, waiting = self._waiting[artifact_id]
            if not _can_join(before, chunk):
                return False
            joined = replace(before, emits=(before.emits[0], chunk.emits[1]), last=chunk.last)
            waiting += parts
            self._waiting[artifact_id] = joined, waiting
        else:
            self._waiting[artifact_id] = chunk, parts
        self._size += sum(map(part_bytes, parts))
        self.some.set()
        return True

    def take(self) -> list[Chunk]:
        """Removes and returns all waiting chunks."""
        waiting, self._waiting, self._size = self._waiting, {}, 0
        self.some.clear()
        return [
            replace(one, artifact=one.artifact.model_copy(update={"parts": tuple(parts)}))
            for one, parts in waiting.values()
        ]


def _can_join(before: Chunk, after: Chunk) -> bool:
    """Whether two chunks can be one: the second appends, the first is not the last, and all but the parts is equal."""
    same = (
        after.artifact.model_copy(update={"parts": before.artifact.parts}) == before.artifact
        and after.step == before.step
    )
    return after.append and same and not before.last
