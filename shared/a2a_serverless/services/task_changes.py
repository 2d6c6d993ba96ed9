"""The one way to change a task from outside a run: look, decide, append; when refused, look again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.errors import Overloaded, TaskNotFound

if TYPE_CHECKING:
    from a2a_serverless.domain.head import Change, HeadSnapshot
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.ports import IdempotencyRecord, TaskLog

TRIES: Final = 20


def change_task(
    log: TaskLog,
    key: TaskKey,
    agent: str,
    decide: Callable[[HeadSnapshot], Change],
    receipt: IdempotencyRecord | None = None,
) -> Change:
    """Appends what ``decide`` makes of the task as it is, and returns it. What ``decide`` raises goes through.

    Raises TaskNotFound when the task is not there or another agent's, Overloaded when others were faster every time.
    """
    for _ in range(TRIES):
        decided = decide(read_existing_head(log, key, agent))
        if log.append(decided, receipt):
            return decided
    raise Overloaded


def read_existing_head(log: TaskLog, key: TaskKey, agent: str) -> HeadSnapshot:
    """The task as it is; raises TaskNotFound when it is not there or another agent's."""
    snapshot = log.read_head(key)
    if snapshot is None or snapshot.head.agent != agent:
        raise TaskNotFound
    return snapshot
