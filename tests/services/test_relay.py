"""From the table's stream to delivery messages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from a2a_serverless.domain.cursors import CursorState
from a2a_serverless.domain.queue_messages import DeliveryMessage
from a2a_serverless.protocol.v1 import TaskPushNotificationConfig
from a2a_serverless.services import webhooks
from a2a_serverless.services.relay import relay
from tests.echo import Writer
from tests.world import HOOK, ME, World


def world_with_webhooks(*names: str) -> tuple[World, str]:
    world = World([Writer().agent])
    task_id = world.send("hello", push=False).id
    for name in names:
        webhooks.add(
            world.service.webhooks(), ME.key(task_id), "echo", TaskPushNotificationConfig(url=HOOK, id=name), "1.0"
        )
    world.queue.clear()
    return world, task_id


def relayed(world: World, *task_ids: str) -> tuple[int, list[object]]:
    """How many messages it says that it enqueued, and the messages."""
    enqueued = relay(world.table, world.queue, [ME.key(task_id) for task_id in task_ids], world.now)
    return enqueued, list(world.queue.ready())


def test_rule_05_the_relay_enqueues_once_for_each_configuration_and_batch() -> None:
    world, task_id = world_with_webhooks("a", "b")
    queues = [DeliveryMessage(ME.key(task_id), name) for name in ("a", "b")]
    assert relayed(world, task_id, task_id, task_id) == (2, queues)


def test_tasks_without_webhooks_and_tasks_that_are_gone_ring_nothing() -> None:
    world, task_id = world_with_webhooks()
    assert relayed(world, task_id, "unknown") == (0, [])


@pytest.mark.parametrize("state", [state for state in CursorState if state is not CursorState.ACTIVE])
def test_only_active_configurations_are_enqueued(state: CursorState) -> None:
    world, task_id = world_with_webhooks("a")
    key = ME.key(task_id)
    cursor = world.table.get_cursor(key, "a")
    world.table.move_cursor(key, cursor, replace(cursor, state=state))
    assert relayed(world, task_id) == (0, [])


def test_a_configuration_that_waits_for_its_next_try_is_not_enqueued() -> None:
    world, task_id = world_with_webhooks("a")
    key = ME.key(task_id)
    cursor = world.table.get_cursor(key, "a")
    waiting = replace(cursor, next_at=world.now + 1)
    world.table.move_cursor(key, cursor, waiting)
    assert relayed(world, task_id) == (0, [])
    world.now += 1
    assert relayed(world, task_id)[0] == 1
