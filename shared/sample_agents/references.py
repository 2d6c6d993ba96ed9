"""Finds the earlier artifacts that a message refers to.

A client refers to them by an artifact reference in a part's metadata, by ``referenceTaskIds``, or only by the
conversation. An artifact that refines an older one refers to it in the same way, so that the older version is not found
again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.references import Reference, references_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from a2a_serverless import Artifact, Message, Task, TaskContext

_TOKEN: Final = re.compile(r"[a-z0-9]{2,}|\d|[\u3400-\u9fff]")
_YES: Final = re.compile(r"\b(?:yes|yeah|right|ok|okay|correct|sure)\b|^(?:是|对|好|嗯|没错)")
_ORDINALS: Final = (("1", "first", "第一"), ("2", "second", "第二"), ("3", "third", "第三"), ("4", "fourth", "第四"))


@dataclass(frozen=True, slots=True)
class FoundArtifact:
    """An artifact that a message may refer to."""

    reference: Reference
    artifact: Artifact


@dataclass(frozen=True, slots=True)
class ArtifactMatches:
    """The artifacts that a message may refer to. ``guessed``: what it refers to was not found, so these are a guess."""

    found: tuple[FoundArtifact, ...]
    guessed: bool


async def meant(task: TaskContext, message: Message, wanted: Callable[[Artifact], bool]) -> ArtifactMatches:
    """Finds the artifacts that ``message`` refers to, among those for which ``wanted`` is true.

    Without a reference that is found: the newest versions in the conversation.
    """
    exact = references_in(message.parts)
    referred = _artifacts(await task.get_referenced_tasks(message), wanted)
    if found := [one for one in referred if not exact or one.reference in exact]:
        return ArtifactMatches(tuple(found), guessed=False)
    newest = _newest(_artifacts(await task.get_previous_tasks(), wanted))
    return ArtifactMatches(tuple(newest), guessed=bool(exact or message.reference_task_ids))


def chosen(answer: str, labels: Sequence[str]) -> int | None:
    """The index of the label that an answer picks, by number or by words that not all labels have; None if unclear."""
    text = answer.casefold()
    words = _TOKEN.findall(text)
    if len(labels) == 1 and _YES.search(text):
        return 0
    for index, (number, *names) in enumerate(_ORDINALS[: len(labels)]):
        if [word for word in words if word.isdigit()] == [number] or any(name in text for name in names):
            return index
    of = [set(_TOKEN.findall(label.casefold())) for label in labels]
    common = set.intersection(*of) if of else set()
    scores = [len((tokens - common) & set(words)) for tokens in of]
    best = max(scores, default=0)
    return scores.index(best) if best and scores.count(best) == 1 else None


def _artifacts(tasks: Iterable[Task], wanted: Callable[[Artifact], bool]) -> list[FoundArtifact]:
    return [
        FoundArtifact(Reference(task.id, artifact.artifact_id), artifact)
        for task in tasks
        for artifact in task.artifacts
        if wanted(artifact)
    ]


def _newest(found: list[FoundArtifact]) -> list[FoundArtifact]:
    """The artifacts that no other one refines."""
    old = {
        reference
        for one in found
        for reference in references_in(one.artifact.parts)
        if any(reference == other.reference and other.artifact.name == one.artifact.name for other in found)
    }
    return [one for one in found if one.reference not in old]
