"""The HTTP shapes from before 0.3 (``/tasks/send``), for those who still speak them under ``/legacy/{agent}``.

They know tasks only, six states, parts that name their ``type``. A state that they lack becomes the nearest one, a
direct message becomes a task that has completed with it, and artifacts come whole in a task (``index`` counts them).
A stream tells the whole task after each change of its status. What comes in is read as 0.3 is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import Field, PlainSerializer, WithJsonSchema

from a2a_serverless.protocol import v0_3, v1
from a2a_serverless.protocol.protojson import Ident

if TYPE_CHECKING:
    from collections.abc import Callable

_NEAREST: Final = {v1.TaskState.REJECTED: "failed", v1.TaskState.AUTH_REQUIRED: "input-required"}

TaskState: TypeAlias = Annotated[
    v1.TaskState,
    PlainSerializer(lambda state: _NEAREST.get(state, state.value)),
    WithJsonSchema({"enum": [state.value for state in v1.TaskState if state not in _NEAREST]}),
]


class TextPart(v0_3.TextPart):
    """A text."""

    kind: Literal["text"] = Field("text", serialization_alias="type")


class FilePart(v0_3.FilePart):
    """A file."""

    kind: Literal["file"] = Field("file", serialization_alias="type")


class DataPart(v0_3.DataPart):
    """Data."""

    kind: Literal["data"] = Field("data", serialization_alias="type")


Part: TypeAlias = TextPart | FilePart | DataPart
_CLASSES: Final[dict[str, Callable[..., Part]]] = {"text": TextPart, "file": FilePart, "data": DataPart}


def part_of(part: v1.Part) -> Part:
    """A part of 1.0 with ``type`` for ``kind``."""
    old = v0_3.part_of(part)
    return _CLASSES[old.kind](**{name: value for name, value in old.__dict__.items() if name != "kind"})


class Message(v0_3.Message):
    """One turn of a conversation."""

    kind: None = None  # type: ignore[assignment]
    parts: tuple[Part, ...]


class Artifact(v0_3.Artifact):
    """A result, or one chunk of it."""

    parts: tuple[Part, ...]
    index: int = 0
    append: bool = False
    last_chunk: bool = True


class TaskStatus(v0_3.TaskStatus):
    """Where a task stands."""

    state: TaskState
    message: Message | None = None


class Task(v0_3.Task):
    """A task."""

    kind: None = None  # type: ignore[assignment]
    context_id: str
    status: TaskStatus
    artifacts: tuple[Artifact, ...]
    history: tuple[Message, ...]

    @classmethod
    def made_of(cls, members: dict[str, Any]) -> Self:
        """With its artifacts and its history, even none, and its artifacts counted."""
        artifacts = [one.model_copy(update={"index": n}) for n, one in enumerate(members.pop("artifacts") or ())]
        history, context = members.pop("history") or (), members.pop("context_id", "")
        return cls(**members, artifacts=tuple(artifacts), history=history, context_id=context)


class TaskUpdate(v0_3.Model):
    """One line of a stream: the whole task after a change of its status."""

    task: Task


class ArtifactUpdate(v0_3.Model):
    """One line of a stream: a chunk of an artifact."""

    task_id: str
    context_id: str
    artifact: Artifact


class TaskParams(v0_3.Model):
    """``GET /tasks/{id}``."""

    V1 = v1.GetTaskRequest
    id: Ident


_FAMILY: Final = v0_3.Family(part_of, Message, Artifact, TaskStatus, Task)


def task_of(answer: v1.Task | v1.Message, at: int) -> Task:
    """The answer to every request; ``at`` (ms) is the time of a task that is made of a message."""
    task: Task = _FAMILY.of(answer if isinstance(answer, v1.Task) else _around(answer, at))
    return task


def update_of(item: v1.Task | v1.Message | v1.TaskArtifactUpdateEvent, at: int) -> TaskUpdate | ArtifactUpdate:
    """One line of a stream, which has the whole task in place of a change of its status."""
    if not isinstance(item, v1.TaskArtifactUpdateEvent):
        return TaskUpdate(task=task_of(item, at))
    chunk = _FAMILY.of(item.artifact).model_copy(update={"append": item.append, "last_chunk": item.last_chunk})
    return ArtifactUpdate(task_id=item.task_id, context_id=item.context_id, artifact=chunk)


def _around(message: v1.Message, at: int) -> v1.Task:
    status = v1.TaskStatus(state=v1.TaskState.COMPLETED, timestamp=at, message=message)
    return v1.Task(id=message.message_id, context_id=message.context_id, status=status)
