"""A store that fails is waited for. Only a death counts as a death."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain import decisions
from a2a_serverless.domain.decisions import RUN_LEASE_MS
from a2a_serverless.domain.events import StatusEvent
from a2a_serverless.domain.head import LOST_LIMIT
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.engine.engine import RunOutcome
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.engine.run_session import RunSession
from a2a_serverless.engine.signals import StoreFailed
from a2a_serverless.engine.task_files import TaskFiles
from a2a_serverless.protocol.v1 import Part, TaskState
from a2a_serverless.services.task_changes import TRIES
from a2a_serverless.testing.simulated_deployment import Counter
from tests.contract.backends import NOW, memory
from tests.contract.tasks import seen, taken
from tests.echo import Writer, agent_of
from tests.faults.plans import At, Broken, Frail, fail, kill_at
from tests.simulated import Killed
from tests.workers import Workers
from tests.world import ME, MINUTE_MS, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.task_context import TaskContext

STEP_S = 20
TEXTS = ["one: hello. ", "two: hello. ", "three: hello. "]
WHAT = {
    "everything": ("table.", "queue."),
    "the table": ("table.",),
    "writes": ("table.append", "table.update_head", "table.store"),
    "writes of work": ("table.append_chunk", "table.store_step"),
    "steps": ("table.store_step",),
    "looks": ("table.read_head",),
    "the queue": ("queue.",),
}


class Outage:
    """From ``begins`` to ``ends`` (ms of the world's time from its beginning) these calls fail, with a chance.

    ``late``: after they took effect.
    """

    def __init__(
        self, calls: tuple[str, ...], begins: int, ends: int, *, chance: float = 1, late: bool = False
    ) -> None:
        self.calls = calls
        self.times = (begins, ends)
        self.late = late
        self.failed = 0
        self.what: type[BaseException] = Broken
        self.world: World | None = None
        self.began = 0
        self._chance = chance
        self._random = Random(7)  # noqa: S311 - a seed, not a secret

    def of(self, world: World) -> None:
        self.world, self.began = world, world.now

    def before(self, port: str, call: str) -> None:
        self._fail(port, call, late=False)

    def after(self, port: str, call: str) -> None:
        self._fail(port, call, late=True)

    def _fail(self, port: str, call: str, *, late: bool) -> None:
        if self.world is None or late is not self.late or not f"{port}.{call}".startswith(self.calls):
            return
        now = self.world.now - self.began
        if self.times[0] <= now < self.times[1] and self._random.random() < self._chance:
            self.failed += 1
            raise self.what


def told(
    work: Callable[[TaskContext], object], outage: Outage, *, worlds: type[Workers] = Workers
) -> tuple[World, str]:
    """A task that meets an outage, at its end."""
    world = worlds(work, outage)
    task_id = world.send("hello", push=False).id
    outage.of(world)
    world.settle()
    return world, task_id


def head_of(world: World, task_id: str) -> Head:
    head: Head = world.table.read_head(ME.key(task_id)).head
    return head


def assert_whole(world: World, task_id: str) -> None:
    task = world.client(lambda: world.get(task_id))  # the outage may be longer than the task
    assert task.status.state is TaskState.COMPLETED
    assert [part.value for part in task.artifacts[0].parts] == ["".join(TEXTS)]
    assert (head_of(world, task_id).lease_until, head_of(world, task_id).due_at) == (0, None)


@pytest.mark.parametrize("minutes", [3, 30])
@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_rule_06_a_task_outlives_an_outage(what: str, minutes: int, late: bool) -> None:  # noqa: FBT001
    writer = Writer(seconds=STEP_S)
    outage = Outage(WHAT[what], 5_000, 5_000 + minutes * MINUTE_MS, late=late)
    world, task_id = told(writer.work, outage)
    assert outage.failed > 0
    assert_whole(world, task_id)
    again = len(writer.ran) - 3
    assert again <= 1 + minutes // 15, "when a run's time ends, and when another run was first after the outage"
    assert world.get(task_id).status.timestamp - outage.began <= (minutes + 4) * MINUTE_MS


async def asleep(task: TaskContext) -> None:
    await task.step("sleep", asyncio.sleep, 10)


@pytest.mark.parametrize("minutes", [3, 30])
@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_rule_06_a_task_outlives_stores_of_which_every_other_call_fails(what: str, minutes: int, late: bool) -> None:  # noqa: FBT001
    writer = Writer(seconds=STEP_S)
    outage = Outage(WHAT[what], 5_000, 5_000 + minutes * MINUTE_MS, chance=0.5, late=late)
    world, task_id = told(writer.work, outage)
    assert_whole(world, task_id)


def test_rule_06_a_run_that_is_not_told_that_it_has_taken_its_task_asks_until_it_is_told() -> None:
    writer = Writer(seconds=STEP_S)
    outage = Outage(("table.append", "table.read_"), 0, 5 * MINUTE_MS, late=True)
    world, task_id = told(writer.work, outage)
    assert_whole(world, task_id)
    head, events = head_of(world, task_id), world.events(task_id)
    assert (outage.failed > LOST_LIMIT, head.lost) == (True, 0)
    statuses = [event for event in events if isinstance(event, StatusEvent) and event.message is None]
    begun = [event for event in statuses if event.state is TaskState.WORKING]
    assert len(begun) == 1, "it says once that it works"


def test_rule_06_a_run_whose_first_write_succeeded_without_an_answer_goes_on_with_its_task_at_once() -> None:
    world = Workers(Writer(seconds=1).work, At(1, late=True, what=fail, only="table.append"))
    task_id, began = world.send("hello", push=False).id, world.now
    world.settle()
    assert_whole(world, task_id)
    assert (head_of(world, task_id).lost, world.events(task_id)[-1].at - began < RUN_LEASE_MS) == (0, True)


def test_a_message_that_comes_before_a_run_knows_that_it_has_its_task_is_an_append_of_its_own() -> None:
    world = Workers(Writer(seconds=1).work, At(1, late=True, what=fail, only="table.append"))
    task_id = world.send("hello", push=False).id
    world.plan(500, lambda: world.send("more", push=False, task_id=task_id))
    world.settle()
    assert_whole(world, task_id)
    ids = [event.append_id for event in world.events(task_id)]
    assert len(ids) == len({*ids})


def test_rule_06_a_run_that_waits_for_a_store_keeps_its_lease_and_makes_the_very_call_again() -> None:
    writer = Writer(seconds=STEP_S)
    outage = Outage(("table.store_step",), 5_000, 10 * MINUTE_MS)
    world, task_id = told(writer.work, outage)
    assert_whole(world, task_id)
    assert head_of(world, task_id).fence == 2, "the one that waited, and the one after it"
    assert writer.ran == ["one", "two", "three"], "what was done while the store failed is stored and not done again"


def test_rule_06_work_goes_on_while_the_task_cannot_be_looked_at() -> None:
    outage = Outage(("table.read_head", "table.update_head"), 5_000, 20_000)
    world, task_id = told(Writer(seconds=STEP_S).work, outage)
    assert_whole(world, task_id)
    assert (outage.failed > 10, head_of(world, task_id).fence) == (True, 1)


def test_rule_06_a_queue_that_fails_does_not_stop_a_run_and_gets_its_message_later() -> None:
    outage = Outage(("queue.",), 5_000, 35_000)
    waiting: list[int] = []
    world = Workers(Writer(seconds=STEP_S).work, outage)
    task_id = world.send("hello", push=False).id
    outage.of(world)
    world.plan(50_000, lambda: waiting.append(len(world.queue.waiting)))
    world.settle()
    assert_whole(world, task_id)
    assert (outage.failed > 30, waiting, head_of(world, task_id).fence) == (True, [3], 1), "one for each renewal"


def test_rule_06_the_time_of_a_run_that_waits_ends_in_a_hand_over_and_not_in_a_death() -> None:
    outage = Outage(("table.store_step",), 0, 150 * MINUTE_MS)
    world, task_id = told(Writer(seconds=STEP_S).work, outage)
    assert_whole(world, task_id)
    runs = head_of(world, task_id).fence
    assert (runs > LOST_LIMIT, head_of(world, task_id).lost) == (True, 0)


def test_a_cancel_is_heard_while_a_run_waits_for_a_store() -> None:
    outage = Outage(("table.store_step",), 0, 10 * MINUTE_MS)
    world = Workers(Writer(seconds=STEP_S).work, outage)
    task_id = world.send("hello", push=False).id
    outage.of(world)
    world.plan(2 * MINUTE_MS, lambda: world.cancel(task_id))
    world.wait(2 * MINUTE_MS + 30_000)
    assert world.state(task_id) is TaskState.CANCELED
    assert RunOutcome.LEASE_LOST in world.answered
    assert world.now - outage.began < 3 * MINUTE_MS


def test_rule_06_a_chunk_that_is_lost_when_a_task_would_suspend_ends_the_run_at_once() -> None:
    async def parent(task: TaskContext) -> None:
        child = asyncio.ensure_future(task.call("child", "child", "hello"))
        await asyncio.sleep(0.9)  # the keeper comes after 1 s, the writer of chunks after 1.15 s
        await task.emit("a", "said while it waits", last=True)
        await child

    outage = Outage(("table.append_chunk",), 0, 20_000)
    world = World([agent_of(parent, "parent"), agent_of(asleep, "child")], faults=outage)
    task_id = world.send("hello", push=False, agent="parent").id
    outage.of(world)
    world.settle()
    task = world.get(task_id, "parent")
    assert (task.status.state, outage.failed > 1) == (TaskState.COMPLETED, True)
    assert [part.value for part in task.artifacts[0].parts] == ["said while it waits"]
    assert task.status.timestamp - outage.began < 2 * MINUTE_MS


class Refusing:
    """A log that refuses the next chunks, although nothing has changed."""

    def __init__(self, log: Any, times: int) -> None:
        self.log, self.left = log, times

    def __getattr__(self, name: str) -> Any:
        return getattr(self.log, name)

    def append_chunk(self, *chunk: Any) -> Any:
        self.left -= 1
        return self.left < 0 and self.log.append_chunk(*chunk)


class LostLook:
    """A log whose looks at the head fail for a while."""

    def __init__(self, log: Any, times: int) -> None:
        self.log, self.left = log, times

    def __getattr__(self, name: str) -> Any:
        return getattr(self.log, name)

    def read_head(self, key: Any) -> Any:
        self.left -= 1
        if self.left >= 0:
            raise Broken
        return self.log.read_head(key)


def test_a_call_that_is_sent_after_its_tasks_end_is_marked_by_the_retry_of_a_failed_look() -> None:
    log = memory().log
    snapshot = taken(log)
    assert log.append(decisions.cancel(snapshot, now=NOW + 1, by="client"))
    lost_look: Any = LostLook(log, 1)
    session = RunSession(lost_look, Counter(), lambda: NOW, snapshot)
    with pytest.raises(StoreFailed) as failed:
        session.store_sent_call("@call/child/sent", StepResult("", {"task": "t-2"}))
    failed.value.retry()
    assert seen(log).head.children


def test_a_call_that_is_sent_after_another_run_has_taken_its_task_is_stored_all_the_same() -> None:
    store = memory()
    snapshot = taken(store.log)
    store.now.ms = snapshot.head.lease_until
    assert store.log.update_head(snapshot.head, decisions.resume_run(snapshot.head, now=store.now.ms, by="the other"))
    sent = StepResult("", {"task": "t-2"})
    stored, is_over = RunSession(store.log, Counter(), store.now, snapshot).store_sent_call("@call/child/sent", sent)
    assert (stored.value, is_over) == (sent.value, False)


def test_a_chunk_that_is_refused_at_every_attempt_is_a_failure_of_the_store_and_not_of_the_agent() -> None:
    async def work(task: TaskContext) -> str:
        await task.emit("a.txt", "one")
        try:
            await task.step("think", asyncio.sleep, 1)
        except Exception:  # noqa: BLE001 - what careless agents do
            return "without the step"
        return "done"

    world = World([agent_of(work)])
    log: Any = Refusing(world.engine.log, TRIES)
    world.engine = replace(world.engine, log=log)
    task_id = world.send("hello", push=False).id
    world.settle()
    task, head = world.get(task_id), head_of(world, task_id)
    assert (log.left, head.fence, head.lost) == (-1, 2, 0)
    assert task.status.message is not None
    assert (task.status.message.text(), task.artifacts[0].text()) == ("done", "one")


def test_rule_06_a_run_inside_a_request_waits_no_longer_than_the_request_and_leaves_the_rest_to_a_worker() -> None:
    writer = Writer(seconds=1)
    outage = Outage(("table.store_step",), 0, 3 * MINUTE_MS)
    world = Workers(writer.work, outage)
    agents = {"echo": replace(writer.agent, runs="inline")}
    world.engine = replace(world.engine, agents=agents)
    key = ME.key(world.send("hello", push=False).id)
    world.queue.clear()
    outage.of(world)
    EngineInlineRunner(world.engine, world.play).run(key, 20_000)
    assert world.now - outage.began <= 20_000 + 2_000
    assert WorkMessage(key) in world.queue.ready()
    world.settle()
    assert_whole(world, key.task)


@pytest.mark.parametrize("reads", ["references", "earlier", "file"])
def test_a_store_that_fails_when_an_agent_reads_is_not_the_agents_failure(reads: str) -> None:
    async def work(task: TaskContext) -> str:
        await task.step("think", asyncio.sleep, STEP_S)
        if reads == "file":
            return str(len(await task.read_file(Part(url=stored.address))))
        return str(len(await (task.get_referenced_tasks() if reads == "references" else task.get_previous_tasks())))

    outage = Outage(("table.read_task", "table.list_page", "contents."), 5_000, 3 * MINUTE_MS)
    world = Workers(work, outage)
    other = world.send("before", push=False).id
    stored = world.contents.store(ME.key(other), b"four")
    files: Any = Frail(world.contents, "contents", outage)
    world.engine = replace(world.engine, files=TaskFiles(files))
    request = world.request("hello", push=False)
    message = request.message.model_copy(
        update={"reference_task_ids": (other,), "context_id": world.get(other).context_id}
    )
    world.cancel(other)
    task_id = world.sent(request.model_copy(update={"message": message})).id
    outage.of(world)
    world.settle()
    task = world.get(task_id)
    assert outage.failed > 0
    assert (task.status.state, task.status.message and task.status.message.text()) == (
        TaskState.COMPLETED,
        "4" if reads == "file" else "1",
    )


# ---- What still counts


@pytest.mark.parametrize("seconds", [0.5, STEP_S])
def test_a_task_that_stores_a_step_between_its_deaths_ends_however_many_there_are(seconds: float) -> None:
    async def work(task: TaskContext) -> None:
        for number in range(2 * LOST_LIMIT):
            await task.step(f"step {number}", asyncio.sleep, seconds)

    deaths = kill_at(*range(2, 6 * LOST_LIMIT, 2), late=False, only="table.store_step")
    world = Workers(work, deaths)
    task_id = world.send("hello", push=False).id
    world.settle()
    assert len(deaths.met) > LOST_LIMIT
    assert world.get(task_id).status.state is TaskState.COMPLETED


def test_workers_that_die_one_after_the_other_still_end_a_task() -> None:
    outage = Outage(("table.store_step",), 0, 60 * MINUTE_MS)
    outage.what = Killed
    world, task_id = told(Writer(seconds=STEP_S).work, outage)
    assert world.get(task_id).status.state is TaskState.FAILED
    assert (outage.failed, head_of(world, task_id).fence) == (LOST_LIMIT, LOST_LIMIT)


def test_a_write_that_no_store_would_take_ends_the_task_without_a_long_wait() -> None:
    class Wrong(ValueError, Broken):
        """What the table raises when the request itself is wrong."""

    outage = Outage(("table.store_step",), 0, 60 * MINUTE_MS)
    outage.what = Wrong
    world, task_id = told(Writer(seconds=STEP_S).work, outage)
    assert world.get(task_id).status.state is TaskState.FAILED
    assert outage.failed == LOST_LIMIT
    assert world.get(task_id).status.timestamp - outage.began < LOST_LIMIT * (RUN_LEASE_MS + MINUTE_MS + STEP_S * 1000)


def test_a_store_that_fails_is_told_of_once_for_each_run(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    told(Writer(seconds=STEP_S).work, Outage(("table.store_step",), 5_000, 3 * MINUTE_MS))
    assert [record.message for record in caplog.records] == ["a store has failed"]
    assert caplog.records[0].__dict__["error"] == "Broken"
