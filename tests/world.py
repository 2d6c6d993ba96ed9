"""The whole chain in one process and no real time: the real use cases over the in-memory adapters.

Time moves only when nothing is left to do at this moment, to the next thing that is due. Faults come in at the ports.
"""

from __future__ import annotations

import asyncio
import json
import selectors
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from a2a_serverless.adapters.memory import MemoryBells, MemorySealer, MemoryTable
from a2a_serverless.domain.bells import Bell, DeliveryBell, WorkBell
from a2a_serverless.domain.head import Life
from a2a_serverless.domain.model import (
    JsonObject,
    Message,
    Part,
    Principal,
    PushRequest,
    Role,
    SendRequest,
    Task,
    TaskKey,
)
from a2a_serverless.domain.outbound import Outcome
from a2a_serverless.domain.url_policy import EgressPolicy
from a2a_serverless.engine.run import Engine, run
from a2a_serverless.ports import Signed
from a2a_serverless.services.deliver import Post, deliver
from a2a_serverless.services.listing import Shelf
from a2a_serverless.services.push import Webhooks
from a2a_serverless.services.relay import relay
from a2a_serverless.services.sweep import Broom, sweep
from a2a_serverless.services.tasks import Desk, send

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import Agent, TextModel

T = TypeVar("T")
ME = Principal("tenant", "me")
HOOK = "https://hooks.example.com/a2a"
LIFE = Life(max_life_ms=7 * 86_400_000, retention_ms=30 * 86_400_000)
START = 1_790_000_000_000
VISIBILITY_S = 90
RUN_MS = 900_000


class Killed(BaseException):
    """The process ends here, as a function does at the platform's will."""


class Faults(Protocol):
    """Decides at every call of a port whether the process dies before or after it."""

    def before(self, port: str, call: str) -> None: ...

    def after(self, port: str, call: str) -> None: ...


class NoFaults:
    def before(self, port: str, call: str) -> None:
        pass

    def after(self, port: str, call: str) -> None:
        pass


class KillAt:
    """Dies once, at the ``count``-th call of any port, before it or after it took effect."""

    def __init__(self, count: int, *, late: bool) -> None:
        self.left = count
        self.late = late
        self.killed_at = ""

    def before(self, port: str, call: str) -> None:
        self.left -= 1
        if self.left == 0 and not self.late:
            self.die(port, call)

    def after(self, port: str, call: str) -> None:
        if self.left == 0 and self.late and not self.killed_at:
            self.die(port, call)

    def die(self, port: str, call: str) -> None:
        self.killed_at = f"{port}.{call}"
        raise Killed(self.killed_at)


class Frail:
    """A port through which the process may die."""

    def __init__(self, inner: object, name: str, faults: Faults) -> None:
        self._inner = inner
        self._name = name
        self._faults = faults

    def __getattr__(self, call: str) -> Callable[..., object]:
        function = getattr(self._inner, call)

        def called(*args: object, **kwargs: object) -> object:
            self._faults.before(self._name, call)
            result: object = function(*args, **kwargs)
            self._faults.after(self._name, call)
            return result

        return called


class Counter:
    """Ids in order, so that a run can be repeated."""

    def __init__(self) -> None:
        self.last = 0

    def new(self) -> str:
        self.last += 1
        return f"id-{self.last:04d}"


class WorldClock:
    """The world's clock; sleeping moves the world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def now(self) -> int:
        return self._world.now

    def sleep(self, seconds: float) -> None:
        until = self._world.now + int(seconds * 1000)
        self._world.on_sleep()
        self._world.now = max(self._world.now, until)


class PlainSigner:
    """Signs nothing: the claims travel in clear, so that the receiver below can read them."""

    def sign(self, typ: str, claims: Mapping[str, str | int]) -> Signed:
        return Signed(json.dumps({"typ": typ} | dict(claims)), "kid-1")


@dataclass
class Received:
    notification_id: str
    n: int
    config_id: str
    body: JsonObject
    headers: Mapping[str, str]


@dataclass
class Receiver:
    """The client's side: answers challenges, keeps what it got, and applies each notification once."""

    posts: list[Received] = field(default_factory=list)
    challenges: int = 0
    answers: Callable[[int], Outcome] = lambda _: Outcome(status=200, connected=True, request_sent=True)

    def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_ms: int) -> Outcome:  # noqa: ARG002
        claims = json.loads(headers.get("X-A2A-Notification-JWT") or headers["Authorization"].removeprefix("Bearer "))
        assert claims["request_body_sha256"] == sha256(body).hexdigest()
        assert claims["aud"] == url
        content: JsonObject = json.loads(body)
        if claims["typ"] == "a2a-challenge+jwt":
            self.challenges += 1
            return Outcome(status=200, body=json.dumps({"challenge": content["challenge"]}).encode())
        outcome = self.answers(len(self.posts))
        if outcome.accepted:
            self.posts.append(
                Received(claims["notificationId"], claims["eventNumber"], claims["configId"], content, headers)
            )
        return outcome

    def effects(self) -> list[Received]:
        """The notifications in the order of their first arrival, duplicates dropped."""
        return list({got.notification_id: got for got in reversed(self.posts)}.values())[::-1]


