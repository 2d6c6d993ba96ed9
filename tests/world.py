"""A whole deployment in one process and simulated time: the real use cases over the in-memory adapters.

Time moves only when nothing is left to do now, to the next thing that is due. Faults are injected at the ports.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from a2a_serverless.adapters.contents import BlobContentStore
from a2a_serverless.adapters.memory import (
    MemoryBlobStore,
    MemoryCallbackVerifier,
    MemoryMetrics,
    MemoryQueues,
    MemoryResolver,
    MemorySealer,
    MemoryTable,
)
from a2a_serverless.domain.agent import AgentCallFailed
from a2a_serverless.domain.errors import TaskNotCancelable, TaskNotFound
from a2a_serverless.domain.head import TaskLifetime
from a2a_serverless.domain.model import JsonObject, Principal, TaskKey
from a2a_serverless.domain.outbound import Outcome
from a2a_serverless.domain.queue_messages import DeliveryMessage, QueueMessage
from a2a_serverless.domain.url_policy import EgressPolicy
from a2a_serverless.engine.calls import AgentRegistry
from a2a_serverless.engine.files import TaskFiles
from a2a_serverless.engine.run import Engine, run
from a2a_serverless.ports.agents import CallbackRequest
from a2a_serverless.ports.keys import Signed
from a2a_serverless.ports.tasks import SHARDS
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
from a2a_serverless.services.callbacks import handle_callback
from a2a_serverless.services.circuit_breakers import CircuitBreakers
from a2a_serverless.services.deliver import DeliveryContext, deliver
from a2a_serverless.services.listing import TaskLister
from a2a_serverless.services.publish import card_of
from a2a_serverless.services.relay import relay
from a2a_serverless.services.sweep import Sweeper, sweep
from a2a_serverless.services.tasks import TaskService, cancel, get, send
from a2a_serverless.services.webhooks import Webhooks
from a2a_serverless.testing import BASE_URL, START, Counter, SimulatedLoop
from tests.faults.plans import Broken, Faults, Frail, Killed, NoFaults
from tests.protocol.schema import assert_notification

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.push import WireVersion
    from a2a_serverless.ports.system import Clock, Queues
    from a2a_serverless.protocol.v1_card import AgentCard

T = TypeVar("T")
ME = Principal("tenant", "me")
HOOK = "https://hooks.example.com/a2a"
LIFE = TaskLifetime(max_life_ms=7 * 86_400_000, retention_ms=30 * 86_400_000)
VISIBILITY_S = 90
RUN_MS = 900_000
DELIVER_MS = 60_000
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


class WorldClock:
    """The world's clock; sleeping lets the world's time pass."""

    def __init__(self, world: World) -> None:
        self._world = world

    def now(self) -> int:
        return self._world.now

    def sleep(self, seconds: float) -> None:
        self._world.wait(int(seconds * 1000))


class PlainSigner:
    """Does not sign: the token is the claims as JSON, which the receiver below reads."""

    def sign(self, typ: str, claims: Mapping[str, str | int]) -> Signed:
        return Signed(json.dumps({"typ": typ} | dict(claims)), "kid-1")


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


class Siblings:
    """The agents of the same world as remote agents; their callbacks reach the calling task without delay."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.replies: dict[str, str] = {}
        self.absent: set[str] = set()
        self.traces: list[str] = []

    def with_trace(self, trace: str) -> Siblings:
        self.traces.append(trace)
        return self

    def address(self, agent: str) -> str:
        return f"https://api.example.com/{agent}"

    def card(self, agent: str) -> AgentCard:
        self._check(agent)
        return card_of(self.world.engine.agents[agent], BASE_URL, {})

    def send(
        self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig
    ) -> Task | Message:
        self._check(agent)
        if agent in self.replies:
            return Message(
                message_id="reply",
                role=Role.AGENT,
                parts=(Part(text=self.replies[agent]),),
                context_id=message.context_id,
            )
        request = SendMessageRequest(
            message=message,
            configuration=SendMessageConfiguration(return_immediately=True, task_push_notification_config=callback),
        )
        return send(self.world.service, caller.principal, agent, request, "1.0")

    def _check(self, agent: str) -> None:
        if agent not in self.world.engine.agents or agent in self.absent:
            raise AgentCallFailed(f"no agent {agent}")

    def get(self, caller: Caller, agent: str, task_id: str) -> Task:
        return get(self.world.service, caller.principal, agent, task_id)

    def cancel(self, caller: Caller, agent: str, task_id: str) -> None:
        with suppress(TaskNotCancelable):
            cancel(self.world.service, caller.principal, agent, task_id)


