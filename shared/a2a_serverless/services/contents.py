"""Inline or URL: the one place that decides how content which lies beside the log is shown to its owner.

An answer carries content up to ``INLINE`` bytes in all, first come, first served, and links for the rest. So it does
with what lies in the log, texts, data and small files: what does not fit is stored beside it and linked. Streams and
webhooks only get links for content (``budget`` 0), and what lies in the log as it is: nothing limits them in all. What
was stored is never changed by this: a link is made anew for every answer.

An answer costs a bounded number of calls: ``READS`` contents are read for it and ``KEPT`` are stored. After ``LINKS``
links a part keeps the address that names its content. Links and what is short have ``SMALL`` bytes of their own and
then the room that content has left. What there is neither room nor a call for is left out, and the answer says so.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeVar

from a2a_serverless.domain.contents import ContentNotFound, file_of
from a2a_serverless.domain.events import ArtifactEvent, StatusEvent
from a2a_serverless.domain.model import PART_BYTES, Artifact, Message, Part, Task, part_bytes
from a2a_serverless.domain.queries import TaskPage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from a2a_serverless.domain.model import Principal
    from a2a_serverless.ports import ContentStore

T = TypeVar("T")

INLINE: Final = 4 * 1024 * 1024
SHORT: Final = 2 * 1024  # bytes of text: a link is as long
READS: Final = 16
KEPT: Final = 16
LINKS: Final = 256
SMALL: Final = 256 * 1024
LINK: Final = 1536  # bytes that a link takes, in bytes of a file's that would take as much
PLAIN: Final = "text/plain; charset=utf-8"
_TYPES: Final = {"text": PLAIN, "data": "application/json", "raw": "application/octet-stream"}


def resolve_contents(contents: ContentStore | None, principal: Principal, answer: T, budget: int = 0) -> T:
    """The answer, with content or a link wherever a part names content of ours."""
    return answer if contents is None else _Resolution(contents, principal, budget, limited=budget > 0).show(answer)


@dataclass(slots=True)
class _Resolution:
    """One answer in the making. ``left`` is what may still go inline, in bytes; ``task`` is the one being shown.

    ``reads``, ``keeps`` and ``links`` are how many of them may still be made, ``small`` is the room for what is short.
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
        """The answer; what holds no parts goes through as it is."""
        shown: object = answer
        if isinstance(answer, Message):
            shown = self._message(answer)
        elif isinstance(answer, Task):
            shown = self._task(answer)
        elif isinstance(answer, TaskPage):
            shown = replace(answer, tasks=tuple(map(self._task, answer.tasks)))
        elif isinstance(answer, ArtifactEvent):
            shown = replace(answer, artifact=self._artifact(answer.artifact))
        elif isinstance(answer, StatusEvent) and answer.message:
            shown = replace(answer, message=self._message(answer.message))
        return shown  # type: ignore[return-value]  # each branch gives the class that it got

    def _task(self, task: Task) -> Task:
        self.task, status = task.task_id, task.status
        if status.message:
            status = replace(status, message=self._message(status.message))
        artifacts, history = tuple(map(self._artifact, task.artifacts)), tuple(map(self._message, task.history))
        return replace(task, status=status, artifacts=artifacts, history=history)

    def _message(self, message: Message) -> Message:
        return replace(message, parts=self._parts((part,) for part in message.parts))

    def _artifact(self, artifact: Artifact) -> Artifact:
        """Chunks of text that follow each other are one text (``Artifact.text``)."""
        runs = (tuple(run) for _, run in groupby(artifact.parts, key=_without_text))
        apart = (one for run in runs for one in ([run] if run[0].kind == "text" else zip(run, strict=True)))
        return replace(artifact, parts=self._parts(apart))

    def _parts(self, runs: Iterable[tuple[Part, ...]]) -> tuple[Part, ...]:
        told: list[Part] = []
        left_out: list[Part] = []
        for run in runs:
            shown = self._run(run)
            if not shown:
                left_out.extend(run)
                continue
            told.extend(_omission_note(left_out))
            told.extend(shown)
            left_out = []
        return (*told, *_omission_note(left_out))

    def _run(self, run: tuple[Part, ...]) -> tuple[Part, ...]:
        """The run, one text or one part of another kind, as it is shown; nothing when it is left out."""
        return self._named(run[0]) if run[0].kind == "url" else self._own(run)

    def _own(self, run: tuple[Part, ...]) -> tuple[Part, ...]:
        """What lies in the log, as it is or beside it."""
        size = _size_in_answer(run) if self._is_bounded else 0
        if size <= SHORT:
            return run if self._has_room(size) else ()
        if size > self.left:
            return self._linked(run)
        self.left -= size
        return run

    def _linked(self, run: tuple[Part, ...]) -> tuple[Part, ...]:
        part = run[0]
        if not self.keeps or not self._may_link(part):
            return ()
        self.keeps -= 1
        kept = self.contents.store(self.principal.key(self.task), _content(run))
        part = replace(part, kind="url", media_type=part.media_type or _TYPES[part.kind])
        return (replace(part, value=self.contents.presign_get(self.principal, kept, part)),)

    def _named(self, part: Part) -> tuple[Part, ...]:
        content = file_of(part)
        if content is None:
            return (part,) if self._has_room(_size_in_answer((part,))) else ()
        if 0 < content.size <= self.left and self.reads:
            self.reads -= 1
            try:
                value = base64.b64encode(self.contents.read(self.principal, content)).decode()
            except ContentNotFound:
                pass  # its link says so to whoever follows it
            else:
                self.left -= content.size
                return (replace(part, kind="raw", value=value),)
        if self._may_link(part):
            return (replace(part, value=self.contents.presign_get(self.principal, content, part)),)
        return (part,) if self._has_room(_size_in_answer((part,))) else ()

    @property
    def _is_bounded(self) -> bool:
        return self.limited and self.task != ""

    def _may_link(self, part: Part) -> bool:
        """Whether there is one more link, which is counted then."""
        if not self.links or not self._has_room(LINK + _size_of_description(part)):
            return False
        self.links -= 1
        return True

    def _has_room(self, size: int) -> bool:
        """Whether so many bytes have room, which is taken then."""
        if not self._is_bounded:
            return True
        if size <= self.small:
            self.small -= size
        elif size <= self.left:
            self.left -= size
        else:
            return False
        return True


