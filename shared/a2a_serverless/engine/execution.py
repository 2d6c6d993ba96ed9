"""The execution of an agent's function in one run: what its acts stand on, its waits, and its end.

The run has it. Every act (``engine/acts.py``) goes through it, so that nothing acts after it is closed.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import contextmanager
from functools import wraps
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from a2a_serverless.domain.agent_errors import StepConflict, TaskEnded
from a2a_serverless.domain.decisions import LeaseLost, WakeCounterChanged, periods_at
from a2a_serverless.domain.events import Event, StatusEvent
from a2a_serverless.domain.periods import SUSPENDED
from a2a_serverless.domain.record_names import TIMER, join_path
from a2a_serverless.domain.states import INTERRUPTED
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.domain.waits import (
    SHOWN_WHEN_OVER,
    OpenWait,
    WaitKind,
    dump_waits,
    load_waits,
    over_name,
    shown_name,
)
from a2a_serverless.engine.act_coroutines import ActCoroutine, ActCoroutines, mark_coroutine_function
from a2a_serverless.engine.artifact_writer import ArtifactWriter
from a2a_serverless.engine.endings import Endings, Question, Wait
from a2a_serverless.engine.journal import Journal
from a2a_serverless.engine.observer import Act, ActKind
from a2a_serverless.engine.owner_budget import OwnerBudget
from a2a_serverless.engine.scopes import RunningStep, Scope, Scopes
from a2a_serverless.engine.signals import SIGNALS, Suspended
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.services.pauses import retry_at

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from a2a_serverless.domain.agent import Answer
    from a2a_serverless.domain.events import Incoming
    from a2a_serverless.domain.model import Json
    from a2a_serverless.domain.step_results import NamedResult
    from a2a_serverless.domain.task_context import CancelReason, MessageContent
    from a2a_serverless.engine.loop import RunLoop
    from a2a_serverless.engine.run_session import RunSession
    from a2a_serverless.protocol.v1 import Message

T = TypeVar("T")
M = TypeVar("M", bound="Callable[..., Coroutine[Any, Any, Any]]")

MOST_OVER: Final = 50
"""How many waits that are over a run stores: a transaction has at most a hundred items."""


def question_id_of_call(origin: str, name: str) -> str:
    """The id of the message that asks the client in place of a called agent. ``name`` is unique in the task."""
    return sha256(f"{origin}\nask\n{name}".encode()).hexdigest()[:32]


def first_request(events: Sequence[Event]) -> Incoming:
    """The request that made the task of this log."""
    return next(event.incoming for event in events if isinstance(event, StatusEvent) and event.incoming)


class Execution:
    """The agent's function between its start and its end in one run. ``events`` is the task's log until now.

    ``whole_last_chunk`` is the agent's option. ``owner_usd`` is the most that the owner may spend on a day.
    ``find_pause`` returns the pause because of which nothing new may begin.

    ``request`` is the client's last request, ``sent_ids`` has the ids of the agent's messages in the log.
    ``has_framework`` says whether a framework acts, too. ``unfinished_steps`` are the steps that ran when the execution
    was closed.
    """

    def __init__(
        self,
        session: RunSession,
        events: Sequence[Event],
        *,
        owner_usd: int = 0,
        find_pause: Callable[[], OpenWait | None] = lambda: None,
        whole_last_chunk: bool = False,
    ) -> None:
        statuses = [event for event in events if isinstance(event, StatusEvent)]
        self.session = session
        self.first_request = first_request(events)
        self.request = self.first_request
        self.sent_ids = {event.message.message_id for event in statuses if event.message and event.fence}
        self.sent_ids.update(message_id for event in statuses for message_id in event.joined)
        self.journal = Journal(session)
        self.loop = cast("RunLoop", asyncio.get_running_loop())
        self.loop.work = self
        self.scopes = Scopes()
        self.act_coroutines = ActCoroutines()
        self.has_framework = False
        self.artifact_writer = ArtifactWriter(session, events, whole_last_chunk=whole_last_chunk)
        is_retry = bool(session.head.origin)
        self._listed = load_waits(session.head.waits).waits
        open_before = (wait for wait in self._listed if wait.kind != WaitKind.PAUSE)  # that was over, or no run began
        self.endings = Endings(self.loop, self.journal, session.now, open_before, reads_first=is_retry)
        self.running_steps: list[RunningStep] = []
        self.unfinished_steps: list[RunningStep] = []
        self.busy_since = session.began_at
        self._owner_budget, self._find_pause = OwnerBudget(session, owner_usd), find_pause
        self.signal: BaseException | None = None
        self.cancellation: CancelReason | None = None
        self._end: BaseException | None = None
        self._answers = _Answers()
        self._answers.read(events)
        self._wake = session.head.wake

    @property
    def task(self) -> str:
        """The id of the task."""
        return self.session.key.task

    @property
    def running_paths(self) -> list[str]:
        """The paths of the steps that run."""
        return [step.path for step in self.running_steps]

    @property
    def is_waiting(self) -> bool:
        """Whether the code waits for something from outside."""
        return bool(self.endings.waits)

    def outcome(self, work: asyncio.Future[Answer]) -> Answer:
        """The result of the agent's function. Raises the signal if there was one, else the function's exception."""
        if self.signal:
            raise self.signal
        return work.result()

    async def check_left(self) -> None:
        """Raises StepConflict if the function has returned beside an act that it forgot, or a step that is at work."""
        if not (self.act_coroutines or self.unfinished_steps):
            return
        # What the function has cancelled is cancelled first: the loser of a race, just before the return.
        # tests/engine/test_forgotten_acts.py: test_an_act_that_the_agent_closes_cancels_or_throws_into_is_not_forgotten
        await self.loop.rest()
        self.act_coroutines.check()
        if left := next((step for step in self.unfinished_steps if not step.work.cancelling()), None):
            raise StepConflict(
                f"The function has returned while the step {left.path!r} was at work, and its result is lost. Await the"
                " step, or cancel it."
            )

    def close(self, why: CancelReason | None = None, end: BaseException | None = None) -> None:
        """Ends all further acts of the agent's code, which raise ``end`` from now on.

        The code is being cancelled (``why``), or its function has ended.
        """
        self._end = self._end or end or (LeaseLost() if why else TaskEnded("The agent's function has ended."))
        self.cancellation = why
        self.endings.close()
        self.unfinished_steps = [*self.running_steps]

    @property
    def is_at_rest(self) -> bool:
        """Whether no step, no call and no other unit of a framework is at work, and nothing ends the run."""
        is_at_work = self.running_steps or self.endings.is_busy or self.scopes.has_other_units()
        return not (is_at_work or self.is_stopping)

    @property
    def results(self) -> Mapping[str, StepResult]:
        """The stored results, by name."""
        return self.journal.results

    @property
    def has_units(self) -> bool:
        """Whether a framework executes units of its own, with checkpoints of its own."""
        return self.scopes.unit is not str

    def missed_acts(self) -> list[str]:
        """The names of acts that earlier runs have stored, and to which this run has not come."""
        return self.journal.missed()

    def unread_artifacts(self) -> list[str]:
        """The names of artifacts of which earlier runs emitted chunks that this run has not come to."""
        return self.artifact_writer.unread_artifacts()

    @property
    def is_closed(self) -> bool:
        """Whether the agent's code cannot act any more."""
        return self._end is not None

    @property
    def is_stopping(self) -> bool:
        """Whether the agent's code cannot act any more, or a signal ends the run."""
        return bool(self._end or self.signal)

    async def check_signal(self) -> None:
        """Raises the signal if there was one."""
        if self.signal:
            await asyncio.sleep(0)  # lets the supervisor run even if the agent calls this in a loop
            raise self.signal.with_traceback(None)

    @contextmanager
    def remember_signal(self) -> Iterator[None]:
        """Stores the first signal that is raised while it is entered."""
        try:
            yield
        except SIGNALS as signal:
            if self.cancellation is None:
                self.signal = self.signal or signal
                self.endings.close()
            raise

    def check_open(self) -> None:
        """Raises the exception that ends the agent's code, once that code may not act any more."""
        if self._end:
            raise self._end.with_traceback(None)

    def open_scope(self) -> Scope:
        """The scope of the calling code. Raises as ``check_open``, and StepConflict if the scope is over."""
        self.check_open()
        scope = self.scopes.current
        scope.check_open()
        return scope

    def at_work(self) -> AbstractContextManager[None]:
        """While it is entered, the run is not suspended."""
        if self.session.tracer.is_on and not self.endings.is_busy:
            self.busy_since = self.session.now()
        return self.endings.at_work()

    def store_once(self, name: str, value: Json, sequence: int = 0) -> Json:
        """Stores an internal value like a step's result; returns the stored one if there is one already."""
        self.check_open()
        return self.journal.store_once(name, value, sequence)

    async def admit(self, path: str, scope: Scope, *, is_step: bool = False) -> None:
        """Returns when an act that is not stored may begin: not before a pause is over. Raises BudgetExceeded."""

        def resumed_at() -> int | None:
            return None if self._find_pause() else self.session.now()

        await self.endings.start(path, scope)
        while pause := self._find_pause():
            due_at = retry_at(pause, self.session.key.task, self.session.now())
            await self.endings.look(Wait(pause.name, WaitKind.PAUSE, resumed_at, due_at), scope)
        self.session.budget.check(len(self.running_steps) if is_step else 0)
        self._owner_budget.check()

    def timer(self, kind: WaitKind, path: str, ends_at: int) -> Wait:
        """The wait for a moment: ``ends_at`` (ms), or the one at which it ended when a run first came here.

        Raises ValueError if that is after the end of the task's life.
        """
        if record := self.journal.get(TIMER + path):
            ends_at = int(cast("int", record.value))
        elif ends_at > self.session.head.deadline:
            raise ValueError("That is after the task's maximum life, which the deployment sets in days.")
        since = record.began_at if record else 0
        return Wait(path, kind, lambda: ends_at, ends_at, timer="" if record else TIMER + path, since=since)

    async def sleep(self, timer: Wait, scope: Scope) -> None:
        """Returns when the timer is over."""
        act = Act(ActKind.SLEEP, timer.path, bool(timer.timer), is_open=(timer.due_at or 0) > self.session.now())
        if stand_in := self.session.observer.stand_in(act):
            await stand_in
        else:
            await self.endings.wait(timer, scope)

    async def ask(self, question: Question, scope: Scope, path: str = "") -> Message:
        """Returns the client's answer to the question, whose messages have the same ids in every run."""
        answers = self._answers

        def answered_at() -> int | None:
            at = min((answers.times[one] for one in question.ids if one in answers.times), default=None)
            return None if at is None else min(at, self.session.now())

        path = path or join_path(scope.path, f"ask:{question.message.message_id}")
        is_new = question.message.message_id not in self.sent_ids
        act = Act(ActKind.QUESTION, path, is_new, question=question.message, is_open=answered_at() is None)
        if stand_in := self.session.observer.stand_in(act):
            return cast("Message", await stand_in)
        if is_new:
            await self.admit(path, scope)
        await self.endings.wait(Wait(path, WaitKind.QUESTION, answered_at, question=question), scope)
        self.request = next(answers.requests[one] for one in question.ids if one in answers.requests)
        return self.request.message

    async def receive(self, name: str, path: str, scope: Scope) -> Json:
        """Returns the result of this name once it has been stored from outside. It has a member ``at`` (ms)."""
        self.journal.read(name)

        def stored_at() -> int | None:
            record = self.journal.get(name)
            return min(int(cast("Any", record.value)["at"]), self.session.now()) if record else None

        await self.endings.wait(Wait(path, WaitKind.EVENT, stored_at, result=name), scope)
        return self.journal[name].value

    def last_sent_at(self) -> int:
        """When the client's last message came that the code has read (ms)."""
        return max(self.session.head.created_at, *self._answers.times.values(), 0)

    async def ask_for_call(
        self, content: MessageContent, name: str, scope: Scope, state: TaskState = TaskState.INPUT_REQUIRED
    ) -> Message:
        """Asks the client in place of a called agent. ``name`` is unique in the task."""
        self.check_open()
        message_id = question_id_of_call(self.session.origin, name)
        message = self.session.make_message(content).model_copy(update={"message_id": message_id})
        return await self.ask(Question(message, state), scope, path=name)

    def refresh(self) -> None:
        """Reads the answers that came since the run read the log, if the head says that something came."""
        head = self.session.head
        if head.wake != self._wake:
            self._answers.read(self.session.read_new_events())
            for wait in self.endings.waits:
                if wait.result:
                    self.journal.read(wait.result)
            # The head may show before the event that moved it. Counted as seen, that answer would never be read.
            # tests/engine/test_waits.py: test_rule_05_an_answer_of_which_only_the_head_shows_yet_is_read_later
            self._wake = head.wake if self.session.has_read_all else self._wake
        self.endings.has_changed.set()

    def suspend(self, remaining_ms: int) -> None:
        """Suspends the task until one of its waits may end, unless it was woken or a timer of the agent is running.

        Raises Suspended, or StepConflict if the timer would fire after the end of the run, in ``remaining_ms``.
        """
        if self.signal:
            raise self.signal
        if timers := self.loop.agent_timers():
            if min(timers) - self.loop.time() > remaining_ms / 1000:
                self.signal = StepConflict(
                    "A timer outside of steps, of asyncio.sleep or asyncio.timeout, outlives the run. Use task.sleep or"
                    " task.timeout, which use no compute."
                )
                raise self.signal
            self.endings.store_timers()
            return
        waits = self.endings.waits
        wake_at = min((wait.due_at for wait in waits if wait.due_at is not None), default=0)
        last = self.endings.store_timers(but=1)
        records = [(wait.timer, StepResult("", wait.due_at, began_at=wait.since)) for wait in last]
        records += self.waits_over()
        # A chunk closes an open question. Written after the look at the open question, it would leave none open.
        # tests/engine/test_waits.py: test_a_question_that_a_chunk_has_closed_is_asked_again_before_the_task_waits
        self.session.flush()
        question, waits_text = self._question_to_ask(waits), self._describe(waits)
        try:
            if question:
                self.session.ask(question.state, question.message, self._wake, wake_at, waits_text, *records)
            else:
                self.session.suspend(self._wake, wake_at, waits_text, *records)
        except WakeCounterChanged:
            # Something came after the last look: it is read here, and not a second later.
            # tests/engine/test_calls.py: test_a_wake_that_refuses_the_suspension_is_heard_at_once
            self.refresh()
            return
        self.signal = Suspended()
        raise self.signal

    def waits_over(self, *, is_end: bool = False) -> list[NamedResult]:
        """The records of the waits that are over and have none yet; at the end of the task that is each wait.

        The write that gives up the lease stores them, so they cost no write of their own.
        """
        now, open_waits = self.session.now(), [*self.endings.waits, *self.endings.left_open]
        waits: list[tuple[str, str, int, int]] = []
        waits += [(wait.kind, shown_name(wait.path), wait.since, wait.ended_at) for wait in self.endings.over]
        waits += [(wait.kind, shown_name(wait.path), wait.since, now) for wait in open_waits if is_end]
        known = {(kind, name) for kind, name, *_ in waits} | {(wait.kind, shown_name(wait.path)) for wait in open_waits}
        # The code need not come to a wait again that was over before the run: to the pause between a step's tries.
        # tests/engine/test_timeline.py: test_a_wait_to_which_no_later_run_comes_was_over_with_the_suspension
        left = (wait for wait in self._listed if wait.kind == WaitKind.PAUSE or (wait.kind, wait.name) not in known)
        waits += [(wait.kind, wait.name, wait.since, self._suspended_until()) for wait in left]
        records = dict[str, StepResult]()
        for kind, name, since, ended_at in waits:
            record = over_name(kind, name, since)
            if kind in SHOWN_WHEN_OVER and since < ended_at and record not in self.journal.results:
                records.setdefault(record, StepResult("", None, began_at=since, ended_at=ended_at))
        return [*records.items()][:MOST_OVER]

    def _suspended_until(self) -> int:
        """When the last suspension before this run was over (ms)."""
        periods = periods_at(self.session.head, self.session.now()).latest
        ends = [period.ended_at for period in periods if period.letter == SUSPENDED and period.ended_at]
        return max(ends, default=self.session.began_at)

    def _describe(self, waits: Sequence[Wait]) -> str:
        """The waits as the head has them."""
        open_waits = [
            OpenWait(wait.kind, shown_name(wait.path), wait.since, wait.until or wait.due_at) for wait in waits
        ]
        pauses = {wait.name: wait._replace(until=None) for wait in open_waits if wait.kind == WaitKind.PAUSE}
        return dump_waits([*(wait for wait in open_waits if wait.kind != WaitKind.PAUSE), *pauses.values()])

    def _question_to_ask(self, waits: Sequence[Wait]) -> Question | None:
        """The first question, unless one of the questions is open. An open one that is no longer asked is closed."""
        questions = [wait.question for wait in waits if wait.question]
        is_open = self.session.head.state in INTERRUPTED
        if is_open and any(question.message.message_id == self._answers.question for question in questions):
            return None
        if is_open and not questions:
            self.session.close_question()
        return next(iter(questions), None)


