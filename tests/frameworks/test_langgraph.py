"""LangGraph graphs through LangGraph's own loop, with fake chat models."""

from __future__ import annotations

import asyncio
import os
from operator import add
from random import Random
from runpy import run_path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed here: make frameworks")

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool
from langgraph.config import get_config, get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.store.memory import InMemoryStore
from langgraph.types import RetryPolicy, Send, interrupt
from pydantic import BaseModel

from a2a_serverless import Part, Task, current_task
from a2a_serverless.agent_loader import by_id
from a2a_serverless.domain.values import ValueScope
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.langgraph import agent
from tests.echo import agent_of
from tests.frameworks.kills import Ledger, Played, Scenario, assert_one_answer, kill_at_random, kill_everywhere
from tests.frameworks.observed import chunks_of
from tests.frameworks.pages import names_of, page_tests, run_example
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from a2a_serverless import Agent, TaskContext

SEEDS = range(int(os.environ.get("SEEDS", "1")))


class SlowModel(GenericFakeChatModel):
    """Streams its messages with a pause before each token."""

    pause_s: float = 0.1

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        del run_manager
        for chunk in self._stream(messages, stop=stop, **kwargs):
            await asyncio.sleep(self.pause_s)
            yield chunk


def own_task() -> str:
    """LangGraph's id of the node's task that the caller runs in."""
    return str(get_config()["metadata"]["langgraph_checkpoint_ns"]).rpartition(":")[2]


def model_of(*messages: AIMessage | str, pause_s: float = 0.1) -> SlowModel:
    return SlowModel(messages=iter(messages), pause_s=pause_s)


