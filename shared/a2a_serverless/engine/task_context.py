"""The task object that the engine passes to an agent's function during a run."""

from __future__ import annotations

import asyncio
import base64
import math
from contextlib import asynccontextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial, wraps
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast, overload

from a2a_serverless.domain.agent_errors import AgentCallFailed, StepConflict
from a2a_serverless.domain.budgets import NO_BUDGET, Budget, budget_of
from a2a_serverless.domain.contents import references_in
from a2a_serverless.domain.outside_events import check_secret, event_digest, load_event, parse_signed_with
from a2a_serverless.domain.progress import with_percent
from a2a_serverless.domain.record_names import EVENT, GOT, LEFT, NOW, SIGNED, join_path
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.domain.steps import Retry, Step
from a2a_serverless.domain.waits import WaitKind
from a2a_serverless.engine.calls import CallLimit
from a2a_serverless.engine.endings import Question
from a2a_serverless.engine.run_session import check_printable
from a2a_serverless.engine.steps import codec_for, result_of, run_each
from a2a_serverless.protocol.v1 import Artifact, Message, Part, Task, TaskState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from a2a_serverless.domain.events import Incoming
    from a2a_serverless.domain.key_value_store import KeyValueStore
    from a2a_serverless.domain.model import Json, JsonObject, Principal
    from a2a_serverless.domain.task_context import CallbackRequest, CancelReason, Content, MessageContent, TaskContext
    from a2a_serverless.engine.acts import Acts
    from a2a_serverless.engine.endings import Wait
    from a2a_serverless.engine.scopes import Scope
    from a2a_serverless.protocol.v1_card import AgentCard

SHORTEST_REMINDER_S: Final = 60
MOST_ITEMS: Final = 1000

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound="Callable[..., Coroutine[Any, Any, Any]]")


