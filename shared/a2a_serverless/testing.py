"""Runs agents in unit tests: the engine of a deployment, with an in-memory store, simulated time and no AWS.

    harness = AgentTestHarness(hello)
    reply = harness.send("Ada")
    assert reply.said == "Hello, Ada!"

Simulated time moves only when everything waits, so a test of an agent that sleeps for an hour takes no time. It does
not move while threads of the agent or its libraries are running.
"""

from __future__ import annotations

import asyncio
import queue
import selectors
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import thread as pools
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from a2a_serverless.adapters.memory import (
    MemoryCallbackVerifier,
    MemoryQueues,
    MemoryResolver,
    MemorySealer,
    MemoryTable,
)
from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.agent import AgentCallFailed
from a2a_serverless.domain.errors import A2AError, TaskNotCancelable
from a2a_serverless.domain.head import TaskLifetime
from a2a_serverless.domain.model import Principal, TaskKey
from a2a_serverless.domain.outbound import Outcome
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.domain.url_policy import EgressPolicy
from a2a_serverless.engine.calls import AgentRegistry
from a2a_serverless.engine.files import TaskFiles
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.engine.run import Engine, RunOutcome, run
from a2a_serverless.engine.task_context import make_parts
from a2a_serverless.ports.agents import CallbackRequest
from a2a_serverless.ports.tasks import SHARDS, TaskEntry
from a2a_serverless.protocol.v1 import (
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskState,
)
from a2a_serverless.services import tasks
from a2a_serverless.services.callbacks import TOKEN_HEADER, handle_callback
from a2a_serverless.services.listing import TaskLister
from a2a_serverless.services.publish import card_of
from a2a_serverless.services.sweep import Sweeper, sweep
from a2a_serverless.services.webhooks import Webhooks

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from types import FrameType

    from a2a_serverless.domain.agent import Agent, Content
    from a2a_serverless.domain.model import Json
    from a2a_serverless.protocol.v1 import Artifact, TaskPushNotificationConfig
    from a2a_serverless.protocol.v1_card import AgentCard

T = TypeVar("T")
P = ParamSpec("P")