class CrewState(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    notes: Annotated[list[str], add]
    part: int


class Coat(BaseModel):
    colour: str


class TailorState(MessagesState):
    structured_response: Coat


class Number(TypedDict):
    n: int


@tool
def look(price: int) -> str:
    """Looks at a price."""
    return f"seen {price}"


@tool
def stumble() -> str:
    """Fails."""
    raise ValueError("no such shop")


class Crew:
    """Plans, then works in parallel: equal nodes, tools, a subgraph and a step of its own; asks; then writes.

    A model says something else each time that it is called.
    """

    def __init__(self, ledger: Ledger, seed: int) -> None:
        self.chance = Random(seed)  # noqa: S311 - a seed, not a secret
        self.ledger = ledger
        self.workers, self.tools = self.chance.randint(1, 3), self.chance.choice([0, 2])
        self.waiters, self.inner_asks = self.chance.randint(0, 2), self.chance.random() < 0.5
        self.own_step, self.pause_s = self.chance.random() < 0.5, self.chance.choice([0, 0.1, 0.4])

    @property
    def answers(self) -> list[str]:
        return [*(["yes", "sure"] if self.inner_asks else []), *["fine"] * self.waiters]

    def say(self, what: str, paid: str) -> Iterator[str]:
        tried = self.ledger.pay(paid)
        yield f"{what} {tried} " + " ".join(f"word{number}" for number in range(self.chance.randint(1, 5) + tried))

    async def call(self, what: str, paid: str | None = None, **calls: Any) -> AIMessage:
        said = self.say(what, paid or f"node/{own_task()}/0")
        reply = await SlowModel(messages=said, pause_s=self.pause_s).ainvoke("go")
        return AIMessage(reply.text, id=reply.id, **calls)

    async def plan(self, state: CrewState) -> CrewState:
        del state
        calls = [{"name": "look", "args": {"price": 1}, "id": "1"}, {"name": "stumble", "args": {}, "id": "2"}]
        return {"messages": [await self.call("plan", tool_calls=calls[: self.tools])]}

    def fan_out(self, state: CrewState) -> list[Any]:
        del state
        ways = [Send("work", {"part": part}) for part in range(self.workers)]
        return [*ways, *(["tools"] if self.tools else []), "team", "alone"]

    async def work(self, state: CrewState) -> CrewState:
        return {"notes": [(await self.call(f"work {state['part']}")).text]}

    async def alone(self, state: CrewState) -> CrewState:
        del state
        thought = await current_task().step("think", self.think) if self.own_step else await self.think()
        return {"notes": [thought]}

    async def think(self) -> str:
        return str((await self.call("think", "think" if self.own_step else None)).text)

    async def member(self, state: CrewState) -> CrewState:
        del state
        return {"notes": [(await self.call("member")).text]}

    def confirm(self, state: CrewState) -> CrewState:
        del state
        if not self.inner_asks:
            return {}
        return {"notes": [f"{interrupt('Shall the team go on?')} and {interrupt('Really?')}"]}

    def wait(self, state: CrewState) -> CrewState:
        return {"notes": [f"{state['part']} is {interrupt({'approve': state['part']})}"]}

    def to_waiters(self, state: CrewState) -> list[Any]:
        del state
        return [Send("wait", {"part": part}) for part in range(self.waiters)] or ["write"]

    async def write(self, state: CrewState) -> CrewState:
        del state
        return {"messages": [await self.call("write")]}

    def team(self) -> Any:
        graph = StateGraph(CrewState)
        graph.add_node("member", self.member)
        graph.add_node("confirm", self.confirm)
        graph.add_edge(START, "member")
        graph.add_edge("member", "confirm")
        return graph.compile()

    def agent(self) -> Agent:
        graph = StateGraph(CrewState)
        nodes = {"plan": self.plan, "work": self.work, "alone": self.alone, "wait": self.wait, "write": self.write}
        for name, node in {**nodes, "team": self.team(), "gather": lambda _: {}}.items():
            graph.add_node(name, node)
        graph.add_node("tools", ToolNode([look, stumble], handle_tool_errors=True))
        graph.add_edge(START, "plan")
        graph.add_conditional_edges("plan", self.fan_out, ["work", "tools", "team", "alone"])
        graph.add_edge(["work", "team", "alone", *(["tools"] if self.tools else [])], "gather")
        graph.add_conditional_edges("gather", self.to_waiters, ["wait", "write"])
        graph.add_edge("wait", "write")
        graph.add_edge("write", END)
        return agent(graph, id="crew", write_answer=lambda values: [Part(data=answer(values))])


def answer(values: Any) -> dict[str, list[str]]:
    replies = [message.text for message in values["messages"] if isinstance(message, AIMessage)]
    return {"replies": [*replies, *values["notes"]], "tools": [m.text for m in values["messages"] if m.type == "tool"]}


def crew_scenario(seed: int) -> Scenario:
    return Scenario(lambda ledger: Crew(ledger, seed).agent(), str, Crew(Ledger(str), seed).answers)


def check_crew(played: Played) -> None:
    """One answer, which every artifact agrees with, word for word."""
    assert_one_answer(played)
    message = played.task.status.message
    assert message is not None
    data: Any = message.data()
    told = sorted(reply for reply in data["replies"] if "word" in reply)
    assert sorted(artifact.text() for artifact in played.task.artifacts) == told
    last = {event.artifact.artifact_id: event.last_chunk for event in played.events if hasattr(event, "artifact")}
    assert all(last.values()), last


@pytest.mark.parametrize("seed", SEEDS)
def test_rule_07_a_graph_that_is_killed_anywhere_pays_for_nothing_twice_and_gives_one_whole_answer(seed: int) -> None:
    report = kill_everywhere(crew_scenario(seed), check_crew)
    print(f"seed {seed}: {report.kills.total()} kills, {len(report.wrong)} wrong")
    assert not report.wrong, "\n".join(report.wrong[:10])


@pytest.mark.parametrize("seed", SEEDS)
def test_rule_07_a_graph_that_is_killed_two_or_three_times_pays_for_nothing_twice(seed: int) -> None:
    report = kill_at_random(crew_scenario(seed), check_crew, seed)
    assert not report.wrong, "\n".join(report.wrong[:10])


def payer(ledger: Ledger) -> Agent:
    """Some nodes speak at once, then a node pays in a step of its own."""

    async def talk(state: CrewState) -> CrewState:
        del state
        return {"notes": [(await model_of("a word", pause_s=0).ainvoke("go")).text]}

    async def pay(state: CrewState) -> CrewState:
        del state

        async def work() -> str:
            ledger.pay("pay")
            return "paid"

        return {"notes": [await current_task().step("pay", work)]}

    graph = StateGraph(CrewState)
    graph.add_node("talk", talk)
    graph.add_node("pay", pay)
    graph.add_conditional_edges(START, lambda _: [Send("talk", {}) for _ in range(4)], ["talk"])
    graph.add_edge("talk", "pay")
    return agent(graph, id="payer", read_input=no_input, write_answer=lambda values: values["notes"][-1])


def test_rule_07_a_step_belongs_to_a_checkpoint_that_is_stored_before_it() -> None:
    report = kill_everywhere(Scenario(payer, str), assert_one_answer)
    assert not report.wrong, "\n".join(report.wrong[:10])


# ---- Answers, artifacts and usage


def chat(*messages: AIMessage | str, **options: Any) -> Agent:
    """A graph of one node, which calls a model that says these messages, one after the other."""
    model = options.pop("model", None) or model_of(*messages)

    async def talk(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("talk", talk)
    graph.add_edge(START, "talk")
    return agent(graph, id="chat", **options)


def test_the_agent_has_what_a_card_needs() -> None:
    assert by_id((asker(),))


def test_the_answer_streams_as_an_artifact_and_is_the_last_message() -> None:
    harness = AgentTestHarness(chat("Good morning to you"))
    reply = harness.send("hi")
    assert (reply.state, reply.said, reply.text("talk@1")) == (
        "completed",
        "Good morning to you",
        "Good morning to you",
    )
    assert chunks_of(harness, reply.task.id, "talk@1")[-1].last
    assert len(harness.runs) == 1


def test_a_model_that_does_not_stream_says_everything_at_once() -> None:
    class Whole(GenericFakeChatModel):
        disable_streaming: bool = True

    reply = AgentTestHarness(chat(model=Whole(messages=iter(["All at once"])))).send("hi")
    assert reply.text("talk@1") == "All at once"


def test_a_model_with_the_tag_nostream_makes_no_artifact() -> None:
    silent = model_of("For the state only").with_config(tags=["nostream"])
    reply = AgentTestHarness(chat(model=silent)).send("hi")
    assert (reply.said, reply.artifacts) == ("For the state only", {})


@pytest.mark.parametrize(
    "bound",
    [
        {"ls_structured_output_format": {"kwargs": {}, "schema": Coat}},
        {"response_format": {"type": "json_schema", "json_schema": {}}},
    ],
)
def test_a_model_that_answers_in_a_schema_makes_no_artifact(bound: dict[str, Any]) -> None:
    class Bound(SlowModel):
        def _get_invocation_params(self, stop: Any = None, **kwargs: Any) -> dict[str, Any]:
            return {**super()._get_invocation_params(stop), **kwargs}

    model = Bound(messages=iter(['{"colour": "red"}']), pause_s=0)
    reply = AgentTestHarness(chat(model=model.bind(**bound))).send("hi")
    assert (reply.error, reply.said, reply.artifacts) == (None, '{"colour": "red"}', {})


def writer_of(*written: Any, nested: bool = False) -> Agent:
    """Two nodes, each of which writes these values, and asks at its end."""

    def write(state: CrewState) -> CrewState:
        del state
        for value in written:
            get_stream_writer()(value)
        return {}

    def ask(state: CrewState) -> CrewState:
        del state
        get_stream_writer()("almost")
        return {"notes": [interrupt("Go on?")]}

    inner = StateGraph(CrewState)
    inner.add_node("write", write)
    inner.add_edge(START, "write")
    graph = StateGraph(CrewState)
    graph.add_node("first", inner.compile() if nested else write)
    graph.add_node("ask", ask)
    graph.add_node("second", write)
    graph.add_edge(START, "first")
    graph.add_edge("first", "ask")
    graph.add_edge("ask", "second")
    return agent(graph, id="writer", read_input=no_input, write_answer=lambda values: values["notes"][-1])


@pytest.mark.parametrize("nested", [False, True])
def test_values_of_the_stream_writer_are_progress(nested: bool) -> None:  # noqa: FBT001 - a column of the table
    harness = AgentTestHarness(writer_of("half", "half", {"done": 0.5}, nested=nested))
    asked = harness.send("go")
    assert (asked.error, asked.state) == (None, "input-required")
    reply = harness.send("yes", task_id=asked.task.id)
    assert (reply.error, reply.said) == (None, "yes")
    told = [part.value for message in reply.task.history for part in message.parts]
    written = ["half", "half", {"done": 0.5}]
    assert told == ["go", *written, "almost", "Go on?", "yes", *written]


def test_a_death_anywhere_repeats_no_value_of_the_stream_writer() -> None:
    def check(played: Played) -> None:
        assert_one_answer(played)
        told = [message.text() for message in played.task.history if message.text() in {"half", "almost"}]
        assert told in (["half", "almost", "half"], ["half", "almost"], ["almost", "half"], ["half", "half"]), told

    report = kill_everywhere(Scenario(lambda _: writer_of("half"), str, ["yes"]), check)
    assert not report.wrong, "\n".join(report.wrong[:10])


def test_a_store_that_lives_in_the_process_is_refused() -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("talk", lambda _: {})
    graph.add_edge(START, "talk")
    with pytest.raises(TypeError, match=r"^an InMemoryStore is lost with its process"):
        agent(graph.compile(store=InMemoryStore()), id="forgetful")


def test_a_node_and_a_model_that_run_in_a_thread_stream_too() -> None:
    model = model_of("From a thread")
    inner = StateGraph(MessagesState)
    inner.add_node("talk", lambda state: {"messages": [model.invoke(state["messages"])]})
    inner.add_edge(START, "talk")
    called = inner.compile()
    outer = StateGraph(MessagesState)
    outer.add_node("ask", lambda state: {"messages": called.invoke(state)["messages"][-1:]})
    outer.add_edge(START, "ask")
    reply = AgentTestHarness(agent(outer, id="threads")).send("hi")
    assert (reply.error, reply.said) == (None, "From a thread")
    assert reply.text("ask@1/talk@1") == "From a thread"


def test_a_model_that_a_plain_function_of_a_step_calls_says_everything_at_once() -> None:
    def think() -> str:
        return str(model_of("A step in a thread").invoke("x").text)

    async def talk(state: MessagesState) -> Any:
        del state
        return {"messages": [AIMessage(await current_task().step("think", think))]}

    graph = StateGraph(MessagesState)
    graph.add_node("talk", talk)
    graph.add_edge(START, "talk")
    assert AgentTestHarness(agent(graph, id="steps")).send("hi").text("talk@1/think") == "A step in a thread"


def test_structured_output_is_a_data_part() -> None:
    graph = StateGraph(TailorState)
    graph.add_node("sew", lambda _: {"structured_response": Coat(colour="red")})
    graph.add_edge(START, "sew")
    message = AgentTestHarness(agent(graph, id="sewer")).send("a coat").task.status.message
    assert message
    assert message.data() == {"colour": "red"}


def test_a_graph_without_messages_gets_data_and_gives_its_values() -> None:
    graph = StateGraph(Number)
    graph.add_node("double", lambda state: {"n": 2 * state["n"]})
    graph.add_edge(START, "double")
    message = AgentTestHarness(agent(graph.compile(), id="double")).send({"n": 4}).task.status.message
    assert message
    assert message.data() == {"n": 8}


def test_files_and_data_of_the_message_become_content_blocks() -> None:
    seen: list[Any] = []

    def keep(state: MessagesState) -> Any:
        seen.extend(state["messages"][0].content_blocks)
        return {}

    graph = StateGraph(MessagesState)
    graph.add_node("keep", keep)
    graph.add_edge(START, "keep")
    parts = [
        Part(text="Look"),
        Part(raw="AAAA", media_type="image/png"),
        Part(raw="AAAA", media_type="application/pdf"),
        Part(data={"n": 1}),
    ]
    AgentTestHarness(agent(graph, id="keeper", input_modes=("*/*",))).send(parts)
    assert [(block["type"], block.get("text"), block.get("mime_type")) for block in seen] == [
        ("text", "Look", None),
        ("image", None, "image/png"),
        ("file", None, "application/pdf"),
        ("text", '{"n": 1}', None),
    ]


def test_the_usage_of_models_is_on_the_task() -> None:
    used = {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8}
    spoken = AIMessage("Hello", usage_metadata=used, response_metadata={"model_name": "m"})

    class Counting(GenericFakeChatModel):
        disable_streaming: bool = True

    task = AgentTestHarness(chat(model=Counting(messages=iter([spoken])))).send("hi").task
    assert task.metadata == {"a2a-serverless/usage": {"m": {"input_tokens": 3, "output_tokens": 5}}}


def test_a_model_that_breaks_off_and_is_tried_again_leaves_only_what_it_said_at_last() -> None:
    tries: Iterator[list[Any]] = iter([["I thi", ConnectionError("broken")], ["I think so"]])

    class Breaking(GenericFakeChatModel):
        async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
            del args, kwargs
            for said in next(tries):
                if isinstance(said, Exception):
                    raise said
                yield ChatGenerationChunk(message=AIMessageChunk(said))

    model = Breaking(messages=iter([]))

    async def talk(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("talk", talk, retry_policy=RetryPolicy(initial_interval=0.1))
    graph.add_edge(START, "talk")
    reply = AgentTestHarness(agent(graph, id="breaking")).send("hi")
    assert (reply.error, reply.said) == (None, "I think so")
    assert {name: artifact.text() for name, artifact in reply.artifacts.items()} == {"talk@1": "I think so"}


# ---- What a node does again


def drafter(drafts: list[str]) -> Any:
    async def draft() -> str:
        drafts.append(f"draft {len(drafts) + 1}")
        await current_task().record_usage("m", tokens=1)
        return drafts[-1]

    return draft


def progress_of(task: Task) -> list[str]:
    return [message.text() for message in task.history if message.text() == "written"]


def test_a_node_that_the_graph_comes_to_again_makes_a_new_draft_and_asks_again() -> None:
    drafts: list[str] = []

    async def write(state: CrewState) -> CrewState:
        task = current_task()
        text = await task.step("draft", drafter(drafts))
        await task.emit("drafts", f"<{text}>", append=True)
        await task.report_progress("written")
        await task.record_usage("n", tokens=1)
        verdict = (await task.ask("Good?")).text()
        return {"notes": [f"{text} is {verdict}"], "part": state.get("part", 0) + 1}

    graph = StateGraph(CrewState)
    graph.add_node("write", write)
    graph.add_edge(START, "write")
    graph.add_conditional_edges("write", lambda state: "write" if state["part"] < 2 else END, ["write", END])
    writer = agent(graph, id="writer", read_input=no_input, write_answer=lambda values: ", ".join(values["notes"]))
    harness = AgentTestHarness(writer)
    reply = harness.send("go")
    for verdict in ("bad", "good"):
        assert reply.said == "Good?"
        reply = harness.send(verdict, task_id=reply.task.id)
    assert (reply.said, reply.text("drafts")) == ("draft 1 is bad, draft 2 is good", "<draft 1><draft 2>")
    assert progress_of(reply.task) == ["written", "written"]
    assert reply.task.metadata == {"a2a-serverless/usage": {"m": {"tokens": 2}, "n": {"tokens": 2}}}


def test_a_node_that_its_retry_policy_starts_again_reads_its_steps_back_and_says_nothing_twice() -> None:
    drafts: list[str] = []
    failed: list[str] = []

    async def write(state: CrewState) -> CrewState:
        del state
        task = current_task()
        text = await task.step("draft", drafter(drafts))
        said = str((await model_of(f"try {len(failed)}").ainvoke("go")).text)
        await task.emit("drafts", f"<{text}>", append=True)
        await task.report_progress("written")
        answer = (await task.ask("Good?")).text()
        if not failed:
            failed.append("broken")
            raise ConnectionError("broken")
        return {"notes": [f"{text} {said} {answer}"]}

    graph = StateGraph(CrewState)
    graph.add_node("write", write, retry_policy=RetryPolicy(initial_interval=1, jitter=False))
    graph.add_edge(START, "write")
    writer = agent(graph, id="writer", read_input=no_input, write_answer=lambda values: values["notes"][0])
    harness = AgentTestHarness(writer)
    asked = harness.send("go")
    reply = harness.send("yes", task_id=asked.task.id)
    assert (reply.error, reply.said) == (None, "draft 1 try 1 yes")
    assert progress_of(reply.task) == ["written"]
    assert {name: one.text() for name, one in reply.artifacts.items()} == {"write@1": "try 1", "drafts": "<draft 1>"}


def test_graphs_that_a_node_calls_at_once_have_steps_artifacts_and_questions_of_their_own() -> None:
    drafts: list[str] = []

    async def write(state: CrewState) -> CrewState:
        task = current_task()
        await asyncio.sleep(state["part"])
        text = await task.step("draft", drafter(drafts))
        await task.report_progress("written")
        return {"notes": [f"{text} {(await task.ask('Good?')).text()}"]}

    def graph_of(node: Any) -> Any:
        graph = StateGraph(CrewState)
        graph.add_node("write", node)
        graph.add_edge(START, "write")
        return graph

    called = [graph_of(write).compile() for _ in range(2)]

    async def both(state: CrewState) -> CrewState:
        del state
        done = await asyncio.gather(*(one.ainvoke({"part": place}) for place, one in enumerate(called)))
        return {"notes": [note for one in done for note in one["notes"]]}

    made = agent(graph_of(both), id="both", read_input=no_input, write_answer=lambda values: ", ".join(values["notes"]))
    harness = AgentTestHarness(made)
    reply = harness.send("go")
    for answer in ("first", "second"):
        assert (reply.error, reply.said) == (None, "Good?")
        reply = harness.send(answer, task_id=reply.task.id)
    assert (reply.said, drafts) == ("draft 1 first, draft 2 second", ["draft 1", "draft 2"])
    assert progress_of(reply.task) == ["written", "written"]


def test_equal_questions_of_several_sends_get_an_answer_each() -> None:
    graph = StateGraph(CrewState)
    graph.add_node("ask", lambda state: {"notes": [f"{state['part']} {interrupt('Which?')}"]})
    graph.add_conditional_edges(START, lambda _: [Send("ask", {"part": part}) for part in range(2)], ["ask"])
    made = agent(graph, id="sends", read_input=no_input, write_answer=lambda values: ", ".join(values["notes"]))
    harness = AgentTestHarness(made)
    task_id = harness.send("go").task.id
    assert harness.send("red", task_id=task_id).state == "input-required"
    assert harness.send("green", task_id=task_id).said == "0 red, 1 green"


def test_a_graph_in_a_thread_is_not_executed_again_after_a_question() -> None:
    paid: list[str] = []

    def think(state: CrewState) -> CrewState:
        paid.append("thought")
        return {"notes": [str(model_of("a thought").invoke("x").text), *state.get("notes", [])]}

    inner = StateGraph(CrewState)
    inner.add_node("think", think)
    inner.add_edge(START, "think")
    called = inner.compile()
    outer = StateGraph(CrewState)
    outer.add_node("in thread", lambda _: {"notes": called.invoke({"notes": []})["notes"]})
    outer.add_node("ask", lambda _: {"notes": [interrupt("Good?")]})
    outer.add_edge(START, "in thread")
    outer.add_edge("in thread", "ask")
    made = agent(outer, id="threads", read_input=no_input, write_answer=lambda values: ", ".join(values["notes"]))
    harness = AgentTestHarness(made)
    asked = harness.send("go")
    reply = harness.send("yes", task_id=asked.task.id)
    assert (reply.error, reply.said, paid) == (None, "a thought, yes", ["thought"])


# ---- Questions


def asker(first: str = "Which colour?", done: str = "It is") -> Agent:
    graph = StateGraph(MessagesState)
    graph.add_node("ask", lambda _: {"messages": [AIMessage(f"{done} {interrupt(first)}")]})
    graph.add_edge(START, "ask")
    return agent(graph, id="asker")


def test_an_interrupt_is_a_question_which_may_be_answered_after_a_deploy() -> None:
    harness = AgentTestHarness(asker())
    asked = harness.send("a coat")
    assert (asked.state, asked.said) == ("input-required", "Which colour?")
    harness.deploy(asker(done="The coat is"))
    assert harness.send("red", task_id=asked.task.id).said == "The coat is red"


def approvers() -> Agent:
    graph = StateGraph(CrewState)
    for name in ("ann", "bob"):
        graph.add_node(name, lambda _, name=name: {"notes": [f"{name}: {interrupt({'may': name})}"]})
        graph.add_edge(START, name)
    return agent(graph, id="approvers", read_input=no_input, write_answer=lambda values: ", ".join(values["notes"]))


async def no_input(task: Any) -> CrewState:
    del task
    return {"notes": []}


def test_several_interrupts_are_one_question_and_answered_by_their_ids() -> None:
    harness = AgentTestHarness(approvers())
    asked = harness.send("go")
    assert asked.task.status.message
    parts = asked.task.status.message.parts
    assert [part.value for part in parts] == [{"may": "ann"}, {"may": "bob"}]
    answers: Any = {(part.metadata or {})["interrupt"]: "yes, " + str(part.value) for part in parts}
    assert harness.send(answers, task_id=asked.task.id).said == "ann: yes, {'may': 'ann'}, bob: yes, {'may': 'bob'}"


def test_several_interrupts_may_be_answered_one_after_the_other() -> None:
    harness = AgentTestHarness(approvers())
    task_id = harness.send("go").task.id
    again = harness.send("yes", task_id=task_id)
    assert again.task.status.message
    assert [part.value for part in again.task.status.message.parts] == [{"may": "bob"}]
    assert harness.send("no", task_id=task_id).said == "ann: yes, bob: no"


# ---- Tools, other agents, errors, cancellation


def test_an_error_of_a_tool_fails_the_task_and_is_not_shown_to_the_client() -> None:
    calls = [{"name": "stumble", "args": {}, "id": "1"}]
    graph = StateGraph(MessagesState)
    graph.add_node("talk", lambda _: {"messages": [AIMessage("", tool_calls=calls)]})
    graph.add_node("tools", ToolNode([stumble], handle_tool_errors=False))
    graph.add_edge(START, "talk")
    graph.add_edge("talk", "tools")
    reply = AgentTestHarness(agent(graph, id="tools")).send("go")
    assert (reply.state, str(reply.error)) == ("failed", "no such shop")
    assert "no such shop" not in reply.said


def test_an_agent_that_is_called_in_a_node_works_while_nothing_runs_here() -> None:
    thought: list[str] = []

    async def slow(task: TaskContext) -> str:
        await asyncio.sleep(600)
        return f"slowly {task.text()}"

    @tool
    async def ask_slow(question: str) -> str:
        """Asks the slow agent."""
        task = current_task()
        thought.append(question)
        answer = await task.call("ask", "slow", question)
        return answer.status.message.text() if isinstance(answer, Task) and answer.status.message else ""

    async def talk(state: MessagesState) -> Any:
        del state
        said = await model_of("I ask").ainvoke("x")
        return {"messages": [AIMessage(said.text), AIMessage(await ask_slow.ainvoke("why"))]}

    graph = StateGraph(MessagesState)
    graph.add_node("talk", talk)
    graph.add_edge(START, "talk")
    harness = AgentTestHarness(agent(graph, id="caller"), agent_of(slow, "slow"))
    reply = harness.send("go")
    assert (reply.error, reply.said, reply.text("talk@1")) == (None, "slowly why", "I ask")
    own = [end - began for task_id, began, end in harness.runs if task_id == reply.task.id]
    assert len(own) == 2
    assert sum(own) < 60_000


def test_a_model_that_works_beside_a_called_agent_is_not_interrupted() -> None:
    paid: list[str] = []

    async def slow(task: TaskContext) -> str:
        del task
        await asyncio.sleep(600)
        return "done"

    async def call(state: CrewState) -> CrewState:
        del state
        await current_task().call("ask", "slow", "x")
        return {"notes": ["called"]}

    async def think(state: CrewState) -> CrewState:
        del state
        paid.append("model")
        return {"notes": [(await model_of("one two three", pause_s=20).ainvoke("x")).text]}

    graph = StateGraph(CrewState)
    graph.add_node("call", call)
    graph.add_node("think", think)
    graph.add_edge(START, "call")
    graph.add_edge(START, "think")
    caller = agent(graph, id="caller", read_input=no_input, write_answer=lambda values: ", ".join(values["notes"]))
    assert AgentTestHarness(caller, agent_of(slow, "slow")).send("go").said == "called, one two three"
    assert paid == ["model"]


def test_a_canceled_task_ends_its_nodes_and_leaves_the_conversation_as_it_was() -> None:
    harness = AgentTestHarness(chat("First", "x " * 500 + "never said", "Third"))
    context = harness.send("one").task.context_id
    task = harness.begin("two", context_id=context)
    assert isinstance(task, Task)
    harness.at(harness.now + 20_000, lambda: harness.cancel(task.id))
    harness.settle()
    canceled = harness.reply(task.id)
    assert canceled.state == "canceled"
    assert "never said" not in canceled.text("talk@4")
    assert harness.send("three", context_id=context).said == "Third"


# ---- Conversations


def test_a_conversation_goes_on_over_forty_tasks_and_others_see_nothing_of_it() -> None:
    def count(state: MessagesState) -> Any:
        return {"messages": [AIMessage(f"{len(state['messages'])}: {state['messages'][0].text}")]}

    graph = StateGraph(MessagesState)
    graph.add_node("count", count)
    graph.add_edge(START, "count")
    harness = AgentTestHarness(agent(graph, id="counter"))
    context = harness.send("turn 1").task.context_id
    said = [harness.send(f"turn {turn}", context_id=context).said for turn in range(2, 41)]
    assert said[-1] == "79: turn 1"
    assert harness.send("turn 1").said == "1: turn 1"


def test_a_state_that_is_too_large_fails_the_task_and_says_so() -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("grow", lambda _: {"messages": [AIMessage("x" * 5_000_000)]})
    graph.add_edge(START, "grow")
    reply = AgentTestHarness(agent(graph, id="grower")).send("go")
    assert reply.state == "failed"
    assert "at most 4194304 are stored" in reply.said


def test_a_run_that_was_overtaken_stores_nothing_and_the_answer_is_one() -> None:
    world: World
    said = iter(["from the first", "from the second", "from the third"])

    async def talk(state: CrewState) -> CrewState:
        del state
        text = next(said)
        if text == "from the first":
            world.elsewhere(120_000)
        return {"notes": [text]}

    graph = StateGraph(CrewState)
    graph.add_node("talk", talk)
    graph.add_edge(START, "talk")
    world = World([agent(graph, id="echo", read_input=no_input, write_answer=lambda values: str(values["notes"]))])
    task = world.send("go", push=False)
    world.settle()
    message = world.get(task.id).status.message
    assert message
    assert message.text() == "['from the second']"


def test_only_the_newest_checkpoints_are_kept_however_long_the_graph_runs() -> None:
    inner = StateGraph(CrewState)
    inner.add_node("count", lambda _: {"notes": ["x"]})
    inner.add_edge(START, "count")
    graph = StateGraph(CrewState)
    graph.add_node("inner", inner.compile())
    graph.add_node("more", lambda state: {"part": state.get("part", 0) + 1})
    graph.add_edge(START, "inner")
    graph.add_edge("inner", "more")
    graph.add_conditional_edges("more", lambda state: "inner" if state["part"] < 6 else END, ["inner", END])
    world = World([agent(graph, id="echo", read_input=no_input, write_answer=lambda values: str(values["part"]))])
    task = world.send("go", push=False)
    world.settle()
    assert world.get(task.id).status.state == "completed"
    stored = world.table.list_values(ValueScope(ME.key(task.id)), "langgraph/", "", 100)
    assert [one.key for one in stored] == ["langgraph/0", "langgraph/1"]


@pytest.mark.parametrize("options", [{"interrupt_before": ["talk"]}, {"interrupt_after": "*"}])
def test_a_graph_with_static_breakpoints_is_refused(options: Any) -> None:
    graph = StateGraph(CrewState)
    graph.add_node("talk", lambda _: {})
    graph.add_edge(START, "talk")
    with pytest.raises(ValueError, match="static breakpoints"):
        agent(graph.compile(**options), id="stopped")


# ---- The example, and the page


def test_the_example_asks_and_orders_after_a_deploy() -> None:
    example = run_path("examples/langgraph_agent.py")
    harness = AgentTestHarness(example["shop_agent"])
    asked = harness.send("a coat")
    assert (asked.state, asked.said) == ("input-required", "May I order a coat for 6 euros?")
    harness.deploy(run_path("examples/langgraph_agent.py")["shop_agent"])
    reply = harness.send("yes", task_id=asked.task.id)
    assert reply.said == reply.text("answer@2") == "It is ordered. (no MODEL is set)"


def test_the_example_orders_nothing_after_a_no() -> None:
    harness = AgentTestHarness(run_path("examples/langgraph_agent.py")["shop_agent"])
    asked = harness.send("a coat")
    assert harness.send("no, too dear", task_id=asked.task.id).said == "It is not ordered. (no MODEL is set)"


def test_the_test_of_a_new_project_passes() -> None:
    run_example("langgraph_agent.py")


@pytest.mark.parametrize("name", page_tests("langgraph.md"))
def test_each_example_of_the_page_passes(name: str) -> None:
    names_of("langgraph.md")[name]()


def _gated(name: str) -> Any:
    graph = StateGraph(CrewState)
    graph.add_node("think", lambda _: {"notes": ["thought"]})
    graph.add_node(name, lambda _: {"notes": [interrupt("Go on?")]})
    graph.add_edge(START, "think")
    graph.add_edge("think", name)
    return agent(graph, id="crew", read_input=no_input, write_answer=lambda values: ", ".join(values["notes"]))


def test_a_node_that_a_task_waits_in_and_that_new_code_does_not_have_fails_the_task_and_a_rehearsal_says_so() -> None:
    harness = AgentTestHarness(_gated("gate"))
    asked = harness.send("go")
    (same,), (other,) = harness.rehearse(_gated("gate")), harness.rehearse(_gated("door"))
    assert (same.verdict, other.verdict) == ("fits", "fails")
    assert "'gate'" in other.findings[0].text
    harness.deploy(_gated("door"))
    assert harness.send("yes", task_id=asked.task.id).state == "failed"
