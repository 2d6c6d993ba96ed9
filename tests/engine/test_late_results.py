"""A process stands still within a write that began under its lease, and dies after it: another run has the task."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.store import keys
from a2a_serverless.store.table import PutNew
from a2a_serverless.testing.memory import MemoryStores, MemoryTable
from tests.echo import agent_of
from tests.simulated import Killed
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from a2a_serverless.domain.step_results import StepResult
    from a2a_serverless.domain.task_context import TaskContext

LONGER_THAN_A_LEASE_MS = 95_000
LONG_S = 400
SHORT_S = 5


class Author:
    """An agent whose first run does its first step quickly, and is then held up while it stores what came of that."""

    def __init__(self, play: Callable[[Author, TaskContext], Any]) -> None:
        self.runs = 0
        self.done: list[str] = []
        self.held = ""
        self.results: Mapping[str, StepResult] = {}

        async def work(task: TaskContext) -> str:
            self.runs += 1
            return str(await play(self, task))

        self.agent = agent_of(work)

    def is_first(self) -> bool:
        return self.runs == 1

    async def pay(self, name: str) -> str:
        self.done.append(name)
        return name

    def play(self, held: str, held_ms: int = LONGER_THAN_A_LEASE_MS) -> str:
        """Plays a task whose result with this name comes late; returns what it came to."""
        author = self

        class SlowTable(MemoryTable):
            def write(self, *actions: Any) -> Any:
                puts = [one.item["sk"]["S"] for one in actions if isinstance(one, PutNew)]
                if keys.step(held) in puts and author.runs == 1 and not author.held:
                    author.held = held
                    world.elsewhere(held_ms)
                    assert super().write(*actions) is None
                    raise Killed
                return super().write(*actions)

        class SlowStores(MemoryStores):
            make_table = SlowTable

        world = World([self.agent], table=SlowStores)
        task = world.send("go", push=False)
        world.settle()
        assert self.held == held
        status = world.get(task.id).status
        assert status.state is TaskState.COMPLETED
        assert status.message
        self.results = world.table.read_steps(ME.key(task.id))
        return status.message.text()


async def race(author: Author, task: TaskContext) -> str:
    """The first of two steps is paid for; then the task is suspended."""
    seconds = {"x": 1 if author.is_first() else LONG_S, "y": SHORT_S}
    steps = {asyncio.ensure_future(task.step(name, asyncio.sleep, s, name)): name for name, s in seconds.items()}
    done, others = await asyncio.wait(steps, return_when=asyncio.FIRST_COMPLETED)
    for other in others:
        other.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    winner = min(steps[step] for step in done)
    await task.step(f"pay {winner}", author.pay, winner)
    await task.sleep("nap", LONG_S)
    return winner


async def fail_at_first(author: Author, task: TaskContext) -> str:
    """A step that fails, and in later runs does not."""

    async def try_it() -> str:
        if author.is_first():
            raise OSError("busy")
        return "done"

    try:
        text = await task.step("x", try_it)
    except OSError:
        text = "plan b"
    await task.step(f"pay {text}", author.pay, text)
    await task.sleep("nap", LONG_S)
    return str(text)


async def go_on(author: Author, task: TaskContext) -> str:
    """A step that takes so long in the second run that the late result of the first one is there before."""

    async def work() -> str:
        await asyncio.sleep(1 if author.is_first() else LONG_S)
        author.done.append(f"run {author.runs}")
        return f"run {author.runs}"

    await task.step("before", author.pay, "before")
    return str(await task.step("x", work))


@pytest.mark.parametrize(
    ("play", "held", "paid"),
    [(race, "x", "y"), (fail_at_first, "@raised/x/1", "done")],
    ids=["the winner of a race", "an error"],
)
def test_rule_07_a_late_result_changes_nothing_that_later_runs_do(
    play: Callable[[Author, TaskContext], Any], held: str, paid: str
) -> None:
    author = Author(play)
    assert author.play(held) == paid
    assert author.done == [paid]
    assert author.runs == 3
    assert held not in author.results


def test_rule_07_a_run_replaces_the_late_result_of_an_earlier_run() -> None:
    author = Author(go_on)
    assert author.play("x") == "run 2"
    assert author.done == ["before", "run 1", "run 2"]
    assert author.runs == 2, "the run need not end for it"
    assert author.results["x"].fence > author.results["before"].fence


def test_a_result_counts_that_comes_before_the_next_run_reads() -> None:
    author = Author(go_on)
    assert author.play("x", held_ms=1) == "run 1"
    assert author.done == ["before", "run 1"]
