"""One run of a task: take it, let the agent work under a keeper's eye, say how it ended.

A run may die at any line. What it wrote stands, what it did not is done by the next run: steps read their results back,
emits that the log holds are skipped, and a run that was overtaken finds a foreign fence at its next append and stops.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, NoReturn

from a2a_serverless.domain import head as heads
from a2a_serverless.domain.agent import (
    Agent,
    AgentCallFailed,
    Answer,
    CancelReason,
    StepConflict,
    TaskFailed,
    TaskRejected,
)
from a2a_serverless.domain.digest import digest
from a2a_serverless.domain.error_fields import safe_error_fields
from a2a_serverless.domain.errors import A2AError, IllegalTransition
from a2a_serverless.domain.events import event_size
from a2a_serverless.domain.head import Head, HeadSnapshot
from a2a_serverless.domain.metrics import NULL_METRICS
from a2a_serverless.domain.model import Message, Part, Role, TaskKey, TaskState
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.domain.trace import trace_id
from a2a_serverless.engine.calls import AgentRegistry, NeedsWorker, cancel_children
from a2a_serverless.engine.chunks import DELAY_S
from a2a_serverless.engine.files import INLINE, TaskFiles
from a2a_serverless.engine.run_session import RunSession, StoreFailed, guard_store
from a2a_serverless.engine.task_context import AwaitInput, StepAlreadyStored, TaskContext, attach_context
from a2a_serverless.engine.task_reader import TaskReader

if TYPE_CHECKING:
    from a2a_serverless.domain.events import Event
    from a2a_serverless.ports import Ids, Metrics, Queues, TaskIndex, TaskLog

WATCH_S: Final = 1.0
MARGIN_MS: Final = 20_000
CLEAN_UP_S: Final = 5.0
TRIES: Final = 10
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 10.0

logger = logging.getLogger(__name__)


class RunOutcome(Enum):
    """How a run ended. Nothing of it needs to be remembered: the log says what is to be done."""

    ENDED = "ended"
    WAITING = "waits"
    HANDED_OVER = "handed on"
    LEASE_LOST = "overtaken"
    NOTHING_TO_DO = "nothing to do"
    LEASED = "leased"


@dataclass(frozen=True, slots=True)
class Engine:
    """What a run needs. ``now`` is in ms. ``bury`` puts the bell of a task that was given up where operators look.

    ``raised`` is told what an agent has raised.
    """

    log: TaskLog
    index: TaskIndex
    queues: Queues
    ids: Ids
    now: Callable[[], int]
    agents: Mapping[str, Agent]
    registry: AgentRegistry
    metrics: Metrics = NULL_METRICS
    send_to_dead_letters: Callable[[WorkMessage], None] = lambda _: None
    files: TaskFiles = INLINE
    on_error: Callable[[TaskKey, BaseException], None] = lambda *_: None


class Suspended(Exception):
    """The task waits for other agents, and has been given back."""


class TimeLimitReached(Exception):
    """The platform's time limit is near: the work is handed on."""


async def run(engine: Engine, key: TaskKey, remaining_ms: Callable[[], int], fence: int = 0) -> RunOutcome:
    """Runs the task until it ends, waits, or has to be handed on. ``remaining_ms`` is the time that is left.

    A message that meets a live lease is dropped: the runner reads the news that it brings, and whoever releases a lease
    looks once more. Only the message that finds that very runner dead (its ``fence``) is sent on, past the lease.
    """
    try:
        taken = _start_run(engine, key)
    except heads.AlreadyLeased as leased:
        if leased.fence == fence:
            engine.queues.enqueue(WorkMessage(key, fence), _seconds_until(leased.until, engine.now()))
        return RunOutcome.LEASED
    if taken is None:
        _end_children(engine, key)
        return RunOutcome.NOTHING_TO_DO
    snapshot, events = taken
    bytes_since_snapshot = sum(event_size(event) for event in events[snapshot.head.snapshot_position :])
    session = RunSession(engine.log, engine.ids, engine.now, snapshot, engine.metrics, bytes_since_snapshot)
    try:
        try:
            ending = await _run_agent(_watched_stores(engine), session, events, remaining_ms)
        except StoreFailed as failed:
            ending = await _release_task(engine, session, failed, remaining_ms)
    except heads.LeaseLost:
        ending = RunOutcome.LEASE_LOST
    if ending is not RunOutcome.ENDED or session.head.children:
        _end_children(engine, key)
    return ending


