"""What a client, a model, a tool and a tracer get of an agent of the OpenAI Agents SDK."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

pytest.importorskip("agents", reason="The OpenAI Agents SDK is not installed here: make frameworks")

from agents import (
    Agent,
    FunctionTool,
    GuardrailFunctionOutput,
    ModelSettings,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    ToolOutputImage,
    WebSearchTool,
    add_trace_processor,
    function_tool,
    handoff,
    input_guardrail,
    output_guardrail,
    set_trace_processors,
)
from agents.mcp import MCPServer
from agents.tool import LocalShellTool
from agents.tracing import TracingProcessor
from mcp.types import CallToolResult, TextContent
from mcp.types import Tool as MCPTool
from openai import AsyncOpenAI
from pydantic import BaseModel

from a2a_serverless import Budget, BudgetExceeded, Part, Skill, TaskContext, current_task
from a2a_serverless import agent as plain
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.openai_agents import agent, call_agent, run
from tests.foreign.model_server import END, ModelRequest, Said, ToolCall, model_server
from tests.frameworks.observed import chunks_of, names_of_spans
from tests.frameworks.test_openai_agents import FakeModel, harness_of, used_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def talker(*turns: Iterable[Any], heard: list[Any] | None = None, **options: Any) -> Agent[Any]:
    """An agent whose model says in each turn what is given."""
    name = options.pop("name", "talker")
    return Agent(name, model=FakeModel(lambda turn: turns[min(turn, len(turns)) - 1], heard=heard), **options)


def harness(wrapped: Agent[Any], **options: Any) -> AgentTestHarness:
    return AgentTestHarness(agent(wrapped, id="talker", description="Talks.", **options))


@function_tool
def look() -> str:
    """Looks."""
    return "seen"


# ---- The card


def test_the_card_has_what_is_given_or_else_what_the_agent_the_id_and_the_description_say() -> None:
    made = agent(Agent("Shop"), id="shop", description="Sells.")
    assert (made.id, made.name, made.description, made.streaming) == ("shop", "Shop", "Sells.", True)
    assert made.skills == (Skill("shop", "Shop", "Sells.", ("shop",)),)
    named = agent(Agent("S"), id="shop", name="Shop", description="Sells.", version="2.0.0", streaming=False)
    assert (named.id, named.name, named.version, named.streaming) == ("shop", "Shop", "2.0.0", False)
    skills = [Skill("sell", "Sell", "Sells.", ("shop",))]
    assert agent(Agent("S"), id="shop", description="Sells.", skills=skills).skills == tuple(skills)


# ---- The answer


def test_the_last_response_replaces_the_one_before_and_only_its_last_chunk_is_marked() -> None:
    made = harness_of(["I ", "look.", ("look", "c1", {})], ["I ", "have ", "seen."], tools=[look], pause_s=5)
    assert chunks_of(made, made.send("go").task.id) == [
        ("I ", False, False),
        ("look.", True, False),
        ("I ", False, False),
        ("have seen.", True, True),
    ]


def test_an_agent_that_does_not_stream_emits_its_answer_once() -> None:
    made = harness_of(["Wait.", ("look", "c1", {})], ["a", "b"], tools=[look], pause_s=5, streaming=False)
    assert chunks_of(made, made.send("go").task.id) == [("ab", False, True)]


def test_the_result_of_a_tool_that_ends_the_run_is_the_answer() -> None:
    made = harness(talker(["I look.", ("look", "c1", {})], tools=[look], tool_use_behavior="stop_on_first_tool"))
    assert chunks_of(made, made.send("go").task.id) == [("I look.", False, False), ("seen", False, True)]


class Offer(BaseModel):
    """A thing."""

    thing: str


def test_structured_output_is_one_data_part_and_its_json_is_not_streamed() -> None:
    made = harness(talker(['{"thing":', '"coat"}'], output_type=Offer))
    assert chunks_of(made, made.send("go").task.id) == [({"thing": "coat"}, False, True)]


# ---- What the model gets


@pytest.mark.parametrize(
    ("part", "content"),
    [
        (Part(text="a"), {"type": "input_text", "text": "a"}),
        (Part(data={"größe": 1}), {"type": "input_text", "text": '{"größe": 1}'}),
        (Part(raw="YQ==", media_type="text/plain"), {"type": "input_text", "text": "a"}),
        (
            Part(raw="Li4u", media_type="image/png"),
            {"type": "input_image", "image_url": "data:image/png;base64,Li4u", "detail": "auto"},
        ),
        (
            Part(raw="Li4u", media_type="application/pdf", filename="a.pdf"),
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,Li4u"},
        ),
        (
            Part(raw="/w=="),
            {"type": "input_file", "filename": "file", "file_data": "data:application/octet-stream;base64,/w=="},
        ),
    ],
)
def test_each_part_of_the_message_is_a_content(part: Part, content: Any) -> None:
    heard: list[Any] = []
    assert harness(talker(["Yes."], heard=heard), input_modes=("*/*",)).send([part]).state == "completed"
    assert heard == [[{"role": "user", "content": [content]}]]


def test_of_files_the_history_has_the_kinds() -> None:
    heard: list[Any] = []
    made = harness(talker(["Yes."], heard=heard), input_modes=("*/*",))
    files = [
        Part(raw="Li4u", media_type="image/png"),
        Part(raw="Li4u", media_type="application/pdf"),
        Part(text="Look"),
    ]
    made.send("And?", context_id=made.send(files).task.context_id)
    assert [one["text"] for one in heard[1][0]["content"]] == ["[image]", "[file]", "Look"]
    assert [item.get("role") for item in heard[1]] == ["user", "assistant", "user"]


def test_an_agent_without_history_gets_the_message_only() -> None:
    heard: list[Any] = []
    made = harness(talker(["Yes."], heard=heard), history=0)
    made.send("b", context_id=made.send("a").task.context_id)
    assert [len(items) for items in heard] == [1, 1]


def test_ids_of_tool_calls_may_repeat_or_be_empty_also_in_the_next_task() -> None:
    rolled: list[str] = []
    heard: list[Any] = []

    @function_tool
    def roll() -> str:
        """Rolls."""
        rolled.append(str(len(rolled) + 1))
        return rolled[-1]

    turns: Any = [("roll", "c1", {}), ("roll", "c1", {})], [("roll", "c1", {}), ("roll", "", {})], ["Done."]
    made = harness(talker(*turns, tools=[roll], heard=heard))
    reply = made.send("go")
    assert (reply.error, reply.text("answer")) == (None, "Done.")
    assert made.send("go", context_id=reply.task.context_id).text("answer") == "Done."
    outputs = [(item["call_id"], item["output"]) for item in heard[-1] if item.get("type") == "function_call_output"]
    assert len(dict(outputs)) == 8
    assert [output for _, output in outputs] == rolled == [str(number) for number in range(1, 9)]


def test_results_of_tools_are_to_the_model_what_they_are_without_us_also_in_a_later_run() -> None:
    heard: list[Any] = []

    class Thing:
        def __str__(self) -> str:
            return "a thing"

    results = [ToolOutputImage(image_url="data:image/png;base64,Li4u"), Thing(), {"n": 1}, 2, Offer(thing="car")]

    @function_tool
    def draw(number: int) -> Any:
        """Draws."""
        return results[number]

    @function_tool(needs_approval=True)
    def check() -> str:
        """Checks."""
        return "checked"

    calls = [("draw", f"c{number}", {"number": number}) for number in range(len(results))]
    made = harness(talker(calls, [("check", "d", {})], ["Done."], tools=[draw, check], heard=heard))
    asked = made.send("go")
    assert made.send("yes", task_id=asked.task.id).text("answer") == "Done."
    ours = [item["output"] for item in heard[2] if item.get("type") == "function_call_output"][:-1]
    theirs = asyncio.run(
        Runner.run(talker(calls, ["Done."], tools=[draw]), "go", run_config=RunConfig(tracing_disabled=True))
    )
    assert ours == [item["output"] for item in theirs.to_input_list() if item.get("type") == "function_call_output"]
    assert len(heard) == 3, "the first two responses were read back"


# ---- Questions


def test_a_question_has_the_call_and_data_answers_it() -> None:
    heard: list[Any] = []

    @function_tool(needs_approval=True)
    def buy(thing: str) -> str:
        """Buys."""
        return f"bought {thing}"

    made = harness(talker([("buy", "c1", {"thing": "größe"})], ["Done."], tools=[buy], heard=heard))
    asked = made.send("go")
    question = asked.task.status.message
    assert question
    data = {"kind": "approval", "tool": "buy", "tool_call_id": "c1", "arguments": {"thing": "größe"}}
    assert (asked.said, question.data()) == ('May I call buy({"thing": "größe"})? Answer yes, or no and why.', data)
    assert question.metadata == {"kind": "approval"}
    made.send({"approved": False, "message": "too big"}, task_id=asked.task.id)
    assert heard[1][-1]["output"] == "too big"


def test_arguments_that_are_no_json_are_asked_about_and_the_tool_tells_the_model() -> None:
    heard: list[Any] = []

    @function_tool(needs_approval=True)
    def buy(thing: str) -> str:
        """Buys."""
        return f"bought {thing}"

    made = harness(talker([("buy", "c1", '{"thing')], ["Done."], tools=[buy], heard=heard))
    asked = made.send("go")
    assert asked.said == 'May I call buy("{\\"thing")? Answer yes, or no and why.', asked.error
    assert made.send("yes", task_id=asked.task.id).text("answer") == "Done."
    assert heard[1][-1]["output"].startswith("An error occurred")


def test_a_function_decides_about_approvals_unless_the_tool_would_get_other_arguments() -> None:
    asked_about: list[Any] = []

    async def is_dear(_: Any, arguments: dict[str, Any], call_id: str) -> bool:
        asked_about.append((arguments, call_id))
        return bool(arguments["price"] > 5)

    @function_tool(needs_approval=is_dear, strict_mode=False)
    def buy(price: int, thing: str = "car") -> str:
        """Buys."""
        return f"{thing} for {price}"

    def reply_to(arguments: dict[str, Any]) -> Any:
        return harness(talker([("buy", "c1", arguments)], ["Done."], tools=[buy])).send("go")

    assert reply_to({"price": 1, "thing": "bus"}).state == "completed"
    assert reply_to({"price": 9, "thing": "bus"}).state == "input-required"
    assert reply_to({"price": "1", "thing": "bus"}).state == "input-required", "the tool gets a number"
    assert reply_to({"price": 1}).state == "input-required", "the tool gets a default"
    assert {call_id for _, call_id in asked_about} == {"c1"}


# ---- Tools and runs


def test_a_tool_that_takes_too_long_is_not_called_again_in_a_later_run() -> None:
    began: list[int] = []

    @function_tool(timeout=5)
    async def wait() -> str:
        """Waits."""
        began.append(1)
        await asyncio.sleep(50)
        return "done"

    @function_tool(needs_approval=True)
    def check() -> str:
        """Checks."""
        return "checked"

    heard: list[Any] = []
    made = harness(talker([("wait", "c1", {})], [("check", "c2", {})], ["Done."], tools=[wait, check], heard=heard))
    asked = made.send("go")
    assert made.send("yes", task_id=asked.task.id).text("answer") == "Done."
    assert len(began) == 1
    assert "timed out" in heard[1][-1]["output"]


def test_a_tool_that_calls_an_agent_has_a_name_and_a_description_and_gives_its_answer_or_its_failure() -> None:
    @plain(id="echo", name="Echo", description="Repeats.", skills=[])
    async def echo(task: TaskContext) -> str:
        if task.text() == "b":
            raise ValueError("no")
        return task.text()

    heard: list[Any] = []
    tools = [call_agent("echo", description="Repeats."), call_agent("echo", description="Again.", name="ask_echo")]
    assert [(one.name, one.description) for one in tools] == [("call_echo", "Repeats."), ("ask_echo", "Again.")]
    calls = [("ask_echo", "c1", {"message": "a"}), ("call_echo", "c2", {"message": "b"}), ("call_echo", "c3", {})]
    made = AgentTestHarness(
        agent(talker(calls, ["Done."], tools=[*tools], heard=heard), id="caller", description="Calls."), echo
    )
    assert made.send("go").text("answer") == "Done."
    outputs = [item["output"] for item in heard[1] if item.get("type") == "function_call_output"]
    assert outputs[0] == "a"
    assert all("The call has failed" in output for output in outputs[1:])


def test_tools_that_act_in_this_process_outside_of_steps_are_refused_and_those_of_the_provider_are_not() -> None:
    def execute(request: Any) -> str:
        return str(request)

    reply = harness(talker(["a"], tools=[LocalShellTool(execute)])).send("go")
    assert reply.state == "failed"
    assert harness(talker(["a"], tools=[WebSearchTool()])).send("go").text("answer") == "a"


def test_tool_calls_are_spans_of_their_tools() -> None:
    made = agent(talker([("look", "c1", {})], ["Done."], tools=[look], name="eyes"), id="eyes", description="x")
    assert names_of_spans(made) == ["step eyes: model", "execute_tool look", "step eyes: model#2"]


def test_agents_inside_get_the_configuration_of_the_run_or_their_own() -> None:
    @function_tool
    async def delegate() -> str:
        """Delegates."""
        model = FakeModel(lambda _: ["By its own model."])
        return str((await Runner.run(Agent("inner"), "go", run_config={"model": model})).final_output)

    heard: list[Any] = []
    turns: Any = [("delegate", "c1", {}), ("help", "c2", {"input": "a"})], ["By the run's model."]
    model = FakeModel(lambda turn: turns[turn - 1] if len(heard) != 2 else ["Helped."], heard=heard)
    outer = Agent("outer", tools=[delegate, Agent("helper").as_tool("help", "Helps.")])
    reply = harness(outer, options={"run_config": RunConfig(model=model)}).send("go")
    assert (reply.error, reply.text("answer")) == (None, "By the run's model.")
    outputs = [item["output"] for item in heard[2] if item.get("type") == "function_call_output"]
    assert outputs == ["By its own model.", "Helped."]


def test_an_agent_that_is_handed_over_to_in_any_way_answers() -> None:
    handed: list[str] = []

    @function_tool(needs_approval=True)
    def buy() -> str:
        """Buys."""
        return "bought"

    last = talker([], [], [], ["Bought."], name="last")
    buyer = talker(
        [], [("buy", "c1", {})], [("transfer_to_last", "c2", {})], name="buyer", tools=[buy], handoffs=[last]
    )
    first = talker(["Wait.", ("transfer_to_buyer", "c1", {})], name="first")
    first.handoffs = [handoff(buyer, on_handoff=lambda _: handed.append("buyer"))]
    last.handoffs = [first]
    made = harness(first)
    asked = made.send("go")
    assert asked.said.startswith("May I call buy"), asked.error
    reply = made.send("yes", task_id=asked.task.id)
    assert chunks_of(made, reply.task.id)[-1] == ("Bought.", False, True)
    assert used_by(reply.task)["requests"] == 4


def test_the_context_and_the_options_of_a_run_are_those_of_the_sdk() -> None:
    class User(NamedTuple):
        id: str

    async def user_of(task: TaskContext) -> User:
        return User(task.text())

    seen: list[Any] = []

    async def note(context: Any, arguments: str) -> str:
        seen.append(context.context)
        return arguments

    tool = FunctionTool("note", "Notes.", {"type": "object", "properties": {}, "additionalProperties": False}, note)
    approved = replace(tool, name="approved", needs_approval=True)
    wrapped = talker([("note", "c1", {}), ("approved", "c2", {})], ["Done."], tools=[tool, approved])
    made = harness(wrapped, context=user_of)
    asked = made.send("Ada")
    assert made.send("yes", task_id=asked.task.id).text("answer") == "Done."
    assert seen == [User("Ada"), User("Ada")]
    short = harness(wrapped, context=user_of, options={"max_turns": 1})
    assert short.send("yes", task_id=short.send("Ada").task.id).state == "failed"
    other = {"run_config": {"model": FakeModel(lambda _: ["By another model."])}}
    assert harness(wrapped, options=other).send("Ada").text("answer") == "By another model."


def test_a_spent_budget_ends_the_task_also_if_the_sdk_makes_a_text_of_its_error() -> None:
    @function_tool
    async def work() -> str:
        """Works."""
        return str(await current_task().step("work", lambda: "worked"))

    wrapped = talker([("work", "c1", {})], ["Never."], tools=[work])
    made = AgentTestHarness(agent(wrapped, id="spender", description="Spends.", budget=Budget(usd=1, steps=2)))
    reply = made.send("go")
    assert reply.state == "failed"
    assert isinstance(reply.error, BudgetExceeded)


# ---- MCP


class Counter(MCPServer):
    """A server with one tool, which counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []

    @property
    def name(self) -> str:
        return "counter"

    async def connect(self) -> None:
        self.log.append("connect")

    async def cleanup(self) -> None:
        self.log.append("cleanup")

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[MCPTool]:
        del run_context, agent
        return [MCPTool(name="count", description="Counts.", inputSchema={"type": "object", "properties": {}})]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> CallToolResult:
        del tool_name, arguments, meta
        self.log.append("call")
        return CallToolResult(content=[TextContent(type="text", text="1")])

    async def list_prompts(self) -> Any:
        raise NotImplementedError

    async def get_prompt(self, name: str, arguments: Any = None) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("connect", [True, False])
