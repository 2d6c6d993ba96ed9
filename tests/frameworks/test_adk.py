"""Agents of Google's ADK through the framework's own runner, with a fake model."""

from __future__ import annotations

import asyncio
from runpy import run_path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("google.adk", reason="Google's ADK is not installed here: make frameworks")

from google.adk.agents import BaseAgent, LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.models import BaseLlm, Gemini, LlmResponse
from google.adk.tools import AgentTool, FunctionTool, LongRunningFunctionTool, ToolContext, exit_loop
from google.adk.tools._request_input_tool import request_input
from google.genai import Client, types

from a2a_serverless import Budget, BudgetExceeded, Part, Task, TaskContext
from a2a_serverless import agent as plain
from a2a_serverless.agent_loader import by_id
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.adk import agent, call_agent
from tests.frameworks.kills import Ledger, Played, Scenario, assert_one_answer, kill_at_random, kill_everywhere
from tests.frameworks.observed import Chunk, chunks_of
from tests.frameworks.pages import names_of, page_tests, run_example
from tests.frameworks.purchases import SEEDS, Purchase, assert_no_death_pays_twice, assert_no_deaths_pay_twice, step_of
from tests.frameworks.warm import assert_two_tasks_end_well

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from google.adk.models import LlmRequest

    from a2a_serverless import Agent as A2AAgent

pytestmark = [
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
    pytest.mark.filterwarnings("ignore:(Sequential|Parallel|Loop)Agent is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning"),  # AgentTool
    pytest.mark.filterwarnings("ignore:A test tried to use socket.socket:UserWarning"),  # the framework asks for IPv6
]


class FakeModel(BaseLlm):
    """Says what ``turns`` returns for the number of its turn: pieces of text, and tool calls as (name, id, input)."""

    model: str = "fake"
    turns: Any
    pause_s: float = 0

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002 - the framework's
    ) -> AsyncIterator[LlmResponse]:
        parts = []
        for said in self.turns(1 + sum(content.role == "model" for content in llm_request.contents)):
            await asyncio.sleep(self.pause_s)
            parts.append(part_of(said))
            if stream and isinstance(said, str):
                yield LlmResponse(content=types.Content(role="model", parts=[parts[-1]]), partial=True)
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=5, candidates_token_count=3, cached_content_token_count=2, thoughts_token_count=1
        )
        yield LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=usage)


def part_of(said: Any) -> types.Part:
    if isinstance(said, str):
        return types.Part(text=said)
    if isinstance(said, types.Part):
        return said
    name, call_id, given = said
    return types.Part(function_call=types.FunctionCall(name=name, id=call_id, args=given))


def model_of(*turns: Iterable[Any], pause_s: float = 0) -> FakeModel:
    """A model that says in each turn what is given."""
    return FakeModel(turns=lambda turn: turns[min(turn, len(turns)) - 1], pause_s=pause_s)


def llm(name: str, *turns: Iterable[Any], tools: Sequence[Any] = (), **options: Any) -> LlmAgent:
    return LlmAgent(name=name, model=model_of(*turns), tools=[*tools], **options)


def harness_of(root: Any, *others: A2AAgent, **options: Any) -> AgentTestHarness:
    return AgentTestHarness(agent(root, id="fake", description="Says what it is told.", **options), *others)


def shopper(ledger: Ledger, seed: int) -> A2AAgent:
    """Calls tools in parallel, of which one raises and one needs an approval; then it answers in words."""
    purchase = Purchase(ledger, seed)

    async def look(price: int, tool_context: ToolContext) -> str:
        """Looks."""
        tool_context.state[f"looked {price}"] = True
        return await purchase.look(price)

    def stumble() -> str:
        """Stumbles."""
        return purchase.stumble()

    async def buy(price: int) -> str:
        """Buys."""
        return purchase.buy(price)

    def say_error(tool: Any, args: Any, tool_context: Any, error: Exception) -> dict[str, str]:  # noqa: ARG001 - the framework names them
        return {"error": str(error)}

    root = LlmAgent(
        name="shop",
        model=FakeModel(turns=purchase.turns, pause_s=purchase.pause_s),
        tools=[look, stumble, FunctionTool(buy, require_confirmation=True)],
        on_tool_error_callback=say_error,
    )
    return agent(root, id="shop", description="Buys the most expensive thing.")


