"""Strands agents through the framework's own loop, with a fake model."""

from __future__ import annotations

import asyncio
import json
from runpy import run_path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("strands", reason="Strands is not installed here: make frameworks")

import httpx
from pydantic import BaseModel
from strands import Agent, ToolContext, tool
from strands.hooks import BeforeToolCallEvent
from strands.models import Model
from strands.multiagent import GraphBuilder
from strands.types.exceptions import ModelThrottledException
from strands.vended_interventions.hitl import HumanInTheLoop

from a2a_serverless import Budget, Part, StepConflict, Task, TaskContext, TaskState
from a2a_serverless import agent as plain
from a2a_serverless.agent_loader import by_id
from a2a_serverless.domain.budgets import NO_BUDGET
from a2a_serverless.store.stores import agent_pause
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.strands import agent, call_agent, run
from tests.frameworks.kills import Ledger, Played, Scenario, assert_one_answer, kill_everywhere
from tests.frameworks.pages import names_of, page_tests, run_example
from tests.frameworks.purchases import SEEDS, Purchase, assert_no_death_pays_twice, assert_no_deaths_pay_twice, step_of
from tests.frameworks.warm import ask_model, assert_two_tasks_end_well

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from a2a_serverless import Agent as A2AAgent


class FakeModel(Model):
    """Says what ``turns`` returns for the number of its turn: pieces of text, and tool calls as (name, id, input)."""

    def __init__(self, turns: Callable[[int], Iterable[Any]], pause_s: float = 0) -> None:
        self._turns = turns
        self._pause_s = pause_s

    def update_config(self, **model_config: Any) -> None:
        pass

    def get_config(self) -> dict[str, Any]:
        return {"model_id": "fake"}

    async def structured_output(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
        yield

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        turn = 1 + sum(message["role"] == "assistant" for message in messages)
        yield {"messageStart": {"role": "assistant"}}
        calls = False
        for said in self._turns(turn):
            await asyncio.sleep(self._pause_s)
            if isinstance(said, str):
                yield {"contentBlockDelta": {"delta": {"text": said}}}
                continue
            calls = True
            name, use_id, given = said
            yield {"contentBlockStop": {}}
            yield {"contentBlockStart": {"start": {"toolUse": {"name": name, "toolUseId": use_id}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(given)}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}
        yield {
            "metadata": {"usage": {"inputTokens": 5, "outputTokens": 3, "totalTokens": 8}, "metrics": {"latencyMs": 1}}
        }


def shopper(ledger: Ledger, seed: int) -> A2AAgent:
    """Calls tools in parallel, of which one raises and one needs an approval; then it answers in words."""
    purchase = Purchase(ledger, seed)

    @tool
    async def look(price: int) -> str:
        """Looks."""
        return await purchase.look(price)

    @tool
    def stumble() -> str:
        """Stumbles."""
        return purchase.stumble()

    @tool(context=True)
    async def buy(price: int, tool_context: ToolContext) -> str:
        """Buys."""
        if tool_context.interrupt("buy", reason={"price": price}) != "yes":
            return "not bought"
        return purchase.buy(price)

    def make() -> Agent:
        return Agent(FakeModel(purchase.turns, purchase.pause_s), tools=[look, stumble, buy], callback_handler=None)

    return agent(make, id="shop", description="Buys the most expensive thing.")


def assert_whole(played: Played) -> None:
    """The answer is the text of the last response that was stored, and nothing else."""
    assert_one_answer(played)
    message = played.steps["Strands Agents: model#2"].value[1]
    assert played.answer() == "".join(block.get("text", "") for block in message["content"])
    assert {"buy-1", "stumble-1", "look-0"} <= set(played.ledger.paid)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_death_at_any_call_pays_nothing_twice_and_leaves_one_whole_answer(seed: int) -> None:
    assert_no_death_pays_twice(shopper, assert_whole, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_or_three_deaths_pay_no_call_of_the_model_twice(seed: int) -> None:
    assert_no_deaths_pay_twice(shopper, assert_whole, seed)


def harness_of(
    *turns: Iterable[Any], tools: Sequence[Any] = (), pause_s: float = 0, **options: Any
) -> AgentTestHarness:
    """An agent whose model says in each turn what is given."""

    def make() -> Agent:
        model = FakeModel(lambda turn: turns[min(turn, len(turns)) - 1], pause_s)
        return Agent(model, tools=[*tools], callback_handler=None)

    return AgentTestHarness(agent(make, id="fake", description="Says what it is told.", **options))


def test_the_agent_has_what_a_card_needs() -> None:
    assert by_id((agent(Agent, id="shop", description="Sells."),))


class Offer(BaseModel):
    """A thing and its price."""

    thing: str


def test_a_structured_output_is_a_data_part_also_after_the_task_has_waited() -> None:
    @tool(context=True)
    async def check(tool_context: ToolContext) -> str:
        """Checks."""
        return str(tool_context.interrupt("check", reason="Is it ready?"))

    def make() -> Agent:
        model = FakeModel(lambda turn: [("check", "c1", {})] if turn == 1 else [("Offer", "c2", {"thing": "car"})])
        return Agent(model, tools=[check], structured_output_model=Offer, callback_handler=None)

    harness = AgentTestHarness(agent(make, id="offers", description="Offers."))
    asked = harness.send("go")
    assert (asked.state, asked.said) == ("input-required", "check: Is it ready?")
    assert harness.send({"yes": True}, task_id=asked.task.id).data("answer") == {"thing": "car"}


def test_an_interrupt_is_answered_after_a_deployment() -> None:
    harness = AgentTestHarness(example("car"))
    asked = harness.send("a car")
    assert (asked.state, asked.said) == ("input-required", "order: May I order car?")
    harness.deploy(example("car", "By the new version."))
    assert harness.send("yes", task_id=asked.task.id).text("answer") == "By the new version."


def example(thing: str, says: str = "Ordered.") -> A2AAgent:
    """The agent of the example, with a fake model."""
    model = FakeModel(lambda turn: [("order", "c1", {"thing": thing})] if turn == 1 else [says])
    made = run_path("examples/strands_agent.py")
    shop: A2AAgent = made["make_shop"](model)
    return shop


def test_the_test_of_a_new_project_passes() -> None:
    run_example("strands_agent.py")


def test_a_denied_tool_is_not_executed_though_ids_and_questions_repeat() -> None:
    bought: list[str] = []

    @tool(context=True)
    async def buy(tool_context: ToolContext) -> str:
        """Buys."""
        if tool_context.interrupt("buy", reason="May I?") != "yes":
            return "not bought"
        bought.append(tool_context.tool_use["toolUseId"])
        return "bought"

    harness = harness_of([("buy", "c1", {}), ("buy", "c2", {})], [("buy", "c1", {})], ["Done."], tools=[buy])
    reply = harness.send("buy")
    for answer, asked in (("yes", 2), ("no", 1), ("no", 1)):
        assert reply.said == "\n".join(["buy: May I?"] * asked)
        reply = harness.send(answer, task_id=reply.task.id)
    assert (reply.text("answer"), bought) == ("Done.", ["c1"])


def two_buyers(bought: list[str], *ids: str) -> AgentTestHarness:
    """A model that buys two things at once, each after a question."""

    @tool(context=True)
    async def buy(thing: str, tool_context: ToolContext) -> str:
        """Buys."""
        if tool_context.interrupt("buy", reason=f"May I buy a {thing}?") == "yes":
            bought.append(thing)
        return "bought"

    calls = [("buy", use_id, {"thing": thing}) for use_id, thing in zip(ids, ("car", "boat"), strict=True)]
    return harness_of(calls, ["Done."], tools=[buy])


def pending(reply: Any) -> list[dict[str, Any]]:
    interrupts: list[dict[str, Any]] = reply.task.status.message.data()["interrupts"]
    return interrupts


def test_interrupts_at_once_are_one_question_that_is_answered_by_ids() -> None:
    bought: list[str] = []
    harness = two_buyers(bought, "c1", "c2")
    asked = harness.send("buy both")
    assert asked.said == "buy: May I buy a car?\nbuy: May I buy a boat?"
    car, boat = pending(asked)
    assert (car["name"], car["reason"]) == ("buy", "May I buy a car?")
    answer: Any = {car["interruptId"]: "no", boat["interruptId"]: "yes"}
    assert harness.send(answer, task_id=asked.task.id).text("answer") == "Done."
    assert bought == ["boat"]


def test_interrupts_are_answered_in_the_form_of_the_frameworks_own_executor() -> None:
    bought: list[str] = []
    harness = two_buyers(bought, "c1", "c2")
    asked = harness.send("buy both")
    car, boat = pending(asked)

    def response(interrupt: dict[str, Any], said: str) -> Part:
        return Part(data={"interruptResponse": {"interruptId": interrupt["interruptId"], "response": said}})

    again = harness.send([response(boat, "yes")], task_id=asked.task.id)
    assert (again.state, again.said) == ("input-required", "buy: May I buy a car?")
    again = harness.send([response(boat, "yes")], task_id=asked.task.id)
    assert "No question that is open has the id" in again.said
    again = harness.send([Part(data={"interruptResponse": "yes"})], task_id=asked.task.id)
    assert "An interruptResponse has the members interruptId and response." in again.said
    assert harness.send([response(car, "no")], task_id=asked.task.id).text("answer") == "Done."
    assert bought == ["boat"]


def buyer(ledger: Ledger) -> A2AAgent:
    """Buys two things at once, which the client approves one after the other."""

    @tool(context=True)
    async def buy(thing: str, tool_context: ToolContext) -> str:
        """Buys."""
        if tool_context.interrupt("buy", reason=thing) != "yes":
            return "not bought"
        ledger.pay(tool_context.tool_use["toolUseId"])
        return "bought"

    def turns(turn: int) -> Iterable[Any]:
        calls = [("buy", "c1", {"thing": "car"}), ("buy", "c2", {"thing": "boat"})]
        return calls if turn == 1 else ["Done."]

    def make() -> Agent:
        return Agent(FakeModel(turns), tools=[buy], callback_handler=None)

    return agent(make, id="buyer", description="Buys.")


def test_a_death_between_the_tools_of_one_question_does_not_ask_again() -> None:
    def check(played: Played) -> None:
        assert_one_answer(played)
        questions = [event for event in played.events if getattr(event, "state", None) is TaskState.INPUT_REQUIRED]
        assert (len(questions), {*played.ledger.paid}) == (2, {"c1", "c2"})

    report = kill_everywhere(Scenario(buyer, lambda what: f":{what}", ["yes", "yes"]), check)
    assert not report.wrong, "\n".join(report.wrong[:5])


def test_a_text_answers_the_first_of_several_interrupts() -> None:
    bought: list[str] = []
    harness = two_buyers(bought, "c1", "c2")
    asked = harness.send("buy both")
    assert asked.task.status.message
    assert asked.task.status.message.metadata is None, "its interrupts are not named as approvals"
    again = harness.send("yes", task_id=asked.task.id)
    assert (again.state, again.said) == ("input-required", "buy: May I buy a boat?")
    assert harness.send("no", task_id=asked.task.id).text("answer") == "Done."
    assert bought == ["car"]


@pytest.mark.parametrize(
    ("answer", "bought"),
    [("Accept", 1), ({"approved": True}, 1), (True, 1), ("trust", 1), ("no", 0), ({"approved": False}, 0)],
)
def test_the_frameworks_own_approvals_are_answered_as_those_of_other_frameworks(answer: Any, bought: int) -> None:
    done: list[str] = []

    @tool
    def buy() -> str:
        """Buys."""
        done.append("bought")
        return "bought"

    def make() -> Agent:
        model = FakeModel(lambda turn: [("buy", "c1", {})] if turn == 1 else ["Done."])
        approval = HumanInTheLoop(enable_trust=True)
        return Agent(model, tools=[buy], interventions=[approval], callback_handler=None)

    harness = AgentTestHarness(agent(make, id="gated", description="Buys."))
    asked = harness.send("buy")
    assert asked.task.status.message
    assert asked.task.status.message.metadata == {"kind": "approval"}
    again = harness.send("perhaps", task_id=asked.task.id)
    assert again.state == "input-required"
    assert "It does not begin with a yes or a no." in again.said
    parts = answer if isinstance(answer, str) else [Part(data=answer)]
    assert harness.send(parts, task_id=asked.task.id).text("answer") == "Done."
    assert len(done) == bought


def test_a_hook_that_is_denied_cancels_the_tool_though_ids_and_questions_repeat() -> None:
    bought: list[str] = []

    @tool
    def buy() -> str:
        """Buys."""
        bought.append("bought")
        return "bought"

    def approve(event: BeforeToolCallEvent) -> None:
        if event.interrupt("approval", reason="May I?") != "yes":
            event.cancel_tool = "denied"

    def make() -> Agent:
        model = FakeModel(lambda turn: [("buy", "c1", {})] if turn < 3 else ["Done."])
        made = Agent(model, tools=[buy], callback_handler=None)
        made.add_hook(approve, BeforeToolCallEvent)
        return made

    harness = AgentTestHarness(agent(make, id="gated", description="Buys."))
    reply = harness.send("buy")
    for answer in ("yes", "no"):
        assert reply.task.status.message
        assert reply.task.status.message.metadata == {"kind": "approval"}
        reply = harness.send(answer, task_id=reply.task.id)
    assert (reply.text("answer"), bought) == ("Done.", ["bought"])


def test_the_text_of_a_sub_agent_of_the_same_name_is_not_the_answer() -> None:
    paid: list[str] = []

    def said(name: str, text: str) -> Iterable[Any]:
        paid.append(name)
        return [text]

    @tool
    async def delegate() -> str:
        """Delegates."""
        sub = Agent(FakeModel(lambda _: said("sub", "from the sub-agent")), callback_handler=None)
        return str(await run(sub, "go", stream=False))

    @tool(context=True)
    async def check(tool_context: ToolContext) -> str:
        """Checks."""
        return str(tool_context.interrupt("check"))

    harness = harness_of(
        [("delegate", "c1", {}), ("delegate", "c2", {})],
        [("check", "c1", {})],
        ["The answer."],
        tools=[delegate, check],
    )
    asked = harness.send("go")
    reply = harness.send("yes", task_id=asked.task.id)
    assert (reply.error, reply.text("answer"), paid) == (None, "The answer.", ["sub", "sub"])


def test_an_interrupt_of_a_sub_agent_as_a_tool_is_a_question_and_the_tool_goes_on_after_it() -> None:
    bought: list[str] = []

    @tool(context=True)
    async def buy(tool_context: ToolContext) -> str:
        """Buys."""
        if tool_context.interrupt("buy", reason="May I?") == "yes":
            bought.append("bought")
        return "bought"

    def make() -> Agent:
        sub = Agent(
            FakeModel(lambda turn: [("buy", "c1", {})] if turn == 1 else ["It is bought."]),
            name="buyer",
            tools=[buy],
            callback_handler=None,
        )
        model = FakeModel(lambda turn: [("buyer", "c1", {"input": "buy"})] if turn == 1 else ["Done."])
        return Agent(model, tools=[sub.as_tool()], callback_handler=None)

    harness = AgentTestHarness(agent(make, id="chief", description="Delegates."))
    asked = harness.send("buy")
    assert (asked.error, asked.said) == (None, "buy: May I?")
    reply = harness.send("yes", task_id=asked.task.id)
    assert (reply.error, reply.text("answer"), bought) == (None, "Done.", ["bought"])


def chief(budget: Budget = NO_BUDGET) -> A2AAgent:
    """An agent whose tools are another agent, twice at once, and one of that agent's own."""

    def make() -> Agent:
        deep = Agent(FakeModel(lambda _: ["Deep."]), name="deep", callback_handler=None)
        sub = Agent(
            FakeModel(lambda turn: [("deep", "c1", {"input": "go"})] if turn == 1 else ["Said."]),
            name="sub",
            tools=[deep.as_tool()],
            callback_handler=None,
        )
        model = FakeModel(lambda turn: [("sub", "c1", {"input": "go"})] if turn in {1, 2} else ["Done."])
        return Agent(model, tools=[sub.as_tool()], callback_handler=None)

    return agent(make, id="chief", description="Delegates.", budget=budget)


def test_the_model_calls_of_agents_that_are_tools_are_in_the_usage() -> None:
    reply = AgentTestHarness(chief()).send("go")
    assert (reply.error, reply.text("answer")) == (None, "Done.")
    usage = (reply.task.metadata or {})["a2a-serverless/usage"]
    assert usage == {"fake": {"requests": 9, "input_tokens": 45, "output_tokens": 27}}


def test_the_model_calls_of_agents_that_are_tools_are_in_the_budget() -> None:
    reply = AgentTestHarness(chief(Budget(tokens=20))).send("go")
    assert (reply.state, type(reply.error).__name__) == ("failed", "BudgetExceeded")


def test_an_agent_that_a_tool_invokes_by_itself_is_a_part_of_the_step_and_its_usage_and_interrupts_stay_there() -> None:
    paid: list[int] = []

    @tool(context=True)
    async def buy(tool_context: ToolContext) -> str:
        """Buys."""
        return str(tool_context.interrupt("buy", reason="May I?"))

    @tool
    async def delegate() -> str:
        """Delegates."""

        def turns(turn: int) -> Iterable[Any]:
            paid.append(turn)
            return [("buy", "c1", {})]

        result = await Agent(FakeModel(turns), tools=[buy], callback_handler=None).invoke_async("go")
        return f"{result.stop_reason}: {result.interrupts[0].reason}"

    @tool(context=True)
    async def check(tool_context: ToolContext) -> str:
        """Checks."""
        return str(tool_context.interrupt("check"))

    harness = harness_of([("delegate", "c1", {})], [("check", "c2", {})], ["Done."], tools=[delegate, check])
    asked = harness.send("go")
    assert asked.said == "check"
    reply = harness.send("yes", task_id=asked.task.id)
    usage = (reply.task.metadata or {})["a2a-serverless/usage"]
    assert (reply.text("answer"), paid, usage["fake"]["requests"]) == ("Done.", [1], 3)


def test_a_graph_of_agents_is_refused() -> None:
    def make() -> Any:
        builder = GraphBuilder()
        builder.add_node(Agent(FakeModel(lambda _: ["Done."]), callback_handler=None), "only")
        builder.set_max_node_executions(9)
        return builder.build()

    @plain(id="graph", name="Graph", description="Runs a graph.", skills=[])
    async def graph(task: TaskContext) -> None:
        await run(make(), task.text())

    assert isinstance(AgentTestHarness(graph).send("go").error, TypeError)


def test_a_tool_that_raises_tells_the_model() -> None:
    @tool
    def divide() -> float:
        """Divides."""
        return 1 / 0

    reply = harness_of([("divide", "c1", {})], ["It failed."], tools=[divide]).send("divide")
    assert (reply.state, reply.text("answer")) == ("completed", "It failed.")


def throttled(ledger: Ledger) -> A2AAgent:
    """Its model is throttled at the first request of each turn."""
    asked: set[int] = set()

    def turns(turn: int) -> Iterable[Any]:
        if turn not in asked:
            asked.add(turn)
            raise ModelThrottledException("slow down")
        tried = ledger.pay(f"model {turn}")
        return [("look", f"look-{tried}", {})] if turn == 1 else [f"answer {tried}"]

    @tool
    def look() -> str:
        """Looks."""
        return "seen"

    def make() -> Agent:
        return Agent(FakeModel(turns), tools=[look], callback_handler=None)

    return agent(make, id="throttled", description="Is slow.")


def test_a_death_after_a_throttled_request_does_not_pay_the_response_again() -> None:
    def check(played: Played) -> None:
        assert_one_answer(played)
        assert played.answer().startswith("answer ")

    assert not kill_everywhere(Scenario(throttled, step_of), check).wrong


def test_the_messages_of_a_task_with_a_question_are_the_history_of_the_next_one() -> None:
    heard: list[list[str]] = []

    class Hearing(FakeModel):
        async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
            heard.append([kind for message in messages for block in message["content"] for kind in block])
            async for event in super().stream(messages):
                yield event

    @tool(context=True)
    async def check(tool_context: ToolContext) -> str:
        """Checks."""
        return str(tool_context.interrupt("check"))

    def make() -> Agent:
        model = Hearing(lambda turn: [("check", "c1", {})] if turn == 1 else ["Yes."])
        return Agent(model, tools=[check], callback_handler=None)

    harness = AgentTestHarness(agent(make, id="asks", description="Asks.", input_modes=("*/*",)))
    asked = harness.send([Part(text="Look"), Part(raw="iVBOR0==", media_type="image/png")])
    assert asked.said == "check"
    harness.send("yes", task_id=asked.task.id)
    harness.send("And?", context_id=asked.task.context_id)
    assert heard == [
        ["text", "image"],
        ["text", "image", "toolUse", "toolResult"],
        ["text", "text", "toolUse", "toolResult", "text", "text"],
    ]


def test_a_cancel_in_the_middle_of_a_response_leaves_a_canceled_task() -> None:
    harness = harness_of(["a", "b", "c", "d"], pause_s=10)
    task = harness.begin("go")
    assert isinstance(task, Task)
    harness.at(harness.now + 25_000, lambda: harness.cancel(task.id))
    harness.settle()
    reply = harness.reply(task.id)
    assert (reply.state, reply.text("answer")) == ("canceled", "a")


def test_two_other_agents_are_called_at_once_as_tools_while_nothing_runs_here() -> None:
    @plain(id="echo", name="Echo", description="Repeats.", skills=[])
    async def echo(task: TaskContext) -> None:
        await asyncio.sleep(600)
        await task.emit("said", task.text(), last=True)

    calls = [("call_echo", "c1", {"message": "a"}), ("call_echo", "c2", {"message": "b"})]
    model = FakeModel(lambda turn: calls if turn == 1 else ["Both."])

    def make() -> Agent:
        return Agent(model, tools=[call_agent("echo", description="Repeats.")], callback_handler=None)

    harness = AgentTestHarness(agent(make, id="caller", description="Calls."), echo)
    reply = harness.send("call")
    assert reply.text("answer") == "Both."
    assert sorted(entry.agent for entry in harness.tasks(reply.task.context_id)) == ["caller", "echo", "echo"]
    own = [end - began for task_id, began, end in harness.runs if task_id == reply.task.id]
    assert sum(own) < 60_000, "nothing runs here while the other agents work"


def test_a_conversation_of_forty_turns_is_the_history_and_the_oldest_turns_are_forgotten() -> None:
    heard: list[list[str]] = []

    class Hearing(FakeModel):
        async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
            heard.append([one["content"][0]["text"] for one in messages if one["role"] == "user"])
            async for event in super().stream([]):
                yield event

    def make() -> Agent:
        return Agent(Hearing(lambda _: ["Yes."]), callback_handler=None)

    harness = AgentTestHarness(agent(make, id="chat", description="Talks.", history=18))
    context_id = harness.send("turn 0").task.context_id
    for turn in range(1, 40):
        assert harness.send(f"turn {turn}", context_id=context_id).state == "completed"
    assert heard[17] == [f"turn {turn}" for turn in range(18)]
    assert heard[39] == [f"turn {turn}" for turn in range(21, 40)]


@pytest.mark.enable_socket
def test_a_client_whose_connections_stay_open_works_in_the_next_task_of_the_process() -> None:
    def make(url: str) -> A2AAgent:
        client = httpx.AsyncClient()

        class Served(FakeModel):
            async def stream(self, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
                text = await ask_model(client, url)
                async for event in FakeModel(lambda _: [text]).stream(*arguments, **options):
                    yield event

        return agent(lambda: Agent(Served(lambda _: []), callback_handler=None), id="warm", description="Says.")

    assert_two_tasks_end_well(make)


@pytest.mark.parametrize("name", page_tests("strands.md"))
def test_each_example_of_the_page_passes(name: str) -> None:
    names_of("strands.md")[name]()


def looking(budget: Budget, looked: list[int], turns: int = 9) -> AgentTestHarness:
    """An agent that calls a tool twice at a time in each turn, which strands executes in parallel; then it answers."""

    @tool
    async def look(number: int) -> str:
        """Looks."""
        await asyncio.sleep(20)
        looked.append(number)
        return str(number)

    def make() -> Agent:
        def turn_of(turn: int) -> Iterable[Any]:
            if turn > turns:
                return ["done"]
            return [("look", f"c{turn}{one}", {"number": 10 * turn + one}) for one in (1, 2)]

        return Agent(FakeModel(turn_of), tools=[look], callback_handler=None)

    return AgentTestHarness(agent(make, id="fake", description="Looks.", budget=budget))


def test_a_spent_budget_ends_the_task_though_the_framework_gives_the_errors_of_tools_to_the_model() -> None:
    looked = list[int]()
    reply = looking(Budget(steps=5), looked).send("go")
    assert reply.said == "The budget of the agent is spent: 5 of 5 steps."
    assert sorted(looked)[:2] == [11, 12]
    assert len(looked) <= 3, "model, two tools, model, one tool, which may be cancelled"
    looked.clear()
    assert looking(Budget(tokens=16), looked).send("go").said == "The budget of the agent is spent: 16 of 16 tokens."
    assert sorted(looked) == [11, 12]


def test_a_retry_after_a_spent_budget_asks_no_model_and_no_tool_twice() -> None:
    looked = list[int]()
    harness = looking(Budget(steps=5), looked, turns=3)
    reply = harness.send("go")
    for _ in range(4):
        if reply.state != "failed":
            break
        reply = harness.retry(reply.task.id)
    assert reply.text("answer") == "done"
    assert sorted(looked) == [11, 12, 21, 22, 31, 32]


def test_a_paused_agent_of_the_framework_goes_on_after_the_pause_and_repeats_nothing() -> None:
    looked = list[int]()
    harness = looking(Budget(), looked, turns=3)
    harness.at(harness.now + 5_000, lambda: harness.table.add_pause(agent_pause("fake"), harness.now))
    harness.at(harness.now + 300_000, lambda: harness.table.remove_pause(agent_pause("fake")))
    assert harness.send("go").text("answer") == "done"
    assert sorted(looked) == [11, 12, 21, 22, 31, 32]
    assert len(harness.runs) == 2


def looker(ids: Sequence[str], looked: list[Any], *, asks: bool) -> AgentTestHarness:
    """An agent whose model calls a tool once for each id, in one response."""

    @tool(context=True)
    def look(place: int, tool_context: ToolContext) -> str:
        """Looks."""
        looked.append((place, tool_context.interrupt("look", reason=place) if asks else None))
        return f"seen {place}"

    calls: Any = [("look", use_id, {"place": place}) for place, use_id in enumerate(ids)]

    def make() -> Agent:
        return Agent(FakeModel(lambda turn: [calls, ["Done."]][turn - 1]), tools=[look], callback_handler=None)

    return AgentTestHarness(agent(make, id="looker", description="Looks."))


def test_calls_with_equal_ids_in_one_response_are_all_made() -> None:
    looked: list[Any] = []
    reply = looker(["a", "a", "a-2", "a"], looked, asks=False).send("go")
    assert (reply.error, reply.text("answer")) == (None, "Done.")
    assert sorted(looked) == [(place, None) for place in range(4)]


def test_calls_with_equal_ids_ask_a_question_each() -> None:
    looked: list[Any] = []
    harness = looker(["a", "a"], looked, asks=True)
    asked = harness.send("go")
    assert asked.said == "look: 0\nlook: 1"
    harness.send("red", task_id=asked.task.id)
    assert harness.send("blue", task_id=asked.task.id).text("answer") == "Done."
    assert looked == [(0, "red"), (1, "blue")]


def test_null_is_asked_for_again_because_the_framework_takes_it_for_no_answer() -> None:
    looked: list[Any] = []
    harness = looker(["a"], looked, asks=True)
    asked = harness.send("go")
    again = harness.send([Part(data=None)], task_id=asked.task.id)
    assert again.state == "input-required"
    assert "An interrupt takes any answer but null." in again.said
    harness.send([Part(data=False)], task_id=asked.task.id)
    assert looked == [(0, False)]


def seats() -> A2AAgent:
    """One tool chooses a seat in the agent's state, and another one, which asks the client, pays for it."""

    @tool(context=True)
    def choose(seat: str, tool_context: ToolContext) -> str:
        """Chooses."""
        tool_context.agent.state.set("seat", seat)
        tool_context.agent.state.delete("wish")
        return "chosen"

    @tool(context=True)
    def pay(tool_context: ToolContext) -> str:
        """Pays."""
        state = tool_context.agent.state
        state.set("asked", (state.get("asked") or 0) + 1)
        tool_context.interrupt("pay")
        return "paid"

    @tool(context=True)
    def tell(tool_context: ToolContext) -> dict[str, Any]:
        """Tells."""
        return {"status": "success", "content": [{"text": json.dumps(tool_context.agent.state.get())}]}

    turns: Any = [[("choose", "c1", {"seat": "1a"})], [("pay", "p1", {})], [("tell", "t1", {})]]

    def make() -> Agent:
        model = LastResult(lambda turn: turns[turn - 1] if turn <= len(turns) else [])
        return Agent(model, tools=[choose, pay, tell], state={"wish": "any"}, callback_handler=None)

    return agent(make, id="seats", description="Sells seats.")


class LastResult(FakeModel):
    """Says the last tool's result where its turn, since the client's last message, has nothing to say."""

    async def stream(self, messages: Any, *rest: Any, **options: Any) -> AsyncIterator[Any]:
        block = messages[-1]["content"][-1]
        prompts = [place for place, message in enumerate(messages) if "text" in message["content"][0]]
        began = max(place for place in prompts if messages[place]["role"] == "user")
        turn = 1 + sum(message["role"] == "assistant" for message in messages[began:])
        said = self._turns(turn) or [block["toolResult"]["content"][0]["text"]]
        async for event in FakeModel(lambda _: said).stream(messages, *rest, **options):
            yield event


def test_a_later_run_has_the_state_that_a_tool_has_changed() -> None:
    harness = AgentTestHarness(seats())
    asked = harness.send("go")
    assert (asked.error, asked.state) == (None, "input-required")
    harness.deploy(seats())
    reply = harness.send("yes", task_id=asked.task.id)
    assert (reply.error, reply.text("answer")) == (None, '{"seat": "1a", "asked": 1}')


def test_the_next_task_of_a_conversation_begins_with_the_state_that_the_last_one_has_left() -> None:
    harness = AgentTestHarness(seats())
    first = harness.send("go")
    harness.send("yes", task_id=first.task.id)
    second = harness.send("go", context_id=first.task.context_id)
    third = harness.send("go", context_id=first.task.context_id)
    assert harness.send("yes", task_id=third.task.id).text("answer") == '{"seat": "1a", "asked": 2}'
    assert harness.send("yes", task_id=second.task.id).text("answer") == '{"seat": "1a", "asked": 2}'
    other = harness.send("go")
    assert harness.send("yes", task_id=other.task.id).text("answer") == '{"seat": "1a", "asked": 1}'


def test_rule_07_the_state_is_the_same_wherever_the_process_dies() -> None:
    def check(played: Played) -> None:
        assert_one_answer(played)
        assert played.answer() == '{"seat": "1a", "asked": 1}'

    report = kill_everywhere(Scenario(lambda _: seats(), lambda what: what, ["yes"]), check)
    assert not report.wrong, "\n".join(report.wrong[:5])


def test_tools_at_the_same_time_may_not_make_different_values_of_one_key() -> None:
    both = asyncio.Barrier(2)

    @tool(context=True)
    async def choose(seat: str, tool_context: ToolContext) -> str:
        """Chooses."""
        await both.wait()
        tool_context.agent.state.set("seat", seat)
        await both.wait()
        return "chosen"

    calls: Any = [("choose", f"c{seat}", {"seat": seat}) for seat in ("1a", "2b")]

    def make() -> Agent:
        return Agent(FakeModel(lambda turn: [calls, ["Done."]][turn - 1]), tools=[choose], callback_handler=None)

    reply = AgentTestHarness(agent(make, id="seats", description="Sells seats.")).send("go")
    assert isinstance(reply.error, StepConflict)
    assert "The tool choose and another tool that runs at the same time change agent.state['seat']." in reply.said
