"""Inline or URL: the one place that decides how content which lies beside the log is shown to its owner.

An answer carries content up to ``INLINE`` bytes in all, first come, first served, and links for the rest. So it does
with long texts, which lie in the log: one that does not fit is stored beside it and linked. Streams and webhooks only
get links for content (``budget`` 0), and every text as text: nothing limits them in all. What was stored is never
changed by this: a link is made anew for every answer.
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
LONGEST_CHARACTER: Final = 12  # bytes, in ASCII JSON
PLAIN: Final = "text/plain; charset=utf-8"


def shown(contents: Contents | None, who: Principal, answer: T, budget: int = 0) -> T:
    """The answer, with content or a link wherever a part names content of ours."""
    return answer if contents is None else _Showing(contents, who, budget, limited=budget > 0).show(answer)


@dataclass(slots=True)
class _Showing:
    """One answer in the making. ``left`` is what may still go inline, in bytes; ``task`` is the one being shown."""

    contents: Contents
    who: Principal
    left: int
    limited: bool
    task: str = ""

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
        if run[0].kind != "text":
            return map(self._part, run)
        size = _told(run) if self.limited and self.task else 0
        if size <= SHORT:
            return run
        if size > self.left:
            return (self._linked(run),)
        self.left -= size
        return run

    def _linked(self, run: tuple[Part, ...]) -> Part:
        text = "".join(str(part.value) for part in run)
        kept = self.contents.keep(self.who.key(self.task), text.encode(errors="replace"))
        part = replace(run[0], kind="url", media_type=run[0].media_type or PLAIN)
        return replace(part, value=self.contents.link(self.who, kept, part))

    def _part(self, part: Part) -> Part:
        content = file_of(part)
        if content is None:
            return part
        if content.size <= self.left:
            try:
                value = base64.b64encode(self.contents.read(self.who, content)).decode()
            except ContentMissing:
                pass  # its link says so to whoever follows it
            else:
                self.left -= content.size
                return replace(part, kind="raw", value=value)
        return replace(part, value=self.contents.link(self.who, content, part))


def _is_short(part: Part) -> bool:
    """Whether a part is a text that is told as it is, however it is written."""
    return part.kind == "text" and LONGEST_CHARACTER * len(str(part.value)) + PART_BYTES <= SHORT


def _likeness(part: Part) -> Part:
    """What a part is besides its text: parts that are alike in it may be one."""
    return replace(part, value="") if part.kind == "text" else part


def _told(run: Sequence[Part]) -> int:
    """How much of the answer a text takes, in bytes of a file's that would take as much.

    A file is told in base64. A text is told in JSON, and that, from a function to its gateway, in ASCII JSON again.
    """
    bodies = (json.dumps(part.value, ensure_ascii=False) for part in run)
    return sum(len(json.dumps(body)) + PART_BYTES for body in bodies) * 3 // 4
