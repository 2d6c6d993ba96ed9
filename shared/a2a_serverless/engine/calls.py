"""Calls to other agents: sent once, waited for without compute, followed to their end.

What identifies a call (message id, callback address and token) is stored before anything is sent, so a run that dies in
between sends the same message again, and a peer that knows message ids makes no second task. The webhook that comes
back is a bell (``services.callbacks`` lets in what is genuine): the task's truth is asked of the peer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from a2a_serverless.domain.agent import AgentCallFailed
from a2a_serverless.domain.digest import digest
from a2a_serverless.domain.head import WakeCounterChanged, clear_children
from a2a_serverless.domain.model import Message, PushRequest, Role, Task
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.domain.trace import child_of
from a2a_serverless.ports import StepResult
from a2a_serverless.wire import v1
from a2a_serverless.wire.card import read_card, v1_card

if TYPE_CHECKING:
    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.card import AgentCard
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import Json, Part, TaskStatus
    from a2a_serverless.engine.run_session import RunSession
    from a2a_serverless.ports import Ids, RemoteAgents, TaskLog

Ask: TypeAlias = Callable[[str, str], Awaitable[Message]]
"""Puts a question to the task's own client, under a name that is its own."""
T = TypeVar("T")

PREFIX: Final = "@call/"
CARD: Final = "@card/"
RETRIES_S: Final = (0.0, 1.0, 5.0)


class NeedsWorker(BaseException):
    """The call is the worker's to make: the run ends here, and no author's ``except Exception`` may keep it."""


@dataclass(frozen=True, slots=True)
class AgentRegistry:
    """What calls need: the agents that can be called, and where they reach this deployment.

    Those in ``apart`` are spoken to by the worker only, which has what they ask of their callers.
    """

    remote_agents: RemoteAgents
    ids: Ids
    base_url: str
    apart: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CallLimit:
    """How long a call may take: in seconds after it was made, and after its task was."""

    timeout_s: float | None = None
    deadline_s: float | None = None

    def until(self, called_at: int, task_made_at: int) -> int | None:
        """When the time is over, in ms; None for never."""
        ends = ((called_at, self.timeout_s), (task_made_at, self.deadline_s))
        return min((at + int(seconds * 1000) for at, seconds in ends if seconds is not None), default=None)


@dataclass(frozen=True, slots=True)
class _CallWait:
    """What a call waits for: another wake counter than ``seen``, which was the head's before the agent was asked.

    At ``until`` (ms) it waits no longer.
    """

    seen: int
    until: int | None


