"""Runs an ``AgentExecutor`` of the official SDK (``a2a-sdk``, 1.x or 0.3) as an agent, unchanged.

    agent = from_executor(MyExecutor, card, id="tailor")

Each turn, from a message of the client to the executor's end or question, is one step. A stored turn never runs again.
An interrupted turn runs again from its beginning. Each turn has a new executor, unless executors are kept. Artifacts of
a turn that runs again restart with ``append=false`` where they differ. An executor makes other artifact ids in each
run, so artifacts are identified by their names and their order. The SDK's objects are protobuf messages in 1.x
(``a2a_sdk_1.py``), and pydantic models in 0.3 (``a2a_sdk_0_3.py``).
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import fields
from functools import partial
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

from a2a import types
from a2a.auth.user import User
from a2a.server.agent_execution import RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskStore
from pydantic import BaseModel
from pydantic.alias_generators import to_snake

from a2a_serverless import (
    Agent,
    AgentExtension,
    CancelReason,
    Skill,
    Step,
    TaskFailed,
    TaskRejected,
    TypeCodec,
    current_task,
)
from a2a_serverless.domain.contents import file_of
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.engine.framework_task import framework_task
from a2a_serverless.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from _typeshed import DataclassInstance
    from a2a.server.agent_execution import AgentExecutor

    from a2a_serverless import Answer, Artifact, Part, Task, TaskContext

IS_0_3: Final = hasattr(types, "MessageSendParams")
if IS_0_3:
    from a2a_serverless_frameworks import a2a_sdk_0_3 as sdk
else:
    from a2a_serverless_frameworks import a2a_sdk_1 as sdk  # type: ignore[no-redef]
ENDS: Final = TERMINAL | INTERRUPTED
UNNAMED: Final = "artifact"
TASKS: Final = "a2a-sdk-task/"
"""Begins the keys of tasks that executors keep."""
KEPT_LIMIT: Final = 100
"""The most executors that a process keeps."""


def from_executor(
    executor: Callable[[], AgentExecutor],
    card: Any = None,  # noqa: ANN401 - the SDK's card
    *,
    keep_executor: bool = False,
    **fields: Any,  # noqa: ANN401 - the fields of ``Agent``
) -> Agent:
    """The agent that runs an executor. ``executor`` is its class, or a function that makes a new one for each turn.

    With ``keep_executor`` the next turn of a conversation gets the same executor, if it runs in the same process and no
    other executor had a turn in between: for memory that may be lost. Each turn has an event loop of its own.
    ``card`` is the SDK's ``AgentCard``; its URLs and capabilities are not used, because the deployment has its own.
    ``fields`` are the fields of ``Agent``: the ``id`` always, and those that the card lacks.
    """
    if not callable(executor):
        raise TypeError("pass the executor's class, or a function that makes one: each turn gets a new executor")
    card_fields = {} if card is None else _fields_of(sdk.members_of(card))
    executors = _Executors(executor, f"executor/{fields.get('id')}" if keep_executor else "")
    return Agent(**(card_fields | fields), work=partial(_work, executors))


class TurnResult(BaseModel):
    """The end of a turn. ``names`` are the names of all artifacts so far, by the ids that executors gave them.

    ``turn`` is an id of the execution that counts.
    """

    state: v1.TaskState
    turn: str = ""
    message: v1.Message | None = None
    names: dict[str, str] = {}


class _Executors:
    """The executors of this process. If ``key`` is given, that of a conversation's last turn is used again.

    ``key`` is that of the conversation's value with the id of the last turn: after a turn that another process had, or
    that did not end, an executor remembers something else than the conversation.
    """

    def __init__(self, make: Callable[[], AgentExecutor], key: str) -> None:
        self._make = make
        self._key = key
        self._executors: dict[tuple[str, str, str], tuple[str, AgentExecutor]] = {}

    async def last_turn(self, task: TaskContext) -> str:
        """The id of the conversation's last turn; "" if there is none."""
        entry = await task.conversation.get(self._key) if self._key else None
        return str(entry.value) if entry else ""

    async def end(self, task: TaskContext, turn: str) -> None:
        """Stores the id of the task's last turn."""
        if self._key:
            await task.conversation.put(self._key, turn)

    def take(self, task: TaskContext, turn: str) -> AgentExecutor:
        """The executor that had this turn, or else a new one. Nobody else gets it."""
        last_turn, executor = self._executors.pop(_conversation_of(task), ("", None))
        return executor if executor and turn == last_turn else self._make()

    def keep(self, task: TaskContext, turn: str, executor: AgentExecutor) -> None:
        """Keeps the executor for the turn after this one."""
        if self._key:
            self._executors[_conversation_of(task)] = (turn, executor)
            if len(self._executors) > KEPT_LIMIT:
                self._executors.pop(next(iter(self._executors)))


