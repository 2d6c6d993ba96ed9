"""Steps whose name repeats, steps with a codec, and the usage that steps record."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import date
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, cast

import pytest
from pydantic import BaseModel

from a2a_serverless import Codec, Step, TypeCodec
from a2a_serverless.domain.events import StatusEvent, update_of
from a2a_serverless.domain.replay import replay
from a2a_serverless.domain.usage import LIMIT, METADATA_KEY, add_usage, check_usage, with_cost
from a2a_serverless.engine.framework_task import framework_task
from tests.echo import agent_of
from tests.faults.plans import kill_at
from tests.world import ME, World

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.protocol.v1 import Task
from a2a_serverless.testing import AgentTestHarness

Work = Callable[["TaskContext"], Awaitable[Any]]


def played(work: Work, *, runs: int = 1, faults: Any = None) -> tuple[World, Task]:
    """The task after so many runs, all but the last of which are handed over."""
    world = World([agent_of(work)], faults)
    task = world.send("hello", push=False)
    for _ in range(runs - 1):
        world.run_ms = 20_000
        world.run(ME.key(task.id))
    world.run_ms = 900_000
    world.settle()
    return world, world.get(task.id)


def last_word(task: Task) -> str:
    assert task.status.message
    return task.status.message.text()


class Billed:
    """A step's work that counts how often it ran."""

    def __init__(self) -> None:
        self.ran = 0

    async def __call__(self) -> int:
        self.ran += 1
        return self.ran


# ---- Names that repeat


@pytest.mark.parametrize("runs", [1, 3])
def test_rule_07_a_name_that_repeats_is_numbered_and_each_use_runs_once(runs: int) -> None:
    billed = Billed()

    async def work(task: TaskContext) -> str:
        said = [await task.step(Step("think", repeat=True), billed) for _ in range(3)]
        await asyncio.sleep(5)
        return str(said)

    world, task = played(work, runs=runs)
    assert (last_word(task), billed.ran) == ("[1, 2, 3]", 3)
    stored = {name for name in world.table.read_steps(ME.key(task.id)) if not name.startswith("@")}
    assert stored == {"think", "think#2", "think#3"}


def test_rule_07_two_uses_of_one_name_at_a_time_fail_the_task_and_say_so() -> None:
    async def work(task: TaskContext) -> None:
        await asyncio.gather(*(task.step(Step("think", repeat=True), asyncio.sleep, 1) for _ in range(2)))

    _, task = played(work)
    assert task.status.state == "failed"
    assert "'think' runs twice at a time" in last_word(task)


def test_rule_07_a_name_that_repeats_does_not_take_another_step_s_name() -> None:
    async def work(task: TaskContext) -> None:
        await task.step("think#2", Billed())
        for _ in range(2):
            await task.step(Step("think", repeat=True), Billed())

    assert "'think#2' was used twice" in last_word(played(work)[1])


# ---- Codecs


class Invoice(BaseModel):
    amount: int
    on: date


@dataclass
class Point:
    x: float
    raw: bytes


VALUES: dict[str, tuple[Any, object]] = {
    "bytes": (bytes, b"\x00\xff"),
    "model": (Invoice, Invoice(amount=1, on=date(2030, 1, 2))),
    "dataclass": (Point, Point(0.5, b"abc")),
    "list": (list[Invoice | None], [Invoice(amount=1, on=date(2030, 1, 2)), None]),
    "null": (int | None, None),
    "infinite": (list[float], [float("inf"), 1.5]),
}


@pytest.mark.parametrize("case", VALUES)
@pytest.mark.parametrize("runs", [1, 2])
def test_a_first_run_and_a_later_run_get_the_value_of_a_codec(case: str, runs: int) -> None:
    kind, value = VALUES[case]
    got = []

    async def make() -> object:
        return value

    async def work(task: TaskContext) -> None:
        got.append(await task.step(Step("make", codec=TypeCodec(kind)), make))
        await asyncio.sleep(5)

    _, task = played(work, runs=runs)
    assert (task.status.state, got) == ("completed", [value] * runs)


@pytest.mark.parametrize(("kind", "value"), [(int, "text"), (bytes, 1), (Invoice, {"amount": 1}), (float, "1.5")])
def test_a_value_that_the_codec_cannot_store_fails_the_task_and_says_so(kind: Any, value: object) -> None:
    async def make() -> object:
        return value

    async def work(task: TaskContext) -> None:
        await task.step(Step("make", codec=TypeCodec(kind)), make)

    assert "which its codec cannot store" in last_word(played(work)[1])


