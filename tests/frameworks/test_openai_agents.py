"""Agents of the OpenAI Agents SDK through the SDK's own loop, with a fake model."""

from __future__ import annotations

import asyncio
from runpy import run_path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("agents", reason="The OpenAI Agents SDK is not installed here: make frameworks")

from agents import Agent, Model, ModelResponse, OpenAIResponsesModel, RunConfig, Runner, Usage, function_tool
from agents.testing import assistant_message, function_call
from openai import AsyncOpenAI
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseTextDeltaEvent,
    ResponseUsage,
)
from pydantic import BaseModel

from a2a_serverless import Budget, BudgetExceeded, Part, Task, TaskContext, current_task
from a2a_serverless import agent as plain
from a2a_serverless.agent_loader import by_id
from a2a_serverless.engine.steps import stored_form
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.openai_agents import _Responses, agent, call_agent, run
from tests.foreign.model_server import ModelRequest, Said, ToolCall, model_server
from tests.frameworks.kills import Ledger, Played, Scenario, assert_one_answer, kill_everywhere
from tests.frameworks.pages import names_of, page_tests, run_example
from tests.frameworks.purchases import SEEDS, Purchase, assert_no_death_pays_twice, assert_no_deaths_pay_twice, step_of
from tests.frameworks.warm import assert_two_tasks_end_well

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from a2a_serverless import Agent as A2AAgent

OUTPUTS = {"function_call_output", "custom_tool_call_output"}


class FakeModel(Model):
    """Says what ``turns`` returns for the number of its turn: pieces of text, and tool calls as (name, id, input).

    Turns are counted since the last message of the client. ``heard`` gets the input items of each call.
    """

    model = "fake"

    def __init__(
        self, turns: Callable[[int], Iterable[Any]], pause_s: float = 0, heard: list[Any] | None = None
    ) -> None:
        self._turns, self._pause_s = turns, pause_s
        self._heard = [] if heard is None else heard

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:  # noqa: A002
        del system_instructions
        self._heard.append(input)
        said = list(self._turns(turn_of(input)))
        await asyncio.sleep(self._pause_s * len(said))
        text = "".join(one for one in said if isinstance(one, str))
        calls = [function_call(one[0], one[2], call_id=one[1]) for one in said if not isinstance(one, str)]
        usage = Usage(requests=1, input_tokens=5, output_tokens=3, total_tokens=8)
        return ModelResponse([*([assistant_message(text)] if text else []), *calls], usage, None)

    async def stream_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:  # noqa: A002
        self._heard.append(input)
        said = list[Any]()
        for one in self._turns(turn_of(input)):
            await asyncio.sleep(self._pause_s)
            said.append(one)
            if isinstance(one, str):
                yield ResponseTextDeltaEvent.model_construct(type="response.output_text.delta", delta=one)
        whole = await FakeModel(lambda _: said).get_response(system_instructions, [])
        usage = vars(whole.usage)
        tokens = {name: usage[name] for name in usage if name.endswith(("tokens", "details"))}
        response = Response.model_construct(id="r", output=whole.output, usage=ResponseUsage.model_construct(**tokens))
        yield ResponseCompletedEvent.model_construct(type="response.completed", response=response)


def turn_of(items: Any) -> int:
    """1, and 1 more for each response since the client's last message: a response with calls has outputs after it."""
    if isinstance(items, str):
        return 1
    began = max((place for place, item in enumerate(items) if item.get("role") == "user"), default=0)
    kinds = [item.get("type") in OUTPUTS for item in items[began:]]
    return 1 + sum(after and not before for before, after in zip([False, *kinds], kinds, strict=False))


def shopper(ledger: Ledger, seed: int) -> A2AAgent:
    """Calls tools in parallel, of which one raises and one needs an approval; then it answers in words."""
    purchase = Purchase(ledger, seed)

    @function_tool
    async def look(price: int) -> str:
        """Looks."""
        return await purchase.look(price)

    @function_tool
    def stumble() -> str:
        """Stumbles."""
        return purchase.stumble()

    @function_tool(needs_approval=True)
    async def buy(price: int) -> str:
        """Buys."""
        return purchase.buy(price)

    model = FakeModel(purchase.turns, purchase.pause_s)
    wrapped = Agent("Shop", model=model, tools=[look, stumble, buy])
    return agent(wrapped, id="shop", description="Buys the most expensive thing.")


