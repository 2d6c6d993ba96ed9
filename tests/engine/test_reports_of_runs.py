"""What a run says in log lines, in metrics and to the author, and the exact times at which it does what it does."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import Step, StepFailed
from a2a_serverless.domain.agent_errors import TaskFailed, TaskRejected
from a2a_serverless.domain.decisions import DELAY_LIMIT_MS, RUN_LEASE_MS
from a2a_serverless.domain.errors import InvalidParams
from a2a_serverless.domain.head import LOST_LIMIT
from a2a_serverless.domain.queue_messages import QueueMessage, WorkMessage
from a2a_serverless.domain.task_context import CancelReason
from a2a_serverless.engine.engine import RunOutcome
from a2a_serverless.engine.lease import MARGIN_MS
from a2a_serverless.engine.steps import UNFINISHED_LIMIT
from a2a_serverless.protocol.v1 import TaskState
from tests.echo import Writer
from tests.engine.test_run import Work, for_ever, last_word, world_with_task
from tests.faults.plans import At, Broken, die

if TYPE_CHECKING:
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.task_context import TaskContext
    from tests.world import World


# ---- Log lines and metrics


def test_the_first_run_says_how_long_the_task_was_queued_and_each_run_that_it_has_taken_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    world, key = world_with_task(Writer(seconds=60).work)
    world.engine = replace(world.engine, metrics=world.metrics)
    world.now += 7_000
    world.run_ms = 100_000
    assert world.run(key) is RunOutcome.HANDED_OVER
    assert world.run(key) is RunOutcome.HANDED_OVER
    assert [one for one in world.metrics.measured if one[0] == "QueueAge"] == [
        ("QueueAge", 7_000, {"queue": "work", "task": key.task})
    ]
    taken = [line.__dict__ for line in caplog.records if line.message == "task taken"]
    assert [(line["task"], line["agent"], line["run"]) for line in taken] == [
        (key.task, "echo", 1),
        (key.task, "echo", 2),
    ]
    assert "LeaseLost" not in [name for name, _ in world.metrics.counted]


def test_the_write_that_begins_a_run_says_of_which_code_it_is() -> None:
    world, key = world_with_task(Writer(seconds=60).work)
    world.run_ms = 100_000
    for code in ("first", "second"):  # with an event, and without
        world.engine = replace(world.engine, code=code)
        assert world.run(key) is RunOutcome.HANDED_OVER
        record = world.table.read_head(key)
        assert record
        assert record.head.code == code


def test_a_run_measures_the_time_of_each_step() -> None:
    async def work(task: TaskContext) -> None:
        await task.step("think", asyncio.sleep, 2)

    world, key = world_with_task(work)
    world.engine = replace(world.engine, metrics=world.metrics)
    world.run(key)
    assert [(round(ms / 1_000), what) for name, ms, what in world.metrics.measured if name == "StepTime"] == [
        (2, {"task": key.task})
    ]


def test_a_run_that_died_is_counted_by_the_next_one(caplog: pytest.LogCaptureFixture) -> None:
    world, key = world_with_task(for_ever, faults=At(*range(1, 50), late=True, what=die, only="table.update_head"))
    buried = list[QueueMessage]()
    world.engine = replace(world.engine, metrics=world.metrics, send_to_dead_letters=buried.append)
    for _ in range(LOST_LIMIT):
        world.survives(lambda: world.run(key))
        world.now += RUN_LEASE_MS
    lost = [what for name, what in world.metrics.counted if name == "LeaseLost"]
    assert lost == [{"of": "worker", "task": key.task}] * (LOST_LIMIT - 1)
    world.survives(lambda: world.run(key))
    assert [line.__dict__["task"] for line in caplog.records if line.message == "task given up"] == [key.task]
    assert buried == [WorkMessage(key)], "in the run that gives it up"
    assert [what["state"] for name, what in world.metrics.counted if name == "TaskStates"] == ["failed"]


def test_a_store_that_has_failed_is_in_the_log_with_the_task_and_its_run(caplog: pytest.LogCaptureFixture) -> None:
    failing = Failing("table.store_step", 5_000)
    world, key = world_with_task(Writer().work, faults=failing)
    failing.world = world
    world.run(key)
    (line,) = [line.__dict__ for line in caplog.records if line.levelno == logging.ERROR]
    assert (line["message"], line["error"], line["task"], line["run"]) == (
        "a store has failed",
        "Broken",
        key.task,
        1,
    )


# ---- What the author learns of an error


def told_of(work: Work) -> tuple[World, TaskKey, list[tuple[BaseException, str]]]:
    """A task at its end, and the errors of which the author was told, each with its reference."""
    world, key = world_with_task(work)
    told: list[tuple[BaseException, str]] = []
    world.engine = replace(world.engine, on_error=lambda _, error, reference: told.append((error, reference)))
    world.run(key)
    return world, key, told


@pytest.mark.parametrize("error", [TaskFailed("cold"), TaskRejected("odd"), InvalidParams("bad")])
def test_the_author_gets_an_error_whose_text_the_client_reads_without_a_reference(error: Exception) -> None:
    async def work(_: TaskContext) -> None:
        raise error

    assert told_of(work)[2] == [(error, "")]


def test_the_author_gets_any_other_error_with_the_reference_that_the_client_reads() -> None:
    failure = ValueError("secret")

    async def work(_: TaskContext) -> None:
        raise failure

    world, key, [(error, reference)] = told_of(work)
    assert error is failure
    assert last_word(world.get(key.task)) == f"The agent stopped with an error (reference {reference})."
    assert len(reference) == 8


def test_the_author_learns_why_the_content_of_an_error_is_no_message() -> None:
    async def work(_: TaskContext) -> None:
        raise TaskFailed([])

    _, _, [(error, reference)] = told_of(work)
    assert error.__notes__ == ["Its content is no message: a message needs parts, and the role of an agent."]
    assert reference


def test_the_log_says_what_helps_when_an_agent_returns_what_is_no_message(caplog: pytest.LogCaptureFixture) -> None:
    async def work(_: TaskContext) -> Any:
        return 7

    _, _, [(error, _)] = told_of(work)
    (line,) = [line.__dict__ for line in caplog.records if line.levelno == logging.ERROR]
    assert line["remedy"] == str(error)
    assert "int" in line["remedy"]


def test_a_step_that_failed_the_task_is_in_its_log() -> None:
    async def work(task: TaskContext) -> None:
        async def inner() -> None:
            await asyncio.sleep(2)
            raise LookupError

        async def outer() -> None:
            await task.step("inner", inner)

        await task.step("outer", outer)

    world, key, _ = told_of(work)
    (failed,) = [one for one in world.table.list_step_times(key, 100) if one.name.startswith("@failed/")]
    assert (failed.name, failed.error) == ("@failed/outer > inner", "LookupError")
    assert (failed.ended_at - failed.began_at) // 1000 == 2


# ---- Times


@pytest.mark.parametrize(
    ("seconds", "delay_s"),
    [(0.001, 1), (1, 1), (500.001, 501), (DELAY_LIMIT_MS / 1000, 900), (DELAY_LIMIT_MS / 1000 + 0.001, None)],
)
def test_a_task_that_sleeps_no_longer_than_a_message_can_be_delayed_enqueues_it(
    seconds: float, delay_s: int | None
) -> None:
    async def work(task: TaskContext) -> None:
        await task.sleep("a while", seconds)

    world, key = world_with_task(work)
    began = world.now
    assert world.run(key) is RunOutcome.WAITING
    assert world.queue.waiting == ([] if delay_s is None else [(began + 1000 * delay_s, WorkMessage(key))])


class Failing:
    """A call that fails for ``ms`` from its first time on. ``times`` has when it was made, in seconds after that."""

    def __init__(self, call: str, ms: int, error: type[Broken] = Broken) -> None:
        self.call, self.ms, self.error, self.at = call, ms, error, list[int]()
        self.world: World

    def before(self, port: str, call: str) -> None:
        if f"{port}.{call}" == self.call:
            self.at.append(self.world.now)
            if self.at[-1] - self.at[0] < self.ms:
                raise self.error

    def after(self, port: str, call: str) -> None:
        pass

    @property
    def times(self) -> list[int]:
        return [(at - self.at[0]) // 1000 for at in self.at]


@pytest.mark.parametrize(("call", "first"), [("table.append", [0]), ("table.store_step", [0, 0])])
def test_a_call_of_a_store_is_repeated_after_one_second_and_twice_as_many_each_time_and_at_most_ten(
    call: str, first: list[int]
) -> None:
    """When the run takes its task, and in the run."""
    failing = Failing(call, 40_000)
    world, key = world_with_task(Writer().work, faults=failing)
    failing.world = world
    world.settle()
    assert world.get(key.task).status.state is TaskState.COMPLETED
    assert failing.times[: len(first) + 7] == [*first, 1, 3, 7, 15, 25, 35, 45]


class Wrong(ValueError, Broken):
    """What a store raises when the request itself is wrong."""


def test_a_run_that_waited_for_a_store_is_followed_by_another_one_at_once() -> None:
    failing = Failing("table.store_step", 5_000)
    world, key = world_with_task(Writer(seconds=0).work, faults=failing)
    failing.world = world
    assert world.run(key) is RunOutcome.HANDED_OVER
    assert (world.now, WorkMessage(key)) in world.queue.waiting


@pytest.mark.parametrize("call", ["table.append", "table.store_step"])
def test_a_call_that_no_store_would_ever_take_is_not_repeated(call: str) -> None:
    failing = Failing(call, 10_000_000, Wrong)
    world, key = world_with_task(Writer(seconds=0).work, faults=failing)
    failing.world = world
    with pytest.raises(Wrong):
        world.run(key)
    assert failing.times == [0]


@pytest.mark.parametrize("seconds", [0, 3.5, 5, 60])
def test_a_run_waits_for_a_store_until_a_second_after_its_time_is_over(seconds: float) -> None:
    failing = Failing("table.store_step", 10_000_000)
    world, key = world_with_task(Writer(seconds=0).work, faults=failing)
    failing.world, world.run_ms = world, MARGIN_MS + int(1_000 * seconds)
    assert world.run(key) is RunOutcome.HANDED_OVER
    assert 1_000 <= world.now - failing.at[0] - 1_000 * seconds <= 1_010
    assert world.table.read_head(key).head.lost == 0


def test_a_run_of_code_that_was_replaced_hands_over_within_two_seconds() -> None:
    why: list[CancelReason | None] = []

    async def work(task: TaskContext) -> None:
        try:
            await asyncio.sleep(100 if not why else 1)
        finally:
            why.append(task.cancellation)

    world, key = world_with_task(work)
    replaced_at = world.now + 10_000
    world.engine = replace(world.engine, is_replaced=lambda: not why and world.now >= replaced_at)
    assert world.run(key) is RunOutcome.HANDED_OVER
    assert world.now - replaced_at <= 2_000
    world.settle()
    assert (world.get(key.task).status.state, why) == (TaskState.COMPLETED, [CancelReason.HAND_OVER, None])


def test_a_step_that_deployments_interrupt_is_not_counted_as_one_that_is_too_long() -> None:
    replaced: list[int] = []

    async def work(task: TaskContext) -> None:
        await task.step("work", asyncio.sleep, 30)

    def is_replaced() -> bool:
        due = len(replaced) < 2 * UNFINISHED_LIMIT and world.now - (replaced[-1] if replaced else began) >= 10_000
        if due:
            replaced.append(world.now)
        return due

    world, key = world_with_task(work)
    began = world.now
    world.engine = replace(world.engine, is_replaced=is_replaced)
    world.settle()
    assert (len(replaced), world.get(key.task).status.state) == (2 * UNFINISHED_LIMIT, TaskState.COMPLETED)


# ---- Steps


class Unstorable(Exception):
    """An error that a later run cannot build again."""

    def __init__(self, cause: object) -> None:
        super().__init__(cause)


def test_a_step_that_has_failed_is_not_the_one_that_the_time_limit_interrupts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work(task: TaskContext) -> None:
        async def fail() -> None:
            raise Unstorable(object())

        with suppress(StepFailed):
            await task.step("fail", fail)
        await asyncio.sleep(100)

    world, key = world_with_task(work)
    world.run_ms = MARGIN_MS + 5_000
    world.settle()
    task = world.get(key.task)
    assert task.status.state is TaskState.FAILED
    assert last_word(task).startswith("3 runs in a row reached the platform's time limit without storing anything.")
    (line,) = [vars(record) for record in caplog.records if record.msg == "task failed"]
    assert (line["error"], "step" in line) == ("StepTimedOut < TimeLimitReached", False)


def test_a_step_without_a_result_that_json_has_says_what_helps() -> None:
    async def work(task: TaskContext) -> None:
        await task.step(Step("think"), lambda: complex(1))

    world, key, _ = told_of(work)
    assert last_word(world.get(key.task)).startswith("The step 'think' gave a complex, which is not a JSON value")
