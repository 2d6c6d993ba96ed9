"""One run of a task: takes the lease, runs the agent's function under supervision, and stores its end.

A run may die at any line. What it wrote stays, and the next run does the rest: it reads the results of finished steps
and skips chunks that the log holds. If another run takes the task, this one stops at its next write, which is refused.
"""

from __future__ import annotations

import asyncio
import logging
import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, NoReturn

from a2a_serverless.domain import decisions
from a2a_serverless.domain import head as heads
from a2a_serverless.domain.agent import Agent, Answer, InvalidAnswer
from a2a_serverless.domain.agent_errors import (
    AgentCallFailed,
    BudgetExceeded,
    StepConflict,
    StepTimedOut,
    TaskFailed,
    TaskRejected,
)
from a2a_serverless.domain.current_task import work_on
from a2a_serverless.domain.cursors import CLOCK_SKEW_MS
from a2a_serverless.domain.decisions import DELAY_LIMIT_MS
from a2a_serverless.domain.errors import A2AError, safe_error_fields, text_of
from a2a_serverless.domain.events import StatusEvent, event_size
from a2a_serverless.domain.head import CurrentHead, Head
from a2a_serverless.domain.metrics import NULL_METRICS
from a2a_serverless.domain.model import digest
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.domain.states import INTERRUPTED
from a2a_serverless.domain.task_context import CancelReason
from a2a_serverless.domain.trace import trace_id
from a2a_serverless.domain.waits import WaitKind, dump_waits, load_waits
from a2a_serverless.engine.acts import Acts, no_secret
from a2a_serverless.engine.calls import AgentRegistry, TaskCanceled, cancel_children
from a2a_serverless.engine.execution import Execution
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
    guard_store,
)
from a2a_serverless.engine.task_context import DurableTaskContext
from a2a_serverless.engine.task_copy import TaskCopy
from a2a_serverless.engine.task_files import INLINE_FILES, TaskFiles
from a2a_serverless.engine.task_reader import TaskReader
from a2a_serverless.ports.tracing import NULL_TRACER
from a2a_serverless.protocol.v1 import Message, TaskState
from a2a_serverless.services.pauses import Pauses, retry_at
from a2a_serverless.services.task_changes import check_written, fail_task, retry_on_conflict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.queue_messages import QueueMessage
    from a2a_serverless.domain.task_context import MessageContent
    from a2a_serverless.domain.usage import Usage
    from a2a_serverless.domain.waits import OpenWait
    from a2a_serverless.ports.system import Ids, Metrics, Queues, Sealer
    from a2a_serverless.ports.tracing import Tracer
    from a2a_serverless.store.stores import TaskIndex
    from a2a_serverless.store.task_log import TaskLog
    from a2a_serverless.store.value_store import ValueStore

WATCH_S: Final = 1.0
LOOK_DELAY_S: Final = (decisions.RUN_LEASE_MS + CLOCK_SKEW_MS) // 1000 + 1
"""This many seconds after its last renewal, a lease is over on any clock."""
MARGIN_MS: Final = 20_000
CLEAN_UP_S: Final = 5.0
RETRY_EARLIER: Final = "This task repeats another one: if its code has changed, retry that one from an earlier step."
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 10.0

logger = logging.getLogger(__name__)


