"""What tools change in the context of the OpenAI Agents SDK is kept in a later run, and instructions read it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("agents", reason="The OpenAI Agents SDK is not installed here: make frameworks")

from agents import Agent, ModelResponse, RunContextWrapper, Runner, Usage, function_tool, handoff
from agents.testing import assistant_message

from a2a_serverless import StepConflict
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.openai_agents import agent
from tests.frameworks import bookings
from tests.frameworks.bookings import PAID, TURNS, DataclassBooking, ModelBooking, Passenger
from tests.frameworks.kills import Ledger, Played, Scenario, assert_one_answer, kill_everywhere
from tests.frameworks.test_openai_agents import FakeModel, turn_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless import Agent as A2AAgent


class ReadingModel(FakeModel):
    """Makes the calls of its turns, and then says the instructions and the last tool's result."""

    def __init__(self, turns: list[list[Any]]) -> None:
        texts = [[(name, call_id, json.dumps(values)) for name, call_id, values in turn] for turn in turns]
        super().__init__(lambda turn: texts[turn - 1])
        self._last = len(turns) + 1

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:  # noqa: A002
        if turn_of(input) < self._last:
            return await super().get_response(system_instructions, input)
        text = f"{system_instructions}; {input[-1]['output']}"
        return ModelResponse([assistant_message(text)], Usage(), None)


def kind_of(context: Any) -> type:
    """The SDK does not know the type of a dict: its values are JSON."""
    return dict if isinstance(context, dict) else Passenger


@function_tool
async def find(context: RunContextWrapper[Any]) -> str:
    """Finds."""
    await asyncio.sleep(1)
    return bookings.find(context.context, kind_of(context.context))


@function_tool
async def choose(context: RunContextWrapper[Any], place: int, seat: str | None) -> str:
    """Chooses."""
    await asyncio.sleep(1)
    return bookings.choose(context.context, place, seat)


@function_tool
def rebook(context: RunContextWrapper[Any]) -> str:
    """Rebooks, in a thread."""
    return bookings.rebook(context.context)


@function_tool(needs_approval=True)
async def pay(context: RunContextWrapper[Any]) -> str:
    """Pays."""
    return bookings.pay(context.context)


def instructions(context: RunContextWrapper[Any], _: Any) -> str:
    return bookings.text_of(context.context)


def service(make: Callable[[], Any], *tools: Any, turns: Any = TURNS) -> A2AAgent:
    tools = tools or (find, choose, rebook, pay)
    wrapped = Agent("Service", instructions=instructions, model=ReadingModel(turns), tools=[*tools])
    return agent(wrapped, id="service", description="Serves.", context=lambda _: make(), streaming=False)


@pytest.mark.parametrize("make", [DataclassBooking, ModelBooking, bookings.make_dict])
def test_the_context_is_the_same_after_a_question_and_after_each_act(make: Callable[[], Any]) -> None:
    harness = AgentTestHarness(service(make))
    asked = harness.send("go")
    harness.deploy(service(make))
    reply = harness.send("yes", task_id=asked.task.id)
    assert (reply.error, reply.text("answer")) == (None, f"{bookings.text_at_the_end(make, kind_of(make()))}; {PAID}")


def test_rule_07_the_context_is_the_same_wherever_the_process_dies() -> None:
    def check(played: Played) -> None:
        assert_one_answer(played)
        assert played.answer() == f"{bookings.text_at_the_end(DataclassBooking)}; {PAID}"

    report = kill_everywhere(Scenario(lambda _: service(DataclassBooking), lambda what: what, ["yes"]), check)
    assert report.kills
    assert not report.wrong, "\n".join(report.wrong[:5])


def test_tools_at_the_same_time_may_not_choose_seats_for_one_passenger() -> None:
    calls = [("choose", f"c{seat}", {"place": 0, "seat": seat}) for seat in ("1a", "2b")]
    reply = AgentTestHarness(service(DataclassBooking, find, choose, turns=[TURNS[0], calls])).send("go")
    assert isinstance(reply.error, StepConflict)
    assert "The tool choose and another tool that runs at the same time change context.passengers[0].seat." in (
        reply.said
    )


class Seats:
    """No dataclass."""

    def __init__(self) -> None:
        self.seat = ""


def test_a_change_of_an_object_that_cannot_be_stored_is_refused_although_the_sdk_gives_errors_to_the_model() -> None:
    @function_tool
    def take(context: RunContextWrapper[Seats]) -> str:
        """Takes."""
        context.context.seat = "1a"
        return "taken"

    wrapped = Agent("Seats", model=ReadingModel([[("take", "t1", {})]]), tools=[take])
    reply = AgentTestHarness(agent(wrapped, id="seats", description="Seats.", context=lambda _: Seats())).send("go")
    assert isinstance(reply.error, StepConflict)
    assert "The tool take changes context.seat, and a later run of the task would not see it." in reply.said
    assert "Make Seats a dataclass" in reply.said


def test_an_agent_that_is_a_tool_or_that_a_tool_runs_changes_the_context_of_the_whole() -> None:
    inner = Agent("Inner", model=ReadingModel([TURNS[0]]), tools=[find])
    chooser = Agent("Chooser", model=ReadingModel([TURNS[1]]), tools=[choose, rebook])

    @function_tool
    async def run_chooser(context: RunContextWrapper[Any]) -> str:
        """Runs the other agent."""
        await Runner.run(chooser, "go", context=context.context)
        return "ran"

    as_tool = inner.as_tool("inner", "Finds.")
    turns = [[("inner", "i1", {"input": "go"})], [("run_chooser", "x1", {})], TURNS[2]]
    harness = AgentTestHarness(service(DataclassBooking, as_tool, run_chooser, pay, turns=turns))
    asked = harness.send("go")
    reply = harness.send("yes", task_id=asked.task.id)
    assert (reply.error, reply.text("answer")) == (None, f"{bookings.text_at_the_end(DataclassBooking)}; {PAID}")


def handing_over(ledger: Ledger) -> A2AAgent:
    """Hands over to an agent that pays. On the way the flight gets a number, another one each time."""

    @function_tool(needs_approval=True)
    async def charge(context: RunContextWrapper[dict[str, str]]) -> str:
        """Charges."""
        return f"charged for {context.context['flight']}"

    async def number_the_flight(context: RunContextWrapper[dict[str, str]]) -> None:
        ledger.pay("handoff transfer_to_payer")
        context.context["flight"] = f"number {len(ledger.paid)}"

    def tell(context: RunContextWrapper[dict[str, str]], _: Any) -> str:
        return context.context["flight"]

    payer = Agent("Payer", instructions=tell, model=ReadingModel([[], [("charge", "p1", {})]]), tools=[charge])
    to_payer = handoff(payer, on_handoff=number_the_flight)
    first = Agent("First", model=ReadingModel([[("transfer_to_payer", "h1", {})]]), handoffs=[to_payer])
    return agent(first, id="service", description="Serves.", context=lambda _: {"place": "9z"}, streaming=False)


def test_rule_07_the_callback_of_a_handoff_is_called_once_and_what_it_changes_is_kept() -> None:
    def check(played: Played) -> None:
        assert_one_answer(played)
        last = f"number {len(played.ledger.paid)}"
        assert played.answer() == f"{last}; charged for {last}"

    report = kill_everywhere(Scenario(handing_over, str, ["yes"]), check)
    assert report.kills
    assert report.wrong == []