def test_a_tool_of_an_mcp_server_is_a_step_and_each_run_connects_the_server_once(connect: bool) -> None:  # noqa: FBT001
    server = Counter()

    @function_tool(needs_approval=True)
    def check() -> str:
        """Checks."""
        return "checked"

    helper = talker(["Helped."], name="helper", mcp_servers=[server])
    turns: Any = [("count", "c1", {}), ("help", "c2", {"input": "a"})], [("check", "c3", {})], ["Done."]
    tools = [check, helper.as_tool("help", "Helps.")]

    @plain(id="clerk", name="Clerk", description="Counts.", skills=[])
    async def clerk(task: TaskContext) -> str:
        wrapped = talker(*turns, tools=[*tools], mcp_servers=[server])
        return str((await run(wrapped, task.text(), connect=connect)).final_output)

    made = AgentTestHarness(clerk)
    asked = made.send("go")
    assert asked.said.startswith("May I call check"), asked.error
    assert made.send("yes", task_id=asked.task.id).said == "Done."
    connections = [entry for entry in server.log if entry != "call"]
    assert server.log.count("call") == 1
    assert connections == ["connect", "cleanup"] * (len(connections) // 2)
    assert bool(connections) is connect


# ---- Guardrails


def test_a_guardrail_that_asks_a_model_beside_the_first_call_has_steps_of_its_own_and_refuses_the_message() -> None:
    judged: list[str] = []

    def verdicts(turn: int) -> Iterable[Any]:
        judged.append(str(turn))
        return ["no"]

    judge = Agent("talker", model=FakeModel(verdicts, 0.5))

    @input_guardrail(run_in_parallel=True)
    async def homework(_: Any, __: Any, given: Any) -> GuardrailFunctionOutput:
        verdict = await Runner.run(judge, given)
        return GuardrailFunctionOutput(None, tripwire_triggered=verdict.final_output == "no")

    reply = harness(talker(["a"], input_guardrails=[homework])).send("go")
    assert (reply.state, reply.said, judged) == ("rejected", "The guardrail homework refuses the message.", ["1"])


def test_no_text_is_sent_before_an_output_guardrail_has_seen_it() -> None:
    @output_guardrail
    async def secrets(_: Any, __: Any, output: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(None, tripwire_triggered="secret" in output)

    made = harness(talker(["The ", "secret."], output_guardrails=[secrets]))
    reply = made.send("go")
    assert (reply.state, reply.artifacts) == ("failed", {})
    assert str(reply.error) == "The guardrail secrets refuses the answer."
    passed = harness(talker(["All ", "well."], output_guardrails=[secrets]))
    assert chunks_of(passed, passed.send("go").task.id) == [("All well.", False, True)]


# ---- Tracing


class Traces(TracingProcessor):
    """Notes what is traced."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_trace_start(self, trace: Any) -> None:
        self.seen.append(trace.name)

    def on_trace_end(self, trace: Any) -> None:
        pass

    def on_span_start(self, span: Any) -> None:
        self.seen.append(type(span.span_data).__name__)

    def on_span_end(self, span: Any) -> None:
        pass

    def shutdown(self) -> None:
        pass

    def force_flush(self) -> None:
        pass


@pytest.fixture
def traces() -> Iterator[Traces]:
    made = Traces()
    set_trace_processors([])
    add_trace_processor(made)
    yield made
    set_trace_processors([])


def test_the_sdk_traces_nothing_unless_its_user_wants_it(traces: Traces) -> None:
    @function_tool
    async def delegate() -> str:
        """Delegates."""
        return str((await Runner.run(talker(["inside"], name="inner"), "go")).final_output)

    helper = talker(["Helped."], name="helper")
    turns: Any = [("delegate", "c1", {}), ("help", "c2", {"input": "a"})], ["Done."]
    wrapped = talker(*turns, tools=[delegate, helper.as_tool("help", "Helps.")])
    config = RunConfig(workflow_name="own")
    for options in ({}, {"run_config": config}):
        assert harness(wrapped, options=options).send("go").text("answer") == "Done."
    assert traces.seen == []
    assert harness(wrapped, tracing=True).send("go").text("answer") == "Done."
    assert traces.seen


# ---- OpenAI's own client


@pytest.mark.enable_socket
def test_openai_s_client_streams_and_its_connections_do_not_outlive_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[Any] = []

    def say(request: ModelRequest) -> Said | int:
        requests.append(request)
        if len(requests) == 1:
            return 429
        return ["It ", "is ", "seen."] if request.number else ["I look.", ToolCall("look", {}, "c1")]

    with model_server(say) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        made = harness(Agent("eyes", model="gpt-test", tools=[look]))
        reply = made.send("go")
        again = made.send("go", context_id=reply.task.context_id)
    assert [one.text("answer") for one in (reply, again)] == ["It is seen."] * 2
    amounts = {"requests": 2, "input_tokens": 10, "output_tokens": 6, "cache_read_tokens": 4}
    assert reply.task.metadata == {"a2a-serverless/usage": {"gpt-test": amounts}}
    assert len(requests) == 5, "the client has repeated the first"
    assert chunks_of(made, reply.task.id)[-1] == ("It is seen.", False, True)


@pytest.mark.enable_socket
@pytest.mark.parametrize(("said", "error"), [(500, "InternalServerError"), (["It ", END], "not complete")])
def test_a_response_that_does_not_come_to_its_end_fails_the_task(said: Any, error: str) -> None:
    with model_server(lambda _: said) as server:
        client = AsyncOpenAI(base_url=server.url, api_key="none", max_retries=0)
        wrapped = Agent("eyes", model=OpenAIResponsesModel("gpt-test", client), model_settings=ModelSettings())
        reply = harness(wrapped).send("go")
    assert reply.state == "failed"
    assert error in repr(reply.error)


@pytest.mark.enable_socket
def test_openai_s_client_answers_whole_for_an_agent_that_does_not_stream() -> None:
    tools: list[Any] = []

    def say(request: ModelRequest) -> Said:
        tools.extend(tool["type"] for tool in request.body["tools"])
        return ["All ", "at once."]

    with model_server(say) as server:
        client = AsyncOpenAI(base_url=server.url, api_key="none", max_retries=0)
        wrapped = Agent("eyes", model=OpenAIResponsesModel("gpt-test", client), tools=[WebSearchTool()])
        made = harness(wrapped, streaming=False)
        replies = [made.send("go"), made.send("go")]
    assert [reply.text("answer") for reply in replies] == ["All at once."] * 2
    assert tools == ["web_search"] * 2, "the provider executes it"


def test_a_copy_of_an_agent_keeps_its_fields() -> None:
    heard: list[Any] = []
    wrapped = replace(talker(["a"], heard=heard), instructions=lambda _, one: f"I am {one.name}.")
    assert harness(wrapped).send("go").text("answer") == "a"
    assert len(heard) == 1
