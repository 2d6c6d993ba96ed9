"""What a value of the model becomes on its way through 0.3: the list of what that version cannot say."""

from dataclasses import replace
from functools import partial, singledispatch
from typing import TypeVar, cast

from a2a_serverless.domain.events import ArtifactEvent, StatusEvent
from a2a_serverless.domain.model import Artifact, Message, Part, Task, TaskStatus

T = TypeVar("T")


def without_losses(value: T, *, references: bool = True) -> T:
    """The value as a 0.3 peer gets it. REST also loses the references of a message."""
    return cast("T", _lossy(value, references))


@singledispatch
def _lossy(value: object, _: bool) -> object:  # noqa: FBT001 - singledispatch passes by position
    return value


@_lossy.register
def _(part: Part, _: bool) -> Part:  # noqa: FBT001
    """Text and data have neither media type nor filename; wrapping forgets empty metadata."""
    if part.kind in {"text", "data"}:
        part = replace(part, media_type=None, filename=None)
    if part.kind == "data" and not isinstance(part.value, dict):
        part = replace(part, metadata=part.metadata or None)
    return part


@_lossy.register
def _(message: Message, references: bool) -> Message:  # noqa: FBT001
    kept = message.reference_task_ids if references else ()
    return replace(message, parts=_all(message.parts, references=references), reference_task_ids=kept)


@_lossy.register
def _(artifact: Artifact, references: bool) -> Artifact:  # noqa: FBT001
    return replace(artifact, parts=_all(artifact.parts, references=references))


@_lossy.register
def _(status: TaskStatus, references: bool) -> TaskStatus:  # noqa: FBT001
    return replace(status, message=without_losses(status.message, references=references))


@_lossy.register
def _(task: Task, references: bool) -> Task:  # noqa: FBT001
    return replace(
        task,
        status=without_losses(task.status, references=references),
        artifacts=_all(task.artifacts, references=references),
        history=_all(task.history, references=references),
    )


@_lossy.register
def _(event: StatusEvent, references: bool) -> StatusEvent:  # noqa: FBT001
    return replace(event, message=without_losses(event.message, references=references))


@_lossy.register
def _(event: ArtifactEvent, references: bool) -> ArtifactEvent:  # noqa: FBT001
    return replace(event, artifact=without_losses(event.artifact, references=references))


def _all(values: tuple[T, ...], *, references: bool) -> tuple[T, ...]:
    return tuple(map(partial(without_losses, references=references), values))
