"""Webhooks: their configurations and cursors, and how they are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from a2a_serverless.domain.challenges import ChallengeState
    from a2a_serverless.domain.circuit_breaker import OpenBreaker
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.outbound import Outcome
    from a2a_serverless.domain.push import Attempt, Cursor, PushConfig
    from a2a_serverless.domain.url_policy import WebhookTarget


class PushStore(Protocol):
    """Webhook configurations, their cursors and the attempts."""

    def add_config(
        self, before: Head, after: Head, config: PushConfig, cursor: Cursor, replaced: Cursor | None = None
    ) -> bool:
        """Writes a configuration and its cursor and updates the head. False if head or ``replaced`` has changed."""

    def close_config(self, key: TaskKey, before: Cursor) -> bool:
        """Deletes a cursor's configuration and closes the cursor. False when the cursor no longer equals ``before``."""

    def get_config(self, key: TaskKey, config_id: str) -> PushConfig | None:
        """A configuration, or None."""

    def list_configs(self, key: TaskKey) -> list[PushConfig]:
        """All configurations of a task, by id."""

    def list_cursors(self, key: TaskKey) -> list[Cursor]:
        """All cursors of a task, by config id."""

    def get_cursor(self, key: TaskKey, config_id: str) -> Cursor | None:
        """One cursor, or None."""

    def move_cursor(self, key: TaskKey, before: Cursor, after: Cursor) -> bool:
        """Replaces the cursor if it equals ``before`` (or ``after`` already); False otherwise. Never recreates one."""

    def remove_config(self, key: TaskKey, config_id: str, incarnation: str) -> None:
        """Deletes the configuration and the cursor of that incarnation. Nothing happens if they are absent."""

    def record_attempt(self, key: TaskKey, attempt: Attempt, expires: int) -> None:
        """Stores an attempt and its result. Idempotent."""

    def list_attempts(self, key: TaskKey) -> list[Attempt]:
        """All attempts of a task, oldest first within each config."""

    def count_webhook(self, key: TaskKey, day: int, limit: int) -> bool:
        """Counts a webhook of the task's owner on ``day`` (days since the epoch). False when ``limit`` is reached."""

    def get_challenge_state(self, key: TaskKey, host: str) -> ChallengeState:
        """The challenges that webhooks of the task's owner have sent to a host."""

    def store_challenge_state(
        self, key: TaskKey, host: str, before: ChallengeState, after: ChallengeState, expires: int
    ) -> bool:
        """Replaces the state if it equals ``before`` (or ``after`` already), until ``expires`` (s); False otherwise."""

    def list_exhausted(self, limit: int = 100, since: int = 0) -> Sequence[tuple[TaskKey, str]]:
        """Webhooks (task, config id) given up at ``since`` (ms) or later, oldest first. Eventually consistent."""


class BreakerStore(Protocol):
    """Open circuit breakers, shared between instances. They may be lost without harm."""

    def get_open_breaker(self, host: str) -> OpenBreaker | None:
        """The host's open breaker that was stored last, until an hour after its time; None without one."""

    def store_open_breaker(self, host: str, open_breaker: OpenBreaker) -> None:
        """Stores an open breaker, or that the host has answered, for the other instances."""

    def claim_try(self, host: str, holder: str, until: int) -> bool:
        """Claims the one try at a host that has to wait, until ``until`` (ms). False if another one holds it."""


class Resolver(Protocol):
    """Resolves host names when a webhook is registered."""

    def check(self, target: WebhookTarget) -> None:
        """Raises UrlNotAllowed for an address that is not allowed, NameUnresolved when there is none now."""


class Sender(Protocol):
    """Sends requests to URLs that clients gave; nothing else does."""

    def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_ms: int) -> Outcome:
        """One POST. Network and receiver errors do not raise; they are in the outcome."""
