"""Calls to other agents: each is sent once, uses no compute while it waits, and is followed to its end.

A call's message id, callback address and token are stored before it is sent. If the run dies in between, the next run
sends the same message again, and a remote agent that supports message ids creates no second task. A callback only
resumes the task (``services.callbacks`` checks it): the state is then fetched from the remote agent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from a2a_serverless.domain.agent import AgentCallFailed
from a2a_serverless.domain.digest import digest
from a2a_serverless.domain.head import WakeCounterChanged, clear_children
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.domain.trace import child_of
from a2a_serverless.ports.tasks import StepResult
from a2a_serverless.protocol.protojson import as_json
from a2a_serverless.protocol.v1 import (
    Message,
    Role,
    StreamResponse,
    Task,
    TaskPushNotificationConfig,
    stream_response,
)

if TYPE_CHECKING:
    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.agent import MessageContent
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import Json
    from a2a_serverless.engine.run_session import RunSession
    from a2a_serverless.ports.agents import RemoteAgents
    from a2a_serverless.ports.system import Ids
    from a2a_serverless.ports.tasks import TaskLog
    from a2a_serverless.protocol.v1 import Part, TaskStatus
    from a2a_serverless.protocol.v1_card import AgentCard

Ask: TypeAlias = "Callable[[MessageContent, str], Awaitable[Message]]"
"""Asks the task's own client: takes the question and a unique name, returns the answer."""
T = TypeVar("T")

PREFIX: Final = "@call/"
CARD: Final = "@card/"
TAGS: Final = "@agents"
RETRIES_S: Final = (0.0, 1.0, 5.0)


class NeedsWorker(BaseException):
    """Only the worker can make this call, so the run ends. Not an ``Exception``, so that an agent does not catch it."""


@dataclass(frozen=True, slots=True)
class AgentRegistry:
    """The agents that can be called, and the base URL at which they reach this deployment.

    Only the worker calls the agents in ``apart``: it has the credentials that they require.
    """

    remote_agents: RemoteAgents
    ids: Ids
    base_url: str
    apart: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CallLimit:
    """How long a call may take: in seconds after the call was made, and after its task was created."""

    timeout_s: float | None = None
    deadline_s: float | None = None

    def until(self, called_at: int, task_made_at: int) -> int | None:
        """When the call times out, in ms; None for never."""
        ends = ((called_at, self.timeout_s), (task_made_at, self.deadline_s))
        return min((at + int(seconds * 1000) for at, seconds in ends if seconds is not None), default=None)


@dataclass(frozen=True, slots=True)
class _CallWait:
    """A call that waits until the head's wake counter differs from ``seen``, or until ``until`` (ms).

    ``seen`` was read before the remote agent was asked for its state.
    """

    seen: int
    until: int | None