def _watched_stores(engine: Engine) -> Engine:
    """The engine, each of whose stores raises StoreFailed when it fails."""
    files = replace(engine.files, contents=engine.files.contents and guard_store(engine.files.contents))
    log, index, queues = guard_store(engine.log), guard_store(engine.index), guard_store(engine.queues)
    return replace(engine, log=log, index=index, queues=queues, files=files)


async def _release_task(
    engine: Engine, session: RunSession, failed: StoreFailed, remaining_ms: Callable[[], int]
) -> RunOutcome:
    """Waits until a store that failed does what it was asked, and gives the task back: no runner has died.

    The lease is kept meanwhile, as far as the store lets us. When time is over the task is given back as it is; when
    that fails too, and when waiting would not help, the failure is raised, and the message comes again.
    """
    if failed.is_permanent:
        raise failed.__cause__ or failed from None
    ids = {"task": session.key.task, "fence": session.fence}
    logger.error("a store has failed", extra=safe_error_fields(failed.__cause__ or failed) | ids)
    pause_s = FIRST_PAUSE_S
    while not _retry_failed(engine, session, failed, in_time=remaining_ms() >= MARGIN_MS):
        with suppress(StoreFailed):
            session.renew_when_due()
        left_s = max(0.0, (remaining_ms() - MARGIN_MS) / 1000)
        await asyncio.sleep(min(pause_s, left_s + FIRST_PAUSE_S))
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
    return RunOutcome.HANDED_OVER


def _retry_failed(engine: Engine, session: RunSession, failed: StoreFailed, *, in_time: bool) -> bool:
    """Whether what failed is done and the task given back; False when there is time to try again."""
    try:
        if in_time:
            failed.retry()
        if session.release():
            engine.queues.enqueue(WorkMessage(session.key))
    except StoreFailed as still:
        if still.is_permanent or not in_time:
            raise still.__cause__ or still from None
        return False
    return True


def _end_children(engine: Engine, key: TaskKey) -> None:
    """Tells the agents that an ended task has called. What fails is done when the task is next due."""
    snapshot = engine.log.read_head(key)
    if snapshot and snapshot.head.is_terminal and snapshot.head.children:
        try:
            cancel_children(engine.log, engine.registry.remote_agents, snapshot.head, now=engine.now())
        except AgentCallFailed:
            logger.warning("a called agent could not be told", extra={"task": key.task})


def _start_run(engine: Engine, key: TaskKey) -> tuple[HeadSnapshot, list[Event]] | None:
    """The task, taken, with its log; None when there is nothing to run. Raises Leased."""
    for _ in range(TRIES):
        snapshot = engine.log.read_head(key)
        if snapshot is None:
            return None
        head, now, by = snapshot.head, engine.now(), engine.ids.new()
        try:
            change = heads.start_run(snapshot, now=now, by=by)
        except heads.NotRunnable:
            return None
        except heads.TooManyLostRuns:
            engine.send_to_dead_letters(WorkMessage(key))
            change = heads.fail_task(
                snapshot, _agent_message(engine, head, "The task was given up: its workers died."), now=now, by=by
            )
            if engine.log.append(change):
                engine.metrics.count("TaskStates", state=TaskState.FAILED, task=key.task)
                logger.error("task given up", extra={"task": key.task, "fence": head.fence})
                return None
            continue
        loaded = engine.log.read_log(key)  # a long log is read only by who can run the task
        if loaded is None:
            return None
        if loaded[1][-1].n == snapshot.last and engine.log.append(change):
            _count_start(engine, head, change.after)
            return HeadSnapshot(change.after, change.event.n), [*loaded[1], change.event]
    raise TimeoutError("a task could not be taken: too many writers")


def _count_start(engine: Engine, before: Head, after: Head) -> None:
    """Says that a run begins, whether the one before it died, and how long the task waited if it was its turn."""
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
        return _end_run(session, TaskState.FAILED, "This agent is no longer deployed.")
    others = TaskReader(engine.log, engine.index, session.key)
    context = TaskContext(session, events, others, engine.registry, engine.files)
    try:
        state, last_word = await _outcome(agent, context, session, engine, remaining_ms)
    except (AwaitInput, Suspended):
        return RunOutcome.WAITING
    except (TimeLimitReached, NeedsWorker, StepAlreadyStored) as reason:
        if isinstance(reason, TimeLimitReached):
            context.note_unfinished()
        session.hand_over()
        engine.queues.enqueue(WorkMessage(session.key))
        return RunOutcome.HANDED_OVER
    return _end_run(session, state, last_word)


