"""How a history of a deployment is recorded, and a deployment whose processes are threads that race.

Client, api, worker, notifier, relay and sweeper are the real code. They die and fail at the calls of their ports; a
queue message whose process died comes again, as from SQS. ``tests.histories.simulated`` is the other deployment.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

from a2a_serverless.domain.errors import A2AError, Overloaded
from a2a_serverless.domain.events import update_of
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.outcomes import OutboundError, Outcome
from a2a_serverless.engine.loop import play
from a2a_serverless.protocol.codecs import V1
from a2a_serverless.protocol.error_codes import code_of
from a2a_serverless.protocol.operations import Operation as Method
from a2a_serverless.protocol.v1 import Task
from a2a_serverless.services.operation_runner import StreamLimits, open_stream, run_operation
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.sweep import sweep
from a2a_serverless.store.keys import SHARDS
from a2a_serverless.store.stores import ContentStore
from a2a_serverless.testing.deployment import Adapters, InProcessDeployment
from a2a_serverless.testing.memory import VISIBILITY_S, MemoryBlobStore
from a2a_serverless.testing.simulated_deployment import Counter
from a2a_serverless.testing.simulated_loop import START
from tests.echo import agent_of
from tests.faults.plans import Broken, Frail
from tests.histories.clients import PLAY, UNKNOWN, Board, Client, Program, look_at_the_end
from tests.histories.history import History, Lost, Recorder, Refused, log_of
from tests.histories.virtual_time import VirtualTime
from tests.own_agents import OwnAgents
from tests.replay import programs
from tests.replay.programs import Effects, Player, make_program
from tests.simulated import Killed

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.queue_messages import QueueMessage
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.ports.system import Clock
    from a2a_serverless.services.requests import TaskService
    from a2a_serverless.testing.simulated_loop import SimulatedLoop

T = TypeVar("T")
Wrap: TypeAlias = "Callable[[Any, str], Any]"
ME: Final = Principal("tenant", "me")
AGENT: Final = "echo"
TICK_S: Final = 0.2
SWEEP_MS: Final = 60_000
STREAM_MS: Final = 8_000
WIDTH: Final = 10  # as many connections as a client of boto3 keeps
LONGEST_MS: Final = 3_600_000
STORM_MS: Final = 30_000
SLOW, FAILS, LOSES = 0.33, 0.85, 0.95


KINDS: Final = tuple(kind for kind in programs.KINDS if kind not in {"call", "calls", "retry", "stream"})
"""What programs do here: the history has no tasks but those of its clients, and no count of what earlier runs tried."""


async def count_aloud(task: TaskContext) -> str:
    """Emits as many numbers as the message says, and asks after the first one if it says so; or plays a program."""
    number, _, ask = task.text().partition(" ")
    if number == PLAY:
        program = make_program(Random(int(ask)), kinds=KINDS)  # noqa: S311 - a seed, not a secret
        return str(await Player(task, Effects()).play(program))
    for at in range(1, int(number) + 1):
        await task.step(f"step {at}", asyncio.sleep, 0.4)
        await task.emit("out", f"{at} ", append=True, last=at == int(number))
        if at == 1 and ask:
            await task.ask("Go on?")
        if at == 2:
            await task.report_progress("half")
    return "done"


@dataclass
class RandomFaults:
    """At each call a process dies, or the port fails, or its answer is lost; at most ``left`` times."""

    random: Random
    left: int = 8
    rate: float = 0.015
    met: list[str] = field(default_factory=list)

    def before(self, port: str, call: str) -> None:
        self._happen(f"{port}.{call}")

    def after(self, port: str, call: str) -> None:
        self._happen(f"{port}.{call} later")

    def _happen(self, where: str) -> None:
        if self.left > 0 and self.random.random() < self.rate:
            self.left -= 1
            self.met.append(where)
            raise self.random.choice([Killed, Killed, Broken])


class RecordingReceiver:
    """The webhooks' receiver. In the first half minute it sometimes fails, and sometimes its answer is lost."""

    def __init__(self, recorder: Recorder, random: Random, time: VirtualTime) -> None:
        self._recorder, self._random, self._time = recorder, random, time

    def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_ms: int) -> Outcome:
        del deadline_ms
        at, chance = self._recorder.tick(), self._random.random()
        if chance < SLOW:
            self._time.sleep(chance)
        is_stormy = self._time.now() < START + STORM_MS
        status = 500 if is_stormy and FAILS < chance < LOSES else 200
        self._recorder.received(at, url, headers, body, accepted=status == 200)
        if is_stormy and chance > LOSES:
            return Outcome(error=OutboundError.TIMEOUT)
        return Outcome(status=status, address="192.0.2.1", connected=True, request_sent=True)


