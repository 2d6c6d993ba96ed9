"""Graphs that an agent's function runs by itself, with their threads in the conversation."""

from __future__ import annotations

from collections import Counter
from operator import add
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed here: make frameworks")

from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.langgraph_saver import ConversationSaver
from tests.echo import agent_of
from tests.frameworks.kills import Ledger, Played, Scenario, assert_one_answer, kill_everywhere

if TYPE_CHECKING:
    from a2a_serverless import Agent, TaskContext


class Notes(TypedDict, total=False):
    notes: Annotated[list[str], add]


class Inner(TypedDict, total=False):
    notes: list[str]


def asking_graph() -> Any:
    """Two nodes at once, of which one asks; then one in a subgraph."""
    inner = StateGraph(Inner)
    inner.add_node("inner", lambda _: {"notes": ["inner"]})
    inner.add_edge(START, "inner")
    graph = StateGraph(Notes)
    graph.add_node("ask", lambda _: {"notes": [interrupt("Which?")]})
    graph.add_node("note", lambda _: {"notes": ["noted"]})
    graph.add_node("inner", inner.compile())
    graph.add_conditional_edges(START, lambda _: [Send("ask", {}), Send("note", {})], ["ask", "note"])
    graph.add_edge("ask", "inner")
    return graph.compile(checkpointer=ConversationSaver())


def turns(ledger: Ledger | None = None) -> Agent:
    """Each turn is a step, as with executors; the graph's thread is the conversation."""

    async def work(task: TaskContext) -> str:
        graph = asking_graph()
        config: Any = {"configurable": {"thread_id": task.context_id}}

        async def turn(given: str) -> str:
            if ledger:
                ledger.pay(given)
            waits = (await graph.aget_state(config)).interrupts
            values = await graph.ainvoke(Command(resume=given) if waits else {"notes": [given]}, config)
            return "Which?" if "__interrupt__" in values else " ".join(values["notes"])

        said = await task.step("first", turn, task.text())
        answer = await task.ask(said)
        return str(await task.step("second", turn, answer.text()))

    return agent_of(work)


def test_a_thread_goes_on_in_the_next_turn_and_in_the_next_task() -> None:
    harness = AgentTestHarness(turns())
    asked = harness.send("go")
    assert (asked.error, asked.said) == (None, "Which?")
    first = harness.send("red", task_id=asked.task.id)
    assert (first.error, first.said) == (None, "go red noted inner")
    again = harness.send("on", context_id=asked.task.context_id)
    assert harness.send("blue", task_id=again.task.id).said == "go red noted inner on blue noted inner"
    other = harness.send("other")
    assert harness.send("x", task_id=other.task.id).said == "other x noted inner"


def test_the_saver_deletes_a_thread_and_its_values() -> None:
    async def work(task: TaskContext) -> str:
        saver = ConversationSaver()
        graph = asking_graph().copy({"checkpointer": saver})
        config: Any = {"configurable": {"thread_id": "t"}}
        await graph.ainvoke({"notes": []}, config)
        before = [one.config["configurable"]["thread_id"] async for one in saver.alist(config)]
        await saver.adelete_thread("t")
        return f"{before} {[one async for one in saver.alist(config)]} {await task.conversation.list()}"

    assert AgentTestHarness(agent_of(work)).send("go").said == "['t'] [] []"


def test_rule_07_a_turn_that_is_executed_again_begins_where_it_began() -> None:
    def check(played: Played) -> None:
        assert_one_answer(played)
        message = played.task.status.message
        assert message
        assert message.text() == "go red noted inner"

    report = kill_everywhere(Scenario(turns, lambda what: {"go": "first", "red": "second"}[what], ["red"]), check)
    assert not report.wrong, "\n".join(report.wrong[:5])


def test_the_writes_of_a_node_that_is_repeated_replace_those_of_its_former_attempt() -> None:
    def ask_thrice(_: Notes) -> Notes:
        return {"notes": [f"{interrupt('Which?')} {interrupt('How many?')} {interrupt('When?')}"]}

    async def work(task: TaskContext) -> str:
        graph = StateGraph(Notes)
        graph.add_node("ask", ask_thrice)
        graph.add_edge(START, "ask")
        compiled = graph.compile(checkpointer=ConversationSaver())
        config: Any = {"configurable": {"thread_id": "t"}}
        values = await compiled.ainvoke({"notes": []}, config)
        while "__interrupt__" in values:
            state = await compiled.checkpointer.aget_tuple(config)
            channels = Counter((task_id, channel) for task_id, channel, _ in state.pending_writes)
            assert set(channels.values()) == {1}, channels
            answer = await task.ask(values["__interrupt__"][0].value)
            values = await compiled.ainvoke(Command(resume=answer.text()), config)
        return str(values["notes"])

    harness = AgentTestHarness(agent_of(work))
    asked = harness.send("go")
    assert (asked.error, asked.said) == (None, "Which?")
    assert harness.send("red", task_id=asked.task.id).said == "How many?"
    assert harness.send("two", task_id=asked.task.id).said == "When?"
    assert harness.send("now", task_id=asked.task.id).said == "['red two now']"
