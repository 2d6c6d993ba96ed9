"""A deployment of many instances: the library's own objects over simulated stores, each instance with its clock.

What it has seen is kept for ``tests.simulation.promises``.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.client import ClientRequest, ClientResponse, Unreachable
from a2a_serverless.domain.cursors import CLOCK_SKEW_MS, POST_DEADLINE_MS
from a2a_serverless.domain.errors import A2AError
from a2a_serverless.domain.key_ring import SigningKey
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.domain.outcomes import OutboundError, Outcome
from a2a_serverless.domain.publications import JWKS
from a2a_serverless.domain.queue_messages import DeliveryMessage, WorkMessage
from a2a_serverless.engine.engine import RunOutcome
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.engine.lease import MARGIN_MS
from a2a_serverless.http.api import AllowAnonymous
from a2a_serverless.ports.system import Signed
from a2a_serverless.services.circuit_breakers import CircuitBreakers
from a2a_serverless.services.deliver import deliver
from a2a_serverless.services.relay import relay
from a2a_serverless.services.sweep import sweep
from a2a_serverless.store import keys
from a2a_serverless.testing.deployment import Adapters
from a2a_serverless.testing.memory import VISIBILITY_S, MemoryCallbackVerifier
from a2a_serverless.testing.simulated_deployment import Counter as Ids
from a2a_serverless.testing.simulated_loop import START
from tests.client.deployment import request_of
from tests.edge import Edge
from tests.simulated import NEVER, InstanceClock, Instances, Killed, Over, Scheduler
from tests.simulation.store import Faults, SimulatedKeyRingStore, SimulatedQueues, SimulatedTable, StoreDown, Weather

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.queue_messages import QueueMessage

ME: Final = Principal("tenant", "me")
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
RUN_MS: Final = 180_000
NOTIFY_MS: Final = 60_000
RECEIVES: Final = 5
STREAM_BATCH: Final = 10
SWEEPS: Final = 4
SWEEP_SLACK_MS: Final = 10_000  # clocks, and the lag of the index
BASE_URL: Final = "https://api.example.com"


class NoKeyRing(Exception):
    """There is no key ring yet."""


@dataclass(frozen=True)
class Posted:
    """A POST: the event's number, when it was under way (ms), its URL, and whether the receiver accepted it."""

    task: str
    config_id: str
    notification_id: str
    n: int
    url: str
    begun: int
    ended: int
    accepted: bool
    kid: str


@dataclass
class Seen:
    """What happened in a simulation."""

    posted: list[Posted] = field(default_factory=list)
    handled: Counter[tuple[str, str]] = field(default_factory=Counter)
    hops: Counter[str] = field(default_factory=Counter)
    deliveries: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    worked_ms: Counter[str] = field(default_factory=Counter)
    lost_runs: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    last_work_at: int = 0


