"""A2A 0.3.0 over HTTP+JSON, where it differs from the JSON-RPC form, which is nearly every spelling.

The prose of 0.3 calls the two "structurally equivalent". Its SDKs speak ProtoJSON of its gRPC definition, so we print
that. On input either form is accepted. ProtoJSON does not print ``false``, so SDKs say "do not block" by a
configuration without ``blocking``.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Self, TypeAlias
from urllib.parse import quote

from pydantic import AliasChoices, Discriminator, Field, PlainSerializer, Tag, WithJsonSchema, model_validator

from a2a_serverless.protocol import v0_3, v1
from a2a_serverless.protocol.protojson import (
    Base64,
    Ident,
    MediaType,
    Metadata,
    Names,
    OptionalIdent,
    ShortText,
    Url,
    choice,
)
from a2a_serverless.protocol.v0_3 import FilePart, Model, TextPart


def _proto_name(state: v1.TaskState) -> str:
    return "TASK_STATE_CANCELLED" if state is v1.TaskState.CANCELED else f"TASK_STATE_{state.name}"


TaskState: TypeAlias = Annotated[
    v1.TaskState,
    choice(v0_3.STATES | v0_3.PROTO_STATES),
    PlainSerializer(_proto_name),
    WithJsonSchema({"enum": [_proto_name(state) for state in v1.TaskState]}),
]
Role: TypeAlias = Annotated[
    v1.Role,
    choice(v0_3.ROLES),
    PlainSerializer(lambda role: f"ROLE_{role.name}"),
    WithJsonSchema({"enum": [*v1.ROLES]}),
]


# --- requests --------------------------------------------------------------------------------------------------------


def _is_nested(value: object) -> bool:
    """Whether this is data in the proto's nesting: ``{"data": {"data": {...}}}``."""
    data = value.get("data") if isinstance(value, dict) and "kind" not in value else None
    return isinstance(data, dict) and isinstance(data.get("data"), dict)


class DataPart(v0_3.DataPart):
    """Data, nested or not."""

    @model_validator(mode="before")
    @classmethod
    def _unnest(cls, value: Any) -> Any:  # noqa: ANN401 - anything may come
        return {**value, "data": value["data"]["data"]} if _is_nested(value) else value


def _kind_of(value: object) -> str | None:
    return "@data" if _is_nested(value) else v0_3.kind_of(value)


SentPart: TypeAlias = Annotated[
    Annotated[TextPart, Tag("@text")] | Annotated[FilePart, Tag("@file")] | Annotated[DataPart, Tag("@data")],
    Discriminator(_kind_of, custom_error_type="part_kind", custom_error_message="must be one of text, file, data"),
]


class SentMessage(v0_3.Message):
    """A message from a client."""

    parts: Annotated[tuple[SentPart, ...], v1.PARTS] = Field(validation_alias=AliasChoices("content", "parts"))


class SendMessageConfiguration(v0_3.MessageSendConfiguration):
    """The configuration of a send."""

    BLOCKS = False


class SendMessageRequest(v0_3.MessageSendParams):
    """``/v1/message:send`` and ``/v1/message:stream``."""

    message: SentMessage = Field(validation_alias=AliasChoices("message", "request"))
    configuration: SendMessageConfiguration | None = None


class NestedConfig(Model):
    """An object that holds the configuration of a webhook."""

    push_notification_config: v0_3.PushNotificationConfig


def _has(value: object, *names: str) -> bool:
    return isinstance(value, dict) and any(value.get(name) is not None for name in names)


def _nesting_of(value: object) -> str:
    """The tag of the object in which a client nests a configuration, or of the configuration itself."""
    return "@nested" if _has(value, "pushNotificationConfig", "push_notification_config") else "@flat"


def _shape_of(value: object) -> str:
    return "@config" if _has(value, "config") else _nesting_of(value)


Config: TypeAlias = Annotated[
    Annotated[NestedConfig, Tag("@nested")] | Annotated[v0_3.PushNotificationConfig, Tag("@flat")],
    Discriminator(_nesting_of),
]


class ProtoRequest(Model):
    """The request in the proto's form."""

    task_id: Ident
    config_id: OptionalIdent = None
    config: Config


class NestedRequest(NestedConfig):
    """The object that the proto defines as the body."""

    task_id: Ident
    config_id: OptionalIdent = None


class FlatRequest(v0_3.PushNotificationConfig):
    """The configuration itself."""

    task_id: Ident
    config_id: OptionalIdent = None


class CreatePushNotificationConfigRequest(v0_3.Root):
    """``POST /v1/tasks/{id}/pushNotificationConfigs``, at any depth that clients nest the configuration."""

    root: Annotated[
        Annotated[ProtoRequest, Tag("@config")]
        | Annotated[NestedRequest, Tag("@nested")]
        | Annotated[FlatRequest, Tag("@flat")],
        Discriminator(_shape_of),
    ]

    def to_v1(self) -> v1.CreateTaskPushNotificationConfigRequest:
        request = self.root
        holder = request.config if isinstance(request, ProtoRequest) else request
        path = ["config"] * isinstance(request, ProtoRequest)
        if isinstance(holder, NestedConfig):
            holder, path = holder.push_notification_config, [*path, "pushNotificationConfig"]
        return holder.creation(".".join(path), request.task_id, request.config_id)


