"""The sweeper's minutes: what is enqueued again, how often, and until when."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from a2a_serverless.domain import decisions
from a2a_serverless.domain.cursors import CursorState
from a2a_serverless.domain.decisions import AHEAD_MS, GRACE_MS, LATE_MS, RUN_LEASE_MS
from a2a_serverless.domain.events import Incoming
from a2a_serverless.domain.new_task import NewTask
from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.domain.outcomes import Outcome
from a2a_serverless.domain.queue_messages import DeliveryMessage, QueueMessage, WorkMessage
from a2a_serverless.protocol.v1 import Message, Part, Role, TaskPushNotificationConfig, TaskState
from a2a_serverless.services import webhooks
from a2a_serverless.services.sweep import BATCH, FAILURES, MARGIN_MS, OVERDUE_MS, sweep
from a2a_serverless.store import keys
from a2a_serverless.store.keys import SHARDS
from a2a_serverless.testing.deployment import LIFE
from a2a_serverless.testing.memory import MemoryMetrics
from a2a_serverless.testing.simulated_loop import START
from tests.echo import Asker, Writer, agent_of
from tests.faults.plans import Count
from tests.simulated import Killed
from tests.world import HOOK, ME, MINUTE_MS, World, configured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from a2a_serverless import TaskContext
    from a2a_serverless.domain.head import CurrentHead, Head
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.store.items import DueItem

MANY: Final = int(os.environ.get("SWEEP_ITEMS", "2000"))
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


class Scene:
    """A task that was just sent, and a sweeper that comes when it is told to. Nothing else happens by itself."""

    def __init__(self, *, webhook: bool = False, agent: Any = None) -> None:
        self.world = World([(agent or Writer(seconds=0)).agent], policy=EgressPolicy(trusted_domains=("example.com",)))
        wanted = TaskPushNotificationConfig(url=HOOK, id="hook") if webhook else None
        request = configured(self.world.request("hello", push=False), task_push_notification_config=wanted)
        self.key: TaskKey = ME.key(self.world.sent(request).id)
        self.world.queue.clear()

    @property
    def read_head(self) -> CurrentHead:
        snapshot: CurrentHead = self.world.table.read_head(self.key)
        return snapshot

    @property
    def head(self) -> Head:
        return self.read_head.head

    def sweep(self, after_ms: int = 0) -> list[QueueMessage]:
        """The messages that a sweep after so long enqueues."""
        self.world.now += after_ms
        self.world.queue.clear()
        sweep(self.world.sweeper)
        return self.world.queue.ready()

    def take(self) -> None:
        assert self.world.table.append(decisions.start_run(self.read_head, now=self.world.now, by="runner"))

    def run(self) -> None:
        self.world.run(self.key)
        self.world.queue.clear()


# ---- Work


def test_a_sweep_leaves_a_task_alone_before_it_is_due() -> None:
    scene = Scene()
    before = scene.head
    assert scene.sweep(GRACE_MS - 1) == []
    assert scene.head == before
    assert sweep(scene.world.sweeper) == 0


def test_rule_05_a_task_that_nobody_took_is_enqueued_with_waits_that_double_up_to_an_hour() -> None:
    scene = Scene()
    waits = []
    scene.world.now += GRACE_MS
    for _ in range(9):
        assert scene.sweep() == [WorkMessage(scene.key)]
        assert scene.head.due_at
        waits.append((scene.head.due_at - scene.world.now) // MINUTE_MS)
        scene.world.now = scene.head.due_at
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_a_task_that_is_running_is_left_alone_until_its_lease_is_over() -> None:
    scene = Scene()
    scene.world.now += GRACE_MS
    scene.take()
    scene.world.table.update_head(scene.head, scene.head._replace(due_at=scene.world.now, rev=scene.head.rev + 1))
    assert scene.sweep() == []
    assert (scene.head.due_at, scene.head.sweeps_in_a_row) == (scene.world.now + RUN_LEASE_MS, 0)


def enqueued_after(scene: Scene, *sweeps_ms: int) -> int:
    """How long after now the first sweep that enqueues comes, when each follows the one before by so long."""
    began = scene.world.now
    next(None for after_ms in sweeps_ms if scene.sweep(after_ms) == [WorkMessage(scene.key)])
    return scene.world.now - began


@pytest.mark.parametrize("first_ms", range(1_000, MINUTE_MS + 1, 7_000))
def test_rule_06_a_task_whose_runner_died_is_enqueued_within_a_minute_of_its_lease(first_ms: int) -> None:
    scene = Scene()
    scene.take()
    assert RUN_LEASE_MS <= enqueued_after(scene, first_ms, *[MINUTE_MS] * 3) <= RUN_LEASE_MS + MINUTE_MS


def test_rule_06_a_task_that_was_just_enqueued_is_enqueued_again_within_a_minute_of_its_lease() -> None:
    scene = Scene()
    assert scene.sweep(GRACE_MS) == [WorkMessage(scene.key)]
    scene.take()
    assert enqueued_after(scene, MINUTE_MS - 500, MINUTE_MS) <= RUN_LEASE_MS + MINUTE_MS


def test_a_task_that_waits_for_its_client_is_not_enqueued() -> None:
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
    scene.world.table.update_head(scene.head, scene.head._replace(due_at=scene.world.now, rev=scene.head.rev + 1))
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


def test_an_ended_task_whose_calls_still_run_is_enqueued_so_that_they_are_canceled() -> None:
    scene = Scene()
    scene.run()
    assert scene.world.table.update_head(scene.head, decisions.mark_orphan(scene.head, now=scene.world.now))
    assert scene.sweep(GRACE_MS) == [WorkMessage(scene.key)]
    assert scene.sweep(MINUTE_MS) == [WorkMessage(scene.key)], "until somebody has canceled them"


def test_rule_05_a_webhook_that_is_behind_is_enqueued_until_it_has_caught_up() -> None:
    scene = Scene(webhook=True)
    scene.run()
    assert scene.sweep(MINUTE_MS) == [DeliveryMessage(scene.key, "hook")]
    assert scene.head.due_at == scene.world.now + MINUTE_MS
    scene.world.answer(DeliveryMessage(scene.key, "hook"))
    assert scene.sweep(MINUTE_MS) == []
    assert scene.head.due_at is None
    assert [scene.sweep(DAY_MS) for _ in range(3)] == [[]] * 3


def test_rule_05_a_webhook_that_is_behind_is_enqueued_also_while_the_task_runs_on_in_silence() -> None:
    """The message for the first event got lost, and the agent has nothing to say for an hour."""
    scene = Scene(webhook=True)
    scene.take()
    enqueued = []
    for _ in range(3):
        scene.world.now += 20_000
        scene.world.table.update_head(scene.head, decisions.renew_lease(scene.head, 1, now=scene.world.now))
        enqueued += scene.sweep()
    assert DeliveryMessage(scene.key, "hook") in enqueued
    assert WorkMessage(scene.key) not in enqueued


def test_a_webhook_of_a_waiting_task_is_enqueued_and_then_the_task_is_due_at_its_end() -> None:
    scene = Scene(webhook=True, agent=Asker())
    scene.run()
    assert scene.sweep(MINUTE_MS) == [DeliveryMessage(scene.key, "hook")]
    scene.world.answer(DeliveryMessage(scene.key, "hook"))
    assert scene.sweep(2 * MINUTE_MS) == []
    assert scene.head.due_at == scene.head.deadline


@pytest.mark.parametrize("seconds", [600, 1000])
def test_rule_05_a_webhook_that_is_behind_is_enqueued_each_minute_also_while_the_task_sleeps(seconds: int) -> None:
    async def work(task: TaskContext) -> None:
        await task.sleep("nap", seconds)

    scene = Scene(webhook=True, agent=SimpleNamespace(agent=agent_of(work)))
    scene.run()
    told = [DeliveryMessage(scene.key, "hook") in scene.sweep(MINUTE_MS) for _ in range(8)]
    assert told.count(True) >= 4, "waits double"
    scene.world.answer(DeliveryMessage(scene.key, "hook"))
    scene.world.queue.clear()
    scene.world.settle()
    assert scene.world.get(scene.key.task).status.timestamp - START <= seconds * 1000 + 62_000


@pytest.mark.parametrize("hours", [2, 5, 48])
def test_a_webhook_that_refuses_delays_no_sleep_of_its_task(hours: int) -> None:
    ends: list[int] = []

    async def work(task: TaskContext) -> None:
        await task.sleep("nap", hours * 3600)
        ends.append(scene.world.now)

    scene = Scene(webhook=True, agent=SimpleNamespace(agent=agent_of(work)))
    scene.world.receiver.answers = lambda _: Outcome(status=500)
    began = scene.world.now
    scene.run()
    scene.world.wait((hours + 2) * HOUR_MS)
    assert 0 <= ends[0] - began - hours * HOUR_MS <= 3_000


def test_a_webhook_that_failed_is_enqueued_when_its_next_try_is_due() -> None:
    scene = Scene(webhook=True)
    scene.run()
    scene.world.receiver.answers = lambda _: Outcome(status=500)
    scene.world.answer(DeliveryMessage(scene.key, "hook"))
    cursor = scene.world.table.get_cursor(scene.key, "hook")
    scene.sweep(MINUTE_MS)
    again = scene.world.table.get_cursor(scene.key, "hook")
    assert again == replace(cursor, due_at=scene.world.now + MINUTE_MS)
    assert DeliveryMessage(scene.key, "hook") in scene.sweep(MINUTE_MS)


def test_a_webhook_that_was_given_up_is_enqueued_no_more() -> None:
    scene = Scene(webhook=True)
    scene.run()
    cursor = scene.world.table.get_cursor(scene.key, "hook")
    scene.world.table.move_cursor(scene.key, cursor, replace(cursor, state=CursorState.GONE))
    assert [scene.sweep(MINUTE_MS) for _ in range(3)] == [[]] * 3
    assert scene.head.due_at is None


# ---- Races


def test_a_task_that_moved_on_during_the_sweep_is_left_as_it_is() -> None:
    scene = Scene()
    scene.world.now += MINUTE_MS
    taken: list[bool] = []

    class Hurried:
        def __getattr__(self, name: str) -> Any:
            return getattr(scene.world.queue, name)

        def enqueue_many(self, queues: Sequence[QueueMessage]) -> None:
            scene.take()
            taken.append(True)
            scene.world.queue.enqueue_many(queues)

    sweep(replace(scene.world.sweeper, queues=cast("Any", Hurried())))
    assert taken == [True]
    assert (scene.head.fence, scene.head.due_at, scene.head.sweeps_in_a_row) == (1, scene.world.now + GRACE_MS, 0)


def test_a_sweep_says_how_much_it_looked_at() -> None:
    scene = Scene(webhook=True)
    for _ in range(3):
        scene.world.send("more", push=False)
    webhooks.add(
        scene.world.service.webhooks(), scene.key, "echo", TaskPushNotificationConfig(url=HOOK, id="late"), "1.0"
    )
    scene.world.now += MINUTE_MS
    assert sweep(scene.world.sweeper) == 5, "four tasks and a webhook"


# ---- Much that is due


class Crowd:
    """Tasks that nobody took, all due, and every call of the sweeper's noted."""

    def __init__(self, count: int) -> None:
        self.noted = Count(frozenset({"table", "queue"}))
        self.world = World([Writer().agent], faults=self.noted)
        self.keys = [ME.key("x")._replace(task=f"task-{number}") for number in range(count)]
        for number, key in enumerate(self.keys):
            message = Message(
                message_id=f"m-{number}", role=Role.USER, parts=(Part(text="hello"),), context_id="context"
            )
            head, event = decisions.submit(
                key, "echo", "context", Incoming(message), now=START, by=f"by-{number}", life=LIFE, push=False
            )
            self.world.table.create(NewTask(head, event, None))
        self.world.now += GRACE_MS

    @property
    def enqueued(self) -> list[str]:
        """The tasks for which messages were enqueued."""
        return [message.key.task for message in self.world.queue.ready()]

    def sweep(self, remaining_ms: Callable[[], int] = lambda: HOUR_MS, **instead: Any) -> int:
        self.noted.calls.clear()
        return sweep(replace(self.world.sweeper, **instead), remaining_ms)