class Simulation(Instances):
    """Instances and clients until ``hours`` after the start; ``storm_ms`` of faults. Each instance has its clock."""

    workers = notifiers = 3
    sweepers = 2
    run_ms = RUN_MS
    queue: SimulatedQueues

    def __init__(
        self, seed: int, agents: Sequence[Agent], hours: int, storm_ms: int, trace: Callable[[str], None] | None
    ) -> None:
        self.scheduler, self.until = Scheduler(seed, trace), START + hours * HOUR_MS
        self.random = self.scheduler.random
        self.faults = Faults(self.scheduler, Weather.of(self.random, START + storm_ms))
        self.rings = SimulatedKeyRingStore(self.faults)
        self.seen = Seen()
        self.published = False
        self.revoked: set[str] = set()
        self.keys = NamedKeys()
        self._received: Counter[QueueMessage] = Counter()
        self._swept: list[list[int]] = [[] for _ in range(self.sweepers)]
        adapters = Adapters(
            clock=InstanceClock(self.scheduler),
            ids=Ids(),
            sender=self.make_receivers(),
            remote_agents=Peers(self, agents),
            table=lambda _: self.make_table(),
            queues=lambda _: SimulatedQueues(self.faults, self.scheduler),
            chance=self.random.random,
            signer=RingSigner(self),
            wrap=self.wrap,
        )
        policy = EgressPolicy(trusted_domains=("trusted.example.com",))
        super().__init__(agents, adapters, BASE_URL, policy)
        self.items = self.table.items
        self.engine = replace(self.engine, on_error=self._note_error)
        self.service = self.service._replace(inline_runner=EngineInlineRunner(self.engine, self.play).for_agent)
        self.edge = Edge(self.service, self.agents, SignsIn(), MemoryCallbackVerifier(), 3600)
        names = [f"notifier-{number}" for number in range(self.notifiers)]
        self._posts = {name: replace(self.post, breakers=CircuitBreakers(self.table)) for name in names}

    def check_key(self, kid: str) -> None:
        """A key that signs is in the published key set."""
        if self.published and kid not in {*self.kids(), *self.revoked}:
            self.seen.wrong.append(f"{kid} signs, and only {self.kids()} are published")

    def kids(self) -> list[str]:
        """The keys of the published key set."""
        row = self.items.partitions.get(keys.PUBLIC, {}).get(keys.document(JWKS))
        stored = json.loads(row["body"]["S"]) if row else {"body": '{"keys": []}'}
        return [key["kid"] for key in json.loads(stored["body"])["keys"]]

    def _note_error(self, key: TaskKey, error: BaseException, reference: str) -> None:
        del reference
        self.scheduler.trace(f"{key.task}: its agent raised {error!r}")

    def make_table(self) -> SimulatedTable:
        return SimulatedTable(self.faults, lambda: self.scheduler.now)

    def make_receivers(self) -> Receivers:
        return Receivers(self)

    def wrap(self, port: Any, name: str) -> Any:
        """What the deployment uses in place of a port."""
        del name
        return port

    def run_all(self) -> None:
        """Runs until nothing is left to do, or the time is over."""
        try:
            self.scheduler.rest(self.until)
        finally:
            self.scheduler.end()

    def offset_ms(self) -> int:
        """Two clocks differ by at most ``CLOCK_SKEW_MS``."""
        return self.random.randint(0, CLOCK_SKEW_MS)

    def spawn(self, name: str, work: Callable[[], object], after_ms: int = 0) -> None:
        """Adds a client, with a clock of its own."""
        self.scheduler.spawn(name, work, self.offset_ms(), after_ms)

    def survives(self, work: Callable[[], object]) -> bool:
        process = self.scheduler.current
        try:
            work()
        except Over:
            raise
        except BaseException as error:  # noqa: BLE001 - the platform invokes again
            self._note_crash(error)
            return False
        else:
            return not process.is_dead
        finally:
            process.is_dead = False

    def _note_crash(self, error: BaseException) -> None:
        self.scheduler.trace(f"fails: {type(error).__name__}")
        if not isinstance(error, (Killed, StoreDown, A2AError, NoKeyRing)):
            self.seen.wrong.append(f"{self.scheduler.current.name} raised {error!r}")

    # ---- The functions

    def consume(self, kind: type[QueueMessage]) -> None:
        """As SQS and Lambda do: a message that fails comes again, ``RECEIVES`` times in all."""
        taken = self.queue.take(kind)
        if taken is None:
            return
        number, message = taken
        hops = self.scheduler.current.hops = self.queue.hops.pop(number)
        self.seen.handled[type(message).__name__, message.key.task] += 1
        self.seen.hops[type(message).__name__] = max(self.seen.hops[type(message).__name__], hops)
        self.seen.last_work_at = self.scheduler.now
        if self.survives(partial(self.answer, message)):
            self._received.pop(message, None)
            return
        self._received[message] += 1
        if self._received[message] < RECEIVES:
            self.queue.put(message, VISIBILITY_S, hops)

    def answer(self, message: QueueMessage) -> None:
        if isinstance(message, DeliveryMessage):
            self._notify(message)
        elif isinstance(message, WorkMessage):
            self._work(message)

    def _work(self, message: WorkMessage) -> None:
        self.scheduler.trace(f"takes {message.key.task}")
        self.seen.runs[message.key.task] += 1
        began, failures = self.scheduler.now, self.faults.failures
        try:
            ending = self.run(message.key)
        finally:
            lasted_ms = self.scheduler.now - began
            self.seen.worked_ms[message.key.task] += lasted_ms
        if (
            ending is RunOutcome.HANDED_OVER
            and failures == self.faults.failures
            and lasted_ms < self.run_ms - MARGIN_MS
        ):
            self.seen.wrong.append(
                f"a run of {message.key.task} handed over after {lasted_ms} ms, and nothing had failed"
            )
        if ending in {RunOutcome.LEASED, RunOutcome.NOTHING_TO_DO}:
            self.seen.runs[message.key.task] -= 1
        self.scheduler.trace(f"{message.key.task}: {ending}")

    def _notify(self, message: DeliveryMessage) -> None:
        ending = deliver(self._posts[self.scheduler.current.name], message, self.time_left(NOTIFY_MS))
        self.seen.deliveries[message.key.task] += 1
        self.scheduler.trace(f"delivers {message.key.task} {message.config_id}: {ending.value}")

    def time_left(self, ms: int) -> Callable[[], int]:
        """How much is left of ``ms`` from now on, by the clock of whichever instance asks."""
        until = self.clock.now() + ms
        return lambda: until - self.clock.now()

    def relay_changes(self) -> bool:
        """Relays a batch of the table's stream; one that fails comes again."""
        batch = [key for key, _ in self.table.feed[self.relayed : self.relayed + STREAM_BATCH]]
        if self.survives(lambda: relay(self.table, self.queue, batch, self.clock.now())):
            self.relayed += len(batch)
        else:
            self.scheduler.sleep(1000)
        return bool(batch)

    def sweep_due(self, number: int = 0) -> bool:
        """Sweeps every minute, while something is due."""
        began, starts = self.scheduler.now, self._swept[number]
        swept = self.survives(lambda: sweep(self.sweeper, self.time_left(MINUTE_MS)))
        self._check_lateness([began, *starts] if swept else [])
        starts[:] = [began, *starts[: SWEEPS - 1]] if swept else []
        self.scheduler.sleep(1)
        return swept

    def next_sweep(self, until: int, number: int = 0) -> int:
        del until
        due: int = self.items.next_due()
        if due == NEVER:
            return NEVER
        at, after_ms = max(due + CLOCK_SKEW_MS, self.scheduler.now), number * 100
        return START + -(-(at - START - after_ms) // MINUTE_MS) * MINUTE_MS + after_ms

    def _check_lateness(self, starts: list[int]) -> None:
        """Whatever is due is handled: by one of the last sweeps, and soon after the storm."""
        due, calm_since = self.items.next_due(), self.faults.weather.until + 10 * MINUTE_MS
        if len(starts) >= SWEEPS and due < starts[SWEEPS - 1] - SWEEP_SLACK_MS:
            self.seen.wrong.append(f"something is due, and {SWEEPS} sweeps have not handled it")
        if (late_ms := self.scheduler.now - max(due, calm_since)) > 5 * MINUTE_MS:
            self.seen.wrong.append(f"something is due for {late_ms // 1000} s, and no sweep has handled it")


class Peers(A2ARemoteAgents):
    """The deployment's own agents, called over HTTP, by the library's client and application; only sockets lack.

    The api's instance may die while the caller lives, and whoever stands before it may refuse: no instance is free, or
    the stage's limit is reached.
    """

    def __init__(self, simulation: Simulation, agents: Sequence[Agent]) -> None:
        self._simulation = simulation
        urls = {agent.id: f"{BASE_URL}/{agent.id}" for agent in agents}
        super().__init__(urls, service_tokens=lambda _: {"Authorization": "Bearer me"}, transport=self._exchange)

    @contextmanager
    def _exchange(self, call: ClientRequest) -> Iterator[ClientResponse]:
        status, headers, body = self._answer(call)
        yield ClientResponse(status, headers, io.BytesIO(body))

    def _answer(self, call: ClientRequest) -> tuple[int, Mapping[str, str], bytes]:
        faults, process = self._simulation.faults, self._simulation.scheduler.current
        was_dead = process.is_dead
        try:
            faults.take_time()
            if faults.happens(faults.weather.fail):
                faults.failures += 1
                return self._simulation.random.choice(REFUSALS)
            answer = self._simulation.edge.answer(request_of(call))
            faults.call()
        except StoreDown:  # at the call above: the answer is lost
            raise Unreachable(call.url, "Connection reset by peer") from None
        except Killed:
            if was_dead or self._simulation.random.random() < 1 / 2:
                raise
            process.is_dead = False
            raise Unreachable(call.url, "the api has died") from None
        return answer.status, answer.headers, answer.body


REFUSALS: Final[tuple[tuple[int, Mapping[str, str], bytes], ...]] = (
    (503, {}, b"Service Unavailable"),
    (503, {"retry-after": "3"}, b""),
    (429, {"retry-after": "7"}, b'{"message":"Too Many Requests"}'),
)


class SignsIn(AllowAnonymous):
    """Every caller is the one client."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        return super().authenticate(headers)._replace(principal=ME)


class RingSigner:
    """Signs by naming the current key of the ring, which each instance caches for five minutes."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._cached: dict[str, tuple[int, Any]] = {}

    def sign(self, typ: str, claims: Mapping[str, str | int]) -> Signed:
        simulation = self._simulation
        simulation.faults.be_slow()
        name, now = simulation.scheduler.current.name, simulation.scheduler.now
        at, ring = self._cached.get(name, (0, None))
        if ring is None or now - at >= 5 * MINUTE_MS:
            ring = simulation.rings.load()
            self._cached[name] = now, ring
        kid = ring.current.kid if ring else "none"
        return Signed(json.dumps({"typ": typ, "kid": kid} | dict(claims)), kid)


class Receivers:
    """Every webhook receiver: slow, refusing or silent while faults happen; notes each POST."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_ms: int) -> Outcome:
        simulation, faults = self._simulation, self._simulation.faults
        if simulation.scheduler.current.is_dead:
            raise Killed
        claims = json.loads(headers.get("X-A2A-Notification-JWT") or headers["Authorization"].removeprefix("Bearer "))
        names = claims.get("taskId"), claims.get("configId"), claims.get("notificationId"), claims.get("eventNumber")
        if url.startswith(f"{BASE_URL}/callbacks/"):
            begun, outcome = simulation.scheduler.now, self._callback(url, headers, body)
            if names[0]:
                ended = min(simulation.scheduler.now, begun + POST_DEADLINE_MS)
                simulation.seen.posted.append(Posted(*names, url, begun, ended, outcome.accepted, claims["kid"]))
            return outcome
        if claims["typ"] == "a2a-challenge+jwt":
            simulation.scheduler.sleep(5)
            return Outcome(status=200, body=json.dumps({"challenge": json.loads(body)["challenge"]}).encode())
        takes = simulation.random.choice((5, 20, 200))
        refuses = faults.happens(faults.weather.refuse)
        if faults.happens(faults.weather.refuse):
            takes = simulation.random.choice((3_000, 14_000, POST_DEADLINE_MS))
        begun = simulation.scheduler.now
        accepted = not refuses
        simulation.seen.posted.append(Posted(*names, url, begun, begun + takes, accepted, claims["kid"]))
        simulation.check_key(claims["kid"])
        simulation.scheduler.trace(f"POST {names[0]} {names[1]} n={names[3]} {url} takes {takes} accepted={accepted}")
        simulation.scheduler.sleep(takes)
        if takes >= min(deadline_ms, POST_DEADLINE_MS) or faults.happens(faults.weather.refuse):
            return Outcome(error=OutboundError.TIMEOUT, connected=True, request_sent=True)
        return Outcome(status=200 if accepted else 503, connected=True, request_sent=True)

    def _callback(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        process = self._simulation.scheduler.current
        until = self._simulation.scheduler.now + POST_DEADLINE_MS
        try:
            outcome = self._simulation.called_back(url, headers, body)
            late = self._simulation.scheduler.now > until
            return Outcome(error=OutboundError.TIMEOUT, connected=True, request_sent=True) if late else outcome
        except (StoreDown, A2AError):
            return Outcome(status=503, connected=True, request_sent=True)
        except Killed:
            process.is_dead = False  # the api died, and not the notifier
            return Outcome(error=OutboundError.RESET, connected=True, request_sent=True)


class NamedKeys:
    """A key factory without cryptography."""

    def __init__(self) -> None:
        self._made = 0

    def make(self, now: int) -> SigningKey:
        self._made += 1
        kid = f"key-{self._made}"
        return SigningKey(kid, {"kty": "EC", "kid": kid}, f"private {kid}", now)

    def sign(self, key: SigningKey, content: bytes) -> bytes:
        del content
        return key.kid.encode()
