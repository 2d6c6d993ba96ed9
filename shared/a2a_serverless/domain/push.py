"""Webhooks of a task: the configuration, its cursor in the log, and the attempts.

The cursor is separate from the configuration because it changes with every delivery. Both have the same
``incarnation``; a replacement has another incarnation, so a late writer cannot restore a deleted or replaced webhook.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from a2a_serverless.domain.model import TaskKey

ProtocolVersion: TypeAlias = Literal["1.0", "0.3"]


class Verification(StrEnum):
    """Whether the URL's owner has confirmed that it wants notifications."""

    UNVERIFIED = "unverified"
    VERIFIED = "verified"
    TRUSTED = "trusted"
    REFUSED = "refused"


class CursorState(StrEnum):
    """Whether notifications are still delivered, and if not, why."""

    ACTIVE = "active"
    PAUSED = "paused"
    EXHAUSTED = "exhausted"
    GONE = "gone"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class PushConfig:
    """A stored webhook. ``token`` and ``credentials`` are sealed text, bound to the task and this configuration."""

    config_id: str
    url: str
    wire: ProtocolVersion
    incarnation: str
    created_at: int
    scheme: str | None = None
    token: str | None = field(default=None, repr=False)
    credentials: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Cursor:
    """The progress of a webhook: all events up to number ``position`` are delivered; 0 means none.

    The first notification is a snapshot as of event ``start``, the last event at registration, so that retries send the
    same snapshot.

    ``attempt`` counts failures in a row since ``failing_since``; ``next_at`` (ms) is the time of the next try, 0 for
    at once. ``lease_no`` counts the leases and ``holder`` names the worker, so that no worker takes another's lease
    for its own. ``due_at`` is the time of the sweeper's next check; for an exhausted cursor, the time of giving it up.
    ``unanswered`` is not 0 while the host has to wait until ``next_at``: that many requests to it got no answer.
    ``redriven_at`` (ms) is the time at which an operator asked for an attempt that is still to come.
    ``verification`` is here and not in the configuration, so that its change needs no extra write.
    """

    config_id: str
    incarnation: str
    start: int = 1
    position: int = 0
    attempt: int = 0
    next_at: int = 0
    lease_until: int = 0
    lease_no: int = 0
    holder: str = ""
    state: CursorState = CursorState.ACTIVE
    due_at: int | None = None
    failing_since: int = 0
    verification: Verification = Verification.UNVERIFIED
    unanswered: int = 0
    redriven_at: int = 0


def close_cursor(cursor: Cursor) -> Cursor:
    """The cursor of a deleted configuration; it is kept while an attempt may be under way."""
    return replace(cursor, state=CursorState.CLOSED, due_at=None)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to deliver event ``n``, the ``k``-th in a row, begun at ``at`` (ms). ``address`` is an IP address."""

    config_id: str
    n: int
    k: int
    at: int
    ms: int
    status: int | None = None
    address: str | None = None
    error: str | None = None
    kid: str | None = None
    next_at: int | None = None


@dataclass(frozen=True, slots=True)
class WebhookStatus:
    """A webhook with its cursor, the number of its task's last event, and its latest attempts, oldest first."""

    key: TaskKey
    config: PushConfig
    cursor: Cursor
    last: int
    attempts: tuple[Attempt, ...]