def test_a_sweep_goes_on_until_everything_due_is_looked_at_for_a_read_and_a_write_each() -> None:
    crowd = Crowd(MANY)
    assert crowd.sweep() == MANY
    assert sorted(crowd.enqueued) == sorted(key.task for key in crowd.keys)
    calls = Counter(crowd.noted.calls)
    assert calls.pop("queue.enqueue_many") <= MANY // BATCH + SHARDS
    assert calls == {"table.read_head": MANY, "table.update_head": MANY}
    assert crowd.sweep() == 0
    assert crowd.noted.calls == []


def test_a_sweep_whose_time_ends_leaves_the_rest_to_the_next_and_no_shard_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    crowd = Crowd(4 * SHARDS * BATCH)
    left = iter([HOUR_MS] * SHARDS + [MARGIN_MS - 1])
    assert crowd.sweep(lambda: next(left)) == SHARDS * BATCH
    (line,) = caplog.records
    assert (line.getMessage(), line.__dict__["count"]) == ("time is over, the next sweep goes on", SHARDS * BATCH)
    shards = Counter(keys.shard(ME.key(task)) for task in crowd.enqueued)
    assert shards == dict.fromkeys(range(SHARDS), BATCH)
    crowd.sweep()
    assert sorted(crowd.enqueued) == sorted(key.task for key in crowd.keys)