class RacingDeployment(InProcessDeployment):
    """The deployment of one history, in threads. ``table`` makes its store, ``wrap`` wraps its ports."""

    death = Killed

    def __init__(self, random: Random, table: Callable[[Callable[[], int]], Any], wrap: Wrap) -> None:
        self.time = VirtualTime(WIDTH)
        self.recorder = Recorder(lambda: 0)
        self.faults = RandomFaults(random)
        self.busy, self.sleep = 0, self.time.sleep
        self._lock = Lock()
        adapters = Adapters(
            clock=self.time,
            ids=Counter(),
            sender=RecordingReceiver(self.recorder, random, self.time),
            remote_agents=OwnAgents(self),
            table=table,
            contents=ContentStore(MemoryBlobStore()),
            chance=random.random,
            wrap=lambda port, name: Frail(wrap(port, name), name, self.faults),
        )
        super().__init__([agent_of(count_aloud)], adapters, ownership=False)
        self.service = self.service._replace(off_loop=_at_once)

    def play(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Runs a coroutine in virtual time."""
        return play(work, self.make_loop())

    def make_loop(self) -> SimulatedLoop:
        """An event loop in virtual time."""
        return self.time.loop()

    def survives(self, work: Callable[[], object]) -> bool:
        """Does ``work``; False if it has to be done again."""
        try:
            work()
        except (Killed, Exception) as error:  # noqa: BLE001 - the platform invokes again
            self.note(error)
            return False
        return True

    def note(self, error: BaseException) -> None:
        """Records an error for which there was no fault. A store that many write to may be overloaded."""
        if not isinstance(error, Killed | Broken | Overloaded):
            self.recorder.history.errors.append(f"{type(error).__name__}: {error}")

    def dispatch(self) -> None:
        """Is the platform between the functions, until the clients are done and nothing is left to do."""
        sweep_at, end = self.time.now(), self.time.now() + LONGEST_MS
        while self.busy or self._is_due(self.time.now() + LONGEST_MS):
            self.relay_changes()
            while (message := self.queue.pop()) is not None:
                self.start_client(partial(self._handle, message))
            if self.time.now() >= sweep_at:
                sweep_at = self.time.now() + SWEEP_MS
                self.start_client(lambda: self.survives(lambda: sweep(self.sweeper)))
            if self.time.now() > end:
                self.recorder.history.settled = False
                return
            self.time.sleep(TICK_S if self.busy else 5.0)

    def _is_due(self, until: int) -> bool:
        if self.queue.waiting or self.relay_changes():
            return True
        return any(True for shard in range(SHARDS) for _ in self.table.list_due(shard, until))

    def _handle(self, message: QueueMessage) -> None:
        if not self.survives(lambda: self.answer(message)):
            self.queue.enqueue(message, VISIBILITY_S)

    def settle(self, look: Callable[[], None]) -> None:
        """Runs until nothing is left to do, and looks at what is there then."""
        for last in (lambda: None, look):
            self.start_client(last)
            self.time.spawn(self.dispatch)
            self.time.run()
            self.faults.left = 0
        loaded = {key.task: self.table.read_log(key) for key, _ in self.table.feed}
        self.recorder.history.logs = {task: log_of(found[1]) for task, found in loaded.items() if found}

    def start_client(self, work: Callable[[], object]) -> None:
        """Starts a thread, for which ``settle`` waits."""

        def counted() -> None:
            try:
                work()
            finally:
                self._count(-1)

        self._count(1)
        self.time.spawn(counted)

    def _count(self, by: int) -> None:
        with self._lock:
            self.busy += by


class Racing(Protocol):
    """A deployment for clients that race. ``note`` is told of each error; ``death`` ends a process."""

    service: TaskService
    agents: dict[str, Agent]
    clock: Clock
    recorder: Recorder
    death: type[BaseException]
    sleep: Callable[[float], None]

    def make_loop(self) -> SimulatedLoop: ...

    def note(self, error: BaseException) -> None: ...

    def start_client(self, work: Callable[[], object]) -> None: ...

    def settle(self, look: Callable[[], None]) -> None: ...


@dataclass(frozen=True)
class InProcess:
    """A ``Transport`` to the deployment's use cases, as the edge calls them."""

    deployment: Racing

    def call(self, method: str, params: Mapping[str, Any]) -> Any:
        operation = Method(method)
        one = self.deployment
        with _as_client(one):
            request, agent = V1.read(operation, params), one.agents[AGENT]
            made: Any = run_operation(operation, one.service, RequestContext(ME, AGENT, "1.0"), agent, request)
            return json.loads(V1.answer(operation, made))

    def stream(self, method: str, params: Mapping[str, Any], after: int | None) -> Iterator[tuple[int, Any]]:
        one = self.deployment
        with _as_client(one):
            until = one.clock.now() + STREAM_MS
            request, agent = V1.read(Method(method), params), one.agents[AGENT]
            limits = StreamLimits(after, until, V1.subscription_ends)
            context = RequestContext(ME, AGENT, "1.0")
            opened = open_stream(Method(method), one.service, context, agent, request, limits)
        loop = one.make_loop()
        try:
            yield from self._shown(loop, opened)
        finally:
            loop.leave()

    def _shown(self, loop: SimulatedLoop, opened: Any) -> Iterator[tuple[int, Any]]:
        while True:
            with _as_client(self.deployment):
                item: Any = loop.run_until_complete(anext(opened.items, OVER))
            if item is OVER:
                return
            if item is not None:
                shown = item.content
                if not isinstance(shown, Task):
                    shown = update_of(shown, opened.task_id, opened.context_id)
                yield item.n, json.loads(V1.stream_item(shown))


OVER: Final = object()


@contextmanager
def _as_client(deployment: Racing) -> Iterator[None]:
    """Raises for what fails inside what a client gets to see of it."""
    try:
        yield
    except (deployment.death, Exception) as error:  # noqa: BLE001 - as the edge answers
        code = code_of(error).rpc if isinstance(error, A2AError) else 0
        if code and code not in UNKNOWN:
            raise Refused(code) from None
        deployment.note(error)
        raise Lost from None


async def _at_once(call: Callable[[], T]) -> T:
    return call()


def record_history(deployment: Racing, random: Random, clients: int, actions: int) -> History:
    """Runs clients against a deployment until nothing is left to do, and looks at what is there."""
    client, board = Client(InProcess(deployment), deployment.recorder), Board()
    for number in range(clients):
        program = Program(
            name=f"c{number}",
            client=client,
            board=board,
            random=Random(random.random()),  # noqa: S311 - a seed, not a secret
            sleep=deployment.sleep,
            hook="https://trusted.example.com/{}".format,
            start=deployment.start_client,
            actions=actions,
        )
        deployment.start_client(program.run)
    deployment.settle(lambda: look_at_the_end(client))
    return deployment.recorder.history
