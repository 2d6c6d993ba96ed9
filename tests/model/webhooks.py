"""Models of a webhook's cursor: deliveries, and the deletion and replacement of the webhook under them.

**Deliver**: two notifiers get the webhook's messages, the receiver refuses or accepts, and the task ends meanwhile.

**Die**: one of two notifiers dies at any call, and the clock moves past its lease.

**Delete** and **replace**: a client deletes or replaces the webhook while a notifier delivers.

Assumed: one clock; a notifier starts its request within the two seconds that the lease allows for (here: at once) after
it has read the clock, and the request ends within ``POST_DEADLINE_MS``, whatever the receiver does; the url is trusted;
a message may be taken before its delay is over; no circuit breaker is open.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from a2a_serverless.domain import decisions
from a2a_serverless.domain.cursors import CURSOR_LEASE_MS, POST_DEADLINE_MS, CursorState
from a2a_serverless.domain.errors import TaskNotCancelable
from a2a_serverless.domain.metrics import NULL_METRICS
from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.domain.outcomes import Outcome
from a2a_serverless.domain.queue_messages import DeliveryMessage
from a2a_serverless.protocol.v1 import TaskPushNotificationConfig
from a2a_serverless.services import webhooks
from a2a_serverless.services.circuit_breakers import CircuitBreakers
from a2a_serverless.services.deliver import deliver
from a2a_serverless.services.delivery_context import DeliveryContext
from a2a_serverless.services.relay import relay
from a2a_serverless.services.task_changes import change_task
from a2a_serverless.services.webhooks import Webhooks
from a2a_serverless.store.push_store import PushStore
from a2a_serverless.store.stores import BreakerStore
from a2a_serverless.testing.deployment import PlainSigner
from a2a_serverless.testing.memory import MemoryResolver, MemorySealer
from tests.model.explorer import BLOCKED, Actor, Model
from tests.model.ports import require
from tests.model.tasks import AGENT, KEY, START, check_log, create, read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.domain.cursors import Cursor
    from a2a_serverless.domain.push_configs import PushConfig
    from tests.model.explorer import World
    from tests.model.ports import Ports

FIRST, SECOND = "https://one.example.com/", "https://two.example.com/"
MESSAGE = DeliveryMessage(KEY, "hook")


class _Breakers(BreakerStore):
    def __init__(self) -> None:
        """Nothing is stored."""

    def get_open_breaker(self, host: str) -> None:
        """No breaker is open."""

    def store_open_breaker(self, host: str, open_breaker: object) -> None:
        """Not stored."""

    def claim_try(self, host: str, holder: str, until: int) -> bool:
        """Claimed by nobody."""
        del host, holder, until
        return True


class _Sender:
    """A receiver. A request has two steps, its beginning and its end, which may be other than 2xx."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def post(self, url: str, headers: Mapping[str, str], body: bytes, deadline_ms: int) -> Outcome:
        del body, deadline_ms
        n = int(json.loads(headers["Authorization"].removeprefix("Bearer "))["eventNumber"])
        self._ports.verify(f"begins the request for event {n}", lambda world: _begin(world, url))
        accepted = self._ports.ask(
            "ends the request: 2xx, or not", lambda world, variant: _end(world, url, n, variant), 2
        )
        return Outcome(status=200 if accepted else 500, address="192.0.2.1", connected=True, request_sent=True)


def _begin(world: World, url: str) -> None:
    require("flying" not in world.notes, "two requests for one webhook at a time")
    require(url not in world.notes.get("over", ()), "a request began after its webhook was deleted or replaced")
    world.notes["flying"] = (url, world.now)


def _end(world: World, url: str, n: int, variant: int) -> object:
    if variant and world.notes.get("accepts"):
        return BLOCKED
    world.notes.pop("flying", None)
    if variant == 0:
        require(n >= world.notes.get(url, 0), "a receiver got an event after a later one")
        world.notes[url] = n
    return variant == 0


def _may_pass(world: World, time: int) -> bool:
    """No request lasts longer than its deadline."""
    return "flying" not in world.notes or time <= world.notes["flying"][1] + POST_DEADLINE_MS


