"""The codecs of 0.3, and of the older HTTP API (``/tasks/send``) that is served under ``/legacy/{agent}``.

The older shapes have tasks only, six states, and parts with a ``type``. A state that they lack becomes the nearest
state that they have. A direct message becomes a completed task that holds it. Their clients read results from artifacts
only: the message of a completed task without artifacts is its artifact, too. A task contains whole artifacts, which
``index`` counts. A stream sends the whole task after each change of its status. Requests are read as those of 0.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Self, TypeAlias

from pydantic import PlainSerializer, WithJsonSchema

from a2a_serverless.domain.errors import MethodNotFound
from a2a_serverless.protocol import v0_3, v0_3_rest, v1
from a2a_serverless.protocol.jsonrpc import NOTHING
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.protojson import Ident, Metadata, read_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.protocol.protojson import ProtoModel

_NEAREST: Final = {v1.TaskState.REJECTED: "failed", v1.TaskState.AUTH_REQUIRED: "input-required"}

TaskState: TypeAlias = Annotated[
    v1.TaskState,
    PlainSerializer(lambda state: _NEAREST.get(state, state.value)),
    WithJsonSchema({"enum": [state.value for state in v1.TaskState if state not in _NEAREST]}),
]


class Part(v0_3.Model):
    """A part; its ``type`` is the ``kind`` of 0.3, and names its content member."""

    type: str
    text: str | None = None
    file: v0_3.FileContent | None = None
    data: dict[str, Any] | None = None
    metadata: Metadata = None

    @classmethod
    def of(cls, part: v1.Part) -> Self:
        """A part of 1.0 in the older form."""
        old = v0_3.part_of(part)
        return cls(type=old.kind, **{name: value for name, value in old.__dict__.items() if name != "kind"})


class Message(v0_3.Message):
    """One turn of a conversation."""

    kind: None = None  # type: ignore[assignment]
    parts: tuple[Part, ...]  # type: ignore[assignment]


class Artifact(v0_3.Artifact):
    """A result, or one chunk of it."""

    parts: tuple[Part, ...]  # type: ignore[assignment]
    index: int = 0
    append: bool = False
    last_chunk: bool = True


class TaskStatus(v0_3.TaskStatus):
    """The status of a task."""

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
        """The task with its artifacts, counted, and its history, even if both are empty."""
        artifacts = [
            artifact.model_copy(update={"index": n}) for n, artifact in enumerate(members.pop("artifacts") or ())
        ]
        history, context = members.pop("history") or (), members.pop("context_id", "")
        return cls(**members, artifacts=tuple(artifacts), history=history, context_id=context)


class ArtifactUpdate(v0_3.Model):
    """One line of a stream: a chunk of an artifact."""

    V1 = v1.TaskArtifactUpdateEvent
    task_id: str
    context_id: str
    artifact: Artifact

    @classmethod
    def made_of(cls, members: dict[str, Any]) -> Self:
        """The chunk, whose artifact says how it continues."""
        flags = {name: members[name] for name in ("append", "last_chunk")}
        artifact = members["artifact"].model_copy(update=flags)
        return cls(task_id=members["task_id"], context_id=members["context_id"], artifact=artifact)


class TaskParams(v0_3.Model):
    """``GET /tasks/{id}``."""

    V1 = v1.GetTaskRequest
    id: Ident


class RpcCodec:
    """0.3 over JSON-RPC: bare objects with a ``kind``. There is no ListTasks in 0.3."""

    requests: Mapping[Operation, Any] = {
        Operation.SEND: v0_3.MessageSendParams,
        Operation.STREAM: v0_3.MessageSendParams,
        Operation.GET: v0_3.TaskQueryParams,
        Operation.CANCEL: v0_3.TaskIdParams,
        Operation.SUBSCRIBE: v0_3.ResubscribeParams,
        Operation.PUSH_CREATE: v0_3.TaskPushNotificationConfig,
        Operation.PUSH_GET: v0_3.GetTaskPushNotificationConfigParams,
        Operation.PUSH_LIST: v0_3.ListTaskPushNotificationConfigParams,
        Operation.PUSH_DELETE: v0_3.DeleteTaskPushNotificationConfigParams,
        Operation.CARD: v0_3.AuthenticatedExtendedCardParams,
    }
    family = v0_3.FAMILY
    whole_tasks = False
    subscription_ends = v0_3.FINAL

    def read(self, operation: Operation, params: object) -> Any:  # noqa: ANN401
        """The request."""
        if operation not in self.requests:
            raise MethodNotFound
        return read_model(self.requests[operation], params).to_v1()

    def answer(self, operation: Operation, answer: ProtoModel | None) -> bytes:
        """The JSON of the result of a call that does not stream."""
        del operation
        return NOTHING if answer is None else self.family.json_bytes(answer)

    def stream_item(self, item: v1.StreamContent) -> bytes:
        """The JSON of one item of a stream."""
        return self.family.json_bytes(item)


class RestCodec(RpcCodec):
    """0.3 over HTTP+JSON: the proto's objects."""

    requests: Mapping[Operation, Any] = {
        **RpcCodec.requests,
        Operation.SEND: v0_3_rest.SendMessageRequest,
        Operation.STREAM: v0_3_rest.SendMessageRequest,
        Operation.PUSH_CREATE: v0_3_rest.CreatePushNotificationConfigRequest,
    }
    family = v0_3_rest.FAMILY

    def answer(self, operation: Operation, answer: ProtoModel | None) -> bytes:
        """The JSON of the result; that of a send is wrapped, as in a stream."""
        if operation is Operation.SEND and answer:
            answer = v1.stream_response(answer)
        return super().answer(operation, answer)

    def stream_item(self, item: v1.StreamContent) -> bytes:
        return self.family.json_bytes(v1.stream_response(item))


class LegacyCodec(RpcCodec):
    """The shapes from before 0.3, for one request that came in at ``at`` (ms)."""

    requests: Mapping[Operation, Any] = {
        Operation.SEND: v0_3.MessageSendParams,
        Operation.STREAM: v0_3.MessageSendParams,
        Operation.GET: TaskParams,
        Operation.CANCEL: v0_3.TaskIdParams,
    }
    family = v0_3.Family({v1.Part: Part.of}, Message, Artifact, TaskStatus, Task, ArtifactUpdate)
    whole_tasks = True

    def __init__(self, at: int) -> None:
        self._at = at

    def answer(self, operation: Operation, answer: ProtoModel | None) -> bytes:
        """The task, or the message as a completed task."""
        if isinstance(answer, v1.Message):
            status = v1.TaskStatus(state=v1.TaskState.COMPLETED, timestamp=self._at, message=answer)
            answer = v1.Task(id=answer.message_id, context_id=answer.context_id, status=status)
        if isinstance(answer, v1.Task) and answer.status.state is v1.TaskState.COMPLETED and not answer.artifacts:
            result = answer.status.message
            artifacts = (v1.Artifact(artifact_id=result.message_id, parts=result.parts),) if result else ()
            answer = answer.model_copy(update={"artifacts": artifacts})
        return super().answer(operation, answer)

    def stream_item(self, item: v1.StreamContent) -> bytes:
        """One ``data`` line: a chunk of an artifact, or the whole task (``whole_tasks``)."""
        line = self.answer(Operation.STREAM, item)
        return line if isinstance(item, v1.TaskArtifactUpdateEvent) else b'{"task":%b}' % line