# --- answers ---------------------------------------------------------------------------------------------------------


class FilePartContent(Model):
    """A file."""

    file_with_bytes: Base64 = None
    file_with_uri: Url = None
    mime_type: MediaType = None
    name: ShortText = None


class DataPartContent(Model):
    """Data."""

    data: dict[str, Any]


class Part(Model):
    """A part: the name of its member is its kind. It has no metadata, because 0.3.0's proto has no field for them.

    Readers generated from the proto, such as the official Java client, refuse an answer with a member unknown to it.
    """

    text: str | None = None
    file: FilePartContent | None = None
    data: DataPartContent | None = None

    @classmethod
    def of(cls, part: v1.Part) -> Self:
        """A part of 1.0 in the form of 0.3's proto."""
        match part.kind:
            case "text":
                return cls(text=part.text)
            case "data":
                return cls(data=DataPartContent(data=v0_3.DataPart.of(part).data))
        content = {"file_with_bytes": part.raw, "file_with_uri": part.url}
        return cls(file=FilePartContent(**content, mime_type=part.media_type, name=part.filename))


Parts: TypeAlias = tuple[Part, ...]


class Message(Model):
    """A message, which cannot name the tasks that it refers to."""

    V1 = v1.Message
    role: Role
    message_id: Ident
    content: Parts
    context_id: OptionalIdent = None
    task_id: OptionalIdent = None
    metadata: Metadata = None
    extensions: Names | None = None

    @classmethod
    def made_of(cls, members: dict[str, Any]) -> Self:
        """The message with its parts under the proto's name."""
        return cls(content=members.pop("parts"), **members)


class Artifact(v0_3.Artifact):
    """A result, or one chunk of it."""

    parts: Parts  # type: ignore[assignment]


class TaskStatus(v0_3.TaskStatus):
    """The status of a task."""

    state: TaskState
    message: Message | None = None  # type: ignore[assignment]


class Task(v0_3.Task):
    """A task."""

    kind: None = None  # type: ignore[assignment]
    status: TaskStatus
    artifacts: tuple[Artifact, ...] | None = None
    history: tuple[Message, ...] | None = None  # type: ignore[assignment]


class TaskStatusUpdateEvent(v0_3.TaskStatusUpdateEvent):
    """A change of the status of a task."""

    kind: None = None  # type: ignore[assignment]
    status: TaskStatus


class TaskArtifactUpdateEvent(v0_3.TaskArtifactUpdateEvent):
    """A chunk of an artifact."""

    kind: None = None  # type: ignore[assignment]
    artifact: Artifact


class SendMessageResponse(Model):
    """The answer to a send: a task or a message."""

    task: Task | None = None
    message: Message | None = None


class StreamResponse(SendMessageResponse):
    """One item of a stream, or the answer to a send."""

    V1 = v1.StreamResponse
    status_update: TaskStatusUpdateEvent | None = None
    artifact_update: TaskArtifactUpdateEvent | None = None


class TaskPushNotificationConfig(Model):
    """A webhook without its secrets. Its name is its path, percent-encoded."""

    name: str
    push_notification_config: v0_3.PushNotificationConfig

    @classmethod
    def of(cls, config: v1.TaskPushNotificationConfig) -> Self:
        task_id, config_id = (quote(segment or "", safe=":@!$&'()*+,;=") for segment in (config.task_id, config.id))
        name = f"tasks/{task_id}/pushNotificationConfigs/{config_id}"
        return cls(name=name, push_notification_config=v0_3.PushNotificationConfig.of(config))


class ListTaskPushNotificationConfigResponse(Model):
    """The webhooks of a task."""

    configs: tuple[TaskPushNotificationConfig, ...]

    @classmethod
    def of(cls, page: v1.ListTaskPushNotificationConfigsResponse) -> Self:
        return cls(configs=tuple([TaskPushNotificationConfig.of(config) for config in page.configs]))


# --- requests to a peer -----------------------------------------------------------------------------------------------


class PeerConfiguration(v0_3.MessageSendConfiguration):
    """The configuration of a send, as the proto names it."""

    @classmethod
    def made_of(cls, members: dict[str, Any]) -> Self:
        """The configuration with 0.3's names for the webhook and for waiting."""
        webhook, blocking = members.pop("task_push_notification_config", None), not members.pop("return_immediately")
        return cls(**members, push_notification=webhook, blocking=blocking)


class PeerSend(v0_3.MessageSendParams):
    """The message to a peer."""

    message: Message  # type: ignore[assignment]
    configuration: PeerConfiguration | None = None


REQUESTS: Final = v0_3.Family(
    {v1.Part: Part.of},
    Message,
    PeerSend,
    PeerConfiguration,
    v0_3.PushNotificationConfig,
    v0_3.PushNotificationAuthenticationInfo,
)
FAMILY: Final = v0_3.Family(
    {
        v1.Part: Part.of,
        v1.TaskPushNotificationConfig: TaskPushNotificationConfig.of,
        v1.ListTaskPushNotificationConfigsResponse: ListTaskPushNotificationConfigResponse.of,
    },
    *(Message, Artifact, TaskStatus, Task, TaskStatusUpdateEvent, TaskArtifactUpdateEvent, StreamResponse),
)
