"""What a value of the model becomes on its way through 0.3: the list of what that version cannot say."""

from dataclasses import replace
from functools import singledispatch
from typing import TypeVar, cast

from a2a_serverless.domain.events import ArtifactEvent, StatusEvent
from a2a_serverless.domain.model import Artifact, Message, Part, Task, TaskStatus

T = TypeVar("T")


def without_losses(value: T) -> T:
    """The value as a 0.3 peer gets it."""
    return cast("T", _lossy(value))


@singledispatch
def _lossy(value: object) -> object:
    return value


@_lossy.register
def _(part: Part) -> Part:
    """Text and data have neither media type nor filename; wrapping forgets empty metadata."""
    if part.kind in {"text", "data"}:
        part = replace(part, media_type=None, filename=None)
    if part.kind == "data" and not isinstance(part.value, dict):
        part = replace(part, metadata=part.metadata or None)
    return part


@_lossy.register
def _(message: Message) -> Message:
    return replace(message, parts=_parts(message.parts))


@_lossy.register
def _(artifact: Artifact) -> Artifact:
    return replace(artifact, parts=_parts(artifact.parts))


@_lossy.register
def _(status: TaskStatus) -> TaskStatus:
    return replace(status, message=status.message and without_losses(status.message))


@_lossy.register
def _(task: Task) -> Task:
    return replace(
        task,
        status=without_losses(task.status),
        artifacts=tuple(map(without_losses, task.artifacts)),
        history=tuple(map(without_losses, task.history)),
    )


@_lossy.register
def _(event: StatusEvent) -> StatusEvent:
    return replace(event, message=event.message and without_losses(event.message))


@_lossy.register
def _(event: ArtifactEvent) -> ArtifactEvent:
    return replace(event, artifact=without_losses(event.artifact))


def _parts(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return tuple(map(without_losses, parts))