class _Idle(selectors.SelectSelector):
    """Waiting is moving the clock."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "everything waits for something that nobody will do"
            self._world.on_sleep()
            self._world.now += int(timeout * 1000) + (1 if timeout > 0 else 0)
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, world: World) -> None:
        self._world = world
        super().__init__(_Idle(world))

    def time(self) -> float:
        return (self._world.now - START) / 1000


class World:
    """One deployment. ``agents`` are what it runs; ``faults`` is asked at every call of a port."""

    def __init__(
        self, agents: Sequence[Agent], text_model: TextModel | None = None, faults: Faults | None = None
    ) -> None:
        self.now = START
        self.table = MemoryTable(lambda: self.now)
        self.queue = MemoryBells(lambda: self.now)
        self.receiver = Receiver()
        self.ids = Counter()
        self.faults = faults or NoFaults()
        self.kills = 0
        self.busy = False
        self.relayed = 0
        self.run_ms = RUN_MS
        clock = WorldClock(self)
        log: Any = Frail(self.table, "table", self.faults)
        bells: Any = Frail(self.queue, "queue", self.faults)
        sender: Any = Frail(self.receiver, "receiver", self.faults)
        policy = EgressPolicy()
        hooks = Webhooks(log, log, bells, MemorySealer(), clock, self.ids, policy)
        self.desk = Desk(log, bells, clock, self.ids, hooks, Shelf(log, log, MemorySealer()), LIFE, blocking_ms=25_000)
        by_id = {agent.id: agent for agent in agents}
        model: Any = text_model
        self.engine = Engine(log, log, bells, self.ids, clock.now, by_id, model)
        self.post = Post(
            log,
            log,
            bells,
            sender,
            PlainSigner(),
            MemorySealer(),
            clock,
            self.ids,
            "https://api.example.com",
            lambda: 0.5,
        )
        self.broom = Broom(log, log, bells, clock, self.ids)

    def on_sleep(self) -> None:
        """What else happens while somebody sleeps: everything that is due now."""
        while self.step():
            pass

    def settle(self, until_ms: int = 3_600_000) -> None:
        """Runs until nothing is due any more, the sweeper's minutes included, at most ``until_ms`` of world time."""
        end, quiet = self.now + until_ms, 0
        while self.now < end and quiet < 3:
            while self.step():
                quiet = 0
            due = [at for at, _ in self.queue.waiting]
            self.now = min([*due, self.now + 60_000])
            quiet = quiet + 1 if not due and self.guarded(lambda: sweep(self.broom)) == 0 else 0

    def step(self) -> bool:
        """One thing that is due now: a batch of the stream, or a bell. False when there is none."""
        if self.relayed < len(self.table.feed):
            batch = self.table.feed[self.relayed :]
            if (
                self.guarded(lambda: relay(self.broom.store, self.broom.bells, [key for key, _ in batch], self.now))
                is None
            ):
                return True
            self.relayed += len(batch)
            return True
        bell = self.queue.pop()
        if bell is None:
            return False
        if self.guarded(lambda: self.answer(bell)) is None:
            self.queue.ring(bell, VISIBILITY_S)
        return True

    def guarded(self, work: Callable[[], T]) -> T | None:
        """What ``work`` gives; None when the process died in it."""
        try:
            return work()
        except Killed:
            self.kills += 1
            return None

    def answer(self, bell: Bell) -> object:
        started = self.now
        if isinstance(bell, WorkBell):
            if self.busy:
                self.queue.ring(bell, 1)
                return "no worker is free"
            return self.play(run(self.engine, bell.key, lambda: self.run_ms - (self.now - started)))
        assert isinstance(bell, DeliveryBell)
        return deliver(self.post, bell, lambda: 60_000 - (self.now - started))

    def play(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in world time."""
        loop = _Loop(self)
        self.busy = True
        try:
            return loop.run_until_complete(work)
        finally:
            self.busy = False
            loop.close()

    def send(self, text: str = "hello", *, push: bool = True, agent: str = "echo", **fields: str) -> Task:
        """A client that sends once more when the line went dead, with the same message id."""
        request = self.request(text, push=push, **fields)
        while True:
            task = self.guarded(lambda: send(self.desk, ME, agent, request, "1.0"))
            if task is not None:
                assert isinstance(task, Task)
                return task

    def request(self, text: str, *, push: bool = True, **fields: str) -> SendRequest:
        message = Message(self.ids.new(), Role.USER, (Part("text", text),), **fields)  # type: ignore[arg-type]
        return SendRequest(message, return_immediately=True, push=PushRequest(HOOK, token="t") if push else None)

    def events(self, task_id: str) -> list[Any]:
        loaded = self.table.load(TaskKey(ME.tenant, ME.owner, task_id))
        assert loaded is not None
        return loaded[1]
