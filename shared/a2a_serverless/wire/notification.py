"""The bytes of a webhook (specification 4.3.3; 0.3: 9.5), in the version that the webhook was registered in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_serverless.domain.errors import A2AError
from a2a_serverless.domain.model import Task, TaskState
from a2a_serverless.protocol.strict_json import dumps, loads
from a2a_serverless.wire import v0_3, v1

if TYPE_CHECKING:
    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.model import Json
    from a2a_serverless.domain.push import WireVersion


@dataclass(frozen=True, slots=True)
class NotificationBody:
    """What is POSTed; ``version`` belongs into the ``A2A-Version`` header."""

    content_type: str
    version: WireVersion
    content: bytes


def notification(version: WireVersion, item: Task | Event, task_id: str, context_id: str) -> NotificationBody:
    """1.0: a StreamResponse with the snapshot or the event. 0.3: the full task, so ``item`` has to be one."""
    if version == "1.0":
        return NotificationBody("application/a2a+json", "1.0", dumps(v1.stream_item(item, task_id, context_id)))
    if not isinstance(item, Task):
        raise TypeError("a 0.3 webhook gets the full task")
    return NotificationBody("application/json", "0.3", dumps(v0_3.DIALECT.print_task(item)))


@dataclass(frozen=True, slots=True)
class NotifiedTask:
    """What a webhook that came in says of the task it is about: None where that cannot be read."""

    task_id: str | None = None
    state: TaskState | None = None


def read_notification(content: bytes) -> NotifiedTask:
    """Reads the body of a webhook of either version, only as far as ``NotifiedTask`` goes. Never raises.

    A task has the state that it names, and one that tells of an artifact is working.
    """
    try:
        said = loads(content)
    except A2AError:
        return NotifiedTask()
    if not isinstance(said, dict):
        return NotifiedTask()
    if isinstance(said.get("artifactUpdate"), dict) or said.get("kind") == "artifact-update":
        return NotifiedTask(_task_id(said.get("artifactUpdate", said), "taskId"), TaskState.WORKING)
    if isinstance(said.get("statusUpdate"), dict) or said.get("kind") == "status-update":
        update = said.get("statusUpdate", said)
        return NotifiedTask(_task_id(update, "taskId"), _state(update))
    task = said.get("task", said)
    return NotifiedTask(_task_id(task, "id"), _state(task))


def _task_id(item: Json, name: str) -> str | None:
    value = item.get(name) if isinstance(item, dict) else None
    return value if isinstance(value, str) and value else None


def _state(item: Json) -> TaskState | None:
    status = item.get("status") if isinstance(item, dict) else None
    name = status.get("state") if isinstance(status, dict) else None
    return v0_3.STATES_IN.get(name) if isinstance(name, str) else None