class RunOutcome(Enum):
    """The end of a run. It is not stored: the log says what remains to be done."""

    ENDED = "ended"
    WAITING = "waiting"
    HANDED_OVER = "handed over"
    LEASE_LOST = "lease lost"
    NOTHING_TO_DO = "nothing to do"
    LEASED = "leased"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The dependencies of a run. ``now`` returns ms.

    ``send_to_dead_letters`` gets the queue message of a task that was given up, or of a late tick; ``on_error`` gets an
    agent's exception, and the reference that the client reads in its place ("" if it reads a reason). ``read_secret``
    returns the agents' secret of a name; ``callback_sealer`` seals those that the api opens. ``is_replaced`` is
    true once newer code runs the agents: then this code's runs hand over. ``tracer`` records the spans of runs and
    the spans in them. ``prices`` are USD for a million of each amount, by model. ``pauses`` are the agents and owners
    of which nothing may run; ``owner_usd`` is the most that an owner may spend on a day (UTC), 0 for no bound.
    """

    log: TaskLog
    index: TaskIndex
    queues: Queues
    ids: Ids
    now: Callable[[], int]
    agents: Mapping[str, Agent]
    registry: AgentRegistry
    values: ValueStore
    callback_sealer: Sealer
    metrics: Metrics = NULL_METRICS
    send_to_dead_letters: Callable[[QueueMessage], None] = lambda _: None
    files: TaskFiles = INLINE_FILES
    on_error: Callable[[TaskKey, BaseException, str], None] = lambda *_: None
    is_replaced: Callable[[], bool] = lambda: False
    read_secret: Callable[[str], str] = no_secret
    tracer: Tracer = NULL_TRACER
    prices: Usage = field(default_factory=dict)
    pauses: Pauses = field(default_factory=Pauses)
    owner_usd: int = 0


async def run(engine: Engine, key: TaskKey, remaining_ms: Callable[[], int]) -> RunOutcome:
    """Runs the task until it ends, waits or hands over. ``remaining_ms`` returns the time that is left.

    A queue message that meets a live lease is dropped: the run with the lease reads the head itself, and can release
    the lease only with the newest head. It also enqueues the messages that find out whether it has died.
    """
    try:
        taken = await _take_task(engine, key, remaining_ms)
    except decisions.TooManyLostRuns:
        if _give_up(engine, key):
            _clean_up(engine, key)
        return RunOutcome.NOTHING_TO_DO
    except decisions.AlreadyLeased:
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
                ending = await _run_agent(_watched_stores(engine), session, events, remaining_ms)
        except StoreFailed as failed:
            ending = await _release_task(engine, session, failed, remaining_ms)
    except decisions.LeaseLost:
        ending = RunOutcome.LEASE_LOST
    except ProcessInterrupted as interrupted:
        raise cause_of(interrupted) from None
    if ending is not RunOutcome.ENDED or session.head.children:
        _clean_up(engine, key)
    if engine.tracer.is_on:
        _record_spans(engine, session, snapshot, events, ending)
    return ending


def _record_spans(
    engine: Engine, session: RunSession, begun: CurrentHead, events: list[Event], ending: RunOutcome
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


def _watched_stores(engine: Engine) -> Engine:
    """The engine with its stores wrapped: their failed calls raise StoreFailed."""
    files = replace(engine.files, contents=engine.files.contents and guard_store(engine.files.contents))
    log, index, queues = guard_store(engine.log), guard_store(engine.index), guard_store(engine.queues)
    values, sealer = guard_store(engine.values), guard_store(engine.callback_sealer)
    engine = replace(engine, files=files, callback_sealer=sealer, pauses=guard_store(engine.pauses))
    return replace(engine, log=log, index=index, queues=queues, values=values)


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
        engine.log.update_head(snapshot.head, decisions.note_dead_letter(snapshot.head))
        snapshot = engine.log.read_head(key)
    if snapshot and snapshot.head.is_terminal and snapshot.head.children:
        try:
            cancel_children(engine.log, engine.registry.remote_agents, snapshot.head, now=engine.now())
        except AgentCallFailed:
            logger.warning("a call could not be canceled", extra={"task": key.task})


async def _take_task(
    engine: Engine, key: TaskKey, remaining_ms: Callable[[], int]
) -> tuple[CurrentHead, list[Event]] | None:
    """Takes the task as ``_start_run`` does; repeats it while a store fails and there is time.

    The write that takes the task may succeed without an answer. If the run left the task then, it would count as lost.
    """
    log, by, pause_s = guard_store(engine.log), engine.ids.new(), FIRST_PAUSE_S
    engine = replace(engine, log=log, pauses=guard_store(engine.pauses))
    while True:
        try:
            return retry_on_conflict(lambda: _start_run(engine, key, by))
        except StoreFailed as failed:
            if failed.is_permanent or remaining_ms() < MARGIN_MS:
                raise cause_of(failed) from None
        except ProcessInterrupted as interrupted:
            raise cause_of(interrupted) from None
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _start_run(engine: Engine, key: TaskKey, by: str) -> tuple[CurrentHead, list[Event]] | None:
    """Takes the task for the run ``by`` and returns it with its log; None when there is nothing to run.

    Raises AlreadyLeased, TooManyLostRuns, Conflict.
    """
    snapshot = engine.log.read_head(key)
    if snapshot is None:
        return None
    try:
        resumed = decisions.resume_run(snapshot.head, now=engine.now(), by=by)
    except decisions.NotRunnable:
        _enqueue_early(engine, snapshot.head)
        return None
    if paused := engine.pauses.find(snapshot.head.agent, key):
        _pause(engine, snapshot.head, paused)
        return None
    loaded = engine.log.read_log(key)  # read only if the task can run, because it may be long
    if loaded is None:
        return None
    events = loaded[1]
    check_written(events[-1].n == snapshot.last)
    if _begins_with_event(snapshot.head, events, by):
        change = decisions.start_run(snapshot, now=engine.now(), by=engine.ids.new(), run=by)
        check_written(engine.log.append(change))
        resumed, events = change.after, [*events, change.event]
    else:
        check_written(engine.log.update_head(snapshot.head, resumed))
    _count_start(engine, snapshot.head, resumed)
    return CurrentHead(resumed, events[-1].n), events


def _pause(engine: Engine, head: Head, paused: OpenWait) -> None:
    """Suspends a task that could run, and enqueues the message that tries again. Its other waits stay listed."""
    now = engine.now()
    others = [wait for wait in load_waits(head.waits).waits if wait.kind != WaitKind.PAUSE]
    wake_at = retry_at(paused, head.key.task, now)
    after = decisions.pause(head, now=now, wake_at=wake_at, waits=dump_waits([*others, paused]))
    check_written(engine.log.update_head(head, after))
    _enqueue_wake(engine, after)


def _enqueue_early(engine: Engine, head: Head) -> None:
    """Enqueues the message that resumes a task once more: its sender's clock is ahead of this one."""
    left_ms = head.wake_at - engine.now()
    if head.parked and 0 < left_ms <= CLOCK_SKEW_MS:
        engine.queues.enqueue(WorkMessage(head.key), math.ceil(left_ms / 1000))


