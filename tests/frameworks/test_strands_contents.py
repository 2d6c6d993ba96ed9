"""What a client, a model, a tool and a tracer get of a Strands agent."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated, Any

import pytest

pytest.importorskip("strands", reason="Strands is not installed here: make frameworks")

from pydantic import BaseModel, PlainSerializer
from strands import Agent, ToolContext, tool

from a2a_serverless import Part, Skill, TaskContext
from a2a_serverless import agent as plain
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.strands import agent, call_agent, run
from tests.frameworks.observed import chunks_of, names_of_spans
from tests.frameworks.test_strands import FakeModel, harness_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from a2a_serverless import Agent as A2AAgent


def talker(*turns: Iterable[Any], model: type[FakeModel] = FakeModel, **options: Any) -> Agent:
    """An agent whose model says in each turn what is given."""
    return Agent(model(lambda turn: turns[min(turn, len(turns)) - 1]), callback_handler=None, **options)


@tool
def look() -> str:
    """Looks."""
    return "seen"


# ---- The card


def test_the_card_has_what_is_given_or_else_what_the_id_and_the_description_say() -> None:
    made = agent(Agent, id="shop", description="Sells.")
    assert (made.id, made.name, made.description, made.streaming) == ("shop", "shop", "Sells.", True)
    assert made.skills == (Skill("shop", "shop", "Sells.", ("shop",)),)
    named = agent(Agent, id="shop", name="Shop", description="Sells.", version="2.0.0", streaming=False)
    assert (named.id, named.name, named.version, named.streaming) == ("shop", "Shop", "2.0.0", False)
    assert named.skills == (Skill("shop", "Shop", "Sells.", ("shop",)),)
    skills = [Skill("sell", "Sell", "Sells.", ("shop",))]
    assert agent(Agent, id="shop", description="Sells.", skills=skills).skills == tuple(skills)


# ---- The answer


def test_the_last_response_replaces_the_one_before_and_only_its_last_chunk_is_marked() -> None:
    harness = harness_of(["I ", "look.", ("look", "c1", {})], ["I ", "have ", "seen."], tools=[look], pause_s=5)
    assert chunks_of(harness, harness.send("go").task.id) == [
        ("I ", False, False),
        ("look.", True, False),
        ("I ", False, False),
        ("have seen.", True, True),
    ]


def test_an_agent_that_does_not_stream_emits_its_answer_once() -> None:
    harness = harness_of(["Wait.", ("look", "c1", {})], ["a", "b"], tools=[look], pause_s=5, streaming=False)
    assert chunks_of(harness, harness.send("go").task.id) == [("ab", False, True)]


def test_a_run_that_does_not_stream_emits_nothing() -> None:
    @plain(id="clerk", name="Clerk", description="Writes.", skills=[])
    async def clerk(task: TaskContext) -> str:
        return str(await run(talker(["a", "b"]), task.text(), stream=False)).strip()

    reply = AgentTestHarness(clerk).send("go")
    assert (reply.said, reply.artifacts) == ("ab", {})


class Offer(BaseModel):
    """A thing and a day."""

    thing: str
    until: Annotated[dt.date, PlainSerializer(lambda day: f"{day:%d %b %Y}", when_used="json")]


OFFER = {"thing": "coat", "until": "2026-02-01"}


def test_structured_output_is_the_last_chunk_and_what_was_said_before_it_is_replaced() -> None:
    def make() -> Agent:
        return talker(["I think.", ("Offer", "c1", OFFER)], structured_output_model=Offer)

    harness = AgentTestHarness(agent(make, id="offers", description="Offers."))
    assert chunks_of(harness, harness.send("go").task.id) == [
        ("I think.", False, False),
        (
            {"thing": "coat", "until": "01 Feb 2026"},
            False,
            True,
        ),
    ]


def test_structured_output_of_a_run_is_there_in_a_later_run_of_the_task() -> None:
    paid: list[int] = []

    def turns(turn: int) -> Iterable[Any]:
        paid.append(turn)
        return [("Offer", "c1", OFFER)]

    @plain(id="clerk", name="Clerk", description="Offers.", skills=[])
    async def clerk(task: TaskContext) -> str:
        made = Agent(FakeModel(turns), structured_output_model=Offer, callback_handler=None)
        result = await run(made, task.text())
        answer = await task.ask("Shall I?")
        return f"{result.structured_output} {answer.text()}"

    harness = AgentTestHarness(clerk)
    asked = harness.send("go")
    assert asked.said == "Shall I?"
    expected = "thing='coat' until=datetime.date(2026, 2, 1) yes"
    assert harness.send("yes", task_id=asked.task.id).said == expected
    assert paid == [1]


class Guarded(FakeModel):
    """Its guardrail replaces each answer."""

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        async for event in super().stream(messages):
            if "messageStop" in event:
                yield {"redactContent": {"redactAssistantContentMessage": "[removed]"}}
            yield event


@pytest.mark.parametrize("streaming", [True, False])
def test_the_text_with_which_a_guardrail_replaces_an_answer_is_the_answer(streaming: bool) -> None:  # noqa: FBT001
    def make() -> Agent:
        return talker(["The secret ", "is 42."], model=Guarded)

    harness = AgentTestHarness(agent(make, id="guarded", description="Hides.", streaming=streaming))
    assert chunks_of(harness, harness.send("?").task.id)[-1] == ("[removed]", False, True)


class Cut(FakeModel):
    """Its connection breaks before the last event."""

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        async for event in super().stream(messages):
            if "messageStop" in event:
                return
            yield event


def test_a_response_that_does_not_come_to_its_end_fails_the_task() -> None:
    cut = agent(lambda: talker(["It ", "is"], model=Cut), id="cut", description="Ends in the middle.")
    reply = AgentTestHarness(cut).send("?")
    assert reply.state == "failed"
    assert "has no end" in repr(reply.error)


# ---- What the model gets


class Hearing(FakeModel):
    """Notes the messages that it gets."""

    def __init__(self, turns: Callable[[int], Iterable[Any]], heard: list[Any]) -> None:
        super().__init__(turns)
        self._heard = heard

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        self._heard.append([block for message in messages for block in message["content"]])
        async for event in super().stream(messages):
            yield event


def ears(heard: list[Any], *turns: Iterable[Any], tools: Sequence[Any] = (), **options: Any) -> A2AAgent:
    """An agent whose model notes what it hears."""

    def make() -> Agent:
        said = turns or (["Yes."],)
        model = Hearing(lambda turn: said[min(turn, len(said)) - 1], heard)
        return Agent(model, tools=[*tools], callback_handler=None)

    return agent(make, id="ears", description="Hears.", **options)


def document(form: str, name: str) -> Any:
    return {"document": {"format": form, "name": name, "source": {"bytes": b"..."}}}


PDF = "application/pdf"


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (Part(text="a"), {"text": "a"}),
        (Part(text=""), {"text": ""}),
        (Part(data={"größe": 1}), {"text": '{"größe": 1}'}),
        (Part(raw="YQ==", media_type="text/plain"), {"text": "a"}),
        (Part(raw="Li4u", media_type="image/png"), {"image": {"format": "png", "source": {"bytes": b"..."}}}),
        (Part(raw="Li4u", media_type=PDF, filename="the report.pdf"), document("pdf", "the report")),
        (Part(raw="Li4u", filename="table.v2.xlsx"), document("xlsx", "table.v2")),
        (Part(raw="Li4u", media_type=PDF), document("pdf", "file")),
        (Part(raw="Li4u", media_type=PDF, filename="report"), document("pdf", "report")),
    ],
)
def test_each_part_of_the_message_is_a_content_block(part: Part, block: Any) -> None:
    heard: list[Any] = []
    assert AgentTestHarness(ears(heard, input_modes=("*/*",))).send([part]).state == "completed"
    assert heard == [[block]]


def test_of_files_the_history_has_the_kinds() -> None:
    heard: list[Any] = []
    harness = AgentTestHarness(ears(heard, input_modes=("*/*",)))
    files = [Part(raw="Li4u", media_type="image/png"), Part(raw="Li4u", media_type=PDF), Part(text="Look")]
    context_id = harness.send(files).task.context_id
    harness.send("And?", context_id=context_id)
    assert heard[1] == [{"text": text} for text in ("[image]", "[document]", "Look", "Yes.", "And?")]


def test_an_agent_without_history_gets_the_message_only() -> None:
    heard: list[Any] = []
    harness = AgentTestHarness(ears(heard, history=0))
    context_id = harness.send("a").task.context_id
    harness.send("b", context_id=context_id)
    harness.deploy(ears(heard))
    harness.send("c", context_id=context_id)
    assert heard == [[{"text": text}] for text in ("a", "b", "c")]


def test_messages_that_the_agent_is_made_with_come_first_and_are_not_stored() -> None:
    heard: list[Any] = []

    def make() -> Agent:
        model = Hearing(lambda _: ["Yes."], heard)
        return Agent(model, messages=[{"role": "user", "content": [{"text": "Be kind."}]}], callback_handler=None)

    harness = AgentTestHarness(agent(make, id="ears", description="Hears."))
    context_id = harness.send("a").task.context_id
    harness.send("b", context_id=context_id)
    assert heard[1] == [{"text": text} for text in ("Be kind.", "a", "Yes.", "b")]


def test_a_tool_that_does_not_exist_is_an_error_for_the_model() -> None:
    heard: list[Any] = []
    harness = AgentTestHarness(ears(heard, [("fly", "c1", {})], ["I cannot."]))
    assert harness.send("fly").text("answer") == "I cannot."
    assert heard[1][-1]["toolResult"]["status"] == "error"


def test_bytes_in_results_of_tools_are_the_same_in_a_later_run() -> None:
    heard: list[Any] = []

    @tool
    def draw() -> Any:
        """Draws."""
        image = {"image": {"format": "png", "source": {"bytes": b"..."}}}
        return {"status": "success", "content": [image, {"json": {"n": 1}}, {"text": "größe"}]}

    @tool(context=True)
    def check(tool_context: ToolContext) -> str:
        """Checks."""
        return str(tool_context.interrupt("check", reason=b"?"))

    harness = AgentTestHarness(ears(heard, [("draw", "c1", {})], [("check", "c2", {})], ["Done."], tools=[draw, check]))
    asked = harness.send("go")
    assert harness.send("yes", task_id=asked.task.id).text("answer") == "Done."
    image = {"image": {"format": "png", "source": {"bytes": b"..."}}}
    assert heard[2][2]["toolResult"]["content"] == [image, {"json": {"n": 1}}, {"text": "größe"}]
    assert len(heard) == 3, "the first two responses were read back"


# ---- Questions


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (None, "check"),
        ("Is it größer?", "check: Is it größer?"),
        ({"größe": 1}, 'check: {"größe": 1}'),
        (0, "check: 0"),
    ],
)
@pytest.mark.parametrize(("answer", "response"), [("yes", "yes"), ({"n": 1}, {"n": 1})])
def test_a_question_has_the_name_and_the_reason_and_its_answer_is_the_response(
    reason: Any, said: str, answer: Any, response: Any
) -> None:
    responses: list[Any] = []

    @tool(context=True)
    def check(tool_context: ToolContext) -> str:
        """Checks."""
        responses.append(tool_context.interrupt("check", reason=reason))
        return "checked"

    harness = harness_of([("check", "c1", {})], ["Done."], tools=[check])
    asked = harness.send("go")
    question = asked.task.status.message
    assert question
    asked_for: Any = question.data()
    (interrupt,) = asked_for["interrupts"]
    assert (asked.said, interrupt["name"], interrupt["reason"]) == (said, "check", reason)
    assert harness.send(answer, task_id=asked.task.id).text("answer") == "Done."
    assert responses == [response]


# ---- Tools and runs


def test_ids_of_tool_uses_may_repeat() -> None:
    rolled: list[str] = []
    heard: list[Any] = []

    @tool
    def roll() -> str:
        """Rolls."""
        rolled.append(f"{len(rolled) + 1}")
        return rolled[-1]

    harness = AgentTestHarness(ears(heard, [("roll", "c1", {})], [("roll", "c1", {})], ["Done."], tools=[roll]))
    assert harness.send("go").text("answer") == "Done."
    results = [block["toolResult"]["content"][0]["text"] for block in heard[2] if "toolResult" in block]
    assert (rolled, results) == (["1", "2"], ["1", "2"])


def test_a_run_passes_its_options_on_also_after_a_question() -> None:
    seen: list[Any] = []

    @tool(context=True)
    def check(tool_context: ToolContext) -> str:
        """Checks."""
        seen.append(tool_context.invocation_state.get("user"))
        return str(tool_context.interrupt("check"))

    @plain(id="clerk", name="Clerk", description="Writes.", skills=[])
    async def clerk(task: TaskContext) -> str:
        made = talker([("check", "c1", {})], ["Done."], tools=[check])
        return str(await run(made, task.text(), invocation_state={"user": "Ada"})).strip()

    harness = AgentTestHarness(clerk)
    asked = harness.send("go")
    assert harness.send("yes", task_id=asked.task.id).said == "Done."
    assert set(seen) == {"Ada"}
    assert len(seen) > 1


def test_a_tool_that_calls_an_agent_has_a_name_and_a_description_and_gives_its_answer() -> None:
    @plain(id="echo", name="Echo", description="Repeats.", skills=[])
    async def echo(task: TaskContext) -> str:
        return task.text()

    heard: list[Any] = []
    tools = [
        call_agent("echo", description="Repeats."),
        call_agent("echo", description="Says it again.", name="ask_echo"),
    ]
    assert [(one.tool_name, one.tool_spec["description"]) for one in tools] == [
        ("call_echo", "Repeats."),
        ("ask_echo", "Says it again."),
    ]
    made = ears(heard, [("ask_echo", "c1", {"message": "a"})], ["Done."], tools=tools)
    assert AgentTestHarness(made, echo).send("go").text("answer") == "Done."
    assert heard[1][-1]["toolResult"]["content"] == [{"json": {"answer": "a"}}]


def test_tool_calls_are_spans_of_their_tools() -> None:
    made = agent(lambda: talker([("look", "c1", {})], ["Done."], tools=[look], name="eyes"), id="eyes", description="x")
    assert names_of_spans(made) == ["step state", "step eyes: model", "execute_tool look", "step eyes: model#2"]


# ---- Usage


class Metered(FakeModel):
    """Says how many tokens it has used."""

    config: Any = None
    usage: Any = None

    def get_config(self) -> Any:
        return self.config

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        async for event in super().stream(messages):
            if "metadata" in event:
                event["metadata"]["usage"] = self.usage
            yield event


@pytest.mark.parametrize(
    ("config", "name"), [({"model_id": "fake"}, "fake"), ({}, "Metered"), ({"model_id": ""}, "Metered")]
)
def test_usage_is_known_by_the_model_s_id_or_by_its_class(config: Any, name: str) -> None:
    tokens = {"inputTokens": 5, "outputTokens": 0, "totalTokens": 8, "cacheReadInputTokens": 2}

    def make() -> Agent:
        model = Metered(lambda _: ["Hello."])
        model.config, model.usage = config, tokens | {"cacheWriteInputTokens": 1}
        return Agent(model, callback_handler=None)

    harness = AgentTestHarness(agent(make, id="metered", description="Counts."))
    amounts = {"requests": 1, "input_tokens": 5, "cache_read_tokens": 2, "cache_write_tokens": 1}
    assert harness.send("hi").task.metadata == {"a2a-serverless/usage": {name: amounts}}