def test_a_response_is_read_back_as_it_was_stored_also_where_a_field_has_an_alias() -> None:
    members = {"type": "function_call", "name": "buy", "arguments": "{}", "call_id": "1", "async": True}
    response = ModelResponse([ResponseFunctionToolCall.model_validate(members)], Usage(), None)
    _, later = stored_form("model", _Responses(), response)
    assert isinstance(later, ModelResponse)
    assert later.output[0].model_dump(by_alias=True, exclude_unset=True) == members


def assert_stored(played: Played, name_of: Callable[[str], str]) -> None:
    """All that was paid for is stored as a step."""
    assert not [what for what in played.ledger.paid if not any(one.endswith(name_of(what)) for one in played.steps)]


def assert_whole(played: Played) -> None:
    """The answer is the text of the last response that was stored, and nothing else."""
    assert_one_answer(played)
    (message,) = played.steps["Shop: model#2"].value["output"]
    assert played.answer() == message["content"][0]["text"]
    assert {"buy-1", "stumble-1", "look-0"} <= set(played.ledger.paid)
    assert_stored(played, step_of)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_death_at_any_call_pays_nothing_twice_and_leaves_one_whole_answer(seed: int) -> None:
    assert_no_death_pays_twice(shopper, assert_whole, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_or_three_deaths_pay_no_call_of_the_model_twice(seed: int) -> None:
    assert_no_deaths_pay_twice(shopper, assert_whole, seed)


@pytest.mark.enable_socket
def test_a_death_at_any_call_pays_openai_s_server_nothing_twice() -> None:
    def served(ledger: Ledger) -> A2AAgent:
        def say(request: ModelRequest) -> Said:
            ledger.pay(f"model {request.number + 1}")
            return ["Bought", " it."] if request.number else [ToolCall("buy", {"price": 9}, "buy-1")]

        server.say = say

        @function_tool(needs_approval=True)
        async def buy(price: int) -> str:
            """Buys."""
            ledger.pay("buy-1")
            return f"bought for {price}"

        model = OpenAIResponsesModel("gpt-test", AsyncOpenAI(base_url=server.url, api_key="none"))
        return agent(Agent("Shop", model=model, tools=[buy]), id="shop", description="Buys.")

    def check(played: Played) -> None:
        assert_one_answer(played)
        assert (played.answer(), {*played.ledger.paid}) == ("Bought it.", {"model 1", "buy-1", "model 2"})
        assert_stored(played, step_of)

    with model_server() as server:
        report = kill_everywhere(Scenario(served, step_of, ["yes"]), check)
    print(f"{report.kills.total()} kills, {len(report.wrong)} wrong")
    assert not report.wrong


@pytest.mark.enable_socket
def test_the_key_of_the_model_is_a_secret_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    read_key = names_of("openai-agents.md")["read_key"]
    monkeypatch.setenv("A2A_SECRET_OPENAI", "sk-of-the-project")
    with model_server(lambda _: ["Good morning."]) as server:
        model = OpenAIResponsesModel("gpt-test", AsyncOpenAI(base_url=server.url, api_key=read_key))
        harness = AgentTestHarness(agent(Agent("writer", model=model), id="writer", description="Writes."))
        assert harness.send("Write.").text("answer") == "Good morning."
    assert server.keys == ["sk-of-the-project"]


def staff(ledger: Ledger) -> A2AAgent:
    """A chief asks two clerks at once, of which one needs an approval in a tool; then it hands over to a writer."""

    def turns(name: str, *said: Iterable[Any]) -> FakeModel:
        def say(turn: int) -> Iterable[Any]:
            ledger.pay(f"{name} {turn}")
            return said[turn - 1]

        return FakeModel(say, 0.1)

    @function_tool(needs_approval=True)
    async def pay(price: int) -> str:
        """Pays."""
        ledger.pay(f"pay-{price}")
        return "paid"

    clerk = Agent("clerk", model=turns("clerk", [("pay", "c1", {"price": 7})], ["Paid."]), tools=[pay])
    guide = Agent("guide", model=turns("guide", ["Go left."]))
    writer = Agent("writer", model=turns("writer", [], [], ["Paid, and left."]))
    tools = [clerk.as_tool("clerk", "Pays."), guide.as_tool("guide", "Guides.")]
    asks = [("clerk", "c1", {"input": "pay"}), ("guide", "c2", {"input": "where"})]
    model = turns("chief", asks, ["I hand over.", ("transfer_to_writer", "c1", {})])
    wrapped = Agent("chief", model=model, tools=[*tools], handoffs=[writer])
    return agent(wrapped, id="chief", description="Delegates.")


def used_by(task: Task) -> dict[str, Any]:
    """What the fake model has used in the task."""
    usage: dict[str, Any] = (task.metadata or {})["a2a-serverless/usage"]["fake"]
    return usage


def step_of_staff(what: str) -> str:
    """The end of the name of the step that stores a payment of the staff."""
    kind, _, turn = what.partition(" ")
    if kind.startswith("pay-"):
        return "pay:c1"
    nested = {"clerk": "clerk:c1 > ", "guide": "guide:c2 > "}.get(kind, "")
    second = kind == "chief" and turn == "2"
    if kind == "clerk" and turn == "2":
        return "clerk:c1#2 > clerk: model"
    return f"{nested}{kind}: model{'#2' if second else ''}"


def test_a_death_while_agents_as_tools_ask_and_hand_over_repeats_no_effect() -> None:
    def check(played: Played) -> None:
        assert_one_answer(played)
        assert played.answer() == "Paid, and left."
        assert set(played.ledger.paid) == {"chief 1", "chief 2", "clerk 1", "clerk 2", "guide 1", "writer 3", "pay-7"}
        assert_stored(played, step_of_staff)
        assert used_by(played.task)["requests"] == 6, "what agents inside use counts"

    report = kill_everywhere(Scenario(staff, step_of_staff, ["yes"]), check)
    print(f"{report.kills.total()} kills, {len(report.wrong)} wrong")
    assert not report.wrong


def harness_of(
    *turns: Iterable[Any], tools: Sequence[Any] = (), pause_s: float = 0, heard: list[Any] | None = None, **options: Any
) -> AgentTestHarness:
    """An agent whose model says in each turn what is given."""
    model = FakeModel(lambda turn: turns[min(turn, len(turns)) - 1], pause_s, heard)
    return AgentTestHarness(
        agent(Agent("fake", model=model, tools=[*tools]), id="fake", description="Says.", **options)
    )


def test_the_agent_has_what_a_card_needs() -> None:
    assert by_id((agent(Agent("Shop"), id="shop", description="Sells."),))


class Offer(BaseModel):
    """A thing and its price."""

    thing: str


def test_a_structured_output_is_a_data_part_also_after_the_task_has_waited() -> None:
    @function_tool(needs_approval=True)
    def check() -> str:
        """Checks."""
        return "ready"

    model = FakeModel(lambda turn: [("check", "c1", {})] if turn == 1 else ['{"thing": "car"}'])
    wrapped = Agent("offers", model=model, tools=[check], output_type=Offer)
    harness = AgentTestHarness(agent(wrapped, id="offers", description="Offers."))
    asked = harness.send("go")
    assert (asked.state, asked.said) == ("input-required", "May I call check({})? Answer yes, or no and why.")
    reply = harness.send({"approved": True}, task_id=asked.task.id)
    assert (reply.error, reply.data("answer")) == (None, {"thing": "car"})


def test_an_approval_is_given_after_a_deployment() -> None:
    harness = AgentTestHarness(example("car"))
    asked = harness.send("a car")
    assert asked.said == 'May I call order({"thing": "car"})? Answer yes, or no and why.'
    harness.deploy(example("car", "By the new version."))
    assert harness.send("yes", task_id=asked.task.id).text("answer") == "By the new version."


def example(thing: str, says: str = "Ordered.") -> A2AAgent:
    """The agent of the example, with a fake model."""
    model = FakeModel(lambda turn: [("order", "c1", {"thing": thing})] if turn == 1 else [says])
    made = run_path("examples/openai_agents_agent.py")
    shop: A2AAgent = made["make_shop"](model)
    return shop


def test_the_test_of_a_new_project_passes() -> None:
    run_example("openai_agents_agent.py")


def test_a_denied_call_is_not_executed_though_ids_and_arguments_repeat() -> None:
    bought: list[str] = []
    heard: list[Any] = []

    @function_tool(needs_approval=True)
    async def buy() -> str:
        """Buys."""
        bought.append("bought")
        return "bought"

    turns: Any = [("buy", "c1", {}), ("buy", "c1", {})], [("buy", "c1", {})], ["Done."]
    harness = harness_of(*turns, tools=[buy], heard=heard)
    reply = harness.send("buy")
    for answer in ("yes", "no, too much", "no"):
        assert reply.said == "May I call buy({})? Answer yes, or no and why.", reply.error
        reply = harness.send(answer, task_id=reply.task.id)
    assert (reply.text("answer"), bought) == ("Done.", ["bought"])
    outputs = [item["output"] for item in heard[-1] if item.get("type") == "function_call_output"]
    assert outputs == ["bought", "too much", "Tool execution was not approved."]


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        *((answer, "bought") for answer in ("Yes, please.", "accept", "approve", "ok", {"approved": True}, True)),
        *((answer, "too dear") for answer in ("no: too dear", {"approved": False, "message": "too dear"})),
        ({"approved": False, "reason": "too dear"}, "too dear"),
    ],
)
def test_an_approval_may_have_any_words_and_an_answer_that_cannot_be_read_is_asked_for_again(
    answer: Any, output: str
) -> None:
    heard: list[Any] = []

    @function_tool(needs_approval=True)
    def buy() -> str:
        """Buys."""
        return "bought"

    harness = harness_of([("buy", "c1", {})], ["Done."], tools=[buy], heard=heard)
    asked = harness.send("buy")
    unreadable: list[tuple[Any, str]] = [
        ("yess", "It does not begin with a yes or a no."),
        ("edit {}", "The decision 'edit' is not possible here."),
        ({"approved": True, "price": 3}, "I do not know what to do with the members approved, price of the object."),
    ]
    for unread, reason in unreadable:
        reply = harness.send(unread, task_id=asked.task.id)
        assert reply.said.startswith(f"I cannot read the answer: {reason}")
        assert reply.said.endswith(asked.said)
    assert harness.send(answer, task_id=asked.task.id).text("answer") == "Done."
    assert heard[-1][-1]["output"] == output


