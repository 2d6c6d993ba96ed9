"""A whole deployment in one process and simulated time: the real use cases over the in-memory adapters.

Its functions are instances of ``tests.simulated``. Faults are injected at the ports.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from a2a_serverless.domain.agent_errors import AgentCallFailed
from a2a_serverless.domain.model import JsonObject, Principal
from a2a_serverless.domain.outcomes import Outcome
from a2a_serverless.engine.run import run
from a2a_serverless.ports.agents import AgentUnavailable
from a2a_serverless.protocol.v1 import (
    AuthenticationInfo,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
)
from a2a_serverless.services.deliver import deliver
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.sweep import sweep
from a2a_serverless.services.tasks import cancel, get, send
from a2a_serverless.store.keys import SHARDS
from a2a_serverless.store.stores import ContentStore
from a2a_serverless.testing.deployment import Adapters
from a2a_serverless.testing.memory import MemoryBlobStore, MemoryStores
from a2a_serverless.testing.simulated_deployment import Counter
from a2a_serverless.testing.simulated_loop import START
from tests.faults.plans import Broken, Faults, Frail, NoFaults
from tests.own_agents import OwnAgents
from tests.protocol.schema import assert_notification
from tests.simulated import InstanceClock, Instances, Killed, Scheduler, SharedQueues, next_due

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Self

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.outbound import EgressPolicy
    from a2a_serverless.domain.queue_messages import DeliveryMessage
    from a2a_serverless.engine.engine import RunOutcome
    from a2a_serverless.ports.system import Clock, Queues
    from a2a_serverless.protocol.versions import ProtocolVersion
    from a2a_serverless.services.deliver import DeliveryOutcome

T = TypeVar("T")
ME = Principal("tenant", "me")
HOOK = "https://hooks.example.com/a2a"
MINUTE_MS = 60_000
HOUR_MS = 3_600_000


def webhook(url: str = HOOK, *, scheme: str | None = None, credentials: str | None = None, **fields: Any) -> Any:
    """A webhook as a client wants it; ``fields`` are those of TaskPushNotificationConfig."""
    said = None if scheme is credentials is None else AuthenticationInfo(scheme=scheme or "", credentials=credentials)
    return TaskPushNotificationConfig(url=url, authentication=said, **fields)


def configured(request: SendMessageRequest, **changes: Any) -> SendMessageRequest:
    """The request with changes in its configuration."""
    configuration = request.configuration.model_copy(update=changes)
    return request.model_copy(update={"configuration": configuration})


@dataclass
class Received:
    """A notification as it arrived."""

    at: int
    notification_id: str
    n: int
    config_id: str
    body: JsonObject
    headers: Mapping[str, str]


def accepting(_: int) -> Outcome:
    return Outcome(status=200, address="192.0.2.1", connected=True, request_sent=True)


def echoing(challenge: str) -> Outcome:
    return Outcome(status=200, body=json.dumps({"challenge": challenge}).encode())


def not_found(url: str, headers: Mapping[str, str], body: bytes) -> Outcome:  # noqa: ARG001 - the arguments are not needed
    return Outcome(status=404, connected=True, request_sent=True)


@dataclass
class Receiver:
    """The client's webhook receiver: answers challenges, keeps notifications, and checks that they follow the protocol.

    ``answers`` returns the answer to the n-th notification, from 0; ``takes`` is how long each answer takes, in ms.
    """

    clock: Clock
    answers: Callable[[int], Outcome] = accepting
    echoes: Callable[[str], Outcome] = echoing
    takes: int = 0
    calls_back: Callable[[str, Mapping[str, str], bytes], Outcome] = not_found
    tried: list[Received] = field(default_factory=list)
    posts: list[Received] = field(default_factory=list)
    challenges: list[Mapping[str, str]] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)
    crowded: list[str] = field(default_factory=list)

    def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_ms: int) -> Outcome:
        if url.startswith("https://api.example.com/callbacks/"):
            return self._answered(url, self.calls_back(url, headers, body))
        claims = json.loads(headers.get("X-A2A-Notification-JWT") or headers["Authorization"].removeprefix("Bearer "))
        assert claims["request_body_sha256"] == sha256(body).hexdigest()
        assert claims["aud"] == url
        assert deadline_ms >= self.takes
        content: JsonObject = json.loads(body)
        if claims["typ"] == "a2a-challenge+jwt":
            self.challenges.append(headers)
            return self._answered(url, self.echoes(str(content["challenge"])))
        assert_notification(headers["A2A-Version"], body)
        got = Received(
            self.clock.now(), claims["notificationId"], claims["eventNumber"], claims["configId"], content, headers
        )
        self.tried.append(got)
        outcome = self._answered(url, self.answers(len(self.tried) - 1))
        if outcome.accepted:
            self.posts.append(got)
        return outcome

    def effects(self, config_id: str | None = None) -> list[Received]:
        """Returns the notifications in the order of their first arrival, without duplicates."""
        first = {got.notification_id: got for got in reversed(self.posts)}
        return [got for got in reversed(first.values()) if config_id in {None, got.config_id}]

    def _answered(self, url: str, outcome: Outcome) -> Outcome:
        """Returns the answer after ``takes``. Records two concurrent requests to one URL in ``crowded``."""
        if url in self.busy:
            self.crowded.append(url)
        self.busy.add(url)
        if self.takes:
            self.clock.sleep(self.takes / 1000)
        self.busy.discard(url)
        return outcome


@contextmanager
def _over_http() -> Iterator[None]:
    """A store that fails in the api of the called agent is an answer with the status 500."""
    try:
        yield
    except Broken:
        raise AgentUnavailable("HTTP 500") from None


class Siblings(OwnAgents):
    """The agents of the same world as remote agents; their callbacks reach the calling task without delay."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.world = world
        self.replies: dict[str, str] = {}
        self.absent: set[str] = set()
        self.traces: list[str] = []

    def for_run(self, trace: str, goes_on: Callable[[], bool]) -> Self:
        del goes_on
        self.traces.append(trace)
        return self

    def send(
        self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig
    ) -> Task | Message:
        if agent not in self.replies:
            with _over_http():
                return super().send(caller, agent, message, callback)
        self.find(agent)
        parts = (Part(text=self.replies[agent]),)
        return Message(message_id="reply", role=Role.AGENT, parts=parts, context_id=message.context_id)

    def get(self, caller: Caller, agent: str, task_id: str) -> Task:
        with _over_http():
            return super().get(caller, agent, task_id)

    def cancel(self, caller: Caller, agent: str, task_id: str) -> None:
        with _over_http():
            super().cancel(caller, agent, task_id)

    def find(self, agent: str) -> Agent:
        if agent in self.absent or agent not in self.world.engine.agents:
            raise AgentCallFailed(f"no agent {agent}")
        return super().find(agent)


