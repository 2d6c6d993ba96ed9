"""The webhooks of a deployment, for operators, who may pause, resume and redrive them.

An operator needs permissions for the table and the queue.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from a2a_serverless.domain import cursors
from a2a_serverless.domain.circuit_breaker import OpenBreaker, host_of
from a2a_serverless.domain.cursors import Cursor, CursorState
from a2a_serverless.domain.errors import TaskNotFound, UnsupportedOperation
from a2a_serverless.domain.queue_messages import DeliveryMessage
from a2a_serverless.services.task_changes import check_written, retry_on_conflict
from a2a_serverless.services.webhook_statuses import list_statuses
from a2a_serverless.store.items import read_or_skip
from a2a_serverless.store.keys import SHARDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from a2a_serverless.domain.model import JsonObject, TaskKey
    from a2a_serverless.domain.push_configs import WebhookStatus
    from a2a_serverless.ports.system import Clock, Queues
    from a2a_serverless.store.push_store import PushStore
    from a2a_serverless.store.stores import BreakerStore, PauseStore
    from a2a_serverless.store.task_log import TaskLog
    from a2a_serverless_tools.operators.erasure import ErasureService
    from a2a_serverless_tools.operators.queues import QueueDepth
    from a2a_serverless_tools.operators.restoration import Restoration

T = TypeVar("T")
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
    """All that an operator can do. ``rotator`` sends a command to that function and returns its answer.

    ``queues`` counts the messages of each queue. ``restoration`` copies from another table of tasks, by its name, and
    ``restore_access`` from another table of API keys; it returns how many keys it copied.
    """

    admin: DeliveryAdmin
    rotator: Callable[[Mapping[str, str]], JsonObject]
    erasure: ErasureService
    pauses: PauseStore
    queues: Callable[[], list[QueueDepth]]
    restoration: Callable[[str], Restoration]
    restore_access: Callable[[str], int]


class DeliverySelection(NamedTuple):
    """Webhooks that were given up: of a host (``name`` or ``name:port``), since a time (ms)."""

    host: str | None = None
    since: int | None = None


def list_exhausted(admin: DeliveryAdmin, limit: int, selection: DeliverySelection) -> list[WebhookStatus]:
    """Returns the selected webhooks of the whole deployment, at most ``limit``: see ``_selected``."""
    rows = list(islice(_selected(admin, selection), limit))
    heads = (read_or_skip(partial(admin.log.read_head, key), "task", task=key.task) for key in dict(rows))
    tasks = [list_statuses(admin.store, snapshot) for snapshot in filter(None, heads)]
    exhausted_keys = set(rows)
    return [one for statuses in tasks for one in statuses if (one.key, one.config.config_id) in exhausted_keys]


def redrive_all(admin: DeliveryAdmin, selection: DeliverySelection) -> Iterator[tuple[TaskKey, str]]:
    """Redrives the selected webhooks, and yields each; skips those that changed meanwhile or cannot be read.

    The limits of each host hold for redriven deliveries too; its circuit breaker lets one try pass at a time.
    """
    for key, config_id in _selected(admin, selection):
        with suppress(TaskNotFound, UnsupportedOperation):
            if _read_or_skip(partial(redrive, admin), key, config_id):
                yield key, config_id


def redrive_host(admin: DeliveryAdmin, breakers: BreakerStore, host: str) -> int:
    """Redrives all that was given up or waits at a host that is known to answer; returns how many that are."""
    breakers.store_open_breaker(host, OpenBreaker(admin.clock.now(), 0))
    return sum(1 for _ in redrive_all(admin, DeliverySelection(host=host)))


def redrive(admin: DeliveryAdmin, key: TaskKey, config_id: str) -> Cursor:
    """Delivers again at once, with the full number of attempts, also to a host that is paused.

    A refused URL gets a new challenge.
    """
    return _restart(admin, key, config_id, paused=False)


def pause(admin: DeliveryAdmin, key: TaskKey, config_id: str) -> Cursor:
    """Stops deliveries until ``resume``. A notification that is being sent still arrives and counts."""
    return _change(admin, key, config_id, _pause_cursor)


def resume(admin: DeliveryAdmin, key: TaskKey, config_id: str) -> Cursor:
    """Continues deliveries where they were paused."""
    return _restart(admin, key, config_id, paused=True)


def _selected(admin: DeliveryAdmin, selection: DeliverySelection) -> Iterator[tuple[TaskKey, str]]:
    """The webhooks given up since ``selection.since``, longest ago first; all by default.

    With ``selection.host`` only those of the host, then those that wait there.
    """
    rows = iter(admin.store.list_exhausted(EVERYTHING, selection.since or 0))
    if not selection.host:
        yield from rows
        return
    for key, config_id in chain(rows, _waiting(admin, selection.since or 0)):
        config = _read_or_skip(admin.store.get_config, key, config_id)
        if config is not None and selection.host.lower() in {host := host_of(config.url), host.partition(":")[0]}:
            yield key, config_id


def _waiting(admin: DeliveryAdmin, since: int) -> Iterator[tuple[TaskKey, str]]:
    """The webhooks that failed since then, or are held by their host, and wait for their next attempt."""
    until = admin.clock.now() + cursors.GIVE_UP_MS
    due = chain.from_iterable(admin.log.list_due(shard, until) for shard in range(SHARDS))
    for key, config_id in [(one.key, one.config_id) for one in due if one.key and one.config_id]:
        cursor = _read_or_skip(admin.store.get_cursor, key, config_id)
        if cursor and cursor.state is CursorState.ACTIVE and cursor.next_at and cursor.failing_since >= since:
            yield key, config_id


def _read_or_skip(read: Callable[[TaskKey, str], T | None], key: TaskKey, config_id: str) -> T | None:
    return read_or_skip(partial(read, key, config_id), "webhook", task=key.task, config=config_id)


def _pause_cursor(cursor: Cursor) -> Cursor:
    if cursor.state not in {CursorState.ACTIVE, CursorState.PAUSED}:
        raise UnsupportedOperation(f"It is {cursor.state} and sends nothing.")
    return replace(cursor, state=CursorState.PAUSED, due_at=None)


def _restart(admin: DeliveryAdmin, key: TaskKey, config_id: str, *, paused: bool) -> Cursor:
    """Makes a cursor due at once. ``paused`` is what it must be, or else UnsupportedOperation is raised."""

    def restart(cursor: Cursor) -> Cursor:
        if paused is not (cursor.state is CursorState.PAUSED):
            raise UnsupportedOperation(f"It is {cursor.state}, not paused." if paused else "It is paused. Resume it.")
        return cursors.redrive(cursor, now=admin.clock.now())

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
