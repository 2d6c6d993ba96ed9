"""The bytes of a webhook (specification 4.3.3; 0.3: 9.5), in the version that the webhook was registered in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_serverless.domain.errors import A2AError
from a2a_serverless.protocol import v1
from a2a_serverless.protocol.codecs import V1
from a2a_serverless.protocol.strict_json import loads

if TYPE_CHECKING:
    from a2a_serverless.protocol.versions import ProtocolVersion


@dataclass(frozen=True, slots=True)
class NotificationBody:
    """The body of a notification; ``version`` is the value of the ``A2A-Version`` header."""

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

    return NotificationBody("application/json", "0.3", v0_3.FAMILY.json_bytes(item))


@dataclass(frozen=True, slots=True)
class NotifiedTask:
    """The task of a received webhook, as far as it can be read: None for an unreadable field."""

    task_id: str | None = None
    state: v1.TaskState | None = None


def read_notification(content: bytes) -> NotifiedTask:
    """Reads the body of a webhook of either version: bare objects with their ``kind`` are 0.3's. Never raises.

    A task event has the state of the task. An event of an artifact has the state "working".
    """
    from a2a_serverless.protocol.peers import read_item  # the notifier reads no webhook

    skipped = list[str]()
    try:
        body = loads(content)
        item = read_item("0.3" if isinstance(body, dict) and "kind" in body else "1.0", body, skipped)
    except A2AError:
        return NotifiedTask()
    if skipped:  # the task is read again, whatever state it has
        return NotifiedTask((item.id if isinstance(item, v1.Task) else item.task_id) or None)
    match item:
        case v1.Task():
            return NotifiedTask(item.id or None, item.status.state)
        case v1.TaskStatusUpdateEvent():
            return NotifiedTask(item.task_id or None, item.status.state)
        case v1.TaskArtifactUpdateEvent():
            return NotifiedTask(item.task_id or None, v1.TaskState.WORKING)
    return NotifiedTask()
