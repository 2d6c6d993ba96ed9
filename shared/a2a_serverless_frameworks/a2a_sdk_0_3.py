"""The objects of a2a-sdk 0.3: pydantic models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from a2a import types

from a2a_serverless.protocol import v0_3

if TYPE_CHECKING:
    from a2a_serverless import Task
    from a2a_serverless.protocol import v1


def members_of(model: Any) -> dict[str, Any]:  # noqa: ANN401 - the SDK's types, here and below
    """The members of an object, as JSON has them."""
    members: dict[str, Any] = model.model_dump(mode="json", exclude_none=True)
    return members


def event_of(event: Any) -> Any:  # noqa: ANN401
    """The event of an executor, in the form of 1.0."""
    return v0_3.StreamItem.model_validate(members_of(event)).to_v1()


def request_of(request: v1.SendMessageRequest) -> Any:  # noqa: ANN401
    """The SDK's request."""
    return types.MessageSendParams.model_validate_json(v0_3.REQUESTS.of(request).json_bytes())


def task_of(task: Task) -> Any:  # noqa: ANN401
    """The SDK's task."""
    return types.Task.model_validate_json(v0_3.FAMILY.of(task).json_bytes())


def dump_task(task: Any) -> bytes:  # noqa: ANN401
    """The SDK's task as bytes."""
    text: str = task.model_dump_json(exclude_none=True)
    return text.encode()


def load_task(content: bytes) -> Any:  # noqa: ANN401
    """The SDK's task of ``dump_task``."""
    return types.Task.model_validate_json(content)


def set_tenant(call: Any, tenant: str) -> None:  # noqa: ANN401
    """Does nothing: 0.3 knows no tenants."""
