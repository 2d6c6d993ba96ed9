"""What a framework's tool changes in its state is kept: in each run, whatever the process does after each act."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import date
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NotRequired

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from a2a_serverless import Step, StepConflict, TaskContext
from a2a_serverless.engine.framework_task import framework_task
from a2a_serverless.testing import AgentTestHarness, Reply
from tests.echo import agent_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass
class Passenger:
    name: str
    seat: str | None = None
    born: date | None = None


class Bag(BaseModel):
    weight: float
    tags: set[str] = set()


@dataclass
class Context:
    passenger: Passenger = field(default_factory=lambda: Passenger("Ann"))
    bags: list[Bag] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    lead: Passenger | None = None
    numbers: list[int] = field(default_factory=lambda: [1, 2])
    client: object = None


class Order(TypedDict):
    number: int
    due: NotRequired[date]
    items: list[Passenger]


async def call(task: TaskContext, tool: Callable[[Any], object], state: object, number: int, kind: object) -> list[Any]:
    async def work(given: Any) -> None:
        await asyncio.sleep(0)
        tool(given)

    step = Step(f"tool{number}", tool=f"tool{number}")
    _, changed = await framework_task(task).step_with_state(step, work, state=state, name="ctx", kind=kind)
    return changed


def play(make: Callable[[], Any], *tools: Callable[[Any], object], kind: object = None) -> Reply:
    """Calls the tools one after the other, asks before the last one, and answers with the state."""

    async def work(task: TaskContext) -> str:
        state = make()
        for number, tool in enumerate(tools):
            if number == len(tools) - 1:
                await task.ask("Go on?")
            await call(task, tool, state, number, kind)
        await task.ask("Sure?")
        return repr(state)

    harness = AgentTestHarness(agent_of(work))
    reply = harness.send("go")
    while reply.state == "input-required":
        reply = harness.send("yes", task_id=reply.task.id)
    return reply


def set_seat(state: Any) -> None:
    state.passenger.seat = "1a"
    state.passenger.born = date(2000, 1, 2)


def add_bags(state: Any) -> None:
    state.bags.append(Bag(weight=1, tags={"red"}))
    state.bags.append(Bag(weight=2))


def change_bag(state: Any) -> None:
    state.bags[1].weight = 3.0
    state.bags[0].tags.add("blue")
    state.bags[0].tags.discard("red")


def note(state: Any) -> None:
    state.notes |= {"a": {"b": [1, {"c": None}]}, "gone": 1, "null": None, "7": (1, 2)}


def change_note(state: Any) -> None:
    state.notes["a"]["b"][1]["c"] = 2
    state.notes["a"]["b"].append([])
    del state.notes["gone"]
    state.lead = state.passenger
    state.passenger.seat = None


def sort(state: Any) -> None:
    state.numbers.reverse()
    state.numbers.pop()
    state.bags.reverse()


def test_nested_changes_are_kept_in_each_run() -> None:
    tools = [set_seat, add_bags, change_bag, note, change_note, sort]
    plain = Context()
    for tool in tools:
        tool(plain)
    plain.notes["7"] = [1, 2]
    reply = play(Context, *tools)
    assert (reply.error, reply.said) == (None, repr(plain))


def test_members_of_a_dict_are_kept_with_none_and_without_what_is_deleted() -> None:
    def first(state: Any) -> None:
        state.update({"seat": None, "n": 1, 7: {"x": []}})
        del state["wish"]

    def second(state: Any) -> None:
        state[7]["x"].append(False)
        state["n"] += 1

    reply = play(lambda: {"wish": 1, "kept": 2}, first, second)
    assert (reply.error, reply.said) == (None, "{'kept': 2, 'seat': None, 'n': 2, 7: {'x': [False]}}")


def test_a_typed_dict_gets_back_the_types_of_its_annotations() -> None:
    def first(state: Order) -> None:
        state["due"] = date(2026, 1, 2)
        state["items"].append(Passenger("Ann"))

    def second(state: Order) -> None:
        state["number"] += state["due"].day
        state["items"][0].seat = "2b"

    reply = play(lambda: {"number": 1, "items": []}, first, second, kind=Order)
    items = [Passenger("Ann", "2b")]
    assert (reply.error, reply.said) == (None, repr({"number": 3, "items": items, "due": date(2026, 1, 2)}))


def test_a_model_keeps_what_it_has_beside_its_fields() -> None:
    class Open(BaseModel, extra="allow"):
        size: int = 1
        name: str | None = "x"

    def change(state: Any) -> None:
        state.size, state.name, state.other = 2, None, [1]

    def again(state: Any) -> None:
        state.other[0] = 5

    reply = play(Open, change, again)
    assert (reply.error, reply.said) == (None, repr(Open(size=2, name=None, other=[5])))


def test_two_names_of_one_object_stay_one_object() -> None:
    def make() -> Any:
        ann = Passenger("Ann")
        return {"all": [ann], "lead": ann}

    def change(state: Any) -> None:
        state["lead"].seat = "1a"

    def add(state: Any) -> None:
        state["all"][0].name = state["lead"].name + "!"

    reply = play(make, change, add)
    ann = Passenger("Ann!", "1a")
    assert (reply.error, reply.said) == (None, repr({"all": [ann], "lead": ann}))


def test_another_object_in_the_place_of_one_leaves_the_other_as_it_was() -> None:
    def change(state: Any) -> None:
        state.lead = Passenger("Bob")
        state.passenger = Passenger("Eve")

    def make() -> Context:
        ann = Passenger("Ann")
        return Context(passenger=ann, lead=ann, notes={"first": ann})

    reply = play(make, change)
    assert reply.said == repr(Context(Passenger("Eve"), lead=Passenger("Bob"), notes={"first": Passenger("Ann")}))


def test_changes_of_a_tool_that_fails_are_lost_in_each_run() -> None:
    def fail(state: Any) -> None:
        state.numbers.append(3)
        raise ValueError

    async def work(task: TaskContext) -> str:
        state = Context()
        with pytest.raises(ValueError):  # noqa: PT011 - the tool's
            await call(task, fail, state, 0, None)
        await task.ask("Go on?")
        return repr(state.numbers)

    harness = AgentTestHarness(agent_of(work))
    asked = harness.send("go")
    assert harness.send("yes", task_id=asked.task.id).said == "[1, 2]"


def together(*tools: Callable[[Any], object], make: Callable[[], Any] = Context) -> Reply:
    """Calls the tools at the same time; answers with the state and what each has changed."""

    async def work(task: TaskContext) -> str:
        state = make()
        calls = [call(task, tool, state, number, None) for number, tool in enumerate(tools)]
        changed = await asyncio.gather(*calls)
        return f"{state} {changed}"

    return AgentTestHarness(agent_of(work)).send("go")


def test_tools_at_the_same_time_each_change_their_part() -> None:
    def weigh(state: Any) -> None:
        assert not state.numbers[2:]  # not what the tool beside it has changed
        state.notes["weight"] = 1

    def count(state: Any) -> None:
        state.numbers.append(3)
        state.notes["count"] = 3

    reply = together(set_seat, weigh, count)
    expected = Context(Passenger("Ann", "1a", date(2000, 1, 2)), notes={"weight": 1, "count": 3}, numbers=[1, 2, 3])
    assert (reply.error, reply.said) == (None, f"{expected} [['passenger'], ['notes'], ['notes', 'numbers']]")


def choose(seat: str) -> Callable[[Any], object]:
    def tool(state: Any) -> None:
        state.passenger.seat = seat

    return tool


def replace_passenger(state: Any) -> None:
    state.passenger = Passenger("Bob")


def append(number: int) -> Callable[[Any], object]:
    def tool(state: Any) -> None:
        state.numbers.append(number)

    return tool


@pytest.mark.parametrize(
    ("tools", "place"),
    [
        ([choose("1a"), choose("2b")], "ctx.passenger.seat"),
        ([choose("1a"), replace_passenger], "ctx.passenger"),
        ([replace_passenger, choose("1a")], "ctx.passenger.seat"),
        ([append(3), append(4)], "ctx.numbers"),
    ],
)
def test_tools_at_the_same_time_may_not_change_one_part(tools: Sequence[Any], place: str) -> None:
    reply = together(*tools)
    assert isinstance(reply.error, StepConflict)
    assert reply.said.startswith(
        f"The tool tool1 and another tool that runs at the same time change {place}. Give each tool a part of its"
        " own, or let the model call them one after the other."
    )


def test_tools_at_the_same_time_may_make_the_same_change() -> None:
    assert together(choose("1a"), choose("1a")).error is None


class Plain:
    """An object that is not copied."""

    def __init__(self) -> None:
        self.seats: list[str] = []
        self.count = 0
        self._cache: dict[str, int] = {}


class Client:
    """A client: its attributes are its own."""

    def __init__(self) -> None:
        self.requests = 0

    async def aclose(self) -> None:
        """Closes."""


def add_seat(state: Any) -> None:
    state.client.seats.append("1a")


def count_up(state: Any) -> None:
    state.count += 1


@pytest.mark.parametrize(
    ("make", "tool", "text"),
    [
        (Plain, count_up, "changes ctx.count, and a later run of the task would not see it. Make Plain a dataclass,"),
        (lambda: Context(client=Plain()), add_seat, "changes ctx.client.seats, and a later run"),
        (lambda: SimpleNamespace(count=1), count_up, "changes ctx.count, and a later run"),
        (
            Context,
            lambda state: state.notes.update(lead=Passenger("Bob")),
            "sets ctx.notes['lead'] to a Passenger, which is no JSON value: annotate the attribute lead with its type.",
        ),
        (Context, lambda state: setattr(state, "client", Client()), "sets ctx.client to a Client, which"),
        (Context, lambda state: setattr(state, "lead", "Ann"), "sets ctx.lead to a str, which cannot be stored."),
        (Context, lambda state: state.notes.update({(1, 2): 3}), "changes ctx.notes[...], whose key is neither a text"),
    ],
)
def test_state_that_cannot_be_stored_is_refused_with_tool_and_attribute(make: Any, tool: Any, text: str) -> None:
    reply = play(make, tool)
    assert isinstance(reply.error, StepConflict)
    assert f"The tool tool0 {text}" in reply.said


def test_clients_and_what_begins_with_an_underscore_are_left_alone() -> None:
    def use(state: Any) -> None:
        state.client.requests += 1
        state.notes["plain"]._cache["x"] = 1  # noqa: SLF001 - as its own method would
        state.passenger.seat = "1a"

    reply = play(lambda: Context(client=Client(), notes={"plain": Plain()}), use)
    assert reply.error is None
    assert "seat='1a'" in reply.said


def test_a_state_of_earlier_code_is_refused_if_the_part_is_gone() -> None:
    def agent(make: Callable[[], Any]) -> Any:
        async def work(task: TaskContext) -> str:
            await call(task, lambda state: state["a"].update(b=1), state := make(), 0, None)
            await task.ask("Go on?")
            return repr(state)

        return agent_of(work)

    harness = AgentTestHarness(agent(lambda: {"a": {}}))
    asked = harness.send("go")
    harness.deploy(agent(dict))
    assert "has changed ctx['a'], which the code does not have any more" in (
        harness.send("yes", task_id=asked.task.id).said
    )
