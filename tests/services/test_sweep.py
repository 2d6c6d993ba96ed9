"""The sweeper's minutes: who is rung for, how often, and when nobody looks any more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain import head as heads
from a2a_serverless.domain.bells import Bell, DeliveryBell, WorkBell
from a2a_serverless.domain.head import GRACE_MS, LEASE_MS, Look
from a2a_serverless.domain.model import PushRequest, TaskState
from a2a_serverless.domain.outbound import Outcome
from a2a_serverless.domain.push import CursorState
from a2a_serverless.domain.url_policy import EgressPolicy
from a2a_serverless.services import push
from a2a_serverless.services.sweep import sweep
from tests.echo import Asker, Writer
from tests.world import HOOK, LIFE, ME, MINUTE_MS, World

if TYPE_CHECKING:
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import TaskKey

HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


class Scene:
    """A task that was just sent, and a sweeper that comes when it is told to. Nothing else happens by itself."""

    def __init__(self, *, webhook: bool = False, agent: Any = None) -> None:
        self.world = World([(agent or Writer(seconds=0)).agent], policy=EgressPolicy(trusted_domains=("example.com",)))
        wanted = PushRequest(HOOK, "hook") if webhook else None
        request = replace(self.world.request("hello", push=False), push=wanted)
        self.key: TaskKey = ME.key(self.world.sent(request).task_id)
        self.world.queue.lose()

    @property
    def look(self) -> Look:
        look: Look = self.world.table.look(self.key)
        return look

    @property
    def head(self) -> Head:
        return self.look.head

    def sweep(self, after_ms: int = 0) -> list[Bell]:
        """The bells that a sweep after so long rings."""
        self.world.now += after_ms
        self.world.queue.lose()
        sweep(self.world.broom)
        return self.world.queue.ready()

    def take(self) -> None:
        assert self.world.table.append(heads.take(self.look, now=self.world.now, by="runner"))

    def run(self) -> None:
        self.world.run(self.key)
        self.world.queue.lose()


# ---- Work


def test_nobody_is_looked_at_before_its_time() -> None:
    scene = Scene()
    before = scene.head
    assert scene.sweep(GRACE_MS - 1) == []
    assert scene.head == before
    assert sweep(scene.world.broom) == 0


def test_rule_05_a_task_that_nobody_took_is_rung_for_with_waits_that_double_up_to_an_hour() -> None:
    scene = Scene()
    waits = []
    scene.world.now += GRACE_MS
    for _ in range(9):
        assert scene.sweep() == [WorkBell(scene.key)]
        assert scene.head.due_at
        waits.append((scene.head.due_at - scene.world.now) // MINUTE_MS)
        scene.world.now = scene.head.due_at
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_a_task_that_is_running_is_left_alone_until_its_lease_is_over() -> None:
    scene = Scene()
    scene.world.now += GRACE_MS
    scene.take()
    scene.world.table.touch(scene.head, replace(scene.head, due_at=scene.world.now, rev=scene.head.rev + 1))
    assert scene.sweep() == []
    assert (scene.head.due_at, scene.head.rings) == (scene.world.now + LEASE_MS, 0)


def rung_after(scene: Scene, *sweeps_ms: int) -> int:
    """How long after now the first of the sweeps that rings comes, when each follows the one before by so long."""
    began = scene.world.now
    next(None for after_ms in sweeps_ms if scene.sweep(after_ms) == [WorkBell(scene.key)])
    return scene.world.now - began


@pytest.mark.parametrize("first_ms", range(1_000, MINUTE_MS + 1, 7_000))
def test_rule_06_a_task_whose_runner_died_is_rung_for_within_a_minute_of_its_lease(first_ms: int) -> None:
    scene = Scene()
    scene.take()
    assert LEASE_MS <= rung_after(scene, first_ms, *[MINUTE_MS] * 3) <= LEASE_MS + MINUTE_MS


def test_rule_06_so_it_is_when_it_was_just_rung_for_and_the_sweepers_next_minute_is_a_short_one() -> None:
    scene = Scene()
    assert scene.sweep(GRACE_MS) == [WorkBell(scene.key)]
    scene.take()
    assert rung_after(scene, MINUTE_MS - 500, MINUTE_MS) <= LEASE_MS + MINUTE_MS


def test_a_task_that_waits_for_its_client_is_not_rung_for() -> None:
    scene = Scene(agent=Asker())
    scene.run()
    assert scene.head.state is TaskState.INPUT_REQUIRED
    assert [scene.sweep(DAY_MS) for _ in range(6)] == [[]] * 6
    assert scene.head.due_at == scene.head.deadline


# ---- The end of a life


@pytest.mark.requirement(51)
def test_a_task_that_reaches_its_maximum_life_fails_and_says_why() -> None:
    scene = Scene(agent=Asker())
    scene.run()
    scene.sweep(LIFE.max_life_ms)
    task = scene.world.get(scene.key.task)
    assert (task.status.state, task.status.timestamp) == (TaskState.FAILED, scene.world.now)
    assert task.status.message
    assert task.status.message.text() == "The task reached its maximum life."
    assert scene.head.due_at is None


def test_a_task_that_reaches_its_maximum_life_fails_also_while_it_is_running() -> None:
    scene = Scene()
    scene.world.now += LIFE.max_life_ms
    scene.take()
    scene.world.table.touch(scene.head, replace(scene.head, due_at=scene.world.now, rev=scene.head.rev + 1))
    scene.sweep()
    assert (scene.head.state, scene.head.lease_until) == (TaskState.FAILED, 0)


def test_an_ended_task_does_not_fail_at_the_end_of_its_life() -> None:
    scene = Scene()
    scene.run()
    scene.sweep(LIFE.max_life_ms)
    assert scene.head.state is TaskState.COMPLETED


# ---- Webhooks


def test_an_ended_task_without_webhooks_is_never_due() -> None:
    scene = Scene()
    scene.run()
    assert scene.head.due_at is None


def test_rule_05_a_webhook_that_is_behind_is_rung_for_until_it_has_caught_up() -> None:
    scene = Scene(webhook=True)
    scene.run()
    assert scene.sweep(MINUTE_MS) == [DeliveryBell(scene.key, "hook")]
    assert scene.head.due_at == scene.world.now + MINUTE_MS
    scene.world.answer(DeliveryBell(scene.key, "hook"))
    assert scene.sweep(MINUTE_MS) == []
    assert scene.head.due_at is None
    assert [scene.sweep(DAY_MS) for _ in range(3)] == [[]] * 3


def test_rule_05_a_webhook_that_is_behind_is_rung_for_also_while_the_task_runs_on_in_silence() -> None:
    """The bell for the first event got lost, and the agent has nothing to say for an hour."""
    scene = Scene(webhook=True)
    scene.take()
    rung = []
    for _ in range(3):
        scene.world.now += 20_000
        scene.world.table.touch(scene.head, heads.renewed(scene.head, 1, now=scene.world.now))
        rung += scene.sweep()
    assert DeliveryBell(scene.key, "hook") in rung
    assert WorkBell(scene.key) not in rung


def test_a_webhook_of_a_waiting_task_is_rung_for_and_then_the_task_is_due_at_its_end() -> None:
    scene = Scene(webhook=True, agent=Asker())
    scene.run()
    assert scene.sweep(MINUTE_MS) == [DeliveryBell(scene.key, "hook")]
    scene.world.answer(DeliveryBell(scene.key, "hook"))
    assert scene.sweep(2 * MINUTE_MS) == []
    assert scene.head.due_at == scene.head.deadline


def test_a_webhook_that_failed_is_rung_for_when_its_next_try_is_due() -> None:
    scene = Scene(webhook=True)
    scene.run()
    scene.world.receiver.answers = lambda _: Outcome(status=500)
    scene.world.answer(DeliveryBell(scene.key, "hook"))
    cursor = scene.world.table.cursor(scene.key, "hook")
    scene.sweep(MINUTE_MS)
    again = scene.world.table.cursor(scene.key, "hook")
    assert again == replace(cursor, due_at=scene.world.now + MINUTE_MS)
    assert DeliveryBell(scene.key, "hook") in scene.sweep(MINUTE_MS)


def test_a_webhook_that_was_given_up_is_rung_for_no_more() -> None:
    scene = Scene(webhook=True)
    scene.run()
    cursor = scene.world.table.cursor(scene.key, "hook")
    scene.world.table.move(scene.key, cursor, replace(cursor, state=CursorState.GONE))
    assert [scene.sweep(MINUTE_MS) for _ in range(3)] == [[]] * 3
    assert scene.head.due_at is None


# ---- Races


def test_a_task_that_moved_on_during_the_sweep_is_left_as_it_is() -> None:
    scene = Scene()
    scene.world.now += MINUTE_MS
    taken: list[bool] = []

    class Hurried:
        def ring(self, bell: Bell, delay_s: int = 0) -> None:
            scene.take()
            taken.append(True)
            scene.world.queue.ring(bell, delay_s)

    sweep(replace(scene.world.broom, bells=Hurried()))
    assert taken == [True]
    assert (scene.head.fence, scene.head.due_at, scene.head.rings) == (1, scene.world.now + GRACE_MS, 0)


def test_a_sweep_says_how_much_it_looked_at() -> None:
    scene = Scene(webhook=True)
    for _ in range(3):
        scene.world.send("more", push=False)
    push.add(scene.world.desk.webhooks, scene.key, "echo", PushRequest(HOOK, "late"), "1.0")
    scene.world.now += MINUTE_MS
    assert sweep(scene.world.broom) == 5, "four tasks and a webhook"