class _Answers:
    """The client's answers, by the question's message id: its request, and when it came (ms).

    ``question`` is the id of the last question, unless it was answered.
    """

    def __init__(self) -> None:
        self.requests: dict[str, Incoming] = {}
        self.times: dict[str, int] = {}
        self.question: str | None = None

    def read(self, events: Sequence[Event]) -> None:
        """Takes the next events of the log."""
        for event in events:
            if not isinstance(event, StatusEvent):
                continue
            if event.state in INTERRUPTED and event.message:
                self.question = event.message.message_id
            self.question = event.answers or self.question
            if event.incoming and self.question:
                self.requests[self.question], self.times[self.question] = event.incoming, event.at
                self.question = None


def act(owner: str) -> Callable[[M], M]:
    """Decorates the methods of an ``owner``, an object that the agent has: they are the acts of its ``_execution``.

    The coroutine of a call is noted until it begins. The first signal of an act is stored, and every later act raises
    it.
    """

    def decorate(method: M) -> M:
        @wraps(method)
        async def perform(key: object, self: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the method's own
            execution: Execution = self._execution
            execution.act_coroutines.begin(key, is_late=execution.is_closed)
            await execution.check_signal()
            with execution.remember_signal():
                return await method(self, *args, **kwargs)

        @wraps(method)
        def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the method's own
            execution: Execution = self._execution
            coroutine = cast("Any", perform(key := object(), self, *args, **kwargs))
            if not execution.is_closed:
                code, name = sys._getframe(1), f"{owner}.{method.__name__}"  # noqa: SLF001 - costs less than inspect
                place, step = (code.f_code.co_filename, code.f_lineno), execution.scopes.current.step
                execution.act_coroutines.add(key, ActCoroutine(name, *place, step, coroutine))
            return coroutine

        return cast("M", mark_coroutine_function(call))

    return decorate
