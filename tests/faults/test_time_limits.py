"""Work that is longer than the platform's 15 minutes, three times over, and waits that hold no compute."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from a2a_serverless.protocol.v1 import Task, TaskState
from a2a_serverless.testing import AgentTestHarness, Reply
from a2a_serverless.testing.deployment import RUN_MS
from tests.echo import agent_of

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext

CHAPTERS = 55
CHAPTER_S = 60
HOUR_MS = 3_600_000


class Novelist:
    """Fifty-five chapters, a minute each: longer than three of the platform's limits."""

    def __init__(self) -> None:
        self.begun: Counter[int] = Counter()
        self.done: Counter[int] = Counter()
        self.agent = agent_of(self.work, "novelist")

    async def work(self, task: TaskContext) -> None:
        for number in range(CHAPTERS):
            text = await task.step(f"chapter {number}", self.write, number)
            await task.emit("novel.md", text, append=True, last=number == CHAPTERS - 1)

    async def write(self, number: int) -> str:
        self.begun[number] += 1
        await asyncio.sleep(CHAPTER_S)
        self.done[number] += 1
        return f"Chapter {number}.\n"


def test_three_time_limits_lose_no_chapter_and_repeat_no_step() -> None:
    novelist = Novelist()
    world = AgentTestHarness(novelist.agent)
    reply = world.send("Write a novel")
    assert reply.state is TaskState.COMPLETED
    assert reply.text("novel.md") == "".join(f"Chapter {number}.\n" for number in range(CHAPTERS))
    assert len(reply.artifacts["novel.md"].parts) == 1, "the chapters are one text"
    assert set(novelist.done.values()) == {1}, "no step is done twice"
    assert len(world.runs) == 4, "handed on three times"
    assert novelist.begun.total() == CHAPTERS + 3, "only what a hand-over interrupts is begun again"
    assert all(ended - began < RUN_MS for _, began, ended in world.runs), "handed on before the platform ends a run"


def test_runs_follow_each_other_at_once_and_never_overlap() -> None:
    world = AgentTestHarness(Novelist().agent)
    world.send("Write a novel")
    ends = [ended for _, _, ended in world.runs]
    starts = [began for _, began, _ in world.runs]
    assert starts[1:] == ends[:-1]


def test_a_wait_for_a_client_costs_nothing_however_long_it_is() -> None:
    async def asks(task: TaskContext) -> None:
        await task.emit("answer.txt", (await task.ask("When?")).text(), last=True)

    world = AgentTestHarness(agent_of(asks))
    asked = world.send("hello")
    world.wait(48 * HOUR_MS)
    reply = world.send("In two days", task_id=asked.task.id)
    assert reply.text("answer.txt") == "In two days"
    assert len(world.runs) == 2
    assert sum(ended - began for _, began, ended in world.runs) == 0, "billed while waiting: nothing"


def publishing(novelist: Novelist) -> tuple[AgentTestHarness, Reply]:
    """A novel that another agent has commissioned."""

    async def commissions(task: TaskContext) -> None:
        novel = await task.call("novel", "novelist", task.text())
        assert isinstance(novel, Task)
        await task.emit("book.md", novel.artifacts[0].text(), last=True)

    world = AgentTestHarness(agent_of(commissions, "publisher"), novelist.agent)
    return world, world.send("Write a novel")


def test_a_wait_for_another_agent_costs_the_caller_nothing_while_that_one_is_handed_on_too() -> None:
    novelist = Novelist()
    world, reply = publishing(novelist)
    assert reply.text("book.md").count("Chapter") == CHAPTERS
    assert set(novelist.done.values()) == {1}
    own = [ended - began for task, began, ended in world.runs if task == reply.task.id]
    others = [ended - began for task, began, ended in world.runs if task != reply.task.id]
    assert (len(own), len(others)) == (2, 4)
    assert sum(others) > CHAPTERS * CHAPTER_S * 1000
    assert sum(own) < 5000, "the caller is open until it sees that it has to wait, and at the end"
