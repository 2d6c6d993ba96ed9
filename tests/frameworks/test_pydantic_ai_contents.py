"""What a client, a model, a tool and a tracer get of a Pydantic AI agent."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Union

import pytest

pytest.importorskip("pydantic_ai", reason="Pydantic AI is not installed here: make frameworks")

from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, FunctionToolset, RunContext, ToolDenied
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelResponse, TextPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import DynamicToolset
from pydantic_ai.usage import RequestUsage

from a2a_serverless import Artifact, Message, Part, Skill, StoredValue, Task, TaskContext, current_task
from a2a_serverless import agent as plain
from a2a_serverless.protocol.v1 import Role, TaskState, TaskStatus
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.answers import content_of
from a2a_serverless_frameworks.history import load_history, save_turn
from a2a_serverless_frameworks.pydantic_ai import agent, call_agent, run
from tests.frameworks.observed import chunks_of, names_of_spans
from tests.frameworks.test_pydantic_ai import guarded, talker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pydantic_ai.messages import ModelMessage


class Offer(BaseModel):
    """A thing and its price."""

    thing: str
    price: int


class Coat(BaseModel):
    """A coat."""

    colour: str


# ---- The card


@pytest.mark.parametrize(
    ("wrapped", "options", "card"),
    [
        (Agent("test"), {"id": "shop"}, ("shop", "shop", "shop")),
        (Agent("test", name="shop"), {}, ("shop", "shop", "shop")),
        (Agent("test", name="shop", description="Sells."), {"id": "s"}, ("s", "shop", "Sells.")),
        (
            Agent("test", name="shop", description="Sells."),
            {"id": "s", "name": "Shop", "description": "Sells coats."},
            ("s", "Shop", "Sells coats."),
        ),
        (Agent("test"), {"name": "shop"}, ("shop", "shop", "shop")),
    ],
)
def test_the_card_has_what_is_given_or_else_what_the_agent_has(
    wrapped: Any, options: Any, card: tuple[str, str, str]
) -> None:
    made = agent(wrapped, **options)
    assert (made.id, made.name, made.description) == card
    assert made.skills == (Skill(made.id, made.name, made.description, (made.id,)),)
    assert made.streaming
    assert AgentTestHarness(made).send("hi").text("answer") == "success (no tool calls)"


def test_the_card_has_the_given_skills_and_says_whether_the_agent_streams() -> None:
    skills = [Skill("sell", "Sell", "Sells.", ("shop",))]
    made = agent(Agent("test", name="shop"), skills=skills, streaming=False)
    assert (made.skills, made.streaming) == (tuple(skills), False)


@pytest.mark.parametrize(
    ("wrapped", "options"),
    [
        (Agent(name="none"), {}),
        (Agent("test", name="shop", toolsets=[FunctionToolset([len])]), {}),
        (Agent("test", name="shop"), {"models": {"default": TestModel()}}),
    ],
)
def test_an_agent_that_cannot_be_durable_is_refused_at_once(wrapped: Any, options: Any) -> None:
    with pytest.raises(UserError):
        agent(wrapped, **options)


# ---- The answer


def test_the_last_response_replaces_the_one_before_and_only_its_last_chunk_is_marked() -> None:
    made = Agent(talker(["I ", "look.", ("look", "{}", "c1")], ["I ", "have ", "seen."], pause_s=5), name="looker")

    @made.tool_plain
    def look() -> str:
        return "seen"

    harness = AgentTestHarness(agent(made))
    reply = harness.send("go")
    assert chunks_of(harness, reply.task.id) == [
        ("I ", False, False),
        ("look.", True, False),
        ("I ", False, False),
        ("have seen.", True, True),
    ]


def test_an_agent_that_does_not_stream_emits_its_output_once() -> None:
    made = agent(Agent(talker(["a", "b"], pause_s=5), name="quiet"), streaming=False)
    harness = AgentTestHarness(made)
    assert chunks_of(harness, harness.send("go").task.id) == [("ab", False, True)]


def test_a_run_that_does_not_stream_emits_nothing() -> None:
    @plain(id="clerk", name="Clerk", description="Writes.", skills=[])
    async def clerk(task: TaskContext) -> str:
        return str((await run(Agent(talker(["a", "b"])), task.text(), name="writer", stream=False)).output)

    reply = AgentTestHarness(clerk).send("go")
    assert (reply.said, reply.artifacts) == ("ab", {})


@pytest.mark.parametrize(
    "output_type",
    [str, [str, Offer], [Offer, str], str | Offer, Union[Offer, str], [Offer, int | str]],  # noqa: UP007 - both are used
)
def test_an_output_that_may_be_text_streams(output_type: Any) -> None:
    harness = AgentTestHarness(agent(Agent(talker(["a", "b", "c"], pause_s=5), name="talker", output_type=output_type)))
    assert chunks_of(harness, harness.send("go").task.id) == [("a", False, False), ("bc", True, True)]


@pytest.mark.parametrize("output_type", [Offer, [Offer, Coat], Offer | Coat])
def test_of_any_other_output_no_text_is_streamed(output_type: Any) -> None:
    tool = "final_result" if output_type is Offer else "final_result_Offer"
    said = ["I think.", (tool, '{"thing": "coat", "price": 1}', "c1")]
    harness = AgentTestHarness(agent(Agent(talker(said, pause_s=5), name="offers", output_type=output_type)))
    assert chunks_of(harness, harness.send("go").task.id) == [({"thing": "coat", "price": 1}, False, True)]


def test_an_output_of_bytes_is_a_file() -> None:
    def draw() -> BinaryContent:
        return BinaryContent(b"...", media_type="image/png")

    harness = AgentTestHarness(agent(Agent(TestModel(), name="painter", output_type=draw)))
    reply = harness.send("a cat")
    assert chunks_of(harness, reply.task.id) == [("Li4u", False, True)]
    assert reply.artifacts["answer"].parts[0].media_type == "image/png"


def test_an_output_that_a_validator_changes_replaces_what_was_streamed() -> None:
    made = Agent(talker(["yes"]), name="loud")

    @made.output_validator
    def shout(said: str) -> str:
        return said.upper()

    harness = AgentTestHarness(agent(made))
    assert chunks_of(harness, harness.send("well?").task.id) == [("yes", False, True), ("YES", False, True)]


def test_the_output_of_a_function_that_the_model_calls_has_a_last_chunk_also_if_the_model_has_said_the_same() -> None:
    def say() -> str:
        return "same"

    made = Agent(talker(["same", ("final_result", "{}", "c1")]), name="function", output_type=[str, say])
    harness = AgentTestHarness(agent(made))
    assert chunks_of(harness, harness.send("go").task.id) == [("same", False, False), ("same", False, True)]


def test_thoughts_of_the_model_are_not_in_the_answer() -> None:
    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        del messages, info
        yield {0: DeltaThinkingPart(content="I wonder.")}
        yield {0: DeltaThinkingPart(content=" Well.")}
        yield "Yes."

    harness = AgentTestHarness(agent(Agent(FunctionModel(stream_function=answer), name="thinker")))
    assert chunks_of(harness, harness.send("well?").task.id) == [("Yes.", False, True)]


# ---- What the model gets


def hearing(heard: list[Any]) -> FunctionModel:
    """A model that notes the prompts that it gets."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        del info
        heard.append([part.content for one in messages for part in one.parts if isinstance(part, UserPromptPart)])
        yield "Yes."

    return FunctionModel(stream_function=answer)


