"""What a client, a model, a tool and a tracer get of an agent of Google's ADK."""

from __future__ import annotations

import asyncio
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

pytest.importorskip("google.adk", reason="Google's ADK is not installed here: make frameworks")

from fastapi.openapi.models import HTTPBearer
from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.auth import AuthConfig
from google.adk.models import Gemini, LlmResponse
from google.adk.plugins import BasePlugin
from google.adk.tools import AgentTool, BaseTool, FunctionTool, LongRunningFunctionTool, ToolContext
from google.adk.tools.base_toolset import BaseToolset
from google.adk.workflow import Workflow
from google.genai import types
from pydantic import BaseModel

from a2a_serverless import Part, Skill, StepConflict
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.adk import agent, run
from tests.echo import agent_of
from tests.frameworks.observed import chunks_of, names_of_spans
from tests.frameworks.test_adk import FakeModel, asking, checked, harness_of, last_response, llm, pytestmark

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from google.adk.models import LlmRequest

    from a2a_serverless import TaskContext

__all__ = ["pytestmark"]
CHECK = LongRunningFunctionTool(checked)


def look() -> str:
    """Looks."""
    return "seen"


class Offer(BaseModel):
    """A thing and its price."""

    thing: str


def test_the_card_has_what_is_given_or_else_what_the_agent_says() -> None:
    made = agent(llm("shop", description="Sells."), id="my-shop")
    assert (made.id, made.name, made.description, made.streaming) == ("my-shop", "my-shop", "Sells.", True)
    assert made.skills == (Skill("my-shop", "my-shop", "Sells.", ("my-shop",)),)
    named = agent(lambda: llm("shop"), id="shop", name="Shop", description="Sells.", version="2.0.0", streaming=False)
    assert (named.name, named.description, named.version, named.streaming) == ("Shop", "Sells.", "2.0.0", False)
    skills = [Skill("sell", "Sell", "Sells.", ("shop",))]
    assert agent(llm("shop"), id="shop", skills=skills).skills == tuple(skills)
    assert agent(llm("shop"), id="shop").description == "shop"


@pytest.mark.parametrize("streaming", [True, False])
def test_an_agent_emits_its_answer(streaming: bool) -> None:  # noqa: FBT001
    harness = harness_of(
        llm("eye", ["I look.", ("look", None, {})], ["It is ", "seen."], tools=[look]), streaming=streaming
    )
    chunks = chunks_of(harness, harness.send("go").task.id)
    assert [chunk.content for chunk in chunks] == (["I look.", "It is seen."] if streaming else ["It is seen."])
    assert [chunk.last for chunk in chunks][-1]


def test_of_a_sequence_only_the_last_chunk_of_the_last_agent_is_marked() -> None:
    harness = harness_of(SequentialAgent(name="team", sub_agents=[llm("a", ["One."]), llm("b", ["Two."])]))
    chunks = chunks_of(harness, harness.send("go").task.id)
    assert [(chunk.content, chunk.last) for chunk in chunks] == [("One.", False), ("Two.", False), ("Two.", True)]


def test_a_model_that_gives_no_pieces_is_one_chunk() -> None:
    harness = harness_of(asking(lambda _: ["Yes, ", "indeed."]))
    assert chunks_of(harness, harness.send("go").task.id) == [("Yes, indeed.", False, True)]


@pytest.mark.parametrize(
    "root",
    [
        llm("offers", ['{"thing": ', '"car"}'], output_schema=Offer),
        llm(
            "offers",
            [("look", "c1", {})],
            [("set_model_response", "c2", {"thing": "car"})],
            output_schema=Offer,
            tools=[look],
        ),
        llm("offers", [("checked", "c1", {})], ['{"thing": "car"}'], output_schema=Offer, tools=[CHECK]),
    ],
)
def test_an_answer_in_a_schema_is_a_data_part_and_no_text_of_it_is_sent(root: LlmAgent) -> None:
    harness = harness_of(root)
    reply = harness.send("go")
    if reply.state == "input-required":
        reply = harness.send("ready", task_id=reply.task.id)
    assert [chunk.content for chunk in chunks_of(harness, reply.task.id)] == [{"thing": "car"}]


