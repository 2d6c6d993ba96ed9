"""The harness ends a run after each stored act, and the next run goes on from the log."""

from __future__ import annotations

import re
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.engine.framework_task import framework_task
from a2a_serverless.testing import AgentTestHarness, ReplayDiffers
from tests.echo import agent_of

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext


def test_no_step_runs_again_because_of_a_replay() -> None:
    runs: list[str] = []

    async def pay(name: str) -> str:
        runs.append(name)
        return name

    async def payer(task: TaskContext) -> str:
        async def says(name: str) -> str:
            await task.emit("receipt", name)
            return await pay(name)

        await task.report_progress("paying")
        for name in "abc":
            await task.step(name, says, name)
        return " ".join(runs)

    harness = AgentTestHarness(agent_of(payer))
    reply = harness.send("pay")
    assert reply.said == "a b c"
    assert runs == ["a", "b", "c"]
    assert len(harness.runs) == 1, "the runs are ended within a run of the platform"


def test_random_outside_of_steps_is_seen() -> None:
    numbers = count()

    async def roller(task: TaskContext) -> str:
        number = next(numbers)
        await task.step("first", str, 1)
        answer: str = await task.step(f"roll {number}", str, number)
        return answer

    with pytest.raises(ReplayDiffers, match="did not come to 'roll"):
        AgentTestHarness(agent_of(roller)).send("roll")


def test_a_step_conflict_shows_the_arguments_of_both_runs(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = count(7)

    async def roller(task: TaskContext) -> str:
        await task.step("roll", str, next(numbers))
        return "done"

    reply = AgentTestHarness(agent_of(roller)).send("roll")
    assert reply.state == "failed"
    assert "An earlier run called the step 'roll' with (7), this run with (8)." in capsys.readouterr().err


def test_an_object_that_a_step_changes_is_seen() -> None:
    async def seats(task: TaskContext) -> str:
        order: dict[str, int] = {}

        async def book() -> None:
            order["seat"] = 7

        await task.step("book", book)
        await task.report_progress(f"booked {order.get('seat')}")
        return f"paid for seat {order.get('seat')}"

    assert AgentTestHarness(agent_of(seats), replay=False).send("book").said == "paid for seat 7"
    assert AgentTestHarness(agent_of(seats)).send("book").said == "paid for seat None", (
        "as after any death: the test shows it"
    )


@pytest.mark.parametrize(("has_others", "effects"), [(True, 1), (False, 2)])
def test_no_run_ends_while_another_unit_of_a_framework_works(has_others: bool, effects: int) -> None:  # noqa: FBT001
    done: list[str] = []

    async def work(task: TaskContext) -> str:
        framework_task(task).set_unit(str, lambda: has_others)
        done.append("what the other unit does")
        await task.step("one", str, 1)
        return "done"

    assert AgentTestHarness(agent_of(work)).send("go").said == "done"
    assert len(done) == effects


def test_a_chunk_with_other_content_is_seen() -> None:
    numbers = count()

    async def writer(task: TaskContext) -> str:
        await task.emit("text", str(next(numbers)))
        await task.step("first", str, 1)
        await task.step("second", str, 2)
        return "done"

    with pytest.raises(ReplayDiffers, match="to 'text' where an earlier run emitted"):
        AgentTestHarness(agent_of(writer)).send("write")


async def seats(task: TaskContext) -> str:
    order: dict[str, int] = {}
    await task.step("book", order.setdefault, "seat", 7)
    await task.report_progress("booked")
    return f"paid for seat {order.get('seat')}"


@pytest.mark.replay(False)  # noqa: FBT003 - how marks are written
def test_the_mark_of_a_test_is_that_of_its_harnesses() -> None:
    assert AgentTestHarness(agent_of(seats)).send("book").said == "paid for seat 7"
    assert AgentTestHarness(agent_of(seats), replay=True).send("book").said == "paid for seat None"


@pytest.mark.replay(False)  # noqa: FBT003 - how marks are written
class TestMarked:
    def test_the_mark_of_a_class_is_that_of_its_tests(self) -> None:
        assert AgentTestHarness(agent_of(seats)).send("book").said == "paid for seat 7"

    @pytest.mark.replay(True)  # noqa: FBT003 - how marks are written
    def test_the_mark_nearest_to_a_test_decides_its_replay(self) -> None:
        assert AgentTestHarness(agent_of(seats)).send("book").said == "paid for seat None"


def test_a_mark_ends_with_its_test() -> None:
    assert AgentTestHarness(agent_of(seats)).send("book").said == "paid for seat None"


def test_an_act_that_a_retry_has_copied_and_mended_code_omits_is_no_difference() -> None:
    async def first(task: TaskContext) -> str:
        await task.emit("notes", "begun", last=True)
        await task.step("measure", str, 1)
        await task.step("divide", lambda: 1 / 0)
        return "never"

    async def mended(task: TaskContext) -> str:
        await task.step("divide", float, 1)
        await task.step("more", float, 1)
        return "done"

    harness = AgentTestHarness(agent_of(first))
    failed = harness.send("go")
    harness.deploy(agent_of(mended))
    assert harness.retry(failed.task.id, from_step="divide").said == "done"


def test_a_chunk_that_a_retry_adds_to_what_it_has_copied_must_come_in_each_run() -> None:
    runs = count()

    async def first(task: TaskContext) -> str:
        await task.step("measure", str, 1)
        await task.emit("notes", "begun", append=True)
        await task.step("divide", lambda: 1 / 0)
        return "never"

    async def mended(task: TaskContext) -> str:
        await task.step("measure", str, 1)
        if not next(runs):
            await task.emit("notes", "begun", append=True)
            await task.emit("notes", "once", append=True)
        await task.step("divide", float, 1)
        return "done"

    harness = AgentTestHarness(agent_of(first))
    failed = harness.send("go")
    harness.deploy(agent_of(mended))
    with pytest.raises(ReplayDiffers, match="did not emit a chunk of 'notes'"):
        harness.retry(failed.task.id, from_step="divide")


def test_a_run_that_ends_in_a_wait_is_a_run_of_the_platform() -> None:
    async def sleeper(task: TaskContext) -> str:
        await task.step("first", str, 1)
        await task.sleep("night", 60)
        return "done"

    for replay in (False, True):
        harness = AgentTestHarness(agent_of(sleeper), replay=replay)
        assert harness.send("go").said == "done"
        assert len(harness.runs) == 2


def test_a_test_that_plays_without_replay_says_why() -> None:
    """Beside it, or in the line before. The tests of the replay itself compare both."""
    here = Path(__file__)
    without = [
        (f"{path.relative_to(here.parent)}:{number}", before, line)
        for path in sorted(here.parent.rglob("*.py"))
        if path.name not in {here.name, "test_replay_kinds.py"}
        for number, (before, line) in enumerate(pairwise(["", *path.read_text().splitlines()]), 1)
        if re.search(r"replay(=|\()False", line)
    ]
    assert without
    assert [place for place, before, line in without if "  # " not in line and "# " not in before] == []