def _webhooks(ports: Ports) -> Webhooks:
    return Webhooks(
        log=ports.log,
        store=ports.push,
        queues=ports.queues,
        sealer=MemorySealer(),
        clock=ports.clock,
        ids=ports.ids,
        policy=EgressPolicy(),
        resolver=MemoryResolver().check,
        ownership=False,
    )


def _wanted(url: str) -> TaskPushNotificationConfig:
    return TaskPushNotificationConfig(url=url, id="hook")


def _prepare(ports: Ports) -> None:
    create(ports, webhooks.new_config(_webhooks(ports), KEY, _wanted(FIRST), "1.0"))
    ports.queues.enqueue(MESSAGE)


def _prepare_accepting(ports: Ports) -> None:
    _prepare(ports)
    ports.note("accepts everything", lambda notes: notes.update(accepts=True))


def _deliver(ports: Ports) -> None:
    receipt = ports.take(MESSAGE)
    context = DeliveryContext(
        log=ports.log,
        store=ports.push,
        queues=ports.queues,
        sender=_Sender(ports),
        signer=PlainSigner(),
        sealer=MemorySealer(),
        clock=ports.clock,
        ids=ports.ids,
        issuer="https://agents.example",
        chance=lambda: 0.5,
        breakers=CircuitBreakers(_Breakers()),
        metrics=NULL_METRICS,
    )
    deliver(context, MESSAGE, lambda: 60_000)
    ports.ack(receipt)


def _end_task(ports: Ports) -> None:
    by = ports.ids.new()
    with suppress(TaskNotCancelable):
        change_task(ports.log, KEY, AGENT, lambda snapshot: decisions.cancel(snapshot, now=ports.clock.now(), by=by))
    relay(ports.push, ports.queues, [KEY], ports.clock.now())


def _over(ports: Ports) -> None:
    def note(world: World) -> None:
        flying = world.notes.get("flying")
        require(not flying or flying[0] != FIRST, "a deletion or replacement returned while a request was under way")
        world.notes["over"] = (FIRST,)

    ports.verify("returns", note)


def _delete(ports: Ports) -> None:
    webhooks.delete(_webhooks(ports), KEY, AGENT, "hook")
    _over(ports)


def _replace(ports: Ports) -> None:
    webhooks.add(_webhooks(ports), KEY, AGENT, _wanted(SECOND), "1.0")
    _over(ports)


def _stored(world: World) -> tuple[PushConfig | None, Cursor | None]:
    store = PushStore(world.items)
    return store.get_config(KEY, "hook"), store.get_cursor(KEY, "hook")


def _check(world: World) -> None:
    check_log(world)
    config, cursor = _stored(world)
    if config and cursor:
        require(config.incarnation == cursor.incarnation, "a configuration has the cursor of another")
        require(cursor.position <= world.notes.get(config.url, 0), "a cursor has passed an event that nobody accepted")


def _check_end(world: World) -> None:
    """What is not delivered has a message, or a time at which the sweeper comes for it or (after a death) its task."""
    config, cursor = _stored(world)
    head, events = read(world)
    assert head
    if config and cursor and cursor.state is CursorState.ACTIVE and cursor.position < events[-1].n:
        found = world.queue or cursor.due_at is not None
        found = found or (not world.notes.get("accepts") and head.due_at is not None)
        require(found, "an event was not delivered, and nothing will deliver it")
    require(config is None or cursor, "a configuration has no cursor")


def models() -> list[Model]:
    notifiers = tuple(Actor(f"notifier {name}", (_deliver,), mortal=True) for name in "AB")
    writer = Actor("task", (_end_task,))
    shared: dict[str, Any] = {"prepare": _prepare, "check": _check, "check_end": _check_end, "may_pass": _may_pass}
    accepting = shared | {"prepare": _prepare_accepting}
    late = (START, START + POST_DEADLINE_MS, START + CURSOR_LEASE_MS + 1)
    return [
        Model("webhook: deliveries", (*notifiers, writer), times=(START,), **accepting),
        Model("webhook: a notifier that dies or is late", notifiers, times=late, deaths=1, **shared),
        Model("webhook: deletion", (notifiers[0], Actor("client", (_delete,))), times=late, **shared),
        Model("webhook: replacement", (notifiers[0], Actor("client", (_replace,))), times=(START,), **accepting),
    ]