@pytest.mark.parametrize(
    ("parts", "prompt"),
    [
        ([Part(text="a")], "a"),
        ([Part(text="")], ""),
        ([Part(text="a"), Part(data={"größe": 1})], 'a\n\n{"größe": 1}'),
        ([Part(raw="YQ==", media_type="text/plain"), Part(text="b")], "a\n\nb"),
        ([Part(text="a"), Part(raw="Li4u")], ["a", BinaryContent(b"...", media_type="application/octet-stream")]),
        ([Part(raw="Li4u", media_type="image/png")], [BinaryContent(b"...", media_type="image/png")]),
        ([Part(raw="", media_type="text/plain")], [BinaryContent(b"", media_type="text/plain")]),
    ],
)
def test_text_and_data_are_one_prompt_and_files_are_contents_of_their_own(parts: Any, prompt: Any) -> None:
    heard: list[Any] = []
    assert (
        AgentTestHarness(agent(Agent(hearing(heard), name="ears"), input_modes=("*/*",))).send(parts).state
        == "completed"
    )
    assert heard == [[prompt]]


def test_an_agent_without_history_gets_the_message_only() -> None:
    heard: list[Any] = []
    harness = AgentTestHarness(agent(Agent(hearing(heard), name="ears"), history=0))
    context_id = harness.send("a").task.context_id
    harness.send("b", context_id=context_id)
    harness.deploy(agent(Agent(hearing(heard), name="ears")))
    harness.send("c", context_id=context_id)
    assert heard == [["a"], ["b"], ["c"]]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("No, I need it", "I need it"),
        ("no", ToolDenied().message),
        ({"approved": False}, ToolDenied().message),
        ({"approved": False, "message": "I need it"}, "I need it"),
        ({"approved": False, "message": ""}, ToolDenied().message),
    ],
)
def test_a_denial_tells_the_model_what_the_client_has_said(answer: Any, reason: str) -> None:
    heard: list[Any] = []
    made = guarded([])

    @made.output_validator
    def note(ctx: RunContext[None], said: str) -> str:
        heard.extend(part.content for one in ctx.messages for part in one.parts if isinstance(part, ToolReturnPart))
        return said

    harness = AgentTestHarness(agent(made))
    asked = harness.send("delete a.txt")
    assert harness.send(answer, task_id=asked.task.id).state == "completed"
    assert set(heard) == {reason}


