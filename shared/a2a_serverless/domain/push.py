"""Webhooks of a task: the configuration, the cursor that walks the log for it, and what became of each attempt.

The cursor is apart from the configuration because it changes with every delivery. ``incarnation`` ties the two: a
configuration that was deleted or replaced has another one, so a late writer cannot bring it back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from a2a_serverless.domain.model import TaskKey

WireVersion: TypeAlias = Literal["1.0", "0.3"]


class Verification(StrEnum):
    """What we know of who owns the URL."""

    UNVERIFIED = "unverified"
    VERIFIED = "verified"
    TRUSTED = "trusted"
    REFUSED = "refused"


class CursorState(StrEnum):
    """Whether a configuration is still delivered to."""

    ACTIVE = "active"
    PAUSED = "paused"
    EXHAUSTED = "exhausted"
    GONE = "gone"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class PushConfig:
    """A webhook as it is stored. ``token`` and ``credentials`` are sealed text, bound to the task and this config."""

    config_id: str
    url: str
    wire: WireVersion
    incarnation: str
    created_at: int
    scheme: str | None = None
    token: str | None = field(default=None, repr=False)
    credentials: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a webhook stands: everything up to ``position`` is delivered; 0 is "nothing yet".

    It begins with a snapshot as of event ``start``, the last when it was registered, so that a retry tells the same.

    ``attempt`` counts failures in a row since ``failing_since``; ``next_at`` is when the next try is due (ms, 0 is at
    once); ``lease_no`` numbers the claims and ``holder`` names the claimant, so that no two of them can take each
    other's claim for theirs. ``due_at`` is when the sweeper looks; for an exhausted cursor, since when it is that.
    ``verification`` is here and not in the configuration so that finding it out costs no write of its own.
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


def close_cursor(cursor: Cursor) -> Cursor:
    """The cursor of a configuration that is deleted, for as long as an attempt may be under way."""
    return replace(cursor, state=CursorState.CLOSED, due_at=None)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to deliver event ``n``: the ``k``-th in a row. ``address`` is the one that was dialled."""

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
    """A configuration, how far it is, its task's last event, and its newest attempts, oldest first."""

    key: TaskKey
    config: PushConfig
    cursor: Cursor
    last: int
    attempts: tuple[Attempt, ...]
