"""One run of a task: takes the lease, runs the agent's function under supervision, and stores its end.

A run may die at any line. What it wrote stays, and the next run does the rest: it reads the results of finished steps
and skips chunks that the log holds. If another run takes the task, this one stops at its next write, which is refused.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

from a2a_serverless.domain import head as heads
from a2a_serverless.domain.agent import (
    Agent,
    AgentCallFailed,
    Answer,
    BudgetExceeded,
    CancelReason,
    StepConflict,
    StepTimedOut,
    work_on,
)
from a2a_serverless.domain.delivery import CLOCK_SKEW_MS
from a2a_serverless.domain.errors import safe_error_fields
from a2a_serverless.domain.events import StatusEvent, event_size
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.engine.acts import Acts
from a2a_serverless.engine.calls import cancel_children
from a2a_serverless.engine.engine import Engine, RunOutcome, guard_stores
from a2a_serverless.engine.execution import Execution
from a2a_serverless.engine.lease import FIRST_PAUSE_S, LONGEST_PAUSE_S, MARGIN_MS, enqueue_wake, give_up, take_task
from a2a_serverless.engine.loop import ENGINE_TASK, OUTSIDE_STEPS
from a2a_serverless.engine.run_session import RunSession
from a2a_serverless.engine.signals import (
    SIGNALS,
    CodeReplaced,
    NeedsWorker,
    ProcessInterrupted,
    StepAlreadyStored,
    StoreFailed,
    Suspended,
    TimeLimitReached,
    cause_of,
)
from a2a_serverless.engine.task_context import DurableTaskContext
from a2a_serverless.engine.task_copy import TaskCopy
from a2a_serverless.engine.task_end import fail, make_answer
from a2a_serverless.engine.task_reader import TaskReader
from a2a_serverless.protocol.v1 import Message, TaskState

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.head import HeadSnapshot
    from a2a_serverless.domain.model import TaskKey

WATCH_S: Final = 1.0
LOOK_DELAY_S: Final = (heads.RUN_LEASE_MS + CLOCK_SKEW_MS) // 1000 + 1
"""This many seconds after its last renewal, a lease is over on any clock."""
CLEAN_UP_S: Final = 5.0

logger = logging.getLogger(__name__)


async def run(engine: Engine, key: TaskKey, remaining_ms: Callable[[], int]) -> RunOutcome:
    """Runs the task until it ends, waits or hands over. ``remaining_ms`` returns the time that is left.

    A queue message that meets a live lease is dropped: the run with the lease reads the head itself, and can release
    the lease only with the newest head. It also enqueues the messages that find out whether it has died.
    """
    try:
        taken = await take_task(engine, key, remaining_ms)
    except heads.TooManyLostRuns:
        if give_up(engine, key):
            _clean_up(engine, key)
        return RunOutcome.NOTHING_TO_DO
    except heads.AlreadyLeased:
        return RunOutcome.LEASED
    if taken is None:
        _clean_up(engine, key)
        return RunOutcome.NOTHING_TO_DO
    snapshot, events = taken
    bytes_since_snapshot = sum(event_size(event) for event in events[snapshot.head.snapshot_position :])
    session = RunSession(
        engine.log, engine.ids, engine.now, snapshot, engine.metrics, bytes_since_snapshot, engine.tracer
    )
    try:
        try:
            with engine.tracer.enter(session.trace):
                ending = await _run_agent(guard_stores(engine), session, events, remaining_ms)
        except StoreFailed as failed:
            ending = await _release_task(engine, session, failed, remaining_ms)
    except heads.LeaseLost:
        ending = RunOutcome.LEASE_LOST
    except ProcessInterrupted as interrupted:
        raise cause_of(interrupted) from None
    if ending is not RunOutcome.ENDED or session.head.children:
        _clean_up(engine, key)
    if engine.tracer.is_on:
        _record_spans(engine, session, snapshot, events, ending)
    return ending


def _record_spans(
    engine: Engine, session: RunSession, begun: HeadSnapshot, events: list[Event], ending: RunOutcome
) -> None:
    """Records the run's span, and those of the waits before it. ``begun`` is the head that the run began with."""
    from a2a_serverless.domain.spans import run_span, wait_spans

    head, agent = session.head, engine.agents.get(session.head.agent)
    statuses = (event for event in events if isinstance(event, StatusEvent))
    for span in wait_spans(begun.head, statuses, session.fence):
        engine.tracer.record(span)
    times = (session.began_at, engine.now())
    span = run_span(head._replace(trace=begun.head.trace), session.trace, *times, agent, ending.value)
    engine.tracer.record(span)