def assert_whole(played: Played) -> None:
    """The answer is the text of the last response that was stored, and nothing else."""
    assert_one_answer(played)
    (response,) = played.steps["shop: model#2"].value
    assert played.answer() == "".join(part.get("text", "") for part in response["content"]["parts"])
    assert {"buy-1", "stumble-1", "look-0"} <= set(played.ledger.paid)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_death_at_any_call_pays_nothing_twice_and_leaves_one_whole_answer(seed: int) -> None:
    assert_no_death_pays_twice(shopper, assert_whole, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_or_three_deaths_pay_no_call_of_the_model_twice(seed: int) -> None:
    assert_no_deaths_pay_twice(shopper, assert_whole, seed)


def test_the_agent_has_what_a_card_needs() -> None:
    assert by_id((agent(llm("shop", ["Yes."], description="Sells."), id="shop"),))


def test_text_is_streamed_as_chunks_of_the_answer_and_usage_is_counted_by_model() -> None:
    def look(word: str) -> str:
        """Looks."""
        return word.upper()

    calls = [("look", None, {"word": "cat"}), ("look", None, {"word": "dog"})]
    root = LlmAgent(name="eye", model=model_of(["I look.", *calls], ["It ", "is ", "CAT."], pause_s=1), tools=[look])
    harness = harness_of(root)
    reply = harness.send("go")
    assert reply.text("answer") == "It is CAT."
    assert chunks_of(harness, reply.task.id) == [
        Chunk("I look.", append=False, last=False),
        Chunk("It ", append=False, last=False),
        Chunk("is CAT.", append=True, last=True),
    ]
    assert (reply.task.metadata or {})["a2a-serverless/usage"] == {
        "fake": {"requests": 2, "input_tokens": 6, "output_tokens": 8, "cache_read_tokens": 4}
    }


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ("yes", "{'result': 'bought'}"),
        ("Accept!", "{'result': 'bought'}"),
        ("no", "{'error': 'This tool call is rejected.'}"),
        ({"approved": True}, "{'result': 'bought'}"),
        ({"approved": False, "reason": "dear"}, "{'error': 'This tool call is rejected.', 'reason': 'dear'}"),
        ({"confirmed": True, "hint": "May I?", "payload": None}, "{'result': 'bought'}"),
        (True, "{'result': 'bought'}"),
    ],
)
def test_a_tool_that_needs_a_confirmation_asks_the_client_until_the_answer_can_be_read(
    answer: Any, result: str
) -> None:
    def buy(price: int) -> str:  # noqa: ARG001 - its model names it
        """Buys."""
        return "bought"

    def turns(request: LlmRequest) -> Iterable[Any]:
        response = request.contents[-1].parts[-1].function_response
        return [str(response.response)] if response else [("buy", "c1", {"price": 9})]

    harness = harness_of(asking(turns, FunctionTool(buy, require_confirmation=True)))
    asked = harness.send("buy")
    assert (asked.state, asked.said) == ("input-required", 'May I call buy({"price": 9})? Answer yes, or no and why.')
    unreadable: list[tuple[Any, str]] = [
        ("yess", "It does not begin with a yes or a no."),
        ({"approved": "yes"}, 'It is an object without a decision, such as {"approved": true}.'),
        ({"payload": {"price": 8}}, 'It is an object without a decision, such as {"approved": true}.'),
    ]
    for unread, reason in unreadable:
        reply = harness.send(unread, task_id=asked.task.id)
        assert reply.said.startswith(f"I cannot read the answer: {reason}")
        assert reply.said.endswith(asked.said)
    assert harness.send(answer, task_id=asked.task.id).text("answer") == result


def asking(turns: Callable[[LlmRequest], Iterable[Any]], *tools: Any, **options: Any) -> LlmAgent:
    """An agent whose model says what ``turns`` returns for its request."""

    class Requested(FakeModel):
        async def generate_content_async(
            self,
            llm_request: LlmRequest,
            stream: bool = False,  # noqa: ARG002, FBT001, FBT002 - the framework's
        ) -> AsyncIterator[LlmResponse]:
            parts = [part_of(said) for said in turns(llm_request)]
            yield LlmResponse(content=types.Content(role="model", parts=parts))

    return LlmAgent(name="asks", model=Requested(turns=None), tools=[*tools], **options)


def last_response(request: LlmRequest) -> Any:
    """The newest result of a tool in the request, or None."""
    responses = [part.function_response for content in request.contents for part in content.parts]
    return next((response.response for response in reversed(responses) if response), None)


