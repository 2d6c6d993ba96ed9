"""The task object that the engine passes to an agent's function during a run."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import math
from collections import deque
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from copy import deepcopy
from dataclasses import is_dataclass, replace
from functools import partial, wraps
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast, overload

from pydantic import BaseModel

from a2a_serverless.domain.agent import (
    BEGIN_ATTEMPT,
    AgentCallFailed,
    Codec,
    Content,
    SecretNotRead,
    Step,
    StepConflict,
    StepTimedOut,
    TaskEnded,
    TaskFailed,
)
from a2a_serverless.domain.digest import digest
from a2a_serverless.domain.error_fields import causes_of
from a2a_serverless.domain.errors import IllegalTransition
from a2a_serverless.domain.events import Event, StatusEvent
from a2a_serverless.domain.head import LeaseLost, WakeCounterChanged
from a2a_serverless.domain.references import references_in
from a2a_serverless.domain.states import INTERRUPTED
from a2a_serverless.domain.step_names import FAILED, OUTSIDE, TIMER, USAGE, join_path, raised_name, unfinished_name
from a2a_serverless.domain.usage import add_usage, check_usage, with_cost
from a2a_serverless.domain.values import ValueScope
from a2a_serverless.engine.calls import AgentCalls, CallLimit
from a2a_serverless.engine.codecs import ResultCodec, codec_for
from a2a_serverless.engine.emits import Emits
from a2a_serverless.engine.endings import Endings, Wait
from a2a_serverless.engine.errors import dump_error, load_error
from a2a_serverless.engine.files import INLINE, TaskFiles
from a2a_serverless.engine.run_session import StoreFailed, check_printable
from a2a_serverless.engine.scopes import RunningStep, Scope, Scopes
from a2a_serverless.engine.signals import NeedsWorker, ProcessInterrupted, StepAlreadyStored, Suspended
from a2a_serverless.engine.values import RunValues
from a2a_serverless.ports.tasks import StepResult
from a2a_serverless.protocol.v1 import Artifact, Message, Part, Task, TaskState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from a2a_serverless.domain.agent import Answer, CancelReason, MessageContent
    from a2a_serverless.domain.events import Incoming
    from a2a_serverless.domain.model import Json, JsonObject, Principal
    from a2a_serverless.domain.usage import Usage
    from a2a_serverless.engine.calls import AgentRegistry
    from a2a_serverless.engine.loop import RunLoop
    from a2a_serverless.engine.run_session import RunSession
    from a2a_serverless.engine.task_reader import TaskReader
    from a2a_serverless.ports.values import ValueStore
    from a2a_serverless.protocol.v1_card import AgentCard

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound="Callable[..., Coroutine[Any, Any, Any]]")
UNFINISHED_LIMIT: Final = 3
FAILURES_LIMIT: Final = 16
SIGNALS: Final = (
    Suspended,
    StepAlreadyStored,
    NeedsWorker,
    ProcessInterrupted,
    LeaseLost,
    StoreFailed,
    StepConflict,
    IllegalTransition,
)
"""Exceptions of the task's methods that end the run, even if the agent or one of its libraries catches them."""

_JSON: Final = json.JSONEncoder(allow_nan=False)