@pytest.mark.parametrize(("result", "content"), [("A form.", "A form."), ({"fields": ["date"]}, {"fields": ["date"]})])
def test_the_result_of_a_tool_that_skips_the_summary_is_the_answer(result: Any, content: Any) -> None:
    def show(tool_context: ToolContext) -> Any:
        """Shows a form."""
        tool_context.actions.skip_summarization = True
        return result

    harness = harness_of(llm("clerk", ["I show it.", ("show", "c1", {})], tools=[show]))
    reply = harness.send("go")
    assert reply.state == "completed"
    assert [(chunk.content, chunk.last) for chunk in chunks_of(harness, reply.task.id)][-1] == (content, True)


def test_the_output_of_a_workflow_is_a_data_part() -> None:
    def first(node_input: Any) -> dict[str, int]:
        return {"parts": len(node_input.parts)}

    harness = harness_of(Workflow(name="flow", edges=[("START", first)]))
    assert harness.send("go").data("answer") == {"parts": 1}


def test_a_later_run_has_the_results_and_the_state_of_a_tool() -> None:
    heard: list[Any] = []
    calls: list[str] = []

    def draw(tool_context: ToolContext) -> Any:
        """Draws."""
        calls.append("draw")
        tool_context.state["kind"] = {"name": "png", "of": [1]}
        return {
            "image": types.Part.from_bytes(data=b"\xff\x00", mime_type="image/png"),
            "n": (1, 2),
            "at": Offer(thing="x"),
        }

    def turns(request: LlmRequest) -> Iterable[Any]:
        responses = [part.function_response for content in request.contents for part in content.parts]
        drawn = [one for one in responses if one and one.name == "draw"]
        if not drawn:
            return [("draw", "c1", {})]
        blobs = [(part.inline_data.data, part.inline_data.mime_type) for part in drawn[0].parts]
        heard.append((drawn[0].response, blobs, "png" in request.config.system_instruction))
        return [("checked", "c2", {})] if len(heard) == 1 else ["Done."]

    harness = harness_of(asking(turns, draw, CHECK, instruction="{kind?}"))
    asked = harness.send("go")
    assert harness.send("yes", task_id=asked.task.id).text("answer") == "Done."
    assert heard == [({"n": [1, 2], "at": {"thing": "x"}}, [(b"\xff\x00", "image/png")], True)] * 2
    assert calls == ["draw"]


def test_a_later_run_has_changes_of_a_tool_within_a_value_of_the_state() -> None:
    heard: list[str] = []

    def fill(tool_context: ToolContext) -> str:
        """Fills."""
        tool_context.state["cart"] = {"things": [], "gone": 1, "note": None}
        return "filled"

    async def add(thing: str, tool_context: ToolContext) -> str:
        """Adds."""
        await asyncio.sleep(1)
        tool_context.state["cart"][thing] = [thing]
        return "added"

    async def close(tool_context: ToolContext) -> str:
        """Closes."""
        cart = tool_context.state["cart"]
        cart["things"].append(len(cart))
        del cart["gone"]
        tool_context.actions.state_delta["closed"] = True
        return "closed"

    calls: Any = [[("fill", "c1", {})], [("add", "c2", {"thing": "a"}), ("add", "c3", {"thing": "b"})]]
    calls += [[("close", "c4", {})], [("checked", "c5", {})]]

    def turns(request: LlmRequest) -> Iterable[Any]:
        turn = sum(content.role == "model" for content in request.contents)
        heard.append(str(request.config.system_instruction))
        return calls[turn] if turn < len(calls) else ["Done."]

    harness = harness_of(asking(turns, fill, add, close, CHECK, instruction="{cart?} {closed?}"))
    asked = harness.send("go")
    assert (asked.error, asked.state) == (None, "input-required")
    reply = harness.send("yes", task_id=asked.task.id)
    assert (reply.error, reply.text("answer")) == (None, "Done.")
    expected = {"things": [5], "note": None, "a": ["a"], "b": ["b"]}
    assert [f"{expected} True" in text for text in heard] == [False] * 3 + [True] * (len(heard) - 3)


