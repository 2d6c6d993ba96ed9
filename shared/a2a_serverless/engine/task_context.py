"""The task object that the engine passes to an agent's function during a run."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
from collections import Counter, deque
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import is_dataclass, replace
from functools import partial, wraps
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast, overload

from pydantic import BaseModel

from a2a_serverless.domain.agent import Codec, Content, SecretNotRead, Step, StepConflict, StepTimedOut, TaskFailed
from a2a_serverless.domain.digest import digest
from a2a_serverless.domain.error_fields import causes_of
from a2a_serverless.domain.errors import IllegalTransition
from a2a_serverless.domain.events import Event, StatusEvent
from a2a_serverless.domain.head import LeaseLost
from a2a_serverless.domain.references import references_in
from a2a_serverless.domain.states import INTERRUPTED
from a2a_serverless.domain.usage import add_usage, check_usage, with_cost
from a2a_serverless.domain.values import ValueScope
from a2a_serverless.engine.calls import AgentCalls, CallLimit, NeedsWorker
from a2a_serverless.engine.codecs import ResultCodec, codec_for
from a2a_serverless.engine.emit_tracker import EmitTracker, RunningStep
from a2a_serverless.engine.files import INLINE, TaskFiles
from a2a_serverless.engine.run_session import StoreFailed, check_printable
from a2a_serverless.engine.values import RunValues
from a2a_serverless.ports.tasks import StepResult
from a2a_serverless.protocol.v1 import Artifact, Message, Part, Task, TaskState

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence

    from a2a_serverless.domain.agent import Answer, CancelReason, MessageContent
    from a2a_serverless.domain.events import Incoming
    from a2a_serverless.domain.model import Json, JsonObject, Principal
    from a2a_serverless.domain.usage import Usage
    from a2a_serverless.engine.calls import AgentRegistry
    from a2a_serverless.engine.run_session import RunSession
    from a2a_serverless.engine.task_reader import TaskReader
    from a2a_serverless.ports.values import ValueStore
    from a2a_serverless.protocol.v1_card import AgentCard


class AwaitInput(BaseException):
    """The task waits for its client and the run ends. Not an ``Exception``, so that an agent does not catch it."""


class StepAlreadyStored(BaseException):
    """Another run has stored this step's result and chunks. This run ends; the next one reads both from the store."""


P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound="Callable[..., Coroutine[Any, Any, Any]]")
NAME_LIMIT: Final = 256
RUNNING: Final = "@running/"
FAILED: Final = "@failed/"
USAGE: Final = "@usage/"
UNFINISHED_LIMIT: Final = 3
FAILURES_LIMIT: Final = 16
PROGRESS: Final = "progress"
SIGNALS: Final = (AwaitInput, StepAlreadyStored, NeedsWorker, LeaseLost, StoreFailed, StepConflict, IllegalTransition)
"""Exceptions of the task's methods that end the run, even if the agent or one of its libraries catches them."""

