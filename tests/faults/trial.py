"""Many tasks with webhooks, authors that commit events, and receivers that verify: what a fault run is made of.

Everything but time, the network and AWS is the real thing: the use cases, ES256 keys in a ring, and the receiver that
we publish, with its key cache and its replay store. Faults come in at the ports and on the wire.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.adapters.es256 import Es256Keys, KeyRingSigner
from a2a_serverless.domain import decisions
from a2a_serverless.domain.cursors import CURSOR_LEASE_MS, POST_DEADLINE_MS, CursorState
from a2a_serverless.domain.events import ArtifactEvent
from a2a_serverless.domain.key_ring import RotationTimes
from a2a_serverless.domain.notifications import requires_notification
from a2a_serverless.domain.outcomes import Outcome
from a2a_serverless.domain.publications import JWKS
from a2a_serverless.domain.queue_messages import DeliveryMessage, QueueMessage
from a2a_serverless.protocol.v1 import (
    Artifact,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a_serverless.services import webhooks
from a2a_serverless.services.deliver import deliver
from a2a_serverless.services.key_rotation import KeyRotation, ensure_ring, revoke_key, rotate_ring
from a2a_serverless.services.publish import CardPublisher
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.tasks import send
from a2a_serverless.testing.memory import MemoryKeyRingStore, MemorySealer
from a2a_webhook_receiver.errors import KeysUnavailable, Refused
from a2a_webhook_receiver.expectations import Expectation, digest
from a2a_webhook_receiver.inbox import Inbox
from a2a_webhook_receiver.jwks import JwksCache
from a2a_webhook_receiver.outbound import Unreachable
from a2a_webhook_receiver.receive import Claimed, Receiver, WebhookRequest, begin, settle
from a2a_webhook_receiver.store_sqlite import SqliteStore
from a2a_webhook_receiver.verifier import VerifiedChallenge
from tests.faults.journeys import may_be_left_out
from tests.faults.plans import Faults, Frail, NoFaults
from tests.world import HOUR_MS, ME, World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from a2a_serverless.domain.model import TaskKey

ISSUER: Final = "https://api.example.com"
WAITS: Final = RotationTimes(publish_ms=420_000, retire_ms=1_080_000)
CHUNKS: Final = 8
STEP_MS: Final = 700
AT_ONCE: Final = 6
UNAVAILABLE: Final = 503
UNAUTHORIZED: Final = 401


class Dice(NoFaults):
    """At calls of some ports something happens with a chance, before the call or after it took effect."""

    def __init__(
        self, what: type[BaseException], calls: Sequence[str], *, late: bool, chance: float, random: Random
    ) -> None:
        self._what = what
        self._calls = tuple(calls)
        self._late = late
        self._chance = chance
        self._random = random
        self.thrown = 0
        self.on = True

    def before(self, port: str, call: str) -> None:
        self._throw(port, call, late=False)

    def after(self, port: str, call: str) -> None:
        self._throw(port, call, late=True)

    def _throw(self, port: str, call: str, *, late: bool) -> None:
        met = late is self._late and f"{port}.{call}".startswith(self._calls)
        if self.on and met and self._random.random() < self._chance:
            self.thrown += 1
            raise self._what


@dataclass
class Arrival:
    """A notification that a receiver verified. ``effect``: the first of its id."""

    url: str
    notification_id: str
    n: int
    effect: bool
    snapshot: bool = False


@dataclass(frozen=True)
class Hook:
    """A webhook that a task has."""

    key: TaskKey
    url: str
    config_id: str


class Strangers:
    """All receivers of the internet. ``wire`` may answer in their place, or change what they answered."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._store = SqliteStore(":memory:")
        self._keys = JwksCache(self._fetch, spawn=lambda work: work())
        self._receivers: dict[str, Receiver] = {}
        self.keys_down = False
        self.arrivals: list[Arrival] = []
        self.refused: Counter[str] = Counter()
        self.posts = 0
        self.takes = 20
        self.under_way = 0
        self.before: Callable[[str], Outcome | None] = lambda _: None
        self.after: Callable[[str, Outcome], Outcome] = lambda _, outcome: outcome

    def close(self) -> None:
        self._store.close()

    def expect(self, url: str, token: str) -> None:
        self._store.add(Expectation(url, self._trial.world.now + 100 * 86_400_000, token_digest=digest(token)))

    def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_ms: int) -> Outcome:
        assert self.takes <= deadline_ms
        self.posts += 1
        instead = self.before(url)
        if instead is not None:
            return instead
        outcome = self._receive(url, headers, body)
        self._take_time()
        return self.after(url, outcome)

    def _take_time(self) -> None:
        """The world goes on while a receiver thinks, with a few requests under way at a time."""
        if self.under_way < AT_ONCE:
            self.under_way += 1
            try:
                self._trial.world.wait(self.takes)
            finally:
                self.under_way -= 1

    def _receive(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        try:
            got = begin(self._receiver(url), WebhookRequest(tuple(headers.items()), body))
        except KeysUnavailable:
            return Outcome(status=UNAVAILABLE)
        except Refused as refused:
            self.refused[type(refused).__name__] += 1
            return Outcome(status=UNAUTHORIZED)
        if isinstance(got, VerifiedChallenge):
            return Outcome(status=200, body=json.dumps({"challenge": got.challenge}).encode())
        self._arrived(url, headers, body, got)
        return Outcome(status=200)

    def _arrived(self, url: str, headers: Mapping[str, str], body: bytes, got: object) -> None:
        token = headers["Authorization"].split(".")[1]
        claims = json.loads(_decoded(token))
        effect = isinstance(got, Claimed)
        if isinstance(got, Claimed):
            settle(self._receiver(url), got)
        self.arrivals.append(
            Arrival(url, claims["notificationId"], claims["eventNumber"], effect, "task" in json.loads(body))
        )

    def _receiver(self, url: str) -> Receiver:
        if url not in self._receivers:
            self._receivers[url] = Receiver(
                ISSUER, url, self._keys, self._store, self._store, _NoTasks(), (), Inbox(first=1), self._clock
            )
        return self._receivers[url]

    def _clock(self) -> int:
        return self._trial.world.now

    def _fetch(self) -> bytes:
        if self.keys_down:
            raise Unreachable("the key set cannot be had")
        document: Any = self._trial.world.table.get_document(JWKS)
        return str(document["body"]).encode()


class _NoTasks:
    def fetch(self, agent_url: str, task_id: str) -> Any:
        raise Unreachable(f"{agent_url} has no {task_id}")


class Deliveries(World):
    """A world in which authors, not agents, commit the events: a work message means nothing here."""

    on_message: Callable[[QueueMessage], None] = staticmethod(lambda _: None)

    def answer(self, message: QueueMessage) -> object:
        self.on_message(message)
        if not isinstance(message, DeliveryMessage):
            return None
        started = self.now
        return deliver(self.post, message, lambda: 60_000 - (self.now - started))


@dataclass
class Trial:
    """One fault kind with one seed: ``tasks`` tasks with ``configs`` webhooks each, one host per task."""

    seed: int
    tasks: int
    configs: int = 1
    faults: Faults = field(default_factory=NoFaults)
    between: Callable[[Any], Any] | None = None
    chunks: int = CHUNKS
    injected: int = 0
    deleted: dict[str, int] = field(default_factory=dict)
    ended_by_rule: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311 - a seed, not a secret
        self.world = Deliveries([], faults=_Switchable(self), between=self.between)
        self.strangers = Strangers(self)
        self.hooks: list[Hook] = []
        self.keys: list[TaskKey] = []
        world = self.world
        publisher = CardPublisher(world.table, world.clock, {}, ISSUER)
        self.rotation = KeyRotation(MemoryKeyRingStore(), _SomeKeys(), publisher, WAITS, 0)
        ensure_ring(self.rotation)
        faults = _Switchable(self)
        signer: Any = Frail(KeyRingSigner(self.rotation.store.load), "signer", faults)
        sender: Any = Frail(self.strangers, "receiver", faults)
        world.post = replace(world.post, signer=signer, sender=sender, chance=self.random.random)
        self.webhooks = replace(
            world.service.webhooks(), log=world.table, store=world.table, queues=world.queue, sealer=MemorySealer()
        )
        self.service = world.service._replace(log=world.table, queues=world.queue, webhooks=lambda: self.webhooks)

    def run(self, meddle: Callable[[], None] = lambda: None) -> Trial:
        """Every author writes, the faults happen, then they end and everything settles."""
        for number in range(self.tasks):
            self.world.plan(number * 90, lambda number=number: self._open(number))  # type: ignore[misc]
        meddle()
        self.world.wait(self.tasks * 90 + (self.chunks + 6) * STEP_MS)
        self.world.settle(60 * HOUR_MS)
        return self

    def rotate(self) -> None:
        rotate_ring(self.rotation)

    def revoke(self) -> None:
        ring = self.rotation.store.load()
        assert ring is not None
        revoke_key(self.rotation, ring.current.kid)

    def add(self, key: TaskKey, config_id: str, url: str) -> None:
        """Registers a webhook, or replaces the one with its id: what the old one had is not told any more."""
        for old in [hook for hook in self.hooks if (hook.key, hook.config_id) == (key, config_id)]:
            self.hooks.remove(old)
        self.strangers.expect(url, url)
        webhooks.add(self.webhooks, key, "echo", TaskPushNotificationConfig(url=url, id=config_id, token=url), "1.0")
        self.hooks.append(Hook(key, url, config_id))

    def replace(self, hook: Hook, url: str) -> None:
        self._remove(hook, lambda: self.add(hook.key, hook.config_id, url))

    def delete(self, hook: Hook) -> None:
        self.hooks.remove(hook)
        self._remove(hook, lambda: webhooks.delete(self.webhooks, hook.key, "echo", hook.config_id))

    def _remove(self, hook: Hook, work: Callable[[], object]) -> None:
        """Removes a webhook. All who are sending stand still meanwhile, perhaps for longer than their leases."""
        began, sending = self.world.now, self.strangers.under_way
        work()
        self.injected += sending if self.world.now - began >= CURSOR_LEASE_MS - POST_DEADLINE_MS else 0
        self.deleted[hook.url] = len(self.strangers.arrivals)

    def _open(self, number: int) -> None:
        url = f"https://h{number}.example.com/hook/0"
        self.strangers.expect(url, url)
        message = Message(message_id=f"message-{number}", role=Role.USER, parts=(Part(text="hi"),))
        request = SendMessageRequest(
            message=message,
            configuration=SendMessageConfiguration(
                return_immediately=True,
                task_push_notification_config=TaskPushNotificationConfig(url=url, id="c0", token=url),
            ),
        )
        task: Any = send(self.service, RequestContext(ME, "echo", "1.0"), request)
        key = ME.key(task.id)
        self.keys.append(key)
        self.hooks.append(Hook(key, url, "c0"))
        for config in range(1, self.configs):
            self.add(key, f"c{config}", f"https://h{number}.example.com/hook/{config}")
        writes = [self._take, *[self._chunk] * self.chunks, self._progress, self._end]
        for index, write in enumerate(writes, 1):
            self.world.plan(index * STEP_MS, lambda write=write: write(key))  # type: ignore[misc]

    def _take(self, key: TaskKey) -> None:
        snapshot = self.world.table.read_head(key)
        assert self.world.table.append(decisions.start_run(snapshot, now=self.world.now, by=self.world.ids.new()))

    def _chunk(self, key: TaskKey) -> None:
        snapshot, world = self.world.table.read_head(key), self.world
        n = snapshot.last + 1
        number, artifact = n - 2, Artifact(artifact_id="a", parts=(Part(text=f"{n} "),))
        last, fence = number == self.chunks, snapshot.head.fence
        event = ArtifactEvent(n, world.now, world.ids.new(), artifact, number > 1, last, (number, number), fence)
        assert world.table.append_chunk(snapshot.head, event)

    def _progress(self, key: TaskKey) -> None:
        self._report(key, TaskState.WORKING, Message(message_id="m", role=Role.AGENT, parts=(Part(text="nearly"),)))

    def _end(self, key: TaskKey) -> None:
        self._report(key, TaskState.COMPLETED, None)

    def _report(self, key: TaskKey, state: TaskState, message: Message | None) -> None:
        snapshot = self.world.table.read_head(key)
        change = decisions.report_status(
            snapshot, snapshot.head.fence, state, message, now=self.world.now, by=self.world.ids.new()
        )
        assert self.world.table.append(change)

    def result(self) -> Result:
        """What came of it, counted from the receivers' side."""
        logs = {key: self.world.events(key.task) for key in self.keys}
        told = [self._told(hook, logs[hook.key]) for hook in self.hooks if hook.url not in self.ended_by_rule]
        arrivals = self.strangers.arrivals
        ids = Counter(arrival.notification_id for arrival in arrivals)
        effects = Counter(arrival.notification_id for arrival in arrivals if arrival.effect)
        thrown = getattr(self.faults, "thrown", 0)
        return Result(
            events=sum(len(log) for log in logs.values()),
            posts=self.strangers.posts,
            injected=self.injected + thrown,
            lost=sum(lost for lost, _ in told),
            skipped=sum(skipped for _, skipped in told),
            disordered=sum(self._disordered(url) for url in {arrival.url for arrival in arrivals}),
            after_deletion=sum(self._after_deletion(url, index) for url, index in self.deleted.items()),
            extra=sum(count - 1 for count in ids.values()),
            doubled=sum(count - 1 for count in effects.values()),
            stuck=self._stuck(),
        )

    def _told(self, hook: Hook, log: list[Any]) -> tuple[int, int]:
        heard = [arrival.n for arrival in self.strangers.arrivals if arrival.url == hook.url and arrival.effect]
        first = min(heard, default=0)
        missing = {event.n for event in log} - set(range(1, first + 1)) - set(heard)
        allowed = may_be_left_out(log, "1.0", "all") | self._covered(hook, log)
        return len(missing - allowed), len(missing & allowed)

    def _covered(self, hook: Hook, log: list[Any]) -> set[int]:
        """What a later snapshot stood for: nothing that ends a task or needs its client."""
        last = max((told.n for told in self.strangers.arrivals if told.url == hook.url and told.snapshot), default=0)
        return {event.n for event in log if event.n <= last and not requires_notification(event)}

    def _disordered(self, url: str) -> int:
        heard = [arrival.n for arrival in self.strangers.arrivals if arrival.url == url and arrival.effect]
        return sum(later <= earlier for earlier, later in pairwise(heard))

    def _after_deletion(self, url: str, index: int) -> int:
        return sum(arrival.url == url for arrival in self.strangers.arrivals[index:])

    def _stuck(self) -> int:
        """Cursors that are neither at the end of their log nor ended by a rule."""
        cursors = [(key, cursor) for key in self.keys for cursor in self.world.table.list_cursors(key)]
        return sum(
            cursor.state is CursorState.ACTIVE and cursor.position < self.world.table.read_head(key).last
            for key, cursor in cursors
        )


@dataclass(frozen=True)
class Result:
    """The counts of a run. ``injected``: crashes, lost answers and whatever else may cost an extra POST."""

    events: int = 0
    posts: int = 0
    injected: int = 0
    lost: int = 0
    skipped: int = 0
    disordered: int = 0
    after_deletion: int = 0
    extra: int = 0
    doubled: int = 0
    stuck: int = 0

    def __add__(self, other: Result) -> Result:
        return Result(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    @property
    def sound(self) -> bool:
        """Whether everything holds that must."""
        broken = (self.lost, self.disordered, self.after_deletion, self.doubled, self.stuck)
        return not any(broken) and self.extra <= self.injected


class _Switchable:
    """The trial's faults, which may be set after its world is made."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial

    def before(self, port: str, call: str) -> None:
        self._trial.faults.before(port, call)

    def after(self, port: str, call: str) -> None:
        self._trial.faults.after(port, call)


class _SomeKeys(Es256Keys):
    """Signs the catalog, which nobody verifies here. There are no cards to sign."""

    def sign(self, key: Any, content: bytes) -> bytes:
        del key, content
        return bytes(64)


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