def test_tools_at_the_same_time_may_not_make_different_values_of_one_key() -> None:
    async def choose(seat: str, tool_context: ToolContext) -> str:
        """Chooses."""
        await asyncio.sleep(1)
        tool_context.state["seat"] = seat
        return "chosen"

    calls: Any = [("choose", f"c{seat}", {"seat": seat}) for seat in ("1a", "2b")]
    reply = harness_of(asking(lambda _: calls, choose)).send("go")
    assert isinstance(reply.error, StepConflict)
    assert "The tool choose and another tool that runs at the same time change state['seat']." in reply.said


def test_thoughts_and_their_signatures_go_back_to_the_model_and_not_to_the_client() -> None:
    heard: list[Any] = []

    def turns(request: LlmRequest) -> Iterable[Any]:
        parts = [part for content in request.contents for part in content.parts if part.thought_signature]
        heard.append([part.thought_signature for part in parts])
        thought = types.Part(text="Hm.", thought=True)
        call = types.FunctionCall(name="checked", id="c1", args={})
        signed = types.Part(function_call=call, thought_signature=b"\xfe\x00")
        return ["Done."] if last_response(request) else [thought, signed]

    harness = harness_of(asking(turns, CHECK))
    asked = harness.send("go")
    reply = harness.send("yes", task_id=asked.task.id)
    assert ([chunk.content for chunk in chunks_of(harness, reply.task.id)], heard) == (["Done."], [[], [b"\xfe\x00"]])


def test_an_agent_without_history_gets_the_message_only() -> None:
    heard: list[int] = []

    def turns(request: LlmRequest) -> Iterable[Any]:
        heard.append(len(request.contents))
        return ["Yes."]

    harness = harness_of(asking(turns), history=0)
    context_id = harness.send("a").task.context_id
    harness.send("b", context_id=context_id)
    assert heard == [1, 1]


def test_a_toolset_makes_its_tools_in_each_run_and_is_closed() -> None:
    closed: list[str] = []
    called: list[str] = []

    class Remote(BaseToolset):
        async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:  # noqa: ARG002
            def fetch() -> str:
                """Fetches."""
                called.append("fetch")
                return "fetched"

            return [FunctionTool(fetch)]

        async def close(self) -> None:
            closed.append("closed")

    calls: list[Any] = [[("fetch", "c1", {})], [("checked", "c2", {})], ["Done."]]
    harness = harness_of(llm("remote", *calls, tools=[Remote(), CHECK]))
    asked = harness.send("go")
    assert harness.send("yes", task_id=asked.task.id).text("answer") == "Done."
    assert called == ["fetch"]
    assert len(closed) >= 2


def test_an_agent_as_a_tool_without_plugins_is_one_step() -> None:
    paid: list[str] = []

    def turns(_: int) -> Iterable[Any]:
        paid.append("inner")
        return ["inner"]

    inner = LlmAgent(name="inner", model=FakeModel(turns=turns))
    calls: list[Any] = [[("inner", "c1", {"request": "a"})], [("checked", "c2", {})], ["Done."]]
    harness = harness_of(llm("root", *calls, tools=[AgentTool(inner, include_plugins=False), CHECK]))
    asked = harness.send("go")
    assert harness.send("yes", task_id=asked.task.id).text("answer") == "Done."
    assert paid == ["inner"]


def test_an_app_keeps_its_plugins() -> None:
    seen: list[str] = []

    class Watching(BasePlugin):
        async def after_tool_callback(self, *, tool: Any, **_: Any) -> None:
            seen.append(tool.name)

    root = llm("eye", [("look", "c1", {})], ["Seen."], tools=[look])
    app = App(
        name="eyes",
        root_agent=root,
        plugins=[Watching(name="watching")],
        resumability_config=ResumabilityConfig(is_resumable=True),
    )
    assert harness_of(app).send("go").text("answer") == "Seen."
    assert (set(seen), [plugin.name for plugin in app.plugins]) == ({"look"}, ["watching"])