def test_texts_of_inner_agents_are_not_the_answer_and_their_calls_are_steps() -> None:
    paid: list[str] = []

    def model(name: str, *said: Iterable[Any]) -> FakeModel:
        def say(turn: int) -> Iterable[Any]:
            paid.append(name)
            return said[turn - 1]

        return FakeModel(say)

    @function_tool
    async def delegate() -> str:
        """Delegates by the SDK's own runner."""
        inner = Agent("inner", model=model("inner", ["from inside"]))
        first = (await Runner.run(inner, "go")).final_output
        streamed = Runner.run_streamed(Agent("streamed", model=model("streamed", ["streamed"])), "go")
        async for _ in streamed.stream_events():
            pass
        answer = await current_task().ask("Well?")
        return f"{first} {streamed.final_output} {answer.text()}"

    events: list[Any] = []
    helper = Agent("helper", model=model("helper", ["helped"]))
    tools = [delegate, helper.as_tool("help", "Helps.", on_stream=events.append)]
    outer = model("outer", ["Wait.", ("help", "c0", {"input": "a"})], [("delegate", "c1", {})], ["The answer."])
    harness = AgentTestHarness(agent(Agent("outer", model=outer, tools=tools), id="outer", description="x"))
    asked = harness.send("go")
    assert asked.said == "Well?", asked.error
    reply = harness.send("!", task_id=asked.task.id)
    assert (reply.error, reply.text("answer")) == (None, "The answer.")
    assert paid == ["outer", "helper", "outer", "inner", "streamed", "outer"]
    assert used_by(reply.task)["requests"] == 6
    assert events


