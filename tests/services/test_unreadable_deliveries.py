"""What cannot be read for a webhook is tried again on schedule, recorded, and given up in the end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain.cursors import CursorState
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.domain.queue_messages import DeliveryMessage
from a2a_serverless.protocol.v1 import TaskPushNotificationConfig
from a2a_serverless.services import webhooks
from a2a_serverless.services.deliver import DeliveryOutcome, deliver
from a2a_serverless.store.payloads import PayloadCorrupted
from a2a_serverless_tools.operators.deliveries import DeliveryAdmin, redrive
from tests.echo import Writer
from tests.faults.plans import NoFaults
from tests.world import HOOK, HOUR_MS, ME, World

if TYPE_CHECKING:
    from a2a_serverless.domain.cursors import Cursor
    from a2a_serverless.protocol.versions import ProtocolVersion

HOURS = 100 * HOUR_MS
UNREADABLE = {
    "the events": ("table.read", "1.0"),
    "the task": ("table.read", "0.3"),
    "the secret": ("sealer.open", "1.0"),
}


class Raising(NoFaults):
    """Calls that raise, always."""

    def __init__(self, error: type[Exception] = PayloadCorrupted) -> None:
        self.error = error
        self.resolver: set[str] = set()
        self.calls = 0

    def before(self, port: str, call: str) -> None:
        if f"{port}.{call}" in self.resolver:
            self.calls += 1
            raise self.error


class Scene:
    """A task that has run and whose webhook has heard nothing of it yet."""

    def __init__(
        self, version: ProtocolVersion = "1.0", error: type[Exception] = PayloadCorrupted, *, ran: bool = True
    ) -> None:
        self.faults = Raising(error)
        trusting = EgressPolicy(trusted_domains=("example.com",))
        self.world = World([Writer(seconds=0).agent], policy=trusting, faults=self.faults)
        self.key = ME.key(self.world.send("hello", push=False).id)
        if ran:
            self.world.settle()
        self.world.queue.clear()
        webhooks.add(
            self.world.service.webhooks(),
            self.key,
            "echo",
            TaskPushNotificationConfig(url=HOOK, id="hook", token="secret"),
            version,
        )

    @property
    def cursor(self) -> Cursor:
        cursor: Cursor = self.world.table.get_cursor(self.key, "hook")
        return cursor

    @property
    def exhausted(self) -> int:
        return [name for name, _ in self.world.metrics.counted].count("DeliveryExhausted")


@pytest.mark.parametrize(("call", "version"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_delivery_that_can_never_be_read_is_given_up_after_twelve_attempts(
    call: str, version: ProtocolVersion
) -> None:
    scene = Scene(version)
    scene.faults.resolver = {call}
    scene.world.settle(HOURS)
    assert scene.faults.calls == 12
    assert (scene.cursor.state, scene.cursor.attempt, scene.cursor.lease_until) == (CursorState.EXHAUSTED, 12, 0)
    tried = [(one.n, one.k, one.status, one.error, one.kid) for one in scene.world.table.list_attempts(scene.key)]
    assert tried == [(7, k, None, "unreadable", None) for k in range(1, 13)]
    assert scene.exhausted == 1
    assert scene.world.receiver.tried == []


@pytest.mark.parametrize("call", ["table.get_config", "table.read_head"])
def test_a_configuration_or_task_that_can_never_be_read_is_given_up_too(call: str) -> None:
    scene = Scene()
    scene.faults.resolver = {call}
    scene.world.settle(HOURS)
    assert (scene.cursor.state, scene.cursor.attempt) == (CursorState.EXHAUSTED, 12)
    assert scene.exhausted == 1


@pytest.mark.parametrize("call", ["table.read", "table.get_config", "sealer.open"])
def test_an_event_that_can_be_read_again_goes_out_with_the_next_attempt(call: str) -> None:
    scene = Scene()
    scene.faults.resolver = {call}
    scene.world.wait(HOUR_MS)
    assert 1 < scene.cursor.attempt < 12
    scene.faults.resolver = set()
    scene.world.settle()
    assert (scene.cursor.position, scene.cursor.attempt) == (7, 0)
    assert [got.n for got in scene.world.receiver.effects()] == [7]


def test_an_exhausted_delivery_that_was_unreadable_can_be_redriven() -> None:
    scene = Scene()
    scene.faults.resolver = {"table.read"}
    scene.world.settle(HOURS)
    scene.faults.resolver = set()
    world = scene.world
    redrive(DeliveryAdmin(world.table, world.table, world.queue, world.clock), scene.key, "hook")
    world.settle()
    assert [got.n for got in world.receiver.effects()] == [7]


def test_a_store_that_has_too_much_to_do_costs_no_attempt() -> None:
    scene = Scene(error=Overloaded)
    scene.faults.resolver = {"table.read"}
    with pytest.raises(Overloaded):
        deliver(scene.world.post, DeliveryMessage(scene.key, "hook"), lambda: 60_000)
    assert scene.cursor.attempt == 0


def test_a_notifier_that_could_not_read_and_was_overtaken_changes_nothing() -> None:
    scene = Scene()

    class Overtaken(Raising):
        def before(self, port: str, call: str) -> None:
            if f"{port}.{call}" in self.resolver:
                cursor = scene.cursor
                other = replace(cursor, lease_no=cursor.lease_no + 1, holder="other")
                assert scene.world.table.move_cursor(scene.key, cursor, other)
                raise PayloadCorrupted

    faults = Overtaken()
    faults.resolver = {"table.read"}
    scene.faults.before = faults.before  # type: ignore[method-assign]
    ending = deliver(scene.world.post, DeliveryMessage(scene.key, "hook"), lambda: 60_000)
    assert ending is DeliveryOutcome.NOTHING
    assert (scene.cursor.holder, scene.cursor.attempt) == ("other", 0)
    assert scene.world.table.list_attempts(scene.key) == []


@pytest.mark.parametrize("by", ["a failed read", "a redrive"])
def test_a_webhook_that_has_had_everything_is_due_no_longer(by: str) -> None:
    scene = Scene()
    scene.world.settle()
    world, message = scene.world, DeliveryMessage(scene.key, "hook")
    if by == "a redrive":
        given_up = replace(scene.cursor, state=CursorState.EXHAUSTED)
        assert world.table.move_cursor(scene.key, scene.cursor, given_up)
        redrive(DeliveryAdmin(world.table, world.table, world.queue, world.clock), scene.key, "hook")
    else:
        scene.faults.resolver = {"table.read_head"}
        deliver(world.post, message, lambda: 60_000)
        scene.faults.resolver = set()
    assert scene.cursor.due_at
    world.wait(HOUR_MS)
    assert scene.cursor == replace(scene.cursor, due_at=None, attempt=0, next_at=0)
    assert scene.cursor.position == scene.world.table.read_head(scene.key).last
    assert world.queue.waiting == []


def test_an_event_that_comes_while_a_webhook_ceases_to_be_due_is_told() -> None:
    scene = Scene(ran=False)
    world = scene.world
    deliver(world.post, DeliveryMessage(scene.key, "hook"), lambda: 60_000)
    scene.faults.resolver = {"table.read_head"}
    deliver(world.post, DeliveryMessage(scene.key, "hook"), lambda: 60_000)
    scene.faults.resolver = set()
    world.now = scene.cursor.next_at
    settling = [lambda: world.cancel(scene.key.task)]

    def cancel_once(port: str, call: str) -> None:
        if (port, call) == ("table", "move_cursor") and settling:
            settling.pop()()

    scene.faults.before = cancel_once  # type: ignore[method-assign]
    deliver(world.post, DeliveryMessage(scene.key, "hook"), lambda: 60_000)
    assert [got.n for got in world.receiver.effects()] == [1, 2]
