"""Removes guards from the library, one at a time, in this process only: test tools show that they find each bug.

``REMOVED_GUARDS`` has them by name. ``with removed(): ...`` runs what is inside without the guard.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from a2a_serverless.domain import cursors, decisions, head
from a2a_serverless.domain.cursors import CursorState
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.engine import run as running
from a2a_serverless.engine import run_session
from a2a_serverless.engine.artifact_writer import ArtifactWriter
from a2a_serverless.engine.engine import RunOutcome
from a2a_serverless.engine.run_session import RunSession
from a2a_serverless.engine.signals import StoreFailed
from a2a_serverless.engine.steps import Steps
from a2a_serverless.services import callbacks, deliver, sweep, webhooks
from a2a_serverless.services.cursor_lease import CursorLease
from a2a_serverless.services.rate_limiter import RateLimiter
from a2a_serverless.store import task_log
from a2a_serverless.testing.memory import MemoryKeyRingStore
from tests import simulated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from a2a_serverless.domain.step_results import NamedResult


@dataclass(frozen=True)
class RemovedGuard:
    """A guard to remove: ``guard`` says what it does, ``swaps`` are (owner, name, what stands there instead).

    A simulation of the ``scenarios`` finds it by the ``promise`` that is broken without it.
    """

    name: str
    guard: str
    swaps: tuple[tuple[Any, str, Any], ...]
    promise: str = ""
    scenarios: tuple[str, ...] = ()

    def __call__(self) -> AbstractContextManager[None]:
        """The library without the guard."""
        return self._removed()

    @contextmanager
    def _removed(self) -> Iterator[None]:
        with ExitStack() as stack:
            for owner, name, new in self.swaps:
                stack.enter_context(patch.object(owner, name, new))
            yield


async def _run_or_send_on(engine: Any, key: Any, *more: Any) -> Any:
    ending = await running.run(engine, key, *more)
    if ending is RunOutcome.LEASED:
        engine.queues.enqueue(WorkMessage(key), decisions.RUN_LEASE_MS // 1000)
    return ending


def _suspend_whatever_came(before: Any, fence: int, seen: int, **when: Any) -> Any:
    del seen
    return decisions.suspend(before, fence, before.wake, **when)


def _ask_whatever_came(current: Any, fence: int, state: Any, question: Any, seen: int, **when: Any) -> Any:
    del seen
    return decisions.ask(current, fence, state, question, current.head.wake, **when)


async def _die_with_the_store(_: running.Run, failed: StoreFailed) -> Any:
    raise failed.__cause__ or failed


def _sweep_or_raise(sweeper: Any, due: Any) -> Any:
    if due.key is None:
        raise ValueError("an item of another release")
    if due.config_id is None:
        return sweep._sweep_head(sweeper, due, due.key)  # noqa: SLF001 - as all below
    return sweep._sweep_cursor(sweeper, due, due.key, due.config_id)  # noqa: SLF001


_batches: Final = sweep._batches  # noqa: SLF001


def _one_batch(sweeper: Any) -> Iterator[Any]:
    yield from [*_batches(sweeper)][:1]


def _forget_the_end(self: RunSession, name: str, result: Any) -> Any:
    kept = self._log.store_step(self.head, name, result, of_run=False)
    return kept or result, False


def _wake_for_everything(_: Any, call: Any, incoming: Any, service: Any) -> Any:
    del incoming
    return None if call.done or call.failed else decisions.wake(_, now=service.clock.now())


def _save_over(self: MemoryKeyRingStore, ring: Any, before: Any) -> bool:
    del before
    self.ring = ring
    return True


def _write_only(self: ArtifactWriter, step: Any, artifact: Any, **how: Any) -> None:
    self._write(step.path, step.attempt, artifact, **how)


_check_count: Final = webhooks._check_count  # noqa: SLF001


def _check_once(*what: Any) -> None:
    if sys._getframe(1).f_code.co_name != "attempt":  # noqa: SLF001
        _check_count(*what)


_check_streams: Final = RateLimiter._check_streams  # noqa: SLF001


def _check_before_only(self: RateLimiter, principal: Any, own: int) -> None:
    if not own:
        _check_streams(self, principal, own)


def _renew_once(self: CursorLease) -> None:
    now = self._context.clock.now()
    if not cursors.covers_attempt(self.cursor, now):
        self.move(cursors.renew_lease(self.cursor, now=now))


def _delete_whichever(store: Any, clock: Any, key: Any, config_id: str) -> None:
    while cursor := store.get_cursor(key, config_id):
        if cursor.state is not CursorState.CLOSED:
            store.close_config(key, cursor)
        elif cursor.lease_until > clock.now():
            clock.sleep(webhooks.CLOSE_POLL_S)
        else:
            store.remove_config(key, config_id, cursor.incarnation)


_suspend: Final = RunSession.suspend


def _take_for_a_failure(self: RunSession, seen: int, wake_at: int, waits: str, *timers: NamedResult) -> None:
    try:
        _suspend(self, seen, wake_at, waits, *timers)
    except decisions.WakeCounterChanged as woken:
        raise StoreFailed from woken


def _no(*_: Any, **__: Any) -> None:
    """Does nothing."""


def _by_name(*guards: RemovedGuard) -> dict[str, RemovedGuard]:
    return {one.name: one for one in guards}


_FEWER_DEATHS: Final = ((decisions, "LOST_LIMIT", 5), (head, "LOST_LIMIT", 5))
"""The outages of the simulation are too short for more deaths in a row."""

REMOVED_GUARDS: Final = _by_name(
    RemovedGuard(
        "torn read",
        "a head that is older than its events is read again",
        ((task_log, "_has_moved_head", lambda *_: False),),
        "logs",
        ("hasty",),
    ),
    RemovedGuard(
        "lost wake-up",
        "a run suspends only if nothing has come",
        ((run_session, "suspend", _suspend_whatever_came), (run_session, "ask", _ask_whatever_came)),
        "callers",
        ("called",),
    ),
    RemovedGuard(
        "multiplying messages",
        "a message that meets a live lease is dropped",
        ((simulated, "run", _run_or_send_on),),
        "quiet",
        ("talked to",),
    ),
    RemovedGuard(
        "store outage",
        "a store that fails is waited for",
        ((running.Run, "_release_after", _die_with_the_store), *_FEWER_DEATHS),
        "tasks",
        ("written",),
    ),
    RemovedGuard(
        "unreadable item",
        "what cannot be read starves nobody",
        ((sweep, "_sweep_item", _sweep_or_raise),),
        "functions",
        ("unreadable",),
    ),
    RemovedGuard(
        "one batch",
        "one sweep handles all that is due",
        ((sweep, "_batches", _one_batch),),
        "functions",
        ("unreadable", "written"),
    ),
    RemovedGuard(
        "orphaned child",
        "a call that is made while its task ends is canceled",
        ((RunSession, "store_sent_call", _forget_the_end), (callbacks, "_mark_orphan", _no)),
        "called tasks",
        ("canceled",),
    ),
    RemovedGuard(
        "child events",
        "a callback about progress wakes nobody",
        ((callbacks, "_wake_task", _wake_for_everything),),
        "quiet",
        ("called",),
    ),
    RemovedGuard(
        "replaced webhook",
        "a replacement keeps the lease of what it replaces",
        ((webhooks, "replace_cursor", lambda _, first, **__: first),),
        "one post",
        ("rehooked",),
    ),
    RemovedGuard(
        "key ring",
        "a ring is saved only over the one that was read",
        ((MemoryKeyRingStore, "save", _save_over),),
        "clients",
        ("rotated",),
    ),
    RemovedGuard(
        "emit in steps",
        "what a repeated step emits replaces what it emitted before",
        ((ArtifactWriter, "_emit_in", _write_only), (ArtifactWriter, "settle", _no)),
        "programs",
        ("played",),
    ),
    RemovedGuard(
        "endless step", "a step that fits into no run fails", ((Steps, "note_unfinished", _no),), "tasks", ("endless",)
    ),
    RemovedGuard(
        "poison message",
        "a task of which five workers died is given up",
        ((decisions, "LOST_LIMIT", 1 << 30), (head, "LOST_LIMIT", 1 << 30)),
        "tasks",
        ("poison",),
    ),
    RemovedGuard(
        "twenty webhooks",
        "they are counted when one is written",
        ((webhooks, "_check_count", _check_once),),
        "clients",
        ("crowded",),
    ),
    RemovedGuard(
        "stream slots",
        "streams are counted after one is opened",
        ((RateLimiter, "_check_streams", _check_before_only),),
        "clients",
        ("streamed",),
    ),
    RemovedGuard(
        "late renewal",
        "a renewal that is answered late is repeated",
        ((CursorLease, "extend", _renew_once),),
        "webhooks",
        ("told",),
    ),
    RemovedGuard(
        "due for ever",
        "a webhook that has had everything is not due",
        ((deliver._Claim, "_settle", lambda *_: deliver.DeliveryOutcome.CAUGHT_UP),),  # noqa: SLF001
        "quiet",
        ("crowded",),
    ),
    RemovedGuard(
        "wrong delete",
        "a delete leaves what was registered after it",
        ((webhooks, "close", _delete_whichever),),
        "kept webhooks",
        ("rehooked",),
    ),
    RemovedGuard(
        "late wake-up",
        "a refused suspension is no failure",
        ((RunSession, "suspend", _take_for_a_failure),),
        "functions",
        ("called",),
    ),
)