def test_an_index_that_lags_costs_a_read_for_what_was_moved_and_enqueues_nothing() -> None:
    crowd = Crowd(300)
    table = crowd.world.table

    class Lagging:
        """Tells in each shard what was due when it was made."""

        def __init__(self) -> None:
            self.entries = {shard: list(table.list_due(shard, crowd.world.now)) for shard in range(SHARDS)}

        def __getattr__(self, name: str) -> Any:
            return getattr(crowd.world.sweeper.log, name)

        def list_due(self, shard: int, _: int) -> Iterator[DueItem]:
            return iter(self.entries[shard])

    lagging = Lagging()
    assert crowd.sweep(log=lagging) == crowd.sweep(log=lagging) == 300
    assert Counter(crowd.noted.calls) == {"table.read_head": 300}
    assert len(crowd.enqueued) == 300


def test_two_sweepers_at_once_move_each_task_once() -> None:
    crowd = Crowd(500)
    world = crowd.world

    class Other:
        """Another sweeper does its whole round before the first message of this one is enqueued."""

        came = False

        def enqueue_many(self, queues: Sequence[QueueMessage]) -> None:
            if not self.came:
                self.came = True
                crowd.sweep()
            world.queue.enqueue_many(queues)

    crowd.sweep(queues=Other())
    assert {key.task for key in crowd.keys} == set(crowd.enqueued)
    assert len(crowd.enqueued) <= 500 + BATCH, "once by the other, and once more what this one had looked at"
    found = [world.table.read_head(key).head for key in crowd.keys]
    assert {(head.due_at, head.sweeps_in_a_row) for head in found} == {(world.now + MINUTE_MS, 1)}