class AgentCalls:
    """The calls of one run. ``keep`` stores a step's value unless there is one, and gives the one that is stored."""

    def __init__(
        self,
        registry: AgentRegistry,
        session: RunSession,
        steps: dict[str, StepResult],
        keep: Callable[[str, Json], Json],
    ) -> None:
        self._registry = registry
        self._remote_agents = registry.remote_agents.with_trace(
            child_of(session.head.trace, f"{session.key.task} {session.fence}")
        )
        self._session = session
        self._steps = steps
        self._keep = keep
        self._waiting: dict[asyncio.Future[None], _CallWait] = {}
        self._under_way = 0

    @property
    def _caller(self) -> Caller:
        return self._session.head.caller

    def check_reachable(self, agent: str) -> None:
        """Raises Apart when this process does not speak to the agent."""
        if agent in self._registry.apart:
            raise NeedsWorker

    @property
    def is_waiting(self) -> bool:
        """Whether calls wait for news, and none does anything else."""
        return 0 < self._under_way == len(self._waiting)

    def notify_waiting(self) -> None:
        """Lets the calls look again whose last answer is older than the task's wake counter."""
        for future, wait in [*self._waiting.items()]:
            if wait.seen != self._session.head.wake:
                del self._waiting[future]
                if not future.done():
                    future.set_result(None)

    def suspend(self) -> bool:
        """Gives the task back until there is news; False when there is some already."""
        waits = self._waiting.values()
        try:
            self._session.suspend(
                min(wait.seen for wait in waits), min((wait.until for wait in waits if wait.until), default=None)
            )
        except WakeCounterChanged:
            return False
        return True

    async def card(self, agent: str) -> AgentCard:
        """See ``AgentTask.get_card``."""
        kept = self._steps.get(CARD + agent)
        card = kept.value if kept else self._keep(CARD + agent, await self._card(agent))
        if isinstance(card, str):
            raise AgentCallFailed(card)
        return read_card(card)

    async def _card(self, agent: str) -> Json:
        """The card, or why there is none: a later run goes the same way."""
        try:
            with self._busy_call():
                return v1_card(await self._retry(lambda: self._remote_agents.card(agent)))
        except AgentCallFailed as failed:
            return str(failed)

    async def call(self, name: str, agent: str, parts: Sequence[Part], limit: CallLimit, ask: Ask) -> Task | Message:
        """See ``AgentTask.call``. How it ended is kept, also when it failed: a later run goes the same way."""
        done, failed = self._steps.get(f"{PREFIX}{name}/done"), self._steps.get(f"{PREFIX}{name}/failed")
        if done is not None:
            return _load_answer(done.value)
        if failed is not None:
            raise AgentCallFailed(str(failed.value))
        try:
            opened = self._open_call(name, agent, limit)
            with self._busy_call():
                answer = await self._make_call(name, agent, parts, opened, limit, ask)
        except AgentCallFailed as failure:
            self._keep(f"{PREFIX}{name}/failed", str(failure))
            raise
        return _load_answer(self._keep(f"{PREFIX}{name}/done", _dump_answer(answer)))

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
        """What identifies the call, the same in every run."""
        kept = self._steps.get(PREFIX + name)
        return cast("dict[str, Any]", kept.value if kept else self._keep(PREFIX + name, self._new_call(agent, limit)))

    def _new_call(self, agent: str, limit: CallLimit) -> Json:
        """What identifies a call from now on. One that was not made in time is not made."""
        ids, now = self._registry.ids, self._session.now()
        until = limit.until(now, self._session.head.created_at)
        if until is not None and now >= until:
            raise AgentCallFailed(f"There was no time left to call the agent {agent!r}.")
        identity: dict[str, Json] = {"agent": agent, "message": ids.new(), "token": ids.new(), "at": now}
        url = f"{self._registry.base_url}/callbacks/{ids.new()}"
        return identity | {"url": url, "address": self._remote_agents.address(agent)}

    async def _send_once(self, name: str, agent: str, parts: Sequence[Part], opened: dict[str, Any]) -> str | Message:
        """The id of the peer's task, or its message."""
        kept = self._steps.get(f"{PREFIX}{name}/sent")
        if kept is not None:
            return str(cast("dict[str, Json]", kept.value)["task"])
        if not self._session.head.children:
            self._session.mark_children()
        self._session.store_callback(opened["url"].rpartition("/")[2], name)
        message = Message(opened["message"], Role.USER, tuple(parts), self._session.head.context_id)
        answer = await self._retry(lambda: self._send(name, agent, message, opened))
        return answer if isinstance(answer, Message) else answer.task_id

    def _send(self, name: str, agent: str, message: Message, opened: dict[str, Any]) -> Task | Message:
        """What the agent answers. Its task is noted here, where no cancel of the run interrupts.

        When our task has ended meanwhile, the agent's is canceled; should that fail, it is when ours is next due.
        """
        answer = self._remote_agents.send(self._caller, agent, message, _callback(opened))
        if isinstance(answer, Task):
            sent: Json = {"agent": agent, "task": answer.task_id}
            kept, ended = self._session.store_sent_call(f"{PREFIX}{name}/sent", StepResult("", sent))
            self._steps[f"{PREFIX}{name}/sent"] = kept
            if ended:
                with suppress(AgentCallFailed):
                    self._remote_agents.cancel(self._caller, agent, answer.task_id)
        return answer

    async def _follow_task(
        self, name: str, agent: str, task_id: str, opened: dict[str, Any], until: int | None, ask: Ask
    ) -> Task:
        """The peer's task at its end."""
        remote_agents = self._remote_agents
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
        """The peer's question, put to our own client, and the answer, sent back once."""
        record = f"{PREFIX}{name}/answer/{_question(task.status)}"
        if record in self._steps:
            return await self._wait_for_wake(wait)
        question = task.status.message.text() if task.status.message else f"{agent} asks for input."
        answer = await ask(question, record)
        identity = cast("dict[str, Any]", self._keep(f"{record}/id", {"message": self._registry.ids.new()}))
        message = Message(identity["message"], Role.USER, answer.parts, task.context_id, task.task_id)
        await self._retry(lambda: self._remote_agents.send(self._caller, agent, message, _callback(opened)))
        self._keep(record, {"answered": message.message_id})
        return None

    async def _wait_for_wake(self, wait: _CallWait) -> None:
        """Returns when the task's wake counter is not ``wait.seen`` any more, or at ``wait.until``."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = wait
        left = None if wait.until is None else max(0.0, (wait.until - self._session.now()) / 1000)
        await asyncio.wait({future}, timeout=left)
        self._waiting.pop(future, None)

    async def _retry(self, call: Callable[[], T]) -> T:
        """What a peer answers, asked again a little later when it does not at first."""
        for pause in RETRIES_S[:-1]:
            await asyncio.sleep(pause)
            try:
                return await asyncio.to_thread(call)
            except AgentCallFailed:
                continue
        await asyncio.sleep(RETRIES_S[-1])
        return await asyncio.to_thread(call)


def cancel_children(log: TaskLog, remote_agents: RemoteAgents, head: Head, *, now: int) -> None:
    """Cancels what an ended task still has running elsewhere, then forgets it.

    Who cannot be reached is asked again when the task is next due; raises AgentCallFailed when there is somebody.
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
    """The calls that are not over, as (agent, task): known by the agent's answer, else by its first webhook."""
    found: dict[tuple[str, str], None] = {}
    for name, step in steps.items():
        call, _, kind = name.rpartition("/")
        known = cast("dict[str, str]", step.value)
        if name.startswith(PREFIX) and kind in {"sent", "told"} and "task" in known and f"{call}/done" not in steps:
            found[known["agent"], known["task"]] = None
    return found


def _callback(opened: dict[str, Any]) -> PushRequest:
    """Where a peer tells of a call: an address that stands for parent and call, and says nothing of either."""
    return PushRequest(opened["url"], config_id="parent", token=opened["token"])


def _question(status: TaskStatus) -> str:
    """What a question is known by, so that each is answered once."""
    message_id = status.message.message_id if status.message else ""
    return digest([status.timestamp, message_id])[:16]


def _dump_answer(answer: Task | Message) -> Json:
    return v1.stream_item(answer, "", "")


def _load_answer(value: Json) -> Task | Message:
    return cast("Task | Message", v1.parse_stream_item(value))
