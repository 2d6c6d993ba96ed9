"""Runs agents in unit tests: the engine of a deployment, with an in-memory store, simulated time and no AWS.

    harness = AgentTestHarness(hello)
    reply = harness.send("Ada")
    assert reply.said == "Hello, Ada!"

Simulated time moves only when everything waits, so a test of an agent that sleeps for an hour takes no time. It does
not move while threads of the agent or its libraries are running, nor while the agent waits for real input: for a
server, a pipe or another process. If nothing can end what the agent waits for, ``Deadlock`` is raised.

``SimulatedDeployment`` adds the time to ``testing.deployment``: the project's own tests use it, too.
"""

from __future__ import annotations

import asyncio
import selectors
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, ParamSpec, TypeVar, TypeVarTuple, Unpack, cast
from weakref import WeakSet

from a2a_serverless.domain.agent import WEBHOOK_EXTENSIONS, Agent
from a2a_serverless.domain.agent_errors import AgentCallFailed
from a2a_serverless.domain.errors import (
    A2AError,
    InvalidSignature,
    Overloaded,
    TaskNotCancelable,
    TaskNotFound,
    TooManyRequests,
)
from a2a_serverless.domain.model import MINUTE_MS, Json, Principal, TaskKey
from a2a_serverless.domain.outcomes import Outcome
from a2a_serverless.domain.outside_events import EVENT_LIMIT
from a2a_serverless.domain.queue_messages import TickMessage
from a2a_serverless.engine.artifacts import make_parts
from a2a_serverless.engine.engine import RunOutcome
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.engine.loop import ENGINE_TASK, AgentThreads, RunLoop, play
from a2a_serverless.engine.task_files import TaskFiles
from a2a_serverless.ports.agents import AgentUnavailable
from a2a_serverless.protocol.additions import RetryRequest
from a2a_serverless.protocol.ai_catalog import tags_of
from a2a_serverless.protocol.v1 import (
    Artifact,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a_serverless.services import tasks
from a2a_serverless.services.callbacks import find_event_address, store_event
from a2a_serverless.services.publish import card_of
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.retries import retry_task
from a2a_serverless.services.sweep import sweep
from a2a_serverless.services.ticks import handle_tick, message_id_of
from a2a_serverless.store.keys import SHARDS
from a2a_serverless.testing.deployment import (
    LIFE,
    VISIBILITY_S,
    Adapters,
    InProcessDeployment,
    format_failure,
    format_traceback,
)
from a2a_serverless.testing.schedules import check_schedules, schedules_of, ticks
from a2a_serverless.testing.waiting import (
    WaitingCode,
    is_agent_asleep,
    open_io,
    own_line,
    running_threads,
    thread_frames,
    waiting_text,
    waits,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Coroutine, Mapping, Sequence
    from contextvars import Context
    from typing import Self

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.task_context import Content
    from a2a_serverless.domain.waits import OpenWait
    from a2a_serverless.protocol.v1_card import AgentCard
    from a2a_serverless.store.items import TaskEntry

T = TypeVar("T")
P = ParamSpec("P")
A = TypeVarTuple("A")

START: Final = 1_790_000_000_000
CLIENT: Final = Principal("tenant", "client")
MOST_LISTED: Final = 1000
THREADS_S: Final = 30.0
IO_S: Final = 60.0
SLICE_S: Final = 0.05
STUCK_MS: Final = 60_000
BLOCKED_S: Final = 3.0
LOOK_S: Final = 0.2
POLL_S: Final = 0.002
LOOKS: Final = 10
"""A thread that waits at so many looks in a row is not running: it may wait for this loop."""
PACKAGE: Final = str(Path(__file__).parents[1])


class Deadlock(RuntimeError):
    """The agent waits for something that does not come. The text says which code waits, and for what."""


class SimulatedLoop(RunLoop):
    """An event loop with simulated time: ``now`` returns it (ms), and ``wait`` moves it forward (by ms).

    Work for ``asyncio.to_thread`` is done while this loop waits for it, because other threads have no simulated time.
    While a thread that is not in ``known`` is running, no time passes, for at most ``THREADS_S`` real seconds. A thread
    that waits for a lock or a queue, without a time limit, is not running: it may wait for this loop.

    While a connection, a pipe or a process of the agent is open, no time passes until something comes from there. If
    something of the agent sleeps beside it (``asyncio.sleep``) or ``has_plans()``, simulated time passes as real time
    does. If nothing has come for ``io_s`` real seconds, time passes beside it, or Deadlock is raised if nothing
    sleeps. With ``io_s=0`` open connections do not count.
    """

    def __init__(
        self,
        now: Callable[[], int],
        wait: Callable[[int], None],
        known: Container[threading.Thread] | None = None,
        *,
        io_s: float = IO_S,
        has_plans: Callable[[], bool] | None = None,
    ) -> None:
        self._now = now
        self._selector_of_time = _SimulatedSelector(
            wait, frozenset(threading.enumerate()) if known is None else known, io_s, has_plans
        )
        super().__init__(self._selector_of_time)
        self._selector_of_time.own = frozenset(key.fd for key in self._selector_of_time.get_map().values())
        self.set_default_executor(_AtOnce())

    def time(self) -> float:
        return (self._now() - START) / 1000

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[A]], object],
        *args: *A,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = super().call_at(when, callback, *args, context=context)
        task = asyncio.current_task(self)
        if task is None or task.get_name() != ENGINE_TASK:
            self._selector_of_time.agent_timers.add(handle)
        return handle

    def leave(self) -> None:
        self._selector_of_time.is_leaving = True
        super().leave()


