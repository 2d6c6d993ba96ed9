"""What tools change in the dependencies of Pydantic AI is kept in a later run, and instructions read it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pydantic_ai", reason="Pydantic AI is not installed here: make frameworks")

from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from a2a_serverless import StepConflict
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.pydantic_ai import agent, run
from tests.frameworks import bookings
from tests.frameworks.bookings import PAID, TURNS, DataclassBooking, DictBooking, ModelBooking
from tests.frameworks.kills import Played, Scenario, assert_one_answer, kill_everywhere

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_ai.messages import ModelMessage

    from a2a_serverless import Agent as A2AAgent


def model_of(turns: list[list[Any]]) -> FunctionModel:
    """Makes the calls of its turns, and then says the instructions and the last tool's result."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        if turn < len(turns):
            return ModelResponse([ToolCallPart(name, json.dumps(values), one) for name, one, values in turns[turn]])
        results = [part.content for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        return ModelResponse([TextPart(f"{info.instructions}; {results[-1]}")])

    return FunctionModel(answer)


async def find(ctx: RunContext[Any]) -> str:
    await asyncio.sleep(1)
    return bookings.find(ctx.deps)


async def choose(ctx: RunContext[Any], place: int, seat: str | None) -> str:
    await asyncio.sleep(1)
    return bookings.choose(ctx.deps, place, seat)


def rebook(ctx: RunContext[Any]) -> str:
    return bookings.rebook(ctx.deps)


def pay(ctx: RunContext[Any]) -> str:
    return bookings.pay(ctx.deps)


def service(make: Callable[[], Any], kind: type, *tools: Any, turns: Any = TURNS) -> A2AAgent:
    wrapped = Agent(model_of(turns), name="service", deps_type=kind)
    for tool in tools or (find, choose, rebook, pay):
        wrapped.tool(requires_approval=tool is pay)(tool)
    wrapped.instructions(lambda ctx: bookings.text_of(ctx.deps))
    return agent(wrapped, deps=lambda _: make(), streaming=False)


@pytest.mark.parametrize(
    ("make", "kind"),
    [(DataclassBooking, DataclassBooking), (ModelBooking, ModelBooking), (bookings.make_dict, DictBooking)],
)
def test_the_deps_are_the_same_after_a_question_and_after_each_act(make: Callable[[], Any], kind: type) -> None:
    harness = AgentTestHarness(service(make, kind))
    asked = harness.send("go")
    harness.deploy(service(make, kind))
    reply = harness.send("yes", task_id=asked.task.id)
    assert (reply.error, reply.text("answer")) == (None, f"{bookings.text_at_the_end(make)}; {PAID}")


def test_rule_07_the_deps_are_the_same_wherever_the_process_dies() -> None:
    def check(played: Played) -> None:
        assert_one_answer(played)
        assert played.answer() == f"{bookings.text_at_the_end(DataclassBooking)}; {PAID}"

    make = DataclassBooking
    report = kill_everywhere(Scenario(lambda _: service(make, make), lambda what: what, ["yes"]), check)
    assert report.kills
    assert not report.wrong, "\n".join(report.wrong[:5])


def test_tools_at_the_same_time_may_not_choose_seats_for_one_passenger() -> None:
    calls = [("choose", f"c{seat}", {"place": 0, "seat": seat}) for seat in ("1a", "2b")]
    one = service(DataclassBooking, DataclassBooking, find, choose, turns=[TURNS[0], calls])
    reply = AgentTestHarness(one).send("go")
    assert isinstance(reply.error, StepConflict)
    assert "The tool choose and another tool that runs at the same time change ctx.deps.passengers[0].seat." in (
        reply.said
    )


def test_a_change_before_a_retry_is_kept_and_one_of_an_object_that_cannot_be_stored_is_refused() -> None:
    async def rebook(ctx: RunContext[Any]) -> str:
        ctx.deps.asked += 1
        if ctx.deps.asked == 1:
            raise ModelRetry("Again.")
        return str(ctx.deps.asked)

    turns: Any = [[("rebook", "r1", {})], [("rebook", "r2", {})]]
    harness = AgentTestHarness(service(DataclassBooking, DataclassBooking, rebook, turns=turns))
    assert harness.send("go").text("answer").endswith("2; 2")

    class Seats:
        asked = 0

    wrapped = Agent(model_of(turns), name="seats", deps_type=Seats, tools=[rebook])
    reply = AgentTestHarness(agent(wrapped, deps=lambda _: Seats(), streaming=False)).send("go")
    assert isinstance(reply.error, StepConflict)
    assert "The tool rebook changes ctx.deps.asked, and a later run of the task would not see it." in reply.said


def test_an_agent_that_a_tool_runs_changes_the_deps_of_the_whole() -> None:
    inner = Agent(
        model_of([TURNS[0], TURNS[1]]), name="inner", deps_type=DataclassBooking, tools=[find, choose, rebook]
    )

    async def run_inner(ctx: RunContext[Any]) -> str:
        await run(inner, "go", deps=ctx.deps, stream=False)
        return "ran"

    turns = [[("run_inner", "x1", {})], TURNS[2]]
    harness = AgentTestHarness(service(DataclassBooking, DataclassBooking, run_inner, pay, turns=turns))
    asked = harness.send("go")
    reply = harness.send("yes", task_id=asked.task.id)
    assert (reply.error, reply.text("answer")) == (None, f"{bookings.text_at_the_end(DataclassBooking)}; {PAID}")
