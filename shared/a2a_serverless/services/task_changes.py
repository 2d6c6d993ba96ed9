"""The ways to change a task from outside a run: read the head, decide, write; on a conflict, begin again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from a2a_serverless.domain.conflicts import check_written, retry_on_conflict
from a2a_serverless.domain.errors import TaskNotFound

if TYPE_CHECKING:
    from a2a_serverless.domain.head import Change, Head, HeadSnapshot
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.ports.tasks import IdempotencyRecord, TaskLog


def change_task(
    log: TaskLog,
    key: TaskKey,
    agent: str,
    decide: Callable[[HeadSnapshot], Change],
    receipt: IdempotencyRecord | None = None,
) -> Change:
    """Appends the change that ``decide`` makes from the current head, and returns it. Raises what ``decide`` raises.

    Raises TaskNotFound if there is no such task of this agent, Overloaded if the head changed at every attempt.
    """
    return retry_on_conflict(lambda: try_change(log, key, agent, decide, receipt))


def try_change(
    log: TaskLog,
    key: TaskKey,
    agent: str,
    decide: Callable[[HeadSnapshot], Change],
    receipt: IdempotencyRecord | None = None,
) -> Change:
    """One attempt of ``change_task``; raises Conflict if the head has changed since it was read."""
    change = decide(read_existing_head(log, key, agent))
    check_written(log.append(change, receipt))
    return change


def update_head(log: TaskLog, key: TaskKey, decide: Callable[[Head], Head | None]) -> bool:
    """Updates the head without an event, as ``decide`` says; False if it says None, or if there is no such task."""

    def attempt() -> bool:
        snapshot = log.read_head(key)
        after = snapshot and decide(snapshot.head)
        if snapshot and after:
            check_written(log.update_head(snapshot.head, after))
        return after is not None

    return retry_on_conflict(attempt)


def read_existing_head(log: TaskLog, key: TaskKey, agent: str) -> HeadSnapshot:
    """Returns the current head; raises TaskNotFound if there is no such task of this agent."""
    snapshot = log.read_head(key)
    if snapshot is None or snapshot.head.agent != agent:
        raise TaskNotFound
    return snapshot
