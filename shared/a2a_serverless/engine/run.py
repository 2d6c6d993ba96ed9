"""One run of a task: takes the lease, runs the agent's function under supervision, and stores its end.

A run may die at any line. What it wrote stays, and the next run does the rest: it reads the results of finished steps
and skips chunks that the log holds. If another run takes the task, this one stops at its next write, which is refused.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

from a2a_serverless.domain import decisions
from a2a_serverless.domain.agent import Agent, Answer, InvalidAnswer
from a2a_serverless.domain.agent_errors import (
    AgentCallFailed,
    BudgetExceeded,
    RunDiffers,
    StepConflict,
    StepTimedOut,
)
from a2a_serverless.domain.budgets import read_budget
from a2a_serverless.domain.current_task import RAISED, Raised, note_run, work_on
from a2a_serverless.domain.cursors import CLOCK_SKEW_MS
from a2a_serverless.domain.digests import digest
from a2a_serverless.domain.errors import safe_error_fields
from a2a_serverless.domain.events import event_size
from a2a_serverless.domain.head import CurrentHead
from a2a_serverless.domain.periods import RunEnd
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.domain.task_context import CancelReason
from a2a_serverless.domain.waits import wait_of
from a2a_serverless.engine.acts import Acts
from a2a_serverless.engine.budgets import TaskBudget
from a2a_serverless.engine.calls import cancel_children
from a2a_serverless.engine.engine import RunOutcome, guard_stores
from a2a_serverless.engine.execution import Execution, first_request
from a2a_serverless.engine.lease import FIRST_PAUSE_S, LONGEST_PAUSE_S, MARGIN_MS, enqueue_wake, give_up, take_task
from a2a_serverless.engine.loop import OUTSIDE_STEPS, create_engine_task
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
from a2a_serverless.engine.store_guard import guard_call, guard_store
from a2a_serverless.engine.task_context import DurableTaskContext
from a2a_serverless.engine.task_copy import TaskCopy
from a2a_serverless.engine.task_end import make_answer, stated_end
from a2a_serverless.engine.task_reader import TaskReader
from a2a_serverless.protocol.v1 import TaskState

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.head import CurrentHead
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.step_results import NamedResult
    from a2a_serverless.engine.engine import Engine
    from a2a_serverless.protocol.v1 import Message

WATCH_S: Final = 1.0
LOOK_DELAY_S: Final = (decisions.RUN_LEASE_MS + CLOCK_SKEW_MS) // 1000 + 1
"""This many seconds after its last renewal, a lease is over on any clock."""
CLEAN_UP_S: Final = 5.0

logger = logging.getLogger(__name__)


async def run(
    engine: Engine,
    key: TaskKey,
    remaining_ms: Callable[[], int],
    delay_message: Callable[[int], object] | None = None,
) -> RunOutcome:
    """Runs the task until it ends, waits or hands over. ``remaining_ms`` returns the time that is left.

    ``delay_message`` makes the run's own queue message come again after so many seconds, if it is not deleted before.
    So the message goes on from run to run: it comes when the lease of a run that has died is over.

    A queue message that meets a live lease is dropped: the run with the lease reads the head itself, and can release
    the lease only with the newest head.
    """
    looks = _Looks(engine, key, delay_message)
    try:
        snapshot_and_log = await take_task(engine, key, remaining_ms, looks.delay_message)
    except decisions.TooManyLostRuns:
        if give_up(engine, key):
            clean_up(engine, key)
        return RunOutcome.NOTHING_TO_DO
    except decisions.AlreadyLeased:
        return RunOutcome.LEASED
    if snapshot_and_log is None:
        clean_up(engine, key)
        return RunOutcome.NOTHING_TO_DO
    return await Run(engine, *snapshot_and_log, remaining_ms, looks).play()


class _Looks:
    """The queue message that finds out whether a run has died: its own, or if that is gone, a new one for each lease.

    If the run has died, the receiver takes the task; else the message is dropped. The receiver never sends it on:
    Lambda stops a message that goes between functions more than sixteen times.
    """

    def __init__(self, engine: Engine, key: TaskKey, delay_message: Callable[[int], object] | None) -> None:
        self._queues, self._key = guard_store(engine.queues), key
        self._delay_message = delay_message and guard_call(delay_message)
        self.is_covered = False

    def delay_message(self) -> None:
        """Lets the run's own message come when a lease that begins now is over, if the queue still has it."""
        self.is_covered = False
        if self._delay_message:
            with suppress(StoreFailed):
                self._delay_message(LOOK_DELAY_S)
                self.is_covered = True

    def cover(self) -> None:
        """Lets a message come when a lease that begins now is over. Raises StoreFailed."""
        self.delay_message()
        if not self.is_covered:
            self._queues.enqueue(WorkMessage(self._key), LOOK_DELAY_S)
            self.is_covered = True


