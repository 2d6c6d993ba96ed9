"""Steps over items: their names, their limit, the errors that are tolerated, and runs that die."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from a2a_serverless import Retry, Step, StepConflict, TaskFailed, TaskState
from a2a_serverless.testing import CLIENT, AgentTestHarness
from tests.echo import agent_of
from tests.faults.plans import Count, kill_at
from tests.frameworks.kills import PORTS
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a_serverless import TaskContext
    from tests.faults.plans import Faults


class Odd(Exception):
    """Makes its text of its argument."""

    def __init__(self, number: int) -> None:
        super().__init__(f"{number} is odd")


@dataclass
class Work:
    """Doubles even numbers after so many seconds; counts what runs at a time."""

    seconds: float = 1
    now: int = 0
    most: int = 0

    async def double(self, number: int) -> int:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.now -= 1
        if number % 2:
            raise ValueError(f"{number} is odd")
        return 2 * number


def said(work: Callable[[TaskContext], Awaitable[object]], answers: int = 0) -> str:
    harness = AgentTestHarness(agent_of(work))
    reply = harness.send("go")
    for _ in range(answers):
        reply = harness.send("yes", task_id=reply.task.id)
    assert reply.state is TaskState.COMPLETED, reply.error
    return reply.said


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (3, 3), (10, 7)])
def test_at_most_so_many_run_at_a_time_and_the_results_are_in_the_order_of_the_items(limit: int, most: int) -> None:
    counted = Work()

    async def work(task: TaskContext) -> str:
        return str(await task.map("double", counted.double, range(0, 14, 2), limit=limit))

    assert said(work) == str([*range(0, 28, 4)])
    assert counted.most == most


def test_no_items_give_no_results() -> None:
    async def work(task: TaskContext) -> str:
        return str(await task.map("none", Work().double, []))

    assert said(work) == "[]"


def test_each_item_is_a_step_named_by_its_index_and_a_second_map_of_the_name_is_another_one() -> None:
    async def work(task: TaskContext) -> str:
        first = await task.map("double", str, (1, 2))
        return " ".join(first + await task.map("double", str, (3,)))

    harness = AgentTestHarness(agent_of(work))
    reply = harness.send("go")
    assert reply.said == "1 2 3"
    steps = {name for name in harness.table.read_steps(CLIENT.key(reply.task.id)) if name[0] != "@"}
    assert steps == {"double > 0", "double > 1", "double#2 > 0"}


class Page(BaseModel):
    """An item, and a result."""

    text: str


def turn(page: Page) -> Page:
    return Page(text=page.text[::-1])


def test_items_and_results_are_models_as_those_of_a_step() -> None:
    async def work(task: TaskContext) -> str:
        pages = await task.map("turn", turn, [Page(text="abc"), Page(text="def")])
        await task.ask("Go on?")
        return " ".join(page.text for page in pages)

    assert said(work, answers=1) == "cba fed"


def test_one_error_more_than_is_tolerated_cancels_the_rest_and_is_raised_in_each_run() -> None:
    counted, caught = Work(), list[str]()

    async def work(task: TaskContext) -> str:
        try:
            await task.map("double", counted.double, [0, 1, 2, 3, 4, 5, 6], limit=2, tolerate=1)
        except ValueError as error:
            caught.append(str(error))
        await task.ask("Go on?")
        return "over"

    assert said(work, answers=1) == "over"
    assert caught == ["3 is odd"] * 2
    assert counted.now == 0


def test_a_map_begins_no_step_after_an_error_if_no_step_waits() -> None:
    begun = list[int]()

    async def at_once(number: int) -> None:
        begun.append(number)
        if number == 0:
            raise ValueError

    async def work(task: TaskContext) -> str:
        with suppress(ValueError):
            await task.map("at once", at_once, range(10), limit=3)
        return str(begun)

    assert said(work) == "[0]"


def test_the_steps_that_run_beside_the_error_that_is_raised_are_cancelled() -> None:
    cancelled = list[int]()

    async def slow(number: int) -> None:
        try:
            await asyncio.sleep(1000 * number + 1)
        except asyncio.CancelledError:
            cancelled.append(number)
            raise
        raise ValueError

    async def work(task: TaskContext) -> str:
        with suppress(ValueError):
            await task.map("slow", slow, range(3), limit=2)
        return str(cancelled)

    assert said(work) == "[1]"


def test_tolerated_errors_stand_in_their_places_the_same_in_each_run() -> None:
    results = list[Any]()

    async def fail(number: int) -> int:
        await asyncio.sleep(1)
        if number == 1:
            raise Odd(number)
        if number == 2:
            raise TaskFailed("not this one")
        return number

    async def work(task: TaskContext) -> str:
        results.append(await task.map("fail", fail, range(4), tolerate=2))
        await task.ask("Go on?")
        return "over"

    assert said(work, answers=1) == "over"
    for given in results:
        assert [type(one) for one in given] == [int, Odd, TaskFailed, int]
        assert str(given[1]) == "1 is odd"
    assert len(results) == 2


def test_each_step_has_the_options_of_the_name() -> None:
    tries = Counter[int]()

    async def flaky(number: int) -> bytes:
        tries[number] += 1
        if tries[number] <= number:
            raise OSError
        return bytes([number])

    class Hex:
        def dump(self, value: bytes) -> str:
            return value.hex()

        def load(self, stored: Any) -> bytes:
            return bytes.fromhex(stored)

    async def work(task: TaskContext) -> str:
        pages = Step("flaky", retry=Retry(tries=3, first_s=30), codec=Hex(), repeat=True)
        return str(await task.map(pages, flaky, range(3)))

    assert said(work) == str([b"\0", b"\1", b"\2"])
    assert tries == {0: 1, 1: 2, 2: 3}


def test_a_conflict_is_not_tolerated() -> None:
    async def work(task: TaskContext) -> str:
        async def twice(number: int) -> None:
            await task.step(f"inner {number}", asyncio.sleep, 0)
            await task.step(f"inner {number}", asyncio.sleep, 0)

        await task.map("twice", twice, range(3), tolerate=3)
        return "never"

    reply = AgentTestHarness(agent_of(work)).send("go")
    assert isinstance(reply.error, StepConflict)


@pytest.mark.parametrize(("count", "limit"), [(1001, 10), (1, 0)])
def test_a_map_refuses_too_many_items_and_a_limit_of_zero(count: int, limit: int) -> None:
    async def work(task: TaskContext) -> str:
        try:
            await task.map("many", str, range(count), limit=limit)
        except ValueError as error:
            return str(error)
        return "never"

    assert said(work) == "A map has at most 1000 items, and a limit of 1 or more."


# ---- Deaths


def played(faults: Faults, paid: Counter[int], twice: list[int]) -> str:
    """What the task says in the end. Items that are paid although their result is stored are in ``twice``."""
    world = World([agent_of(None)], faults)

    async def work(task: TaskContext) -> str:
        async def pay(number: int) -> int:
            await asyncio.sleep(number % 3 + 1)
            paid[number] += 1
            stored = world.table.read_steps(task_key)
            twice.extend([number] * any(one.endswith((f"pay > {number}", f"pay > {number}/1")) for one in stored))
            if number % 2:
                raise ValueError(f"{number} is odd")
            return number

        results = await task.map("pay", pay, range(6), limit=2, tolerate=3)
        return " ".join(map(str, results))

    world.agents["echo"] = agent_of(work)
    task = world.send("go", push=False)
    task_key = ME.key(task.id)
    world.settle()
    message = world.client(lambda: world.get(task.id)).status.message
    return message.text() if message else ""


def test_rule_07_a_death_at_any_call_pays_no_item_twice_that_has_ended() -> None:
    calls, twice = Count(PORTS), list[int]()
    expected = "0 1 is odd 2 3 is odd 4 5 is odd"
    assert played(calls, Counter(), twice) == expected
    for number in range(1, len(calls.calls) + 1):
        for late in (False, True):
            paid = Counter[int]()
            assert played(kill_at(number, late=late, ports=PORTS), paid, twice) == expected, (number, late)
            assert sum(paid.values()) <= 8, "the death interrupts two at most"
    assert twice == []
