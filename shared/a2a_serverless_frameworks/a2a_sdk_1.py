"""The objects of a2a-sdk 1.x: protobuf messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from a2a import types
from google.protobuf.json_format import MessageToDict, Parse

from a2a_serverless.protocol import v1

if TYPE_CHECKING:
    from a2a_serverless import Task


def members_of(message: Any) -> dict[str, Any]:  # noqa: ANN401 - the SDK's types, here and below
    """The members of an object as JSON values, empty ones too."""
    return dict(MessageToDict(message, always_print_fields_with_no_presence=True))


def event_of(event: Any) -> Any:  # noqa: ANN401
    """The event of an executor."""
    model: type[v1.StreamContent] = getattr(v1, type(event).__name__)
    return model.model_validate(members_of(event))


def request_of(request: v1.SendMessageRequest) -> Any:  # noqa: ANN401
    """The SDK's request."""
    return Parse(request.json_bytes(), types.SendMessageRequest())


def task_of(task: Task) -> Any:  # noqa: ANN401
    """The SDK's task."""
    return Parse(task.json_bytes(), types.Task())


def dump_task(task: Any) -> bytes:  # noqa: ANN401
    """The SDK's task as bytes."""
    content: bytes = task.SerializeToString()
    return content


def load_task(content: bytes) -> Any:  # noqa: ANN401
    """The SDK's task of ``dump_task``."""
    return types.Task.FromString(content)


def set_tenant(call: Any, tenant: str) -> None:  # noqa: ANN401
    """Sets the tenant of a call's context."""
    call.tenant = tenant