@pytest.mark.parametrize("answer", ["Yes!", " ok ", "Approved.", "TRUE", {"approved": True}])
def test_a_client_approves_a_tool_with_any_word_for_yes(answer: Any) -> None:
    done: list[str] = []
    harness = AgentTestHarness(agent(guarded(done)))
    asked = harness.send("delete a.txt")
    harness.send(answer, task_id=asked.task.id)
    assert done == ["a.txt"]


def test_a_question_shows_arguments_as_the_model_wrote_them() -> None:
    made = Agent(talker([("delete", '{"path": "größe"}', "c1")], ["Done."]), name="guard")

    @made.tool_plain(requires_approval=True)
    def delete(path: str) -> str:
        return path

    assert "größe" in AgentTestHarness(agent(made)).send("delete").said


# ---- Tools and runs


def test_ids_of_tool_calls_may_repeat() -> None:
    rolled: list[int] = []
    made = Agent(talker([("roll", "{}", "c1")], [("roll", "{}", "c1")], ["Done."]), name="dice")

    @made.tool_plain
    def roll() -> int:
        rolled.append(len(rolled) + 1)
        return rolled[-1]

    heard: list[Any] = []

    @made.output_validator
    def note(ctx: RunContext[None], said: str) -> str:
        heard.extend(part.content for one in ctx.messages for part in one.parts if isinstance(part, ToolReturnPart))
        return said

    assert AgentTestHarness(agent(made)).send("go").text("answer") == "Done."
    assert (rolled, heard[-2:]) == ([1, 2], [1, 2])


def test_each_run_has_an_id_of_its_own_which_is_the_same_in_each_run_of_the_task() -> None:
    seen: list[tuple[str | None, str | None]] = []
    made = Agent(talker([("ask", "{}", "c1")], ["Done."]), name="asker")

    @made.tool(metadata={"a2a_serverless": False})
    async def ask(ctx: RunContext[None]) -> str:
        seen.append((ctx.run_id, ctx.conversation_id))
        return (await current_task().ask("Which?")).text()

    @plain(id="both", name="Both", description="Runs twice.", skills=[])
    async def both(task: TaskContext) -> None:
        for _ in range(2):
            await run(made, task.text())

    harness = AgentTestHarness(both)
    asked = harness.send("go")
    again = harness.send("red", task_id=asked.task.id)
    assert again.state == "input-required"
    assert harness.send("green", task_id=asked.task.id).state == "completed"
    first, second = (run_id for run_id, _ in dict.fromkeys(seen))
    assert [run_id for run_id, _ in seen[-2:]] == [first, second]
    assert {conversation for _, conversation in seen} == {asked.task.context_id}


def test_a_run_gets_a_name_and_capabilities_of_its_caller() -> None:
    class Asked(AbstractCapability[Any]):
        times = 0

        async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
            del ctx
            Asked.times += 1
            return request_context

    @plain(id="clerk", name="Clerk", description="Writes.", skills=[])
    async def clerk(task: TaskContext) -> str:
        result = await run(Agent("test"), task.text(), name="writer", capabilities=[Asked()])
        return str(result.output)

    assert AgentTestHarness(clerk).send("go").said == "success (no tool calls)"
    assert Asked.times >= 1, "once in each run"


def test_a_tool_that_calls_an_agent_has_a_name_and_a_description_of_its_own() -> None:
    tools: list[tuple[str, str | None]] = []

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        del messages
        tools.extend((tool.name, tool.description) for tool in info.function_tools)
        yield "Done."

    called = [
        call_agent("echo", description="Repeats."),
        call_agent("echo", description="Says it again.", name="ask_echo"),
    ]
    made = Agent(FunctionModel(stream_function=answer), name="caller", tools=called)
    assert AgentTestHarness(agent(made)).send("go").text("answer") == "Done."
    assert tools == [("call_echo", "Repeats."), ("ask_echo", "Says it again.")]


def answered(*artifacts: Artifact, said: str = "") -> Task:
    message = Message(message_id="m", role=Role.AGENT, parts=(Part(text=said),)) if said else None
    status = TaskStatus(state=TaskState.COMPLETED, message=message)
    return Task(id="t", context_id="c", status=status, artifacts=artifacts)


