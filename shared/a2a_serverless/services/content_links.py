"""Decides for each part of an answer: inline content or a link (presigned URL). No other code decides this.

An answer carries up to ``INLINE_BYTES`` of content, in the order of its parts, and links for the rest. This holds for
files stored outside the log, and for the texts, data and small files in the log. Whoever lets a task rest stores those
for which the answer of the whole task has no room as files (``store_contents``); an answer links what it finds there,
and stores nothing. Streams and webhooks (``budget`` 0) get links for stored files, and the contents of the log
unchanged and without a limit. Stored events are never changed: each answer gets new links.

An answer costs a bounded number of calls: it reads ``READS`` files and looks for ``KEPT``. After ``LINKS`` links a part
keeps the address that names its content. Links and short parts have ``SMALL`` bytes of their own, then the room that
other content leaves. Parts without room, or that are not stored, are omitted; a text part in the answer tells so.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeVar

from a2a_serverless.domain.contents import SCHEME, ContentNotFound, StoredFile, file_of
from a2a_serverless.domain.events import PART_BYTES, part_bytes
from a2a_serverless.protocol.strict_json import dumps
from a2a_serverless.protocol.v1 import (
    Artifact,
    ListTasksResponse,
    Message,
    Part,
    Task,
    TaskArtifactUpdateEvent,
    TaskStatus,
    TaskStatusUpdateEvent,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from a2a_serverless.domain.model import Json, Principal
    from a2a_serverless.store.stores import ContentStore

T = TypeVar("T")

LARGEST_CHARACTER: Final = 16  # in the unit of _size_in_answer: a character there takes less
INLINE_BYTES: Final = 4 * 1024 * 1024
SHORT: Final = 2 * 1024  # bytes of text: a link is as long
READS: Final = 16
KEPT: Final = 16
LINKS: Final = 256
SMALL: Final = 256 * 1024
LINK: Final = 1536  # size of a link, in the unit of _size_in_answer
PLAIN: Final = "text/plain; charset=utf-8"
ADVICE: Final = "Ask for less: one task, a shorter history. Of a task at work, ask again when it waits or has ended."
_TYPES: Final = {"text": PLAIN, "data": "application/json", "raw": "application/octet-stream"}


def resolve_contents(contents: ContentStore | None, principal: Principal, answer: T, budget: int = 0) -> T:
    """Returns the answer with content or a link for each part that names a stored file."""
    if contents is None or is_plain(answer, budget):
        return answer
    return _Resolution(contents, principal, budget, limited=budget > 0).show(answer)


def store_contents(contents: ContentStore | None, principal: Principal, task: Task, budget: int = INLINE_BYTES) -> None:
    """Stores what the answer of the whole task links, at most ``KEPT`` files, unless it is stored. Idempotent.

    Not when the task is read: each read of a long task would write it again.
    """
    if contents and not is_plain(task, budget):
        _Storing(contents, principal, budget, limited=True).show(task)


def may_be_long(size: int) -> bool:
    """Whether the answer of a task whose log has ``size`` bytes may have no room for all of it."""
    return LARGEST_CHARACTER * size > INLINE_BYTES


def is_plain(answer: object, budget: int) -> bool:
    """Whether the answer needs no change: it names no stored file and is far below the budget (0 means no limit)."""
    parts = [str(part.__dict__) for holder in _holders(answer) for part in holder.parts]
    is_short = budget == 0 or LARGEST_CHARACTER * sum(map(len, parts)) <= budget
    return is_short and not any(SCHEME in part for part in parts)


def _holders(answer: object) -> Iterator[Message | Artifact]:
    """The messages and artifacts in an answer."""
    if isinstance(answer, Message):
        yield answer
    elif isinstance(answer, TaskArtifactUpdateEvent):
        yield answer.artifact
    elif isinstance(answer, ListTasksResponse):
        for task in answer.tasks:
            yield from _holders(task)
    elif isinstance(answer, Task | TaskStatusUpdateEvent):
        if answer.status.message:
            yield answer.status.message
        if isinstance(answer, Task):
            yield from answer.artifacts
            yield from answer.history


@dataclass(eq=False, repr=False, slots=True)
class _Resolution:
    """The state while one answer is made. ``left`` is the bytes that may still go inline; ``task`` the current task.

    ``reads``, ``keeps`` and ``links`` count the calls and links that are left; ``small`` the bytes left for short
    parts.
    """

    contents: ContentStore
    principal: Principal
    left: int
    limited: bool
    task: str = ""
    reads: int = READS
    keeps: int = KEPT
    links: int = LINKS
    small: int = SMALL

    def show(self, answer: T) -> T:
        """Returns the answer; an answer without parts is unchanged."""
        result: object = answer
        if isinstance(answer, Message):
            result = self._message(answer)
        elif isinstance(answer, Task):
            result = self._task(answer)
        elif isinstance(answer, ListTasksResponse):
            result = answer.model_copy(update={"tasks": tuple(map(self._task, answer.tasks))})
        elif isinstance(answer, TaskArtifactUpdateEvent):
            result = answer.model_copy(update={"artifact": self._artifact(answer.artifact)})
        elif isinstance(answer, TaskStatusUpdateEvent):
            result = answer.model_copy(update={"status": self._status(answer.status)})
        return result  # type: ignore[return-value]  # each branch gives the class that it got

    def _task(self, task: Task) -> Task:
        self.task = task.id
        status = self._status(task.status)
        artifacts, history = tuple(map(self._artifact, task.artifacts)), tuple(map(self._message, task.history))
        return task.model_copy(update={"status": status, "artifacts": artifacts, "history": history})

    def _status(self, status: TaskStatus) -> TaskStatus:
        return status.model_copy(update={"message": self._message(status.message)}) if status.message else status

    def _message(self, message: Message) -> Message:
        return message.model_copy(update={"parts": self._parts((part,) for part in message.parts)})

    def _artifact(self, artifact: Artifact) -> Artifact:
        return artifact.model_copy(update={"parts": self._parts(_runs(artifact.parts))})

    def _parts(self, runs: Iterable[tuple[Part, ...]]) -> tuple[Part, ...]:
        """Returns the parts for runs: each is one text, or one part of another kind."""
        parts: list[Part] = []
        left_out: list[Part] = []
        for run in runs:
            parts_shown = self._named(run[0]) if run[0].kind == "url" else self._own(run)
            if not parts_shown:
                left_out.extend(run)
                continue
            parts.extend(_omission_note(left_out))
            parts.extend(parts_shown)
            left_out = []
        return (*parts, *_omission_note(left_out))

    def _own(self, run: tuple[Part, ...]) -> tuple[Part, ...]:
        """Content of the log: inline, or stored as a file and linked."""
        if not self._is_bounded:
            return run
        size = _size_in_answer(*run)
        if size <= SHORT:
            return run if self._has_room(size) else ()
        if size > self.left:
            return self._linked(run)
        self.left -= size
        return run

    def _linked(self, run: tuple[Part, ...]) -> tuple[Part, ...]:
        part, *_ = run
        if not self.keeps or not self._may_link(part):
            return ()
        self.keeps -= 1
        file = self._find(_content(*run))
        if file is None:
            return ()
        part = part.with_content(url=file.address, media_type=part.media_type or _TYPES[part.kind])
        return (part.with_content(url=self.contents.presign_get(self.principal, file, part)),)

    def _find(self, content: bytes) -> StoredFile | None:
        return self.contents.find(self.principal.key(self.task), content)

    def _read(self, file: StoredFile) -> bytes:
        return self.contents.read(self.principal, file)

    def _named(self, part: Part) -> tuple[Part, ...]:
        content = file_of(part)
        if content is None:
            return (part,) if self._has_room(_size_in_answer(part)) else ()
        if 0 < content.size <= self.left and self.reads:
            self.reads -= 1
            try:
                value = base64.b64encode(self._read(content)).decode()
            except ContentNotFound:
                pass  # the client gets a link, which then fails
            else:
                self.left -= content.size
                return (part.with_content(raw=value),)
        if self._may_link(part):
            return (part.with_content(url=self.contents.presign_get(self.principal, content, part)),)
        return (part,) if self._has_room(_size_in_answer(part)) else ()

    @property
    def _is_bounded(self) -> bool:
        return self.limited and self.task != ""

    def _may_link(self, part: Part) -> bool:
        """Takes a link of those that are left; False without a link or without room."""
        if not self.links or not self._has_room(LINK + _size_of_description(part)):
            return False
        self.links -= 1
        return True

    def _has_room(self, size: int) -> bool:
        """Takes ``size`` bytes of the room; False if there is not enough."""
        if not self._is_bounded:
            return True
        if size <= self.small:
            self.small -= size
        elif size <= self.left:
            self.left -= size
        else:
            return False
        return True


class _Storing(_Resolution):
    """The same decisions, by which the contents are stored that an answer looks for."""

    __slots__ = ()

    def _find(self, content: bytes) -> StoredFile:
        key = self.principal.key(self.task)
        return self.contents.find(key, content) or self.contents.store(key, content)

    def _read(self, file: StoredFile) -> bytes:
        del file  # it is stored, and takes its room
        return b""


def _omission_note(left_out: Sequence[Part]) -> tuple[Part, ...]:
    """A text part in place of the omitted parts; nothing if no part was omitted."""
    if not left_out:
        return ()
    size = sum(map(part_bytes, left_out))
    note = f"{size} bytes are left out of this answer. {ADVICE}"
    return (Part(text=note, media_type=PLAIN),)


def _content(*run: Part) -> bytes:
    """The content of a run, as the bytes of a file."""
    part, *_ = run
    if part.kind == "raw":
        return base64.b64decode(str(part.value))
    if part.kind == "data":
        return dumps(part.value)
    return "".join(str(part.value) for part in run).encode()


def _runs(parts: Iterable[Part]) -> Iterator[tuple[Part, ...]]:
    """Consecutive chunks of text count as one text (``Artifact.text``); every other part is a run of its own."""
    for first, run in groupby(parts, key=_without_text):
        if first.kind == "text":
            yield tuple(run)
        else:
            yield from ((part,) for part in run)


def _without_text(part: Part) -> Part:
    """The part without its text: consecutive parts with equal results are one text."""
    return part.with_content(text="") if part.kind == "text" else part


def _size_in_answer(*run: Part) -> int:
    """The size of a run in the answer, as the size (bytes) of a file that takes as much room.

    A file is sent in base64. Everything else is sent in JSON, which the function encodes as ASCII JSON once more for
    API Gateway.
    """
    part, *_ = run
    if part.kind == "raw":
        return len(str(part.value)) * 3 // 4 + _size_of_description(part)
    bodies = (json.dumps(dumps(part.value).decode()) for part in run)
    return sum(len(body) + PART_BYTES for body in bodies) * 3 // 4 + len(run) * _size_of_description(part)


def _size_of_description(part: Part) -> int:
    """The size of a part's filename, media type and metadata, in the unit of ``_size_in_answer``."""
    values: list[Json] = [part.filename, part.media_type, part.metadata]
    return len(json.dumps(dumps(values).decode())) * 3 // 4 if any(values) else 0
