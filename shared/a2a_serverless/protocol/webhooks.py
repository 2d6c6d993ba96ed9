"""The bytes of a webhook (specification 4.3.3; 0.3: 9.5), in the version that the webhook was registered in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, ValidationError

from a2a_serverless.domain.errors import A2AError
from a2a_serverless.protocol import v1
from a2a_serverless.protocol.codecs import V1
from a2a_serverless.protocol.protojson import ProtoModel
from a2a_serverless.protocol.strict_json import loads

if TYPE_CHECKING:
    from a2a_serverless.domain.push import ProtocolVersion


@dataclass(frozen=True, slots=True)
class NotificationBody:
    """What is POSTed; ``version`` belongs into the ``A2A-Version`` header."""

    content_type: str
    version: ProtocolVersion
    content: bytes


def tells_whole_task(version: ProtocolVersion) -> bool:
    """Whether each notification of this version is the whole task, and not the event."""
    return version == "0.3"


def notification(version: ProtocolVersion, item: v1.StreamContent) -> NotificationBody:
    """1.0: a StreamResponse with the snapshot or the event. 0.3: the full task, so ``item`` has to be one."""
    if version == "1.0":
        return NotificationBody("application/a2a+json", "1.0", V1.stream_item(item))
    if not isinstance(item, v1.Task):
        raise TypeError("a 0.3 webhook gets the full task")
    from a2a_serverless.protocol import v0_3

    return NotificationBody("application/json", "0.3", v0_3.FAMILY.of(item).json_bytes())


@dataclass(frozen=True, slots=True)
class NotifiedTask:
    """What a webhook that came in says of the task it is about: None where that cannot be read."""

    task_id: str | None = None
    state: v1.TaskState | None = None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _object(value: object) -> object:
    return value if isinstance(value, dict) else None


_Text = Annotated[str | None, BeforeValidator(_text)]


class _Status(ProtoModel):
    state: _Text = None


class _Reported(ProtoModel):
    """A task or an event, as far as it is looked at."""

    kind: _Text = None
    id: _Text = None
    task_id: _Text = None
    status: Annotated[_Status | None, BeforeValidator(_object)] = None


class _Body(_Reported):
    """The body of a webhook of either version."""

    task: Annotated[_Reported | None, BeforeValidator(_object)] = None
    status_update: Annotated[_Reported | None, BeforeValidator(_object)] = None
    artifact_update: Annotated[_Reported | None, BeforeValidator(_object)] = None


def read_notification(content: bytes) -> NotifiedTask:
    """Reads the body of a webhook of either version, only as far as ``NotifiedTask`` goes. Never raises.

    A task has the state that it names, and one that tells of an artifact is working.
    """
    try:
        body = _Body.model_validate(loads(content))
    except (A2AError, ValidationError):
        return NotifiedTask()
    if body.artifact_update or body.kind == "artifact-update":
        return NotifiedTask(_said_in(body, "artifact_update").task_id, v1.TaskState.WORKING)
    if body.status_update or body.kind == "status-update":
        update = _said_in(body, "status_update")
        return NotifiedTask(update.task_id, _state(update))
    task = _said_in(body, "task")
    return NotifiedTask(task.id, _state(task))


def _said_in(body: _Body, name: str) -> _Reported:
    """What stands under a name, or is the body itself."""
    return (getattr(body, name) or _Reported()) if name in body.model_fields_set else body


def _state(reported: _Reported) -> v1.TaskState | None:
    from a2a_serverless.protocol.v0_3 import PROTO_STATES, STATES

    name = reported.status.state if reported.status else None
    return STATES.get(name) or PROTO_STATES.get(name) if name else None