def _omission_note(left_out: Sequence[Part]) -> tuple[Part, ...]:
    """The part that stands for those that are left out."""
    if not left_out:
        return ()
    size = sum(map(part_bytes, left_out))
    said = f"{size} bytes are left out of this answer. Ask for less: one task, a shorter history."
    return (Part("text", said, PLAIN),)


def _content(run: Sequence[Part]) -> bytes:
    """What the parts of a run say, as a file."""
    if run[0].kind == "raw":
        return base64.b64decode(str(run[0].value))
    if run[0].kind == "data":
        return json.dumps(run[0].value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    return "".join(str(part.value) for part in run).encode(errors="replace")


def _without_text(part: Part) -> Part:
    """What a part is besides its text: parts that are alike in it may be one."""
    return replace(part, value="") if part.kind == "text" else part


def _size_in_answer(run: Sequence[Part]) -> int:
    """How much of the answer a run takes, in bytes of a file's that would take as much.

    A file is told in base64. All else is told in JSON, and that, from a function to its gateway, in ASCII JSON again.
    """
    if run[0].kind == "raw":
        return len(str(run[0].value)) * 3 // 4 + _size_of_description(run[0])
    bodies = (json.dumps(part.value, ensure_ascii=False) for part in run)
    return sum(len(json.dumps(body)) + PART_BYTES for body in bodies) * 3 // 4 + _size_of_description(run[0])


def _size_of_description(part: Part) -> int:
    """How much what is said about a part takes."""
    said = part.filename or "", part.media_type or "", part.metadata or ""
    return len(json.dumps(json.dumps(said, ensure_ascii=False))) * 3 // 4 if any(said) else 0
