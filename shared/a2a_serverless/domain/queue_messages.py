"""Queue messages. They carry ids only and may be lost, duplicated, late or out of order: the log decides what to do."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from a2a_serverless.domain.model import Json, TaskKey
from a2a_serverless.domain.schedules import format_tick, parse_tick


class WorkMessage(NamedTuple):
    """Task ``key`` may have work."""

    key: TaskKey


class DeliveryMessage(NamedTuple):
    """Webhook ``config_id`` of task ``key`` may have something to deliver."""

    key: TaskKey
    config_id: str


class TickMessage(NamedTuple):
    """It is ``at`` (ms), a time of a schedule, whose tasks have the tenant and owner of ``key``.

    In the place of a task, ``key`` has the schedule: ``AGENT/NAME``. EventBridge Scheduler sends these messages.
    """

    key: TaskKey
    at: int


VERSION: Final = 1
LONGEST: Final = 1024
LONGEST_DELAY_S: Final = 900

QueueMessage: TypeAlias = WorkMessage | DeliveryMessage | TickMessage


class InvalidMessage(ValueError):
    """A message body that is not a valid queue message. It is logged and dropped, because a retry cannot help."""


class UnsupportedMessageVersion(Exception):
    """A queue message of a later release. It goes back to its queue, for a worker that can read it."""


def to_json(message: QueueMessage) -> dict[str, Json]:
    """The queue message as a body."""
    key = message.key
    body: dict[str, Json] = {"v": VERSION, "kind": "work", "tenant": key.tenant, "owner": key.owner, "task": key.task}
    if isinstance(message, DeliveryMessage):
        body |= {"kind": "deliver", "config": message.config_id}
    if isinstance(message, TickMessage):
        body |= {"kind": "tick", "at": format_tick(message.at)}
    return body


def from_json(body: Json) -> QueueMessage:
    """The queue message of a body; raises UnsupportedMessageVersion for a later version, else InvalidMessage."""
    version = body.get("v") if isinstance(body, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise UnsupportedMessageVersion(f"queue message of version {version}; this release reads version {VERSION}")
    if not isinstance(body, dict) or version != VERSION:
        raise InvalidMessage("not a queue message")
    key = TaskKey(_text(body, "tenant"), _text(body, "owner"), _text(body, "task"))
    if body.get("kind") == "work":
        return WorkMessage(key)
    if body.get("kind") == "deliver":
        return DeliveryMessage(key, _text(body, "config"))
    if body.get("kind") == "tick":
        return TickMessage(key, _time(body, "at"))
    raise InvalidMessage("an unknown kind of queue message")


def _text(body: dict[str, Json], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value or len(value) > LONGEST:
        raise InvalidMessage(f"{name} is missing or wrong")
    return value


def _time(body: dict[str, Json], name: str) -> int:
    text = _text(body, name)
    try:
        return parse_tick(text)
    except ValueError:
        raise InvalidMessage(f"{name} is no time") from None
