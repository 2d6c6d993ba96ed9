"""Records of tasks that the store writes and returns, beside their heads and events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.events import StatusEvent
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import Json, TaskKey
    from a2a_serverless.domain.push import Cursor, PushConfig
    from a2a_serverless.domain.usage import Usage
    from a2a_serverless.protocol.v1 import Task, TaskState

SHARDS: Final = 8

Admit: TypeAlias = "Callable[[int], bool]"
"""Is called with the bytes of each text before the text is read. False ends the reading there; it may raise, too."""


class IdempotencyRecord(NamedTuple):
    """Makes a send idempotent: it records which ``task`` a (tenant, owner, agent, message id) created.

    ``digest`` is the SHA-256 of the message's canonical form; it shows when the same id comes with another body.
    """

    agent: str
    message_id: str
    digest: str
    task: str


class NewTask(NamedTuple):
    """All items of a new task; they are written in one transaction."""

    head: Head
    event: StatusEvent
    idempotency: IdempotencyRecord | None
    pushes: tuple[tuple[PushConfig, Cursor], ...] = ()


@dataclass(frozen=True, slots=True)
class StepResult:
    """The stored result of a named step; the first write wins. ``arguments`` is a digest of the step's arguments.

    ``attempt`` marks the chunks of the log that belong to it (``ArtifactEvent.attempt``), ``sequence`` orders the
    endings of steps and waits (``engine.endings``), and ``usage`` is the models' usage in it. The times (ms) and
    ``error`` (the class of the exception that ended a failed step) are written and not read back with the result:
    ``TaskLog.list_step_times`` lists them.
    """

    arguments: str
    value: Json
    attempt: int = 0
    sequence: int = 0
    usage: Usage = field(default_factory=dict)
    began_at: int = field(default=0, compare=False)
    ended_at: int = field(default=0, compare=False)
    error: str = field(default="", compare=False)


NamedResult: TypeAlias = tuple[str, StepResult]
"""A result and the name under which it is stored."""


class DueItem(NamedTuple):
    """An item that is due: the head of ``key``, or with ``config_id`` that configuration's cursor.

    ``item_key`` is its key in the store. ``key`` is None when this release cannot interpret the item key.
    """

    item_key: tuple[str, str]
    key: TaskKey | None
    config_id: str | None = None


class TaskEntry(NamedTuple):
    """A task in the index, which is eventually consistent. ``position`` is the token of the page after it."""

    task: str
    agent: str
    state: TaskState
    position: str


class TaskPart(NamedTuple):
    """A task as it was asked for, its head, and about how many bytes of stored text were read for it."""

    head: Head
    task: Task
    size: int
