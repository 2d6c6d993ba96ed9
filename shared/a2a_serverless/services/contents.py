"""Inline or URL: the one place that decides how content which lies beside the log is shown to its owner.

An answer carries content up to ``INLINE`` bytes in all, first come, first served, and links for the rest. Streams and
webhooks only get links (``budget`` 0). What was stored is never changed by this: a link is made anew for every answer.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from a2a_serverless.domain.contents import ContentMissing, file_of
from a2a_serverless.domain.events import ArtifactEvent, StatusEvent
from a2a_serverless.domain.model import Artifact, Message, Part, Task
from a2a_serverless.domain.queries import TaskPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_serverless.domain.model import Principal
    from a2a_serverless.ports import Contents

T = TypeVar("T")

INLINE: Final = 4 * 1024 * 1024


def shown(contents: Contents | None, who: Principal, answer: T, budget: int = 0) -> T:
    """The answer, with content or a link wherever a part names content of ours."""
    return answer if contents is None else _Showing(contents, who, budget).show(answer)


@dataclass(slots=True)
class _Showing:
    """One answer in the making. ``left`` is what may still go inline, in bytes."""

    contents: Contents
    who: Principal
    left: int

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
        status = task.status
        if status.message:
            status = replace(status, message=self._message(status.message))
        artifacts, history = tuple(map(self._artifact, task.artifacts)), tuple(map(self._message, task.history))
        return replace(task, status=status, artifacts=artifacts, history=history)

    def _message(self, message: Message) -> Message:
        return replace(message, parts=self._parts(message.parts))

    def _artifact(self, artifact: Artifact) -> Artifact:
        return replace(artifact, parts=self._parts(artifact.parts))

    def _parts(self, parts: Sequence[Part]) -> tuple[Part, ...]:
        return tuple(map(self._part, parts))

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