def test_a_result_that_a_changed_codec_cannot_read_fails_the_task_and_says_so() -> None:
    codecs: list[Codec[Any]] = [TypeCodec(str), TypeCodec(int)]

    async def make() -> object:
        return "text"

    async def work(task: TaskContext) -> None:
        await task.step(Step("make", codec=codecs.pop(0)), make)
        await asyncio.sleep(5)

    assert "'make' cannot read its stored result" in last_word(played(work, runs=2)[1])


# ---- Results whose type the function's annotation names


def invoice() -> Invoice:
    return Invoice(amount=1, on=date(2030, 1, 2))


async def invoices(*, missing: bool) -> list[Invoice | None]:
    return [invoice(), None] if missing else [invoice()]


class Plotter:
    def __call__(self) -> Invoice:
        return invoice()

    async def point(self, x: float) -> Point:
        return Point(x, b"abc")


@wraps(partial(Plotter().point, 0.5))
def decorated(*args: Any) -> Any:
    return Plotter().point(0.5, *args)


async def unannotated():  # type: ignore[no-untyped-def] # noqa: ANN201
    return invoice()


async def mistaken() -> Invoice:
    return cast("Invoice", {"amount": 1})


ANNOTATED: dict[str, tuple[Callable[[], Any], object]] = {
    "model": (invoice, invoice()),
    "list": (partial(invoices, missing=True), [invoice(), None]),
    "method": (partial(Plotter().point, 0.5), Point(0.5, b"abc")),
    "class": (partial(Invoice, amount=1, on=date(2030, 1, 2)), invoice()),
    "object": (Plotter(), invoice()),
    "decorated": (decorated, Point(0.5, b"abc")),
}


@pytest.mark.parametrize("case", ANNOTATED)
@pytest.mark.parametrize("runs", [1, 2])
def test_a_model_or_dataclass_that_an_annotation_names_is_a_result(case: str, runs: int) -> None:
    make, value = ANNOTATED[case]
    got = []

    async def work(task: TaskContext) -> None:
        got.append(await task.step("make", make))
        await asyncio.sleep(5)

    _, task = played(work, runs=runs)
    assert (task.status.state, got) == ("completed", [value] * runs)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (unannotated, "annotate what its function returns (-> Invoice), or give codec=TypeCodec(Invoice)"),
        (mistaken, "gave a dict, which is not what its function's annotation says"),
        (lambda: date(2030, 1, 2), "gave a date, which is not a JSON value"),
    ],
)
def test_a_result_of_no_known_type_fails_the_task_and_says_what_helps(make: Callable[[], Any], why: str) -> None:
    async def work(task: TaskContext) -> None:
        await task.step("make", make)

    assert why in last_word(played(work)[1])


# ---- Usage


async def billed(task: TaskContext, tokens: int) -> int:
    await task.record_usage("m", input_tokens=tokens)
    return tokens


def usage_of(task: Task) -> Any:
    return (task.metadata or {}).get(METADATA_KEY)


@pytest.mark.parametrize("runs", [1, 3])
def test_rule_07_usage_counts_once_for_each_step_and_is_in_the_metadata_of_the_task(runs: int) -> None:
    async def work(task: TaskContext) -> None:
        for tokens in (1, 2):
            await task.step(f"s{tokens}", partial(billed, task), tokens)
        await task.record_usage("other", cost_usd=0.5)
        await task.record_usage("other", cost_usd=0.25)
        await asyncio.sleep(5)

    world, task = played(work, runs=runs)
    wanted = {"m": {"input_tokens": 3}, "other": {"cost_usd": 0.75}}
    assert usage_of(task) == wanted
    last = world.events(task.id)[-1]
    update = update_of(last, task.id, task.context_id)
    assert update.metadata == {METADATA_KEY: wanted}
    assert sum(isinstance(event, StatusEvent) and event.usage is not None for event in world.events(task.id)) == 1


@pytest.mark.parametrize("late", [True, False])
def test_rule_07_a_step_that_was_killed_before_it_was_stored_counts_once(late: bool) -> None:  # noqa: FBT001
    async def work(task: TaskContext) -> None:
        await task.step("s", lambda: billed(task, 5))

    _, task = played(work, faults=kill_at(1, late=late, only="table.store_step"))
    assert usage_of(task) == {"m": {"input_tokens": 5}}


def test_the_usage_of_an_inner_step_is_not_counted_again_by_the_outer_one() -> None:
    async def work(task: TaskContext) -> None:
        async def outer() -> None:
            await task.step("inner", lambda: billed(task, 1))
            await billed(task, 2)

        await task.step("outer", outer)

    assert usage_of(played(work)[1]) == {"m": {"input_tokens": 3}}