class Mortal:
    """Faults after which a process stays dead: each of its further calls raises ``Killed``. The test's is not one."""

    def __init__(self, faults: Faults, scheduler: Scheduler) -> None:
        self._faults, self._scheduler = faults, scheduler

    def before(self, port: str, call: str) -> None:
        self._meet(lambda: self._faults.before(port, call))

    def after(self, port: str, call: str) -> None:
        self._meet(lambda: self._faults.after(port, call))

    def _meet(self, fault: Callable[[], None]) -> None:
        process = self._scheduler.current
        if process.is_dead:
            raise Killed
        try:
            fault()
        except Killed:
            process.is_dead = process is not self._scheduler.main
            raise


def _put_result(results: dict[int, T], number: int, process: Callable[[], T]) -> None:
    results[number] = process()


class World(Instances):
    """One deployment that runs ``agents``; ``faults`` decides at every call of a port whether it fails.

    ``table`` makes the store (with a ``feed``, as of ``MemoryStores``); ``between`` wraps the queues; ``blobs`` are the
    files of tasks.
    """

    ids: Counter

    def __init__(
        self,
        agents: Sequence[Agent],
        faults: Faults | None = None,
        *,
        table: Callable[[Callable[[], int]], Any] = MemoryStores,
        between: Callable[[SharedQueues], Queues] | None = None,
        policy: EgressPolicy | None = None,
        blobs: MemoryBlobStore | None = None,
    ) -> None:
        self.kills = 0
        self.trace = ""
        self.scheduler = Scheduler()
        self._sweep_at = START + MINUTE_MS
        self.remote_agents = Siblings(self)
        self.blobs = blobs or MemoryBlobStore()
        self.contents = ContentStore(self.blobs)
        clock = InstanceClock(self.scheduler)
        self.receiver = Receiver(clock, calls_back=self.called_back)
        met = Mortal(faults or NoFaults(), self.scheduler)

        def wrap(port: Any, name: str) -> Any:
            return Frail(between(port) if between and name == "queue" else port, name, met)

        adapters = Adapters(
            clock=clock,
            ids=Counter(),
            sender=self.receiver,
            remote_agents=self.remote_agents,
            table=table,
            queues=SharedQueues,
            contents=self.contents,
            wrap=wrap,
        )
        super().__init__(agents, adapters, base_url="https://api.example.com", policy=policy)
        self.start()

    @property
    def now(self) -> int:
        """The time (ms)."""
        return self.scheduler.now

    @now.setter
    def now(self, now: int) -> None:
        self.scheduler.now = now

    def wait(self, ms: int) -> None:
        """Waits for ``ms``, in which all that is due is done."""
        self.scheduler.sleep(ms)

    def settle(self, until_ms: int = 40 * HOUR_MS) -> None:
        """Runs until nothing is due any more, also for the sweeper, at most ``until_ms`` of world time."""
        self.scheduler.rest(self.now + until_ms)

    def plan(self, ms: int, action: Callable[[], object]) -> None:
        """Schedules ``action`` in ``ms``; if a fault ends it, it is tried again a second later."""

        def act() -> None:
            while not self.survives(action):
                self.scheduler.sleep(1000)

        self.scheduler.spawn("plan", act, after_ms=ms)

    def survives(self, work: Callable[[], object]) -> bool:
        """Does ``work``; False when a fault killed the process, or a port failed and the error was not handled."""
        process = self.scheduler.current
        try:
            work()
        except (Killed, Broken):
            process.is_dead = True
        alive, process.is_dead = not process.is_dead, False
        self.kills += not alive
        return alive

    def next_sweep(self, until: int, number: int = 0) -> int:
        """The time of the first sweep that finds something; there is one each minute."""
        del number
        if until < self._sweep_at:
            return until + 1
        if isinstance(self.table, MemoryStores):
            late_ms = max(0, next_due(self.table.items) - self._sweep_at)
            return self._sweep_at + -(-late_ms // MINUTE_MS) * MINUTE_MS
        return self._search_sweep(until)

    def _search_sweep(self, until: int) -> int:
        if not self._due(until):
            return until + 1
        low, high = 0, (until - self._sweep_at) // MINUTE_MS + 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._due(self._sweep_at + middle * MINUTE_MS) else (middle + 1, high)
        return self._sweep_at + low * MINUTE_MS

    def _due(self, until: int) -> bool:
        return any(True for shard in range(SHARDS) for _ in self.table.list_due(shard, until))

    def sweep_due(self, number: int = 0) -> bool:
        del number
        self._sweep_at = self.now + MINUTE_MS
        return self.survives(lambda: sweep(self.sweeper))

    # ---- Processes that a test starts

    def together(self, *processes: Callable[[], T]) -> list[T]:
        """Runs these processes at the same time, started in this order, and none of the deployment's functions.

        Returns their results. Raises the first error of one of them.
        """
        results: dict[int, T] = {}
        services, self.scheduler.services = self.scheduler.services, []
        for number, process in enumerate(processes):
            self.scheduler.spawn(f"process-{number}", partial(_put_result, results, number, process))
        self.scheduler.rest()
        self.scheduler.services = services
        return [results[number] for number in range(len(processes))]

    def later(self, ms: int, process: Callable[[], T]) -> Callable[[], T]:
        """The process with a start delay of ``ms``."""

        def waited() -> T:
            self.wait(ms)
            return process()

        return waited

    def notifier(self, message: DeliveryMessage, time_ms: int = 60_000) -> Callable[[], DeliveryOutcome]:
        """A notifier that handles a delivery message."""
        return lambda: deliver(self.post, message, self._time_left(time_ms))

    def worker(self, key: TaskKey, time_ms: int = 900_000) -> Callable[[], RunOutcome]:
        """A worker that handles a work message of a task."""
        return lambda: self.play(run(self.engine, key, self._time_left(time_ms)))

    # ---- The client

    def send(self, content: str | Part = "hello", *, push: bool = True, agent: str = "echo", **fields: str) -> Task:
        """Sends a message with ``return_immediately``; returns its task."""
        return self.sent(self.request(content, push=push, **fields), agent)

    def sent(self, request: SendMessageRequest, agent: str = "echo", version: ProtocolVersion = "1.0") -> Task:
        """Sends a request, and repeats it with the same message id while a fault ends it; returns its task."""
        task = self.client(lambda: send(self.service, RequestContext(ME, agent, version, trace=self.trace), request))
        assert isinstance(task, Task)
        return task

    def client(self, call: Callable[[], T]) -> T:
        """Makes a call, and repeats it while a fault ends it; returns its result."""
        answers: list[T] = []
        while not self.survives(lambda: answers.append(call())):
            pass
        return answers[0]

    def request(self, content: str | Part, *, push: bool = True, **fields: str) -> SendMessageRequest:
        part = Part(text=content) if isinstance(content, str) else content
        message = Message(message_id=self.ids.new(), role=Role.USER, parts=(part,), **fields)
        return SendMessageRequest(
            message=message,
            configuration=SendMessageConfiguration(
                return_immediately=True,
                task_push_notification_config=TaskPushNotificationConfig(url=HOOK, token="t") if push else None,
            ),
        )

    def get(self, task_id: str, agent: str = "echo") -> Task:
        return get(self.service, RequestContext(ME, agent, "1.0"), task_id)

    def cancel(self, task_id: str, agent: str = "echo") -> Task:
        return cancel(self.service, RequestContext(ME, agent, "1.0", trace=self.trace), task_id)

    def events(self, task_id: str) -> list[Any]:
        loaded = self.table.read_log(ME.key(task_id))
        assert loaded is not None
        return list(loaded[1])