_JSON: Final = json.JSONEncoder(allow_nan=False)
_STEP: ContextVar[RunningStep | None] = ContextVar("step", default=None)


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
        self._secrets: set[str] = set()
        self._files = files
        self._session = session
        self._others = others
        self._closed = False
        self.cancellation: CancelReason | None = None
        self.signal: BaseException | None = None
        self.emits = EmitTracker(session, events)
        self._said_before = sum(1 for event in events if isinstance(event, StatusEvent) and _is_progress(event))
        self._said = 0
        self._incoming = next(event.incoming for event in events if isinstance(event, StatusEvent) and event.incoming)
        self.request = self._incoming
        self._answers = _answers_in(events)
        self._asked: Counter[str] = Counter()
        self._steps = session.steps()
        self._used: set[str] = set()
        self._repeats: Counter[str] = Counter()
        self._repeating: set[str] = set()
        self._used_outside = 0
        self._busy = 0
        self._busy_since = 0
        self._running: list[RunningStep] = []
        self._unfinished: list[RunningStep] = []
        self._failures: deque[tuple[RunningStep, Exception]] = deque(maxlen=FAILURES_LIMIT)
        self._kept = 0
        self.calls = AgentCalls(registry, session, self._steps, self._keep)
        self.store = RunValues(values, ValueScope(session.key), session, self._perform)
        conversation = ValueScope(session.key, session.head.context_id)
        self.conversation = RunValues(values, conversation, session, self._perform)

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
        options = name if isinstance(name, Step) else Step(name)
        if options.codec is None:
            options = replace(options, codec=codec_for(work))
        call = partial(_result_of, work, *args, **kwargs)
        stored_name = self._use_name(options)
        try:
            return await self._do_step(stored_name, options, digest([list(args), kwargs]), call)
        finally:
            if options.repeat:
                self._repeating.discard(options.name)

    @_remember_signals
    async def record_usage(self, model: str, **amounts: float) -> None:
        """See ``TaskContext.record_usage``."""
        self._check_open()
        check_usage({model: amounts})
        amounts = dict(with_cost(model, amounts, self.prices))
        used = {model: amounts}
        step = self._step()
        if self._session.tracer.is_on:
            self._record_model_call(step, model, amounts)
        if step:
            step.usage = add_usage(step.usage, used)
            return
        self._used_outside += 1
        name = f"{USAGE}{self._used_outside}"
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
        self._check_open()
        artifact = Artifact(
            artifact_id=_artifact_id(self.id, name),
            parts=tuple(make_parts(content, media_type)),
            name=name,
            description=description,
            metadata=metadata,
            extensions=tuple(extensions),
        )
        check_printable(f"The artifact {name!a}", artifact)

        def make() -> Artifact:
            stored = tuple(self._files.store(self._session.key, part) for part in artifact.parts)
            return artifact if stored == artifact.parts else artifact.model_copy(update={"parts": stored})

        if self.emits.emit(self._step(), artifact.artifact_id, make, append=append, last=last):
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
        self._check_open()
        message = self._session.make_message(content, metadata)
        self._said += 1
        self._count(PROGRESS)
        if self._said <= self._said_before:
            return
        self._session.report_status(TaskState.WORKING, message)
        await asyncio.sleep(0)

    @_remember_signals
    async def ask(
        self, question: MessageContent, *, sign_in: bool = False, metadata: JsonObject | None = None
    ) -> Message:
        """See ``TaskContext.ask``."""
        message = self._session.make_message(question, metadata)
        said = question if isinstance(question, str) and metadata is None else _identity(message)
        which = digest(said)[:16]
        self._asked[which] += 1
        self._count(which)
        state = TaskState.AUTH_REQUIRED if sign_in else TaskState.INPUT_REQUIRED
        return await self._answer(message, f"{self._asked[which]}\n{said}", state)

    @_remember_signals
    async def get_card(self, agent: str) -> AgentCard:
        """See ``TaskContext.get_card``."""
        self._check_reach(agent)
        return await self.calls.card(agent)

    @_remember_signals
    async def find_agents(self, *tags: str) -> list[str]:
        """See ``TaskContext.find_agents``."""
        self._check_reach(None)
        return await self.calls.find(tags)

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
        self._check_name(f"call {name}")
        self._check_reach(agent)
        parts = make_parts(content)
        for part in parts:
            check_printable(f"The message of the call {name!a}", part)
        return await self.calls.call(name, agent, parts, CallLimit(timeout_s, deadline_s), self._answer)

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
        """The name of the step that the calling code belongs to, or None."""
        step = self._step()
        return step.name if step else None

    def stored_steps(self, prefix: str) -> dict[str, Json]:
        """The stored results of the steps whose names begin with ``prefix``, by name, as JSON values."""
        return {name: kept.value for name, kept in self._steps.items() if name.startswith(prefix)}

    @property
    def is_idle(self) -> bool:
        """Whether the run only waits for other agents: no step is running, and every call waits."""
        return self.calls.is_waiting and self._busy == 0

    def outcome(self, done: asyncio.Future[Answer]) -> Answer:
        """The result of the agent's function. Raises the signal if there was one, else what the function raised."""
        if self.signal:
            raise self.signal
        return done.result()

    def close(self, why: CancelReason | None = None) -> None:
        """Stops all further writes of the agent, even if it ignores its cancellation."""
        self._closed = True
        self.cancellation = why
        self._unfinished = [*self._running]

    def note_unfinished(self) -> None:
        """Stores which steps the time limit interrupted, unless another step finished since they began."""
        for step in self._unfinished:
            if step.kept_before == self._kept:
                times = sum(
                    self._interrupted_step(step.name, number) is not None for number in range(1, UNFINISHED_LIMIT)
                )
                ms = self._session.now() - step.began_at
                self._session.store_step(
                    f"{RUNNING}{step.name}/{times + 1}", StepResult("", ms, began_at=step.began_at)
                )

    def note_failed(self, error: BaseException) -> None:
        """Stores which step ``error``, which ends the task, comes from: the innermost one, if it comes from a step."""
        causes = set(map(id, causes_of(error)))
        failed = next(((step, cause) for step, cause in self._failures if id(cause) in causes), None)
        if failed:
            step, cause = failed
            result = StepResult("", None, began_at=step.began_at, error=type(cause).__name__)
            self._session.store_step(f"{FAILED}{step.name}", result)

    async def _answer(
        self, question: MessageContent, name: str, state: TaskState = TaskState.INPUT_REQUIRED
    ) -> Message:
        """Returns the client's answer to the question ``name``; without one, asks it and ends the run.

        The question's message has the same id in every run.
        """
        self._check_open()
        message_id = _question_id(self.id, name)
        if message_id in self._answers:
            self.request = self._answers[message_id]
            return self.request.message
        self._session.report_status(
            state, self._session.make_message(question).model_copy(update={"message_id": message_id})
        )
        self.close()
        raise AwaitInput

    @_remember_signals
    async def _perform(self, call: Callable[[], T]) -> T:
        """Makes a store call after the waiting chunks."""
        self._check_open()
        self._session.flush()
        return call()

    def _use_name(self, step: Step) -> str:
        """The name under which the step is stored. Raises StepConflict if it may not be used, or not yet again."""
        name = step.name
        if step.repeat:
            if name in self._repeating:
                raise StepConflict(f"The step {name!r} runs twice at a time. Give parallel steps names of their own.")
            self._repeats[name] += 1
            if self._repeats[name] > 1:
                name = f"{name}#{self._repeats[name]}"
        self._check_name(name)
        if step.repeat:
            self._repeating.add(step.name)
        return name

    async def _do_step(self, name: str, options: Step, arguments: str, work: Callable[[], Awaitable[object]]) -> object:
        """The step's result, from the store or by running it."""
        kept = self._steps.get(name)
        if kept is None:
            try:
                with nullcontext() if options.waits else self.at_work():
                    kept = await self._run_step(name, options, arguments, work)
            except Exception:
                self._used.discard(name)
                raise
        else:
            self._read_back(name, kept)
        if kept.arguments != arguments:
            raise StepConflict(f"The step {name!r} was stored with other arguments.")
        return _loaded(name, options.codec, kept.value)

    async def _run_step(
        self, name: str, options: Step, arguments: str, work: Callable[[], Awaitable[object]]
    ) -> StepResult:
        """Runs a step and returns its stored result."""
        session = self._session
        self._check_fits(name)
        session.flush()
        step = RunningStep(self, name, self._step(), self.emits.moment(), session.now(), self._kept)
        step.trace = session.new_trace()
        try:
            with self._recorded(step, options.tool) if step.trace else nullcontext():
                value = await self._run_in(step, work)
            session.metrics.record({"StepTime": session.now() - step.began_at}, task=self.id)
            stored = _json_value(name, options.codec, value)
            self._check_no_secret(name, stored)
        except Exception as error:
            self._failures.append((step, error))
            raise
        fence = session.fence if step.emitted else 0
        result = StepResult(arguments, stored, fence, dict(step.counts), step.usage, step.began_at)
        kept = self._steps[name] = session.store_step(name, result)
        self._kept += 1
        if kept != result and (step.emitted or kept.fence):
            self.close()
            raise StepAlreadyStored
        return kept

    async def _run_in(self, step: RunningStep, work: Callable[[], Awaitable[object]]) -> object:
        """Runs ``work`` in the step: it is the current one of this context and of asyncio tasks that start in it."""
        self._running.append(step)
        token = _STEP.set(step)
        try:
            value = await work()
            self._check_open()
        except Exception:
            if not (self._closed or self.signal):
                self.emits.settle(step)
            raise
        else:
            self.emits.settle(step)
            return value
        finally:
            with suppress(ValueError):  # an abandoned coroutine is closed in another context
                _STEP.reset(token)
            self._running.remove(step)
            step.ended = self.emits.moment()

    def _read_back(self, name: str, kept: StepResult) -> None:
        """Counts the chunks, progress reports and questions of a stored step as done."""
        self.emits.read_back(name, kept.fence)
        for what, times in kept.counts.items():
            if what == PROGRESS:
                self._said += times
            else:
                self._asked[what] += times
            self._count(what, times)

    @contextmanager
    def _recorded(self, step: RunningStep, tool: str) -> Iterator[None]:
        """Records the step's span when it ends."""
        session, error = self._session, ""
        try:
            with session.tracer.enter(step.trace):
                yield
        except (asyncio.CancelledError, AwaitInput, NeedsWorker, StepAlreadyStored):
            raise  # the run stops here and goes on later: no error
        except BaseException as failed:
            error = type(failed).__name__
            raise
        finally:
            from a2a_serverless.domain.spans import step_span

            parent = step.within.trace if step.within else session.trace
            times = (step.began_at, session.now())
            span = step_span(session.head, step.name, tool, step.trace, parent, times)
            session.tracer.record(replace(span, error=error) if error else span)

    def _record_model_call(self, step: RunningStep | None, model: str, amounts: Mapping[str, float]) -> None:
        """Records the span of the model call that usage was recorded of; it began with the step, or the call before."""
        from a2a_serverless.domain.spans import model_span

        session, now = self._session, self._session.now()
        began = (step.model_at or step.began_at) if step else (self._busy_since if self._busy else now)
        if step:
            step.model_at = now
        parent = (step and step.trace) or session.trace
        session.tracer.record(model_span(session.head, model, amounts, session.new_trace(), parent, (began, now)))

    def _step(self) -> RunningStep | None:
        """The current step of this context, or None."""
        step = _STEP.get()
        return step if step and step.owner is self else None

    def _count(self, what: str, times: int = 1) -> None:
        if step := self._step():
            step.count(what, times)

    def _check_fits(self, name: str) -> None:
        """Raises StepTimedOut for a step that time limits have interrupted ``UNFINISHED_LIMIT`` times."""
        if self._interrupted_step(name, UNFINISHED_LIMIT) is None:
            return
        broken_off = (self._interrupted_step(name, number) for number in range(1, UNFINISHED_LIMIT + 1))
        minutes = max(cast("int", kept.value) for kept in broken_off if kept) / 60_000
        raise StepTimedOut(
            f"The step {name!r} did not finish within one run, {UNFINISHED_LIMIT} times. It had at most"
            f" {minutes:.1f} minutes. Split it into smaller steps, or start the work in another system and get its"
            " result in another step."
        )

    def _interrupted_step(self, name: str, number: int) -> StepResult | None:
        return self._steps.get(f"{RUNNING}{name}/{number}")

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """While it is entered, the run is not suspended."""
        if self._session.tracer.is_on and not self._busy:
            self._busy_since = self._session.now()
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1

    def _keep(self, name: str, value: Json) -> Json:
        """Stores an internal value like a step's result; returns the stored one if there is one already."""
        self._check_open()
        kept = self._steps.get(name)
        if kept is None:
            kept = self._steps[name] = self._session.store_step(name, StepResult("", value))
        return kept.value

    def _check_no_secret(self, name: str, value: Json) -> None:
        if self._secrets and any(secret in text for secret in self._secrets for text in _texts(value)):
            raise StepConflict(f"The result of the step {name!r} contains a secret. Results are stored.")

    def _check_open(self) -> None:
        if self._closed:
            raise LeaseLost

    def _check_reach(self, agent: str | None) -> None:
        self._check_open()
        try:
            self.calls.check_reachable(agent)
        except NeedsWorker:
            self.close()
            raise

    def _check_name(self, name: str) -> None:
        self._check_open()
        if not name or len(name) > NAME_LIMIT or name.startswith("@"):
            raise StepConflict(f"A step's name has 1 to {NAME_LIMIT} characters and does not begin with @.")
        if name in self._used:
            raise StepConflict(f"The step {name!r} was used twice. Give each step its own name.")
        self._used.add(name)


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


