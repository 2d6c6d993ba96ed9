"""A2A 0.3.0 over JSON-RPC, and its translation to and from 1.0.

Lenient on input, because 0.3 was written down three times (types, proto, prose) and clients follow any of them: parts
with or without ``kind``, ``bytes`` or ``fileWithBytes``, ``uri`` or ``url``, ``mimeType`` or ``mediaType``, ``parts``
or ``content``, ``user`` or ``ROLE_USER``, data that is a list. Exact on output: the published JSON schema.

A member that both versions have has the same field name in both. So ``to_v1`` (for requests) and ``Family.of`` (for
answers) copy the fields and translate their values. 0.3 cannot express: media type and filename of text and data
parts, data that is not an object (wrapped in ``value`` and marked), more than one authentication scheme of a webhook.
``historyLength: 0`` means "all" here. ``final`` is true where 0.3 clients expect the stream to end: at the end of the
task and when it waits for input. A stream closes there.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias

from pydantic import (
    AliasChoices,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    PlainValidator,
    RootModel,
    Tag,
    WithJsonSchema,
    model_validator,
)

from a2a_serverless.protocol import v1
from a2a_serverless.protocol.protojson import (
    Base64,
    Count,
    Ident,
    LongText,
    MediaType,
    Metadata,
    Names,
    OptionalFlag,
    OptionalIdent,
    ProtoModel,
    RequiredUrl,
    Secret,
    ShortText,
    Timestamp,
    Url,
    always,
    choice,
    items,
    violation,
)

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_CONFIG: Final = "default"
WRAPPER: Final = "data_part_compat"
FINAL: Final = frozenset(
    {v1.TaskState.COMPLETED, v1.TaskState.FAILED, v1.TaskState.CANCELED, v1.TaskState.REJECTED}
) | {v1.TaskState.INPUT_REQUIRED}
STATES: Final = {state.value: state for state in v1.TaskState}
PROTO_STATES: Final = v1.STATES | {"TASK_STATE_CANCELLED": v1.TaskState.CANCELED}
ROLES: Final = {role.value: role for role in v1.Role} | v1.ROLES

TaskState: TypeAlias = Annotated[
    v1.TaskState,
    choice(STATES | PROTO_STATES),
    PlainSerializer(lambda state: state.value),
    WithJsonSchema({"enum": [*STATES]}),
]
Role: TypeAlias = Annotated[
    v1.Role, choice(ROLES), PlainSerializer(lambda role: role.value), WithJsonSchema({"enum": ["user", "agent"]})
]


class Model(ProtoModel):
    """An object of 0.3. ``V1`` is its class in 1.0."""

    V1: ClassVar[type[ProtoModel]]

    def json_bytes(self) -> bytes:
        """The object as compact JSON, without the members that it does not have."""
        return self.__pydantic_serializer__.to_json(self, by_alias=True, exclude_none=True)

    def to_v1(self) -> Any:  # noqa: ANN401 - a V1
        """The object in 1.0."""
        return self.V1(**{name: _to_v1(value) for name, value in self.__dict__.items() if value is not None})

    @classmethod
    def made_of(cls, members: dict[str, Any]) -> Self:
        """The object that has these members of its 1.0 form."""
        return cls(**members)


class Root(RootModel[Any]):
    """One of several objects."""

    model_config = ConfigDict(defer_build=True, hide_input_in_errors=True)


def _to_v1(value: object) -> object:
    if isinstance(value, Model):
        return value.to_v1()
    return tuple([_to_v1(item) for item in value]) if isinstance(value, tuple) else value


class Family:
    """The classes of one form of 0.3, to which 1.0's objects are translated."""

    def __init__(self, makers: dict[type, Callable[[Any], Any]], *models: type[Model]) -> None:
        self._makers = {**makers, tuple: self._all_of}
        self._makers |= {model.V1: partial(self._translate, model) for model in models}

    def of(self, value: Any) -> Any:  # noqa: ANN401 - any value in 1.0's objects
        """The value with 0.3's objects in place of 1.0's. Empty lists are left out."""
        make = self._makers.get(value.__class__)
        return make(value) if make else value

    def json_bytes(self, value: ProtoModel) -> bytes:
        """The object of 1.0 as compact JSON of this form."""
        content: bytes = self.of(value).json_bytes()
        return content

    def _all_of(self, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        return tuple([self.of(item) for item in values]) or None

    def _translate(self, model: type[Model], value: ProtoModel) -> Model:
        return model.made_of({name: self.of(inner) for name, inner in value.__dict__.items() if inner is not None})


# --- parts -----------------------------------------------------------------------------------------------------------


class TextPart(Model):
    """A text (6.5.1)."""

    kind: Annotated[Literal["text"], always("text")] = "text"
    text: str
    metadata: Metadata = None

    def to_v1(self) -> v1.Part:
        return v1.Part(text=self.text, metadata=self.metadata)


class FileContent(Model):
    """A file by its bytes or its address (6.6). Unset is empty in the proto: the one that is not empty counts."""

    bytes: Base64 = Field(None, validation_alias=AliasChoices("bytes", "fileWithBytes", "file_with_bytes"))
    uri: Url = Field(None, validation_alias=AliasChoices("uri", "fileWithUri", "file_with_uri", "url"))
    name: ShortText = None
    mime_type: MediaType = Field(None, validation_alias=AliasChoices("mimeType", "mediaType", "media_type"))

    @model_validator(mode="after")
    def _check_one_of(self) -> Self:
        if (self.bytes and self.uri) or (self.bytes is None and self.uri is None):
            raise violation("must have exactly one of bytes, uri")
        return self


class FilePart(Model):
    """A file (6.5.2)."""

    kind: Annotated[Literal["file"], always("file")] = "file"
    file: FileContent
    metadata: Metadata = None

    def to_v1(self) -> v1.Part:
        file = self.file
        is_link = file.bytes is None or (file.bytes == "" and bool(file.uri))
        content = {"url": file.uri} if is_link else {"raw": file.bytes}
        return v1.Part(**content, media_type=file.mime_type, filename=file.name, metadata=self.metadata)


def _data(value: object) -> dict[str, Any] | list[Any]:
    if isinstance(value, dict | list):
        return value
    raise violation("is required" if value is None else "must be an object")


class DataPart(Model):
    """Data (6.5.3). In 0.3 data is an object, so any other value is wrapped and marked."""

    kind: Annotated[Literal["data"], always("data")] = "data"
    # Any: a serializer of a union stops at fewer levels than the log's.
    data: Annotated[Any, PlainValidator(_data), WithJsonSchema({"type": "object"})]
    metadata: Metadata = None

    def to_v1(self) -> v1.Part:
        """The part in 1.0, unwrapped if it was marked as wrapped."""
        metadata = self.metadata
        if metadata and metadata.get(WRAPPER) is True and isinstance(self.data, dict) and "value" in self.data:
            rest = {name: value for name, value in metadata.items() if name != WRAPPER}
            return v1.Part(data=self.data["value"], metadata=rest or None)
        return v1.Part(data=self.data, metadata=metadata)

    @classmethod
    def of(cls, part: v1.Part) -> Self:
        """A data part of 1.0 in 0.3's form."""
        if isinstance(part.data, dict):
            return cls(data=part.data, metadata=part.metadata)
        return cls(data={"value": part.data}, metadata=(part.metadata or {}) | {WRAPPER: True})


KINDS: Final = ("text", "file", "data")


def kind_of(value: object) -> str | None:
    """The tag of a part. A part without ``kind`` gets its tag from the name of its content member."""
    if not isinstance(value, dict):
        return f"@{getattr(value, 'kind', 'text')}"
    kind = value.get("kind") or value.get("type") or next((name for name in KINDS if name in value), None)
    return f"@{kind}" if isinstance(kind, str) and kind in KINDS else None


Part: TypeAlias = Annotated[
    Annotated[TextPart, Tag("@text")] | Annotated[FilePart, Tag("@file")] | Annotated[DataPart, Tag("@data")],
    Discriminator(kind_of, custom_error_type="part_kind", custom_error_message="must be one of text, file, data"),
]


def part_of(part: v1.Part) -> TextPart | FilePart | DataPart:
    """A part of 1.0 in 0.3's form."""
    match part.kind:
        case "text":
            return TextPart(text=part.text or "", metadata=part.metadata)
        case "data":
            return DataPart.of(part)
    file = FileContent(bytes=part.raw, uri=part.url, mime_type=part.media_type, name=part.filename)
    return FilePart(file=file, metadata=part.metadata)


# --- messages, artifacts, tasks --------------------------------------------------------------------------------------


class Message(Model):
    """One turn of a conversation (6.4)."""

    V1 = v1.Message
    kind: Annotated[Literal["message"], always("message")] = "message"
    role: Role
    message_id: Ident
    parts: Annotated[tuple[Part, ...], v1.PARTS] = Field(validation_alias=AliasChoices("parts", "content"))
    context_id: OptionalIdent = None
    task_id: OptionalIdent = None
    metadata: Metadata = None
    extensions: Names | None = None
    reference_task_ids: Names | None = None


class Artifact(Model):
    """A result, or one chunk of it (6.7)."""

    V1 = v1.Artifact
    artifact_id: Ident
    parts: Annotated[tuple[Part, ...], v1.PARTS]
    name: ShortText = None
    description: LongText = None
    metadata: Metadata = None
    extensions: Names | None = None


class TaskStatus(Model):
    """The status of a task (6.2)."""

    V1 = v1.TaskStatus
    state: TaskState
    timestamp: Timestamp = None
    message: Message | None = None


class Task(Model):
    """A task as a client sees it (6.1)."""

    V1 = v1.Task
    kind: Annotated[Literal["task"], always("task")] = "task"
    id: Ident
    context_id: OptionalIdent = None
    status: TaskStatus
    artifacts: Annotated[tuple[Artifact, ...], items("items")] | None = None
    history: Annotated[tuple[Message, ...], items("items")] | None = None
    metadata: Metadata = None


class TaskStatusUpdateEvent(Model):
    """A change of the status of a task (7.2.2)."""

    V1 = v1.TaskStatusUpdateEvent
    kind: Annotated[Literal["status-update"], always("status-update")] = "status-update"
    task_id: Ident
    context_id: Ident
    status: TaskStatus
    final: Any = None  # not read in a peer's event: a stream ends when its connection ends
    metadata: Metadata = None

    @classmethod
    def made_of(cls, members: dict[str, Any]) -> Self:
        """The event with its ``final``, which 0.3 requires."""
        return cls(**members, final=members["status"].state in FINAL)


class TaskArtifactUpdateEvent(Model):
    """A chunk of an artifact (7.2.3)."""

    V1 = v1.TaskArtifactUpdateEvent
    kind: Annotated[Literal["artifact-update"], always("artifact-update")] = "artifact-update"
    task_id: Ident
    context_id: Ident
    artifact: Artifact
    append: OptionalFlag = None
    last_chunk: OptionalFlag = None
    metadata: Metadata = None

    @classmethod
    def made_of(cls, members: dict[str, Any]) -> Self:
        """The event, with ``append`` and ``lastChunk`` only where they are true."""
        return cls(**{name: value for name, value in members.items() if value is not False})


def _item_kind(value: object) -> str | None:
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return f"@{kind}" if isinstance(kind, str) else None


ITEMS: Final = ("task", "message", "status-update", "artifact-update")


class StreamItem(Root):
    """An item of a stream, or the answer to a send: bare objects with a ``kind``."""

    root: Annotated[
        Annotated[Task, Tag("@task")]
        | Annotated[Message, Tag("@message")]
        | Annotated[TaskStatusUpdateEvent, Tag("@status-update")]
        | Annotated[TaskArtifactUpdateEvent, Tag("@artifact-update")],
        Discriminator(
            _item_kind, custom_error_type="item_kind", custom_error_message="must be one of " + ", ".join(ITEMS)
        ),
    ]

    def to_v1(self) -> v1.Task | v1.Message | v1.TaskStatusUpdateEvent | v1.TaskArtifactUpdateEvent:
        item: v1.Task | v1.Message | v1.TaskStatusUpdateEvent | v1.TaskArtifactUpdateEvent = self.root.to_v1()
        return item


# --- webhooks --------------------------------------------------------------------------------------------------------


class PushNotificationAuthenticationInfo(Model):
    """How to authenticate to a webhook (6.9)."""

    V1 = v1.AuthenticationInfo
    schemes: Names = ()
    credentials: Secret = Field(None, repr=False)
    issuer: ShortText = None
    audience: ShortText = None

    def to_v1(self) -> v1.AuthenticationInfo | None:
        """The first scheme that fits the credentials: without credentials Bearer if it is listed, else the first."""
        bearer = [scheme for scheme in self.schemes if scheme.lower() == "bearer" and self.credentials is None]
        scheme = next(iter(bearer or self.schemes), "")
        return v1.AuthenticationInfo(
            scheme=scheme, credentials=self.credentials, issuer=self.issuer, audience=self.audience
        )

    @classmethod
    def made_of(cls, members: dict[str, Any]) -> Self:
        """The authentication as a client sends it, with its secret."""
        scheme = members["scheme"]
        return cls(schemes=(scheme,) if scheme else (), credentials=members.get("credentials"))


class PushNotificationConfig(Model):
    """A webhook (6.8). One without an id gets the default id, so the next ``set`` without an id replaces it."""

    V1 = v1.TaskPushNotificationConfig
    id: OptionalIdent = None
    url: RequiredUrl
    token: Secret = Field(None, repr=False)
    authentication: PushNotificationAuthenticationInfo | None = None

    def webhook(self, path: str) -> v1.TaskPushNotificationConfig:
        """The webhook in 1.0. ``path`` is its place in the request."""
        return v1.TaskPushNotificationConfig(**self._members()).at(path)

    def creation(
        self, path: str, task_id: str, default_id: str | None = None
    ) -> v1.CreateTaskPushNotificationConfigRequest:
        """The request to create it, in 1.0. ``default_id`` is the request's id for a webhook without an id."""
        members = self._members() | {"id": self.id or default_id or DEFAULT_CONFIG}
        return v1.CreateTaskPushNotificationConfigRequest(task_id=task_id, **members).at(path)

    def _members(self) -> dict[str, Any]:
        authentication = self.authentication and self.authentication.to_v1()
        id_ = self.id or DEFAULT_CONFIG
        return {"id": id_, "url": self.url, "token": self.token, "authentication": authentication}

    @classmethod
    def of(cls, config: v1.TaskPushNotificationConfig) -> Self:
        info = config.authentication
        authentication = PushNotificationAuthenticationInfo(schemes=(info.scheme,)) if info else None
        return cls(id=config.id, url=config.url, authentication=authentication)


class TaskPushNotificationConfig(Model):
    """A webhook and its task (6.10)."""

    task_id: Ident
    push_notification_config: PushNotificationConfig

    def to_v1(self) -> v1.CreateTaskPushNotificationConfigRequest:
        """The request to create it, in 1.0."""
        return self.push_notification_config.creation("pushNotificationConfig", self.task_id)

    @classmethod
    def of(cls, config: v1.TaskPushNotificationConfig) -> Self:
        return cls(task_id=config.task_id, push_notification_config=PushNotificationConfig.of(config))


class TaskPushNotificationConfigs(Root):
    """The webhooks of a task: a bare list."""

    root: tuple[TaskPushNotificationConfig, ...]

    @classmethod
    def of(cls, page: v1.ListTaskPushNotificationConfigsResponse) -> Self:
        return cls(tuple([TaskPushNotificationConfig.of(config) for config in page.configs]))

    def json_bytes(self) -> bytes:
        """The list as compact JSON."""
        return self.__pydantic_serializer__.to_json(self, by_alias=True, exclude_none=True)


class GetTaskPushNotificationConfigParams(Model):
    """tasks/pushNotificationConfig/get (7.6); without an id it returns the first webhook."""

    id: Ident
    push_notification_config_id: OptionalIdent = None

    def to_v1(self) -> v1.GetTaskPushNotificationConfigRequest:
        config_id = self.push_notification_config_id or ""
        return v1.GetTaskPushNotificationConfigRequest(task_id=self.id, id=config_id)


class ListTaskPushNotificationConfigParams(Model):
    """tasks/pushNotificationConfig/list (7.7)."""

    id: Ident

    def to_v1(self) -> v1.ListTaskPushNotificationConfigsRequest:
        return v1.ListTaskPushNotificationConfigsRequest(task_id=self.id)


class DeleteTaskPushNotificationConfigParams(Model):
    """tasks/pushNotificationConfig/delete (7.8)."""

    id: Ident
    push_notification_config_id: Ident

    def to_v1(self) -> v1.DeleteTaskPushNotificationConfigRequest:
        return v1.DeleteTaskPushNotificationConfigRequest(task_id=self.id, id=self.push_notification_config_id)


# --- requests --------------------------------------------------------------------------------------------------------


class MessageSendConfiguration(Model):
    """The configuration of a send (7.1.2)."""

    V1 = v1.SendMessageConfiguration
    BLOCKS: ClassVar[bool] = True  # the value of ``blocking`` in a configuration without it
    accepted_output_modes: Names | None = None
    history_length: Count = None
    push_notification_config: PushNotificationConfig | None = None
    push_notification: PushNotificationConfig | None = None
    blocking: OptionalFlag = None

    def to_v1(self) -> v1.SendMessageConfiguration:
        name = "pushNotificationConfig" if self.push_notification_config else "pushNotification"
        push = self.push_notification_config or self.push_notification
        return v1.SendMessageConfiguration(
            accepted_output_modes=self.accepted_output_modes or (),
            task_push_notification_config=push.webhook(f"configuration.{name}") if push else None,
            history_length=self.history_length or None,
            return_immediately=not (self.BLOCKS if self.blocking is None else self.blocking),
        )

    @classmethod
    def made_of(cls, members: dict[str, Any]) -> Self:
        """The configuration with 0.3's names for the webhook and for waiting."""
        webhook, blocking = members.pop("task_push_notification_config", None), not members["return_immediately"]
        return cls(**members, push_notification_config=webhook, blocking=blocking)


class MessageSendParams(Model):
    """message/send and message/stream (7.1, 7.2). The proto calls the message ``request``; some SDKs print it so."""

    V1 = v1.SendMessageRequest
    message: Message = Field(validation_alias=AliasChoices("message", "request"))
    configuration: MessageSendConfiguration | None = None
    metadata: Metadata = None

    @model_validator(mode="before")
    @classmethod
    def _prefer_request(cls, value: Any) -> Any:  # noqa: ANN401 - anything may come
        has_request = isinstance(value, dict) and value.get("request") is not None
        return {name: inner for name, inner in value.items() if name != "message"} if has_request else value


class TaskQueryParams(Model):
    """tasks/get (7.3)."""

    V1 = v1.GetTaskRequest
    id: Ident
    history_length: Count = None

    def to_v1(self) -> v1.GetTaskRequest:
        """The request in 1.0: zero is "all" here."""
        return v1.GetTaskRequest(id=self.id, history_length=self.history_length or None)


class TaskIdParams(Model):
    """tasks/cancel (7.4)."""

    V1 = v1.CancelTaskRequest
    id: Ident
    metadata: Metadata = None


class ResubscribeParams(Model):
    """tasks/resubscribe (7.9)."""

    V1 = v1.SubscribeToTaskRequest
    id: Ident


class AuthenticatedExtendedCardParams(Model):
    """agent/getAuthenticatedExtendedCard (7.10)."""

    V1 = v1.GetExtendedAgentCardRequest


FAMILY: Final = Family(
    {
        v1.Part: part_of,
        v1.TaskPushNotificationConfig: TaskPushNotificationConfig.of,
        v1.ListTaskPushNotificationConfigsResponse: TaskPushNotificationConfigs.of,
    },
    *(Message, Artifact, TaskStatus, Task, TaskStatusUpdateEvent, TaskArtifactUpdateEvent),
)
REQUESTS: Final = Family(
    {v1.Part: part_of},
    Message,
    MessageSendParams,
    MessageSendConfiguration,
    PushNotificationConfig,
    PushNotificationAuthenticationInfo,
    TaskQueryParams,
    TaskIdParams,
    ResubscribeParams,
)
