"""Why a suspended task waits, and since when: the waits in its head."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from a2a_serverless import Task
from a2a_serverless.domain.waits import NAME, WAITS
from a2a_serverless.testing import CLIENT, AgentTestHarness
from tests.echo import agent_of

if TYPE_CHECKING:
    from a2a_serverless import TaskContext

HOUR_S = 3600
HOUR_MS = 3_600_000
CLOCKS_MS = 2000


def begun(harness: AgentTestHarness) -> Task:
    task = harness.begin("go")
    assert isinstance(task, Task)
    harness.settle(60_000)
    return task


def near(at: int | None, expected: int) -> bool:
    return at is not None and 0 <= at - expected <= CLOCKS_MS


def test_each_kind_of_wait_has_its_name_its_beginning_and_its_end() -> None:
    urls: list[str] = []

    async def child(task: TaskContext) -> None:
        await task.sleep("work", 9 * HOUR_S)

    async def work(task: TaskContext) -> None:
        async def limited() -> None:
            async with task.timeout("patience", 8 * HOUR_S):
                paid = await task.callback("paid")
                urls.append(paid.url)
                await paid.received()

        async def sleep_tonight() -> None:
            with task.scope("tonight"):
                await task.sleep("nap", 3 * HOUR_S)

        await asyncio.gather(
            sleep_tonight(),
            limited(),
            task.call("sew", "child", "go", timeout_s=7 * HOUR_S),
            task.ask("May I?", timeout_s=6 * HOUR_S, remind_s=5 * HOUR_S),
        )

    harness = AgentTestHarness(agent_of(work), agent_of(child, "child"))
    began, task = harness.now, begun(harness)
    waits = {(wait.kind, wait.name): wait for wait in harness.waits(task.id)}
    question = harness.reply(task.id).task.status.message
    assert question
    ends = {
        ("sleep", "tonight > nap"): 3,
        ("reminder", question.message_id): 5,
        ("timeout", question.message_id): 6,
        ("call", "sew"): 7,
        ("timeout", "patience"): 8,
    }
    assert waits.keys() == {*ends, ("question", question.message_id), ("event", "paid")}
    assert all(near(wait.since, began) for wait in waits.values())
    assert all(near(waits[wait].until, began + hours * HOUR_MS) for wait, hours in ends.items())
    assert waits["question", question.message_id].until is waits["event", "paid"].until is None
    head = harness.table.read_head(CLIENT.key(task.id))
    assert head
    assert urls[0].rpartition("/")[2] not in head.head.waits


def test_a_wait_that_goes_on_after_another_has_ended_is_as_old_as_before() -> None:
    async def work(task: TaskContext) -> None:
        paid = await task.callback("paid")
        await asyncio.gather(paid.received(), task.sleep("nap", HOUR_S))

    harness = AgentTestHarness(agent_of(work))
    began, task = harness.now, begun(harness)
    assert [wait.name for wait in harness.waits(task.id)] == ["paid", "nap"]
    harness.settle(2 * HOUR_MS)
    (wait,) = harness.waits(task.id)
    assert (len(harness.runs), wait.name, near(wait.since, began)) == (2, "paid", True)


def test_a_wait_that_began_during_a_step_is_as_old_as_its_beginning() -> None:
    async def work(task: TaskContext) -> None:
        paid = await task.callback("paid")
        await asyncio.gather(paid.received(), task.step("work", asyncio.sleep, 40))

    harness = AgentTestHarness(agent_of(work))
    began, task = harness.now, begun(harness)
    (wait,) = harness.waits(task.id)
    assert near(wait.since, began)


def test_a_task_that_has_ended_waits_for_nothing() -> None:
    async def work(task: TaskContext) -> None:
        await task.sleep("nap", HOUR_S)

    harness = AgentTestHarness(agent_of(work))
    task = begun(harness)
    assert harness.waits(task.id)
    harness.settle()
    head = harness.table.read_head(CLIENT.key(task.id))
    assert head
    assert (harness.waits(task.id), head.head.waits, harness.waits("none")) == ((), "", ())


def test_of_many_waits_with_long_names_the_first_are_listed_and_the_others_counted() -> None:
    async def work(task: TaskContext) -> None:
        with task.scope("?"):
            await asyncio.gather(*(task.sleep(f"{number} {'n' * 200}", HOUR_S) for number in range(WAITS + 3)))

    harness = AgentTestHarness(agent_of(work))
    task = begun(harness)
    head = harness.table.read_head(CLIENT.key(task.id))
    assert head
    assert (len(head.head.open_waits.waits), head.head.open_waits.more) == (WAITS, 3)
    assert {len(wait.name) for wait in head.head.open_waits.waits} == {NAME}
    assert head.head.open_waits.waits[0].name.startswith("? > 0 n")
    assert len(head.head.waits.encode()) < WAITS * (NAME + 60)