@pytest.mark.parametrize(("prices", "cost"), [({"input": 1}, {}), ({"a0": 2}, {"cost_usd": 2e-6})])
def test_a_cost_is_told_only_if_an_amount_has_a_price(prices: dict[str, float], cost: dict[str, float]) -> None:
    assert with_cost("m", {"a0": 1}, {"m": prices}) == {"a0": 1, **cost}


def test_as_many_amounts_as_may_be_are_recorded_where_there_are_prices_too() -> None:
    amounts: dict[str, float] = {f"a{number}": 1 for number in range(LIMIT)}

    async def work(task: TaskContext) -> None:
        await task.record_usage("m", **amounts)

    world = World([agent_of(work)])
    world.engine = replace(world.engine, prices={"m": {"a0": 1}})
    task_id = world.send("hello", push=False).id
    world.settle()
    assert usage_of(world.get(task_id))["m"] == amounts


def test_usage_stands_beside_the_client_s_metadata_and_outlives_a_snapshot() -> None:
    async def work(task: TaskContext) -> None:
        await task.step("s", lambda: billed(task, 1))
        await task.report_progress("x")
        for _ in range(3):
            await task.emit("big", "x" * 300_000, append=True)

    world, task = played(work)
    assert usage_of(task) == {"m": {"input_tokens": 1}}
    assert usage_of(replay(task.id, task.context_id, world.events(task.id))) == usage_of(task)


@pytest.mark.parametrize("amount", [-1, float("nan"), float("inf"), 1e16])
def test_an_amount_is_a_number_from_zero_on(amount: float) -> None:
    with pytest.raises(ValueError, match="usage has at most"):
        check_usage({"m": {"tokens": amount}})


def test_the_sum_of_usage_is_bounded() -> None:
    summed = add_usage({f"m{n}": {"a": 1} for n in range(40)}, {"m0": {f"a{n}": 1 for n in range(40)}})
    assert (len(summed), len(summed["m0"])) == (32, 32)


# ---- Steps that wait


async def sleeper(task: TaskContext) -> str:
    del task
    await asyncio.sleep(600)
    return "awake"


@pytest.mark.parametrize("waits", [True, False])
def test_a_step_that_waits_does_not_keep_a_task_with_waiting_calls_from_being_suspended(waits: bool) -> None:  # noqa: FBT001
    async def work(task: TaskContext) -> str:
        called = asyncio.Event()

        async def called_first() -> str:
            await called.wait()
            return "then this"

        waiting = asyncio.create_task(task.step(Step("wait", waits=waits), called_first))
        await task.call("wake", "sleeper", "up")
        called.set()
        return await waiting

    harness = AgentTestHarness(agent_of(work, "caller"), agent_of(sleeper, "sleeper"))
    reply = harness.send("go")
    assert (reply.error, reply.said) == (None, "then this")
    runs = [end - began for task_id, began, end in harness.runs if task_id == reply.task.id]
    assert (sum(runs) >= 600_000) is not waits


def test_code_knows_its_step_and_what_earlier_runs_have_stored() -> None:
    seen = list[object]()

    async def work(author: TaskContext) -> None:
        task = framework_task(author)

        async def name() -> str | None:
            return task.current_step

        seen.append((task.current_step, task.read_steps("a/"), await task.step("a/1", name)))
        await task.step("b", name)
        await asyncio.sleep(5)

    played(cast("Work", work), runs=2)
    assert seen == [(None, {}, "a/1"), (None, {"a/1": "a/1"}, "a/1")]


def test_steps_end_in_the_same_order_beside_one_whose_result_is_read_instead() -> None:
    orders = list[list[str]]()

    async def work(author: TaskContext) -> None:
        task, order = framework_task(author), list[str]()
        orders.append(order)
        if not task.read_steps("a/"):
            await task.step("a/1", asyncio.sleep, 0)

        async def in_a_row() -> None:
            await task.step("first", asyncio.sleep, 0.01)
            await asyncio.sleep(0.01)
            await task.step("second", asyncio.sleep, 0.01)
            order.append("in a row")

        async def long() -> None:
            await task.step("long", asyncio.sleep, 0.05)
            order.append("long")

        await asyncio.gather(in_a_row(), long())
        await asyncio.sleep(5)

    played(cast("Work", work), runs=2)
    assert orders == [["in a row", "long"]] * 2