def _begins_with_event(head: Head, events: Sequence[Event], by: str) -> bool:
    """Whether the run says ``working``: a message of the client is the newest status, or a run was lost.

    That run may be about to write a chunk, whose number this event takes. Any other run, for example one whose timer is
    over or that goes on beside an open question, takes the task without an event.
    """
    status = next(event for event in reversed(events) if isinstance(event, StatusEvent))
    return head.state not in INTERRUPTED and (head.is_held_by_another(by) or not status.fence)


def _give_up(engine: Engine, key: TaskKey) -> bool:
    """Ends a task whose runs were lost too often; False if something has changed it meanwhile."""

    def attempt() -> bool:
        snapshot = engine.log.read_head(key)
        if snapshot is None:
            return False
        with suppress(decisions.NotRunnable, decisions.AlreadyLeased):
            try:
                decisions.resume_run(snapshot.head, now=engine.now(), by=engine.ids.new())
            except decisions.TooManyLostRuns:
                said, lost = "The task was given up: its workers died.", heads.LOST_LIMIT
                check_written(fail_task(engine.log, engine.ids, engine.metrics, snapshot, said, engine.now(), lost))
                logger.error("task given up", extra={"task": key.task})
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
    ids = {"task": task, "agent": after.agent, "fence": after.fence, "trace": trace_id(after.trace)}
    logger.info("task taken", extra=ids)


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
        _enqueue_wake(engine, session.head)
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


def _enqueue_wake(engine: Engine, head: Head) -> None:
    """Enqueues the message that resumes a suspended task, if its wait ends soon; else the sweeper does that later."""
    left_ms = head.wake_at - engine.now()
    if head.wake_at and left_ms <= DELAY_LIMIT_MS:
        engine.queues.enqueue(WorkMessage(head.key), max(0, math.ceil(left_ms / 1000)))


async def _outcome(
    agent: Agent, acts: Acts, session: RunSession, engine: Engine, remaining_ms: Callable[[], int]
) -> tuple[TaskState, Message | None]:
    """The final state of the agent's work, and its final message. Signals that end only the run are raised."""
    done = await _run_watched(agent, acts, session, engine, remaining_ms)
    try:
        answer = acts.execution.outcome(done)
        return TaskState.COMPLETED, None if answer is None else _make_answer(agent, answer, session)
    except (StepConflict, BudgetExceeded) as error:
        failure: BaseException = error
    except SIGNALS:
        raise
    except BaseException as error:  # noqa: BLE001 - any error of the agent
        failure = error
    return _fail(failure, agent, acts, session, engine)


def _fail(
    error: BaseException, agent: Agent, acts: Acts, session: RunSession, engine: Engine
) -> tuple[TaskState, Message]:
    """Tells the author of an error that ends the task. Returns the task's state, and the message for the client."""
    acts.steps.note_failed(error)
    if stated := _stated_reason(error, session):
        engine.on_error(session.key, error, "")
        return stated
    reference = digest([session.key.task, session.fence])[:8]
    engine.on_error(session.key, error, reference)
    about: dict[str, object] = {"task": session.key.task, "agent": agent.id, "fence": session.fence}
    about |= {"reference": reference}
    about |= {"remedy": str(error)} if isinstance(error, InvalidAnswer) else {}
    logger.error("agent failed", extra=safe_error_fields(error) | about)
    return TaskState.FAILED, session.make_message(f"The agent stopped with an error (reference {reference}).")


def _make_answer(agent: Agent, answer: MessageContent, session: RunSession) -> Message:
    """The final message, from the result of the agent's function. Raises InvalidAnswer."""
    try:
        return session.make_message(answer)
    except (TypeError, ValueError) as invalid:
        raise InvalidAnswer(agent, invalid) from None


def _stated_reason(error: BaseException, session: RunSession) -> tuple[TaskState, Message] | None:
    """The state and message of an exception whose content the client reads; None for any other."""
    try:
        if isinstance(error, TaskRejected):
            return TaskState.REJECTED, session.make_message(error.content)
        if isinstance(error, A2AError) and (text := text_of(error)):
            return TaskState.REJECTED, session.make_message(text)
        if isinstance(error, StepConflict) and session.head.origin:
            return TaskState.FAILED, session.make_message(f"{error} {RETRY_EARLIER}")
        if isinstance(error, TaskFailed):
            metadata = error.metadata if isinstance(error, BudgetExceeded) else None
            state = TaskState.CANCELED if isinstance(error, TaskCanceled) else TaskState.FAILED
            return state, session.make_message(error.content, metadata)
    except TaskFailed as unprintable:
        return TaskState.FAILED, session.make_message(unprintable.content)
    except (TypeError, ValueError) as invalid:  # the content is no message
        error.add_note(f"Its content is no message: {invalid}.")
    return None


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
    if isinstance(reason, decisions.LeaseLost | StepConflict | BudgetExceeded):
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
