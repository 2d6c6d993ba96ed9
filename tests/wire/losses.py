"""What a value of the model becomes on its way through 0.3: the list of what that version cannot say."""

from dataclasses import replace
from functools import partial, singledispatch
from typing import TypeVar, cast

from a2a_serverless.domain.events import ArtifactEvent, StatusEvent
from a2a_serverless.domain.model import Artifact, Message, Part, Task, TaskStatus

T = TypeVar("T")


def without_losses(value: T, *, rest: bool = False) -> T:
    """The value as a 0.3 peer gets it. REST also loses the references of a message and what a part has besides."""
    return cast("T", _lossy(value, rest))


@singledispatch
def _lossy(value: object, _: bool) -> object:  # noqa: FBT001 - singledispatch passes by position
    return value


@_lossy.register
def _(part: Part, rest: bool) -> Part:  # noqa: FBT001
    """Text and data have neither media type nor filename; wrapping forgets empty metadata, and REST that it wraps."""
    if part.kind in {"text", "data"}:
        part = replace(part, media_type=None, filename=None)
    if part.kind == "data" and not isinstance(part.value, dict):
        part = replace(part, metadata=part.metadata or None, value={"value": part.value} if rest else part.value)
    return replace(part, metadata=None) if rest else part


@_lossy.register
def _(message: Message, rest: bool) -> Message:  # noqa: FBT001
    kept = () if rest else message.reference_task_ids
    return replace(message, parts=_all(message.parts, rest=rest), reference_task_ids=kept)


@_lossy.register
def _(artifact: Artifact, rest: bool) -> Artifact:  # noqa: FBT001
    return replace(artifact, parts=_all(artifact.parts, rest=rest))


@_lossy.register
def _(status: TaskStatus, rest: bool) -> TaskStatus:  # noqa: FBT001
    return replace(status, message=without_losses(status.message, rest=rest))


@_lossy.register
def _(task: Task, rest: bool) -> Task:  # noqa: FBT001
    return replace(
        task,
        status=without_losses(task.status, rest=rest),
        artifacts=_all(task.artifacts, rest=rest),
        history=_all(task.history, rest=rest),
    )


@_lossy.register
def _(event: StatusEvent, rest: bool) -> StatusEvent:  # noqa: FBT001
    return replace(event, message=without_losses(event.message, rest=rest))


@_lossy.register
def _(event: ArtifactEvent, rest: bool) -> ArtifactEvent:  # noqa: FBT001
    return replace(event, artifact=without_losses(event.artifact, rest=rest))


def _all(values: tuple[T, ...], *, rest: bool) -> tuple[T, ...]:
    return tuple(map(partial(without_losses, rest=rest), values))
