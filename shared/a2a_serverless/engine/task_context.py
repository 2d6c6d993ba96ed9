"""The task object that the engine passes to an agent's function during a run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, overload

from a2a_serverless.domain.budgets import NO_BUDGET, Budget, budget_of
from a2a_serverless.domain.contents import references_in
from a2a_serverless.domain.record_names import LEFT
from a2a_serverless.domain.steps import Step
from a2a_serverless.engine.artifacts import make_artifact
from a2a_serverless.engine.calls import CallLimit
from a2a_serverless.engine.execution import act
from a2a_serverless.engine.tool_states import ChangesCodec
from a2a_serverless.protocol.v1 import Message, Part, Task, TaskState

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from datetime import datetime

    from a2a_serverless.domain.events import Incoming
    from a2a_serverless.domain.key_value_store import KeyValueStore
    from a2a_serverless.domain.model import Json, JsonObject, Principal
    from a2a_serverless.domain.steps import Step
    from a2a_serverless.domain.task_context import CallbackRequest, CancelReason, Content, MessageContent, TaskContext
    from a2a_serverless.engine.acts import Acts
    from a2a_serverless.engine.callbacks import Callbacks
    from a2a_serverless.engine.execution import Execution
    from a2a_serverless.protocol.v1_card import AgentCard

P = ParamSpec("P")
T = TypeVar("T")


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
        return self._acts.task_values(is_replayed=True)

    @property
    def conversation(self) -> KeyValueStore:
        """Values of the conversation."""
        return self._acts.conversation_values(is_replayed=True)

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

    @act("task")
    async def step(self, name: str | Step, work: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> Any:
        """See ``TaskContext.step``."""
        return await self._acts.steps.step(name, work, *args, **kwargs)

    @act("task")
    async def map(
        self, name: str | Step, work: Callable[[Any], Any], items: Iterable[Any], *, limit: int = 10, tolerate: int = 0
    ) -> Any:  # noqa: ANN401 - see the overloads
        """See ``TaskContext.map``."""
        return await self._acts.steps.map(name, work, [*items], limit, tolerate)

    def scope(self, name: str) -> AbstractContextManager[None]:
        """See ``TaskContext.scope``."""
        return self._execution.scopes.open(name)

    @act("task")
    async def sleep(self, name: str, seconds: float) -> None:
        """See ``TaskContext.sleep``."""
        await self._acts.waits.sleep(name, seconds)

    @act("task")
    async def sleep_until(self, name: str, at: datetime) -> None:
        """See ``TaskContext.sleep_until``."""
        await self._acts.waits.sleep_until(name, at)

    def timeout(self, name: str, seconds: float) -> AbstractAsyncContextManager[None]:
        """See ``TaskContext.timeout``."""
        return self._acts.waits.timeout(name, seconds)

    @act("task")
    async def now(self, name: str) -> datetime:
        """See ``TaskContext.now``."""
        return self._acts.waits.now(name)

    @act("task")
    async def record_usage(self, model: str, **amounts: float) -> None:
        """See ``TaskContext.record_usage``."""
        execution = self._execution
        self._acts.steps.record_usage(execution.open_scope(), model, amounts)

    @act("task")
    async def budget_left(self) -> Budget:
        """See ``TaskContext.budget_left``."""
        execution = self._execution
        path = execution.open_scope().place("budget", "left")
        if not execution.session.budget.is_bounded:
            return NO_BUDGET
        return budget_of(cast("Any", execution.store_once(LEFT + path, {**execution.session.budget.left().bounds})))

    @act("task")
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
        scope, origin = self._execution.open_scope(), self._execution.session.origin
        artifact = make_artifact(origin, name, content, media_type, description, metadata, extensions)
        await self._acts.artifacts.emit(scope, artifact, append=append, last=last)

    @act("task")
    async def read_file(self, part: Part) -> bytes:
        """See ``TaskContext.read_file``."""
        with self._execution.at_work():
            return await asyncio.to_thread(self._acts.files.read, self._execution.session.key, part)

    @act("task")
    async def secret(self, name: str) -> str:
        """See ``TaskContext.secret``."""
        return await self._acts.secret(name)

    @act("task")
    async def report_progress(
        self, content: MessageContent, *, metadata: JsonObject | None = None, percent: float | None = None
    ) -> None:
        """See ``TaskContext.report_progress``."""
        await self._acts.client_messages.report_progress(content, metadata, percent)

    @act("task")
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
        state = TaskState.AUTH_REQUIRED if sign_in else TaskState.INPUT_REQUIRED
        return await self._acts.client_messages.ask(question, state, metadata, timeout_s, remind_s)

    @act("task")
    async def callback(self, name: str, *, signed_with: str | None = None) -> StoredCallback:
        """See ``TaskContext.callback``."""
        self._acts.check_reach(None)
        path, url = await self._acts.callbacks.open(name, signed_with)
        return StoredCallback(self._execution, self._acts.callbacks, name, path, url)

    @act("task")
    async def get_card(self, agent: str) -> AgentCard:
        """See ``TaskContext.get_card``."""
        self._acts.check_reach(agent)
        return await self._acts.calls.card(agent, self._execution.open_scope())

    @act("task")
    async def find_agents(self, *tags: str) -> list[str]:
        """See ``TaskContext.find_agents``."""
        self._acts.check_reach(None)
        return await self._acts.calls.find(tags, self._execution.open_scope())

    @act("task")
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
        return await self._acts.call(name, agent, content, CallLimit(timeout_s, deadline_s, budget))

    @act("task")
    async def get_task(self) -> Task:
        """See ``TaskContext.get_task``."""
        self._execution.check_open()
        self._execution.session.flush()
        return self._acts.task_reader.read_tasks(self._execution.session.head.caller, [self.id])[0]

    @act("task")
    async def get_referenced_tasks(self, message: Message | None = None) -> list[Task]:
        """See ``TaskContext.get_referenced_tasks``."""
        message = message or self.message
        linked_ids = (reference.task_id for reference in references_in(message.parts))
        return self._acts.task_reader.read_tasks(
            self._execution.session.head.caller, [*message.reference_task_ids, *linked_ids]
        )

    @act("task")
    async def get_previous_tasks(self, limit: int = 20) -> list[Task]:
        """See ``TaskContext.get_previous_tasks``."""
        return self._acts.task_reader.list_context(self._execution.session.head.caller, self.context_id, limit)


class DurableFrameworkTask(DurableTaskContext):
    """Implements ``FrameworkTask`` over the same execution as its author's task."""

    @classmethod
    def of(cls, task: TaskContext) -> DurableFrameworkTask:
        """The task as a framework gets it."""
        acts = cast("DurableTaskContext", task)._acts  # noqa: SLF001 - both tasks have the same acts
        acts.execution.has_framework = True
        return cls(acts)

    @property
    def store(self) -> KeyValueStore:
        """See ``FrameworkTask.store``."""
        return self._acts.task_values(is_replayed=False)

    @property
    def conversation(self) -> KeyValueStore:
        """See ``FrameworkTask.conversation``."""
        return self._acts.conversation_values(is_replayed=False)

    @property
    def current_step(self) -> str | None:
        """See ``FrameworkTask.current_step``."""
        step = self._execution.scopes.current.step
        return step.name if step else None

    @act("task")
    async def step_with_state(
        self, step: Step, work: Callable[[Any], Awaitable[T]], *, state: object, name: str, kind: object = None
    ) -> tuple[T, list[Any]]:
        """See ``FrameworkTask.step_with_state``."""
        # At once, and not when the work begins: in a later run another tool may have ended before that.
        tool_copy = self._acts.tool_states.copy_for(step.tool, state, name, kind)

        async def run() -> Any:  # noqa: ANN401 - the work's own
            return await work(tool_copy.value), tool_copy.changes()

        result, changes = await self.step(replace(step, codec=ChangesCodec(step.codec)), run)
        return result, tool_copy.apply(changes)

    def read_steps(self, prefix: str) -> dict[str, Json]:
        """See ``FrameworkTask.read_steps``."""
        results = {name: result.value for name, result in self._execution.journal.items() if name.startswith(prefix)}
        self._execution.endings.pass_over(results)
        return results

    def make_id(self, act: str) -> str:
        """See ``FrameworkTask.make_id``."""
        scope = self._execution.open_scope()
        origin = self._execution.session.origin
        return sha256(f"{origin}\n{scope.path}\n{act}\n{scope.next(act)}".encode()).hexdigest()[:32]

    def set_unit(self, unit: Callable[[], str], has_others: Callable[[], bool] = bool) -> None:
        """See ``FrameworkTask.set_unit``."""
        self._execution.scopes.unit, self._execution.scopes.has_other_units = unit, has_others

    def begin_units(self, prefix: str = "") -> None:
        """See ``FrameworkTask.begin_units``."""
        self._execution.scopes.begin_units(prefix)
        self._execution.artifact_writer.begin_units(prefix)

    def root(self) -> AbstractContextManager[None]:
        """See ``FrameworkTask.root``."""
        return self._execution.scopes.open(None)

    def optional(self) -> AbstractContextManager[None]:
        """See ``FrameworkTask.optional``."""
        return self._execution.session.observer.optional()

    def at_work(self) -> AbstractContextManager[None]:
        """See ``FrameworkTask.at_work``."""
        return self._execution.at_work()


@dataclass(frozen=True, slots=True)
class StoredCallback:
    """Implements ``domain.task_context.Callback``."""

    _execution: Execution
    _callbacks: Callbacks
    name: str
    path: str
    url: str

    @act("callback")
    async def received(self, timeout_s: float | None = None) -> CallbackRequest:
        """See ``Callback.received``."""
        return await self._callbacks.receive(self.name, self.path, timeout_s)