START: Final = 1_790_000_000_000
BASE_URL: Final = "https://agents.example.com"
CLIENT: Final = Principal("tenant", "client")
LIFE: Final = TaskLifetime(max_life_ms=7 * 86_400_000, retention_ms=30 * 86_400_000)
RUN_MS: Final = 900_000
MOST_LISTED: Final = 1000
THREADS_S: Final = 30.0
POLL_S: Final = 0.002
_WAITING: Final = frozenset({threading.__file__, queue.__file__, selectors.__file__})


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop with simulated time: ``now`` returns it (ms), and ``wait`` moves it forward (by ms).

    Work for ``asyncio.to_thread`` runs at once in this thread, because other threads have no simulated time. While a
    thread that is not in ``known`` is running, no time passes, for at most ``THREADS_S`` real seconds. A thread that
    waits for a lock, a queue or a socket does not count as running: it may wait for this loop.
    """

    def __init__(
        self, now: Callable[[], int], wait: Callable[[int], None], known: frozenset[threading.Thread] | None = None
    ) -> None:
        self._now = now
        super().__init__(_SimulatedSelector(wait, frozenset(threading.enumerate()) if known is None else known))
        self.set_default_executor(_AtOnce())

    def time(self) -> float:
        return (self._now() - START) / 1000


class _SimulatedSelector(selectors.SelectSelector):
    """A selector that moves simulated time instead of waiting, once no other thread is running."""

    def __init__(self, wait: Callable[[int], None], known: frozenset[threading.Thread]) -> None:
        super().__init__()
        self._wait = wait
        self._known = known
        self._given_up: set[tuple[int | None, int, int]] = set()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout != 0:
            ready = self._from_threads()
        if not ready and timeout != 0:
            if timeout is None:
                raise RuntimeError("deadlock: everything waits, and nothing is scheduled")
            self._wait(int(timeout * 1000) + 1)
        return ready

    def _from_threads(self) -> list[tuple[selectors.SelectorKey, int]]:
        """Waits for events from running threads; empty if none runs, or after ``THREADS_S`` seconds without one."""
        until = time.monotonic() + THREADS_S
        while others := [thread for thread in threading.enumerate() if self._is_foreign(thread)]:
            at_work = _at_work(others) - self._given_up
            ready = super().select(POLL_S)
            if ready or not at_work:
                return ready
            if time.monotonic() > until:
                self._given_up |= at_work
        return []

    def _is_foreign(self, thread: threading.Thread) -> bool:
        return thread not in self._known and thread is not threading.current_thread()


def _at_work(threads: Sequence[threading.Thread]) -> set[tuple[int | None, int, int]]:
    """The running threads among these, each with its frame and position in the code."""
    frames = sys._current_frames()  # noqa: SLF001 - documented; there is no other way
    found = ((thread.ident, frames.get(thread.ident or 0)) for thread in threads)
    return {(ident, id(frame), frame.f_lasti) for ident, frame in found if frame and not _waits(frame)}


def _waits(frame: FrameType) -> bool:
    """Whether a thread waits for work, a lock or a socket."""
    code = frame.f_code
    return code.co_filename in _WAITING or (code.co_filename == pools.__file__ and code.co_name == "_worker")


class _AtOnce(ThreadPoolExecutor):
    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - the future gets it
            done.set_exception(error)
        return done


class Counter:
    """Makes ids in order, so that test runs are repeatable."""

    def __init__(self) -> None:
        self.last = 0

    def new(self) -> str:
        self.last += 1
        return f"id-{self.last:04d}"


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to a message: a plain message, or the task once no more work is left to do without the client.

    ``error`` is the exception that the agent's function raised, or None.
    """

    answer: Task | Message
    error: BaseException | None = None

    @property
    def task(self) -> Task:
        """The task; raises TypeError if the agent answered with a message."""
        if isinstance(self.answer, Message):
            raise TypeError("the agent answered with a message and made no task")
        return self.answer

    @property
    def state(self) -> TaskState | None:
        """The task's state; None for a plain message."""
        return None if isinstance(self.answer, Message) else self.answer.status.state

    @property
    def said(self) -> str:
        """The text of the message, or of the task's status message (a question, a reason, a final text)."""
        message = self.answer if isinstance(self.answer, Message) else self.answer.status.message
        return message.text() if message else ""

    @property
    def artifacts(self) -> dict[str, Artifact]:
        """The task's artifacts by name; a missing one raises ``NoArtifact``."""
        return _Artifacts(self)

    def text(self, name: str) -> str:
        """The text of the artifact ``name``."""
        return self.artifacts[name].text()

    def data(self, name: str) -> Json:
        """The first data part of the artifact ``name``."""
        return self.artifacts[name].data()


class NoArtifact(KeyError):
    """The task has no artifact with this name. The cause is the exception of the agent's function, if any."""

    def __str__(self) -> str:
        return str(self.args[0])


class _Artifacts(dict[str, "Artifact"]):
    def __init__(self, reply: Reply) -> None:
        super().__init__({artifact.name or artifact.artifact_id: artifact for artifact in reply.task.artifacts})
        self._reply = reply

    def __missing__(self, name: str) -> Artifact:
        state, said, error = self._reply.state, self._reply.said, self._reply.error
        raised = f" The agent raised {type(error).__name__}: {error}" if error else ""
        there = ", ".join(map(repr, self)) or "none"
        raise NoArtifact(f"no artifact {name!r} (there is: {there}); the task is {state}: {said}{raised}") from error


