"""The delivery status of webhooks, for owners and operators; operators may also pause, resume and redrive them.

An operator needs rights to the table and the queue. An owner sees only its own tasks, because their keys contain it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import delivery
from a2a_serverless.domain.circuit_breaker import host_of
from a2a_serverless.domain.errors import TaskNotFound, UnsupportedOperation
from a2a_serverless.domain.push import Cursor, CursorState, WebhookStatus
from a2a_serverless.domain.queue_messages import DeliveryMessage
from a2a_serverless.services.task_changes import check_written, read_existing_head, retry_on_conflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from a2a_serverless.domain.model import JsonObject, TaskKey
    from a2a_serverless.ports.delivery import PushStore
    from a2a_serverless.ports.system import Clock, Queues
    from a2a_serverless.ports.tasks import TaskLog
    from a2a_serverless.protocol.additions import DeliverySelection

ATTEMPTS_SHOWN: Final = 100
EVERYTHING: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class DeliveryAdmin:
    """The dependencies of these operations."""

    log: TaskLog
    store: PushStore
    queues: Queues
    clock: Clock


@dataclass(frozen=True, slots=True)
class Operations:
    """All that an operator can do. ``rotator`` and ``eraser`` send a command to that function and return its answer."""

    admin: DeliveryAdmin
    rotator: Callable[[Mapping[str, str]], JsonObject]
    eraser: Callable[[JsonObject], JsonObject]


def list_deliveries(log: TaskLog, store: PushStore, key: TaskKey, agent: str) -> list[WebhookStatus]:
    """Returns the status of every configuration of the owner's task; raises TaskNotFound."""
    read_existing_head(log, key, agent)
    return list_statuses(log, store, key)


def list_statuses(log: TaskLog, store: PushStore, key: TaskKey) -> list[WebhookStatus]:
    """Returns the status of every configuration of the task, by id; raises TaskNotFound."""
    snapshot = log.read_head(key)
    if snapshot is None:
        raise TaskNotFound
    configs = {config.config_id: config for config in store.list_configs(key)}
    attempts = store.list_attempts(key)
    return [
        WebhookStatus(
            key,
            configs[cursor.config_id],
            cursor,
            snapshot.last,
            tuple(one for one in attempts if one.config_id == cursor.config_id)[-ATTEMPTS_SHOWN:],
        )
        for cursor in store.list_cursors(key)
        if cursor.config_id in configs
    ]


def list_exhausted(admin: DeliveryAdmin, limit: int, selection: DeliverySelection) -> list[WebhookStatus]:
    """Returns the exhausted webhooks of the whole deployment, given up longest ago first, at most ``limit``."""
    rows = list(islice(_given_up(admin, selection), limit))
    tasks = {key: list_statuses(admin.log, admin.store, key) for key in dict(rows) if admin.log.read_head(key)}
    wanted = set(rows)
    return [one for found in tasks.values() for one in found if (one.key, one.config.config_id) in wanted]


def redrive_all(admin: DeliveryAdmin, selection: DeliverySelection) -> Iterator[tuple[TaskKey, str]]:
    """Redrives the selected webhooks, given up longest ago first, and yields each; skips those that changed meanwhile.

    The limits and the circuit breaker of each host hold for redriven deliveries too.
    """
    for key, config_id in _given_up(admin, selection):
        try:
            redrive(admin, key, config_id)
        except (TaskNotFound, UnsupportedOperation):
            continue
        yield key, config_id


def redrive(admin: DeliveryAdmin, key: TaskKey, config_id: str) -> Cursor:
    """Delivers again at once, with the full number of attempts. A refused URL gets a new challenge."""
    return _restart(admin, key, config_id, paused=False)


def pause(admin: DeliveryAdmin, key: TaskKey, config_id: str) -> Cursor:
    """Stops deliveries until ``resume``. A notification that is being sent still arrives and counts."""
    return _change(admin, key, config_id, _pause_cursor)


def resume(admin: DeliveryAdmin, key: TaskKey, config_id: str) -> Cursor:
    """Continues deliveries where they were paused."""
    return _restart(admin, key, config_id, paused=True)


def _given_up(admin: DeliveryAdmin, selection: DeliverySelection) -> Iterator[tuple[TaskKey, str]]:
    """The webhooks given up since ``selection.since`` at its host (``name`` or ``name:port``); all by default."""
    wanted = (selection.host or "").lower()
    for key, config_id in admin.store.list_exhausted(EVERYTHING, selection.since or 0):
        config = admin.store.get_config(key, config_id)
        if config is not None and wanted in {"", host := host_of(config.url), host.partition(":")[0]}:
            yield key, config_id


def _pause_cursor(cursor: Cursor) -> Cursor:
    if cursor.state not in {CursorState.ACTIVE, CursorState.PAUSED}:
        raise UnsupportedOperation(f"It is {cursor.state} and sends nothing.")
    return replace(cursor, state=CursorState.PAUSED, due_at=None)


def _restart(admin: DeliveryAdmin, key: TaskKey, config_id: str, *, paused: bool) -> Cursor:
    """Makes a cursor due at once. ``paused`` is what it must be, or else UnsupportedOperation is raised."""

    def restart(cursor: Cursor) -> Cursor:
        if paused is not (cursor.state is CursorState.PAUSED):
            raise UnsupportedOperation(f"It is {cursor.state}, not paused." if paused else "It is paused. Resume it.")
        return delivery.redrive(cursor, now=admin.clock.now())

    after = _change(admin, key, config_id, restart)
    admin.queues.enqueue(DeliveryMessage(key, config_id))
    return after


def _change(admin: DeliveryAdmin, key: TaskKey, config_id: str, change: Callable[[Cursor], Cursor]) -> Cursor:
    def attempt() -> Cursor:
        cursor = admin.store.get_cursor(key, config_id)
        if cursor is None or cursor.state is CursorState.CLOSED:
            raise TaskNotFound("The push notification configuration was not found.")
        after = change(cursor)
        check_written(admin.store.move_cursor(key, cursor, after))
        return after

    return retry_on_conflict(attempt)