class _SimulatedSelector(selectors.SelectSelector):
    """A selector that moves simulated time instead of waiting, once no other thread is running and no input awaited.

    ``agent_timers`` are the timers of the agent's code, ``own`` the descriptors by which threads wake the loop.
    """

    def __init__(
        self,
        wait: Callable[[int], None],
        known: Container[threading.Thread],
        io_s: float,
        has_plans: Callable[[], bool] | None,
    ) -> None:
        super().__init__()
        self._wait, self._known, self._io_s, self._has_plans = wait, known, io_s, has_plans
        self._given_up: set[tuple[int | None, int, int]] = set()
        self._quiet_s, self._was_paced, self._stuck_ms = 0.0, False, 0
        self.agent_timers = WeakSet[asyncio.TimerHandle]()
        self.own = frozenset[int]()
        self.is_leaving = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout != 0:
            ready = self._from_threads() or self._from_io(timeout)
            if not ready:
                self._pass_time(timeout)
        self._quiet_s = 0.0 if ready else self._quiet_s
        return ready

    def _pass_time(self, timeout: float | None) -> None:
        if timeout is None:
            self._raise_deadlock("Everything waits, and nothing is scheduled.")
        ms = int(timeout * 1000) + 1
        self._stuck_ms = self._stuck_ms + ms if self._is_stuck() else 0
        if self._stuck_ms > STUCK_MS:
            self._raise_deadlock(
                "The agent waits for something that nothing in this test will do: no timer, no thread, no open"
                " connection and no action of harness.at. Outside of steps an agent waits with the methods of its task;"
                " a plain function that blocks belongs into a step, which runs it in a thread."
            )
        self._wait(ms)

    def _raise_deadlock(self, why: str) -> NoReturn:
        self.is_leaving = True
        raise Deadlock(f"{why}\n{waiting_text(self._threads())}")

    def _is_stuck(self) -> bool:
        """Whether nothing but the engine's own looks will happen."""
        if self._has_plans is None or self.is_leaving or self._has_plans() or self._open_io():
            return False
        if any(not timer.cancelled() for timer in self.agent_timers):
            return False
        work = cast("RunLoop", asyncio.get_running_loop()).work
        return work is not None and not (work.is_stopping or work.is_waiting)

    def _from_threads(self) -> list[tuple[selectors.SelectorKey, int]]:
        """Waits for events from running threads; empty if none runs, or after ``THREADS_S`` seconds without one."""
        until = time.monotonic() + THREADS_S
        while others := self._threads():
            at_work = running_threads(others) - self._given_up
            ready = super().select(POLL_S)
            if ready or not at_work:
                return ready
            if time.monotonic() > until:
                self._given_up |= at_work
        return []

    def _from_io(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        """Waits for real input while any is awaited. Raises Deadlock after ``io_s`` seconds without any."""
        if not self._open_io():
            self._quiet_s = 0.0
            return []
        is_paced = timeout is not None and self._is_paced()
        if is_paced != self._was_paced:
            self._quiet_s, self._was_paced = 0.0, is_paced
        passed_s = 0.0
        while self._quiet_s < self._io_s and (not is_paced or passed_s < (timeout or 0)) and self._open_io():
            began = time.monotonic()
            ready = super().select(SLICE_S)
            elapsed_s = time.monotonic() - began
            if ready and is_paced:
                self._wait(int((passed_s + elapsed_s) * 1000))
            if ready:
                return ready
            passed_s, self._quiet_s = passed_s + elapsed_s, self._quiet_s + elapsed_s
        if self._io_s and not is_paced and self._quiet_s >= self._io_s and (sources := self._open_io()):
            self._raise_deadlock(
                f"Nothing has come for {self._io_s:g} real seconds from {' and '.join(sources)}. With"
                " AgentTestHarness(..., io_s=300) the clock stands still for longer, with io_s=0 simulated time also"
                " passes while a connection is open, so that a client's own time limit ends the wait."
            )
        return []

    def _is_paced(self) -> bool:
        """Whether something shall happen at a time, beside the input that is awaited."""
        return self.is_leaving or bool(self._has_plans and self._has_plans()) or is_agent_asleep()

    def _open_io(self) -> list[str]:
        keys, threads = [key for key in self.get_map().values() if key.fd not in self.own], self._threads()
        return open_io(keys, threads) if keys or threads else []

    def _threads(self) -> list[threading.Thread]:
        """The other threads of the agent and its libraries."""
        return [thread for thread in threading.enumerate() if self._is_foreign(thread)]

    def _is_foreign(self, thread: threading.Thread) -> bool:
        return thread not in self._known and thread is not threading.current_thread()


class _AtOnce(ThreadPoolExecutor):
    """Returns when the work is done, waits without a time limit, or has run for ``THREADS_S`` real seconds."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        thread, before = AgentThreads(), threading.enumerate()
        future = thread.submit(fn, *args, **kwargs)
        until, looks = time.monotonic() + THREADS_S, 0
        while not wait([future], timeout=POLL_S).done and looks < LOOKS and time.monotonic() < until:
            at_work = running_threads([candidate for candidate in threading.enumerate() if candidate not in before])
            looks = 0 if at_work else looks + 1
        thread.shutdown()
        return future


class Counter:
    """Makes ids in order, so that test runs are repeatable."""

    def __init__(self) -> None:
        self.last = 0

    def new(self) -> str:
        self.last += 1
        return f"id-{self.last:04d}"

    def secret(self) -> str:
        return f"secret-{self.new()}"


class SimulatedClock:
    """A clock with the time of a deployment; sleeping lets the deployment go on."""

    def __init__(self, deployment: SimulatedDeployment) -> None:
        self._deployment = deployment

    def now(self) -> int:
        return self._deployment.now

    def sleep(self, seconds: float) -> None:
        self._deployment.wait(int(seconds * 1000))


class SimulatedDeployment(InProcessDeployment):
    """A deployment in simulated time. Time moves only when nothing is left to do, to the next thing that is due.

    ``busy`` is whether an agent runs. ``loop`` makes the event loops.
    """

    now = START
    busy = False
    loop = SimulatedLoop

    def __init__(self, agents: Sequence[Agent], adapters: Adapters, *, io_s: float = IO_S, **options: Any) -> None:  # noqa: ANN401
        self.io_s = io_s
        self.plans: list[tuple[int, Callable[[], object]]] = []
        self._threads = frozenset(threading.enumerate())
        super().__init__(agents, adapters, **options)

    def wait(self, ms: int) -> None:
        """Moves the time forward by ``ms`` and does the work that is due in that time."""
        until = self.now + ms
        self._run_until(until)
        self.now = max(self.now, until)

    def settle(self, until_ms: int = LIFE.max_life_ms) -> None:
        """Runs until no work is left that needs no client, for at most ``until_ms``."""
        self._run_until(self.now + until_ms)

    def play(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in simulated time."""
        known = self._threads | {threading.current_thread()}
        loop = self.loop(lambda: self.now, self._pass, known, io_s=self.io_s, has_plans=lambda: bool(self.plans))
        busy, self.busy = self.busy, True
        try:
            return play(work, loop)
        finally:
            self.busy = busy

    def step(self) -> bool:
        """Does one due thing: a batch of the table's stream, a sweep or a message. False if nothing is due."""
        return self.relay_changes() or self.sweep_due() or self._handle_message()

    def _run_until(self, until: int) -> None:
        while self.step() or self._move_time(until):
            pass

    def _move_time(self, until: int) -> bool:
        """Moves the time to the next due thing; False if nothing is due before ``until``."""
        soonest = min(self.due_times(), default=until + 1)
        soonest = min(soonest, self.next_sweep(min(soonest, until)))
        is_due = self.now < soonest <= until
        self.now = soonest if is_due else self.now
        return is_due

    def due_times(self) -> list[int]:
        """The times of due things, besides sweeps."""
        return [at for at, _ in self.queue.waiting]

    def next_sweep(self, until: int) -> int:
        """The next due time of an unfinished task, other than its deadline; after ``until`` if there is none."""
        due = (item.key for shard in range(SHARDS) for item in self.table.list_due(shard, until))
        heads = [snapshot.head for key in due if key and (snapshot := self.table.read_head(key))]
        times = [head.due_at or self.now for head in heads if not head.is_terminal and head.due_at != head.deadline]
        return min(times, default=until + 1)

    def sweep_due(self) -> bool:
        """Sweeps if it is time to; False if not, or if the sweep had nothing to do."""
        return self.next_sweep(self.now) <= self.now and sweep(self.sweeper) > 0

    def _handle_message(self) -> bool:
        message = self.queue.pop()
        if message is None:
            return False
        if not self.survives(lambda: self.answer(message)):
            self.queue.enqueue(message, VISIBILITY_S)
        return True

    def _do_plan(self) -> bool:
        """Does one planned action that is due; a second later again if its process dies."""
        due = next((plan for plan in self.plans if plan[0] <= self.now), None)
        if due is None:
            return False
        self.plans.remove(due)
        if not self.survives(due[1]):
            self.plans.append((self.now + 1000, due[1]))
        return True

    def _pass(self, ms: int) -> None:
        """Lets time pass for an agent that waits: only planned actions happen."""
        self.now += ms
        while self._do_plan():
            pass


class OwnAgents:
    """Implements ``ports.RemoteAgents`` with the deployment's own agents."""

    def __init__(self, deployment: InProcessDeployment) -> None:
        self.deployment = deployment

    def with_trace(self, trace: str) -> Self:
        del trace
        return self

    def address(self, agent: str) -> str:
        return f"{self.deployment.post.issuer}/{self.find(agent).id}"

    def card(self, agent: str) -> AgentCard:
        return card_of(self.find(agent), self.deployment.post.issuer, {})

    def tags(self) -> dict[str, tuple[str, ...]]:
        return {name: tags_of(self.card(name).skills) for name in self.deployment.engine.agents}

    def send(
        self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig
    ) -> Task | Message:
        self.find(agent)
        configuration = SendMessageConfiguration(return_immediately=True, task_push_notification_config=callback)
        request = SendMessageRequest(message=message, configuration=configuration)
        states = WEBHOOK_EXTENSIONS["states"].uri
        context = RequestContext(caller.principal, agent, "1.0", extensions=(states,), webhook_events="states")
        try:
            return tasks.send(self.deployment.service, context, request)
        except (Overloaded, TooManyRequests) as error:
            text = f"The agent {agent!r} cannot answer now: {error}"
            raise AgentUnavailable(text, error.retry_after_s) from error
        except A2AError as error:
            raise AgentCallFailed(f"The agent {agent!r} refused: {error}") from error

    def has_push(self, agent: str) -> bool:
        del agent
        return True

    def get(self, caller: Caller, agent: str, task_id: str) -> Task:
        return tasks.get(self.deployment.service, RequestContext(caller.principal, agent, "1.0"), task_id)

    def cancel(self, caller: Caller, agent: str, task_id: str) -> None:
        with suppress(TaskNotCancelable):
            tasks.cancel(self.deployment.service, RequestContext(caller.principal, agent, "1.0"), task_id)

    def find(self, agent: str) -> Agent:
        """The agent; raises AgentCallFailed if there is none with this id."""
        if agent not in self.deployment.engine.agents:
            raise AgentCallFailed(f"There is no agent {agent!r} in the directory.")
        return self.deployment.engine.agents[agent]


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
        state, text, error = self._reply.state, self._reply.said, self._reply.error
        error_text = f" The agent raised {type(error).__name__}: {error}" if error else ""
        there = ", ".join(map(repr, self)) or "none"
        raise NoArtifact(
            f"no artifact {name!r} (there is: {there}); the task is {state}: {text}{error_text}"
        ) from error


class AgentTestHarness(SimulatedDeployment):
    """A deployment of ``agents`` in memory. Messages without ``to`` go to the first agent.

    ``files`` are the files on the simulated web, by URL. ``now`` is the simulated time (ms). ``run_ms`` is the
    platform's time limit for one run. ``runs`` lists the runs as (task id, start ms, end ms). There is one worker, so
    runs follow one another.
    """

    def __init__(self, *agents: Agent, files: Mapping[str, bytes] | None = None, io_s: float = IO_S) -> None:
        self.runs: list[tuple[str, int, int]] = []
        self._errors: dict[str, BaseException] = {}
        self._first = agents[0].id
        check_schedules(agents)
        web = files or {}
        clock = SimulatedClock(self)
        adapters = Adapters(clock=clock, ids=Counter(), sender=_Callbacks(self), remote_agents=OwnAgents(self))
        super().__init__(agents, adapters, io_s=io_s)
        self.engine = replace(
            self.engine,
            files=TaskFiles(None, lambda url: Outcome(status=200 if url in web else 404, body=web.get(url, b""))),
            on_error=self._note_error,
        )
        inline_runner = EngineInlineRunner(self.engine, self.play)
        self.service = self.service._replace(blocking_ms=0, inline_runner=inline_runner.for_agent)

    def deploy(self, *agents: Agent) -> None:
        """Replaces agents by their new versions, as a deployment does: the next run of a task uses the new code."""
        self.agents.update({agent.id: agent for agent in agents})

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
        parts = tuple(make_parts("The message", content))
        message = Message(
            message_id=self.ids.new(),
            role=Role.USER,
            parts=parts,
            context_id=context_id,
            task_id=task_id,
            reference_task_ids=tuple(references),
        )
        return self.take(to or self._first, message)

    def take(self, agent: str, message: Message, principal: Principal = CLIENT) -> Task | Message:
        """Sends a message of ``principal`` to ``agent`` and returns the immediate response."""
        configuration = SendMessageConfiguration(return_immediately=True)
        request = SendMessageRequest(message=message, configuration=configuration)
        by_context = agent in self.agents and self.agents[agent].answers_by_context
        context = RequestContext(principal, agent, "1.0", answers_by_context=by_context)
        return tasks.send(self.service, context, request)

    def reply(self, task_id: str, *, to: str | None = None) -> Reply:
        """The current state of a task."""
        return Reply(
            tasks.get(self.service, RequestContext(CLIENT, to or self._first, "1.0"), task_id),
            self._errors.get(task_id),
        )

    def waits(self, task_id: str) -> tuple[OpenWait, ...]:
        """Why a task is suspended: its first twenty open waits, in the order in which its code came to them."""
        snapshot = self.table.read_head(CLIENT.key(task_id))
        return snapshot.head.open_waits.waits if snapshot else ()

    def tasks(self, context_id: str | None = None) -> list[TaskEntry]:
        """The tasks of a conversation, or all tasks, of all agents, newest first."""
        return list(self.table.list_page(CLIENT, context_id, None, 0, MOST_LISTED)[0])

    def retry(self, task_id: str, *, from_step: str | None = None, to: str | None = None) -> Reply:
        """Retries a failed task from ``from_step``, or from the step that failed, and runs until no work is left.

        Raises A2AError if the task has not failed, or has no such step.
        """
        agent = self.agents[to or self._first]
        request = RetryRequest(request_id=self.ids.new(), from_step=from_step)
        task = retry_task(self.service, RequestContext(CLIENT, agent.id, "1.0"), agent, task_id, request)
        self.settle()
        return self.reply(task.id, to=to)

    def cancel(self, task_id: str, *, to: str | None = None) -> Reply:
        """Cancels a task and runs the deployment until no work is left."""
        tasks.cancel(self.service, RequestContext(CLIENT, to or self._first, "1.0"), task_id)
        if not self.busy:
            self.settle()
        return self.reply(task_id, to=to)

    def _note_error(self, key: TaskKey, error: BaseException, reference: str) -> None:
        """Stores an agent's error, and prints its traceback: pytest shows it if the test fails."""
        self._errors[key.task] = error
        traceback = format_traceback(error, lambda file: not file.startswith(PACKAGE))
        sys.stderr.write(format_failure(key.task, reference, traceback))

    def settle(self, until_ms: int | None = None) -> None:
        """Runs until no work is left that needs no client. With ``until_ms`` time passes, and schedules start tasks."""
        if until_ms is None:
            super().settle()
            return
        until = self.now + until_ms
        for tick in ticks(schedules_of(self.agents.values()), self.now, until):
            self._run_until(tick.at)
            self.now = max(self.now, tick.at)
            self.queue.enqueue(_of_client(tick))
        self._run_until(until)
        self.now = max(self.now, until)

    def tick(self, schedule: str, *, to: str | None = None) -> Reply | None:
        """Plays that a schedule is due at the next minute, and runs the deployment until no work is left.

        Returns None if no task was started, because that of an earlier tick has not ended.
        """
        agent = to or self._first
        due_schedule = next(one for one in self.agents[agent].schedules if one.name == schedule)
        self.now += MINUTE_MS - self.now % MINUTE_MS
        tick = _of_client(TickMessage(due_schedule.key(agent), self.now))
        handle_tick(self.engine, LIFE, tick)
        record = self.table.find_idempotency(tick.key, agent, message_id_of(tick), "tick")
        self.settle()
        return self.reply(record.task, to=agent) if record else None

    def send_event(self, url: str, body: bytes | str = b"", headers: Mapping[str, str] | None = None) -> int:
        """Sends a body to the address of a task's callback, as another system does; returns the HTTP status."""
        content = body.encode() if isinstance(body, str) else body
        header_map = {name.lower(): value for name, value in (headers or {}).items()}
        try:
            address = find_event_address(self.service, url.rpartition("/")[2])
            if len(content) > EVENT_LIMIT:
                return 413
            return 200 if store_event(self.service, address, header_map, content) else 409
        except TaskNotFound:
            return 404
        except InvalidSignature:
            return 401
        except TooManyRequests:
            return 429

    def at(self, at: int, action: Callable[[], object]) -> None:
        """Calls ``action`` at the simulated time ``at`` (ms, as ``now``), while agents run and while they wait."""
        self.plans.append((at, action))

    def step(self) -> bool:
        """As of a deployment, or does one planned action."""
        return super().step() or self._do_plan()

    def due_times(self) -> list[int]:
        """As of a deployment, with the times of the planned actions."""
        return [*super().due_times(), *(at for at, _ in self.plans)]

    def run(self, key: TaskKey) -> object:
        """Runs a task as a worker does, and notes it in ``runs``."""
        start = self.now
        ending = super().run(key)
        if ending not in {RunOutcome.LEASED, RunOutcome.NOTHING_TO_DO}:
            self.runs.append((key.task, start, self.now))
        return ending

    def play(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in simulated time, also inside a running event loop. Raises Deadlock."""
        self._threads |= {threading.current_thread()}  # it waits here, and does not work
        result = Future[T]()
        thread = threading.Thread(target=_resolve, args=(result, partial(super().play, work)), daemon=True)
        thread.start()
        line, at = None, time.monotonic()
        while not wait([result], timeout=LOOK_S).done:
            line, earlier = _blocked_line(thread, self._threads), line
            at = at if line and line == earlier else time.monotonic()
            if line and time.monotonic() - at > BLOCKED_S:
                raise Deadlock(
                    "The agent blocks its event loop: it waits there for something that no other thread will do. Put a"
                    f" plain function into a step, which runs it in a thread, or await what it waits for.\n  {line}"
                )
        return result.result()


def _resolve(future: Future[T], work: Callable[[], T]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised in the thread that waits for it
        future.set_exception(error)


def _blocked_line(thread: threading.Thread, known_threads: Container[threading.Thread]) -> WaitingCode | None:
    """The line at which a thread waits for a lock, in a callback of its event loop; None if any other thread runs."""
    frames = thread_frames(sys._current_frames().get(thread.ident or 0))  # noqa: SLF001 - documented
    codes = {frame.f_code for frame in frames}
    if not frames or codes & {_SimulatedSelector.select.__code__, _AtOnce.submit.__code__} or not waits(frames[-1]):
        return None
    others = [other for other in threading.enumerate() if other not in known_threads and other is not thread]
    return None if running_threads(others) or open_io([], others) else own_line(frames)


def _of_client(tick: TickMessage) -> TickMessage:
    """The tick, with tasks that belong to the harness's client."""
    return tick._replace(key=CLIENT.key(tick.key.task))


class _Callbacks:
    """Implements ``ports.Sender`` for the webhooks of agents that call each other."""

    def __init__(self, deployment: InProcessDeployment) -> None:
        self._deployment = deployment

    def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_ms: int) -> Outcome:
        del deadline_ms
        return self._deployment.called_back(url, headers, body)