def test_an_approval_of_an_agent_that_a_tool_runs_is_in_the_result_as_without_us() -> None:
    @function_tool(needs_approval=True)
    async def buy() -> str:
        """Buys."""
        return "bought"

    @function_tool
    async def delegate() -> str:
        """Delegates."""
        inner = Agent("inner", model=FakeModel(lambda _: [("buy", "c1", {})]), tools=[buy])
        return f"waits for {[one.name for one in (await Runner.run(inner, 'go')).interruptions]}"

    heard: list[Any] = []
    reply = harness_of([("delegate", "c1", {})], ["Done."], tools=[delegate], heard=heard).send("go")
    assert (reply.text("answer"), heard[-1][-1]["output"]) == ("Done.", "waits for ['buy']")


def test_the_model_calls_of_agents_inside_are_in_the_budget() -> None:
    inner = Agent("inner", model=FakeModel(lambda _: ["Never enough."]))
    tools = [inner.as_tool("inner", "Says.")]
    harness = harness_of([("inner", "c1", {"input": "a"})], ["Never."], tools=tools, budget=Budget(tokens=16))
    reply = harness.send("go")
    assert (reply.state, type(reply.error), used_by(reply.task)["requests"]) == ("failed", BudgetExceeded, 2)


def test_a_tool_that_raises_tells_the_model() -> None:
    @function_tool
    def divide() -> float:
        """Divides."""
        return 1 / 0

    reply = harness_of([("divide", "c1", {})], ["It failed."], tools=[divide]).send("divide")
    assert (reply.state, reply.text("answer")) == ("completed", "It failed.")