def _remember_signals(method: M) -> M:
    """Decorates a ``DurableTaskContext`` method: its first signal is stored, and every later call raises it."""

    @wraps(method)
    async def remembering(self: DurableTaskContext, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the method's own
        if self.signal:
            await asyncio.sleep(0)  # lets the supervisor run even if the agent calls this in a loop
            raise self.signal.with_traceback(None)
        try:
            return await method(self, *args, **kwargs)
        except SIGNALS as signal:
            if self.cancellation is None:
                self.signal = self.signal or signal
            raise

    return cast("M", remembering)


class DurableTaskContext:
    """Implements ``domain.agent.TaskContext`` with a run's session."""

    def __init__(
        self,
        session: RunSession,
        events: Sequence[Event],
        others: TaskReader,
        registry: AgentRegistry,
        values: ValueStore,
        files: TaskFiles = INLINE,
    ) -> None:
        self.read_secret: Callable[[str], str] = no_secret
        self.prices: Usage = {}
        self.packages: frozenset[str] = frozenset()
        self._secrets: set[str] = set()
        self._files = files
        self._session = session
        self._others = others
        self._end: BaseException | None = None
        self.cancellation: CancelReason | None = None
        self.signal: BaseException | None = None
        self._loop = cast("RunLoop", asyncio.get_running_loop())
        self.emits = Emits(session, events)
        self._scopes = Scopes()
        statuses = [event for event in events if isinstance(event, StatusEvent)]
        self._sent = {event.message.message_id for event in statuses if event.message and event.fence}
        self._sent.update(message_id for event in statuses for message_id in event.joined)
        self._incoming = next(event.incoming for event in statuses if event.incoming)
        self.request = self._incoming
        self._answers = _Answers()
        self._answers.read(events)
        self._seen = session.head.wake
        self._steps = session.steps()
        self.endings = Endings(self._loop, self._steps, session.now, self._record_ending)
        self._busy_since = 0
        self._running: list[RunningStep] = []
        self._unfinished: list[RunningStep] = []
        self._failures: deque[tuple[RunningStep, Exception]] = deque(maxlen=FAILURES_LIMIT)
        self._stored = 0
        self.calls = AgentCalls(registry, session, self._steps, self.endings, self._store_once, files)
        self.store = RunValues(values, ValueScope(session.key), session, self._perform, self._identify)
        conversation = ValueScope(session.key, session.head.context_id)
        self.conversation = RunValues(values, conversation, session, self._perform, self._identify)

    @property
    def id(self) -> str:
        """The task's id."""
        return self._session.key.task

    @property
    def context_id(self) -> str:
        """The id of the conversation."""
        return self._session.head.context_id

    @property
    def message(self) -> Message:
        """The message that created the task."""
        return self._incoming.message

    @property
    def accepted_output_modes(self) -> tuple[str, ...]:
        """The media types that the client accepts."""
        return self._incoming.accepted_output_modes

    @property
    def caller(self) -> Principal:
        """The client's tenant and owner."""
        return self._session.head.caller.principal

    def text(self) -> str:
        """The text of the message."""
        return self.message.text()

    def data(self) -> Json:
        """The first data part of the message; None when there is none."""
        return self.message.data()

    @overload
    async def step(self, name: str | Step, work: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T: ...

    @overload
    async def step(self, name: str | Step, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    @_remember_signals
    async def step(self, name: str | Step, work: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> Any:
        """See ``TaskContext.step``."""
        scope = self._open_scope()
        options = name if isinstance(name, Step) else Step(name)
        if options.codec is None:
            options = replace(options, codec=codec_for(work))
        with scope.use(options.name, repeat=options.repeat) as path:
            call = partial(_result_of, work, *args, **kwargs)
            return await self._do_step(scope, path, options, digest([list(args), kwargs]), call)

    def scope(self, name: str) -> AbstractContextManager[None]:
        """See ``TaskContext.scope``."""
        return self._scopes.open(name)

    @_remember_signals
    async def sleep(self, name: str, seconds: float) -> None:
        """See ``TaskContext.sleep``."""
        scope = self._open_scope()
        if not (0 <= seconds < math.inf):
            raise ValueError(f"A task sleeps for 0 seconds or more, not for {seconds}.")
        with scope.use(f"sleep:{name}", repeat=True) as path:
            due_at = int(cast("int", self._store_once(TIMER + path, self._session.now() + math.ceil(seconds * 1000))))
            await self.endings.wait(Wait(path, lambda: due_at, due_at), scope)

    @asynccontextmanager
    async def timeout(self, name: str, seconds: float) -> AsyncIterator[None]:
        """See ``TaskContext.timeout``."""
        async with asyncio.timeout(None) as limit:

            async def expire() -> None:
                await self.sleep(f"timeout {name}", seconds)
                limit.reschedule(self._loop.time())

            alarm = asyncio.create_task(expire())
            alarm.add_done_callback(lambda done: done.cancelled() or done.exception())  # a signal is remembered
            try:
                yield
            finally:
                alarm.cancel()

    @_remember_signals
    async def record_usage(self, model: str, **amounts: float) -> None:
        """See ``TaskContext.record_usage``."""
        scope = self._open_scope()
        check_usage({model: amounts})
        amounts = dict(with_cost(model, amounts, self.prices))
        used = {model: amounts}
        if self._session.tracer.is_on:
            self._record_model_call(scope.step, model, amounts)
        if scope.step:
            scope.step.usage = add_usage(scope.step.usage, used)
            return
        act = f"{USAGE}{digest([scope.path, model, amounts])[:16]}"
        name = f"{act}/{scope.next(act)}"
        if name not in self._steps:
            self._steps[name] = self._session.store_step(name, StepResult("", None, usage=used))

    @_remember_signals
    async def emit(  # noqa: PLR0913 - the fields of an artifact
        self,
        name: str,
        content: Content | Sequence[Part],
        *,
        append: bool = False,
        last: bool = False,
        media_type: str | None = None,
        description: str | None = None,
        metadata: JsonObject | None = None,
        extensions: Sequence[str] = (),
    ) -> None:
        """See ``TaskContext.emit``."""
        scope = self._open_scope()
        artifact = Artifact(
            artifact_id=_artifact_id(self.id, name),
            parts=tuple(make_parts(content, media_type)),
            name=name,
            description=description,
            metadata=deepcopy(metadata),
            extensions=tuple(extensions),
        )
        check_printable(f"The artifact {name!a}", artifact)

        def make() -> Artifact:
            stored = tuple(self._files.store(self._session.key, part) for part in artifact.parts)
            return artifact if stored == artifact.parts else artifact.model_copy(update={"parts": stored})

        if self.emits.emit(scope, artifact.artifact_id, make, append=append, last=last):
            await asyncio.sleep(0)

    @_remember_signals
    async def read_file(self, part: Part) -> bytes:
        """See ``TaskContext.read_file``."""
        with self.at_work():
            return await asyncio.to_thread(self._files.read, self._session.key, part)

    @_remember_signals
    async def secret(self, name: str) -> str:
        """See ``TaskContext.secret``."""
        self._check_open()
        with self.at_work():
            found = await asyncio.to_thread(self.read_secret, name)
        self._secrets.add(found)
        return found

    @_remember_signals
    async def report_progress(self, content: MessageContent, *, metadata: JsonObject | None = None) -> None:
        """See ``TaskContext.report_progress``."""
        scope = self._open_scope()
        message = self._session.make_message(content, deepcopy(metadata))
        message_id = scope.message_id(self.id, "progress", _content_of(message))
        if message_id in self._sent:
            return
        self._sent.add(message_id)
        self._session.report_progress(message.model_copy(update={"message_id": message_id}))
        await asyncio.sleep(0)

    @_remember_signals
    async def ask(
        self, question: MessageContent, *, sign_in: bool = False, metadata: JsonObject | None = None
    ) -> Message:
        """See ``TaskContext.ask``."""
        scope = self._open_scope()
        message = self._session.make_message(question, deepcopy(metadata))
        message_id = scope.message_id(self.id, "ask", _content_of(message))
        state = TaskState.AUTH_REQUIRED if sign_in else TaskState.INPUT_REQUIRED
        return await self._answer(message.model_copy(update={"message_id": message_id}), scope, state)

    @_remember_signals
    async def get_card(self, agent: str) -> AgentCard:
        """See ``TaskContext.get_card``."""
        self._check_reach(agent)
        return await self.calls.card(agent, self._open_scope())

    @_remember_signals
    async def find_agents(self, *tags: str) -> list[str]:
        """See ``TaskContext.find_agents``."""
        self._check_reach(None)
        return await self.calls.find(tags, self._open_scope())

    @_remember_signals
    async def call(
        self,
        name: str,
        agent: str,
        content: Content | Sequence[Part],
        *,
        timeout_s: float | None = None,
        deadline_s: float | None = None,
    ) -> Task | Message:
        """See ``TaskContext.call``."""
        scope = self._open_scope()
        failure: AgentCallFailed | None = None
        with scope.use(f"call {name}"):
            self._check_reach(agent)
            parts = make_parts(content)
            for part in parts:
                check_printable(f"The message of the call {name!a}", part)
            limit, path = CallLimit(timeout_s, deadline_s), join_path(scope.path, name)
            try:
                return await self.calls.call(path, agent, parts, limit, self._answer_for_call, scope)
            except AgentCallFailed as failed:  # stored, like an answer: the name is used
                failure = failed
        raise failure

    @_remember_signals
    async def get_task(self) -> Task:
        """See ``TaskContext.get_task``."""
        self._check_open()
        self._session.flush()
        return self._others.read_tasks(self._session.head.caller, [self.id])[0]

    @_remember_signals
    async def get_referenced_tasks(self, message: Message | None = None) -> list[Task]:
        """See ``TaskContext.get_referenced_tasks``."""
        said = message or self.message
        pointed_at = (reference.task_id for reference in references_in(said.parts))
        return self._others.read_tasks(self._session.head.caller, [*said.reference_task_ids, *pointed_at])

    @_remember_signals
    async def get_previous_tasks(self, limit: int = 20) -> list[Task]:
        """See ``TaskContext.get_previous_tasks``."""
        return self._others.list_context(self._session.head.caller, self.context_id, limit)

    @property
    def current_step(self) -> str | None:
        """See ``FrameworkTask.current_step``."""
        step = self._scopes.current.step
        return step.name if step else None

    def read_steps(self, prefix: str) -> dict[str, Json]:
        """See ``FrameworkTask.read_steps``."""
        found = {name: stored.value for name, stored in self._steps.items() if name.startswith(prefix)}
        self.endings.pass_over(found)
        return found

    def make_id(self, act: str) -> str:
        """See ``FrameworkTask.make_id``."""
        scope = self._open_scope()
        return sha256(f"{self.id}\n{scope.path}\n{act}\n{scope.next(act)}".encode()).hexdigest()[:32]

    def set_unit(self, unit: Callable[[], str]) -> None:
        """See ``FrameworkTask.set_unit``."""
        self._scopes.unit = unit

    def begin_units(self, prefix: str = "") -> None:
        """See ``FrameworkTask.begin_units``."""
        self._scopes.begin_units(prefix)
        self.emits.begin_units(prefix)

    def root(self) -> AbstractContextManager[None]:
        """See ``FrameworkTask.root``."""
        return self._scopes.open(None)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """See ``FrameworkTask.at_work``."""
        if self._session.tracer.is_on and not self.endings.is_busy:
            self._busy_since = self._session.now()
        with self.endings.at_work():
            yield

    def outcome(self, done: asyncio.Future[Answer]) -> Answer:
        """The result of the agent's function. Raises the signal if there was one, else what the function raised."""
        if self.signal:
            raise self.signal
        return done.result()

    def close(self, why: CancelReason | None = None, end: BaseException | None = None) -> None:
        """Ends all further acts of the agent's code, which raise ``end`` from now on.

        The code is being cancelled (``why``), or its function has ended.
        """
        self._end = self._end or end or (LeaseLost() if why else TaskEnded("The agent's function has ended."))
        self.cancellation = why
        self._unfinished = [*self._running]

    def refresh(self) -> None:
        """Reads the answers that came since the run read the log, if the head says that something came."""
        head = self._session.head
        if head.wake != self._seen:
            self._answers.read(self._session.read_new_events())
            self._seen = head.wake if self._session.has_read_all else self._seen
        self.endings.changed.set()

    def suspend(self, remaining_ms: int) -> None:
        """Suspends the task until one of its waits may end, unless it was woken or a timer of the agent is running.

        Raises Suspended, or StepConflict if the timer would fire after the end of the run, in ``remaining_ms``.
        """
        if timers := self._loop.agent_timers():
            if min(timers) - self._loop.time() > remaining_ms / 1000:
                self.signal = StepConflict(
                    "A timer outside of steps, of asyncio.sleep or asyncio.timeout, outlives the run. Use task.sleep or"
                    " task.timeout, which use no compute."
                )
                raise self.signal
            return
        waits = self.endings.waits
        seen = min([self._seen, *(wait.seen for wait in waits if wait.seen is not None)])
        wake_at = min((wait.due_at for wait in waits if wait.due_at is not None), default=0)
        ask = next((wait.ask for wait in waits if wait.ask), None)
        self._session.flush()  # what it writes closes an open question, which is then asked again
        try:
            if ask and self._session.head.state not in INTERRUPTED:
                ask(seen, wake_at)
            else:
                self._session.suspend(seen, wake_at)
        except WakeCounterChanged:
            self.refresh()
            return
        self.signal = self.signal or Suspended()
        raise self.signal

    def note_unfinished(self) -> None:
        """Stores which steps the time limit interrupted, if nothing was stored since they began.

        Raises StepTimedOut if no step was running and runs reach the time limit one after the other.
        """
        for step in self._unfinished:
            if step.stored_before == self._stored:
                times = sum(
                    self._interrupted_step(step.path, number) is not None for number in range(1, UNFINISHED_LIMIT)
                )
                ms = self._session.now() - step.began_at
                result = StepResult("", ms, began_at=step.began_at)
                self._session.store_step(unfinished_name(step.path, times + 1), result)
        if not (self._unfinished or self._session.has_written):
            self._note_outside()

    def note_failed(self, error: BaseException) -> None:
        """Stores which step ``error``, which ends the task, comes from: the innermost one, if it comes from a step."""
        causes = set(map(id, causes_of(error)))
        failed = next(((step, cause) for step, cause in self._failures if id(cause) in causes), None)
        if failed:
            step, cause = failed
            result = StepResult("", None, began_at=step.began_at, error=type(cause).__name__)
            self._session.store_step(f"{FAILED}{step.path}", result)

    def _note_outside(self) -> None:
        fence = self._session.fence
        before = [f"{OUTSIDE}{fence - number}" in self._steps for number in range(1, UNFINISHED_LIMIT)]
        if all(before):
            raise StepTimedOut(
                f"{UNFINISHED_LIMIT} runs in a row reached the platform's time limit without storing anything. Code"
                " outside of steps runs again in each run: put long work into steps."
            )
        self._session.store_step(f"{OUTSIDE}{fence}", StepResult("", None))

    async def _answer(
        self, question: Message, scope: Scope, state: TaskState = TaskState.INPUT_REQUIRED, path: str = ""
    ) -> Message:
        """Returns the client's answer to the question, which has the same id in every run."""

        def answered_at() -> int | None:
            at = self._answers.times.get(question.message_id)
            return None if at is None else min(at, self._session.now())

        def ask(seen: int, wake_at: int) -> None:
            self._session.ask(state, question, seen, wake_at)

        path = path or join_path(scope.path, f"ask:{question.message_id}")
        await self.endings.wait(Wait(path, answered_at, ask=ask), scope)
        self.request = self._answers.requests[question.message_id]
        return self.request.message

    async def _answer_for_call(self, content: MessageContent, name: str, scope: Scope) -> Message:
        """Asks the client in place of a called agent. ``name`` is unique in the task."""
        self._check_open()
        message_id = sha256(f"{self.id}\nask\n{name}".encode()).hexdigest()[:32]
        question = self._session.make_message(content).model_copy(update={"message_id": message_id})
        return await self._answer(question, scope, path=name)

    @_remember_signals
    async def _perform(self, call: Callable[[], T]) -> T:
        """Makes a store call after the waiting chunks."""
        self._check_open()
        self._session.flush()
        return call()

    def _identify(self, write: Json) -> str:
        return self._open_scope().message_id(self.id, "value", write)

    async def _do_step(
        self, scope: Scope, path: str, options: Step, arguments: str, work: Callable[[], Awaitable[object]]
    ) -> object:
        """The step's result, from the store or by running it."""
        number = scope.next(f"try {path}")
        raised = self._steps.get(raised_name(path, number))
        if raised and (error := load_error(raised.value, self.packages)):
            self.emits.read_back(path, raised.attempt)
            await self.endings.end(raised.sequence, scope)
            raise error
        stored = self._steps.get(path)
        if stored is None:
            stored = await self._run_step(scope, path, options, arguments, number, work)
        else:
            self.emits.read_back(path, stored.attempt)
        await self.endings.end(stored.sequence, scope)
        if stored.arguments != arguments:
            raise StepConflict(f"The step {path!r} was stored with other arguments.")
        return _loaded(path, options.codec, stored.value)

    async def _run_step(
        self,
        scope: Scope,
        path: str,
        options: Step,
        arguments: str,
        number: int,
        work: Callable[[], Awaitable[object]],
    ) -> StepResult:
        """Runs a step and stores its result, or the error that it raises."""
        session, turn = self._session, self._loop.ready_count
        await self.endings.start(path, scope)
        self._check_fits(path)
        session.flush()
        emits = self.emits
        step = RunningStep(
            path,
            options.name,
            scope.step,
            emits.moment(),
            session.now(),
            emits.attempt(),
            is_at_work=not options.waits,
            stored_before=self._stored,
        )
        step.trace = session.new_trace()
        try:
            with self._recorded(step, options.tool) if step.trace else nullcontext():
                value = await self._work_in(step, scope.inner(path, step, number), work)
        except Exception as error:
            self._failures.append((step, error))
            if stored := self._store_error(step, arguments, number, error, turn):
                await self.endings.end(stored.sequence, scope)
            raise
        try:
            json_value = _json_value(path, options.codec, value)
            self._check_no_secret(path, json_value)
        except TaskFailed as unfit:
            self._failures.append((step, unfit))
            raise
        session.metrics.record({"StepTime": session.now() - step.began_at}, task=self.id)
        return self._store_ending(path, StepResult(arguments, json_value), step, turn)

    async def _work_in(self, step: RunningStep, scope: Scope, work: Callable[[], Awaitable[object]]) -> object:
        """Runs ``work`` in the step's scope, which asyncio tasks that it starts have, too."""

        def begin_attempt() -> None:
            step.attempt = self.emits.attempt()

        self._running.append(step)
        token = BEGIN_ATTEMPT.set(begin_attempt)
        try:
            with self._scopes.enter(scope), self.at_work() if step.is_at_work else nullcontext():
                value = await work()
                self._check_open()
        except Exception:
            if not (self._end or self.signal):
                self.emits.settle(step.path, step.attempt)
            raise
        else:
            self.emits.settle(step.path, step.attempt)
            return value
        finally:
            with suppress(ValueError):  # an abandoned coroutine is closed in another context
                BEGIN_ATTEMPT.reset(token)
            self._running.remove(step)
            step.ended, scope.is_over = self.emits.moment(), True

    def _store_ending(self, name: str, result: StepResult, step: RunningStep, turn: int) -> StepResult:
        """Stores how a step ended. The ending has no number if no other code ran since ``turn``."""
        sequence = self.endings.next_number() if self._loop.ready_count != turn else 0
        attempt = step.attempt if step.emitted else 0
        result = replace(result, attempt=attempt, sequence=sequence, usage=step.usage, began_at=step.began_at)
        stored = self._steps[name] = self._session.store_step(name, result)
        self._stored += 1
        if stored != result:
            self.close(end=StepAlreadyStored())
            raise StepAlreadyStored
        return stored

    def _store_error(
        self, step: RunningStep, arguments: str, number: int, error: Exception, turn: int
    ) -> StepResult | None:
        """Stores what a step raised if a later run can raise the same: then the agent's code decides the same on it."""
        if self._end or self.signal or isinstance(error, StepConflict | StepTimedOut):
            return None
        dumped = dump_error(error, self.packages)
        if dumped is None or self._has_secret(dumped):
            return None
        return self._store_ending(raised_name(step.path, number), StepResult(arguments, dumped), step, turn)

    @contextmanager
    def _recorded(self, step: RunningStep, tool: str) -> Iterator[None]:
        """Records the step's span when it ends."""
        session, error = self._session, ""
        try:
            with session.tracer.enter(step.trace):
                yield
        except (asyncio.CancelledError, Suspended, NeedsWorker, StepAlreadyStored):
            raise  # the run stops here and goes on later: no error
        except BaseException as failed:
            error = type(failed).__name__
            raise
        finally:
            from a2a_serverless.domain.spans import step_span

            parent = step.within.trace if step.within else session.trace
            times = (step.began_at, session.now())
            span = step_span(session.head, step.path, tool, step.trace, parent, times)
            session.tracer.record(replace(span, error=error) if error else span)

    def _record_model_call(self, step: RunningStep | None, model: str, amounts: Mapping[str, float]) -> None:
        """Records the span of the model call that usage was recorded of; it began with the step, or the call before."""
        from a2a_serverless.domain.spans import model_span

        session, now = self._session, self._session.now()
        began = (step.model_at or step.began_at) if step else (self._busy_since if self.endings.is_busy else now)
        if step:
            step.model_at = now
        parent = (step and step.trace) or session.trace
        session.tracer.record(model_span(session.head, model, amounts, session.new_trace(), parent, (began, now)))

    def _record_ending(self, name: str, sequence: int) -> None:
        self._steps[name] = self._session.store_step(name, StepResult("", None, sequence=sequence))

    def _check_fits(self, path: str) -> None:
        """Raises StepTimedOut for a step that time limits have interrupted ``UNFINISHED_LIMIT`` times."""
        if self._interrupted_step(path, UNFINISHED_LIMIT) is None:
            return
        broken_off = (self._interrupted_step(path, number) for number in range(1, UNFINISHED_LIMIT + 1))
        minutes = max(cast("int", stored.value) for stored in broken_off if stored) / 60_000
        raise StepTimedOut(
            f"The step {path!r} did not finish within one run, {UNFINISHED_LIMIT} times. It had at most"
            f" {minutes:.1f} minutes. Split it into smaller steps, or start the work in another system and get its"
            " result in another step."
        )

    def _interrupted_step(self, path: str, times: int) -> StepResult | None:
        return self._steps.get(unfinished_name(path, times))

    def _store_once(self, name: str, value: Json, sequence: int = 0) -> Json:
        """Stores an internal value like a step's result; returns the stored one if there is one already."""
        self._check_open()
        stored = self._steps.get(name)
        if stored is None:
            stored = self._steps[name] = self._session.store_step(name, StepResult("", value, sequence=sequence))
        return stored.value

    def _check_no_secret(self, path: str, value: Json) -> None:
        if self._has_secret(value):
            raise StepConflict(f"The result of the step {path!r} contains a secret. Results are stored.")

    def _has_secret(self, value: Json) -> bool:
        return bool(self._secrets) and any(secret in text for secret in self._secrets for text in _texts(value))

    def _open_scope(self) -> Scope:
        """The scope of the calling code. Raises what tells it that it cannot act any more."""
        self._check_open()
        scope = self._scopes.current
        scope.check_open()
        return scope

    def _check_open(self) -> None:
        if self._end:
            raise self._end.with_traceback(None)

    def _check_reach(self, agent: str | None) -> None:
        self._check_open()
        try:
            self.calls.check_reachable(agent)
        except NeedsWorker:
            self.close(end=NeedsWorker())
            raise


class _Answers:
    """The client's answers, by the question's message id: its request, and when it came (ms)."""

    def __init__(self) -> None:
        self.requests: dict[str, Incoming] = {}
        self.times: dict[str, int] = {}
        self._asked: str | None = None

    def read(self, events: Sequence[Event]) -> None:
        """Takes the next events of the log."""
        for event in events:
            if not isinstance(event, StatusEvent):
                continue
            if event.state in INTERRUPTED and event.message:
                self._asked = event.message.message_id
            if event.incoming and self._asked:
                self.requests[self._asked], self.times[self._asked] = event.incoming, event.at
                self._asked = None


def no_secret(name: str) -> str:
    """Has no secrets."""
    raise SecretNotRead(f"The secret {name!r} is not set.")


def _texts(value: Json) -> Iterator[str]:
    """All texts in a JSON value, names of members too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        yield from (text for one in value for text in _texts(one))
        yield from (text for one in (value.values() if isinstance(value, dict) else ()) for text in _texts(one))


def _content_of(message: Message) -> Json:
    """What tells the messages of a scope apart, beside their number."""
    return cast("Json", [digest(message.parts), message.metadata, list(message.extensions)])


async def _result_of(work: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> object:
    """The result of an async function, or of a plain one, which runs in a thread."""
    if inspect.iscoroutinefunction(work):
        return await work(*args, **kwargs)
    result = await asyncio.to_thread(work, *args, **kwargs)
    return await result if inspect.isawaitable(result) else result


def _json_value(name: str, codec: Codec[Any] | None, value: object) -> Json:
    """The value after a JSON round trip, so that the first run and later runs give the agent the same value."""
    try:
        dumped = codec.dump(value) if codec else value
        return cast("Json", json.loads(_JSON.encode(dumped)))
    except (TypeError, ValueError):
        raise TaskFailed(f"The step {name!r} gave {_unfit(codec, value)}.") from None


def _unfit(codec: Codec[Any] | None, value: object) -> str:
    """Why a result cannot be stored, and what helps."""
    kind = type(value).__name__
    if isinstance(codec, ResultCodec):
        return f"a {kind}, which is not what its function's annotation says"
    if codec:
        return f"a {kind}, which its codec cannot store"
    helps = f": annotate what its function returns (-> {kind}), or give codec=TypeCodec({kind})"
    return f"a {kind}, which is not a JSON value{helps if is_dataclass(value) or isinstance(value, BaseModel) else ''}"


def _loaded(name: str, codec: Codec[Any] | None, stored: Json) -> object:
    """The result as the agent gets it. Raises StepConflict when the codec cannot read what an earlier one stored."""
    try:
        return codec.load(stored) if codec else deepcopy(stored)
    except (TypeError, ValueError):
        raise StepConflict(f"The codec of the step {name!r} cannot read its stored result.") from None


def _artifact_id(task_id: str, name: str) -> str:
    """An artifact's id: the same in every run of a task, and different in every task."""
    return sha256(f"{task_id}\n{name}".encode(errors="surrogatepass")).hexdigest()[:32]


def make_parts(content: Content | Sequence[Part], media_type: str | None = None) -> list[Part]:
    """Converts an author's content to parts. ``media_type`` applies to a single text, bytes or JSON value."""
    several = [one for one in content if isinstance(one, Part)] if isinstance(content, list | tuple) else []
    return several or [_part(cast("Content", content), media_type)]


def _part(content: Content, media_type: str | None) -> Part:
    if isinstance(content, Part):
        return content
    if isinstance(content, str):
        return Part(text=content, media_type=media_type)
    if isinstance(content, bytes):
        return Part(raw=base64.b64encode(content).decode(), media_type=media_type or "application/octet-stream")
    return Part(data=deepcopy(content), media_type=media_type)
