"""What a client, a model, a node and the store get of a LangGraph graph."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, replace
from operator import add
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed here: make frameworks")

import httpx
from langchain_core.language_models import LLM, GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult, GenerationChunk
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.func import entrypoint
from langgraph.func import task as graph_task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime  # noqa: TC002 - LangGraph reads the annotations of nodes
from langgraph.types import Send, interrupt

from a2a_serverless import Budget, BudgetExceeded, Part, Skill, TaskContext, current_task
from a2a_serverless.domain.values import ValueScope
from a2a_serverless.testing import CLIENT, AgentTestHarness, Deadlock
from a2a_serverless_frameworks.langgraph import SIZE_LIMIT, agent, answer_of
from tests.echo import agent_of
from tests.frameworks.kills import Played, Scenario, kill_everywhere
from tests.frameworks.observed import Chunk, chunks_of
from tests.frameworks.test_langgraph import model_of
from tests.frameworks.warm import ask_model, assert_two_tasks_end_well
from tests.world import World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from a2a_serverless import Agent


class Notes(TypedDict, total=False):
    notes: Annotated[list[str], add]
    place: int


async def no_notes(task: TaskContext) -> Notes:
    del task
    return {"notes": []}


def join(values: Any) -> str:
    return ", ".join(values["notes"])


def graph_of(state: Any = MessagesState, **nodes: Any) -> Any:
    """A graph whose nodes follow one another."""
    graph, before = StateGraph(state), START
    for name, node in nodes.items():
        graph.add_node(name, node)
        graph.add_edge(before, name)
        before = name
    return graph


def noting(graph: Any, **options: Any) -> Agent:
    """An agent whose answer is the notes of its graph."""
    return agent(graph, id="notes", read_input=no_notes, write_answer=join, **options)


def thinking(*models: Any) -> Any:
    """A node that calls models one after the other."""

    async def think(state: Any) -> Any:
        del state
        return {"notes": [(await model.ainvoke("go")).text for model in models]}

    return think


# ---- The card


def test_the_card_has_what_is_given_or_else_what_the_id_says() -> None:
    graph = graph_of(talk=lambda _: {})
    made = agent(graph, id="chat")
    assert (made.id, made.name, made.description) == ("chat", "chat", "chat")
    assert made.skills == (Skill("chat", "chat", "chat", ("chat",)),)
    named = agent(graph, id="chat", name="Chat", version="2.0.0")
    assert (named.name, named.description, named.version) == ("Chat", "Chat", "2.0.0")
    described = agent(graph, id="chat", name="Chat", description="Talks.")
    assert (described.name, described.description) == ("Chat", "Talks.")
    assert described.skills == (Skill("chat", "Chat", "Talks.", ("chat",)),)
    skills = [Skill("talk", "Talk", "Talks.", ("chat",))]
    assert agent(graph, id="chat", skills=skills).skills == tuple(skills)


# ---- Input and answer


@pytest.mark.parametrize(
    ("parts", "content"),
    [
        ([Part(text="a")], "a"),
        ([Part(text="")], ""),
        ([Part(data={"größe": 1})], '{"größe": 1}'),
        ([Part(text="a"), Part(text="b")], [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        ([Part(raw="Li4u", media_type="image/png")], [{"type": "image", "base64": "Li4u", "mime_type": "image/png"}]),
        ([Part(raw="Li4u", media_type="audio/wav")], [{"type": "audio", "base64": "Li4u", "mime_type": "audio/wav"}]),
        ([Part(raw="Li4u", media_type="video/mp4")], [{"type": "video", "base64": "Li4u", "mime_type": "video/mp4"}]),
        ([Part(raw="Li4u")], [{"type": "file", "base64": "Li4u", "mime_type": "application/octet-stream"}]),
    ],
)
def test_a_message_is_a_text_or_content_blocks(parts: list[Part], content: Any) -> None:
    seen: list[Any] = []

    def keep(state: MessagesState) -> Any:
        seen.extend(state["messages"])
        return {}

    keeper = agent(graph_of(keep=keep), id="keeper", input_modes=("*/*",))
    assert AgentTestHarness(keeper).send(parts).state == "completed"
    assert [message.content for message in seen] == [content]


@pytest.mark.parametrize(("said", "given"), [({"n": 1}, {"n": 1}), ("hello", "hello"), ([Part(data=0)], 0)])
def test_a_graph_without_messages_gets_the_data_or_else_the_text(said: Any, given: Any) -> None:
    seen: list[Any] = []

    @entrypoint()
    async def flow(value: Any) -> Any:
        seen.append(value)
        return value

    message = AgentTestHarness(agent(flow, id="flow")).send(said).task.status.message
    assert message
    assert (seen, message.data()) == ([given], given)


@dataclass
class Coat:
    colour: str


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        ("done", [Part(data="done")]),
        ({"n": 1, "bad": math.inf, "other": object}, [Part(data={"n": 1, "bad": None, "other": str(object)})]),
        ({"messages": []}, None),
        ({"messages": [AIMessage("a"), AIMessage("b")]}, "b"),
        ({"messages": [AIMessage("a"), HumanMessage("b")]}, None),
        ({"messages": [AIMessage("")]}, None),
        ({"messages": [AIMessage("a")], "structured_response": Coat("red")}, [Part(data={"colour": "red"})]),
        ({"messages": [AIMessage("a")], "structured_response": None}, "a"),
    ],
)
def test_the_answer_is_the_structured_response_or_the_last_message_or_all_values(values: Any, answer: Any) -> None:
    assert answer_of(values) == answer


def test_a_graph_gets_its_run_time_context_in_each_run_of_the_task() -> None:
    def ask(state: Notes, runtime: Runtime[Any]) -> Notes:
        del state
        return {"notes": [f"{runtime.context['owner']} {interrupt('Which?')}"]}

    made = noting(graph_of(Notes, ask=ask), context=lambda task: {"owner": task.caller.owner})
    harness = AgentTestHarness(made)
    asked = harness.send("go")
    assert harness.send("red", task_id=asked.task.id).said == "client red"


def test_a_plain_function_of_a_graph_that_waits_for_what_never_comes_is_named() -> None:
    @graph_task()
    async def hang(_: Any) -> None:
        await asyncio.get_running_loop().create_future()

    @entrypoint()
    def flow(value: Any) -> Any:
        return hang(value).result()

    with pytest.raises(Deadlock) as raised:
        AgentTestHarness(agent(flow, id="flow")).send({"n": 1})
    assert "hang: await asyncio.get_running_loop().create_future()" in str(raised.value)
    assert "return hang(value).result()" in str(raised.value)


def test_a_plain_function_of_a_graph_may_wait_for_its_tasks() -> None:
    @graph_task()
    async def double(number: int) -> int:
        await asyncio.sleep(600)
        return 2 * number

    @entrypoint()
    def flow(value: Any) -> Any:
        return {"twice": double(value["n"]).result()}

    message = AgentTestHarness(agent(flow, id="flow")).send({"n": 1}).task.status.message
    assert message
    assert message.data() == {"twice": 2}


# ---- What models say


def joined(chunks: list[Chunk]) -> tuple[str, bool]:
    """The text of the chunks, and whether they are the chunks of one text in at least three parts."""
    flags = [(chunk.append, chunk.last) for chunk in chunks]
    whole = [(False, False), *[(True, False)] * (len(chunks) - 2), (True, True)]
    return "".join(chunk.content for chunk in chunks), len(chunks) > 2 and flags == whole


def test_a_model_in_a_node_and_in_a_graph_that_is_a_node_says_its_words_one_after_the_other() -> None:
    inner = graph_of(Notes, think=thinking(model_of("one two three", pause_s=5))).compile()
    graph = graph_of(Notes, talk=thinking(model_of("four five six", pause_s=5)), team=inner)
    harness = AgentTestHarness(noting(graph))
    task_id = harness.send("go").task.id
    assert joined(chunks_of(harness, task_id, "talk@1")) == ("four five six", True)
    assert joined(chunks_of(harness, task_id, "team@2/think@1")) == ("one two three", True)


def test_an_answer_of_a_model_without_streaming_is_one_chunk() -> None:
    class Whole(GenericFakeChatModel):
        disable_streaming: bool = True

    harness = AgentTestHarness(noting(graph_of(Notes, talk=thinking(Whole(messages=iter(["all at once"]))))))
    assert chunks_of(harness, harness.send("go").task.id, "talk@1") == [("all at once", False, True)]


def test_an_answer_of_a_model_in_a_synchronous_step_is_one_chunk() -> None:
    async def talk(state: Notes) -> Notes:
        del state
        return {"notes": [await current_task().step("think", lambda: model_of("one two three").invoke("x").text)]}

    harness = AgentTestHarness(noting(graph_of(Notes, talk=talk)))
    assert chunks_of(harness, harness.send("go").task.id, "talk@1/think") == [("one two three", False, True)]


def test_artifacts_are_named_after_the_node_the_step_the_send_and_their_number() -> None:
    graph = StateGraph(Notes)
    graph.add_node("plan", thinking(model_of("a"), model_of("-").with_config(tags=["nostream"]), model_of("b")))
    graph.add_node("work", thinking(model_of("c"), model_of("d"), model_of("e")))
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", lambda _: [Send("work", {"place": 0})], ["work"])
    reply = AgentTestHarness(noting(graph)).send("go")
    assert {name: artifact.text() for name, artifact in reply.artifacts.items()} == {
        "plan@1": "a",
        "plan@1.2": "b",
        "work@2[0]": "c",
        "work@2[0].2": "d",
        "work@2[0].3": "e",
    }


def test_an_answer_of_a_model_in_an_async_step_comes_in_chunks() -> None:
    async def think() -> str:
        return str((await model_of("one two three", pause_s=5).ainvoke("go")).text)

    async def talk(state: Notes) -> Notes:
        del state
        return {"notes": [await current_task().step("think", think)]}

    harness = AgentTestHarness(noting(graph_of(Notes, talk=talk)))
    assert joined(chunks_of(harness, harness.send("go").task.id, "talk@1/think")) == ("one two three", True)


def test_artifacts_of_several_graphs_that_a_node_calls_have_names_of_their_own() -> None:
    inner = [graph_of(Notes, write=thinking(model_of(word))).compile() for word in ("a", "b", "c")]

    async def call(state: Notes) -> Notes:
        del state
        return {"notes": [note for one in inner for note in (await one.ainvoke({"notes": []}))["notes"]]}

    reply = AgentTestHarness(noting(graph_of(Notes, call=call))).send("go")
    assert {name: artifact.text() for name, artifact in reply.artifacts.items()} == {
        "call@1/write@1": "a",
        "call@1.2/write@1": "b",
        "call@1.3/write@1": "c",
    }


class Breaking(GenericFakeChatModel):
    """Says a few words, and breaks off."""

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        del args, kwargs
        for word in ("I ", "thi"):
            await asyncio.sleep(5)
            yield ChatGenerationChunk(message=AIMessageChunk(word))
        raise ConnectionError("broken")


def breaking() -> Breaking:
    return Breaking(messages=iter([]))


def test_a_model_in_the_place_of_one_that_broke_off_replaces_what_that_one_had_said() -> None:
    model = breaking().with_fallbacks([model_of("I think so")])
    reply = AgentTestHarness(noting(graph_of(Notes, talk=thinking(model, model_of("Yes"))))).send("go")
    assert reply.said == "I think so, Yes"
    said = {name: artifact.text() for name, artifact in reply.artifacts.items()}
    assert said == {"talk@1": "I think so", "talk@1.2": "Yes"}


def test_a_silent_model_that_broke_off_takes_no_name() -> None:
    silent = breaking().with_config(tags=["nostream"]).with_fallbacks([model_of("a")])
    reply = AgentTestHarness(noting(graph_of(Notes, talk=thinking(silent, model_of("b"), model_of("c"))))).send("go")
    said = {name: artifact.text() for name, artifact in reply.artifacts.items()}
    assert said == {"talk@1": "a", "talk@1.2": "b", "talk@1.3": "c"}


class Completions(LLM):
    """A model that is no chat model: it continues a text, or fails."""

    fails: bool = False

    @property
    def _llm_type(self) -> str:
        return "completions"

    def _call(self, prompt: str, *_: Any, **__: Any) -> str:
        if self.fails:
            raise ConnectionError("broken")
        return f"{prompt} on"

    async def _astream(self, prompt: str, *_: Any, run_manager: Any = None, **__: Any) -> AsyncIterator[Any]:
        del run_manager
        if self.fails:
            raise ConnectionError("broken")
        for word in (prompt, " on"):
            yield GenerationChunk(text=word)


def test_a_model_that_is_no_chat_model_says_nothing_to_the_client() -> None:
    async def talk(state: Notes) -> Notes:
        del state
        model = Completions(fails=True).with_fallbacks([Completions()])
        return {"notes": [await model.ainvoke("go"), "".join([word async for word in Completions().astream("come")])]}

    reply = AgentTestHarness(noting(graph_of(Notes, talk=talk))).send("go")
    assert (reply.error, reply.said, reply.artifacts) == (None, "go on, come on", {})


def test_a_graph_uses_no_time_while_it_waits_for_an_agent_after_a_broken_model() -> None:
    async def slow(task: TaskContext) -> str:
        await asyncio.sleep(600)
        return task.text()

    async def talk(state: Notes) -> Notes:
        del state
        await current_task().step("think", think)
        with pytest.raises(ConnectionError):
            await breaking().ainvoke("go")
        await current_task().call("ask", "slow", "why")
        return {"notes": ["called"]}

    async def think() -> str:
        return str((await model_of("a thought").ainvoke("go")).text)

    harness = AgentTestHarness(noting(graph_of(Notes, talk=talk)), agent_of(slow, "slow"))
    reply = harness.send("go")
    assert (reply.error, reply.said) == (None, "called")
    assert (reply.text("talk@1"), chunks_of(harness, reply.task.id, "talk@1")[-1].last) == ("I thi", True)
    own = [end - began for task_id, began, end in harness.runs if task_id == reply.task.id]
    assert len(own) == 2
    assert sum(own) < 60_000


def test_a_node_that_fails_beside_one_whose_model_speaks_fails_the_task() -> None:
    async def fail(state: Notes) -> Notes:
        del state
        await asyncio.sleep(12)
        raise ZeroDivisionError

    graph = StateGraph(Notes)
    for name, node in {"talk": thinking(model_of("word " * 50, pause_s=5)), "fail": fail}.items():
        graph.add_node(name, node)
        graph.add_edge(START, name)
    harness = AgentTestHarness(noting(graph))
    reply = harness.send("go")
    assert (reply.state, type(reply.error)) == ("failed", ZeroDivisionError)
    assert len(harness.runs) == 1
    assert harness.runs[0][2] - harness.runs[0][1] < 60_000


def test_a_death_after_a_node_has_failed_changes_nothing() -> None:
    def fail(state: Notes) -> Notes:
        raise ZeroDivisionError(state)

    def check(played: Played) -> None:
        assert played.task.status.state == "failed"

    scenario = Scenario(lambda _: noting(graph_of(Notes, plan=lambda _: {"notes": ["a"]}, fail=fail)), str)
    assert kill_everywhere(scenario, check).wrong == []


def test_a_model_that_waits_for_its_provider_is_not_interrupted_by_another_agent_s_call() -> None:
    harness: AgentTestHarness
    paid: list[str] = []

    class Remote(GenericFakeChatModel):
        async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
            del args, kwargs
            paid.append("model")
            loop, response = asyncio.get_running_loop(), asyncio.Event()
            harness.at(harness.now + 20_000, lambda: loop.call_soon_threadsafe(response.set))
            await response.wait()
            yield ChatGenerationChunk(message=AIMessageChunk("Yes"))

    async def slow(task: TaskContext) -> str:
        await asyncio.sleep(600)
        return task.text()

    async def call(state: Notes) -> Notes:
        del state
        await current_task().call("ask", "slow", "why")
        return {"notes": ["called"]}

    graph = StateGraph(Notes)
    for name, node in {"call": call, "think": thinking(Remote(messages=iter([])))}.items():
        graph.add_node(name, node)
        graph.add_edge(START, name)
    harness = AgentTestHarness(noting(graph), agent_of(slow, "slow"))
    assert harness.send("go").said == "called, Yes"
    assert paid == ["model"]


# ---- Usage


class Counted(GenericFakeChatModel):
    """Says a message with its metadata. ``model`` is its name, as LangChain knows it."""

    disable_streaming: bool = True
    model: str = ""


USED: Any = {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8}


@pytest.mark.parametrize(
    ("model", "metadata", "name"),
    [("m", {"model_name": "n"}, "n"), ("m", {}, "m"), ("", {}, "unknown")],
)
def test_usage_is_known_by_the_model_of_the_response_or_by_that_of_the_request(
    model: str, metadata: dict[str, Any], name: str
) -> None:
    messages = [AIMessage("a", usage_metadata=USED, response_metadata=metadata) for _ in range(2)]
    made = noting(graph_of(Notes, talk=thinking(*[Counted(messages=iter([one]), model=model) for one in messages])))
    task = AgentTestHarness(made).send("go").task
    assert task.metadata == {"a2a-serverless/usage": {name: {"input_tokens": 6, "output_tokens": 10}}}


def test_a_model_that_does_not_tell_its_usage_has_none() -> None:
    task = AgentTestHarness(noting(graph_of(Notes, talk=thinking(model_of("a"))))).send("go").task
    assert task.metadata is None


# ---- Questions


def asking(*values: Any) -> Any:
    """A graph whose nodes ask at the same time."""
    graph = StateGraph(Notes)
    for place, value in enumerate(values):
        graph.add_node(f"ask {place}", lambda _, value=value: {"notes": [f"{interrupt(value)}"]})
        graph.add_edge(START, f"ask {place}")
    return graph


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("Which?", {"text": "Which?"}),
        ({"größe": [1, 2]}, {"data": {"größe": [1, 2]}}),
        ({"worst": math.nan}, {"data": {"worst": None}}),
    ],
)
def test_a_question_is_a_text_or_data_and_names_its_interrupt(value: Any, part: dict[str, Any]) -> None:
    asked = AgentTestHarness(noting(asking(value))).send("go")
    assert asked.task.status.message
    (shown,) = asked.task.status.message.parts
    assert {"text": shown.text} if shown.text else {"data": shown.value} == part
    assert (shown.metadata or {}).keys() == {"interrupt"}


@pytest.mark.parametrize(
    ("answer", "said"), [("yes", "yes"), ({}, "{}"), ({"n": 1}, "{'n': 1}"), ([Part(data=[1])], "[1]")]
)
def test_an_answer_is_its_data_or_else_its_text(answer: Any, said: str) -> None:
    harness = AgentTestHarness(noting(asking("Which?")))
    asked = harness.send("go")
    assert harness.send(answer, task_id=asked.task.id).said == said


def test_of_several_questions_any_may_be_answered_first_by_its_id() -> None:
    harness = AgentTestHarness(noting(asking("First?", "Second?", "Third?")))
    asked = harness.send("go")
    assert asked.task.status.message
    ids = [(part.metadata or {})["interrupt"] for part in asked.task.status.message.parts]
    some: Any = {ids[1]: "2"}
    again = harness.send(some, task_id=asked.task.id)
    assert again.said == "First?\n\nThird?"
    others: Any = {ids[2]: "3", ids[0]: "1"}
    assert harness.send(others, task_id=asked.task.id).said == "1, 2, 3"


def test_a_node_is_executed_once_before_its_answer_and_once_after_it() -> None:
    executed: list[str] = []

    def ask(state: Notes) -> Notes:
        del state
        executed.append("asked")
        return {"notes": [interrupt("Which?")]}

    harness = AgentTestHarness(noting(graph_of(Notes, ask=ask)), replay=False)  # counts executions
    asked = harness.send("go")
    assert harness.send("red", task_id=asked.task.id).said == "red"
    assert len(executed) == 2


# ---- What is stored


class Secret(JsonPlusSerializer):
    """Stores nothing that can be read, in at least ``size`` bytes."""

    def __init__(self, size: int = 0) -> None:
        super().__init__()
        self._size = size

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = super().dumps_typed(obj)
        data = len(data).to_bytes(4, "big") + bytes(255 - byte for byte in data)
        return kind, data.ljust(self._size, b"\0")

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, stored = data
        length = int.from_bytes(stored[:4], "big")
        return super().loads_typed((kind, bytes(255 - byte for byte in stored[4 : 4 + length])))


def test_a_serializer_of_the_author_s_writes_and_reads_all_that_is_stored() -> None:
    def ask(state: Notes) -> Notes:
        return {"notes": [f"{state['notes']} {interrupt('Which?')}"]}

    graph = graph_of(Notes, think=lambda _: {"notes": ["confidential"]}, ask=ask)
    harness = AgentTestHarness(noting(graph, serde=Secret()))
    asked = harness.send("go")
    stored = harness.table.list_values(ValueScope(CLIENT.key(asked.task.id)), "langgraph/", "", 100)
    assert stored
    steps = dict(harness.table.read_steps(CLIENT.key(asked.task.id)))
    assert "confidential" not in str(stored) + str(steps)
    assert harness.send("red", task_id=asked.task.id).said == "confidential, ['confidential'] red"


@pytest.mark.parametrize(("size", "state"), [(SIZE_LIMIT - 1000, "completed"), (SIZE_LIMIT + 1, "failed")])
def test_at_most_four_mebibytes_are_stored(size: int, state: str) -> None:
    made = noting(graph_of(Notes, think=lambda _: {"notes": ["a"]}), serde=Secret(size))
    assert AgentTestHarness(made).send("go").state == state


def test_a_graph_in_a_thread_whose_state_is_too_large_fails_the_task() -> None:
    inner = graph_of(Notes, grow=lambda _: {"notes": ["x" * SIZE_LIMIT]}).compile()
    outer = graph_of(Notes, work=lambda state: {"notes": [f"{len(inner.invoke(state))}"]}, end=lambda _: {})
    reply = AgentTestHarness(noting(outer)).send("go")
    assert reply.state == "failed"
    assert "are stored" in reply.said


def test_a_graph_that_keeps_its_own_state_has_it_in_the_next_task_of_the_conversation() -> None:
    inner = graph_of(Notes, count=lambda state: {"notes": [f"{len(state.get('notes', []))}"]})
    lasting = inner.compile(checkpointer=True)
    graph = graph_of(count=lambda _: {"messages": [AIMessage(lasting.invoke({"notes": []})["notes"][-1])]})
    harness = AgentTestHarness(agent(graph, id="counter"))
    first = harness.send("one")
    assert first.said == "0"
    assert harness.send("two", context_id=first.task.context_id).said == "1"


def test_a_node_that_fails_in_a_run_that_was_overtaken_is_no_error() -> None:
    world: World
    errors: list[Any] = []
    tries = iter(["first", "second"])
    overtaken = asyncio.Event()

    async def talk(state: Notes) -> Notes:
        del state
        text = next(tries)
        if text == "first":
            world.elsewhere(120_000)
            overtaken.set()
        return {"notes": [text]}

    async def fail(state: Notes) -> Notes:
        del state
        await asyncio.sleep(1)
        if overtaken.is_set():
            raise ZeroDivisionError
        return {"notes": []}

    graph = StateGraph(Notes)
    for name, node in {"talk": talk, "fail": fail}.items():
        graph.add_node(name, node)
        graph.add_edge(START, name)
    world = World([noting(graph)])
    world.engine = replace(world.engine, on_error=lambda *error: errors.append(error))
    task = world.send("go", push=False, agent="notes")
    world.settle()
    message = world.get(task.id, "notes").status.message
    assert message
    assert (message.text(), errors) == ("second", [])


# ---- Clients


@pytest.mark.enable_socket
def test_a_client_whose_connections_stay_open_works_in_the_next_task_of_the_process() -> None:
    def make(url: str) -> Agent:
        client = httpx.AsyncClient()

        class Served(GenericFakeChatModel):
            disable_streaming: bool = True

            async def _agenerate(self, *_: Any, **__: Any) -> ChatResult:
                return ChatResult(generations=[ChatGeneration(message=AIMessage(await ask_model(client, url)))])

        return noting(graph_of(Notes, think=thinking(Served(messages=iter([])))))

    assert_two_tasks_end_well(make)


# ---- Graphs inside


@pytest.mark.parametrize("way", ["a node", "called in a node", "called in a thread"])
def test_the_models_of_a_graph_inside_are_paid_and_counted_once_and_its_question_reaches_the_client(way: str) -> None:
    paid: list[str] = []
    harness = AgentTestHarness(noting(around(way, paid)))
    asked = harness.send("go")
    assert (asked.error, asked.said) == (None, "May I?")
    reply = harness.send("yes", task_id=asked.task.id)
    assert (reply.error, paid) == (None, ["inner", "outer"])
    assert reply.said.endswith("inner: yes, outer")
    assert reply.task.metadata == {"a2a-serverless/usage": {"m": {"input_tokens": 6, "output_tokens": 10}}}


@pytest.mark.parametrize("way", ["a node", "called in a node", "called in a thread"])
def test_the_models_of_a_graph_inside_are_in_the_budget(way: str) -> None:
    reply = AgentTestHarness(noting(around(way, []), budget=Budget(tokens=8))).send("go")
    assert (reply.state, type(reply.error)) == ("failed", BudgetExceeded)


def around(way: str, paid: list[str]) -> Any:
    """A graph that asks a model, and then its client, inside of another one that then asks a model."""

    class Paid(GenericFakeChatModel):
        disable_streaming: bool = True

        def _generate(self, *arguments: Any, **options: Any) -> Any:
            result = super()._generate(*arguments, **options)
            paid.append(str(result.generations[0].message.content))
            return result

    def model(name: str) -> Paid:
        used: Any = {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8}
        said = AIMessage(name, usage_metadata=used, response_metadata={"model_name": "m"})
        return Paid(messages=iter([said]))

    def ask(state: Notes) -> Notes:
        return {"notes": [f"{state['notes'][-1]}: {interrupt('May I?')}"]}

    inner = graph_of(Notes, think=thinking(model("inner")), ask=ask).compile()
    if way == "called in a thread":
        plain = model("inner")
        inner = graph_of(Notes, think=lambda _: {"notes": [plain.invoke("go").text]}, ask=ask).compile()

    async def call(state: Notes) -> Notes:
        return {"notes": (await inner.ainvoke(state))["notes"][-1:]}

    def call_in_thread(state: Notes) -> Notes:
        return {"notes": inner.invoke(state)["notes"][-1:]}

    nodes = {"a node": inner, "called in a node": call, "called in a thread": call_in_thread}
    return graph_of(Notes, inner=nodes[way], outer=thinking(model("outer")))


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
def test_an_answer_that_is_null_or_empty_stays_what_it_is(value: Any) -> None:
    harness = AgentTestHarness(noting(graph_of(Notes, ask=lambda _: {"notes": [repr(interrupt("Which?"))]})))
    asked = harness.send("go")
    assert harness.send([Part(data=value)], task_id=asked.task.id).said == repr(value)
    asked = harness.send("go")
    message = asked.task.status.message
    assert message
    identity = str((message.parts[0].metadata or {})["interrupt"])
    assert harness.send([Part(data={identity: value})], task_id=asked.task.id).said == repr(value)