def artifact(*parts: Part) -> Artifact:
    return Artifact(artifact_id="a", parts=parts)


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        (Message(message_id="m", role=Role.AGENT, parts=(Part(text="a"), Part(text="b"))), "a\n\nb"),
        (Message(message_id="m", role=Role.AGENT, parts=(Part(text="a"), Part(data={"n": 1}))), {"n": 1}),
        (answered(), ""),
        (answered(said="Done."), "Done."),
        (answered(artifact(Part(text="a")), said="Done."), "a"),
        (answered(artifact(Part(data=0))), 0),
        (answered(artifact(Part(text="a")), artifact(Part(data=[1]))), ["a", [1]]),
    ],
)
def test_an_answer_of_another_agent_is_its_message_or_its_artifacts(answer: Task | Message, content: Any) -> None:
    assert content_of(answer) == content


def test_tools_of_a_toolset_that_is_made_in_each_step_are_steps() -> None:
    made_for: list[int] = []

    async def look() -> str:
        return "seen"

    def make(ctx: RunContext[None]) -> FunctionToolset[None]:
        made_for.append(ctx.run_step)
        return FunctionToolset([look], id="eyes")

    made = Agent(talker([("look", "{}", "c1")], ["Done."]), name="looker", toolsets=[DynamicToolset(make, id="all")])
    assert AgentTestHarness(agent(made)).send("go").text("answer") == "Done."


def test_tool_calls_are_spans_of_their_tools() -> None:
    made = Agent(talker([("look", "{}", "c1")], ["Done."]), name="looker")

    @made.tool_plain
    def look() -> str:
        return "seen"

    assert names_of_spans(agent(made)) == ["step looker__model", "execute_tool look", "step looker__model#2"]


# ---- Usage


@pytest.mark.parametrize(
    ("used", "amounts"),
    [
        (RequestUsage(input_tokens=7, output_tokens=5), {"input_tokens": 7, "output_tokens": 5}),
        (RequestUsage(input_tokens=7, cache_read_tokens=2), {"input_tokens": 5, "cache_read_tokens": 2}),
        (RequestUsage(input_tokens=7, cache_write_tokens=2), {"input_tokens": 5, "cache_write_tokens": 2}),
        (RequestUsage(input_tokens=7, cache_read_tokens=8), {"input_tokens": 0, "cache_read_tokens": 8}),
        (RequestUsage(output_tokens=5, details={"thoughts": 3}), {"output_tokens": 5}),
    ],
)
def test_usage_counts_each_token_once(used: RequestUsage, amounts: dict[str, int]) -> None:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del messages, info
        return ModelResponse([TextPart("Hello!")], usage=used)

    made = agent(Agent(FunctionModel(answer), name="greeter"), streaming=False)
    usage: Any = (AgentTestHarness(made).send("hi").task.metadata or {})["a2a-serverless/usage"]
    assert [*usage.values()] == [{"requests": 1, **amounts}]


# ---- The history


class Conversation:
    """A conversation's store of one value."""

    def __init__(self) -> None:
        self.value: Any = None

    async def get(self, key: str) -> StoredValue | None:
        return None if self.value is None else StoredValue(key, self.value, "1")

    async def put(self, key: str, value: Any, *, version: str) -> None:
        del key, version
        self.value = value


def turn_of(characters: int, task_id: str) -> list[Any]:
    """The messages of a turn that is stored in so many characters of JSON."""
    empty = json.dumps({"task": task_id, "messages": [""]})
    return ["x" * (characters - len(empty))]


@pytest.mark.parametrize(("characters", "turns"), [(200_000, 2), (200_001, 1)])
def test_a_history_of_300_000_characters_is_kept(characters: int, turns: int) -> None:
    conversation = Conversation()
    for task_id, size in (("t1", 100_000), ("t2", characters)):
        task: Any = SimpleNamespace(id=task_id, conversation=conversation)
        asyncio.run(save_turn(task, "chat", turn_of(size, task_id), 40))
    later: Any = SimpleNamespace(id="t3", conversation=conversation)
    assert len(asyncio.run(load_history(later, "chat"))) == turns


def test_a_task_that_stores_its_turn_again_has_one_turn() -> None:
    conversation = Conversation()
    task: Any = SimpleNamespace(id="t1", conversation=conversation)
    for _ in range(2):
        asyncio.run(save_turn(task, "chat", ["mine"], 40))
    assert [turn["messages"] for turn in conversation.value] == [["mine"]]
    assert asyncio.run(load_history(task, "chat")) == []