class World:
    """One deployment that runs ``agents``; ``faults`` decides at every call of a port whether it fails.

    ``table`` makes the store (with a ``feed``, as of ``MemoryTable``); ``between`` wraps the queues.
    """

    def __init__(
        self,
        agents: Sequence[Agent],
        faults: Faults | None = None,
        *,
        table: Callable[[Callable[[], int]], Any] = MemoryTable,
        between: Callable[[MemoryQueues], Queues] | None = None,
        policy: EgressPolicy | None = None,
    ) -> None:
        self.now = START
        self.table = table(lambda: self.now)
        self.queue = MemoryQueues(lambda: self.now)
        self.clock = WorldClock(self)
        self.receiver = Receiver(self.clock)
        self.ids = Counter()
        self.kills = 0
        self.busy = False
        self.run_ms = RUN_MS
        self.loop = SimulatedLoop
        self.planned: list[tuple[int, Callable[[], object]]] = []
        self._relayed = 0
        self._sweep_at = START + MINUTE_MS
        faults = faults or NoFaults()
        log: Any = Frail(self.table, "table", faults)
        queues: Any = Frail(between(self.queue) if between else self.queue, "queue", faults)
        sender: Any = Frail(self.receiver, "receiver", faults)
        sealer: Any = Frail(MemorySealer(), "sealer", faults)
        signer: Any = Frail(PlainSigner(), "signer", faults)
        self.remote_agents = Siblings(self)
        self.registry = AgentRegistry(self.remote_agents, self.ids, "https://api.example.com")
        self.resolver = MemoryResolver()
        webhooks = Webhooks(log, log, queues, sealer, self.clock, self.ids, policy or EgressPolicy(), self.resolver)
        lister = TaskLister(log, log, MemorySealer())
        self.service = TaskService(log, queues, self.clock, self.ids, webhooks, lister, LIFE, blocking_ms=25_000)
        self.blobs = MemoryBlobStore()
        self.contents = BlobContentStore(self.blobs)
        self.service = replace(self.service, contents=self.contents)
        by_id = {agent.id: agent for agent in agents}
        self.engine = Engine(
            log, log, queues, self.ids, self.clock.now, by_id, self.registry, files=TaskFiles(self.contents)
        )
        self.receiver.calls_back = self.called_back
        self.metrics = MemoryMetrics()
        self.post = DeliveryContext(
            contents=self.contents,
            log=log,
            store=log,
            queues=queues,
            sender=sender,
            signer=signer,
            sealer=sealer,
            clock=self.clock,
            ids=self.ids,
            issuer="https://api.example.com",
            chance=lambda: 0.5,
            hosts=CircuitBreakers(log),
            metrics=self.metrics,
        )
        self.sweeper = Sweeper(log, log, queues, self.clock, self.ids)

    def called_back(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        """Answers the webhook of a called agent as the api function does."""
        incoming = CallbackRequest({name.lower(): value for name, value in headers.items()}, body)
        try:
            challenge = handle_callback(self.service, MemoryCallbackVerifier(), url.rpartition("/")[2], incoming)
        except TaskNotFound:
            return Outcome(status=404, connected=True, request_sent=True)
        answer = json.dumps({"challenge": challenge} if challenge else {}).encode()
        return Outcome(status=200, connected=True, request_sent=True, body=answer)

    # ---- Time

    def wait(self, ms: int) -> None:
        """Lets ``ms`` pass; everything that is due meanwhile happens at its time."""
        self._until(self.now + ms)

    def settle(self, until_ms: int = 40 * HOUR_MS) -> None:
        """Runs until nothing is due any more, also for the sweeper, at most ``until_ms`` of world time."""
        end = self.now + until_ms
        while (coming := self._coming(end)) is not None:
            self._until(coming)

    def plan(self, ms: int, action: Callable[[], object]) -> None:
        """Schedules ``action`` in ``ms``; if a fault ends it, it is tried again a second later."""
        self.planned.append((self.now + ms, action))

    def elsewhere(self, ms: int) -> None:
        """Suspends this process for ``ms`` while the world continues, with another worker."""
        busy, self.busy = self.busy, False
        others = Thread(target=self.wait, args=(ms,))
        others.start()
        others.join()
        self.busy = busy

    def _until(self, until: int) -> None:
        while True:
            while self.step():
                pass
            coming = self._coming(until)
            if coming is None:
                break
            self.now = max(self.now, coming)
        self.now = max(self.now, until)

    def _coming(self, end: int) -> int | None:
        """Returns when the next thing is due, None if after ``end``; sweeps that would find nothing do not count."""
        times = [at for at, _ in self.planned] + [at for at, _ in self.queue.waiting]
        soonest = min(times, default=end + 1)
        if soonest > self._sweep_at and self._due(min(soonest, end)):
            soonest = min(soonest, self._first_sweep(min(soonest, end)))
        return soonest if soonest <= end else None

    def _first_sweep(self, end: int) -> int:
        """Returns the time of the first sweep that finds something."""
        low, high = 0, max((end - self._sweep_at) // MINUTE_MS, 0) + 1
        while low < high and not self._due(self._sweep_at + low * MINUTE_MS):
            middle = (low + high) // 2
            low, high = (low, middle) if self._due(self._sweep_at + middle * MINUTE_MS) else (middle + 1, high)
        return self._sweep_at + low * MINUTE_MS

    def _due(self, until: int) -> bool:
        return any(True for shard in range(SHARDS) for _ in self.table.list_due(shard, until))

    # ---- Functions that events and schedules start

    def step(self) -> bool:
        """Does one thing that is due: a planned action, a stream batch, a sweep or a message. False if none is."""
        return self._do_planned() or self._relay() or self._sweep() or self._ring()

    def _do_planned(self) -> bool:
        due = next((plan for plan in self.planned if plan[0] <= self.now), None)
        if due is None:
            return False
        self.planned.remove(due)
        if not self.survives(due[1]):
            self.plan(1000, due[1])
        return True

    def _relay(self) -> bool:
        batch = self.table.feed[self._relayed :]
        if not batch:
            return False
        self._relayed += len(batch)
        keys = [key for key, _ in batch]
        if not self.survives(lambda: relay(self.sweeper.store, self.sweeper.queues, keys, self.now)):
            self._relayed -= len(batch)
        return True

    def _sweep(self) -> bool:
        if self.now < self._sweep_at:
            return False
        self._sweep_at = self.now + MINUTE_MS
        self.survives(lambda: sweep(self.sweeper))
        return True

    def _ring(self) -> bool:
        message = self.queue.pop()
        if message is None:
            return False
        if not self.survives(lambda: self.answer(message)):
            self.queue.enqueue(message, VISIBILITY_S)
        return True

    def survives(self, work: Callable[[], object]) -> bool:
        """Does ``work``; False when a fault killed the process, or a port failed and the error was not handled."""
        try:
            work()
        except (Killed, Broken):
            self.kills += 1
            return False
        return True

    def answer(self, message: QueueMessage) -> object:
        """Handles a queue message as the function behind the queue does."""
        started = self.now
        if isinstance(message, DeliveryMessage):
            return deliver(self.post, message, lambda: DELIVER_MS - (self.now - started))
        if self.busy:
            self.queue.enqueue(message, 1)
            return "no worker is free"
        return self.run(message.key, message.fence)

    def run(self, key: TaskKey, fence: int = 0) -> object:
        """Runs a task as a worker does."""
        started = self.now
        return self.play(run(self.engine, key, lambda: self.run_ms - (self.now - started), fence))

    def play(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in world time."""
        loop = self.loop(lambda: self.now, self.wait)
        self.busy = True
        try:
            return loop.run_until_complete(work)
        finally:
            self.busy = False
            loop.close()

    # ---- The client

    def send(self, text: str = "hello", *, push: bool = True, agent: str = "echo", **fields: str) -> Task:
        """Sends a message with ``return_immediately``; returns its task."""
        return self.sent(self.request(text, push=push, **fields), agent)

    def sent(self, request: SendMessageRequest, agent: str = "echo", wire: WireVersion = "1.0") -> Task:
        """Sends a request, and repeats it with the same message id while a fault ends it; returns its task."""
        task = self.client(lambda: send(self.service, ME, agent, request, wire))
        assert isinstance(task, Task)
        return task

    def client(self, call: Callable[[], T]) -> T:
        """Makes a call, and repeats it while a fault ends it; returns its result."""
        answers: list[T] = []
        while not self.survives(lambda: answers.append(call())):
            pass
        return answers[0]

    def request(self, text: str, *, push: bool = True, **fields: str) -> SendMessageRequest:
        message = Message(message_id=self.ids.new(), role=Role.USER, parts=(Part(text=text),), **fields)
        return SendMessageRequest(
            message=message,
            configuration=SendMessageConfiguration(
                return_immediately=True,
                task_push_notification_config=TaskPushNotificationConfig(url=HOOK, token="t") if push else None,
            ),
        )

    def get(self, task_id: str, agent: str = "echo") -> Task:
        return get(self.service, ME, agent, task_id)

    def cancel(self, task_id: str, agent: str = "echo") -> Task:
        return cancel(self.service, ME, agent, task_id)

    def events(self, task_id: str) -> list[Any]:
        loaded = self.table.read_log(ME.key(task_id))
        assert loaded is not None
        return list(loaded[1])
