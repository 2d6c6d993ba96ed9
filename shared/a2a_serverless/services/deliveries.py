"""How the webhooks of a task stand: for its owner, and for the operator, who may also pause, resume and redrive them.

An operator's rights are those to the table and the queue; an owner's, as everywhere, are in the key of the task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import delivery
from a2a_serverless.domain.bells import DeliveryBell
from a2a_serverless.domain.breaker import host_of
from a2a_serverless.domain.errors import Overloaded, TaskNotFound, UnsupportedOperation
from a2a_serverless.domain.push import Attempt, Cursor, CursorState, PushConfig, Standing
from a2a_serverless.services.changes import found

if TYPE_CHECKING:
    from a2a_serverless.domain.model import JsonObject, TaskKey
    from a2a_serverless.ports import Bells, Clock, PushStore, TaskLog

TRIES: Final = 20
ATTEMPTS_SHOWN: Final = 100
EVERYTHING: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Switchboard:
    """What an operator needs."""

    log: TaskLog
    store: PushStore
    bells: Bells
    clock: Clock


@dataclass(frozen=True, slots=True)
class Operations:
    """All that an operator can do: ``rotator`` and ``eraser`` take a command of that function's and give its answer."""

    board: Switchboard
    rotator: Callable[[Mapping[str, str]], JsonObject]
    eraser: Callable[[JsonObject], JsonObject]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which of the given up are meant: those of one ``host`` (``name`` or ``name:port``), those since ``since`` (ms).

    Without either it is all of them.
    """

    host: str = ""
    since: int = 0

    def takes(self, config: PushConfig) -> bool:
        host = host_of(config.url)
        return self.host.lower() in {"", host, host.partition(":")[0]}


def deliveries(log: TaskLog, store: PushStore, key: TaskKey, agent: str) -> list[Standing]:
    """Every configuration of the owner's task; raises TaskNotFound."""
    found(log, key, agent)
    return standings(log, store, key)


def standings(log: TaskLog, store: PushStore, key: TaskKey) -> list[Standing]:
    """Every configuration of the task, by id; raises TaskNotFound."""
    look = log.look(key)
    if look is None:
        raise TaskNotFound
    configs = {config.config_id: config for config in store.configs(key)}
    attempts = store.attempts(key)
    return [
        Standing(key, configs[cursor.config_id], cursor, look.last, _of(attempts, cursor.config_id))
        for cursor in store.cursors(key)
        if cursor.config_id in configs
    ]


def exhausted(board: Switchboard, limit: int, selection: Selection = Selection()) -> list[Standing]:
    """What was given up in the whole deployment, longest ago first, at most ``limit``."""
    rows = list(islice(_given_up(board, selection), limit))
    tasks = {key: standings(board.log, board.store, key) for key in dict(rows) if board.log.look(key)}
    wanted = set(rows)
    return [one for found in tasks.values() for one in found if (one.key, one.config.config_id) in wanted]


def redrive_all(board: Switchboard, selection: Selection) -> Iterator[tuple[TaskKey, str]]:
    """Redrives everything that was given up and is meant, longest ago first; what was changed meanwhile is passed over.

    No storm comes of it: the limits of each host and its breaker hold for redriven deliveries too.
    """
    for key, config_id in _given_up(board, selection):
        try:
            redrive(board, key, config_id)
        except (TaskNotFound, UnsupportedOperation):
            continue
        yield key, config_id


def redrive(board: Switchboard, key: TaskKey, config_id: str) -> Cursor:
    """Tries again at once, with all tries ahead of it. A URL that was refused is asked once more."""
    return _ring(board, key, _change(board, key, config_id, lambda cursor: _redriven(board, cursor)))


def pause(board: Switchboard, key: TaskKey, config_id: str) -> Cursor:
    """Sends no more until it is resumed. A notification that is under way arrives and counts."""
    return _change(board, key, config_id, _paused)


def resume(board: Switchboard, key: TaskKey, config_id: str) -> Cursor:
    """Goes on where it was paused."""
    return _ring(board, key, _change(board, key, config_id, lambda cursor: _resumed(board, cursor)))


def _given_up(board: Switchboard, selection: Selection) -> Iterator[tuple[TaskKey, str]]:
    for key, config_id in board.store.exhausted(EVERYTHING, selection.since):
        config = board.store.config(key, config_id)
        if config is not None and selection.takes(config):
            yield key, config_id


def _redriven(board: Switchboard, cursor: Cursor) -> Cursor:
    if cursor.state is CursorState.PAUSED:
        raise UnsupportedOperation("It is paused. Resume it.")
    return delivery.redriven(cursor, now=board.clock.now())


def _paused(cursor: Cursor) -> Cursor:
    if cursor.state not in {CursorState.ACTIVE, CursorState.PAUSED}:
        raise UnsupportedOperation(f"It is {cursor.state} and sends nothing.")
    return replace(cursor, state=CursorState.PAUSED, due_at=None)


def _resumed(board: Switchboard, cursor: Cursor) -> Cursor:
    if cursor.state is not CursorState.PAUSED:
        raise UnsupportedOperation(f"It is {cursor.state}, not paused.")
    return delivery.redriven(cursor, now=board.clock.now())


def _change(board: Switchboard, key: TaskKey, config_id: str, change: Callable[[Cursor], Cursor]) -> Cursor:
    for _ in range(TRIES):
        cursor = board.store.cursor(key, config_id)
        if cursor is None or cursor.state is CursorState.CLOSED:
            raise TaskNotFound("The push notification configuration was not found.")
        after = change(cursor)
        if board.store.move(key, cursor, after):
            return after
    raise Overloaded


def _ring(board: Switchboard, key: TaskKey, cursor: Cursor) -> Cursor:
    board.bells.ring(DeliveryBell(key, cursor.config_id))
    return cursor


def _of(attempts: list[Attempt], config_id: str) -> tuple[Attempt, ...]:
    return tuple(attempt for attempt in attempts if attempt.config_id == config_id)[-ATTEMPTS_SHOWN:]