async def _release_task(
    engine: Engine, session: RunSession, failed: StoreFailed, remaining_ms: Callable[[], int]
) -> RunOutcome:
    """Retries a failed store call until it succeeds, then releases the task: the run does not count as lost.

    Meanwhile it renews the lease if the store allows. When time is over it releases the task without the retry. If
    that fails too, or if the failure is permanent, it raises the failure, and the queue message comes again.
    """
    if failed.is_permanent:
        raise cause_of(failed) from None
    ids = {"task": session.key.task, "fence": session.fence}
    logger.error("a store has failed", extra=safe_error_fields(cause_of(failed)) | ids)
    pause_s = FIRST_PAUSE_S
    while not _retry_failed(engine, session, failed, in_time=remaining_ms() >= MARGIN_MS):
        with suppress(StoreFailed):
            session.renew_when_due()
        left_s = max(0.0, (remaining_ms() - MARGIN_MS) / 1000)
        await asyncio.sleep(min(pause_s, left_s + FIRST_PAUSE_S))
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
    return RunOutcome.HANDED_OVER


def _retry_failed(engine: Engine, session: RunSession, failed: StoreFailed, *, in_time: bool) -> bool:
    """Repeats the failed call and releases the task; False if that failed and there is time to try again."""
    try:
        if in_time:
            failed.retry()
        if session.release():
            engine.queues.enqueue(WorkMessage(session.key))
    except StoreFailed as still:
        if still.is_permanent or not in_time:
            raise cause_of(still) from None
        return False
    return True


def _clean_up(engine: Engine, key: TaskKey) -> None:
    """Does the rest of the work for an ended task: sends its dead letter if it was given up, and cancels its calls.

    A failed cancel is repeated when the task is next due. A dead letter is sent twice only by a process that dies
    before it has stored that it was sent.
    """
    snapshot = engine.log.read_head(key)
    if snapshot and snapshot.head.is_given_up:
        engine.send_to_dead_letters(WorkMessage(key))
        engine.log.update_head(snapshot.head, heads.note_dead_letter(snapshot.head))
        snapshot = engine.log.read_head(key)
    if snapshot and snapshot.head.is_terminal and snapshot.head.children:
        try:
            cancel_children(engine.log, engine.registry.remote_agents, snapshot.head, now=engine.now())
        except AgentCallFailed:
            logger.warning("a call could not be canceled", extra={"task": key.task})


async def _run_agent(
    engine: Engine, session: RunSession, events: list[Event], remaining_ms: Callable[[], int]
) -> RunOutcome:
    agent = engine.agents.get(session.head.agent)
    if agent is None:
        return _end_run(session, TaskState.FAILED, session.make_message("This agent is no longer deployed."))
    if session.head.repeats:
        copy = TaskCopy(engine.log, engine.values, engine.files.contents, session)
        copied = copy.complete(events, lambda: remaining_ms() >= MARGIN_MS)
        if copied is None:
            return RunOutcome.ENDED if session.head.is_terminal else _hand_over(engine, session)
        events = copied
    others = TaskReader(engine.log, engine.index, session.key)
    execution = Execution(
        session,
        events,
        budget=agent.budget,
        owner_usd=engine.owner_usd,
        find_pause=lambda: engine.pauses.find(agent.id, session.key),
        whole_last_chunk=agent.whole_last_chunk,
    )
    acts = Acts(
        execution,
        others,
        engine.registry,
        engine.values,
        engine.files,
        heard_at=events[-1].at,
        read_secret=engine.read_secret,
        callback_sealer=engine.callback_sealer,
        packages=frozenset({agent.work.__module__.partition(".")[0]}),
        prices=engine.prices,
        remote=agent.remote,
    )
    try:
        state, last_word = await _outcome(agent, acts, session, engine, remaining_ms)
    except Suspended:
        enqueue_wake(engine, session.head)
        return RunOutcome.WAITING
    except (TimeLimitReached, CodeReplaced, NeedsWorker, StepAlreadyStored) as reason:
        try:
            if isinstance(reason, TimeLimitReached):
                acts.steps.note_unfinished()
        except StepTimedOut as endless:
            return _end_run(session, TaskState.FAILED, session.make_message(str(endless)))
        return _hand_over(engine, session)
    return _end_run(session, state, last_word)


def _hand_over(engine: Engine, session: RunSession) -> RunOutcome:
    session.hand_over()
    engine.queues.enqueue(WorkMessage(session.key))
    return RunOutcome.HANDED_OVER