class AgentTestHarness:
    """A deployment of ``agents`` in memory. Messages without ``to`` go to the first agent.

    ``files`` are the files on the simulated web, by URL. ``now`` is the simulated time (ms). ``run_ms`` is the
    platform's time limit for one run. ``runs`` lists the runs as (task id, start ms, end ms). There is one worker, so
    runs follow one another.
    """

    def __init__(self, *agents: Agent, files: Mapping[str, bytes] | None = None) -> None:
        self.now = START
        self.run_ms = RUN_MS
        self.runs: list[tuple[str, int, int]] = []
        self._threads = frozenset(threading.enumerate())
        self._errors: dict[str, BaseException] = {}
        self._planned: list[tuple[int, Callable[[], object]]] = []
        self._playing = 0
        self._first = agents[0].id
        self._clock, self._ids = _Clock(self), Counter()
        self._table, self._queues = MemoryTable(self._clock.now), MemoryQueues(self._clock.now)
        self._siblings = _Siblings(self, {agent.id: agent for agent in agents})
        self._engine = self._make_engine(files or {})
        self.service = self._make_service()
        self._sweeper = Sweeper(self._table, self._table, self._queues, self._clock, self._ids)

    def _make_engine(self, web: Mapping[str, bytes]) -> Engine:
        return Engine(
            self._table,
            self._table,
            self._queues,
            self._ids,
            self._clock.now,
            self._siblings.agents,
            AgentRegistry(self._siblings, self._ids, BASE_URL),
            files=TaskFiles(None, lambda url: Outcome(status=200 if url in web else 404, body=web.get(url, b""))),
            on_error=lambda key, error: self._errors.update({key.task: error}),
        )

    def _make_service(self) -> tasks.TaskService:
        table, queues, clock, ids, sealer = self._table, self._queues, self._clock, self._ids, MemorySealer()
        return tasks.TaskService(
            log=table,
            queues=queues,
            clock=clock,
            ids=ids,
            webhooks=Webhooks(table, table, queues, sealer, clock, ids, EgressPolicy(), MemoryResolver()),
            lister=TaskLister(table, table, sealer),
            life=LIFE,
            blocking_ms=0,
            inline_runner=EngineInlineRunner(self._engine, self._play),
        )

    def send(
        self,
        content: Content | Sequence[Part],
        *,
        to: str | None = None,
        context_id: str | None = None,
        task_id: str | None = None,
        references: Sequence[str] = (),
    ) -> Reply:
        """Sends a message to the agent ``to`` and runs the deployment until no work is left.

        ``task_id`` answers a task's question, ``context_id`` continues a conversation, ``references`` are task ids.
        """
        task = self.begin(content, to=to, context_id=context_id, task_id=task_id, references=references)
        self.settle()
        return self.reply(task.id, to=to) if isinstance(task, Task) else Reply(task)

    def begin(
        self,
        content: Content | Sequence[Part],
        *,
        to: str | None = None,
        context_id: str | None = None,
        task_id: str | None = None,
        references: Sequence[str] = (),
    ) -> Task | Message:
        """Sends a message and returns the immediate response, without running queued work."""
        parts = tuple(make_parts(content))
        message = Message(
            message_id=self._ids.new(),
            role=Role.USER,
            parts=parts,
            context_id=context_id,
            task_id=task_id,
            reference_task_ids=tuple(references),
        )
        return self.take(to or self._first, message)

    def take(self, agent: str, message: Message, principal: Principal = CLIENT) -> Task | Message:
        """Sends a message of ``principal`` to ``agent`` and returns the immediate response."""
        return tasks.send(
            self.service,
            principal,
            agent,
            SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=True)),
            "1.0",
        )

    def reply(self, task_id: str, *, to: str | None = None) -> Reply:
        """The current state of a task."""
        return Reply(tasks.get(self.service, CLIENT, to or self._first, task_id), self._errors.get(task_id))

    def tasks(self, context_id: str) -> list[TaskEntry]:
        """The tasks of a conversation, of all agents, newest first."""
        return self._table.list_page(CLIENT, context_id, None, 0, MOST_LISTED)[0]

    def cancel(self, task_id: str, *, to: str | None = None) -> Reply:
        """Cancels a task and runs the deployment until no work is left."""
        tasks.cancel(self.service, CLIENT, to or self._first, task_id)
        if not self._playing:
            self.settle()
        return self.reply(task_id, to=to)

    def later(self, ms: int, action: Callable[[], object]) -> None:
        """Calls ``action`` after ``ms`` of simulated time, while agents run."""
        self._planned.append((self.now + ms, action))

    def settle(self) -> None:
        """Runs the deployment until no work is left that needs no client."""
        while self._handle_next() or self._siblings.tell() or self._sweep_later():
            pass

    def wait(self, ms: int) -> None:
        """Moves the time forward by ``ms`` and does the work that is due in that time."""
        until = self.now + ms
        while self._handle_next(until) or self._siblings.tell():
            pass
        self.now = max(self.now, until)

    def _handle_next(self, until: int | None = None) -> bool:
        """Handles the next queue message at its time; False when there is none until ``until`` (ms)."""
        due = min((due for due, _ in self._queues.waiting), default=None)
        if due is None or (until is not None and due > until):
            return False
        self.now = max(self.now, due)
        message = self._queues.pop()
        if isinstance(message, WorkMessage):
            self._run(message.key)
        return True

    def _run(self, key: TaskKey) -> None:
        began = self.now
        ending = self._play(run(self._engine, key, lambda: self.run_ms - (self.now - began)))
        if ending not in {RunOutcome.LEASED, RunOutcome.NOTHING_TO_DO}:
            self.runs.append((key.task, began, self.now))

    def _sweep_later(self) -> bool:
        """Moves the time to when the next suspended task is due and sweeps; False when there is none."""
        due = (one.key for shard in range(SHARDS) for one in self._table.list_due(shard, self.now + LIFE.max_life_ms))
        heads = [
            snapshot.head for key in due if key and (snapshot := self._table.read_head(key)) and snapshot.head.parked
        ]
        if not heads:
            return False
        self.now = max(self.now, min(head.due_at or self.now for head in heads))
        return sweep(self._sweeper) > 0

    def _play(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine to its end in simulated time, also inside a running event loop."""

        def play() -> T:
            loop = SimulatedLoop(lambda: self.now, self._pass, self._threads | {threading.current_thread()})
            try:
                return loop.run_until_complete(work)
            finally:
                loop.close()

        self._playing += 1
        try:
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(play).result()
        finally:
            self._playing -= 1

    def _pass(self, ms: int) -> None:
        self.now += ms
        due = [action for at, action in self._planned if at <= self.now]
        self._planned = [(at, action) for at, action in self._planned if at > self.now]
        for action in due:
            action()


class _Clock:
    def __init__(self, harness: AgentTestHarness) -> None:
        self._harness = harness

    def now(self) -> int:
        return self._harness.now

    def sleep(self, seconds: float) -> None:
        self._harness.wait(int(seconds * 1000))


class _Siblings:
    """Implements ``ports.RemoteAgents`` with the harness's own agents; ``tell`` replaces their webhooks."""

    def __init__(self, harness: AgentTestHarness, agents: Mapping[str, Agent]) -> None:
        self._harness = harness
        self.agents = agents
        self._called: dict[tuple[str, str], TaskPushNotificationConfig] = {}
        self._told: dict[tuple[str, str], int] = {}

    def with_trace(self, trace: str) -> _Siblings:
        del trace
        return self

    def address(self, agent: str) -> str:
        return f"{BASE_URL}/{self._known(agent).id}"

    def card(self, agent: str) -> AgentCard:
        return card_of(self._known(agent), BASE_URL, {})

    def send(
        self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig
    ) -> Task | Message:
        try:
            answer = self._harness.take(agent, message, caller.principal)
        except A2AError as error:
            raise AgentCallFailed(f"The agent {agent!r} refused: {error}") from error
        if isinstance(answer, Task):
            self._called[agent, answer.id] = callback
        return answer

    def get(self, caller: Caller, agent: str, task_id: str) -> Task:
        return tasks.get(self._harness.service, caller.principal, agent, task_id)

    def cancel(self, caller: Caller, agent: str, task_id: str) -> None:
        with suppress(TaskNotCancelable):
            tasks.cancel(self._harness.service, caller.principal, agent, task_id)

    def tell(self) -> bool:
        """Sends callbacks for calls that have ended or ask a question; False when there is nothing new."""
        return any(self._tell(agent, task_id) for agent, task_id in self._called)

    def _tell(self, agent: str, task_id: str) -> bool:
        task = self.get(Caller(CLIENT), agent, task_id)
        if task.n == self._told.get((agent, task_id)) or task.status.state not in TERMINAL | INTERRUPTED:
            return False
        self._told[agent, task_id] = task.n
        callback = self._called[agent, task_id]
        incoming = CallbackRequest({TOKEN_HEADER: callback.token or ""}, b"{}")
        handle_callback(self._harness.service, MemoryCallbackVerifier(), callback.url.rpartition("/")[2], incoming)
        return True

    def _known(self, agent: str) -> Agent:
        if agent not in self.agents:
            raise AgentCallFailed(f"There is no agent {agent!r} in the directory.")
        return self.agents[agent]