@pytest.mark.parametrize("first", [{"status": "pending"}, None])
def test_the_result_of_a_long_running_tool_comes_from_the_client(first: Any) -> None:
    sent: list[str] = []

    def refund(number: int) -> dict[str, str] | None:
        """Refunds."""
        sent.append(f"refund {number}")
        return first

    def turns(request: LlmRequest) -> Iterable[Any]:
        result = last_response(request)
        return [f"It is {result['status']}."] if result else [("refund", "c1", {"number": 7})]

    harness = harness_of(asking(turns, LongRunningFunctionTool(refund)))
    asked = harness.send("refund")
    assert (asked.state, asked.said) == ("input-required", 'What is the result of refund({"number": 7})?')
    assert harness.send({"status": "done"}, task_id=asked.task.id).text("answer") == "It is done."
    assert sent == ["refund 7"]


def test_a_request_for_input_is_a_question() -> None:
    def turns(request: LlmRequest) -> Iterable[Any]:
        result = last_response(request)
        return [result["result"]] if result else [("adk_request_input", "c1", {"message": "Which size?"})]

    harness = harness_of(asking(turns, request_input))
    asked = harness.send("order")
    assert asked.said == "Which size?"
    assert harness.send("XL", task_id=asked.task.id).text("answer") == "XL"


def test_a_denied_tool_is_not_executed_though_ids_and_questions_repeat() -> None:
    bought: list[str | None] = []

    def buy(tool_context: ToolContext) -> str:
        """Buys."""
        bought.append(tool_context.function_call_id)
        return "bought"

    calls: list[list[Any]] = [[("buy", "c1", {}), ("buy", "c2", {})], [("buy", "c3", {})], ["Done."]]
    harness = harness_of(llm("shop", *calls, tools=[FunctionTool(buy, require_confirmation=True)]))
    reply = harness.send("buy")
    for answer in ("yes", "no", "no"):
        assert reply.said == "May I call buy({})? Answer yes, or no and why."
        reply = harness.send(answer, task_id=reply.task.id)
    assert (reply.text("answer"), bought) == ("Done.", ["c1"])


def test_a_question_is_answered_after_a_deployment() -> None:
    harness = AgentTestHarness(example("car"))
    asked = harness.send("a car")
    assert asked.said == 'May I call order({"thing": "car"})? Answer yes, or no and why.'
    harness.deploy(example("car", "By the new version."))
    assert harness.send("yes", task_id=asked.task.id).text("answer") == "By the new version."


def example(thing: str, says: str = "Ordered.") -> A2AAgent:
    """The agent of the example, with a fake model."""
    made = run_path("examples/adk_agent.py")
    shop: A2AAgent = made["make_shop"](model_of([("order", "c1", {"thing": thing})], [says]))
    return shop


def test_the_test_of_a_new_project_passes() -> None:
    run_example("adk_agent.py")


def test_an_agent_to_which_the_conversation_is_transferred_asks_answers_and_hears_the_next_message() -> None:
    def buy() -> str:
        """Buys."""
        return "bought"

    tool = FunctionTool(buy, require_confirmation=True)
    seller = llm("seller", [("buy", "c1", {})], ["It is bought."], ["Again."], tools=[tool], description="Sells.")
    seller.model = FakeModel(turns=lambda turn: {1: [("buy", "c1", {})], 2: ["It is bought."]}.get(turn, ["Again."]))
    root = llm("root", [("transfer_to_agent", "t1", {"agent_name": "seller"})], sub_agents=[seller])
    harness = harness_of(root)
    asked = harness.send("buy")
    assert asked.said == "May I call buy({})? Answer yes, or no and why."
    reply = harness.send("yes", task_id=asked.task.id)
    assert reply.text("answer") == "It is bought."
    assert harness.send("And?", context_id=reply.task.context_id).text("answer") == "Again."


