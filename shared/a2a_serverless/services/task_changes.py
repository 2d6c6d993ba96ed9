"""The only way to change a task from outside a run: read the head, decide, append; if refused, start again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.errors import Overloaded, TaskNotFound

if TYPE_CHECKING:
    from a2a_serverless.domain.head import Change, HeadSnapshot
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.ports.tasks import IdempotencyRecord, TaskLog

TRIES: Final = 20


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
    for _ in range(TRIES):
        decided = decide(read_existing_head(log, key, agent))
        if log.append(decided, receipt):
            return decided
    raise Overloaded


def read_existing_head(log: TaskLog, key: TaskKey, agent: str) -> HeadSnapshot:
    """Returns the current head; raises TaskNotFound if there is no such task of this agent."""
    snapshot = log.read_head(key)
    if snapshot is None or snapshot.head.agent != agent:
        raise TaskNotFound
    return snapshot
