"""Webhooks that fail: silent hosts, connections that are gone, unknown owners, and what operators do about them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.challenges import CHALLENGE_BURST
from a2a_serverless.domain.circuit_breaker import FORCED_TRY_MS, OPEN_MS, OpenBreaker
from a2a_serverless.domain.cursors import Cursor, CursorState, Verification
from a2a_serverless.domain.errors import TaskNotFound, UnsupportedOperation
from a2a_serverless.domain.outcomes import OutboundError, Outcome
from a2a_serverless.domain.queue_messages import DeliveryMessage
from a2a_serverless.protocol.additions import Delivery
from a2a_serverless.protocol.v1 import TaskPushNotificationConfig
from a2a_serverless.services import webhooks
from a2a_serverless.services.circuit_breakers import REFRESH_MS, CircuitBreakers, CircuitOpen
from a2a_serverless.services.deliver import DeliveryOutcome, deliver
from a2a_serverless.services.webhook_statuses import list_deliveries
from a2a_serverless.testing.simulated_loop import START
from a2a_serverless_tools.operators.deliveries import (
    DeliveryAdmin,
    DeliverySelection,
    list_exhausted,
    pause,
    redrive,
    redrive_all,
    resume,
)
from tests.echo import Writer
from tests.world import HOUR_MS, ME, World, accepting, configured, echoing, webhook

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


def test_each_task_reaches_its_webhook_when_the_host_is_back() -> None:
    world, _ = world_of(SILENT)
    tasks = [world.send("hello").id for _ in range(5)]
    world.wait(60_000)
    world.receiver.answers = accepting
    world.settle()
    for task_id in tasks:
        heard = {got.n for got in world.receiver.effects() if dict(got.body).get("task") or got.n}
        assert world.events(task_id)[-1].n in heard
        assert cursor(world, ME.key(task_id)).position == world.events(task_id)[-1].n


def test_a_host_with_an_open_circuit_delays_no_other_host() -> None:
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


def test_an_exhausted_delivery_is_counted_and_listed_with_its_attempts() -> None:
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


def test_an_attempt_under_way_at_a_pause_arrives_once() -> None:
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
def test_redriving_or_resuming_a_delivery_in_another_state_is_refused(change: object) -> None:
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
def test_no_event_is_sent_for_a_configuration_that_was_deleted_after_its_message() -> None:
    world, key = world_of()
    config_id = cursor(world, key).config_id
    webhooks.delete(world.service.webhooks(), key, "echo", config_id)
    assert deliver(world.post, DeliveryMessage(key, config_id), lambda: 60_000) is DeliveryOutcome.NOTHING
    world.settle()
    assert (world.receiver.tried, world.receiver.challenges) == ([], [])


def test_no_challenge_is_sent_for_a_task_that_has_expired_after_its_message() -> None:
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


def held_world() -> tuple[World, TaskKey]:
    """A world whose host has been silent for three requests, and a task whose webhook waits for it without an attempt.

    The breaker has opened four times, so the webhook waits for minutes.
    """
    world, _ = world_of(SILENT)
    world.receiver.echoes = lambda _: SILENT
    for _ in range(2):
        world.send("hello")
    world.wait(4 * 60_000)
    return world, ME.key(world.send("held").id)


def shown(world: World, key: TaskKey) -> Any:
    (status,) = list_deliveries(world.table, world.table, key, "echo")
    return json.loads(Delivery.of(status).json_bytes())


def mended(world: World) -> None:
    world.receiver.answers, world.receiver.echoes = accepting, echoing


def test_a_webhook_that_its_host_holds_says_until_when_and_after_how_many_unanswered_requests() -> None:
    world, key = held_world()
    world.wait(2000)
    waiting = shown(world, key)
    assert (waiting["state"], waiting["failuresInARow"], waiting["attempts"]) == ("active", 0, [])
    assert waiting["hostPaused"] == {"until": waiting["nextAttemptAt"], "unanswered": len(world.receiver.challenges)}


def test_a_webhook_that_its_host_holds_has_a_message_for_its_next_attempt() -> None:
    world, key = held_world()
    world.wait(2000)
    held = cursor(world, key)
    messages = [at for at, message in world.queue.waiting if message == DeliveryMessage(key, held.config_id)]
    assert world.now < held.next_at <= max(messages) < held.next_at + 1_000


def test_a_webhook_that_is_tried_again_is_not_held_any_more() -> None:
    world, key = held_world()
    world.wait(2000)
    mended(world)
    world.settle()
    assert "hostPaused" not in shown(world, key)
    assert cursor(world, key).unanswered == 0


def test_a_webhook_of_another_host_shows_nothing_of_it() -> None:
    world, _ = held_world()
    other = configured(world.request("hi"), task_push_notification_config=webhook("https://other.example.com/a2a"))
    key = ME.key(world.sent(other).id)
    world.wait(2000)
    assert "hostPaused" not in shown(world, key)


@pytest.mark.parametrize("change", [redrive, resume])
def test_a_redrive_or_resume_tries_a_held_webhook_now(change: Any) -> None:
    world, key = held_world()
    world.wait(2000)
    mended(world)
    config_id, asked = cursor(world, key).config_id, world.now
    if change is resume:
        pause(breakers(world), key, config_id)
    change(breakers(world), key, config_id)
    world.wait(2000)
    assert cursor(world, key).position == world.events(key.task)[-1].n
    assert world.receiver.posts[0].at - asked < 2000


def test_after_the_answer_to_a_redriven_webhook_no_instance_holds_the_host() -> None:
    world, key = held_world()
    world.wait(2000)
    mended(world)
    other = replace(world.post, breakers=CircuitBreakers(world.table))
    with pytest.raises(CircuitOpen):
        other.breakers.check("hooks.example.com", world.now)
    redrive(breakers(world), key, cursor(world, key).config_id)
    world.wait(REFRESH_MS)
    other.breakers.check("hooks.example.com", world.now)


def test_redrives_reach_a_silent_host_once_in_half_a_minute_from_all_instances_together() -> None:
    world, key = held_world()
    keys = [key, *(ME.key(world.send("held too").id) for _ in range(5))]
    world.wait(2000)
    instances = [replace(world.post, breakers=CircuitBreakers(world.table)) for _ in range(3)]
    before, began = len(world.receiver.challenges), world.now
    for _ in range(10):
        for instance in instances:
            for one in keys:
                redrive(breakers(world), one, cursor(world, one).config_id)
                deliver(instance, DeliveryMessage(one, cursor(world, one).config_id), lambda: 60_000)
        world.now += 1000
    assert world.now - began < FORCED_TRY_MS
    assert len(world.receiver.challenges) - before == 1


def test_a_redriven_webhook_that_may_not_pass_at_once_passes_within_half_a_minute() -> None:
    world, key = held_world()
    second = ME.key(world.send("held too").id)
    world.wait(2000)
    world.receiver.takes = 1000
    mended(world)
    for one in (key, second):
        redrive(breakers(world), one, cursor(world, one).config_id)
    world.wait(FORCED_TRY_MS + 10_000)
    assert [cursor(world, one).position for one in (key, second)] == [
        world.events(one.task)[-1].n for one in (key, second)
    ]


def test_a_redrive_does_not_outlast_its_time_at_a_host_that_stays_silent() -> None:
    world, key = held_world()
    world.wait(2000)
    redrive(breakers(world), key, cursor(world, key).config_id)
    world.wait(1000)
    tried = len(world.receiver.challenges)
    world.wait(20_000)
    assert len(world.receiver.challenges) == tried
    assert cursor(world, key).redriven_at == 0


def test_a_redrive_of_a_host_tries_what_waits_there_too() -> None:
    world, key = held_world()
    world.wait(2000)
    mended(world)
    other = DeliverySelection(host="other.example.com")
    assert list(redrive_all(breakers(world), other)) == []
    here = DeliverySelection(host="hooks.example.com")
    listed = {one.key for one in list_exhausted(breakers(world), 10, here)}
    assert key in listed
    assert {one for one, _ in redrive_all(breakers(world), here)} == listed
    world.settle(60_000)
    assert list_exhausted(breakers(world), 10, here) == []


def test_challenges_that_are_limited_are_told_and_a_redrive_sends_one_now() -> None:
    world, key = world_of()
    world.receiver.echoes = lambda _: Outcome(status=404)
    tasks = [key, *(ME.key(world.send("hello").id) for _ in range(CHALLENGE_BURST - 1))]
    world.wait(10_000)
    held = [one for one in tasks if cursor(world, one).unanswered]
    assert shown(world, held[0])["hostPaused"]["unanswered"] == CHALLENGE_BURST
    mended(world)
    redrive(breakers(world), held[0], cursor(world, held[0]).config_id)
    world.wait(1000)
    assert cursor(world, held[0]).verification is Verification.VERIFIED
