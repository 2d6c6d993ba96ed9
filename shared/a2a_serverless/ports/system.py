"""Time, ids, queue messages and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from a2a_serverless.domain.queue_messages import QueueMessage


class Clock(Protocol):
    """The time, for all code that stores or compares times."""

    def now(self) -> int:
        """Milliseconds since the epoch."""

    def sleep(self, seconds: float) -> None:
        """Returns after ``seconds``."""


class Ids(Protocol):
    """Makes unique identifiers that cannot be guessed."""

    def new(self) -> str:
        """A new identifier, URL-safe, at most 40 characters."""

    def secret(self) -> str:
        """A new URL-safe text of 256 random bits, for an address that authorizes whoever knows it."""


class Queues(Protocol):
    """Sends queue messages."""

    def enqueue(self, message: QueueMessage, delay_s: int = 0) -> None:
        """Sends a queue message that arrives after ``delay_s`` seconds (0 to 900)."""

    def enqueue_many(self, messages: Sequence[QueueMessage]) -> None:
        """Sends queue messages without a delay, ten with each call. Raises if some, perhaps not all, were not sent."""


class Metrics(Protocol):
    """Operational metrics."""

    def count(self, name: str, **fields: str | int) -> None:
        """Adds one to the metric ``name`` (of ``domain.metrics``); ``fields`` holds its dimension, if any, and ids."""

    def record(self, values: Mapping[str, float], **fields: str | int) -> None:
        """Records values by name, in the units of ``domain.metrics``; ``fields`` as in ``count``."""
