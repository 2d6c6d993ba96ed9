"""A2A 1.0 (specification v1.0.1, ``a2a.proto``): the objects that this library works with, requests and answers.

They are the model inside: ``protocol/`` translates other versions to and from them. Timestamps are whole milliseconds
since the epoch inside. Bytes (``raw``) stay base64 in the standard alphabet. ``MISSING`` stands for an absent ``data``,
because null is data too.

A webhook's configuration is printed without its secrets: the schema has no place to say "it is set", so that its
``authentication`` names the scheme only.

Annotations are not postponed here: pydantic would have to compile each of them when a function starts.
"""

import codecs
import re
from base64 import b64decode
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, model_validator
from pydantic_core import MISSING

from a2a_serverless.protocol.protojson import (
    OR_EMPTY,
    Base64,
    Count,
    EmptyIdent,
    Flag,
    Ident,
    KnownTimestamp,
    LongText,
    MediaType,
    Metadata,
    Names,
    OptionalIdent,
    ProtoModel,
    RequiredText,
    RequiredUrl,
    Secret,
    ShortText,
    Url,
    is_data_uri,
    items,
    proto_enum,
    read_data_uri,
    violation,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_serverless.domain.model import Json

PAGE_SIZE: Final = 50
MAX_PAGE_SIZE: Final = 100
PartKind: TypeAlias = Literal["text", "raw", "url", "data"]


class TaskState(StrEnum):
    """The states of a task (4.1.3), in the order of the proto. The values are the names that the store and 0.3 use."""

    SUBMITTED = "submitted"
    WORKING = "working"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    INPUT_REQUIRED = "input-required"
    REJECTED = "rejected"
    AUTH_REQUIRED = "auth-required"


class Role(StrEnum):
    """The sender of a message (4.1.5)."""

    USER = "user"
    AGENT = "agent"


STATES: Final = {f"TASK_STATE_{state.name}": state for state in TaskState}
ROLES: Final = {f"ROLE_{role.name}": role for role in Role}
StateName: TypeAlias = Annotated[TaskState, *proto_enum(STATES)]
RoleName: TypeAlias = Annotated[Role, *proto_enum(ROLES)]


class Part(ProtoModel, defer_build=False):
    """One piece of content (4.1.6). The name of its content member tells its kind: ``"text": ""`` is a text.

    The content of a ``data:`` URI in ``url`` becomes ``raw``.
    """

    KINDS: ClassVar[tuple[PartKind, ...]] = ("text", "raw", "url", "data")

    text: str | None = None
    raw: Base64 = None
    url: Url = None
    data: Any | MISSING = MISSING
    media_type: MediaType = None
    filename: ShortText = None
    metadata: Metadata = None

    @model_validator(mode="after")
    def _check_one_of(self) -> Self:
        count = (self.text is not None) + (self.raw is not None) + (self.url is not None)
        if self.data is None and count:
            self.__dict__["data"] = MISSING
        if count + (self.data is not MISSING) != 1:
            raise violation("must have exactly one of text, raw, url, data")
        if self.url is not None and is_data_uri(self.url):
            media_type, raw = read_data_uri(self.url)
            self.__dict__.update(url=None, raw=raw, media_type=self.media_type or media_type)
        return self

    @property
    def kind(self) -> PartKind:
        """The name of the content member."""
        if self.text is not None:
            return "text"
        return "raw" if self.raw is not None else "url" if self.url is not None else "data"

    @property
    def value(self) -> "Json":
        """The value of the content member."""
        content: Json = getattr(self, self.kind)
        return content

    def with_content(self, **content: Any) -> Self:  # noqa: ANN401 - a member's value
        """A part with other content (one of text, raw, url, data), and the same filename, media type and metadata."""
        description = {"media_type": self.media_type, "filename": self.filename, "metadata": self.metadata}
        return type(self)(**(description | content))

    @property
    def readable(self) -> str:
        """Its text, if it is a text or a text file; "" for everything else."""
        if self.text is not None:
            return self.text
        media_type = self.media_type or ""
        if self.raw is not None and media_type[:5].lower() == "text/":
            return _decoded(b64decode(self.raw), media_type)
        return ""


_CHARSET: Final = re.compile(r';\s*charset\s*=\s*"?([\w.:-]{1,40})', re.ASCII | re.IGNORECASE)
# Python decodes these, too, but no file has them, and some take a time that is quadratic.
_NO_CHARSETS: Final = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"})


def _decoded(content: bytes, media_type: str) -> str:
    """The text of a text file: in its ``charset`` if that is known, else UTF-8. A mark of the byte order is no text."""
    named = _CHARSET.search(media_type)
    try:
        charset = codecs.lookup(named[1]).name if named else "utf-8"
        text = content.decode("utf-8" if charset in _NO_CHARSETS else charset, "replace")
    except LookupError:
        text = content.decode("utf-8", "replace")
    return text.removeprefix("\ufeff")


PARTS: Final = items("parts", if_empty="must hold at least one part")
Parts: TypeAlias = Annotated[tuple[Part, ...], PARTS]


def text_of(parts: "Iterable[Part]", between: str = "\n\n") -> str:
    """The text parts and the text files among ``parts``, joined."""
    return between.join(text for text in (part.readable for part in parts) if text)


def data_of(parts: "Iterable[Part]") -> "Json":
    """The first data part's value; None when there is none."""
    return next((part.data for part in parts if part.data is not MISSING), None)


class Message(ProtoModel, defer_build=False):
    """One turn of a conversation (4.1.4)."""

    role: RoleName
    message_id: Ident
    parts: Parts
    context_id: OptionalIdent = None
    task_id: OptionalIdent = None
    metadata: Metadata = None
    extensions: Names = ()
    reference_task_ids: Names = ()

    def text(self) -> str:
        """Its text parts and text files, joined by blank lines."""
        return text_of(self.parts)

    def data(self) -> "Json":
        """Its first data part; None when there is none."""
        return data_of(self.parts)


class Artifact(ProtoModel):
    """A result, or one chunk of it (4.1.7)."""

    artifact_id: Ident
    parts: Parts
    name: ShortText = None
    description: LongText = None
    metadata: Metadata = None
    extensions: Names = ()

    def text(self) -> str:
        """Its text parts and text files, joined."""
        return text_of(self.parts, "")

    def data(self) -> "Json":
        """Its first data part; None when there is none."""
        return data_of(self.parts)


class TaskStatus(ProtoModel):
    """The status of a task (4.1.2). ``timestamp`` (ms) is 0 if a peer does not give it; ours always do."""

    state: StateName
    timestamp: KnownTimestamp = 0
    message: Message | None = None


class Task(ProtoModel):
    """A task as a client sees it (4.1.1)."""

    id: Ident
    context_id: EmptyIdent = ""
    status: TaskStatus
    artifacts: Annotated[tuple[Artifact, ...], items("items")] = ()
    history: Annotated[tuple[Message, ...], items("items")] = ()
    metadata: Metadata = None
    _n: int = PrivateAttr(0)

    @property
    def answer(self) -> Message | None:
        """The message with which it completed; None before, after another end, and if its agent gave none."""
        message = self.status.message
        is_answer = self.status.state is TaskState.COMPLETED and message and message.role is Role.AGENT
        return message if is_answer else None

    def text(self) -> str:
        """Its result as text: the texts of its artifacts, and of the message with which it completed."""
        texts = [artifact.text() for artifact in self.artifacts] + [self.answer.text() if self.answer else ""]
        return "\n\n".join(filter(None, texts))

    @property
    def n(self) -> int:
        """The number of the last event in the task; 0 for a peer's task, whose numbers are not ours."""
        return self._n

    def as_of(self, n: int) -> Self:
        """The task with that number."""
        self._n = n
        return self

    def limited(self, history_length: int | None, *, artifacts: bool = True) -> Self:
        """The task with at most the ``history_length`` latest messages (3.2.4), and without artifacts if so requested.

        None means all messages.
        """
        if history_length is None and artifacts:
            return self
        first = 0 if history_length is None else max(0, len(self.history) - history_length)
        members = {"history": self.history[first:], "artifacts": self.artifacts if artifacts else ()}
        return self.model_copy(update=members)


class TaskStatusUpdateEvent(ProtoModel):
    """A change of the status of a task (4.2.1)."""

    task_id: Ident
    context_id: Ident
    status: TaskStatus
    metadata: Metadata = None


class TaskArtifactUpdateEvent(ProtoModel):
    """A chunk of an artifact (4.2.2)."""

    task_id: Ident
    context_id: Ident
    artifact: Artifact
    append: Flag = False
    last_chunk: Flag = False
    metadata: Metadata = None


StreamContent: TypeAlias = Task | Message | TaskStatusUpdateEvent | TaskArtifactUpdateEvent


class SendMessageResponse(ProtoModel):
    """The answer to a send (3.2.2): a task or a message."""

    task: Task | None = None
    message: Message | None = None


class StreamResponse(SendMessageResponse):
    """An item of a stream, the body of a webhook (3.2.3), or the answer to a send."""

    status_update: TaskStatusUpdateEvent | None = None
    artifact_update: TaskArtifactUpdateEvent | None = None

    @property
    def content(self) -> StreamContent:
        """The content of the item."""
        content = self.task or self.message or self.status_update or self.artifact_update
        if content is None:
            raise violation("must have one of task, message, statusUpdate, artifactUpdate")
        return content

    @model_validator(mode="after")
    def _check_one_of(self) -> Self:
        _ = self.content
        return self


_MEMBERS: Final[dict[type[ProtoModel], str]] = {
    Task: "task",
    Message: "message",
    TaskStatusUpdateEvent: "status_update",
    TaskArtifactUpdateEvent: "artifact_update",
}


def stream_response(item: ProtoModel) -> StreamResponse:
    """The item of a stream, or the answer to a send, wrapped."""
    return StreamResponse(**{_MEMBERS[type(item)]: item})


# --- webhooks --------------------------------------------------------------------------------------------------------


class TenantRequest(ProtoModel):
    """A request, which may name a tenant."""

    tenant: OptionalIdent = None


class AuthenticationInfo(ProtoModel):
    """How to authenticate to a webhook (4.3.2).

    ``issuer`` and ``audience`` are those that the client expects in the tokens. They are no members of the proto, but
    A2A's page on asynchronous operations names them; answers do not have them.
    """

    scheme: RequiredText
    credentials: Secret = Field(None, repr=False)
    issuer: ShortText = None
    audience: ShortText = None


class TaskPushNotificationConfig(ProtoModel):
    """A webhook of a task (4.3.1). The URL policy decides whether its address and its scheme are allowed."""

    id: OptionalIdent = None
    task_id: OptionalIdent = None
    url: RequiredUrl
    token: Secret = Field(None, repr=False)
    authentication: AuthenticationInfo | None = None
    _path: str = PrivateAttr("")

    @property
    def path(self) -> str:
        """Its place in the request ("" at the top), so that an error names the field as the client wrote it."""
        return self._path

    def at(self, path: str) -> Self:
        """The webhook with its place in the request."""
        self._path = path
        return self


class CreateTaskPushNotificationConfigRequest(TaskPushNotificationConfig):
    """CreateTaskPushNotificationConfig (3.1.7)."""

    tenant: OptionalIdent = None
    task_id: Ident


class GetTaskPushNotificationConfigRequest(TenantRequest):
    """GetTaskPushNotificationConfig (3.1.8). An empty ``id`` asks for the first webhook; only 0.3 can ask that."""

    task_id: Ident
    id: Ident


class ListTaskPushNotificationConfigsRequest(TenantRequest):
    """ListTaskPushNotificationConfigs (3.1.9). Without a page size the answer lists all."""

    task_id: Ident
    page_size: Annotated[Count, AfterValidator(lambda size: size or None)] = None
    page_token: ShortText = None


class DeleteTaskPushNotificationConfigRequest(TenantRequest):
    """DeleteTaskPushNotificationConfig (3.1.10)."""

    task_id: Ident
    id: Ident


class ListTaskPushNotificationConfigsResponse(ProtoModel):
    """A page of the webhooks of a task (3.1.9)."""

    configs: tuple[TaskPushNotificationConfig, ...]
    next_page_token: str = ""


# --- requests --------------------------------------------------------------------------------------------------------


class SendMessageConfiguration(ProtoModel):
    """The configuration of a send (3.2.2). Without a history length the answer has the whole history."""

    accepted_output_modes: Names = ()
    task_push_notification_config: TaskPushNotificationConfig | None = None
    history_length: Count = None
    return_immediately: Flag = False

    @model_validator(mode="after")
    def _place_webhook(self) -> Self:
        config = self.task_push_notification_config
        if config and not config.path:
            config.at("configuration.taskPushNotificationConfig")
        return self


class SendMessageRequest(TenantRequest):
    """SendMessage and SendStreamingMessage (3.1.1, 3.1.2)."""

    message: Message
    metadata: Metadata = None
    configuration: Annotated[SendMessageConfiguration, OR_EMPTY] = SendMessageConfiguration()


class GetTaskRequest(TenantRequest):
    """GetTask (3.1.3)."""

    id: Ident
    history_length: Count = None


def _set_state(value: object) -> object:
    """None for the enum's default: clients that print every member print it."""
    unset = value in ("TASK_STATE_UNSPECIFIED", "") or (type(value) is int and value == 0)
    return None if unset else value


class ListTasksRequest(TenantRequest):
    """ListTasks (3.1.4). ProtoJSON may print the epoch, the default, for "since always"."""

    context_id: OptionalIdent = None
    status: Annotated[StateName | None, BeforeValidator(_set_state)] = None
    page_size: Annotated[int, whole(1, MAX_PAGE_SIZE), AfterValidator(lambda size: size or PAGE_SIZE)] = PAGE_SIZE
    page_token: ShortText = None
    history_length: Count = None
    status_timestamp_after: KnownTimestamp = 0
    include_artifacts: Flag = False


class CancelTaskRequest(TenantRequest):
    """CancelTask (3.1.5)."""

    id: Ident
    metadata: Metadata = None


class SubscribeToTaskRequest(TenantRequest):
    """SubscribeToTask (3.1.6)."""

    id: Ident


class GetExtendedAgentCardRequest(TenantRequest):
    """GetExtendedAgentCard (3.1.11)."""


class ListedTask(Task):
    """A task in a list with artifacts: it is printed with its artifacts, even if there are none."""

    artifacts: tuple[Artifact, ...]


class ListTasksResponse(ProtoModel):
    """A page of tasks (3.1.4): all four members, always."""

    tasks: tuple[ListedTask, ...] | tuple[Task, ...]
    next_page_token: str
    page_size: int
    total_size: int