def _conversation_of(task: TaskContext) -> tuple[str, str, str]:
    return task.caller.tenant, task.caller.owner, task.context_id


async def _work(executors: _Executors, task: TaskContext) -> Answer:
    """Runs turn after turn, until a turn does not end with a question."""
    result: TurnResult | None = None
    last = await executors.last_turn(task)
    while result is None or result.state in INTERRUPTED:
        if result:
            await task.ask(result.message or "", sign_in=result.state is v1.TaskState.AUTH_REQUIRED)
        step = Step("turn", repeat=True, codec=TypeCodec(TurnResult))
        result = await task.step(step, partial(_turn, executors, task, result, last))
        last = result.turn
    await executors.end(task, last)
    return _answer(result)


def _answer(result: TurnResult) -> Answer:
    """The final message; raises the error that ends a task that was not completed."""
    if result.state is v1.TaskState.COMPLETED:
        return result.message
    if result.state is v1.TaskState.REJECTED:
        raise TaskRejected(result.message or "The agent has rejected the task.")
    raise TaskFailed(result.message or f"The agent has ended the task as {result.state.value}.")


async def _turn(executors: _Executors, task: TaskContext, before: TurnResult | None, last: str) -> TurnResult:
    """Runs an executor for the client's last message."""
    now, turn = await task.get_task(), Turn(task, before.names if before else {})
    # Without the artifacts of an interrupted try.
    earlier = tuple(artifact for artifact in now.artifacts if artifact.name in turn.earlier)
    turn.names |= {artifact.artifact_id: artifact.name or "" for artifact in earlier}
    current = sdk.task_of(now.model_copy(update={"artifacts": earlier}))
    executor, context = executors.take(task, last), await _context(task, current if before else None)
    try:
        await executor.execute(context, LogQueue(turn.take))
    except asyncio.CancelledError:
        if task.cancellation is CancelReason.CLIENT:
            context.current_task = current
            await executor.cancel(context, LogQueue(_ignore))
        raise
    result = turn.result().model_copy(update={"turn": uuid4().hex})
    executors.keep(task, result.turn, executor)
    return result


class Turn:
    """The output of an executor in a turn. Its artifacts get names that are not in ``names``, the earlier names."""

    def __init__(self, task: TaskContext, names: dict[str, str]) -> None:
        self._task = task
        self._end: v1.TaskStatus | None = None
        self.earlier = frozenset(names.values())
        self.names = dict(names)

    def result(self) -> TurnResult:
        """The end of the turn: an executor without a status at its end has completed its task."""
        end = self._end or v1.TaskStatus(state=v1.TaskState.COMPLETED)
        message = end.message if end.message and end.message.parts else None
        return TurnResult(state=end.state, message=message, names=self.names)

    async def take(self, item: Any) -> None:  # noqa: ANN401 - an event of 1.0
        """Handles an event. Events after a terminal state do not count."""
        if self._end and self._end.state in TERMINAL:
            return
        if isinstance(item, v1.Message):
            self._end = v1.TaskStatus(state=v1.TaskState.COMPLETED, message=item)
        elif isinstance(item, v1.TaskArtifactUpdateEvent):
            await self._emit(item.artifact, append=item.append, last=item.last_chunk)
        elif isinstance(item, v1.Task):
            await self._take_task(item)
        else:
            await self._take_status(item.status)

    async def _take_task(self, task: Task) -> None:
        for artifact in task.artifacts:
            if artifact.artifact_id not in self.names:
                await self._emit(artifact, append=False, last=True)
        if task.status.state in ENDS:
            await self._take_status(task.status)

    async def _take_status(self, status: v1.TaskStatus) -> None:
        """Stores an end or a question, which a later status takes back; other messages are progress."""
        self._end = status if status.state in ENDS else None
        if not self._end and status.message and status.message.parts:
            await self._task.report_progress(status.message)

    async def _emit(self, artifact: Artifact, *, append: bool, last: bool) -> None:
        parts = artifact.parts or ((v1.Part(text=""),) if last else ())
        name = self.names.setdefault(artifact.artifact_id, self._new_name(artifact))
        if parts:
            await self._task.emit(
                name,
                parts,
                append=append,
                last=last,
                description=artifact.description,
                metadata=artifact.metadata,
                extensions=artifact.extensions,
            )

    def _new_name(self, artifact: Artifact) -> str:
        """The artifact's name, with a number if an artifact before it has the name."""
        name, names_before = artifact.name or UNNAMED, set(self.names.values())
        numbered_names = (f"{name} {number}" for number in count(2))
        return next(candidate for candidate in chain([name], numbered_names) if candidate not in names_before)


