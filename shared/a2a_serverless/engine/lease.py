"""How a run takes the lease of its task, and how a task is given up whose runs were lost too often."""

from __future__ import annotations

import asyncio
import logging
import math
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import decisions
from a2a_serverless.domain.cursors import CLOCK_SKEW_MS
from a2a_serverless.domain.decisions import DELAY_LIMIT_MS
from a2a_serverless.domain.errors import safe_error_fields
from a2a_serverless.domain.events import StatusEvent
from a2a_serverless.domain.head import LOST_LIMIT, CurrentHead, Head
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.periods import read_periods
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.domain.states import INTERRUPTED
from a2a_serverless.domain.trace import trace_id
from a2a_serverless.domain.waits import WaitKind, dump_waits, load_waits
from a2a_serverless.engine.signals import (
    ProcessInterrupted,
    StoreFailed,
    cause_of,
)
from a2a_serverless.engine.store_guard import guard_store
from a2a_serverless.services.content_links import store_contents
from a2a_serverless.services.pauses import retry_at
from a2a_serverless.services.task_changes import check_written, fail_task, retry_on_conflict
from a2a_serverless.store.keys import SHARDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.waits import OpenWait
    from a2a_serverless.engine.engine import Engine


FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 10.0
MARGIN_MS: Final = 20_000
LATE_MS: Final = decisions.RUN_LEASE_MS - 2 * decisions.RUN_RENEWAL_MS + CLOCK_SKEW_MS
"""A lease that ends so soon on any clock should have been renewed twice."""

logger = logging.getLogger(__name__)


async def take_task(
    engine: Engine, key: TaskKey, remaining_ms: Callable[[], int], look_later: Callable[[], object]
) -> tuple[CurrentHead, list[Event]] | None:
    """Takes the task as ``take_task_once`` does; repeats it while a store fails and there is time.

    ``look_later`` is called before each try. The write that takes the task may succeed without an answer. If the run
    left the task then, it would count as lost.
    """
    by = f"{engine.worker}/{engine.ids.new()}" if engine.worker else engine.ids.new()
    log, pause_s = guard_store(engine.log), FIRST_PAUSE_S
    engine = replace(engine, log=log, pauses=guard_store(engine.pauses))
    while True:
        try:
            look_later()
            return retry_on_conflict(lambda: take_task_once(engine, key, by))
        except StoreFailed as failure:
            if failure.is_permanent or remaining_ms() < MARGIN_MS:
                raise cause_of(failure) from None
        except ProcessInterrupted as interruption:
            raise cause_of(interruption) from None
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def take_task_once(engine: Engine, key: TaskKey, by: str) -> tuple[CurrentHead, list[Event]] | None:
    """Takes the task for the run ``by`` and returns it with its log; None when there is nothing to run.

    Raises AlreadyLeased, TooManyLostRuns, Conflict.
    """
    snapshot = engine.log.read_head(key)
    if snapshot is None:
        return None
    has_progressed = _has_progressed(engine, snapshot.head, by)
    try:
        decisions.resume_run(snapshot.head, now=engine.now(), by=by, has_progressed=has_progressed)
    except decisions.NotRunnable:
        _enqueue_early(engine, snapshot.head)
        return None
    except decisions.AlreadyLeased:
        _look_again(engine, snapshot.head)
        raise
    if pause := engine.pauses.find(snapshot.head.agent, key):
        _pause(engine, snapshot.head, pause)
        return None
    head_and_events = engine.log.read_log(key)  # read only if the task can run, because it may be long
    if head_and_events is None:
        return None
    events = head_and_events[1]
    # The head and the log are two reads: a log that is older or newer than the head is read again with it.
    # tests/model/test_model.py: test_without_a_guard_a_model_has_a_counterexample
    check_written(events[-1].n == snapshot.last)
    if _begins_with_event(snapshot.head, events, by):
        change = decisions.start_run(
            snapshot, now=engine.now(), by=engine.ids.new(), run=by, code=engine.code, has_progressed=has_progressed
        )
        check_written(engine.log.append(change))
        after, events = change.after, [*events, change.event]
    else:
        # The read of the log has taken time.
        after = decisions.resume_run(
            snapshot.head, now=engine.now(), by=by, code=engine.code, has_progressed=has_progressed
        )
        check_written(engine.log.update_head(snapshot.head, after))
    _count_start(engine, snapshot.head, after)
    return CurrentHead(after, events[-1].n), events


def _pause(engine: Engine, head: Head, pause: OpenWait) -> None:
    """Suspends a task that could run, and enqueues the message that tries again. Its other waits stay listed."""
    now = engine.now()
    listed = load_waits(head.waits).waits
    since = next((wait.since for wait in listed if (wait.kind, wait.name) == (pause.kind, pause.name)), now)
    others = [wait for wait in listed if wait.kind != WaitKind.PAUSE]
    wake_at = retry_at(pause, head.key.task, now)
    after = decisions.pause(head, now=now, wake_at=wake_at, waits=dump_waits([*others, pause._replace(since=since)]))
    check_written(engine.log.update_head(head, after))
    enqueue_wake(engine, after)


