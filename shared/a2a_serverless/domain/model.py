"""The A2A model, independent of protocol version and binding.

Names follow A2A 1.0 (``a2a.proto`` at v1.0.1), in snake case. Times are whole milliseconds since the epoch, UTC.
Values are immutable; only the codecs in ``wire`` know the wire formats.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"
PartKind: TypeAlias = Literal["text", "raw", "url", "data"]

PART_BYTES: Final = 32  # in the log, for each part in addition to its value


class TaskState(StrEnum):
    """The states of a task (specification 4.1.3). The values are the names that we store."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input-required"
    AUTH_REQUIRED = "auth-required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"


class Role(StrEnum):
    """The sender of a message (specification 4.1.5)."""

    USER = "user"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class TaskKey:
    """A task's tenant, owner and id. Callers cannot reach tasks of other owners: every key starts with both."""

    tenant: str
    owner: str
    task: str


@dataclass(frozen=True, slots=True)
class Principal:
    """The tenant and owner of a caller; every key that the caller can reach starts with them."""

    tenant: str
    owner: str

    def key(self, task: str) -> TaskKey:
        """The key of one of this principal's tasks."""
        return TaskKey(self.tenant, self.owner, task)


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of content (specification 4.1.6).

    ``value`` is a str for text, url and raw (raw is base64, standard alphabet, as received); any JSON value for data.
    """

    kind: PartKind
    value: Json
    media_type: str | None = None
    filename: str | None = None
    metadata: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation (specification 4.1.4)."""

    message_id: str
    role: Role
    parts: tuple[Part, ...]
    context_id: str | None = None
    task_id: str | None = None
    metadata: JsonObject | None = None
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[str, ...] = ()

    def text(self) -> str:
        """The text parts and text files, joined by blank lines."""
        return text_of(self.parts)

    def data(self) -> Json:
        """Its first data part; None when there is none."""
        return data_of(self.parts)


@dataclass(frozen=True, slots=True)
class Artifact:
    """A result, or one chunk of it (specification 4.1.7)."""

    artifact_id: str
    parts: tuple[Part, ...]
    name: str | None = None
    description: str | None = None
    metadata: JsonObject | None = None
    extensions: tuple[str, ...] = ()

    def text(self) -> str:
        """The text of all its parts, joined without separators."""
        return text_of(self.parts, "")

    def data(self) -> Json:
        """Its first data part; None when there is none."""
        return data_of(self.parts)


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """The status of a task (specification 4.1.2)."""

    state: TaskState
    timestamp: int
    message: Message | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A task as clients get it (specification 4.1.1): the replay of its log up to event ``n``."""

    task_id: str
    context_id: str
    status: TaskStatus
    n: int
    artifacts: tuple[Artifact, ...] = ()
    history: tuple[Message, ...] = ()
    metadata: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class PushRequest:
    """A push notification configuration from a client, with secrets in clear text. It is never stored like this.

    ``at`` is its path in the request ("" at the top), so that errors name fields by the client's path.
    """

    url: str
    config_id: str | None = None
    token: str | None = field(default=None, repr=False)
    scheme: str | None = None
    credentials: str | None = field(default=None, repr=False)
    at: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class SendRequest:
    """A SendMessage request (specification 3.1.1 and 3.2.2)."""

    message: Message
    return_immediately: bool = False
    history_length: int | None = None
    accepted_output_modes: tuple[str, ...] = ()
    push: PushRequest | None = None
    metadata: JsonObject | None = None


def text_of(parts: Iterable[Part], between: str = "\n\n") -> str:
    """The text parts and the text files among ``parts``, joined."""
    return between.join(text for text in map(_text, parts) if text)


def data_of(parts: Iterable[Part]) -> Json:
    """The first data part's value; None when there is none."""
    return next((part.value for part in parts if part.kind == "data"), None)


def part_bytes(part: Part) -> int:
    """The part's approximate size in the log, in bytes."""
    return len(str(part.value).encode("utf-8", "surrogatepass")) + PART_BYTES


def _text(part: Part) -> str:
    if part.kind == "text":
        return str(part.value)
    if part.kind == "raw" and (part.media_type or "").startswith("text/"):
        return base64.b64decode(str(part.value)).decode("utf-8", "replace")
    return ""
