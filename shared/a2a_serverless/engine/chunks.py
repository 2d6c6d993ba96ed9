"""Joins chunks and progress before they are written: an agent may emit a hundred a second, and each write costs 1 KB.

Chunks wait until ``DELAY_S`` (seconds) are over or they have ``SIZE`` bytes. One event then holds all waiting chunks of
an artifact, their texts joined, and the range of their emit numbers. The resulting task is the same as with single
events.

A progress message is written at once if none was written in the ``DELAY_S`` before. Messages that follow sooner wait
until that time is over, and become one message with all their parts: no text is lost, and a run writes at most four a
second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.events import ArtifactEvent, event_size, part_bytes
from a2a_serverless.domain.replay import join_chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_serverless.protocol.v1 import Message

DELAY_S: Final = 0.25
SIZE: Final = 16 * 1024


class ChunkBuffer:
    """The waiting chunks: one list for each artifact, in the order of arrival.

    A chunk is an event without number, time and author: it gets these when it is written.
    """

    def __init__(self) -> None:
        self._chunks: dict[str, list[ArtifactEvent]] = {}
        self._size = 0

    @property
    def is_full(self) -> bool:
        """Whether the waiting chunks should be written now."""
        return self._size >= SIZE

    def add(self, chunk: ArtifactEvent) -> bool:
        """Adds a chunk. False, without a change, if a waiting chunk of the artifact cannot be joined with it."""
        chunks = self._chunks.setdefault(chunk.artifact.artifact_id, [])
        if chunks and not _can_join(chunks[-1], chunk):
            return False
        chunks.append(chunk)
        self._size += event_size(chunk)
        return True

    def take(self) -> list[ArtifactEvent]:
        """Removes all waiting chunks; returns one for each artifact."""
        by_artifact, self._chunks, self._size = self._chunks, {}, 0
        return [_join(chunks) for chunks in by_artifact.values()]


class ProgressBuffer:
    """The progress messages that wait, in the order of arrival. ``now`` returns ms."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._messages: list[Message] = []
        self._size = 0
        self._free_at = 0

    def add(self, message: Message) -> bool:
        """Adds a message. True if the waiting messages should be written now."""
        self._messages.append(message)
        self._size += sum(map(part_bytes, message.parts))
        return self._size >= SIZE or self._now() >= self._free_at

    def take(self) -> list[Message]:
        """Removes and returns the waiting messages, for the caller to write them now."""
        messages, self._messages, self._size = self._messages, [], 0
        if messages:
            self._free_at = self._now() + int(DELAY_S * 1000)
        return messages


def join_messages(messages: Sequence[Message]) -> Message:
    """The last message with the parts of all messages. A metadata name that several have gets its last value."""
    *_, last = messages
    metadata = {name: value for message in messages for name, value in (message.metadata or {}).items()}
    extensions = dict.fromkeys(uri for message in messages for uri in message.extensions)
    references = dict.fromkeys(task for message in messages for task in message.reference_task_ids)
    members = {"parts": tuple(part for message in messages for part in message.parts), "metadata": metadata or None}
    return last.model_copy(update=members | {"extensions": tuple(extensions), "reference_task_ids": tuple(references)})


def _join(chunks: list[ArtifactEvent]) -> ArtifactEvent:
    first, last = chunks[0], chunks[-1]
    if first is last:
        return first
    parts = join_chunks(chunk.artifact.parts for chunk in chunks)
    artifact = first.artifact.model_copy(update={"parts": parts})
    return first._replace(artifact=artifact, emits=(first.emits[0], last.emits[1]), last_chunk=last.last_chunk)


def _can_join(before: ArtifactEvent, after: ArtifactEvent) -> bool:
    """Whether two chunks can be joined: the second appends, the first is not the last, all but the parts is equal."""
    same = after.artifact.model_copy(update={"parts": before.artifact.parts}) == before.artifact and (
        after.step,
        after.attempt,
    ) == (before.step, before.attempt)
    return after.append and same and not before.last_chunk
