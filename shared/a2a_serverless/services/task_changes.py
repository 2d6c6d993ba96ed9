"""Optimistic concurrency: read, decide, write on condition; when the write is refused, begin again.

Tasks are changed so from outside a run, and so is everything else that several processes write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from a2a_serverless.domain import decisions
from a2a_serverless.domain.errors import Overloaded, TaskNotFound
from a2a_serverless.protocol.v1 import Message, Part, Role, TaskState

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.decisions import Change
    from a2a_serverless.domain.head import CurrentHead, Head
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.new_task import IdempotencyRecord
    from a2a_serverless.ports.system import Ids, Metrics
    from a2a_serverless.store.task_log import TaskLog

T = TypeVar("T")

TRIES: Final = 20


class Conflict(Exception):
    """A conditional write was refused: the item has changed since it was read."""


def check_written(written: bool) -> None:  # noqa: FBT001 - the result of every store
    """Raises Conflict if a conditional write was refused."""
    if not written:
        raise Conflict


def _raise_overloaded() -> NoReturn:
    raise Overloaded


def retry_on_conflict(attempt: Callable[[], T], exhausted: Callable[[], T] = _raise_overloaded) -> T:
    """Returns the result of ``attempt``; repeats it while it raises Conflict, at once, ``TRIES`` times in all.

    Then returns the result of ``exhausted``, which by default raises Overloaded.
    """
    for _ in range(TRIES):
        try:
            return attempt()
        except Conflict:
            continue
    return exhausted()


def change_task(log: TaskLog, key: TaskKey, agent: str, decide: Callable[[CurrentHead], Change]) -> Change:
    """Appends the change that ``decide`` makes from the current head, and returns it. Raises the errors of ``decide``.

    Raises TaskNotFound if there is no such task of this agent, Overloaded if the head changed at every attempt.
    """
    return retry_on_conflict(lambda: try_change(log, key, agent, decide))


def try_change(
    log: TaskLog,
    key: TaskKey,
    agent: str,
    decide: Callable[[CurrentHead], Change],
    record: IdempotencyRecord | None = None,
) -> Change:
    """One attempt of ``change_task``; raises Conflict if the head has changed since it was read."""
    change = decide(read_existing_head(log, key, agent))
    check_written(log.append(change, record))
    return change


def update_head(log: TaskLog, key: TaskKey, decide: Callable[[Head], Head | None]) -> bool:
    """Updates the head by ``decide``, without an event; False if ``decide`` returns None, or without such a task."""

    def attempt() -> bool:
        current = log.read_head(key)
        after = current and decide(current.head)
        if current and after:
            check_written(log.update_head(current.head, after))
        return after is not None

    return retry_on_conflict(attempt)


def fail_task(  # noqa: PLR0913 - the facts of a change
    log: TaskLog, ids: Ids, metrics: Metrics, current: CurrentHead, text: str, now: int, lost: int = 0
) -> bool:
    """Ends a task as failed, with the text as the agent's message, after ``lost`` runs that died.

    False, without a change, if the head has changed.
    """
    key = current.head.key
    about = {"context_id": current.head.context_id, "task_id": key.task}
    message = Message(message_id=ids.new(), role=Role.AGENT, parts=(Part(text=text),), **about)
    is_written = log.append(decisions.fail_task(current, message, now=now, by=ids.new(), lost=lost))
    if is_written:
        metrics.count("TaskStates", state=TaskState.FAILED, task=key.task)
    return is_written


def read_existing_head(log: TaskLog, key: TaskKey, agent: str) -> CurrentHead:
    """Returns the current head; raises TaskNotFound if there is no such task of this agent."""
    current = log.read_head(key)
    if current is None or current.head.agent != agent:
        raise TaskNotFound
    return current
