"""One run of a task: who may run it, what stops it, and what is left behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.agent_errors import TaskFailed, TaskRejected
from a2a_serverless.domain.cursors import CLOCK_SKEW_MS
from a2a_serverless.domain.decisions import RUN_LEASE_MS, RUN_RENEWAL_MS, LeaseLost
from a2a_serverless.domain.errors import InvalidParams
from a2a_serverless.domain.events import ArtifactEvent, StatusEvent
from a2a_serverless.domain.head import LOST_LIMIT
from a2a_serverless.domain.queue_messages import QueueMessage, WorkMessage
from a2a_serverless.domain.task_context import TaskContext
from a2a_serverless.engine.engine import RunOutcome
from a2a_serverless.engine.run import LOOK_DELAY_S
from a2a_serverless.protocol.v1 import Message, Part, Role, Task, TaskState
from tests.echo import Writer, agent_of
from tests.faults.plans import At, die, fail
from tests.world import ME, World

if TYPE_CHECKING:
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import TaskKey

Work = Callable[["TaskContext"], Awaitable[object]]


async def for_ever(task: TaskContext) -> None:
    await task.report_progress("begun")
    await asyncio.sleep(10_000)


def world_with_task(work: Work, *, push: bool = False, **world: Any) -> tuple[World, TaskKey]:
    """A world with a task that nobody runs yet; its queue message was lost."""
    made = World([agent_of(work)], **world)
    key = ME.key(made.send("hello", push=push).id)
    made.queue.clear()
    return made, key


def test_the_task_of_an_agent_has_the_names_that_are_documented_and_no_others() -> None:
    names = list[set[str]]()

    async def work(task: TaskContext) -> None:
        names.append({name for name in dir(task) if not name.startswith("_")})

    world, _ = world_with_task(work)
    world.settle()
    assert names == [{name for name in vars(TaskContext) if not name.startswith("_")}]


def head_of(world: World, key: TaskKey) -> Head:
    head: Head = world.table.read_head(key).head
    return head


def last_word(task: Task) -> str:
    assert task.status.message
    return task.status.message.text()


def states(world: World, key: TaskKey) -> list[str]:
    """The log in words."""
    return ["chunk" if isinstance(event, ArtifactEvent) else str(event.state) for event in world.events(key.task)]


# ---- Taking


def test_a_run_takes_the_task_and_brings_it_to_its_end() -> None:
    world, key = world_with_task(Writer().work)
    assert world.run(key) is RunOutcome.ENDED
    assert states(world, key) == ["submitted", "working", "working", "chunk", "chunk", "chunk", "completed"]
    assert (head_of(world, key).fence, head_of(world, key).lease_until) == (1, 0)


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "unknown"])
def test_a_message_for_a_task_that_cannot_be_run_does_nothing(ended: bool) -> None:  # noqa: FBT001
    world, key = world_with_task(Writer().work)
    world.cancel(key.task)
    before = world.events(key.task)
    assert world.run(key if ended else ME.key("unknown")) is RunOutcome.NOTHING_TO_DO
    assert world.events(key.task) == before


def test_rule_06_two_workers_with_the_same_message_make_one_run() -> None:
    writer = Writer()
    world, key = world_with_task(writer.work)
    endings = world.together(*[world.worker(key)] * 4)
    assert sorted(map(str, endings)) == sorted(map(str, [RunOutcome.ENDED] + [RunOutcome.LEASED] * 3))
    assert writer.ran == ["one", "two", "three"]


# ---- The lease


def test_rule_06_the_lease_is_renewed_for_as_long_as_the_work_lasts() -> None:
    world, key = world_with_task(for_ever)
    leases: list[int] = []

    def snapshot() -> None:
        for _ in range(60):
            world.wait(2000)
            leases.append(head_of(world, key).lease_until - world.now)

    world.together(world.worker(key, time_ms=200_000), snapshot)
    assert min(leases[:-1]) >= RUN_LEASE_MS - RUN_RENEWAL_MS - 2_000
    assert max(leases) <= RUN_LEASE_MS


def test_rule_06_a_lease_lasts_its_whole_time_however_long_the_read_of_the_log_takes() -> None:
    left = list[int]()

    async def work(task: TaskContext) -> None:
        await task.sleep("nap", 3600)
        left.append(world.table.read_head(key).head.lease_until - world.now)

    reads = At(2, late=True, what=lambda: world.scheduler.sleep(RUN_LEASE_MS), only="table.read_log")
    world, key = world_with_task(work, faults=reads)
    world.run(key)
    world.settle()
    assert (len(reads.met), left) == (1, [RUN_LEASE_MS])


def test_rule_06_the_first_look_and_each_renewal_enqueue_a_message_past_the_lease() -> None:
    world, key = world_with_task(for_ever)
    begun = world.now
    world.together(world.worker(key, time_ms=61_000))
    sent = {(at - begun) // 1000 - LOOK_DELAY_S for at, _ in world.queue.waiting}
    looks = {1, *range(5, 41, RUN_RENEWAL_MS // 1000)}
    assert (sent & looks, len(world.queue.waiting)) == (looks, len(looks) + 1), "and the hand-over's"
    assert LOOK_DELAY_S * 1000 > RUN_LEASE_MS + CLOCK_SKEW_MS


def test_a_run_of_less_than_a_second_enqueues_nothing() -> None:
    world, key = world_with_task(Writer(seconds=0.3).work)
    world.run(key)
    assert world.queue.waiting == []


def test_a_task_whose_runners_all_died_fails_and_says_so() -> None:
    world, key = world_with_task(for_ever, faults=At(*range(1, 50), late=True, what=die, only="table.update_head"))
    buried: list[QueueMessage] = []
    world.engine = replace(world.engine, send_to_dead_letters=buried.append)
    for _ in range(LOST_LIMIT):
        assert not world.survives(lambda: world.run(key))
        world.now += RUN_LEASE_MS
    assert world.kills == LOST_LIMIT
    assert head_of(world, key).fence == LOST_LIMIT
    world.survives(lambda: world.run(key))
    task = world.get(key.task)
    assert (task.status.state, last_word(task)) == (TaskState.FAILED, "The task was given up: its workers died.")
    assert task.status.message
    assert (task.status.message.context_id, task.status.message.task_id) == (task.context_id, task.id)
    for _ in range(3):
        world.survives(lambda: world.run(key))
    assert buried == [WorkMessage(key)], "once, where an alarm looks, although its message comes again"


def given_up(faults: At, *counts: int) -> list[QueueMessage]:
    """The dead letters of a task whose runs died, all but one before its message comes eight times."""
    world, key = world_with_task(for_ever, faults=faults)
    buried: list[QueueMessage] = []
    world.engine = replace(world.engine, send_to_dead_letters=buried.append)
    head = head_of(world, key)
    died = head._replace(lost=LOST_LIMIT - 1, lease_until=1, rev=head.rev + 1)
    assert world.table.update_head(head, died)
    faults.after_now(*counts)
    for _ in range(8):
        world.survives(lambda: world.run(key))
    assert last_word(world.get(key.task)) == "The task was given up: its workers died."
    return buried


@pytest.mark.parametrize("what", [die, fail])
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("count", range(1, 9))
def test_a_task_that_is_given_up_makes_a_dead_letter_whatever_happens_meanwhile(
    count: int, what: Callable[[], None], *, late: bool
) -> None:
    faults = At(late=late, what=what)
    buried = given_up(faults, count)
    is_unnoted = faults.met == ["table.update_head"] and not late
    assert len(buried) == 1 + is_unnoted, "twice only if it could not be stored that it was sent"


def test_the_store_may_fail_again_and_again_while_a_task_is_given_up() -> None:
    assert len(given_up(At(late=True, what=fail, only="table.append"), 1, 2, 3)) == 1
    assert len(given_up(At(late=False, what=fail, only="table.append"), 1, 2, 3)) == 1


# ---- Overtaken


class Paused:
    """A writer whose first run stands still at one of its calls until a second has taken over, or has ended."""

    def __init__(self, only: str, count: int, *, until_ended: bool) -> None:
        self.writer = Writer()
        self.faults = At(count, late=False, what=self.stand_still, only=only)
        self.world, self.key = world_with_task(self.writer.work, push=True, faults=self.faults)
        self.ms = 300_000 if until_ended else 76_000

    def stand_still(self) -> None:
        self.world.elsewhere(self.ms)

    def play(self) -> list[str]:
        self.world.survives(lambda: self.world.run(self.key))
        self.world.settle()
        return states(self.world, self.key)


CALLS = [("table.append_chunk", 1), ("table.append_chunk", 3), ("table.store_step", 2), ("table.append", 2)]


@pytest.mark.parametrize(("only", "count"), CALLS)
@pytest.mark.parametrize("until_ended", [True, False], ids=["second has ended", "second is running"])
def test_rule_06_a_run_that_was_overtaken_appends_nothing_more(only: str, count: int, until_ended: bool) -> None:  # noqa: FBT001
    paused = Paused(only, count, until_ended=until_ended)
    log = paused.play()
    assert paused.faults.met == [only]
    events = paused.world.events(paused.key.task)
    fences = [event.fence for event in events if event.fence]
    assert fences == sorted(fences), "once the second has taken it, the first writes nothing"
    assert set(fences) == {1, 2}
    assert [event.emits for event in events if isinstance(event, ArtifactEvent)] == [(1, 1), (2, 2), (3, 3)]
    assert log.count("completed") == 1


def test_rule_07_of_two_runs_that_did_the_same_step_only_the_one_that_stored_its_result_goes_on() -> None:
    seen: list[tuple[int, object]] = []

    async def work(task: TaskContext) -> None:
        number = len(seen)
        seen.append((number, None))

        async def make() -> str:
            return f"made by {number}"

        result = await task.step("make", make)
        seen.append((number, result))
        await task.emit("a", result, last=True)

    faults = At(1, late=False, what=lambda: world.elsewhere(76_000), only="table.store_step")
    world, key = world_with_task(work, faults=faults)
    world.survives(lambda: world.run(key))
    world.settle()
    assert [entry for entry in seen if entry[1]] == [(1, "made by 1")]
    assert [part.value for part in world.get(key.task).artifacts[0].parts] == ["made by 1"]


# ---- Hand-over


@pytest.mark.parametrize("run_ms", [21_500, 23_000, 26_000])
def test_rule_06_work_is_handed_on_before_time_ends_and_nothing_is_doubled(run_ms: int) -> None:
    writer = Writer(seconds=1.2)
    world = World([writer.agent])
    world.run_ms = run_ms
    task_id = world.send("hello").id
    world.settle()
    task = world.get(task_id)
    assert task.status.state is TaskState.COMPLETED
    assert [part.value for part in task.artifacts[0].parts] == ["one: hello. two: hello. three: hello. "]
    assert writer.ran == ["one", "two", "three"]
    assert [message.text() for message in task.history] == ["hello", "three sections"]
    assert (head_of(world, ME.key(task_id)).fence > 1) is (run_ms < 24_000)
    statuses = [event for event in world.events(task_id) if isinstance(event, StatusEvent) and event.fence]
    working = [event for event in statuses if event.state is TaskState.WORKING]
    assert [event.message and event.message.text() for event in working] == [None, "three sections"]


def test_a_run_that_hands_on_releases_the_lease_and_enqueues_at_once() -> None:
    world, key = world_with_task(for_ever)
    (ending,) = world.together(world.worker(key, time_ms=50_000))
    assert ending is RunOutcome.HANDED_OVER
    head = head_of(world, key)
    assert (head.lease_until, head.due_at, head.lost) == (0, world.now, 0)
    assert (world.now, WorkMessage(key)) in world.queue.waiting


def test_a_task_that_takes_hours_is_carried_through_many_runs() -> None:
    world = World([Writer(seconds=840).agent])
    task_id = world.send("hello").id
    world.settle()
    assert world.get(task_id).status.state is TaskState.COMPLETED
    assert head_of(world, ME.key(task_id)).fence >= 3


# ---- Cancel


class Witness:
    """An agent in the middle of something, and what it noticed of its end."""

    def __init__(self, *, in_a_step: bool) -> None:
        self.in_a_step = in_a_step
        self.noticed: list[tuple[str, int]] = []
        self.world: World

    async def work(self, task: TaskContext) -> None:
        await task.emit("a", "before ")
        waiting = partial(self.wait, task)
        await (task.step("wait", waiting) if self.in_a_step else waiting())
        await task.emit("a", "after", append=True)

    async def wait(self, task: TaskContext) -> str:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            self.noticed.append(("canceled", self.world.now))
            try:
                await task.emit("a", "last words", append=True)
            finally:
                self.noticed.append(("refused", self.world.now))
        return "waited"


@pytest.mark.parametrize("in_a_step", [True, False])
def test_a_cancel_reaches_running_work_within_two_seconds_and_nothing_is_written_after_it(in_a_step: bool) -> None:  # noqa: FBT001
    witness = Witness(in_a_step=in_a_step)
    world, key = world_with_task(witness.work, push=True)
    witness.world = world
    canceled_at: list[int] = []

    def cancel() -> None:
        world.cancel(key.task)
        canceled_at.append(world.now)

    world.plan(7_300, cancel)
    assert world.run(key) is RunOutcome.LEASE_LOST
    assert [what for what, _ in witness.noticed] == ["canceled", "refused"]
    assert canceled_at[0] <= witness.noticed[0][1] <= canceled_at[0] + 2_000
    assert states(world, key) == ["submitted", "working", "chunk", "canceled"]
    world.settle()
    assert states(world, key) == ["submitted", "working", "chunk", "canceled"]
    bodies: list[Any] = [got.body for got in world.receiver.posts]
    assert bodies[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED"


def test_a_canceled_task_enqueues_no_more_work() -> None:
    world, key = world_with_task(for_ever)
    world.plan(3_000, lambda: world.cancel(key.task))
    world.run(key)
    assert [at - world.now > RUN_LEASE_MS - 5_000 for at, _ in world.queue.waiting] == [True], "the run's first look"


def test_an_agent_that_ignores_its_cancellation_is_left_behind_and_can_write_nothing() -> None:
    tried: list[str] = []

    async def stubborn(task: TaskContext) -> None:
        for _ in range(100):
            try:
                await asyncio.sleep(3)
                await task.emit("a", "x", append=True)
            except asyncio.CancelledError:
                tried.append("canceled")

    world, key = world_with_task(stubborn)
    world.plan(7_000, lambda: world.cancel(key.task))
    assert world.run(key) is RunOutcome.LEASE_LOST
    assert "canceled" in tried
    assert states(world, key) == ["submitted", "working", "chunk", "chunk", "canceled"]


def test_an_agent_that_catches_everything_is_stopped_all_the_same() -> None:
    async def greedy(task: TaskContext) -> None:
        for number in range(100):
            try:
                await asyncio.sleep(1)
                await task.step(f"step {number}", asyncio.sleep, 1)
                await task.emit("a", "x", append=True)
            except Exception:  # noqa: BLE001, S110 - that is its nature
                pass

    world, key = world_with_task(greedy)
    world.plan(7_000, lambda: world.cancel(key.task))
    assert world.run(key) is RunOutcome.LEASE_LOST
    assert states(world, key)[-1] == "canceled"


def added(number: int) -> int:
    DONE.append(number)
    return number


DONE: list[int] = []
LATE: dict[str, Callable[[TaskContext], Awaitable[object]]] = {
    "emits": lambda task: task.emit("late.txt", "late"),
    "begins a step": lambda task: task.step("late", added, 1),
    "reports progress": lambda task: task.report_progress("late"),
    "records usage": lambda task: task.record_usage("model", input_tokens=1),
    "reads a secret": lambda task: task.secret("KEY"),
    "asks": lambda task: task.ask("Why?"),
    "calls an agent": lambda task: task.call("late", "nobody", "hello"),
    "reads a card": lambda task: task.get_card("nobody"),
    "reads its task": lambda task: task.get_task(),
    "reads a value": lambda task: task.store.get("late"),
}


@pytest.mark.parametrize("stop", ["is canceled", "is handed over"])
@pytest.mark.parametrize("call", LATE)
def test_rule_06_work_that_goes_on_when_its_run(stop: str, call: str) -> None:
    """Nothing that it still does with its task is done, although the lease may still be held."""
    refused: list[BaseException] = []

    async def stubborn(task: TaskContext) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            try:
                await LATE[call](task)
            except BaseException as error:  # noqa: BLE001 - that is its nature
                refused.append(error)

    DONE.clear()
    world, key = world_with_task(stubborn)
    if stop == "is canceled":
        world.plan(3_000, lambda: world.cancel(key.task))
    else:
        world.run_ms = 24_000
    world.run(key)
    assert [type(error) for error in refused] == [LeaseLost]
    assert (DONE, world.get(key.task).artifacts) == ([], ())


# ---- How it ends


def raising(error: BaseException) -> Work:
    async def work(task: TaskContext) -> None:
        await task.report_progress("begun")
        raise error

    return work


ENDINGS = {
    "rejected": (TaskRejected("Only even numbers."), TaskState.REJECTED, "Only even numbers."),
    "failed": (TaskFailed("The oven is cold."), TaskState.FAILED, "The oven is cold."),
    "bad message": (InvalidParams("Send an outline."), TaskState.REJECTED, "Send an outline."),
    "error": (ValueError("password=hunter2"), TaskState.FAILED, "The agent stopped with an error"),
    "group": (
        ExceptionGroup("several", [ValueError("password=hunter2")]),
        TaskState.FAILED,
        "The agent stopped with an error",
    ),
    "its own cancellation": (asyncio.CancelledError(), TaskState.FAILED, "The agent stopped with an error"),
}


@pytest.mark.parametrize("case", ENDINGS)
def test_the_exception_of_an_agent_decides_how_its_task_ends(case: str) -> None:
    error, state, text = ENDINGS[case]
    world, key = world_with_task(raising(error))
    assert world.run(key) is RunOutcome.ENDED
    task = world.get(key.task)
    assert (task.status.state, last_word(task).partition(" (reference")[0]) == (state, text)


def test_an_agent_s_error_is_in_the_log_with_its_ids_and_not_in_the_task(caplog: pytest.LogCaptureFixture) -> None:
    world, key = world_with_task(raising(ValueError("the reason")), push=True)
    world.run(key)
    world.settle()
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert (record.__dict__["task"], record.__dict__["agent"]) == (key.task, "echo")
    assert record.__dict__["error"] == "ValueError"
    assert record.__dict__["raised_at"][-1].startswith(f"{__file__}:")
    assert record.__dict__["raised_at"][-1].endswith(" work")
    reference = record.__dict__["reference"]
    assert last_word(world.get(key.task)).endswith(f"(reference {reference}).")
    assert "the reason" not in str(record.__dict__)
    assert "the reason" not in str(world.events(key.task))
    assert "the reason" not in str([got.body for got in world.receiver.posts])


@pytest.mark.parametrize(("returned", "said"), [(None, None), ("All done.", "All done.")])
def test_the_return_value_of_an_agent_is_the_final_message(returned: str | None, said: str | None) -> None:
    async def work(_: TaskContext) -> str | None:
        return returned

    world, key = world_with_task(work)
    world.run(key)
    task = world.get(key.task)
    assert task.status.state is TaskState.COMPLETED
    assert (task.status.message.text() if task.status.message else None) == said


def returning(message: Message) -> Work:
    async def work(_: TaskContext) -> Message:
        return message

    return work


@pytest.mark.requirement(48)
def test_a_message_that_an_agent_returns_belongs_to_its_task_and_conversation() -> None:
    world, key = world_with_task(returning(Message(message_id="mine", role=Role.AGENT, parts=(Part(text="Done."),))))
    world.run(key)
    task = world.get(key.task)
    assert task.status.message == Message(
        message_id="mine", role=Role.AGENT, parts=(Part(text="Done."),), context_id=task.context_id, task_id=key.task
    )


@pytest.mark.requirement(87)
@pytest.mark.parametrize(
    "message",
    [
        Message(message_id="m", role=Role.AGENT, parts=()),
        Message(message_id="m", role=Role.USER, parts=(Part(text="x"),)),
    ],
)
def test_a_message_that_no_agent_can_send_fails_the_task(message: Message) -> None:
    world, key = world_with_task(returning(message))
    world.run(key)
    task = world.get(key.task)
    assert task.status.state is TaskState.FAILED
    assert last_word(task).startswith("The agent stopped with an error (reference ")


def test_a_task_of_an_agent_that_is_no_longer_deployed_fails() -> None:
    world, key = world_with_task(for_ever)
    world.engine = replace(world.engine, agents={})
    world.run(key)
    task = world.get(key.task)
    assert (task.status.state, last_word(task)) == (TaskState.FAILED, "This agent is no longer deployed.")


def test_a_run_leaves_no_complaint_about_lost_exceptions(caplog: pytest.LogCaptureFixture) -> None:
    """An agent that is stopped may raise anything on its way out: nobody waits for it any more."""
    import gc

    async def sore_loser(task: TaskContext) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await task.emit("a", "x")

    world, key = world_with_task(sore_loser)
    world.plan(3_000, lambda: world.cancel(key.task))
    world.run(key)
    gc.collect()
    assert caplog.records == []


# ---- Messages during a run


def test_a_follow_up_during_a_run_is_kept_and_does_not_disturb_it() -> None:
    writer = Writer()
    world = World([writer.agent])
    task_id = world.send("hello").id
    world.plan(2_000, lambda: world.send("and more", push=False, task_id=task_id))
    world.settle()
    task = world.get(task_id)
    assert task.status.state is TaskState.COMPLETED
    assert [message.text() for message in task.history] == ["hello", "three sections", "and more"]
    assert writer.ran == ["one", "two", "three"]
    assert head_of(world, ME.key(task_id)).fence == 1