def test_model_calls_of_an_agent_as_a_tool_are_steps_and_are_counted_and_its_text_is_not_the_answer() -> None:
    paid: list[str] = []

    def look() -> str:
        """Looks."""
        paid.append("look")
        return "seen"

    def turns(turn: int) -> Iterable[Any]:
        paid.append(f"inner {turn}")
        return [("look", "c1", {})] if turn == 1 else ["from the inner agent"]

    inner = LlmAgent(name="inner", description="Looks.", model=FakeModel(turns=turns), tools=[look])
    calls = [("inner", "t1", {"request": "a"}), ("inner", "t2", {"request": "b"})]
    check = LongRunningFunctionTool(func=checked)
    harness = harness_of(llm("root", calls, [("checked", "c9", {})], ["The answer."], tools=[AgentTool(inner), check]))
    asked = harness.send("go")
    assert asked.said == "What is the result of checked({})?"
    reply = harness.send("good", task_id=asked.task.id)
    assert (reply.error, reply.text("answer")) == (None, "The answer.")
    assert sorted(paid) == ["inner 1", "inner 1", "inner 2", "inner 2", "look", "look"]
    assert (reply.task.metadata or {})["a2a-serverless/usage"]["fake"]["requests"] == 7


def checked() -> None:
    """Checks."""


def team(ledger: Ledger) -> A2AAgent:
    """Two agents at once, then a loop with a tool that ends it, then an agent that hears what they have written."""

    def writer(name: str, pause_s: float, instruction: str = "") -> LlmAgent:
        def turns(_: int) -> Iterable[Any]:
            return [f"{name} {ledger.pay(f'{name}: model')}"]

        model = FakeModel(turns=turns, pause_s=pause_s)
        return LlmAgent(name=name, model=model, output_key=name, instruction=instruction)

    def reviews(request: LlmRequest) -> Iterable[Any]:
        return [("exit_loop", "e1", {})] if "draft" in request.config.system_instruction else ["no"]

    reviewer = asking(reviews, exit_loop, instruction="{draft?}")
    parallel = ParallelAgent(name="pair", sub_agents=[writer("slow", 0.4), writer("quick", 0.1)])
    loop = LoopAgent(name="loop", sub_agents=[writer("draft", 0), reviewer], max_iterations=3)
    sequence = SequentialAgent(name="team", sub_agents=[parallel, loop, writer("last", 0, "{slow} {quick} {draft}")])
    return agent(sequence, id="team", description="Works together.")


def test_a_death_at_any_call_of_a_team_pays_no_response_twice() -> None:
    def check(played: Played) -> None:
        assert_one_answer(played)
        texts = {artifact.name: artifact.text() for artifact in played.task.artifacts}
        assert {name: text.split()[0] for name, text in texts.items()} == {
            "slow": "slow",
            "quick": "quick",
            "answer": "last",
        }

    report = kill_everywhere(Scenario(team, lambda what: what), check)
    print(f"{report.kills.total()} kills, {len(report.wrong)} wrong")
    assert not report.wrong


def chief(ledger: Ledger) -> A2AAgent:
    """Delegates to an agent as a tool, which has a tool; then asks its client."""

    def paid(name: str, *turns: Iterable[Any]) -> FakeModel:
        def turns_of(turn: int) -> Iterable[Any]:
            ledger.pay(f"{name}: model" if turn == 1 else f"{name}: model#{turn}")
            return turns[turn - 1]

        return FakeModel(turns=turns_of)

    def look() -> str:
        """Looks."""
        ledger.pay("look:l1")
        return "seen"

    def buy() -> str:
        """Buys."""
        ledger.pay("buy:b1")
        return "bought"

    inner = LlmAgent(
        name="inner", description="Looks.", model=paid("inner", [("look", "l1", {})], ["Seen."]), tools=[look]
    )
    calls: list[list[Any]] = [[("inner", "t1", {"request": "a"})], [("buy", "b1", {})], ["Bought."]]
    root = LlmAgent(
        name="root", model=paid("root", *calls), tools=[AgentTool(inner), FunctionTool(buy, require_confirmation=True)]
    )
    return agent(root, id="chief", description="Delegates.")


def test_a_death_at_any_call_within_an_agent_as_a_tool_pays_nothing_twice() -> None:
    def check(played: Played) -> None:
        assert_one_answer(played)
        assert played.answer() == "Bought."

    report = kill_everywhere(Scenario(chief, lambda what: what, ["yes"]), check)
    print(f"{report.kills.total()} kills, {len(report.wrong)} wrong")
    assert not report.wrong


