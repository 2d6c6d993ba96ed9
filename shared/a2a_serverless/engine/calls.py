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

from a2a_serverless.domain.agent import PeerFailed
from a2a_serverless.domain.digest import digest
from a2a_serverless.domain.head import Woken, childless
from a2a_serverless.domain.model import Message, PushRequest, Role, Task
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.domain.trace import child
from a2a_serverless.ports import StepResult
from a2a_serverless.wire import v1
from a2a_serverless.wire.card import read_card, v1_card

if TYPE_CHECKING:
    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.card import Card
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import Json, Part, TaskStatus
    from a2a_serverless.engine.hold import Hold
    from a2a_serverless.ports import Ids, Peers, TaskLog

Ask: TypeAlias = Callable[[str, str], Awaitable[Message]]
"""Puts a question to the task's own client, under a name that is its own."""
T = TypeVar("T")

PREFIX: Final = "@call/"
CARD: Final = "@card/"
RETRIES_S: Final = (0.0, 1.0, 5.0)


class Apart(BaseException):
    """The call is the worker's to make: the run ends here, and no author's ``except Exception`` may keep it."""


@dataclass(frozen=True, slots=True)
class Directory:
    """What calls need: the agents that can be called, and where they reach this deployment.

    Those in ``apart`` are spoken to by the worker only, which has what they ask of their callers.
    """

    peers: Peers
    ids: Ids
    base_url: str
    apart: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Limit:
    """How long a call may take: in seconds after it was made, and after its task was."""

    timeout_s: float | None = None
    deadline_s: float | None = None

    def until(self, called_at: int, task_made_at: int) -> int | None:
        """When the time is over, in ms; None for never."""
        ends = ((called_at, self.timeout_s), (task_made_at, self.deadline_s))
        return min((at + int(seconds * 1000) for at, seconds in ends if seconds is not None), default=None)


@dataclass(frozen=True, slots=True)
class _Wait:
    """What a call waits for: another wake counter than ``seen``, which was the head's before the agent was asked.

    At ``until`` (ms) it waits no longer.
    """

    seen: int
    until: int | None


