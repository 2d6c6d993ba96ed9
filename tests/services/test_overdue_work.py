"""Work that nobody does sets off an alarm within a quarter of an hour; work that is done never does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.adapters.metrics import EmfMetrics
from a2a_serverless.domain.outcomes import Outcome
from a2a_serverless.services.sweep import sweep
from a2a_serverless.store.stores import agent_pause
from tests.echo import agent_of
from tests.faults.plans import Broken, Frail
from tests.functions.cloudwatch import CloudWatch, minutes_to_alarm
from tests.world import HOUR_MS, MINUTE_MS, World

if TYPE_CHECKING:
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.task_context import TaskContext

DAY_MS = 24 * HOUR_MS


async def works(task: TaskContext) -> None:
    await task.step("one", lambda: "done")
    await task.sleep("nap", 1200)
    await task.emit("result.md", "done", last=True)


def watched(world: World) -> CloudWatch:
    """What CloudWatch learns of this world, with Observability=basic."""
    cloudwatch = CloudWatch(lambda: world.now)
    metrics = EmfMetrics("A2AServerless", "stack", cloudwatch.write, every=False)
    world.service = world.service._replace(metrics=metrics)
    world.engine = replace(world.engine, metrics=metrics)
    world.post = replace(world.post, metrics=metrics)
    world.sweeper = replace(world.sweeper, metrics=metrics)
    return cloudwatch


class WithoutWorker(World):
    """No worker takes a message: none can start, all are throttled, or no container runs."""

    busy = True


class WithoutTable(World):
    """The worker takes messages, and cannot reach the table."""

    def run(self, key: TaskKey) -> object:
        raise Broken(key.task)


@pytest.mark.parametrize("kind", [WithoutWorker, WithoutTable])
@pytest.mark.parametrize("after_ms", range(0, MINUTE_MS, 13_000))
def test_a_task_that_no_worker_runs_sets_off_its_alarm_within_a_quarter_of_an_hour_and_keeps_it(
    kind: type[World], after_ms: int
) -> None:
    world = kind([agent_of(works)])
    cloudwatch = watched(world)
    world.wait(after_ms)
    sent_at = world.now
    world.send(push=False)
    world.wait(5 * HOUR_MS)
    (loud,) = cloudwatch.loud_at(sent_at, world.now).items()
    assert loud[0] == "OldestDueTaskAlarm"
    assert 5 <= loud[1][0] <= 15
    assert loud[1] == [*range(loud[1][0], 5 * 60 + 1)], "it does not go to and fro"


def test_a_task_that_is_overdue_after_its_own_wait_is_late_from_the_end_of_the_wait_on() -> None:
    world = World([agent_of(works)])
    cloudwatch = watched(world)
    world.send(push=False)
    world.wait(MINUTE_MS)
    world.busy = True
    woken_at = world.now + 19 * MINUTE_MS
    world.wait(19 * MINUTE_MS)
    assert cloudwatch.values("OldestDueTask") == []
    world.wait(HOUR_MS)
    assert 5 <= cloudwatch.loud_at(woken_at, world.now)["OldestDueTaskAlarm"][0] <= 15
    assert max(cloudwatch.values("OldestDueTask")) <= 3_600


def test_webhooks_that_no_notifier_sends_set_off_their_alarm_within_a_quarter_of_an_hour() -> None:
    class WithoutNotifier(World):
        notifiers = 0

    world = WithoutNotifier([agent_of(works)])
    cloudwatch = watched(world)
    world.send()
    world.wait(21 * MINUTE_MS)
    ended_at = world.now
    world.wait(3 * HOUR_MS)
    loud = cloudwatch.loud_at(ended_at, world.now)
    assert [*loud] == ["OldestDueDeliveryAlarm"]
    assert loud["OldestDueDeliveryAlarm"] == [*range(loud["OldestDueDeliveryAlarm"][0], 3 * 60 + 1)]
    assert loud["OldestDueDeliveryAlarm"][0] <= 15


class Unreachable:
    """No call of a port is answered."""

    def before(self, port: str, call: str) -> None:
        raise Broken(f"{port}.{call}")

    def after(self, port: str, call: str) -> None:
        """Is never reached."""


def test_a_sweeper_that_cannot_reach_the_table_fails_each_minute_and_so_sets_off_the_alarm_of_errors() -> None:
    world = World([agent_of(works)])
    log: Any = Frail(world.sweeper.log, "table", Unreachable())
    sweeper = replace(world.sweeper, log=log)
    with pytest.raises(Broken):
        sweep(sweeper)
    assert minutes_to_alarm("FunctionErrorsAlarm", values_a_minute=1) <= 15
    assert minutes_to_alarm("ThrottlesAlarm", values_a_minute=1) <= 15


def test_a_healthy_busy_day_sets_off_nothing() -> None:
    world = World([agent_of(works)])
    world.receiver.answers = lambda n: Outcome(status=200 if n % 3 else 503)
    cloudwatch = watched(world)
    for _ in range(24 * 6):
        world.send()
        world.wait(10 * MINUTE_MS)
    assert cloudwatch.lines == []


def test_a_paused_agent_sets_off_nothing() -> None:
    world = World([agent_of(works)])
    cloudwatch = watched(world)
    world.table.add_pause(agent_pause("echo"), world.now)
    world.wait(MINUTE_MS)
    world.send(push=False)
    world.wait(DAY_MS)
    assert cloudwatch.lines == []


def test_an_idle_month_sets_off_nothing_and_makes_no_metric() -> None:
    world = World([agent_of(works)])
    cloudwatch = watched(world)
    for _ in range(30 * 24):
        world.now += HOUR_MS
        sweep(world.sweeper)
    assert cloudwatch.lines == []