async def _outcome(
    agent: Agent, acts: Acts, session: RunSession, engine: Engine, remaining_ms: Callable[[], int]
) -> tuple[TaskState, Message | None]:
    """The final state of the agent's work, and its final message. Signals that end only the run are raised."""
    done = await _run_watched(agent, acts, session, engine, remaining_ms)
    try:
        answer = acts.execution.outcome(done)
        return TaskState.COMPLETED, None if answer is None else make_answer(agent, answer, session)
    except (StepConflict, BudgetExceeded) as error:
        failure: BaseException = error
    except SIGNALS:
        raise
    except BaseException as error:  # noqa: BLE001 - any error of the agent
        failure = error
    return fail(failure, agent, acts, session, engine)


async def _run_watched(
    agent: Agent, acts: Acts, session: RunSession, engine: Engine, remaining_ms: Callable[[], int]
) -> asyncio.Future[Answer]:
    """Runs the agent until it is done, or until the supervisor or the chunk writer stops it, and raises their reason.

    The agent's own result or exception is in the returned future. A signal of its task (``Execution.signal``)
    takes precedence over both.
    """
    execution = acts.execution
    working = asyncio.ensure_future(_work_on(agent, acts))
    watching = [
        asyncio.create_task(work, name=ENGINE_TASK)
        for work in (
            execution.endings.run(lambda: execution.suspend(remaining_ms() - MARGIN_MS)),
            _supervise(session, execution, engine, remaining_ms),
            _write_chunks(session),
        )
    ]
    try:
        await asyncio.wait({working, *watching}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            stopped = next(one for one in watching if one.done())
            execution.close(_cancel_reason(stopped.exception() or execution.signal))
            working.cancel()
            await asyncio.wait({working}, timeout=CLEAN_UP_S)
            with suppress(StepConflict, BudgetExceeded):  # it is the execution's signal, too
                stopped.result()
        return working
    finally:
        for one in (working, *watching):
            one.cancel()


async def _work_on(agent: Agent, acts: Acts) -> Answer:
    """Runs the agent's function; the loop knows its timers from the engine's. No other code of it acts afterwards."""
    OUTSIDE_STEPS.set(True)
    execution = acts.execution
    try:
        if acts.mirror:
            with execution.remember_signal():
                return await acts.mirror.follow()
        return await work_on(agent, DurableTaskContext(acts))
    finally:
        if execution.cancellation is None:
            execution.close()


def _cancel_reason(reason: BaseException | None) -> CancelReason:
    """The ``CancelReason`` that the agent sees for the reason of the stop."""
    if isinstance(reason, TimeLimitReached | CodeReplaced | Suspended | NeedsWorker | StepAlreadyStored):
        return CancelReason.HAND_OVER
    if isinstance(reason, heads.LeaseLost | StepConflict | BudgetExceeded):
        return CancelReason.CLIENT if getattr(reason, "canceled", False) else CancelReason.LEASE_LOST
    return CancelReason.STORE


async def _write_chunks(session: RunSession) -> NoReturn:
    """Writes chunks that have waited long enough. Ends only by raising the reason to stop the run."""
    while True:
        await session.is_late.wait()
        session.flush()


async def _supervise(
    session: RunSession, execution: Execution, engine: Engine, remaining_ms: Callable[[], int]
) -> None:
    """Watches the lease, the time limit and the task's head. Ends by raising the reason to stop the run.

    It also returns when the agent works on for ``CLEAN_UP_S`` after its task has raised a signal.

    At its first look and before each renewal it enqueues a message that arrives when the renewed lease has expired. If
    the run has died, the receiver takes the task; else a later renewal holds the lease, and the message is dropped. The
    receiver never sends it on: Lambda stops a message that goes between functions more than sixteen times.
    """
    is_covered = False
    while True:
        await asyncio.sleep(WATCH_S)
        if execution.signal:
            await asyncio.sleep(CLEAN_UP_S)
            return
        with suppress(StoreFailed):  # repeated a second later; the agent works on until it has to write
            session.reload_head()
            execution.refresh()
        if remaining_ms() < MARGIN_MS:
            raise TimeLimitReached
        if engine.is_replaced():
            raise CodeReplaced
        if session.is_renewal_due or not is_covered:
            with suppress(StoreFailed):
                engine.queues.enqueue(WorkMessage(session.key), LOOK_DELAY_S)
                is_covered = True
        with suppress(StoreFailed):
            session.renew_when_due()


def _end_run(session: RunSession, state: TaskState, last_word: Message | None) -> RunOutcome:
    session.report_status(state, last_word)
    return RunOutcome.ENDED