def test_the_items_of_a_task_with_a_question_are_the_history_of_the_next_one() -> None:
    heard: list[Any] = []

    @function_tool(needs_approval=True)
    async def check() -> str:
        """Checks."""
        return "checked"

    harness = harness_of([("check", "c1", {})], ["Yes."], tools=[check], heard=heard, input_modes=("*/*",))
    asked = harness.send([Part(text="Look"), Part(raw="iVBOR0==", media_type="image/png")])
    assert asked.said.startswith("May I call check"), asked.error
    harness.send("yes", task_id=asked.task.id)
    harness.send("And?", context_id=asked.task.context_id)
    kinds = [[item.get("type") or [one["type"] for one in item["content"]] for item in items] for items in heard]
    assert kinds[:2] == [
        [["input_text", "input_image"]],
        [["input_text", "input_image"], "function_call", "function_call_output"],
    ]
    assert kinds[2] == [
        ["input_text", "input_text"],
        "function_call",
        "function_call_output",
        "message",
        ["input_text"],
    ]
    assert heard[2][0]["content"][1]["text"] == "[image]"


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
    wrapped = Agent("caller", model=model, tools=[call_agent("echo", description="Repeats.")])
    harness = AgentTestHarness(agent(wrapped, id="caller", description="Calls."), echo)
    reply = harness.send("call")
    assert reply.text("answer") == "Both."
    assert sorted(entry.agent for entry in harness.tasks(reply.task.context_id)) == ["caller", "echo", "echo"]
    own = [end - began for task_id, began, end in harness.runs if task_id == reply.task.id]
    assert sum(own) < 60_000, "nothing runs here while the other agents work"


def test_a_run_in_a_function_of_ones_own_gives_the_result_in_each_run_of_the_task() -> None:
    paid: list[int] = []

    def say(turn: int) -> Iterable[Any]:
        paid.append(turn)
        return ["a", "b"]

    @plain(id="clerk", name="Clerk", description="Writes.", skills=[])
    async def clerk(task: TaskContext) -> str:
        result = await run(Agent("writer", model=FakeModel(say)), task.text(), stream=False, max_turns=1)
        again = await run(result.last_agent, result.to_input_list(), stream=False)
        return f"{result.final_output}{again.final_output} {(await task.ask('Well?')).text()}"

    harness = AgentTestHarness(clerk)
    asked = harness.send("go")
    reply = harness.send("!", task_id=asked.task.id)
    assert (reply.said, reply.artifacts, paid) == ("abab !", {}, [1, 1])


def test_outside_of_a_task_the_runner_is_the_framework_s_own() -> None:
    config = RunConfig(tracing_disabled=True, model=FakeModel(lambda _: ["Hello."]))

    async def stream() -> str:
        result = Runner.run_streamed(Agent("plain"), "go", run_config=config)
        return "".join([str(event.data.delta) async for event in result.stream_events() if is_text(event)])

    def is_text(event: Any) -> bool:
        return bool(getattr(getattr(event, "data", None), "type", "") == "response.output_text.delta")

    assert asyncio.run(Runner.run(Agent("plain"), "go", run_config=config)).final_output == "Hello."
    assert asyncio.run(stream()) == "Hello."


@pytest.mark.enable_socket
def test_a_client_whose_connections_stay_open_works_in_the_next_task_of_the_process() -> None:
    def make(url: str) -> A2AAgent:
        model = OpenAIResponsesModel("gpt-test", AsyncOpenAI(base_url=url, api_key="none"))
        return agent(Agent("warm", model=model), id="warm", description="Says.")

    assert_two_tasks_end_well(make)


@pytest.mark.parametrize("name", page_tests("openai-agents.md"))
def test_each_example_of_the_page_passes(name: str) -> None:
    names_of("openai-agents.md")[name]()
