"""What the notifier does beyond the plain case: hosts that are silent, connections that are gone, owners unknown."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.circuit_breaker import OPEN_MS, OpenBreaker
from a2a_serverless.domain.errors import TaskNotFound, UnsupportedOperation
from a2a_serverless.domain.outbound import OutboundError, Outcome
from a2a_serverless.domain.push import Cursor, CursorState, Verification
from a2a_serverless.domain.queue_messages import DeliveryMessage
from a2a_serverless.protocol.additions import Delivery, DeliverySelection
from a2a_serverless.protocol.v1 import TaskPushNotificationConfig
from a2a_serverless.services import webhooks
from a2a_serverless.services.deliver import DeliveryOutcome, deliver
from a2a_serverless.services.delivery_admin import (
    DeliveryAdmin,
    list_deliveries,
    list_exhausted,
    pause,
    redrive,
    resume,
)
from a2a_serverless.testing import START
from tests.echo import Writer
from tests.world import HOUR_MS, ME, World, accepting, configured, webhook

if TYPE_CHECKING:
    from a2a_serverless.domain.model import TaskKey

SILENT = Outcome(error=OutboundError.TIMEOUT)
GONE_CONNECTION = Outcome(error=OutboundError.RESET, reused=True, connected=True, request_sent=True)
HOURS_50 = 50 * HOUR_MS


def world_of(answer: Outcome | None = None) -> tuple[World, TaskKey]:
    """A world with one finished task whose webhook answers like that, and its key."""
    world = World([Writer().agent])
    if answer:
        world.receiver.answers = lambda _: answer
    return world, ME.key(world.send("hello").id)


def breakers(world: World) -> DeliveryAdmin:
    return DeliveryAdmin(world.table, world.table, world.queue, world.clock)


def cursor(world: World, key: TaskKey) -> Cursor:
    (found,) = world.table.list_cursors(key)
    assert isinstance(found, Cursor)
    return found


def names(world: World) -> list[str]:
    return [name for name, _ in world.metrics.counted]


def test_a_connection_that_was_gone_already_costs_no_time_and_no_attempt() -> None:
    world, key = world_of()
    world.receiver.takes = 10
    world.receiver.answers = lambda tried: GONE_CONNECTION if tried == 1 else accepting(tried)
    world.settle()
    first, second = world.receiver.tried[1], world.receiver.tried[2]
    assert (first.notification_id, second.at - first.at) == (second.notification_id, 10)
    ids = [json.loads(got.headers["Authorization"].removeprefix("Bearer "))["jti"] for got in (first, second)]
    assert len(set(ids)) == 2
    tries = [attempt for attempt in world.table.list_attempts(key) if attempt.n == first.n]
    assert [(attempt.error, attempt.status) for attempt in tries] == [("reset", None), (None, 200)]


def test_a_connection_that_is_gone_twice_is_a_failure() -> None:
    world, key = world_of(GONE_CONNECTION)
    world.wait(5000)
    assert len(world.receiver.tried) == 2
    assert cursor(world, key).attempt == 1


def test_a_silent_host_is_left_alone_and_told_of_by_one_item() -> None:
    world, _ = world_of(SILENT)
    world.receiver.echoes = lambda _: SILENT
    for _ in range(5):
        world.send("hello")
    world.wait(4000)
    assert len(world.receiver.challenges) == 3
    open_breaker = world.table.get_open_breaker("hooks.example.com")
    assert open_breaker == OpenBreaker(START + OPEN_MS)


def test_when_the_host_is_back_everybody_hears_everything() -> None:
    world, _ = world_of(SILENT)
    tasks = [world.send("hello").id for _ in range(5)]
    world.wait(60_000)
    world.receiver.answers = accepting
    world.settle()
    for task_id in tasks:
        heard = {got.n for got in world.receiver.effects() if dict(got.body).get("task") or got.n}
        assert world.events(task_id)[-1].n in heard
        assert cursor(world, ME.key(task_id)).position == world.events(task_id)[-1].n


def test_a_host_with_an_open_trip_delays_no_other_host() -> None:
    world, _ = world_of()
    world.receiver.answers = lambda _: SILENT
    for _ in range(4):
        world.send("hello")
    world.wait(3000)
    world.receiver.answers = accepting
    sent = world.now
    world.sent(configured(world.request("hi"), task_push_notification_config=webhook("https://other.example.com/a2a")))
    world.wait(2000)
    assert world.receiver.posts[0].at - sent < 2000


def test_what_is_given_up_is_counted_kept_and_found() -> None:
    world, key = world_of(Outcome(status=500))
    world.settle(HOURS_50 + 10 * HOUR_MS)
    assert cursor(world, key).state is CursorState.EXHAUSTED
    assert [what for name, what in world.metrics.counted if name == "DeliveryExhausted"] == [
        {"tenant": "tenant", "owner": "me", "task": key.task, "config": cursor(world, key).config_id}
    ]
    (found,) = list_exhausted(breakers(world), 10, DeliverySelection())
    assert (found.key, len(found.attempts)) == (key, 13)  # twelve tries, and the challenge before them


def test_a_redrive_delivers_what_was_given_up_with_all_tries_ahead_of_it() -> None:
    world, key = world_of(Outcome(status=500))
    world.settle(HOURS_50 + 10 * HOUR_MS)
    world.receiver.answers = accepting
    redrive(breakers(world), key, cursor(world, key).config_id)
    world.settle()
    assert cursor(world, key).position == world.events(key.task)[-1].n
    assert list_exhausted(breakers(world), 10, DeliverySelection()) == []
    assert len([attempt for attempt in world.table.list_attempts(key) if attempt.status == 500]) == 12


def test_a_paused_webhook_hears_nothing_until_it_is_resumed() -> None:
    world, key = world_of()
    config_id = cursor(world, key).config_id
    pause(breakers(world), key, config_id)
    world.settle()
    assert world.receiver.posts == []
    resume(breakers(world), key, config_id)
    world.settle()
    assert world.receiver.effects()[-1].n == world.events(key.task)[-1].n


def test_what_is_under_way_when_it_is_paused_arrives_once() -> None:
    world, key = world_of()
    world.receiver.takes = 1000
    config_id = cursor(world, key).config_id
    world.plan(1500, lambda: pause(breakers(world), key, config_id))
    world.wait(30_000)
    heard = len(world.receiver.posts)
    assert cursor(world, key).state is CursorState.PAUSED
    assert cursor(world, key).lease_until == 0
    resume(breakers(world), key, config_id)
    world.settle()
    assert heard == 1
    assert len(world.receiver.posts) == len(world.receiver.effects())


@pytest.mark.parametrize("change", [redrive, resume])
def test_what_makes_no_sense_is_refused_with_the_reason(change: object) -> None:
    world, key = world_of()
    config_id = cursor(world, key).config_id
    if change is redrive:
        pause(breakers(world), key, config_id)
    with pytest.raises(UnsupportedOperation, match="paused"):
        change(breakers(world), key, config_id)  # type: ignore[operator]
    with pytest.raises(TaskNotFound):
        change(breakers(world), key, "another")  # type: ignore[operator]


def test_without_an_answer_to_its_challenge_a_url_hears_nothing_and_counts_as_refused_in_the_end() -> None:
    world, key = world_of()
    world.receiver.echoes = lambda _: Outcome(status=200, body=b"{}")
    world.settle(HOURS_50)
    assert world.receiver.tried == []
    assert len(world.receiver.challenges) == 5
    (found,) = world.table.list_cursors(key)
    assert found.verification is Verification.REFUSED


def test_a_redrive_asks_a_refused_url_once_more() -> None:
    world, key = world_of()
    echoes, world.receiver.echoes = world.receiver.echoes, lambda _: Outcome(status=404)
    world.settle(HOURS_50)
    world.receiver.echoes = echoes
    redrive(breakers(world), key, cursor(world, key).config_id)
    world.settle()
    assert world.receiver.effects()[-1].n == world.events(key.task)[-1].n


def test_with_warnings_only_an_unknown_owner_hears_everything_and_operators_hear_of_it() -> None:
    world, key = world_of()
    world.post = replace(world.post, enforce_ownership=False)
    world.receiver.echoes = lambda _: Outcome(status=404)
    world.settle()
    assert cursor(world, key).position == world.events(key.task)[-1].n
    assert len(world.receiver.challenges) == 1
    assert names(world) == ["DeliveryUnverified"] * len(world.receiver.posts)


@pytest.mark.requirement(19)
def test_nothing_is_sent_for_a_configuration_that_was_deleted_after_its_message() -> None:
    world, key = world_of()
    config_id = cursor(world, key).config_id
    webhooks.delete(world.service.webhooks(), key, "echo", config_id)
    assert deliver(world.post, DeliveryMessage(key, config_id), lambda: 60_000) is DeliveryOutcome.NOTHING
    world.settle()
    assert (world.receiver.tried, world.receiver.challenges) == ([], [])


def test_nothing_is_sent_for_a_task_that_has_expired_after_its_message() -> None:
    world, key = world_of()
    config_id = cursor(world, key).config_id
    world.now = world.table.read_head(key).head.expires * 1000
    assert deliver(world.post, DeliveryMessage(key, config_id), lambda: 60_000) is DeliveryOutcome.NOTHING
    assert world.receiver.challenges == []


def test_a_webhook_of_a_finished_task_gets_the_final_state() -> None:
    world = World([Writer().agent])
    task_id = world.send("hello", push=False).id
    world.settle()
    webhooks.add(
        world.service.webhooks(),
        ME.key(task_id),
        "echo",
        TaskPushNotificationConfig(url="https://late.example.com/"),
        "1.0",
    )
    world.settle()
    (got,) = world.receiver.posts
    assert got.body["task"]["status"]["state"] == "TASK_STATE_COMPLETED"  # type: ignore[call-overload,index]


def test_a_configuration_that_is_replaced_on_the_way_begins_anew_at_its_new_url() -> None:
    world, key = world_of()
    world.receiver.takes = 1000
    config_id = cursor(world, key).config_id
    wanted = TaskPushNotificationConfig(url="https://new.example.com/", id=config_id)
    world.plan(2500, lambda: webhooks.add(world.service.webhooks(), key, "echo", wanted, "1.0"))
    world.settle()
    claims = [json.loads(got.headers["Authorization"].removeprefix("Bearer ")) for got in world.receiver.tried]
    moved = [said["aud"] for said in claims].index("https://new.example.com/")
    assert all(said["aud"] == "https://new.example.com/" for said in claims[moved:])
    assert claims[-1]["eventNumber"] == world.events(key.task)[-1].n


def test_the_owner_sees_verification_position_and_attempts_and_no_secret() -> None:
    world, key = world_of()
    world.receiver.answers = lambda tried: Outcome(status=503) if tried == 0 else accepting(tried)
    world.settle()
    shown: Any = {
        "deliveries": [
            json.loads(Delivery.of(one).json_bytes()) for one in list_deliveries(world.table, world.table, key, "echo")
        ]
    }
    (one,) = shown["deliveries"]
    assert (one["verification"], one["state"], one["hasToken"]) == ("verified", "active", True)
    assert one["deliveredUpTo"] == one["lastEvent"] == world.events(key.task)[-1].n
    assert [attempt["status"] for attempt in one["attempts"]][:3] == [200, 503, 200]
    assert "sealed" not in json.dumps(shown)
    assert str(world.table.list_configs(key)[0].token) not in json.dumps(shown)


def test_deliveries_of_somebody_elses_task_do_not_exist() -> None:
    world, key = world_of()
    with pytest.raises(TaskNotFound):
        list_deliveries(world.table, world.table, key._replace(owner="other"), "echo")
    with pytest.raises(TaskNotFound):
        list_deliveries(world.table, world.table, key, "another-agent")