def _identity(message: Message) -> str:
    """What tells the questions of a task apart: a question has the same in every run."""
    return digest([message.parts, message.metadata, message.extensions])


def _answers_in(events: Sequence[Event]) -> dict[str, Incoming]:
    """The client's answers in the log, by the question's message id; the answer is the client's next request."""
    answers: dict[str, Incoming] = {}
    asked: str | None = None
    for event in events:
        if not isinstance(event, StatusEvent):
            continue
        if event.state in INTERRUPTED and event.message:
            asked = event.message.message_id
        if event.incoming and asked:
            answers[asked], asked = event.incoming, None
    return answers


def _is_progress(event: StatusEvent) -> bool:
    return event.state is TaskState.WORKING and event.fence > 0 and event.message is not None


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
        return codec.load(stored) if codec else stored
    except (TypeError, ValueError):
        raise StepConflict(f"The codec of the step {name!r} cannot read its stored result.") from None


def _artifact_id(task_id: str, name: str) -> str:
    """An artifact's id: the same in every run of a task, and different in every task."""
    return sha256(f"{task_id}\n{name}".encode(errors="surrogatepass")).hexdigest()[:32]


def _question_id(task_id: str, name: str) -> str:
    return sha256(f"{task_id}\nask\n{name}".encode()).hexdigest()[:32]


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
    return Part(data=content, media_type=media_type)
