"""The values of steps: each run gets what the step gave, or the task fails and its work is not paid for again."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AliasPath, BaseModel, ConfigDict, Field, SecretStr, computed_field, create_model
from typing_extensions import TypedDict

from a2a_serverless import Retry, Step, Task, TypeCodec
from a2a_serverless.domain.agent_errors import TaskFailed
from a2a_serverless.domain.digests import digest
from a2a_serverless.domain.json_forms import raw_form
from a2a_serverless.engine.steps import stored_form
from a2a_serverless.testing import AgentTestHarness
from tests.echo import agent_of
from tests.faults.plans import At, Count, die, fail
from tests.world import ME, World

if TYPE_CHECKING:
    from a2a_serverless import TaskContext
    from a2a_serverless.testing import Reply

T = TypeVar("T")


class Order(BaseModel):
    amount_due: float = Field(0.0, alias="amountDue")


class Refund(Order):
    reason: str = "none"


class Required(BaseModel):
    number: int = Field(alias="n", ge=1)
    deep: str = Field("x", validation_alias=AliasPath("a", "b"), serialization_alias="c")


class Area(BaseModel):
    model_config = ConfigDict(extra="forbid")
    side: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def area(self) -> int:
        return self.side**2


class Page(BaseModel, Generic[T]):
    items: list[T]


class Box(TypedDict):
    on: Annotated[date, Field(alias="day")]


class Color(Enum):
    RED = 1


@dataclass(eq=False)
class Route:
    places: tuple[int, ...]
    order: Order

    def __eq__(self, other: object) -> bool:
        raise AssertionError("nobody asks the whole")

    __hash__ = None  # type: ignore[assignment]


class Measured(BaseModel):
    height: float | None = None


class Pinned(BaseModel):
    pin: str = Field("", exclude=True)


class Sealed(BaseModel):
    key: SecretStr


class Hooked(BaseModel):
    hook: Callable[[], int]


class Unknown:
    """A class that pydantic does not know."""


def order() -> Order:
    return Order(amountDue=1250.0)


def required() -> Required:
    return Required.model_validate({"n": 7, "a": {"b": "y"}})


def area() -> list[Area]:
    return [Area(side=3)]


def box() -> Box:
    return {"on": date(2030, 1, 2)}


async def awaited() -> Order:
    return order()


def awaitable() -> Awaitable[Order]:
    return awaited()


def dated() -> dict[UUID, date | None]:
    return {UUID(int=1): date(2030, 1, 2), UUID(int=2): None}


def priced() -> Decimal:
    return Decimal("1.10")


def raw() -> bytes:
    return b"\x00\xff"


def colors() -> set[Color]:
    return {Color.RED}


def pair() -> tuple[int, timedelta]:
    return 1, timedelta(days=2)


def page() -> Page[Order]:
    return Page(items=[order()])


KEPT = (order, required, area, box, awaited, awaitable, dated, priced, raw, colors, pair, page)


def play(work: Callable[[TaskContext], Awaitable[Any]]) -> Reply:
    return AgentTestHarness(agent_of(work)).send("go")


@pytest.mark.parametrize("make", KEPT, ids=lambda make: make.__name__)
def test_rule_07_each_run_gets_the_value_that_the_step_gave(make: Callable[[], Any]) -> None:
    got: list[Any] = []

    async def work(task: TaskContext) -> None:
        got.append(await task.step("make", make))
        await task.sleep("night", 600)

    reply = play(work)
    made = make()
    value = asyncio.run(_result(made)) if isinstance(made, Awaitable) else made
    assert (reply.error, got) == (None, [value, value])
    assert [type(one) for one in got] == [type(got[0])] * 2


async def _result(made: Awaitable[Any]) -> Any:
    return await made


def measure(item: object = None) -> Measured:
    del item
    return Measured(height=1.5)


def test_rule_07_the_results_of_a_map_are_the_same_in_each_run() -> None:
    got: list[Any] = []

    async def work(task: TaskContext) -> None:
        got.append(await task.map("measure", measure, [1, 2]))
        await task.sleep("night", 600)

    assert play(work).error is None
    assert got == [[Measured(height=1.5)] * 2] * 2


def test_parts_are_compared_and_not_the_equality_of_the_whole() -> None:
    route = Route((1, 2), order())
    _, again = stored_form("s", TypeCodec(Route), route)
    assert isinstance(again, Route)
    assert (again.places, again.order) == (route.places, route.order)
    _, again = stored_form("s", TypeCodec(list[float]), [math.nan, math.inf])
    assert repr(again) == "[nan, inf]"
    stored_form("s", TypeCodec(dict[str, Any]), {"pair": (1, {2: "two"})})


# ---- What the annotation alone shows is refused before the work begins


def pinned() -> Pinned:
    return Pinned(pin="1")


def sealed() -> dict[str, Sealed]:
    return {}


def hooked() -> Hooked:
    return Hooked(hook=lambda: 1)


def lazy() -> Iterator[Order]:
    return iter([order()])


def unknown() -> Unknown:
    return Unknown()


def unknown_within() -> list[Unknown]:
    return []


REFUSED = [
    (pinned, "Pinned.pin is left out when it is written (exclude=True)"),
    (sealed, "Sealed.key is a secret"),
    (hooked, "Hooked.hook is a function"),
    (unknown, "Unknown"),
    (unknown_within, "Unknown"),
]


@pytest.mark.parametrize(("make", "why"), REFUSED)
def test_a_type_whose_values_cannot_be_stored_whole_is_refused_before_the_work(
    make: Callable[[], Any], why: str
) -> None:
    paid: list[int] = []

    def work_of() -> Any:
        paid.append(1)
        return make()

    work_of.__annotations__["return"] = make.__annotations__["return"]

    async def work(task: TaskContext) -> None:
        await task.step("make", work_of)

    reply = play(work)
    assert (reply.state, paid) == ("failed", [])
    assert "The step 'make' cannot store" in reply.said
    assert why in reply.said


def test_a_codec_of_a_type_that_cannot_be_stored_whole_is_refused_before_the_work() -> None:
    async def work(task: TaskContext) -> None:
        await task.step(Step("make", codec=TypeCodec(list[Pinned])), lambda: 1 / 0)

    assert "'make' cannot store its results: Pinned.pin" in play(work).said


# ---- What only the value shows: the work is paid for once


def plain_refund() -> Order:
    return Refund(amountDue=3, reason="broken")


def missing_height() -> Measured:
    return Measured(height=math.nan)


async def unannotated() -> Any:
    return Measured(height=2.5)


async def no_number() -> float:
    return math.nan


class Forgetful:
    """A codec that forgets the reason."""

    def dump(self, value: Refund) -> Any:
        return {"amount_due": value.amount_due}

    def load(self, stored: Any) -> Refund:
        return Refund(amountDue=stored["amount_due"])


class Unreadable(Forgetful):
    def load(self, stored: Any) -> Refund:
        return Refund(amountDue=stored["amountDue"])


ORDER_OR_REFUND: Any = TypeCodec(Refund | Order)


class Exact(BaseModel):
    """What a mended ``Measured`` is."""

    model_config = ConfigDict(ser_json_inf_nan="strings")
    height: float | None = None


Exact.__name__ = "Measured"


class Either:
    """A codec for two kinds, by its author."""

    def dump(self, value: Order) -> Any:
        return {"amount_due": value.amount_due, "reason": getattr(value, "reason", None)}

    def load(self, stored: Any) -> Order:
        return Refund(amountDue=stored["amount_due"], reason=stored["reason"])


AS_GIVEN = "'make' gave a "
LOST: list[tuple[Any, Any, Any, str]] = [
    (plain_refund, None, TypeCodec(Refund), f"{AS_GIVEN}Refund that does not come back whole when it is read: it is a"),
    (
        plain_refund,
        Forgetful(),
        Either(),
        f"{AS_GIVEN}Refund that does not come back whole when it is read: Refund.rea",
    ),
    (plain_refund, Unreadable(), TypeCodec(Refund), f"{AS_GIVEN}Refund that cannot be read back"),
    (
        missing_height,
        None,
        TypeCodec(Exact),
        f"{AS_GIVEN}Measured that does not come back whole when it is read: Measu",
    ),
    (unannotated, None, TypeCodec(Measured), f"{AS_GIVEN}Measured, which is not a JSON value: annotate"),
    (no_number, None, TypeCodec(float), f"{AS_GIVEN}float, which is not a JSON value: give codec=TypeCodec(float)"),
]
IDS = ["subclass", "forgetful", "unreadable", "nan", "unannotated", "number"]


@dataclass
class Paid:
    """An agent whose step emits, and gives what ``make`` gives; its code is mended by another codec."""

    make: Callable[[], Any]
    codec: Any
    bills: int = 0
    got: list[object] | None = None

    async def work(self, task: TaskContext) -> None:
        async def step() -> Any:
            self.bills += 1
            await task.emit("page", f"page {self.bills}")
            await task.record_usage("m", input_tokens=5)
            made = self.make()
            return await made if isinstance(made, Awaitable) else made

        step.__annotations__["return"] = self.make.__annotations__["return"]
        before = await task.step("before", self.count, 1)
        value = await task.step(Step("make", codec=self.codec, retry=Retry(first_s=0)), step)
        self.got = [*(self.got or ()), value]
        await task.sleep("night", 600)
        assert before == 1

    async def count(self, number: int) -> int:
        return number


@pytest.mark.parametrize(("make", "codec", "mended", "why"), LOST, ids=IDS)
def test_a_result_that_cannot_be_read_back_is_paid_once_and_mended_code_reads_it(
    make: Callable[[], Any], codec: Any, mended: Any, why: str
) -> None:
    paid = Paid(make, codec)
    harness = AgentTestHarness(agent_of(paid.work))
    failed = harness.send("go")
    assert (failed.state, paid.bills) == ("failed", 1)
    assert why in failed.said

    again = harness.retry(failed.task.id)  # the code is as before
    assert (again.state, paid.bills) == ("failed", 1)
    assert why in again.said

    paid.codec = mended
    last = harness.retry(again.task.id)
    assert (last.error, last.state, paid.bills) == (None, "completed", 1)
    assert last.text("page") == "page 1"
    (first, later) = paid.got or []
    made = make()
    assert repr([first, later]) == repr([asyncio.run(_result(made)) if isinstance(made, Awaitable) else made] * 2)


def test_a_retry_from_the_step_does_its_work_again() -> None:
    paid = Paid(plain_refund, None)
    harness = AgentTestHarness(agent_of(paid.work))
    failed = harness.send("go")
    assert harness.retry(failed.task.id, from_step="make").state == "failed"
    assert paid.bills == 2


def test_rule_07_an_agent_that_catches_the_failure_goes_on_alike_in_each_run() -> None:
    bills: list[int] = []

    def refund() -> Order:
        bills.append(1)
        return plain_refund()

    async def work(task: TaskContext) -> str:
        try:
            await task.step("make", refund)
        except TaskFailed as failed:
            await task.sleep("night", 600)
            return str(failed)[:30]
        return "no failure"

    assert play(work).said == "The step 'make' gave a Refund "
    assert bills == [1]


def test_a_result_that_is_no_value_at_all_cannot_be_kept() -> None:
    bills: list[int] = []

    async def work(task: TaskContext) -> None:
        def make() -> object:
            bills.append(1)
            return [Unknown()]

        await task.step("make", make)

    harness = AgentTestHarness(agent_of(work))
    failed = harness.send("go")
    assert failed.said == "The step 'make' gave a list, which is not a JSON value."
    harness.retry(failed.task.id)
    assert bills == [1, 1]


@pytest.mark.parametrize("late", [False, True], ids=["before the call", "after it took effect"])
@pytest.mark.parametrize("what", [die, fail])
def test_rule_07_an_unreadable_result_fails_the_task_and_is_kept_after_a_fault_at_any_call(
    what: Callable[[], None],
    late: bool,  # noqa: FBT001
) -> None:
    count = Count()
    _play_refund(count)
    for number in range(3, len(count.calls) + 1):
        task, bills, results = _play_refund(At(number, late=late, what=what))
        assert task.status.message, number
        assert "does not come back whole" in task.status.message.text(), number
        assert bills <= 2, number
        assert {name.partition("/")[0] for name in results} >= {"@raw", "@raised", "@failed"}, number


def _play_refund(faults: Any) -> tuple[Task, int, set[str]]:
    bills: list[int] = []

    def refund() -> Order:
        bills.append(1)
        return plain_refund()

    async def work(task: TaskContext) -> None:
        await task.step("make", refund)

    world = World([agent_of(work)], faults)
    task = world.send("hello", push=False)
    world.settle()
    results = {*world.table.read_steps(ME.key(task.id))}
    return world.client(lambda: world.get(task.id)), len(bills), results


@pytest.mark.parametrize("start", ["outer", "outer > inner"])
def test_a_retry_from_a_part_of_the_work_does_the_work_again(start: str) -> None:
    bills: list[str] = []

    async def work(task: TaskContext) -> None:
        async def inner() -> int:
            bills.append("inner")
            return 1

        async def outer() -> Order:
            bills.append("outer")
            await task.step("inner", inner)
            return plain_refund()

        outer.__annotations__["return"] = Order
        await task.step("outer", outer)

    harness = AgentTestHarness(agent_of(work))
    failed = harness.send("go")
    assert harness.retry(failed.task.id).state == "failed"
    assert bills == ["outer", "inner"]
    assert harness.retry(failed.task.id, from_step=start).state == "failed"
    assert bills == ["outer", "inner"] * 2


class Secretive(BaseModel):
    key: str
    height: float = math.nan


def test_a_secret_is_not_stored_raw() -> None:
    async def work(task: TaskContext) -> None:
        async def make() -> Secretive:
            return Secretive(key=f"Bearer {await task.secret('weather')}")

        await task.step("make", make)

    world = World([agent_of(work)])
    world.engine = replace(world.engine, read_secret=lambda _: "sunny-1234")
    task = world.send("hello", push=False)
    world.settle()
    assert world.get(task.id).status.state == "failed"
    assert not any("sunny" in str(result.value) for result in world.table.read_steps(ME.key(task.id)).values())


# ---- Arguments


@pytest.mark.parametrize("runs", [0, 600])
def test_an_argument_may_be_whatever_a_result_may_be(runs: int) -> None:
    bills: list[int] = []

    async def take(*values: object, **more: object) -> int:
        bills.append(len(values) + len(more))
        return bills[0]

    async def work(task: TaskContext) -> str:
        values = [UUID(int=1), priced(), Color.RED, {"b", "a"}, raw(), timedelta(1), order(), {date(2030, 1, 2): 1}]
        taken = await task.step("take", take, *values, key=Sealed(key=SecretStr("k")))
        await task.sleep("night", runs)
        return str(taken)

    assert play(work).said == "9"
    assert bills == [9]


@pytest.mark.parametrize(("args", "kwargs", "which"), [((1, [Unknown()]), {}, "2"), ((1,), {"x": Unknown()}, "x")])
def test_an_argument_that_is_no_value_is_named_with_what_helps(
    args: tuple[Any, ...], kwargs: dict[str, Any], which: str
) -> None:
    async def work(task: TaskContext) -> None:
        await task.step("take", lambda *_, **__: 1, *args, **kwargs)

    error = play(work).error
    assert isinstance(error, TypeError)
    assert f"The step 'take' cannot compare its argument {which} with that of a later run: a Unknown is" in str(error)
    assert "functools.partial" in str(error)


# ---- What clients and stores get


@dataclass
class Ticket:
    on: date
    seats: set[int]
    price: Decimal


class Trip(BaseModel):
    ticket: Ticket = Field(alias="theTicket")
    pin: str = Field("1234", exclude=True)


TICKET = Ticket(date(2030, 1, 2), {7}, Decimal("1.10"))
AS_JSON = {"ticket": {"on": "2030-01-02", "seats": [7], "price": "1.10"}}


def test_each_value_that_a_step_may_return_is_data_for_clients_agents_and_stores() -> None:
    trip: Any = Trip(theTicket=TICKET)
    day: Any = {"on": date(2030, 1, 2)}
    seats: Any = {"seats": {7}}
    raw_bytes: Any = raw()

    async def work(task: TaskContext) -> Any:
        await task.emit("trip", trip, metadata=day)
        await task.report_progress(trip, metadata=seats)
        await task.store.put("trip", trip)
        await task.store.put("list", [trip, raw_bytes])
        answer = await task.ask(trip)
        found = [await task.store.get(key) for key in ("trip", "list")]
        return {"answer": answer.text(), "found": [one and one.value for one in found]}

    harness = AgentTestHarness(agent_of(work))
    asked = harness.send("go").task
    assert asked.status.message
    assert asked.status.message.data() == AS_JSON
    reply = harness.send("yes", task_id=asked.id)
    assert reply.error is None
    (artifact,) = reply.task.artifacts
    assert (artifact.parts[0].data, artifact.metadata) == (AS_JSON, {"on": "2030-01-02"})
    progress = next(message for message in reply.task.history if message.metadata)
    assert (progress.data(), progress.metadata) == (AS_JSON, {"seats": [7]})
    assert reply.task.status.message
    assert reply.task.status.message.data() == {"answer": "yes", "found": [AS_JSON, [AS_JSON, "AP8="]]}


def test_a_call_carries_whatever_a_result_may_be() -> None:
    async def called(task: TaskContext) -> Any:
        return {"got": task.data()}

    async def calling(task: TaskContext) -> Any:
        trips: Any = [Trip(theTicket=TICKET), None]
        answer = await task.call("it", "called", trips)
        assert isinstance(answer, Task)
        assert answer.status.message
        return answer.status.message.data()

    harness = AgentTestHarness(replace(agent_of(calling), id="calling"), replace(agent_of(called), id="called"))
    message = harness.send("go", to="calling").task.status.message
    assert message
    assert message.data() == {"got": [AS_JSON, None]}


UNKNOWN: Any = Unknown()
LAZY: Any = iter([1])
ACTS: dict[str, tuple[Callable[[TaskContext], Awaitable[Any]], str]] = {
    "emit": (lambda task: task.emit("a.json", [UNKNOWN]), "The artifact 'a.json' is no JSON value"),
    "metadata": (lambda task: task.emit("a", "x", metadata={"a": UNKNOWN}), "The metadata of the artifact 'a' is no"),
    "ask": (lambda task: task.ask({"a": UNKNOWN}), "The message is no JSON value"),
    "progress": (lambda task: task.report_progress({"a": UNKNOWN}), "The message is no JSON value"),
    "call": (lambda task: task.call("it", "me", [UNKNOWN]), "The message of the call 'it' is no JSON value"),
    "put": (lambda task: task.store.put("k", [UNKNOWN]), "The value is no JSON value"),
    "iterator": (lambda task: task.emit("a.json", LAZY), "is a list_iterator, which can be read only once"),
}


@pytest.mark.parametrize("act", ACTS)
def test_an_act_refuses_an_object_that_is_no_value_and_names_its_type(act: str) -> None:
    do, why = ACTS[act]

    async def work(task: TaskContext) -> None:
        await do(task)

    error = play(work).error
    assert isinstance(error, TypeError)
    assert why in str(error)
    assert act == "iterator" or "Unknown" in str(error)


# ---- Whatever the type: back whole, or refused


FIELDS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers(-(10**30), 10**30)),
    (float, st.floats()),
    (float | None, st.none() | st.floats()),
    (str, st.text()),
    (bytes, st.binary(max_size=4)),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    (date, st.dates()),
    (timedelta, st.timedeltas()),
    (Color, st.just(Color.RED)),
    (
        list[Order],
        st.lists(st.builds(Order, amountDue=st.floats(0, 9)) | st.builds(Refund, reason=st.text()), max_size=2),
    ),
    (Order | Refund, st.builds(Refund, reason=st.text()) | st.builds(Order)),
    (Route, st.builds(Route, st.lists(st.integers(), max_size=2).map(tuple), st.builds(Order))),
    (set[str], st.sets(st.text(max_size=2), max_size=2)),
    (tuple[int, ...], st.lists(st.integers(), max_size=2).map(tuple)),
    (dict[int, Area], st.dictionaries(st.integers(), st.builds(Area, side=st.integers()), max_size=2)),
    (Any, st.none() | st.integers() | st.dates() | st.lists(st.tuples(st.integers()))),
]
OPTIONS: list[dict[str, Any]] = [{}, {"alias": "other"}, {"validation_alias": "x", "serialization_alias": "y"}]


@st.composite
def models(draw: st.DrawFn) -> tuple[Any, BaseModel]:
    """A type with generated fields, and a value of it, or of a subclass of it."""
    config: Any = draw(
        st.sampled_from(["ignore", "forbid", "allow"]).map(
            lambda extra: ConfigDict(extra=cast("Any", extra), validate_by_name=True, validate_by_alias=False)
        )
    )
    chosen = draw(st.lists(st.tuples(st.sampled_from(FIELDS), st.sampled_from(OPTIONS)), min_size=1, max_size=4))
    fields: Any = {f"f{at}": (kind, Field(**options)) for at, ((kind, _), options) in enumerate(chosen)}
    base = create_model("Base", __config__=config, **fields)
    members = {f"f{at}": draw(values) for at, ((_, values), _) in enumerate(chosen)}
    if config["extra"] == "allow" and draw(st.booleans()):
        members["more"] = draw(st.integers() | st.floats() | st.dates())
    if draw(st.integers(0, 4)) == 0:
        return base, create_model("Sub", __base__=base, own=(int, 1))(**members)
    return base, base(**members)


@settings(deadline=None, max_examples=300)
@given(models())
def test_rule_07_a_value_of_any_type_comes_back_whole_or_is_refused_with_its_digest_kept(
    generated: tuple[Any, BaseModel],
) -> None:
    kind, value = generated
    codec = TypeCodec(kind)
    try:
        stored, again = stored_form("make", codec, value)
    except TaskFailed as lost:
        assert f"'make' gave a {type(value).__name__}" in str(lost)  # noqa: PT017
        json.dumps(raw_form(value), allow_nan=False)
        return
    assert digest(again) == digest(value)
    json.dumps(stored, allow_nan=False)
    assert digest(codec.load(stored)) == digest(value)
