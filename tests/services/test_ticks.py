"""Schedules: one task for a tick, however often and in whatever order it is delivered, and whatever dies meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import Schedule, Skill, TaskContext, agent
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.domain.model import Principal, TaskKey
from a2a_serverless.domain.queue_messages import QueueMessage, TickMessage, WorkMessage
from a2a_serverless.domain.schedules import LATEST_MS, format_tick
from a2a_serverless.protocol.v1 import Role, TaskState
from a2a_serverless.services.ticks import TickOutcome, handle_tick, message_id_of
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless.testing.deployment import LIFE
from a2a_serverless.testing.memory import MemoryMetrics

if TYPE_CHECKING:
    from collections.abc import Callable

MINUTE_MS = 60_000
DAY = "0 7 * * ? *"
HOURLY = Schedule("hourly", "0 * * * ? *", "Work.")
MORNING = Schedule("morning", DAY, "Good morning.", overlap="allow", owner="alice", tenant="acme")


@agent(
    id="sleeper",
    name="Sleeper",
    description="Sleeps for two hours.",
    skills=[Skill("sleep", "Sleep", "Sleeps.", ("demo",))],
    schedules=[HOURLY, MORNING],
)
async def sleeper(task: TaskContext) -> str:
    await task.sleep("rest", 2 * 3600)
    return f"{task.text()} {task.request.metadata} {task.caller.owner}"


@dataclass
class Scene:
    """A deployment, and the dead letters of its work queue."""

    harness: AgentTestHarness = field(default_factory=lambda: AgentTestHarness(sleeper))
    dead_letters: list[QueueMessage] = field(default_factory=list)
    metrics: MemoryMetrics = field(default_factory=MemoryMetrics)

    def tick(self, schedule: Schedule = HOURLY, at: int | None = None) -> TickMessage:
        return TickMessage(schedule.key("sleeper"), (self.harness.now if at is None else at) // MINUTE_MS * MINUTE_MS)

    def handle(self, tick: TickMessage, **changes: Any) -> TickOutcome:
        engine = replace(self.harness.engine, send_to_dead_letters=self.dead_letters.append, metrics=self.metrics)
        return handle_tick(replace(engine, **changes), LIFE, tick)

    def tasks(self, schedule: Schedule = HOURLY) -> list[str]:
        principal = schedule.key("sleeper")
        entries, _ = self.harness.table.list_page(Principal(*principal[:2]), None, None, 0, 100)
        return [entry.task for entry in entries]

    def skipped(self) -> list[str]:
        return [str(ids["reason"]) for name, ids in self.metrics.counted if name == "TicksSkipped"]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_tick_starts_a_task_of_the_schedule_s_owner_with_its_text_and_time(scene: Scene) -> None:
    tick = scene.tick(MORNING)
    assert scene.handle(tick) is TickOutcome.STARTED
    (task,) = scene.tasks(MORNING)
    key = TaskKey("acme", "alice", task)
    assert [message for _, message in scene.harness.queue.waiting] == [WorkMessage(key)]
    scene.harness.settle()
    head, read = scene.harness.table.read_task(key)
    said = {"a2a-serverless/schedule": "morning", "a2a-serverless/scheduled-time": format_tick(tick.at)}
    assert (read.status.state, head.agent) == (TaskState.COMPLETED, "sleeper")
    assert read.status.message.text() == f"Good morning. {said} alice"
    (asked, *_) = read.history
    assert (asked.role, asked.message_id, asked.text()) == (Role.USER, message_id_of(tick), "Good morning.")
    assert head.caller.allows("another agent", "operate"), "as for a caller with a key without scopes"


@pytest.mark.parametrize("schedule", [HOURLY, MORNING])
def test_a_repeated_tick_starts_no_second_task_while_the_first_works_and_after_its_end(
    schedule: Schedule, scene: Scene
) -> None:
    tick = scene.tick(schedule)
    assert [scene.handle(tick) for _ in range(3)] == [TickOutcome.STARTED, *[TickOutcome.REPEATED] * 2]
    scene.harness.settle()
    assert scene.handle(tick) is TickOutcome.REPEATED, "also when it is late: no dead letter"
    assert (len(scene.tasks(schedule)), scene.dead_letters, scene.skipped()) == (1, [], [])


def test_a_tick_whose_text_was_changed_meanwhile_is_still_the_same_tick(scene: Scene) -> None:
    tick = scene.tick()
    scene.handle(tick)
    changed = replace(sleeper, schedules=(Schedule("hourly", DAY, "Other."),))
    assert scene.handle(tick, agents={"sleeper": changed}) is TickOutcome.REPEATED


def test_without_overlap_a_tick_is_skipped_and_counted_while_the_task_of_an_earlier_one_works(scene: Scene) -> None:
    assert scene.handle(scene.tick()) is TickOutcome.STARTED
    scene.harness.wait(3_600_000)
    assert scene.handle(scene.tick()) is TickOutcome.OVERLAP
    assert (len(scene.tasks()), scene.skipped()) == (1, ["overlap"])
    scene.harness.settle()
    assert scene.handle(scene.tick()) is TickOutcome.STARTED
    assert len(scene.tasks()) == 2


def test_with_overlap_every_tick_starts_a_task(scene: Scene) -> None:
    for _ in range(3):
        assert scene.handle(scene.tick(MORNING)) is TickOutcome.STARTED
        scene.harness.wait(MINUTE_MS)
    assert len(scene.tasks(MORNING)) == 3


def test_two_schedules_of_an_agent_do_not_keep_each_other_from_starting(scene: Scene) -> None:
    assert scene.handle(scene.tick(HOURLY)) is scene.handle(scene.tick(MORNING)) is TickOutcome.STARTED


def test_an_earlier_tick_that_comes_after_a_later_one_starts_nothing(scene: Scene) -> None:
    now = scene.harness.now
    assert scene.handle(scene.tick(at=now)) is TickOutcome.STARTED
    assert scene.handle(scene.tick(at=now - MINUTE_MS)) is TickOutcome.OVERLAP
    assert len(scene.tasks()) == 1


@pytest.mark.parametrize("late_ms", [LATEST_MS, LATEST_MS + MINUTE_MS])
def test_a_tick_of_more_than_an_hour_ago_is_a_dead_letter_and_starts_nothing(late_ms: int, scene: Scene) -> None:
    tick = scene.tick(at=scene.harness.now - scene.harness.now % MINUTE_MS)
    scene.harness.now = tick.at + late_ms
    is_late = late_ms > LATEST_MS
    assert scene.handle(tick) is (TickOutcome.LATE if is_late else TickOutcome.STARTED)
    assert scene.dead_letters == ([tick] if is_late else [])
    assert scene.skipped() == (["late"] if is_late else [])
    assert len(scene.tasks()) == (0 if is_late else 1)


@pytest.mark.parametrize("name", ["sleeper/daily", "nobody/hourly", "sleeper", "sleeper/"])
def test_a_tick_of_a_schedule_that_is_not_deployed_is_counted_and_starts_nothing(name: str, scene: Scene) -> None:
    tick = scene.tick()
    assert scene.handle(tick._replace(key=tick.key._replace(task=name))) is TickOutcome.UNKNOWN
    assert (scene.tasks(), scene.skipped(), scene.dead_letters) == ([], ["unknown schedule"], [])


class Failing:
    """A store whose n-th call fails, before or after it took effect."""

    def __init__(self, store: Any, call: int, *, after: bool) -> None:
        self.store, self.left, self.after = store, call, after

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def called(*args: Any) -> Any:
            self.left -= 1
            if self.left == 0 and not self.after:
                raise Overloaded
            found = getattr(self.store, name)(*args)
            if self.left == 0:
                raise Overloaded
            return found

        return called


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("store", ["log", "queues"])
@pytest.mark.parametrize("call", range(1, 5))
def test_a_tick_at_whose_call_a_store_fails_comes_again_and_starts_one_task(
    call: int,
    store: str,
    after: bool,  # noqa: FBT001 - a parameter of the test
    scene: Scene,
) -> None:
    """A process that dies at that call leaves the same behind; SQS then delivers the tick again."""
    tick, queue = scene.tick(), scene.harness.queue
    failing = Failing(getattr(scene.harness.engine, store), call, after=after)
    outcome = scene.handle(tick, **{store: failing})
    if failing.left > 0:
        assert outcome is TickOutcome.STARTED, "it makes no such call"
    else:
        assert outcome is TickOutcome.POSTPONED
        assert (scene.harness.now + MINUTE_MS, tick) in queue.waiting
    scene.handle(tick)
    scene.harness.settle(3 * 3_600_000)
    (task,) = scene.tasks()
    read = scene.harness.table.read_task(tick.key._replace(task=task))
    assert read
    assert read[1].status.state is TaskState.COMPLETED, "its work message, or the sweeper"


class Racing:
    """A log on which another tick is handled just before the task of this one is made."""

    def __init__(self, log: Any, other: Callable[[], object]) -> None:
        self.log, self.other = log, other

    def __getattr__(self, name: str) -> Any:
        return getattr(self.log, name)

    def create(self, opening: Any) -> Any:
        self.other()
        return self.log.create(opening)


@pytest.mark.parametrize("sooner_ms", [MINUTE_MS, -MINUTE_MS])
def test_of_two_ticks_at_once_only_one_starts_a_task(sooner_ms: int, scene: Scene) -> None:
    now, outcomes = scene.harness.now, list[TickOutcome]()
    racing = Racing(scene.harness.table, lambda: outcomes.append(scene.handle(scene.tick(at=now - sooner_ms))))
    outcomes.append(scene.handle(scene.tick(at=now), log=racing))
    assert outcomes == [TickOutcome.STARTED, TickOutcome.OVERLAP]
    assert len(scene.tasks()) == 1


@pytest.mark.parametrize("schedule", [HOURLY, MORNING])
def test_a_tick_that_is_handled_twice_at_once_starts_one_task(schedule: Schedule, scene: Scene) -> None:
    tick = scene.tick(schedule)
    racing = Racing(scene.harness.table, lambda: scene.handle(tick))
    assert scene.handle(tick, log=racing) is TickOutcome.REPEATED
    assert len(scene.tasks(schedule)) == 1