async def _outcome(
    agent: Agent, context: TaskContext, session: RunSession, engine: Engine, remaining_ms: Callable[[], int]
) -> tuple[TaskState, Answer]:
    """The state that the agent's work comes to, and what is said about it. What ends the run only goes through."""
    done = await _run_watched(agent, context, session, engine, remaining_ms)
    try:
        return TaskState.COMPLETED, attach_context(context.outcome(done), session.head.context_id, session.key.task)
    except IllegalTransition:
        raise
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the agent's, whatever it is
        engine.on_error(session.key, error)
        return _state_of_error(error, agent, session)


def _state_of_error(error: BaseException, agent: Agent, session: RunSession) -> tuple[TaskState, str]:
    """The state that an agent's exception comes to, and what its client is told: its own words, or where to look."""
    if isinstance(error, TaskRejected | A2AError):
        return TaskState.REJECTED, str(error)
    if isinstance(error, TaskFailed):
        return TaskState.FAILED, str(error)
    task, fence = session.key.task, session.fence
    reference = digest([task, fence])[:8]
    said = {"task": task, "agent": agent.id, "fence": fence, "reference": reference}
    logger.error("agent failed", extra=safe_error_fields(error) | said)
    return TaskState.FAILED, f"The agent stopped with an error (reference {reference})."


async def _run_watched(
    agent: Agent, context: TaskContext, session: RunSession, engine: Engine, remaining_ms: Callable[[], int]
) -> asyncio.Future[Answer]:
    """Lets the agent work until it is done or its keeper or writer has a reason to stop it, and raises that reason.

    What those raise is never the agent's fault; what the agent raised is in the future. What its task has raised
    (``work.signal``) decides before either.
    """
    working = asyncio.ensure_future(agent.work(context))
    keeping = asyncio.ensure_future(_supervise(session, context, engine.queues, remaining_ms))
    writing = asyncio.ensure_future(_write_chunks(session))
    try:
        await asyncio.wait({working, keeping, writing}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            stopped = keeping if keeping.done() else writing
            context.close(_cancel_reason(stopped.exception() or context.signal))
            working.cancel()
            await asyncio.wait({working}, timeout=CLEAN_UP_S)
            stopped.result()
        return working
    finally:
        writing.cancel()
        keeping.cancel()
        working.cancel()


def _cancel_reason(reason: BaseException | None) -> CancelReason:
    """What the agent is told of the reason why its run is stopped."""
    if isinstance(reason, TimeLimitReached | Suspended | NeedsWorker | StepAlreadyStored | AwaitInput):
        return CancelReason.HAND_OVER
    if isinstance(reason, heads.LeaseLost | StepConflict):
        return CancelReason.CLIENT if getattr(reason, "canceled", False) else CancelReason.LEASE_LOST
    return CancelReason.STORE


async def _write_chunks(session: RunSession) -> NoReturn:
    """Writes chunks that have waited long enough. Ends only by raising why the work must stop."""
    while True:
        await session.chunks.some.wait()
        await asyncio.sleep(DELAY_S)
        session.flush()


async def _supervise(
    session: RunSession, context: TaskContext, queues: Queues, remaining_ms: Callable[[], int]
) -> None:
    """Looks after the lease, the time and the task's own news. Ends by raising why the work must stop.

    It also ends when the agent works on for seconds after its task has raised a signal.

    The first renewal sends one message past the lease; whoever gets it while this run's lease lives sends it on past
    that. So a run that dies is found by its own message, and there is one for each run.
    """
    enqueued = False
    while True:
        await asyncio.sleep(WATCH_S)
        if context.signal:
            await asyncio.sleep(CLEAN_UP_S)
            return
        with suppress(StoreFailed):  # it is done a second later; the agent works on until it has to write
            session.check_lease()
            context.calls.notify_waiting()
            if context.is_idle and context.calls.suspend():
                raise Suspended
        if remaining_ms() < MARGIN_MS:
            raise TimeLimitReached
        with suppress(StoreFailed):
            if session.renew_when_due() and not enqueued:
                queues.enqueue(
                    WorkMessage(session.key, session.fence), _seconds_until(session.head.lease_until, session.now())
                )
                enqueued = True


def _end_run(session: RunSession, state: TaskState, last_word: Answer) -> RunOutcome:
    session.report_status(state, session.make_message(last_word) if isinstance(last_word, str) else last_word)
    return RunOutcome.ENDED


def _agent_message(engine: Engine, head: Head, text: str) -> Message:
    return Message(engine.ids.new(), Role.AGENT, (Part("text", text),), head.context_id, head.key.task)


def _seconds_until(until: int, now: int) -> int:
    """Whole seconds until just after ``until`` (ms), as a queue's delay takes them."""
    return min(900, max(1, (until - now) // 1000 + 1))
