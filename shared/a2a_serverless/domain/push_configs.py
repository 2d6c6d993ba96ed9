"""A webhook of a task: its configuration, its attempts, and its status."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from a2a_serverless.protocol.versions import ProtocolVersion  # noqa: TC001 - tests build records by their annotations

if TYPE_CHECKING:
    from a2a_serverless.domain.cursors import Cursor
    from a2a_serverless.domain.model import TaskKey

WebhookEvents: TypeAlias = Literal["all", "results", "states"]
"""The events of a task of which a webhook is notified (docs/webhooks.md). "states": each state, without artifacts.
"results": each state, and at the task's end the whole task. "all": each state and each chunk of an artifact.
"""


@dataclass(frozen=True, slots=True)
class PushConfig:
    """A stored webhook. ``token`` and ``credentials`` are sealed text, bound to the task and this configuration.

    ``events`` are the events of which it is notified. ``audience`` is that of the tokens; None means the URL.
    """

    config_id: str
    url: str
    version: ProtocolVersion
    incarnation: str
    created_at: int
    scheme: str | None = None
    token: str | None = field(default=None, repr=False)
    credentials: str | None = field(default=None, repr=False)
    events: WebhookEvents = "all"
    audience: str | None = None


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