class AgentCalls:
    """The calls of one run. ``keep`` stores a step's value unless one is stored already, and returns the stored one."""

    def __init__(
        self,
        registry: AgentRegistry,
        session: RunSession,
        steps: dict[str, StepResult],
        keep: Callable[[str, Json], Json],
    ) -> None:
        self._registry = registry
        self._remote_agents = registry.remote_agents.with_trace(session.trace)
        self._session = session
        self._steps = steps
        self._keep = keep
        self._waiting: dict[asyncio.Future[None], _CallWait] = {}
        self._under_way = 0

    @property
    def _caller(self) -> Caller:
        return self._session.head.caller

    def check_reachable(self, agent: str | None) -> None:
        """Raises NeedsWorker if only the worker can call the agent (None: every agent)."""
        if agent in self._registry.apart or (agent is None and self._registry.apart):
            raise NeedsWorker

    @property
    def is_waiting(self) -> bool:
        """Whether there are calls and all of them wait for a wake."""
        return 0 < self._under_way == len(self._waiting)

    def notify_waiting(self) -> None:
        """Resumes the calls whose last answer is older than the task's wake counter."""
        for future, wait in [*self._waiting.items()]:
            if wait.seen != self._session.head.wake:
                del self._waiting[future]
                if not future.done():
                    future.set_result(None)

    def suspend(self) -> bool:
        """Suspends the task until it is woken; False if that has happened already."""
        waits = self._waiting.values()
        try:
            self._session.suspend(
                min(wait.seen for wait in waits), min((wait.until for wait in waits if wait.until), default=None)
            )
        except WakeCounterChanged:
            return False
        return True

    async def card(self, agent: str) -> AgentCard:
        """See ``TaskContext.get_card``."""
        from a2a_serverless.protocol.peers import read_card  # only agents that call others need it

        kept = self._steps.get(CARD + agent)
        card = kept.value if kept else self._keep(CARD + agent, await self._card(agent))
        if isinstance(card, str):
            raise AgentCallFailed(card)
        return read_card(card)

    async def find(self, tags: Sequence[str]) -> list[str]:
        """See ``TaskContext.find_agents``. What there is is read once and stored."""
        from a2a_serverless.protocol.ai_catalog import has_tags  # only agents that look for others need it

        kept = self._steps.get(TAGS)
        found: Any = kept.value if kept else self._keep(TAGS, await self._tags())
        if isinstance(found, str):
            raise AgentCallFailed(found)
        itself = self._session.head.agent
        return [name for name, own in found.items() if name != itself and has_tags(own, tags)]

    async def _tags(self) -> Json:
        """The tags of each agent, or the error text."""
        try:
            with self._busy_call():
                return {name: [*own] for name, own in (await self._retry(self._remote_agents.tags)).items()}
        except AgentCallFailed as failed:
            return str(failed)

    async def _card(self, agent: str) -> Json:
        """The card, or the error text. Either is stored, so that a later run gets the same."""
        try:
            with self._busy_call():
                card: AgentCard = await self._retry(lambda: self._remote_agents.card(agent))
                return as_json(card)
        except AgentCallFailed as failed:
            return str(failed)

    async def call(self, name: str, agent: str, parts: Sequence[Part], limit: CallLimit, ask: Ask) -> Task | Message:
        """See ``TaskContext.call``. The result or failure is stored, so that a later run gets the same."""
        done, failed = self._steps.get(f"{PREFIX}{name}/done"), self._steps.get(f"{PREFIX}{name}/failed")
        if done is not None:
            return _load_answer(done.value)
        if failed is not None:
            raise AgentCallFailed(str(failed.value))
        opened: dict[str, Any] = {}
        try:
            opened = self._open_call(name, agent, limit)
            with self._busy_call():
                answer = await self._make_call(name, agent, parts, opened, limit, ask)
        except AgentCallFailed as failure:
            self._keep(f"{PREFIX}{name}/failed", str(failure))
            self._record_span(name, agent, opened, type(failure).__name__)
            raise
        kept = self._keep(f"{PREFIX}{name}/done", _dump_answer(answer))
        self._record_span(name, agent, opened)
        return _load_answer(kept)

    def _record_span(self, name: str, agent: str, opened: dict[str, Any], error: str = "") -> None:
        """Records the span of a call that is over, under the ids that it was made with."""
        session = self._session
        if session.tracer.is_on and "trace" in opened:
            from a2a_serverless.domain.spans import call_span

            ids, times = (opened["trace"], opened["parent"]), (opened["at"], session.now())
            session.tracer.record(call_span(session.head, name, agent, *ids, times, error))

    def _agents_for(self, opened: dict[str, Any]) -> RemoteAgents:
        """The remote agents, which get the call's span as the parent of theirs if it has one."""
        return self._registry.remote_agents.with_trace(opened["trace"]) if "trace" in opened else self._remote_agents

    async def _make_call(
        self, name: str, agent: str, parts: Sequence[Part], opened: dict[str, Any], limit: CallLimit, ask: Ask
    ) -> Task | Message:
        sent = await self._send_once(name, agent, parts, opened)
        if isinstance(sent, Message):
            return sent
        until = limit.until(opened["at"], self._session.head.created_at)
        return await self._follow_task(name, agent, sent, opened, until, ask)

    @contextmanager
    def _busy_call(self) -> Iterator[None]:
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1

    def _open_call(self, name: str, agent: str, limit: CallLimit) -> dict[str, Any]:
        """The call's ids and addresses, the same in every run."""
        kept = self._steps.get(PREFIX + name)
        return cast("dict[str, Any]", kept.value if kept else self._keep(PREFIX + name, self._new_call(agent, limit)))

    def _new_call(self, agent: str, limit: CallLimit) -> Json:
        """New ids and addresses for a call. Raises AgentCallFailed if its time is over already."""
        ids, now = self._registry.ids, self._session.now()
        until = limit.until(now, self._session.head.created_at)
        if until is not None and now >= until:
            raise AgentCallFailed(f"There was no time left to call the agent {agent!r}.")
        identity: dict[str, Json] = {"agent": agent, "message": ids.new(), "token": ids.new(), "at": now}
        url = f"{self._registry.base_url}/callbacks/{ids.new()}"
        if trace := self._session.new_trace():
            identity |= {"trace": trace, "parent": self._session.trace}
        return identity | {"url": url, "address": self._remote_agents.address(agent)}

    async def _send_once(self, name: str, agent: str, parts: Sequence[Part], opened: dict[str, Any]) -> str | Message:
        """Sends the call's message unless that is done; returns the id of the remote task, or the remote message."""
        kept = self._steps.get(f"{PREFIX}{name}/sent")
        if kept is not None:
            return str(cast("dict[str, Json]", kept.value)["task"])
        if not self._session.head.children:
            self._session.mark_children()
        self._session.store_callback(opened["url"].rpartition("/")[2], name)
        message = Message(
            message_id=opened["message"], role=Role.USER, parts=tuple(parts), context_id=self._session.head.context_id
        )
        answer = await self._retry(lambda: self._send(name, agent, message, opened))
        return answer if isinstance(answer, Message) else answer.id

    def _send(self, name: str, agent: str, message: Message, opened: dict[str, Any]) -> Task | Message:
        """Sends the message and stores the remote task's id, in a thread that a cancel of the run does not interrupt.

        If our task has ended meanwhile, it cancels the remote task; if that fails, the cancel is repeated when our
        task is next due.
        """
        remote_agents = self._agents_for(opened)
        answer = remote_agents.send(self._caller, agent, message, _callback(opened))
        if isinstance(answer, Task):
            sent: Json = {"agent": agent, "task": answer.id}
            kept, ended = self._session.store_sent_call(f"{PREFIX}{name}/sent", StepResult("", sent))
            self._steps[f"{PREFIX}{name}/sent"] = kept
            if ended:
                with suppress(AgentCallFailed):
                    remote_agents.cancel(self._caller, agent, answer.id)
        return answer

    async def _follow_task(
        self, name: str, agent: str, task_id: str, opened: dict[str, Any], until: int | None, ask: Ask
    ) -> Task:
        """Follows the remote task until it has ended or timed out, and returns it."""
        remote_agents = self._agents_for(opened)
        while True:
            seen = self._session.head.wake
            task: Task = await self._retry(lambda: remote_agents.get(self._caller, agent, task_id))
            if task.status.state in TERMINAL:
                return task
            if until is not None and self._session.now() >= until:
                await self._retry(lambda: remote_agents.cancel(self._caller, agent, task_id))
                return await self._retry(lambda: remote_agents.get(self._caller, agent, task_id))
            if task.status.state in INTERRUPTED:
                await self._answer_question(name, agent, task, opened, ask, _CallWait(seen, until))
            else:
                await self._wait_for_wake(_CallWait(seen, until))

    async def _answer_question(
        self, name: str, agent: str, task: Task, opened: dict[str, Any], ask: Ask, wait: _CallWait
    ) -> None:
        """Asks our own client the remote agent's question, and sends the answer back once."""
        record = f"{PREFIX}{name}/answer/{_question(task.status)}"
        if record in self._steps:
            return await self._wait_for_wake(wait)
        asked = task.status.message
        answer = await ask(asked.parts if asked and asked.parts else f"{agent} asks for input.", record)
        identity = cast("dict[str, Any]", self._keep(f"{record}/id", {"message": self._registry.ids.new()}))
        message = Message(
            message_id=identity["message"],
            role=Role.USER,
            parts=answer.parts,
            context_id=task.context_id,
            task_id=task.id,
        )
        await self._retry(lambda: self._agents_for(opened).send(self._caller, agent, message, _callback(opened)))
        self._keep(record, {"answered": message.message_id})
        return None

    async def _wait_for_wake(self, wait: _CallWait) -> None:
        """Returns when the task's wake counter differs from ``wait.seen``, or at ``wait.until``."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = wait
        left = None if wait.until is None else max(0.0, (wait.until - self._session.now()) / 1000)
        await asyncio.wait({future}, timeout=left)
        self._waiting.pop(future, None)

    async def _retry(self, call: Callable[[], T]) -> T:
        """Makes a call to a remote agent, with up to three tries (see ``RETRIES_S``)."""
        for pause in RETRIES_S[:-1]:
            await asyncio.sleep(pause)
            try:
                return await asyncio.to_thread(call)
            except AgentCallFailed:
                continue
        await asyncio.sleep(RETRIES_S[-1])
        return await asyncio.to_thread(call)


def cancel_children(log: TaskLog, remote_agents: RemoteAgents, head: Head, *, now: int) -> None:
    """Cancels the running calls of an ended task, and then marks the head as having none.

    Raises AgentCallFailed if an agent cannot be reached; the cancel is repeated when the task is next due.
    """
    failures = list[AgentCallFailed]()
    remote_agents = remote_agents.with_trace(child_of(head.trace, head.key.task))
    for agent, task_id in _children(log.read_steps(head.key)):
        try:
            remote_agents.cancel(head.caller, agent, task_id)
        except AgentCallFailed as failed:
            failures.append(failed)
    if failures:
        raise failures[0]
    log.update_head(head, clear_children(head, now=now))


def _children(steps: Mapping[str, StepResult]) -> dict[tuple[str, str], None]:
    """The unfinished calls as (agent, task id). The id comes from the agent's answer, or else its first callback."""
    found: dict[tuple[str, str], None] = {}
    for name, step in steps.items():
        call, _, kind = name.rpartition("/")
        known = cast("dict[str, str]", step.value)
        if name.startswith(PREFIX) and kind in {"sent", "told"} and "task" in known and f"{call}/done" not in steps:
            found[known["agent"], known["task"]] = None
    return found


def _callback(opened: dict[str, Any]) -> TaskPushNotificationConfig:
    """The webhook for a call. Its URL identifies task and call but reveals neither."""
    return TaskPushNotificationConfig(url=opened["url"], id="parent", token=opened["token"])


def _question(status: TaskStatus) -> str:
    """Identifies a question, so that each is answered once."""
    message_id = status.message.message_id if status.message else ""
    return digest([status.timestamp, message_id])[:16]


def _dump_answer(answer: Task | Message) -> Json:
    return cast("Json", json.loads(stream_response(answer).json_bytes()))


def _load_answer(value: Json) -> Task | Message:
    return cast("Task | Message", StreamResponse.model_validate(value).content)