def delegating(ledger: Ledger, way: str) -> LlmAgent:
    """An agent with another one inside, which needs a confirmation for its tool."""

    def buy() -> str:
        """Buys."""
        ledger.pay("buy:b1")
        return "bought"

    async def ask(tool_context: ToolContext) -> str:
        """Asks by itself, and buys."""
        if not tool_context.tool_confirmation:
            tool_context.request_confirmation(hint="Really?")
            return "asked"
        return buy()

    def turns(request: LlmRequest) -> Iterable[Any]:
        result = last_response(request)
        return [str(result)] if result else [("ask" if way == "asks" else "buy", "b1", {})]

    mode: Any = {"mode": "single_turn"} if way == "single_turn" else {}
    inner = asking(turns, ask if way == "asks" else FunctionTool(buy, require_confirmation=True), **mode)
    calls: list[list[Any]] = [[("asks", "t1", {"request": "a"})], ["Done."]]
    if way == "single_turn":
        return llm("root", *calls, sub_agents=[inner])
    return llm("root", *calls, tools=[AgentTool(inner, include_plugins=way != "alone")])


@pytest.mark.parametrize(
    ("way", "question"),
    [
        ("tool", "May I call buy({})? Answer yes, or no and why."),
        ("asks", "Really? May I call ask({})? Answer yes, or no and why."),
        ("single_turn", "May I call buy({})? Answer yes, or no and why."),
    ],
)
def test_a_confirmation_of_an_agent_inside_reaches_the_client_and_the_tool_is_called_once(
    way: str, question: str
) -> None:
    ledger = Ledger(step_of)
    harness = harness_of(delegating(ledger, way))
    for answer, paid in (("yes", ["buy:b1"]), ("no", ["buy:b1"] if way != "asks" else ["buy:b1", "buy:b1"])):
        asked = harness.send("go")
        assert (asked.error, asked.said) == (None, question)
        reply = harness.send(answer, task_id=asked.task.id)
        assert (reply.error, reply.text("answer"), ledger.paid) == (None, "Done.", paid)


@pytest.mark.parametrize("way", ["tool", "single_turn"])
def test_deaths_around_a_confirmation_inside_pay_nothing_twice(way: str) -> None:
    def check(played: Played) -> None:
        assert_one_answer(played)
        assert (played.answer(), {*played.ledger.paid}) == ("Done.", {"buy:b1"})

    def make(ledger: Ledger) -> A2AAgent:
        return agent(delegating(ledger, way), id="root", description="Delegates.")

    assert not kill_at_random(Scenario(make, lambda what: what, ["yes"]), check, seed=1).wrong


def test_an_agent_as_a_tool_without_plugins_is_one_step_and_its_usage_and_confirmations_stay_inside() -> None:
    reply = harness_of(delegating(Ledger(step_of), "alone")).send("go")
    assert (reply.state, reply.text("answer")) == ("completed", "Done.")
    assert (reply.task.metadata or {}).get("a2a-serverless/usage", {})["fake"]["requests"] == 2


def test_the_model_calls_of_agents_inside_are_in_the_budget() -> None:
    inner = llm("inner", [("look", "l1", {})], ["Never."], tools=[look_around], description="Looks.")
    root = llm("root", [("inner", "t1", {"request": "a"})], ["Never."], tools=[AgentTool(inner)])
    reply = harness_of(root, budget=Budget(tokens=14)).send("go")
    assert (reply.state, type(reply.error)) == ("failed", BudgetExceeded)
    assert (reply.task.metadata or {})["a2a-serverless/usage"]["fake"]["requests"] == 2


def look_around() -> str:
    """Looks."""
    return "seen"


def test_two_other_agents_are_called_at_once_as_tools_while_nothing_runs_here() -> None:
    @plain(id="echo", name="Echo", description="Repeats.", skills=[])
    async def echo(task: TaskContext) -> None:
        await asyncio.sleep(600)
        await task.emit("said", task.text(), last=True)

    calls = [("call_echo", "c1", {"message": "a"}), ("call_echo", "c2", {"message": "b"})]
    harness = harness_of(llm("caller", calls, ["Both."], tools=[call_agent("echo", description="Repeats.")]), echo)
    reply = harness.send("call")
    assert reply.text("answer") == "Both."
    assert sorted(entry.agent for entry in harness.tasks(reply.task.context_id)) == ["echo", "echo", "fake"]
    own = [end - began for task_id, began, end in harness.runs if task_id == reply.task.id]
    assert sum(own) < 60_000, "nothing runs here while the other agents work"


