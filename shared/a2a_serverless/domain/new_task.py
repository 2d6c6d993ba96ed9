"""All that the store writes for a new task, and the records that make its creation idempotent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from a2a_serverless.domain.cursors import Cursor
    from a2a_serverless.domain.events import StatusEvent
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.push_configs import PushConfig


RequestKind: TypeAlias = Literal["message", "retry", "tick"]
"""What creates a task. The ids of each kind are a space of their own: a client chooses those of its messages."""


class IdempotencyRecord(NamedTuple):
    """Makes a request idempotent: it records which ``task`` a (tenant, owner, agent, kind, id) created.

    ``message_id`` is the id of the message, of the retry or of the tick. ``digest`` is the SHA-256 of the message's
    canonical form; it shows when the same id comes with another body.
    """

    agent: str
    message_id: str
    digest: str
    task: str
    kind: RequestKind = "message"


class LastTick(NamedTuple):
    """The last tick of a schedule that started a task, its time (ms) and the task's id."""

    schedule: str
    at: int
    task: str


class TickConflict(Exception):
    """Another tick of the schedule has started a task meanwhile."""


class NewTask(NamedTuple):
    """All items of a new task; they are written in one transaction.

    ``tick`` is stored in the place of ``last_tick``, which must not have changed; None without one.
    """

    head: Head
    event: StatusEvent
    idempotency: IdempotencyRecord | None
    pushes: tuple[tuple[PushConfig, Cursor], ...] = ()
    tick: LastTick | None = None
    last_tick: LastTick | None = None
