"""Kinds of differences between a first run and a later run, each in an ordinary agent and an ordinary test.

``VISIBLE``: the agent passes in one run, and a replay shows the fault. ``EQUAL``: the engine gives the first run what
it gives a later run, so that both plays end alike.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from typing import TYPE_CHECKING, Final

import pytest
from pydantic import BaseModel, Field

from a2a_serverless.testing import AgentTestHarness, ReplayDiffers
from tests.echo import agent_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a_serverless.domain.task_context import TaskContext

    Work = Callable[[TaskContext], Awaitable[str | None]]

USER: Final[ContextVar[str]] = ContextVar("user", default="nobody")


class Clock:
    """Gives another number at each look, as clocks, random numbers, ids and files in a folder do."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def look(self) -> int:
        return next(self._numbers)


async def _end(task: TaskContext) -> str:
    for name in ("almost", "done"):
        await task.step(name, str.upper, name)
    return "done"


def name_of_a_step() -> Work:
    clock = Clock()

    async def work(task: TaskContext) -> str:
        await task.step(f"at {clock.look()}", str, 1)
        return await _end(task)

    return work


def argument_of_a_step() -> Work:
    clock = Clock()

    async def work(task: TaskContext) -> str:
        await task.step("stamp", str, clock.look())
        return await _end(task)

    return work


def number_of_steps() -> Work:
    clock = Clock()

    async def work(task: TaskContext) -> str:
        for number in range(max(0, 4 - clock.look())):
            await task.step(f"part {number}", str, number)
        return await _end(task)

    return work


def list_that_a_step_empties() -> Work:
    async def work(task: TaskContext) -> str:
        orders = ["tea", "milk"]

        async def pay() -> int:
            paid = len(orders)
            orders.clear()
            return paid

        await task.step("pay", pay)
        for order in orders:
            await task.step(f"remind of {order}", str, order)
        await _end(task)
        return f"{len(orders)} are left"

    return work


def object_that_a_step_changes() -> Work:
    async def work(task: TaskContext) -> str:
        order: dict[str, int] = {}
        await task.step("book", order.setdefault, "seat", 7)
        await _end(task)
        return f"seat {order.get('seat')}"

    return work


def object_that_a_step_fills() -> Work:
    @dataclass
    class Cart:
        items: list[str] = field(default_factory=list)

        async def add(self, item: str) -> None:
            self.items.append(item)

    async def work(task: TaskContext) -> str:
        cart = Cart()
        for item in ("tea", "milk"):
            await task.step(f"add {item}", cart.add, item)
        await _end(task)
        return " and ".join(cart.items)

    return work


def variable_that_a_step_sets() -> Work:
    async def work(task: TaskContext) -> str:
        winner = "nobody"

        async def choose() -> None:
            nonlocal winner
            winner = "Ada"

        await task.step("choose", choose)
        await _end(task)
        return winner

    return work


def chunk() -> Work:
    clock = Clock()

    async def work(task: TaskContext) -> str:
        await task.emit("stamp", f"at {clock.look()}", last=True)
        return await _end(task)

    return work


def name_of_an_artifact() -> Work:
    clock = Clock()

    async def work(task: TaskContext) -> str:
        await task.emit(f"stamp {clock.look()}", "now", last=True)
        return await _end(task)

    return work


def progress() -> Work:
    clock = Clock()

    async def work(task: TaskContext) -> str:
        await task.report_progress(f"{clock.look()} seconds are left")
        return await _end(task)

    return work


def question() -> Work:
    clock = Clock()

    async def work(task: TaskContext) -> str:
        try:
            await task.ask(f"May I do it at {min(clock.look(), 9)}?", timeout_s=60)
        except TimeoutError:
            await _end(task)
        return "done"

    return work


def name_of_a_sleep() -> Work:
    clock = Clock()

    async def work(task: TaskContext) -> str:
        await task.sleep(f"until {min(clock.look(), 9)}", 60)
        return await _end(task)

    return work


