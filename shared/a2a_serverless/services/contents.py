"""Inline or URL: the one place that decides how content which lies beside the log is shown to its owner.

An answer carries content up to ``INLINE`` bytes in all, first come, first served, and links for the rest. So it does
with what lies in the log, texts, data and small files: what does not fit is stored beside it and linked. Streams and
webhooks only get links for content (``budget`` 0), and what lies in the log as it is: nothing limits them in all. What
was stored is never changed by this: a link is made anew for every answer.

An answer costs a bounded number of calls: ``READS`` contents are read for it and ``KEPT`` are stored; the rest is a
link, or a word that it was left out. After ``LINKS`` links a part keeps the address that names its content.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeVar

from a2a_serverless.domain.contents import ContentMissing, file_of
from a2a_serverless.domain.events import ArtifactEvent, StatusEvent
from a2a_serverless.domain.model import PART_BYTES, Artifact, Message, Part, Task
from a2a_serverless.domain.queries import TaskPage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from a2a_serverless.domain.model import Principal
    from a2a_serverless.ports import Contents

T = TypeVar("T")

INLINE: Final = 4 * 1024 * 1024
SHORT: Final = 2 * 1024  # bytes of text: a link is as long
READS: Final = 16
KEPT: Final = 16
LINKS: Final = 256
LONGEST_CHARACTER: Final = 12  # bytes, in ASCII JSON
PLAIN: Final = "text/plain; charset=utf-8"
_TYPES: Final = {"text": PLAIN, "data": "application/json", "raw": "application/octet-stream"}


def shown(contents: Contents | None, who: Principal, answer: T, budget: int = 0) -> T:
    """The answer, with content or a link wherever a part names content of ours."""
    return answer if contents is None else _Showing(contents, who, budget, limited=budget > 0).show(answer)


@dataclass(slots=True)
class _Showing:
    """One answer in the making. ``left`` is what may still go inline, in bytes; ``task`` is the one being shown.

    ``reads``, ``keeps`` and ``links`` are how many of them may still be made.
    """

    contents: Contents
    who: Principal
    left: int
    limited: bool
    task: str = ""
    reads: int = READS
    keeps: int = KEPT
    links: int = LINKS

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
        if all(map(_is_short, message.parts)):
            return message
        return replace(message, parts=self._parts((part,) for part in message.parts))

    def _artifact(self, artifact: Artifact) -> Artifact:
        """Chunks of text that follow each other are one text (``Artifact.text``)."""
        runs = (tuple(run) for _, run in groupby(artifact.parts, key=_likeness))
        return replace(artifact, parts=self._parts(runs))

    def _parts(self, runs: Iterable[tuple[Part, ...]]) -> tuple[Part, ...]:
        return tuple(part for run in runs for part in self._run(run))

    def _run(self, run: tuple[Part, ...]) -> Iterable[Part]:
        if run[0].kind == "text":
            return self._said(run)
        return tuple(
            shown for part in run for shown in (self._said((part,)) if part.kind != "url" else [self._part(part)])
        )

    def _said(self, run: tuple[Part, ...]) -> Iterable[Part]:
        """What lies in the log, as it is or beside it; ``run`` is one text, or one part of another kind."""
        size = _told(run) if self.limited and self.task else 0
        if size <= SHORT:
            return run
        if size > self.left:
            return (self._linked(run),)
        self.left -= size
        return run

    def _linked(self, run: tuple[Part, ...]) -> Part:
        part, content = run[0], _content(run)
        if not self.keeps or not self.links:
            said = f"{len(content)} bytes are left out of this answer. Ask for less: one task, a shorter history."
            return replace(part, kind="text", value=said, media_type=PLAIN)
        self.keeps, self.links = self.keeps - 1, self.links - 1
        kept = self.contents.keep(self.who.key(self.task), content)
        part = replace(part, kind="url", media_type=part.media_type or _TYPES[part.kind])
        return replace(part, value=self.contents.link(self.who, kept, part))

    def _part(self, part: Part) -> Part:
        content = file_of(part)
        if content is None:
            return part
        if 0 < content.size <= self.left and self.reads:
            self.reads -= 1
            try:
                value = base64.b64encode(self.contents.read(self.who, content)).decode()
            except ContentMissing:
                pass  # its link says so to whoever follows it
            else:
                self.left -= content.size
                return replace(part, kind="raw", value=value)
        if not self.links:
            return part
        self.links -= 1
        return replace(part, value=self.contents.link(self.who, content, part))


def _content(run: Sequence[Part]) -> bytes:
    """What the parts of a run say, as a file."""
    if run[0].kind == "raw":
        return base64.b64decode(str(run[0].value))
    if run[0].kind == "data":
        return json.dumps(run[0].value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    return "".join(str(part.value) for part in run).encode(errors="replace")


def _is_short(part: Part) -> bool:
    """Whether a part is a text that is told as it is, however it is written."""
    return part.kind == "text" and LONGEST_CHARACTER * len(str(part.value)) + PART_BYTES <= SHORT


def _likeness(part: Part) -> Part:
    """What a part is besides its text: parts that are alike in it may be one."""
    return replace(part, value="") if part.kind == "text" else part


def _told(run: Sequence[Part]) -> int:
    """How much of the answer a run takes, in bytes of a file's that would take as much.

    A file is told in base64. All else is told in JSON, and that, from a function to its gateway, in ASCII JSON again.
    """
    if run[0].kind == "raw":
        return len(str(run[0].value)) * 3 // 4
    bodies = (json.dumps(part.value, ensure_ascii=False) for part in run)
    return sum(len(json.dumps(body)) + PART_BYTES for body in bodies) * 3 // 4