def test_the_session_of_an_app_is_there_in_the_next_task_though_its_name_is_not_the_id() -> None:
    heard: list[int] = []

    def turns(request: LlmRequest) -> Iterable[Any]:
        heard.append(len(request.contents))
        return ["Yes."]

    harness = harness_of(App(name="eyes", root_agent=asking(turns)))
    context_id = harness.send("a").task.context_id
    harness.send("b", context_id=context_id)
    assert heard == [1, 3]


@pytest.mark.filterwarnings("ignore:This method is deprecated. Use credential_key:DeprecationWarning")
def test_a_tool_that_asks_for_a_sign_in_fails_the_task_with_words() -> None:
    def fetch(tool_context: ToolContext) -> str:
        """Fetches."""
        tool_context.request_credential(AuthConfig(auth_scheme=HTTPBearer()))
        return "asked"

    reply = harness_of(llm("eye", [("fetch", "c1", {})], ["Done."], tools=[fetch])).send("go")
    assert reply.state == "failed"
    assert reply.said == "A tool asks its user to sign in, which this agent does not support."


def test_an_error_of_the_model_fails_the_task_with_a_reference() -> None:
    class Blocked(FakeModel):
        async def generate_content_async(self, *_: Any, **__: Any) -> AsyncIterator[LlmResponse]:
            yield LlmResponse(error_code="SAFETY", error_message="secret words")

    reply = harness_of(LlmAgent(name="blocked", model=Blocked(turns=None))).send("go")
    assert (reply.state, "secret words" in reply.said, "SAFETY" in str(reply.error)) == ("failed", False, True)


def test_ids_of_tool_calls_may_repeat_also_in_one_response() -> None:
    looked: list[str] = []

    async def peek(word: str) -> str:
        """Looks."""
        await asyncio.sleep(1)
        looked.append(word)
        return word

    calls: list[list[Any]] = [[("peek", "c1", {"word": word}) for word in "ab"], [("peek", "c1", {"word": "c"})]]
    reply = harness_of(llm("eye", *calls, ["Done."], tools=[peek])).send("go")
    assert (reply.error, reply.text("answer"), looked) == (None, "Done.", ["a", "b", "c"])


def test_a_tool_that_raises_fails_the_task() -> None:
    def divide() -> float:
        """Divides."""
        return 1 / 0

    assert harness_of(llm("math", [("divide", "c1", {})], ["Done."], tools=[divide])).send("go").state == "failed"


def test_a_tool_that_does_not_exist_is_an_error_for_the_model() -> None:
    reply = harness_of(llm("eye", [("fly", "c1", {})], ["I cannot."], tools=[look])).send("go")
    assert reply.text("answer") == "I cannot."


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"approved": True, "payload": {"class": "first"}}, "1a {'class': 'first'} True"),
        ({"confirmed": True, "payload": {"class": "first"}}, "1a {'class': 'first'} True"),
        ({"confirmed": False, "payload": 0}, "1a 0 False"),
        ("yes", "1a None True"),
        ("no, not that seat", "1a not that seat False"),
    ],
)
def test_a_confirmation_has_the_tool_s_hint_and_its_payload_goes_to_the_tool(answer: Any, result: str) -> None:
    def book(seat: str, tool_context: ToolContext) -> str:
        """Books."""
        if not tool_context.tool_confirmation:
            tool_context.request_confirmation(hint="Which class?", payload={"class": ""})
            return "asked"
        return f"{seat} {tool_context.tool_confirmation.payload} {tool_context.tool_confirmation.confirmed}"

    def turns(request: LlmRequest) -> Iterable[Any]:
        result = last_response(request)
        return [result["result"]] if result else [("book", "c1", {"seat": "1a"})]

    harness = harness_of(asking(turns, book))
    asked = harness.send("book")
    assert asked.said == 'Which class? May I call book({"seat": "1a"})? Answer yes, or no and why.'
    assert asked.task.status.message
    assert asked.task.status.message.data() == {
        "kind": "approval",
        "tool": "book",
        "arguments": {"seat": "1a"},
        "hint": "Which class?",
        "payload": {"class": ""},
    }
    assert asked.task.status.message.metadata == {"kind": "approval"}
    assert harness.send(answer, task_id=asked.task.id).text("answer") == result