class Calls:
    """The calls of one run. ``keep`` stores a step's value unless there is one, and gives the one that is stored."""

    def __init__(
        self, directory: Directory, hold: Hold, steps: dict[str, StepResult], keep: Callable[[str, Json], Json]
    ) -> None:
        self._directory = directory
        self._peers = directory.peers.traced(child(hold.head.trace, f"{hold.key.task} {hold.fence}"))
        self._hold = hold
        self._steps = steps
        self._keep = keep
        self._waiting: dict[asyncio.Future[None], _Wait] = {}
        self._under_way = 0

    @property
    def _caller(self) -> Caller:
        return self._hold.head.caller

    def check_reach(self, agent: str) -> None:
        """Raises Apart when this process does not speak to the agent."""
        if agent in self._directory.apart:
            raise Apart

    @property
    def waiting(self) -> bool:
        """Whether calls wait for news, and none does anything else."""
        return 0 < self._under_way == len(self._waiting)

    def notice(self) -> None:
        """Lets the calls look again whose last answer is older than the task's wake counter."""
        for future, wait in [*self._waiting.items()]:
            if wait.seen != self._hold.head.wake:
                del self._waiting[future]
                if not future.done():
                    future.set_result(None)

    def park(self) -> bool:
        """Gives the task back until there is news; False when there is some already."""
        waits = self._waiting.values()
        try:
            self._hold.park(
                min(wait.seen for wait in waits), min((wait.until for wait in waits if wait.until), default=None)
            )
        except Woken:
            return False
        return True

    async def card(self, agent: str) -> Card:
        """See ``AgentTask.card``."""
        kept = self._steps.get(CARD + agent)
        card = kept.value if kept else self._keep(CARD + agent, await self._card(agent))
        if isinstance(card, str):
            raise PeerFailed(card)
        return read_card(card)

    async def _card(self, agent: str) -> Json:
        """The card, or why there is none: a later run goes the same way."""
        try:
            with self._at_it():
                return v1_card(await self._tried(lambda: self._peers.card(agent)))
        except PeerFailed as failed:
            return str(failed)

    async def call(self, name: str, agent: str, parts: Sequence[Part], limit: Limit, ask: Ask) -> Task | Message:
        """See ``AgentTask.call``. How it ended is kept, also when it failed: a later run goes the same way."""
        done, failed = self._steps.get(f"{PREFIX}{name}/done"), self._steps.get(f"{PREFIX}{name}/failed")
        if done is not None:
            return _read(done.value)
        if failed is not None:
            raise PeerFailed(str(failed.value))
        try:
            opened = self._opened(name, agent, limit)
            with self._at_it():
                answer = await self._answer(name, agent, parts, opened, limit, ask)
        except PeerFailed as failure:
            self._keep(f"{PREFIX}{name}/failed", str(failure))
            raise
        return _read(self._keep(f"{PREFIX}{name}/done", _print(answer)))

    async def _answer(
        self, name: str, agent: str, parts: Sequence[Part], opened: dict[str, Any], limit: Limit, ask: Ask
    ) -> Task | Message:
        sent = await self._sent(name, agent, parts, opened)
        if isinstance(sent, Message):
            return sent
        until = limit.until(opened["at"], self._hold.head.created_at)
        return await self._followed(name, agent, sent, opened, until, ask)

    @contextmanager
    def _at_it(self) -> Iterator[None]:
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1

    def _opened(self, name: str, agent: str, limit: Limit) -> dict[str, Any]:
        """What identifies the call, the same in every run."""
        kept = self._steps.get(PREFIX + name)
        return cast("dict[str, Any]", kept.value if kept else self._keep(PREFIX + name, self._opening(agent, limit)))

    def _opening(self, agent: str, limit: Limit) -> Json:
        """What identifies a call from now on. One that was not made in time is not made."""
        ids, now = self._directory.ids, self._hold.now()
        until = limit.until(now, self._hold.head.created_at)
        if until is not None and now >= until:
            raise PeerFailed(f"There was no time left to call the agent {agent!r}.")
        identity: dict[str, Json] = {"agent": agent, "message": ids.new(), "token": ids.new(), "at": now}
        url = f"{self._directory.base_url}/callbacks/{ids.new()}"
        return identity | {"url": url, "address": self._peers.address(agent)}

    async def _sent(self, name: str, agent: str, parts: Sequence[Part], opened: dict[str, Any]) -> str | Message:
        """The id of the peer's task, or its message."""
        kept = self._steps.get(f"{PREFIX}{name}/sent")
        if kept is not None:
            return str(cast("dict[str, Json]", kept.value)["task"])
        if not self._hold.head.children:
            self._hold.adopt()
        self._hold.keep_callback(opened["url"].rpartition("/")[2], name)
        message = Message(opened["message"], Role.USER, tuple(parts), self._hold.head.context_id)
        answer = await self._tried(lambda: self._send(name, agent, message, opened))
        return answer if isinstance(answer, Message) else answer.task_id

    def _send(self, name: str, agent: str, message: Message, opened: dict[str, Any]) -> Task | Message:
        """What the agent answers. Its task is noted here, where no cancel of the run interrupts.

        When our task has ended meanwhile, the agent's is canceled; should that fail, it is when ours is next due.
        """
        answer = self._peers.send(self._caller, agent, message, _callback(opened))
        if isinstance(answer, Task):
            sent: Json = {"agent": agent, "task": answer.task_id}
            kept, ended = self._hold.keep_sent(f"{PREFIX}{name}/sent", StepResult("", sent))
            self._steps[f"{PREFIX}{name}/sent"] = kept
            if ended:
                with suppress(PeerFailed):
                    self._peers.cancel(self._caller, agent, answer.task_id)
        return answer

    async def _followed(
        self, name: str, agent: str, task_id: str, opened: dict[str, Any], until: int | None, ask: Ask
    ) -> Task:
        """The peer's task at its end."""
        peers = self._peers
        while True:
            seen = self._hold.head.wake
            task: Task = await self._tried(lambda: peers.get(self._caller, agent, task_id))
            if task.status.state in TERMINAL:
                return task
            if until is not None and self._hold.now() >= until:
                await self._tried(lambda: peers.cancel(self._caller, agent, task_id))
                return await self._tried(lambda: peers.get(self._caller, agent, task_id))
            if task.status.state in INTERRUPTED:
                await self._answered(name, agent, task, opened, ask, _Wait(seen, until))
            else:
                await self._news(_Wait(seen, until))

    async def _answered(self, name: str, agent: str, task: Task, opened: dict[str, Any], ask: Ask, wait: _Wait) -> None:
        """The peer's question, put to our own client, and the answer, sent back once."""
        record = f"{PREFIX}{name}/answer/{_question(task.status)}"
        if record in self._steps:
            return await self._news(wait)
        question = task.status.message.text() if task.status.message else f"{agent} asks for input."
        answer = await ask(question, record)
        identity = cast("dict[str, Any]", self._keep(f"{record}/id", {"message": self._directory.ids.new()}))
        message = Message(identity["message"], Role.USER, answer.parts, task.context_id, task.task_id)
        await self._tried(lambda: self._peers.send(self._caller, agent, message, _callback(opened)))
        self._keep(record, {"answered": message.message_id})
        return None

    async def _news(self, wait: _Wait) -> None:
        """Returns when the task's wake counter is not ``wait.seen`` any more, or at ``wait.until``."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = wait
        left = None if wait.until is None else max(0.0, (wait.until - self._hold.now()) / 1000)
        await asyncio.wait({future}, timeout=left)
        self._waiting.pop(future, None)

    async def _tried(self, call: Callable[[], T]) -> T:
        """What a peer answers, asked again a little later when it does not at first."""
        for pause in RETRIES_S[:-1]:
            await asyncio.sleep(pause)
            try:
                return await asyncio.to_thread(call)
            except PeerFailed:
                continue
        await asyncio.sleep(RETRIES_S[-1])
        return await asyncio.to_thread(call)


def end_children(log: TaskLog, peers: Peers, head: Head, *, now: int) -> None:
    """Cancels what an ended task still has running elsewhere, then forgets it.

    Who cannot be reached is asked again when the task is next due; raises PeerFailed when there is somebody.
    """
    failures = list[PeerFailed]()
    peers = peers.traced(child(head.trace, head.key.task))
    for agent, task_id in _children(log.steps(head.key)):
        try:
            peers.cancel(head.caller, agent, task_id)
        except PeerFailed as failed:
            failures.append(failed)
    if failures:
        raise failures[0]
    log.touch(head, childless(head, now=now))


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


def _print(answer: Task | Message) -> Json:
    return v1.stream_item(answer, "", "")


def _read(value: Json) -> Task | Message:
    return cast("Task | Message", v1.parse_stream_item(value))