def test_a_sweeper_that_dies_between_enqueuing_and_writing_enqueues_again() -> None:
    crowd = Crowd(50)

    class Dying:
        def enqueue_many(self, queues: Sequence[QueueMessage]) -> None:
            crowd.world.queue.enqueue_many(queues)
            raise Killed

    with pytest.raises(Killed):
        crowd.sweep(queues=Dying())
    crowd.sweep()
    assert {key.task for key in crowd.keys} == set(crowd.enqueued)


def test_a_queue_that_fails_fails_the_sweep_and_what_is_due_stays_due() -> None:
    crowd = Crowd(50)

    class Down:
        def enqueue_many(self, queues: Sequence[QueueMessage]) -> None:
            del queues
            raise ConnectionError

    with pytest.raises(ConnectionError):
        crowd.sweep(queues=Down())
    assert crowd.sweep() == 50
    assert len(crowd.enqueued) == 50


def test_a_task_that_waits_for_another_is_looked_at_once_an_hour() -> None:
    scene = Scene()

    def wait_again() -> None:
        scene.take()
        head, now = scene.head, scene.world.now
        waiting = decisions.suspend(head, head.fence, head.wake, now=now, wake_at=now + decisions.SUSPEND_MS)
        assert scene.world.table.update_head(head, waiting)

    wait_again()
    began, looks = scene.world.now, []
    while scene.world.now < began + 3 * HOUR_MS + 10 * MINUTE_MS:
        scene.sweep(MINUTE_MS)
        for at, _ in scene.world.queue.waiting:
            scene.world.now = at
            looks.append((at - began) // MINUTE_MS)
            wait_again()
        scene.world.queue.clear()
    assert looks == [60, 120, 180]


@pytest.mark.parametrize("left_ms", [1, 2_001, 60_000, decisions.DELAY_LIMIT_MS])
def test_a_task_that_waits_for_no_longer_than_a_queue_can_is_enqueued_for_the_end_of_its_wait(left_ms: int) -> None:
    scene = Scene()
    scene.take()
    now = scene.world.now + GRACE_MS
    waiting = decisions.suspend(scene.head, 1, scene.head.wake, now=scene.world.now, wake_at=now + left_ms)
    assert scene.world.table.update_head(scene.head, waiting._replace(due_at=now))
    assert scene.sweep(GRACE_MS) == []
    assert scene.world.queue.waiting == [(now + -(-left_ms // 1000) * 1000, WorkMessage(scene.key))]
    assert (scene.head.due_at, scene.head.sweeps_in_a_row) == (now + left_ms + LATE_MS, 0)
    scene.world.now += left_ms
    assert scene.sweep() == [], "the message is under way"


def test_a_task_whose_wait_is_over_is_enqueued_at_once() -> None:
    scene = Scene()
    scene.take()
    now = scene.world.now
    waiting = decisions.suspend(scene.head, 1, scene.head.wake, now=now, wake_at=now + MINUTE_MS)
    assert scene.world.table.update_head(scene.head, waiting._replace(due_at=now + MINUTE_MS))
    assert scene.sweep(MINUTE_MS) == [WorkMessage(scene.key)]
    assert scene.head.due_at == now + 2 * MINUTE_MS


# ---- How late deliveries are


def lateness(scene: Scene) -> float:
    """What a sweep records, in seconds; 0 if it records nothing."""
    metrics = MemoryMetrics()
    sweep(replace(scene.world.sweeper, metrics=metrics))
    assert metrics.counted == [("Sweeps", {})]
    values = {name: value for name, value, _ in metrics.measured}
    assert values.keys() <= {"OldestDueDelivery"}
    return values.get("OldestDueDelivery", 0)


def test_a_delivery_is_late_by_the_seconds_since_its_task_ended() -> None:
    scene = Scene(webhook=True)
    assert lateness(scene) == 0, "nothing is due"
    scene.world.now += GRACE_MS
    assert lateness(scene) == 0, "the task goes on"
    scene.run()
    ended = scene.head.status_at
    scene.world.now = ended + OVERDUE_MS - 1
    assert lateness(scene) == 0, "the next sweep is a minute later"
    scene.world.now = ended + 999_999
    assert lateness(scene) == 999


def test_a_delivery_that_waits_for_its_next_attempt_is_late_by_the_seconds_since_then() -> None:
    scene = Scene(webhook=True)
    scene.run()
    scene.world.receiver.answers = lambda _: Outcome(status=500)
    scene.world.answer(DeliveryMessage(scene.key, "hook"))
    cursor = scene.world.table.get_cursor(scene.key, "hook")
    assert scene.head.status_at < cursor.next_at < cursor.due_at
    scene.world.now = cursor.next_at
    assert lateness(scene) == 0
    scene.world.now = cursor.next_at + 999_999
    assert lateness(scene) == 999


def test_the_end_of_a_life_is_counted() -> None:
    scene, metrics = Scene(), MemoryMetrics()
    scene.world.now += LIFE.max_life_ms
    sweep(replace(scene.world.sweeper, metrics=metrics))
    assert metrics.counted == [("TaskStates", {"state": "failed", "task": scene.key.task}), ("Sweeps", {})]


def test_of_two_sweepers_one_enqueues_the_message_that_ends_a_wait() -> None:
    scene = _sleeping(HOUR_MS)
    scene.world.now += HOUR_MS - AHEAD_MS
    world, told = scene.world, list[QueueMessage]()

    class Other:
        """Another sweeper does its whole round before this one writes."""

        def __getattr__(self, name: str) -> Any:
            return getattr(world.table, name)

        def update_head(self, before: Head, after: Head) -> bool:
            sweep(world.sweeper)
            return bool(world.table.update_head(before, after))

    other: Any = Other()
    sweep(replace(world.sweeper, log=other))
    told += [message for _, message in world.queue.waiting]
    assert told == [WorkMessage(scene.key)]
    assert [at for at, _ in world.queue.waiting] == [scene.head.wake_at]


def test_rule_05_a_sweeper_that_dies_before_it_enqueues_the_end_of_a_wait_delays_it_by_a_minute() -> None:
    scene = _sleeping(HOUR_MS)
    scene.world.now += HOUR_MS - AHEAD_MS

    class Dying:
        def enqueue(self, message: QueueMessage, delay_s: int = 0) -> None:
            del message, delay_s
            raise Killed

    with pytest.raises(Killed):
        sweep(replace(scene.world.sweeper, queues=cast("Any", Dying())))
    assert scene.sweep(AHEAD_MS + LATE_MS) == [WorkMessage(scene.key)]


def _sleeping(ms: int) -> Scene:
    scene = Scene()
    scene.take()
    asleep = decisions.suspend(
        scene.head, scene.head.fence, scene.head.wake, now=scene.world.now, wake_at=scene.world.now + ms
    )
    assert scene.world.table.update_head(scene.head, asleep)
    return scene


# ---- What cannot be looked at


class Newer:
    """A table of which only a newer release can read some tasks."""

    def __init__(self, crowd: Crowd, unread: int) -> None:
        self._log = crowd.world.sweeper.log
        self.unread = {key.task for key in crowd.keys[:unread]}
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def read_head(self, key: TaskKey) -> Any:
        if key.task in self.unread:
            self.asked.append(key.task)
            raise RuntimeError("of another form")
        return self._log.read_head(key)


@pytest.mark.parametrize("unread", [1, 10, 1000])
def test_items_that_cannot_be_read_keep_nobody_waiting_and_the_sweep_ends_well(
    unread: int, caplog: pytest.LogCaptureFixture
) -> None:
    crowd, metrics = Crowd(unread + 100), MemoryMetrics()
    newer = Newer(crowd, unread)
    assert crowd.sweep(log=newer, metrics=metrics) == unread + 100
    assert sorted(crowd.enqueued) == sorted(key.task for key in crowd.keys[unread:])
    assert ("ItemsPostponed", unread, {}) in metrics.measured
    assert [name for name, _ in metrics.counted] == ["Sweeps"]
    told = [record for record in caplog.records if record.getMessage() == "not swept, postponed"]
    assert len(told) == min(unread, FAILURES)
    assert {(line.__dict__["error"], line.__dict__["config"]) for line in told} == {("RuntimeError", None)}
    assert {line.__dict__["task"] for line in told} <= newer.unread


def test_an_item_that_cannot_be_read_is_met_ever_less_often_and_at_once_when_it_can() -> None:
    crowd = Crowd(30)
    newer = Newer(crowd, 30)
    met = []
    for minute in range(250):
        crowd.sweep(log=newer)
        if newer.asked:
            met.append((minute, len(newer.asked)))
        newer.asked.clear()
        crowd.world.now += MINUTE_MS
    assert met == [(minute, 30) for minute in (0, 1, 3, 7, 15, 31, 63, 123, 183, 243)]
    newer.unread.clear()
    crowd.world.now += HOUR_MS
    crowd.sweep(log=newer)
    assert len(crowd.enqueued) == 30


def test_a_store_that_refuses_everything_fails_the_sweep_after_a_few_tries() -> None:
    crowd = Crowd(MANY)

    class Down(Newer):
        def postpone(self, due: DueItem, now: int) -> None:
            del due, now
            raise ConnectionError

    down = Down(crowd, MANY)
    with pytest.raises(ConnectionError):
        crowd.sweep(log=down)
    assert len(down.asked) <= BATCH


def test_a_store_that_refuses_one_write_fails_the_sweep_after_all_else_is_done() -> None:
    crowd = Crowd(300)

    class Down(Newer):
        def postpone(self, due: DueItem, now: int) -> None:
            del due, now
            raise ConnectionError

    down, metrics = Down(crowd, 1), MemoryMetrics()
    with pytest.raises(ConnectionError):
        crowd.sweep(log=down, metrics=metrics)
    assert sorted(crowd.enqueued) == sorted(key.task for key in crowd.keys[1:])
    assert metrics.counted == [("Sweeps", {})]