def test_tool_calls_are_spans_of_their_tools() -> None:
    root = llm("eye", [("look", "c1", {})], ["Seen."], tools=[look])
    names = names_of_spans(agent(root, id="eye"))
    assert names == ["step session", "step eye: model", "execute_tool look", "step eye: model#2"]


def test_a_run_in_an_agent_s_function_returns_the_output_and_emits_nothing_if_it_does_not_stream() -> None:
    async def work(task: TaskContext) -> str:
        output = await run(llm("eye", ["Seen."]), task.text(), stream=False)
        assert output
        return str(output.content.parts[0].text)

    reply = AgentTestHarness(agent_of(work)).send("go")
    assert (reply.said, reply.task.artifacts) == ("Seen.", ())


# ---- A server that speaks Gemini's API


class GeminiServer(BaseHTTPRequestHandler):
    """Streams the responses of ``turns``: lists of parts, of which each is a chunk."""

    turns: ClassVar[list[list[Any]]] = [
        [{"text": "I look. "}, {"functionCall": {"name": "buy", "args": {"price": 9}}, "thoughtSignature": "/v8A"}],
        [{"text": "It "}, {"text": "is "}, {"text": "bought."}],
    ]
    heard: ClassVar[list[Any]] = []

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.heard.append(request["contents"])
        parts = self.turns[sum(content["role"] == "model" for content in request["contents"])]
        chunks: list[Any] = [{"candidates": [{"content": {"role": "model", "parts": [part]}}]} for part in parts]
        chunks[-1]["candidates"][0]["finishReason"] = "STOP"
        chunks[-1]["usageMetadata"] = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write("".join(f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in chunks).encode())


@pytest.mark.enable_socket
@pytest.mark.filterwarnings("ignore")  # the client does not close its connections when its event loop ends
def test_the_client_of_gemini_streams_and_its_signatures_are_sent_back_after_a_question() -> None:
    def buy(price: int) -> str:
        """Buys."""
        return f"bought for {price}"

    with ThreadingHTTPServer(("127.0.0.1", 0), GeminiServer) as server:
        Thread(target=server.serve_forever).start()
        model = Gemini(
            model="gemini-2.5-flash",
            base_url=f"http://127.0.0.1:{server.server_port}",
            client_kwargs={"api_key": "none"},
        )
        harness = harness_of(LlmAgent(name="eye", model=model, tools=[FunctionTool(buy, require_confirmation=True)]))
        asked = harness.send("buy")
        reply = harness.send("yes", task_id=asked.task.id)
        server.shutdown()
    assert (reply.error, reply.text("answer")) == (None, "It is bought.")
    assert (reply.task.metadata or {})["a2a-serverless/usage"] == {
        "gemini-2.5-flash": {"requests": 2, "input_tokens": 14, "output_tokens": 6}
    }
    assert [len(contents) for contents in GeminiServer.heard] == [1, 3]
    called, answered = GeminiServer.heard[1][1]["parts"][1], GeminiServer.heard[1][2]["parts"]
    assert called["thoughtSignature"] in {"/v8A", "_v8A"}
    assert [part["functionResponse"]["response"] for part in answered] == [{"result": "bought for 9"}]


def test_the_model_gets_why_the_client_refuses_a_call() -> None:
    def order() -> str:
        """Orders."""
        return "ordered"

    def turns(request: LlmRequest) -> Iterable[Any]:
        result = last_response(request)
        return [f"{result.get('reason')}"] if result else [("order", "c1", {})]

    harness = harness_of(asking(turns, FunctionTool(order, require_confirmation=True)))
    asked = harness.send("go")
    assert harness.send("no, too dear", task_id=asked.task.id).text("answer") == "too dear"
    asked = harness.send("go")
    assert harness.send("no", task_id=asked.task.id).text("answer") == "None"


def test_null_as_the_result_of_a_long_running_tool_stays_null() -> None:
    def turns(request: LlmRequest) -> Iterable[Any]:
        result = last_response(request)
        return [repr(result)] if result else [("checked", "c1", {})]

    harness = harness_of(asking(turns, CHECK))
    asked = harness.send("go")
    assert harness.send([Part(data=None)], task_id=asked.task.id).text("answer") == "{'result': None}"