def clean_up(engine: Engine, key: TaskKey) -> None:
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


class Run:
    """One run of a task, which has taken its lease.

    ``snapshot`` is the head with that lease, ``events`` is the log until then. ``remaining_ms`` returns the time until
    the platform ends the process.
    """

    def __init__(
        self,
        engine: Engine,
        snapshot: CurrentHead,
        events: list[Event],
        remaining_ms: Callable[[], int],
        looks: _Looks,
    ) -> None:
        self._engine, self._guarded_engine, self._remaining_ms = engine, guard_stores(engine), remaining_ms
        self._snapshot, self._events, self._looks = snapshot, events, looks
        self._agent: Agent | None = engine.agents.get(snapshot.head.agent)
        sizes = [event_size(event) for event in events]
        self._session = RunSession(
            engine.log,
            engine.ids,
            engine.now,
            snapshot,
            self._make_budget(),
            counts_spending=engine.owner_usd > 0,
            bytes_since_snapshot=sum(sizes[snapshot.head.snapshot_position :]),
            log_bytes=sum(sizes),
            contents=self._guarded_engine.files.contents,
            metrics=engine.metrics,
            tracer=engine.tracer,
            observer=engine.observe(snapshot.head.key),
        )

    async def play(self) -> RunOutcome:
        """Runs the agent's function, and releases the lease. Raises what ends the process."""
        engine, session = self._engine, self._session
        note_run(session.head.agent, session.key.task, session.head.context_id, session.fence)
        try:
            try:
                with engine.tracer.enter(session.trace):
                    outcome = await self._run_agent()
            except StoreFailed as failure:
                outcome = await self._release_after(failure)
        except decisions.LeaseLost:
            outcome = RunOutcome.LEASE_LOST
        except ProcessInterrupted as interruption:
            raise cause_of(interruption) from None
        if outcome is not RunOutcome.ENDED or session.head.children:
            clean_up(engine, session.key)
        if engine.tracer.is_on:
            self._record_spans(outcome)
        return outcome

    def _make_budget(self) -> TaskBudget:
        if self._agent is None:
            return TaskBudget()
        return TaskBudget(self._agent.budget, read_budget(first_request(self._events).message.metadata))

    async def _run_agent(self) -> RunOutcome:
        session, agent = self._session, self._agent
        if agent is None:
            return self._end(TaskState.FAILED, session.make_message("This agent is no longer deployed."))
        events = self._events
        if session.head.repeats:
            log = self._copy_task()
            if log is None:
                return RunOutcome.ENDED if session.head.is_terminal else self._hand_over(RunEnd.HANDED_OVER)
            events = log
        acts = self._make_acts(agent, events)
        session.observer.begin(acts.execution)
        try:
            state, message = await self._play_to_end(agent, acts)
        except Suspended:
            session.observer.suspend_task()
            enqueue_wake(self._guarded_engine, session.head)
            return RunOutcome.WAITING
        except (TimeLimitReached, CodeReplaced, NeedsWorker, StepAlreadyStored) as reason:
            try:
                if isinstance(reason, TimeLimitReached):
                    acts.steps.note_unfinished()
            except StepTimedOut as endless:
                return self._end(*self._report_failure(agent, endless, endless, endless.path), acts.execution)
            end = RunEnd.REPLACED if isinstance(reason, CodeReplaced) else RunEnd.HANDED_OVER
            return self._hand_over(end, *acts.execution.waits_over())
        finally:
            acts.execution.act_coroutines.close()
        return self._end(state, message, acts.execution)

    def _copy_task(self) -> list[Event] | None:
        """Copies what the task takes over of the task that it repeats; returns the log, or None as ``TaskCopy``."""
        engine = self._guarded_engine
        copy = TaskCopy(engine.log, engine.values, engine.files.contents, self._session)
        return copy.complete(self._events, lambda: self._remaining_ms() >= MARGIN_MS)

    def _make_acts(self, agent: Agent, events: list[Event]) -> Acts:
        engine, session = self._guarded_engine, self._session
        execution = Execution(
            session,
            events,
            owner_usd=engine.owner_usd,
            find_pause=lambda: engine.pauses.find(agent.id, session.key),
            whole_last_chunk=agent.whole_last_chunk,
        )
        return Acts(
            execution,
            TaskReader(engine.log, engine.index, session.key),
            engine.registry,
            engine.values,
            engine.files,
            events=events,
            read_secret=engine.read_secret,
            callback_sealer=engine.callback_sealer,
            prices=engine.prices,
            remote=agent.remote,
        )

    async def _play_to_end(self, agent: Agent, acts: Acts) -> tuple[TaskState, Message | None]:
        """The final state of the agent's work, and its final message. Signals that end only the run are raised."""
        work = await self._work_watched(agent, acts)
        try:
            answer = acts.execution.outcome(work)
            await acts.execution.check_left()
            self._session.observer.end_task()
            self._note_missed(acts.execution)
            return TaskState.COMPLETED, None if answer is None else make_answer(agent, answer, self._session)
        except (StepConflict, BudgetExceeded) as error:
            failure: BaseException = error
        # Behind StepConflict and BudgetExceeded, which end the task: each other signal ends this run only.
        # tests/engine/test_outages.py: test_rule_06_a_task_outlives_an_outage
        except SIGNALS:
            raise
        except BaseException as error:  # noqa: BLE001 - any error of the agent
            failure = error
        return self._report_failure(agent, failure, *acts.steps.note_failed(failure))

    def _report_failure(
        self, agent: Agent, error: BaseException, original: BaseException, step: str
    ) -> tuple[TaskState, Message]:
        """Tells the author of an error that ends the task. Returns the task's state, and the message for the client."""
        session = self._session
        if isinstance(error, RunDiffers):
            self._note_difference("conflict", act=error.path, stored=error.stored, new=error.new)
        about: dict[str, object] = {"task": session.key.task, "agent": agent.id, "run": session.fence}
        about |= {"step": step} if step else {}
        if end := stated_end(error, session):
            self._engine.on_error(session.key, original, "")
            if end[0] is TaskState.FAILED:  # such as StepTimedOut: an operator has no other trace of the reason
                logger.warning("task failed", extra=safe_error_fields(original) | about)
            return end
        reference = digest([session.key.task, session.fence])[:8]
        self._engine.on_error(session.key, original, reference)
        about |= {"reference": reference}
        about |= {"remedy": str(error)} if isinstance(error, InvalidAnswer) else {}
        about |= {RAISED: Raised(original)}  # a log may show it to the author: ``adapters.logs``
        logger.error("agent failed", extra=safe_error_fields(original) | about)
        return TaskState.FAILED, session.make_message(f"The agent stopped with an error (reference {reference}).")

    def _note_missed(self, execution: Execution) -> None:
        """Tells operators of acts that earlier runs have stored and the function, at its end, did not come to.

        The task has not failed: its code may have changed, and does without them. A framework may do without, too.
        """
        if not execution.has_framework and (acts := execution.missed_acts()):
            self._note_difference("missed", act=acts[0], stored=f"{len(acts)} acts", new="the end of the function")

    def _note_difference(self, kind: str, **about: str) -> None:
        ids = {"task": self._session.key.task, "agent": self._session.head.agent, "run": self._session.fence}
        self._engine.metrics.count("RunsDiffer", kind=kind, task=self._session.key.task)
        logger.warning("a run differs from an earlier run", extra={"kind": kind} | ids | about)

    async def _work_watched(self, agent: Agent, acts: Acts) -> asyncio.Future[Answer]:
        """Runs the agent until it has ended, or until the supervisor or the chunk writer stops it by their error.

        The agent's own result or exception is in the returned future. A signal of its task (``Execution.signal``)
        takes precedence over both.
        """
        execution = acts.execution
        work = asyncio.ensure_future(work_on_acts(agent, acts))
        watchers = [
            create_engine_task(watch)
            for watch in (
                execution.endings.run(lambda: execution.suspend(self._remaining_ms() - MARGIN_MS)),
                self._supervise(execution),
                self._write_chunks(),
            )
        ]
        try:
            await asyncio.wait({work, *watchers}, return_when=asyncio.FIRST_COMPLETED)
            watcher = None if work.done() else next(one for one in watchers if one.done())
            reason = _cancel_reason((watcher and watcher.exception()) or execution.signal)
            if watcher:
                execution.close(reason)
                work.cancel()
            leaving = create_engine_task(acts.calls.leave(is_handed_over=reason is CancelReason.HAND_OVER))
            await asyncio.wait({work, leaving}, timeout=CLEAN_UP_S)
            if watcher:
                with suppress(StepConflict, BudgetExceeded):  # it is the execution's signal, too
                    watcher.result()
            return work
        finally:
            for task in (work, *watchers):
                task.cancel()

    async def _write_chunks(self) -> NoReturn:
        """Writes chunks that have waited long enough. Ends only by raising the reason to stop the run."""
        while True:
            await self._session.is_late.wait()
            self._session.flush()

    async def _supervise(self, execution: Execution) -> None:
        """Watches the lease, the time limit and the task's head. Ends by raising the reason to stop the run.

        It also returns when the agent works on for ``CLEAN_UP_S`` after its task has raised a signal.

        Before each renewal, and at once if the lease has no ``_Looks`` message yet, it covers the lease with one.
        """
        session, engine, looks = self._session, self._guarded_engine, self._looks
        while True:
            await asyncio.sleep(WATCH_S)
            if execution.signal:
                await asyncio.sleep(CLEAN_UP_S)
                return
            # A look that fails is made again a second later: an agent at work need not stop before it has to write.
            # tests/engine/test_outages.py: test_rule_06_work_goes_on_while_the_task_cannot_be_looked_at
            with suppress(StoreFailed):
                session.reload_head()
                execution.refresh()
            if self._remaining_ms() < MARGIN_MS:
                raise TimeLimitReached
            if engine.is_replaced():
                raise CodeReplaced
            # The message goes out before the renewal that it covers: a run that dies between the two is found, too.
            # tests/engine/test_run.py:
            # test_rule_06_the_first_look_and_each_renewal_enqueue_a_message_past_the_lease
            if session.is_renewal_due or not looks.is_covered:
                with suppress(StoreFailed):
                    looks.cover()
            with suppress(StoreFailed):
                session.renew_when_due()

    def _end(self, state: TaskState, message: Message | None, execution: Execution | None = None) -> RunOutcome:
        records = execution.waits_over(is_end=True) if execution else []
        self._session.report_status(state, message, *records)
        return RunOutcome.ENDED

    def _hand_over(self, end: RunEnd, *records: NamedResult) -> RunOutcome:
        self._session.hand_over(end, *records)
        self._guarded_engine.queues.enqueue(WorkMessage(self._session.key))
        return RunOutcome.HANDED_OVER

    async def _release_after(self, failure: StoreFailed) -> RunOutcome:
        """Retries a failed store call until it succeeds, then releases the task: the run does not count as lost.

        Meanwhile it renews the lease if the store allows. When time is over it releases the task without the retry. If
        that fails too, or if the failure is permanent, it raises the failure, and the queue message comes again.
        """
        if failure.is_permanent:
            raise cause_of(failure) from None
        ids = {"task": self._session.key.task, "run": self._session.fence}
        logger.error("a store has failed", extra=safe_error_fields(cause_of(failure)) | ids)
        pause_s = FIRST_PAUSE_S
        while not self._retry_and_release(failure, in_time=self._remaining_ms() >= MARGIN_MS):
            # An outage may last longer than a lease. Without a renewal the run would count as lost.
            # tests/engine/test_outages.py: test_rule_06_a_task_outlives_an_outage
            with suppress(StoreFailed):
                self._session.renew_when_due()
            left_s = max(0.0, (self._remaining_ms() - MARGIN_MS) / 1000)
            await asyncio.sleep(min(pause_s, left_s + FIRST_PAUSE_S))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        return RunOutcome.HANDED_OVER

    def _retry_and_release(self, failure: StoreFailed, *, in_time: bool) -> bool:
        """Repeats the failed call and releases the task; False if that failed and there is time to try again."""
        try:
            # The failed write comes first: released without it, the task would go on as if it had not been tried.
            # tests/engine/test_outages.py: test_rule_06_a_task_outlives_an_outage
            if in_time:
                failure.retry()
            if self._session.release():
                self._engine.queues.enqueue(WorkMessage(self._session.key))
        except StoreFailed as error:
            if error.is_permanent or not in_time:
                raise cause_of(error) from None
            return False
        return True

    def _record_spans(self, outcome: RunOutcome) -> None:
        """Records the run's span, and those of the queue before it and of the waits that were over in it."""
        from a2a_serverless.domain.spans import run_span, wait_span

        session, head_at_start = self._session, self._snapshot.head
        waits = [(*wait_of(name), record.began_at, record.ended_at) for name, record in session.waits_over]
        for wait in waits:
            session.tracer.record(wait_span(head_at_start, *wait))
        queued, run = decisions.periods_at(head_at_start, head_at_start.lease_until - 1).latest[-2:]
        if queued.began_at < run.began_at:
            session.tracer.record(wait_span(head_at_start, "queue", "", queued.began_at, run.began_at))
        times = (session.began_at, self._engine.now())
        head = session.head._replace(trace=head_at_start.trace)
        session.tracer.record(run_span(head, session.trace, *times, self._agent, outcome.value))


async def work_on_acts(agent: Agent, acts: Acts) -> Answer:
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