def test_a_cancel_in_the_middle_of_a_response_leaves_a_canceled_task() -> None:
    harness = harness_of(LlmAgent(name="slow", model=model_of(["a", "b", "c", "d"], pause_s=10)))
    task = harness.begin("go")
    assert isinstance(task, Task)
    harness.at(harness.now + 25_000, lambda: harness.cancel(task.id))
    harness.settle()
    reply = harness.reply(task.id)
    assert (reply.state, reply.text("answer")) == ("canceled", "a")


def test_callbacks_of_the_author_come_around_the_stored_calls_in_each_run() -> None:
    seen: list[str] = []

    def before_tool(tool: Any, args: dict[str, Any], tool_context: ToolContext) -> dict[str, str] | None:  # noqa: ARG001 - the framework names them
        return {"result": "blocked"} if args["word"] == "secret" else None

    def after_model(callback_context: Any, llm_response: LlmResponse) -> None:  # noqa: ARG001 - the framework names them
        seen.append("response")

    def look(word: str) -> str:
        """Looks."""
        seen.append(word)
        return word

    root = llm(
        "eye",
        [("look", "c1", {"word": "secret"}), ("look", "c2", {"word": "cat"})],
        ["Seen."],
        tools=[look],
        before_tool_callback=before_tool,
        after_model_callback=after_model,
    )
    assert harness_of(root).send("look").text("answer") == "Seen."
    assert seen[:2] == ["response", "cat"]
    assert set(seen[2:]) == {"response"}


def test_a_conversation_is_the_session_with_its_state_and_the_oldest_turns_are_forgotten() -> None:
    heard: list[tuple[list[str], str]] = []

    def count(tool_context: ToolContext) -> int:
        """Counts."""
        state = tool_context.state
        state["count"] = state.get("count", 0) + 1
        state["user:first"] = state.get("user:first", state["count"])
        return int(state["count"])

    def turns(request: LlmRequest) -> Iterable[Any]:
        users = [part.text for content in request.contents for part in content.parts if content.role == "user"]
        if request.contents[-1].parts[-1].function_response:
            return ["Yes."]
        heard.append(([text for text in users if text], request.config.system_instruction))
        return [("count", None, {})]

    root = asking(turns, count, instruction="{count?} {user:first?}")
    harness = harness_of(root, history=3)
    context_id = harness.send("turn 0").task.context_id
    for turn in range(1, 6):
        assert harness.send(f"turn {turn}", context_id=context_id).state == "completed"
    assert harness.send("Who?").state == "completed"
    assert [said for said, _ in heard[:6]] == [
        [f"turn {n}" for n in range(max(0, last - 3), last + 1)] for last in range(6)
    ]
    assert ["5 1" in instruction for _, instruction in heard[5:]] == [True, False], "another conversation has none"


def test_agents_of_your_own_and_functions_that_make_an_agent_run() -> None:
    class Greeter(BaseAgent):
        async def _run_async_impl(self, ctx: Any) -> AsyncIterator[Any]:
            async for event in self.sub_agents[0].run_async(ctx):
                yield event

    assert (
        harness_of(lambda: Greeter(name="own", sub_agents=[llm("a", ["Hello."])])).send("hi").text("answer") == "Hello."
    )


def test_a_file_of_the_client_is_an_input_and_only_its_kind_is_in_the_session() -> None:
    heard: list[list[str | None]] = []

    def turns(request: LlmRequest) -> Iterable[Any]:
        parts = [part for content in request.contents for part in content.parts if content.role == "user"]
        heard.append([part.text or part.inline_data.mime_type for part in parts])
        return ["Seen."]

    harness = harness_of(asking(turns), input_modes=("*/*",))
    reply = harness.send([Part(text="Look"), Part(raw="iVBOR0==", media_type="image/png"), Part(data={"a": 1})])
    harness.send("And?", context_id=reply.task.context_id)
    assert heard == [["Look", "image/png", '{"a": 1}'], ["Look", "[image/png]", '{"a": 1}', "And?"]]


@pytest.mark.enable_socket
def test_a_client_whose_connections_stay_open_works_in_the_next_task_of_the_process() -> None:
    def make(url: str) -> A2AAgent:
        model = Gemini(model="gemini-test")
        options = types.HttpOptions(base_url=url.removesuffix("/v1"))
        model.api_client = Client(api_key="none", http_options=options)
        return agent(LlmAgent(name="warm", model=model), id="warm")

    assert_two_tasks_end_well(make)


@pytest.mark.parametrize("name", page_tests("adk.md"))
def test_each_example_of_the_page_passes(name: str) -> None:
    names_of("adk.md")[name]()
