"""What is stored of owners: their counters, and everything for erasure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_serverless.domain.model import Principal, TaskKey
    from a2a_serverless.domain.quota import SendBucket, UnfinishedTasks


class OwnerStore(Protocol):
    """State per owner for quotas. It may be lost without harm."""

    def get_bucket(self, principal: Principal) -> SendBucket | None:
        """The owner's token bucket for sends; None when there is none."""

    def store_bucket(self, principal: Principal, before: SendBucket | None, after: SendBucket) -> bool:
        """Replaces the bucket if it equals ``before``; False when it does not, or when that is not known."""

    def get_unfinished(self, principal: Principal) -> UnfinishedTasks | None:
        """The owner's unfinished tasks as last counted, or None."""

    def store_unfinished(self, principal: Principal, counted: UnfinishedTasks) -> None:
        """Stores the result of a count."""

    def lease_stream(self, principal: Principal, name: str, until: int) -> None:
        """Counts a stream of the owner's as open until ``until`` (ms). A further call replaces that time."""

    def release_stream(self, principal: Principal, name: str) -> None:
        """Removes a stream. Nothing happens if it is absent."""

    def count_upload(self, principal: Principal, day: int, size: int, limit: int) -> bool:
        """Counts ``size`` bytes of uploads on ``day`` (days since the epoch), unless the sum would exceed ``limit``."""

    def count_streams(self, principal: Principal | None, limit: int) -> int:
        """The number of the owner's open streams, or of all for None; counting stops at ``limit``."""


class ErasureStore(Protocol):
    """All stored items of tasks and owners, expired or not, for erasure. Every method may be repeated."""

    def list_tasks(
        self, principal: Principal, context_id: str | None, after: str | None
    ) -> tuple[list[TaskKey], str | None]:
        """A page of the owner's tasks (of a context, or all), and where the next starts. Eventually consistent."""

    def count_items(self, key: TaskKey) -> int:
        """How many items a task has, without idempotency records and callback addresses."""

    def erase_related(self, key: TaskKey, records: Iterable[tuple[str, str]], callbacks: Iterable[str]) -> int:
        """Erases a task's idempotency records, callbacks and its owner's count of unfinished tasks."""

    def erase_task(self, key: TaskKey) -> int:
        """Erases all other items of a task, the head last. Returns how many."""

    def count_context_items(self, principal: Principal, context_id: str) -> int:
        """How many values are stored of a conversation."""

    def erase_context(self, principal: Principal, context_id: str) -> int:
        """Erases the values of a conversation. Returns how many."""

    def count_owner_items(self, principal: Principal) -> int:
        """How many items are stored about the owner itself."""

    def erase_owner(self, principal: Principal) -> int:
        """Erases the items about the owner itself. Returns how many."""