def iterator_of_the_module() -> Work:
    names = iter("abcdefghijklmnopqrstuvwxyz")

    async def work(task: TaskContext) -> str:
        for _ in range(3):
            await task.step(next(names), str, 1)
        return await _end(task)

    return work


def branch_on_the_clock() -> Work:
    clock = Clock()

    async def work(task: TaskContext) -> str:
        if clock.look() == 1:
            await task.step("in the morning", str, 1)
        else:
            await task.step("at noon", str, 1)
        return await _end(task)

    return work


VISIBLE: Final = (
    name_of_a_step,
    argument_of_a_step,
    number_of_steps,
    list_that_a_step_empties,
    object_that_a_step_changes,
    object_that_a_step_fills,
    variable_that_a_step_sets,
    chunk,
    name_of_an_artifact,
    progress,
    question,
    name_of_a_sleep,
    iterator_of_the_module,
    branch_on_the_clock,
)


class Order(BaseModel):
    amount: float = Field(0.0, alias="amountDue")


def model_with_an_alias() -> Work:
    def read() -> Order:
        return Order(amountDue=1250.0)

    async def work(task: TaskContext) -> str:
        order: Order = await task.step("read", read)
        await _end(task)
        return f"paid {order.amount}"

    return work


def tuple_of_decimals() -> Work:
    def prices() -> tuple[Decimal, ...]:
        return Decimal("1.10"), Decimal("2.20")

    async def work(task: TaskContext) -> str:
        answer = await task.step("prices", prices)
        await _end(task)
        return repr(answer)

    return work


def error_with_a_cause() -> Work:
    def order() -> None:
        try:
            raise KeyError("tea")  # noqa: TRY301 - the cause
        except KeyError as error:
            raise LookupError("no tea") from error

    async def work(task: TaskContext) -> str:
        try:
            await task.step("order", order)
        except LookupError as error:
            await _end(task)
            return f"{type(error).__name__} {error} because of {error.__cause__!r}"
        return "ordered"

    return work


def error_with_a_file() -> Work:
    async def work(task: TaskContext) -> str:
        try:
            await task.step("open", open, "/there/is/no/such/file")
        except OSError as error:
            await _end(task)
            return f"{error.filename} {error.errno}"
        return "opened"

    return work


def context_that_a_step_sets() -> Work:
    async def sign_in() -> None:
        USER.set("Ada")

    async def work(task: TaskContext) -> str:
        await task.step("sign in", sign_in)
        await _end(task)
        return USER.get()

    return work


def set_of_tasks() -> Work:
    async def work(task: TaskContext) -> str:
        branches = [asyncio.ensure_future(task.step(f"branch {number}", str, number)) for number in range(6)]
        done, _ = await asyncio.wait(branches)
        order = [branch.result() for branch in done]
        for place, branch in enumerate(order):
            await task.step(f"place {place}", str, branch)
        return " ".join(order)

    return work


EQUAL: Final = (
    model_with_an_alias,
    tuple_of_decimals,
    error_with_a_cause,
    error_with_a_file,
    context_that_a_step_sets,
    set_of_tasks,
)


def _play(work: Work, *, replay: bool) -> tuple[str | None, str]:
    reply = AgentTestHarness(agent_of(work), replay=replay).send("go")
    return reply.state, reply.said


@pytest.mark.parametrize("make", VISIBLE, ids=lambda make: make.__name__)
def test_a_replay_shows_what_a_single_run_hides(make: Callable[[], Work]) -> None:
    single = _play(make(), replay=False)
    assert single[0] == "completed"
    with suppress(ReplayDiffers):
        assert _play(make(), replay=True) != single


@pytest.mark.parametrize("make", EQUAL, ids=lambda make: make.__name__)
def test_the_first_run_gets_what_a_later_run_gets(make: Callable[[], Work]) -> None:
    single = _play(make(), replay=False)
    assert single[0] == "completed"
    assert _play(make(), replay=True) == single