class LogQueue(EventQueue):
    """The queue of an executor: each event goes to ``take`` at once. The parent's state is not used."""

    def __init__(self, take: Callable[[Any], Awaitable[None]]) -> None:
        self._take = take

    async def enqueue_event(self, event: Any) -> None:  # noqa: ANN401 - the SDK's types
        """Handles an event of the executor; it waits until the event is handled."""
        await self._take(sdk.event_of(event))

    async def close(self, *_: object, **__: object) -> None:
        """Closes nothing: some executors do this at their end."""


async def _ignore(_: object) -> None:
    """Ignores an event: the client has canceled the task, so nothing more is written."""


class ConversationTaskStore(TaskStore):
    """The SDK's tasks, which an executor keeps by itself, as values of the conversation of the current task."""

    async def save(self, task: Any, context: ServerCallContext | None = None) -> None:  # noqa: ANN401 - the SDK's
        """Stores a task, in place of that with its id."""
        del context
        await framework_task(current_task()).conversation.put(f"{TASKS}{task.id}", sdk.dump_task(task))

    async def get(self, task_id: str, context: ServerCallContext | None = None) -> Any:  # noqa: ANN401 - the SDK's
        """The task with this id, or None."""
        del context
        entry = await framework_task(current_task()).conversation.get(f"{TASKS}{task_id}")
        return sdk.load_task(cast("bytes", entry.value)) if entry else None

    async def delete(self, task_id: str, context: ServerCallContext | None = None) -> None:
        """Deletes a task, if it is stored."""
        del context
        await framework_task(current_task()).conversation.delete(f"{TASKS}{task_id}")

    async def list(self, *_: object) -> Any:  # noqa: ANN401 - the SDK's response
        """Raises NotImplementedError: clients list tasks of this deployment."""
        raise NotImplementedError("the tasks that an executor keeps are read by their ids")


class Owner(User):
    """The client for the SDK: authenticated, with the task's owner as its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def is_authenticated(self) -> bool:
        """Whether the client is known; it always is."""
        return True

    @property
    def user_name(self) -> str:
        """The task's owner."""
        return self._name


async def _context(task: TaskContext, current: Any) -> RequestContext:  # noqa: ANN401 - the SDK's task, or None
    """The context of a turn. Its message has the content of files that are stored outside the log."""
    incoming = task.request
    parts = tuple([await _inline(task, part) for part in incoming.message.parts])
    request = v1.SendMessageRequest(
        message=incoming.message.model_copy(update={"parts": parts}),
        metadata=incoming.metadata,
        configuration=v1.SendMessageConfiguration(accepted_output_modes=incoming.accepted_output_modes),
    )
    call = ServerCallContext(user=Owner(task.caller.owner), requested_extensions=set(incoming.extensions))
    sdk.set_tenant(call, task.caller.tenant)
    return RequestContext(
        request=sdk.request_of(request),
        task_id=task.id,
        context_id=task.context_id,
        task=current,
        related_tasks=[sdk.task_of(related) for related in await task.get_referenced_tasks(incoming.message)],
        call_context=call,
    )


async def _inline(task: TaskContext, part: Part) -> Part:
    if file_of(part) is None:
        return part
    return part.with_content(raw=base64.b64encode(await task.read_file(part)).decode())


def _fields_of(card: dict[str, Any]) -> dict[str, Any]:
    names = {"name": "name", "description": "description", "version": "version"}
    lists = {"input_modes": "defaultInputModes", "output_modes": "defaultOutputModes"}
    members = {ours: card[theirs] for ours, theirs in names.items() if card.get(theirs)}
    members |= {ours: tuple(card[theirs]) for ours, theirs in lists.items() if card.get(theirs)}
    extensions = card.get("capabilities", {}).get("extensions", ())
    return members | {
        "skills": tuple(Skill(**{"tags": (), **_members_for(Skill, skill)}) for skill in card.get("skills", ())),
        "extensions": tuple(AgentExtension(**_members_for(AgentExtension, extension)) for extension in extensions),
    }


def _members_for(kind: type[DataclassInstance], members: dict[str, Any]) -> dict[str, Any]:
    """The members that are fields of a dataclass, by its names and with its tuples."""
    values = {to_snake(name): tuple(value) if isinstance(value, list) else value for name, value in members.items()}
    return {field.name: values[field.name] for field in fields(kind) if field.name in values}
