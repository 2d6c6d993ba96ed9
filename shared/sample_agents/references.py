"""Finds the earlier artifacts that a message refers to.

A client refers to them by an artifact reference in a part's metadata, by ``referenceTaskIds``, or only by the
conversation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_serverless.domain.contents import Reference, references_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from a2a_serverless import Artifact, Message, Task, TaskContext

_TOKEN: Final = re.compile(r"[a-z0-9]{2,}|\d|[\u3400-\u9fff]")
_ORDINALS: Final = {0: ("1", "first", "一"), 1: ("2", "second", "二"), 2: ("3", "third", "三")}


class FoundArtifact(NamedTuple):
    """An artifact that a message may refer to."""

    reference: Reference
    artifact: Artifact


async def meant(
    task: TaskContext, message: Message, is_wanted: Callable[[Artifact], bool]
) -> tuple[list[FoundArtifact], bool]:
    """The artifacts that ``message`` refers to, of those for which ``is_wanted`` is true, and False.

    Without a reference that is found: those of the conversation, the newest first, and whether there was a reference.
    """
    exact = references_in(message.parts)
    referred = _artifacts(await task.get_referenced_tasks(message), is_wanted)
    if matches := [one for one in referred if not exact or one.reference in exact]:
        return matches, False
    return _artifacts(await task.get_previous_tasks(), is_wanted), bool(exact or message.reference_task_ids)


def chosen(answer: str, labels: Sequence[str]) -> int | None:
    """The index of the label that an answer picks, by number or by words that not all labels have; None if unclear."""
    words = set(_TOKEN.findall(answer.casefold()))
    of = [{*_TOKEN.findall(label.casefold()), *_ORDINALS.get(index, ())} for index, label in enumerate(labels)]
    common = set.intersection(*of) if len(of) > 1 else set()
    scores = [len((tokens - common) & words) for tokens in of]
    best = max(scores, default=0)
    return scores.index(best) if best and scores.count(best) == 1 else None


def _artifacts(tasks: Iterable[Task], is_wanted: Callable[[Artifact], bool]) -> list[FoundArtifact]:
    return [
        FoundArtifact(Reference(task.id, artifact.artifact_id), artifact)
        for task in tasks
        for artifact in task.artifacts
        if is_wanted(artifact)
    ]