def _enqueue_early(engine: Engine, head: Head) -> None:
    """Enqueues the message that resumes a task once more: its sender's clock is ahead of this one."""
    left_ms = head.wake_at - engine.now()
    if head.parked and 0 < left_ms <= CLOCK_SKEW_MS:
        engine.queues.enqueue(WorkMessage(head.key), math.ceil(left_ms / 1000))


def _look_again(engine: Engine, head: Head) -> None:
    """Enqueues another look at a run that should have renewed its lease before: it may have died.

    The message that looks goes out before the renewal, and a slow store may delay that by more than the second between
    the end of the lease and the look. Dropped, it would leave the task to the sweeper.
    """
    left_ms = head.lease_until + CLOCK_SKEW_MS - engine.now()
    if left_ms <= LATE_MS:
        engine.queues.enqueue(WorkMessage(head.key), math.ceil(left_ms / 1000) + 1)


def _begins_with_event(head: Head, events: Sequence[Event], by: str) -> bool:
    """Whether the run says ``working``: a message of the client is the newest status, or a run was lost.

    That run may be about to write a chunk, whose number this event takes. Any other run, for example one whose timer is
    over or that goes on beside an open question, takes the task without an event.
    """
    status = next(event for event in reversed(events) if isinstance(event, StatusEvent))
    return head.state not in INTERRUPTED and (head.is_held_by_another(by) or not status.fence)


def _has_progressed(engine: Engine, head: Head, by: str) -> bool:
    """Whether the run that died under this head stored a result. Reads nothing unless a run died before it.

    A long task on machines that die now and then is not a task that kills its workers.
    """
    if not head.lost or not head.is_held_by_another(by) or head.is_leased(engine.now()):
        return False
    # The same worker's clock says when its run began and when its steps ended.
    began_at = read_periods(head.periods, head.created_at, head.fence).latest[-1].began_at
    return any(step.ended_at >= began_at for step in engine.log.list_step_times(head.key, sys.maxsize))


def give_up(engine: Engine, key: TaskKey) -> bool:
    """Ends a task whose runs were lost too often; False if something has changed it meanwhile."""

    def attempt() -> bool:
        snapshot = engine.log.read_head(key)
        if snapshot is None:
            return False
        with suppress(decisions.NotRunnable, decisions.AlreadyLeased):
            head, by = snapshot.head, engine.ids.new()
            try:
                decisions.resume_run(head, now=engine.now(), by=by, has_progressed=_has_progressed(engine, head, by))
            except decisions.TooManyLostRuns:
                text, lost_runs = "The task was given up: its workers died.", LOST_LIMIT
                check_written(
                    fail_task(engine.log, engine.ids, engine.metrics, snapshot, text, engine.now(), lost_runs)
                )
                logger.error("task given up", extra={"task": key.task})
                if ended := engine.log.read_task(key):
                    store_contents(engine.files.contents, Principal(key.tenant, key.owner), ended[1])
                return True
        return False

    return retry_on_conflict(attempt)


def recover_tasks(engine: Engine) -> list[TaskKey]:
    """Enqueues the tasks that an earlier process of this worker's name has left; returns their keys.

    Their leases end here, and their runs count as lost. An item that cannot be read is left to the sweeper.
    """
    keys = []
    # A running task is due at the end of its lease at the latest, so the index has them all.
    for shard in range(SHARDS):
        for due in engine.log.list_due(shard, engine.now() + decisions.RUN_LEASE_MS):
            if due.key is None or due.config_id is not None:
                continue
            try:
                if _recover_task(engine, due.key):
                    keys.append(due.key)
            except Exception as error:  # noqa: BLE001 - the other tasks go on
                logger.warning("task not recovered", extra=safe_error_fields(error) | {"task": due.key.task})
    return keys


def _recover_task(engine: Engine, key: TaskKey) -> bool:
    def attempt() -> bool:
        snapshot = engine.log.read_head(key)
        if snapshot is None:
            return False
        with suppress(decisions.NotRunnable):
            after = decisions.end_lease(snapshot.head, engine.worker, now=engine.now())
            check_written(engine.log.update_head(snapshot.head, after))
            engine.queues.enqueue(WorkMessage(key))
            return True
        return False

    return retry_on_conflict(attempt)


def _count_start(engine: Engine, before: Head, after: Head) -> None:
    """Logs that a run begins; counts a previous run that died, or records how long a new task was queued."""
    task = after.key.task
    if after.lost > before.lost:
        engine.metrics.count("LeaseLost", of="worker", task=task)
    elif before.fence == 0:
        engine.metrics.record({"QueueAge": after.status_at - before.status_at}, queue="work", task=task)
    ids = {"task": task, "agent": after.agent, "context": after.context_id, "run": after.fence}
    logger.info("task taken", extra={**ids, "trace": trace_id(after.trace)})


def enqueue_wake(engine: Engine, head: Head) -> None:
    """Enqueues the message that resumes a suspended task, if its wait ends soon; else the sweeper does that later."""
    left_ms = head.wake_at - engine.now()
    if head.wake_at and left_ms <= DELAY_LIMIT_MS:
        engine.queues.enqueue(WorkMessage(head.key), max(0, math.ceil(left_ms / 1000)))