def _remember_signals(method: M) -> M:
    """Decorates a method of the task: its first signal is stored, and every later call raises it."""

    @wraps(method)
    async def remembering(self: DurableTaskContext, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the method's own
        execution = self._execution
        await execution.check_signal()
        with execution.remember_signal():
            return await method(self, *args, **kwargs)

    return cast("M", remembering)


class DurableTaskContext:
    """Implements ``domain.task_context.TaskContext``, and has no public names beside it."""

    def __init__(self, acts: Acts) -> None:
        self._acts, self._execution = acts, acts.execution

    @property
    def id(self) -> str:
        """The task's id."""
        return self._execution.session.key.task

    @property
    def context_id(self) -> str:
        """The id of the conversation."""
        return self._execution.session.head.context_id

    @property
    def message(self) -> Message:
        """The message that created the task."""
        return self._execution.first_request.message

    @property
    def accepted_output_modes(self) -> tuple[str, ...]:
        """The media types that the client accepts."""
        return self._execution.first_request.accepted_output_modes

    @property
    def caller(self) -> Principal:
        """The client's tenant and owner."""
        return self._execution.session.head.caller.principal

    @property
    def request(self) -> Incoming:
        """The client's last request."""
        return self._execution.request

    @property
    def store(self) -> KeyValueStore:
        """Values of the task."""
        return self._acts.store

    @property
    def conversation(self) -> KeyValueStore:
        """Values of the conversation."""
        return self._acts.conversation

    @property
    def cancellation(self) -> CancelReason | None:
        """Why the work is being cancelled; None while it is not."""
        return self._execution.cancellation

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
        scope = self._execution.open_scope()
        options = name if isinstance(name, Step) else Step(name)
        if options.codec is None and (codec := codec_for(work)):
            options = replace(options, codec=codec)
        with scope.use(options.name, repeat=options.repeat) as path:
            call = partial(result_of, work, *args, **kwargs)
            arguments = self._execution.session.digest([list(args), kwargs])
            return await self._acts.steps.execute(scope, path, options, arguments, call)

    @_remember_signals
    async def map(
        self, name: str | Step, work: Callable[[Any], Any], items: Iterable[Any], *, limit: int = 10, tolerate: int = 0
    ) -> Any:  # noqa: ANN401 - see the overloads
        """See ``TaskContext.map``."""
        each, options = [*items], name if isinstance(name, Step) else Step(name)
        if len(each) > MOST_ITEMS or limit < 1:
            raise ValueError(f"A map has at most {MOST_ITEMS} items, and a limit of 1 or more.")
        once = replace(options, repeat=False, retry=options.retry or Retry(tries=1))
        with self.scope(options.name):
            results = await run_each(
                lambda at: self.step(replace(once, name=str(at)), work, each[at]), len(each), limit, tolerate
            )
        await self._execution.check_signal()  # it stands in the places of results
        return results

    def scope(self, name: str) -> AbstractContextManager[None]:
        """See ``TaskContext.scope``."""
        return self._execution.scopes.open(name)

    @_remember_signals
    async def sleep(self, name: str, seconds: float) -> None:
        """See ``TaskContext.sleep``."""
        scope, timer = self._timer(WaitKind.SLEEP, "sleep", name, self._in(seconds))
        await self._execution.endings.wait(timer, scope)

    @_remember_signals
    async def sleep_until(self, name: str, at: datetime) -> None:
        """See ``TaskContext.sleep_until``."""
        if at.tzinfo is None:
            raise ValueError("A moment needs a time zone: datetime(..., tzinfo=ZoneInfo(...)).")
        scope, timer = self._timer(WaitKind.SLEEP, "sleep", name, math.ceil(at.timestamp() * 1000))
        await self._execution.endings.wait(timer, scope)

    @asynccontextmanager
    async def timeout(self, name: str, seconds: float) -> AsyncIterator[None]:
        """See ``TaskContext.timeout``."""
        async with self._limit(name, seconds):
            yield

    @_remember_signals
    async def now(self, name: str) -> datetime:
        """See ``TaskContext.now``."""
        path = self._execution.open_scope().place("now", name)
        ms = cast("int", self._execution.store_once(NOW + path, self._execution.session.now()))
        return datetime.fromtimestamp(ms / 1000, UTC)

    def _in(self, seconds: float) -> int:
        """The moment (ms) in so many seconds."""
        if not (0 <= seconds < math.inf):
            raise ValueError(f"A task waits for 0 seconds or more, not for {seconds}.")
        return self._execution.session.now() + math.ceil(seconds * 1000)

    def _timer(self, kind: WaitKind, act: str, name: str, ends_at: int) -> tuple[Scope, Wait]:
        scope = self._execution.open_scope()
        return scope, self._execution.timer(kind, scope.place(act, name), ends_at)

    @asynccontextmanager
    async def _limit(self, name: str, seconds: float | None) -> AsyncIterator[None]:
        """As ``asyncio.timeout``; None is no limit."""
        if seconds is None:
            yield
            return
        scope, timer = self._timer(WaitKind.TIMEOUT, "timeout", name, self._in(seconds))
        async with asyncio.timeout(None) as limit:

            async def expire() -> None:
                await self._execution.endings.wait(timer, scope)
                limit.reschedule(self._execution.loop.time())

            async with _beside(expire()):
                yield

    def _reminders(self, question: Question, name: str, seconds: float) -> AbstractAsyncContextManager[None]:
        """Repeats the question while it is entered, until the end of the task's life."""
        first = self._timer(WaitKind.REMINDER, "remind", name, self._in(seconds))

        async def remind() -> None:
            scope, timer = first
            while True:
                await self._execution.endings.wait(timer, scope)
                question.remind()
                scope, timer = self._timer(WaitKind.REMINDER, "remind", name, self._in(seconds))

        return _beside(remind())

    @_remember_signals
    async def record_usage(self, model: str, **amounts: float) -> None:
        """See ``TaskContext.record_usage``."""
        execution = self._execution
        self._acts.steps.record_usage(execution.open_scope(), model, amounts)

    @_remember_signals
    async def budget_left(self) -> Budget:
        """See ``TaskContext.budget_left``."""
        execution = self._execution
        path = execution.open_scope().place("budget", "left")
        if not execution.budget.is_bounded:
            return NO_BUDGET
        return budget_of(cast("Any", execution.store_once(LEFT + path, {**execution.budget.left().bounds})))

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
        scope = self._execution.open_scope()
        artifact = Artifact(
            artifact_id=_artifact_id(self._execution.session.origin, name),
            parts=tuple(make_parts(content, media_type)),
            name=name,
            description=description,
            metadata=deepcopy(metadata),
            extensions=tuple(extensions),
        )
        check_printable(f"The artifact {name!a}", artifact)

        def make() -> Artifact:
            stored = tuple(self._acts.files.store(self._execution.session.key, part) for part in artifact.parts)
            return artifact if stored == artifact.parts else artifact.model_copy(update={"parts": stored})

        if self._execution.emits.emit(scope, artifact.artifact_id, make, append=append, last=last):
            await asyncio.sleep(0)

    @_remember_signals
    async def read_file(self, part: Part) -> bytes:
        """See ``TaskContext.read_file``."""
        with self._execution.at_work():
            return await asyncio.to_thread(self._acts.files.read, self._execution.session.key, part)

    @_remember_signals
    async def secret(self, name: str) -> str:
        """See ``TaskContext.secret``."""
        self._execution.check_open()
        with self._execution.at_work():
            secret = await asyncio.to_thread(self._acts.read_secret, name)
        self._acts.steps.keep_secret(secret)
        return secret

    @_remember_signals
    async def report_progress(
        self, content: MessageContent, *, metadata: JsonObject | None = None, percent: float | None = None
    ) -> None:
        """See ``TaskContext.report_progress``."""
        scope = self._execution.open_scope()
        message = self._execution.session.make_message(content, with_percent(deepcopy(metadata), percent))
        message_id = self._message_id(scope, "progress", message)
        if message_id in self._execution.sent:
            return
        self._execution.sent.add(message_id)
        self._execution.session.report_progress(message.model_copy(update={"message_id": message_id}))
        await asyncio.sleep(0)

    @_remember_signals
    async def ask(
        self,
        question: MessageContent,
        *,
        sign_in: bool = False,
        metadata: JsonObject | None = None,
        timeout_s: float | None = None,
        remind_s: float | None = None,
    ) -> Message:
        """See ``TaskContext.ask``."""
        if remind_s is not None and not remind_s >= SHORTEST_REMINDER_S:
            raise ValueError(f"A question is repeated after {SHORTEST_REMINDER_S} seconds or more, not {remind_s}.")
        scope = self._execution.open_scope()
        message = self._execution.session.make_message(question, deepcopy(metadata))
        name = self._message_id(scope, "ask", message)
        state = TaskState.AUTH_REQUIRED if sign_in else TaskState.INPUT_REQUIRED
        asked = Question(message.model_copy(update={"message_id": name}), state)
        reminders = self._reminders(asked, name, remind_s) if remind_s else nullcontext()
        async with self._limit(name, timeout_s), reminders:
            return await self._execution.ask(asked, scope)

    def _message_id(self, scope: Scope, kind: str, message: Message) -> str:
        """The message's id, from its content: equal messages of a scope are recognised by it."""
        session = self._execution.session
        content: Json = [session.digest(message.parts), message.metadata, list(message.extensions)]
        return scope.message_id(session.origin, kind, content)

    @_remember_signals
    async def callback(self, name: str, *, signed_with: str | None = None) -> StoredCallback:
        """See ``TaskContext.callback``."""
        signing = None if signed_with is None else parse_signed_with(signed_with)
        self._acts.check_reach(None)
        path = self._execution.open_scope().place("callback", name)
        opened = self._execution.results.get(EVENT + path)
        if opened is None:
            url = f"{self._acts.base_url}/events/{self._execution.session.new_secret()}"
            opened, digest = StepResult(signed_with or "", url), event_digest(url)
            record, records = EVENT + path, [(EVENT + path, opened)]
            if signing:
                secret = await self.secret(signing.secret)
                check_secret(signing, secret)
                self._execution.check_open()
                sealed: Json = {
                    "scheme": signing.scheme,
                    "sealed": self._acts.callback_sealer.seal(secret, digest),
                }
                record = SIGNED + path
                records.append((record, StepResult("", sealed)))
            self._execution.results.note(EVENT + path, opened)
            self._execution.session.store_callback(digest, record, *records)
        if opened.arguments != (signed_with or ""):
            raise StepConflict(f"The callback {name!r} was made with another signed_with.")
        return StoredCallback(self, name, path, str(opened.value))

    @_remember_signals
    async def _received(self, name: str, path: str, timeout_s: float | None) -> CallbackRequest:
        scope = self._execution.open_scope()
        async with self._limit(name, timeout_s):
            stored = await self._execution.receive(GOT + path, scope.place("received", name), scope)
        return load_event(stored)

    @_remember_signals
    async def get_card(self, agent: str) -> AgentCard:
        """See ``TaskContext.get_card``."""
        self._acts.check_reach(agent)
        return await self._acts.calls.card(agent, self._execution.open_scope())

    @_remember_signals
    async def find_agents(self, *tags: str) -> list[str]:
        """See ``TaskContext.find_agents``."""
        self._acts.check_reach(None)
        return await self._acts.calls.find(tags, self._execution.open_scope())

    @_remember_signals
    async def call(
        self,
        name: str,
        agent: str,
        content: Content | Sequence[Part],
        *,
        timeout_s: float | None = None,
        deadline_s: float | None = None,
        budget: Budget | None = None,
    ) -> Task | Message:
        """See ``TaskContext.call``."""
        scope = self._execution.open_scope()
        failure: AgentCallFailed | None = None
        with scope.use(f"call {name}"):
            self._acts.check_reach(agent)
            parts = make_parts(content)
            for part in parts:
                check_printable(f"The message of the call {name!a}", part)
            limit, path = CallLimit(timeout_s, deadline_s, budget), join_path(scope.path, name)
            try:
                return await self._acts.calls.call(path, agent, parts, limit, self._execution.ask_for_call, scope)
            except AgentCallFailed as failed:  # stored, like an answer: the name is used
                failure = failed
            except asyncio.CancelledError:
                self._acts.cancel_call(path)
                raise
        raise failure

    @_remember_signals
    async def get_task(self) -> Task:
        """See ``TaskContext.get_task``."""
        self._execution.check_open()
        self._execution.session.flush()
        return self._acts.others.read_tasks(self._execution.session.head.caller, [self.id])[0]

    @_remember_signals
    async def get_referenced_tasks(self, message: Message | None = None) -> list[Task]:
        """See ``TaskContext.get_referenced_tasks``."""
        message = message or self.message
        pointed_at = (reference.task_id for reference in references_in(message.parts))
        return self._acts.others.read_tasks(
            self._execution.session.head.caller, [*message.reference_task_ids, *pointed_at]
        )

    @_remember_signals
    async def get_previous_tasks(self, limit: int = 20) -> list[Task]:
        """See ``TaskContext.get_previous_tasks``."""
        return self._acts.others.list_context(self._execution.session.head.caller, self.context_id, limit)


class DurableFrameworkTask(DurableTaskContext):
    """Implements ``FrameworkTask`` over the same execution as its author's task."""

    @classmethod
    def of(cls, task: TaskContext) -> DurableFrameworkTask:
        """The task as a framework gets it."""
        return cls(cast("DurableTaskContext", task)._acts)  # noqa: SLF001 - both tasks have the same acts

    @property
    def current_step(self) -> str | None:
        """See ``FrameworkTask.current_step``."""
        step = self._execution.scopes.current.step
        return step.name if step else None

    def read_steps(self, prefix: str) -> dict[str, Json]:
        """See ``FrameworkTask.read_steps``."""
        results = {name: stored.value for name, stored in self._execution.results.items() if name.startswith(prefix)}
        self._execution.endings.pass_over(results)
        return results

    def make_id(self, act: str) -> str:
        """See ``FrameworkTask.make_id``."""
        scope = self._execution.open_scope()
        origin = self._execution.session.origin
        return sha256(f"{origin}\n{scope.path}\n{act}\n{scope.next(act)}".encode()).hexdigest()[:32]

    def set_unit(self, unit: Callable[[], str]) -> None:
        """See ``FrameworkTask.set_unit``."""
        self._execution.scopes.unit = unit

    def begin_units(self, prefix: str = "") -> None:
        """See ``FrameworkTask.begin_units``."""
        self._execution.scopes.begin_units(prefix)
        self._execution.emits.begin_units(prefix)

    def root(self) -> AbstractContextManager[None]:
        """See ``FrameworkTask.root``."""
        return self._execution.scopes.open(None)

    def at_work(self) -> AbstractContextManager[None]:
        """See ``FrameworkTask.at_work``."""
        return self._execution.at_work()


@asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Runs the work while it is entered."""
    running = asyncio.create_task(work)
    running.add_done_callback(lambda done: done.cancelled() or done.exception())  # a signal is remembered
    try:
        yield
    finally:
        running.cancel()


@dataclass(frozen=True, slots=True)
class StoredCallback:
    """Implements ``domain.task_context.Callback``."""

    task: DurableTaskContext
    name: str
    path: str
    url: str

    async def received(self, timeout_s: float | None = None) -> CallbackRequest:
        """See ``Callback.received``."""
        return await self.task._received(self.name, self.path, timeout_s)  # noqa: SLF001 - a part of the task


def _artifact_id(origin: str, name: str) -> str:
    """An artifact's id: the same in every run of a task, and in those that repeat it."""
    return sha256(f"{origin}\n{name}".encode(errors="surrogatepass")).hexdigest()[:32]


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
