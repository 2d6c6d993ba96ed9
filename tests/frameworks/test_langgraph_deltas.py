"""Channels of which LangGraph stores changes only: their values are the same in each run and in the next task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed here: make frameworks")

from langgraph.channels.delta import DeltaChannel
from langgraph.config import get_config
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Overwrite, Send, interrupt

from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.langgraph import agent
from a2a_serverless_frameworks.langgraph_saver import ConversationSaver
from tests.echo import agent_of
from tests.frameworks.kills import Ledger, Played, Scenario, assert_one_answer, kill_everywhere

if TYPE_CHECKING:
    from a2a_serverless import Agent, TaskContext

OFTEN = pytest.mark.parametrize("often", [2, 50])


def state_of(often: int, name: str = "notes") -> Any:
    """A state whose channel is stored as a whole after so many updates, and else as its changes."""

    def add(notes: list[str], writes: list[list[str]]) -> list[str]:
        return [*notes, *(note for write in writes for note in write)]

    made: Any = TypedDict
    return made("Notes", {name: Annotated[list[str], DeltaChannel(add, snapshot_frequency=often)]})


def own_task() -> str:
    """LangGraph's id of the node's task that the caller runs in."""
    return str(get_config()["metadata"]["langgraph_checkpoint_ns"]).rpartition(":")[2]


def noting(often: int, ledger: Ledger | None = None) -> Any:
    """Notes something, then twice at once; a graph in a node notes; then a node asks and notes."""

    def note(name: str, place: str = "notes") -> Any:
        def work(_: Any) -> Any:
            if ledger:
                ledger.pay(own_task())
            return {place: [name]}

        return work

    inner = StateGraph(state_of(often, "inner"))
    inner.add_node("inner first", note("inner first", "inner"))
    inner.add_node("inner ask", lambda state: {"inner": [f"{len(state['inner'])} {interrupt('Which?')}"]})
    inner.add_edge(START, "inner first")
    inner.add_edge("inner first", "inner ask")
    team = inner.compile()

    async def work_in_team(_: Any) -> Any:
        return {"notes": (await team.ainvoke({"inner": ["begin"]}))["inner"]}

    graph = StateGraph(state_of(often))
    for name in ("first", "left", "right", "last"):
        graph.add_node(name, note(name))
    graph.add_node("team", work_in_team)
    graph.add_edge(START, "first")
    graph.add_conditional_edges("first", lambda _: [Send("right", {}), Send("left", {})], ["left", "right"])
    graph.add_edge(["left", "right"], "team")
    graph.add_edge("team", "last")
    return graph


NOTED = "first right left begin inner first 2 red last"


def noter(graph: Any) -> Agent:
    async def read(task: TaskContext) -> Any:
        return {"notes": [task.text()]}

    return agent(graph, id="noter", read_input=read, write_answer=lambda state: " ".join(state["notes"]))


@OFTEN
def test_rule_07_a_death_anywhere_changes_nothing_of_what_a_channel_of_changes_has(often: int) -> None:
    def check(played: Played) -> None:
        assert_one_answer(played)
        message = played.task.status.message
        assert message
        assert message.text() == f"go {NOTED}"

    scenario = Scenario(lambda ledger: noter(noting(often, ledger)), lambda node: f"node/{node}/0", ["red"])
    report = kill_everywhere(scenario, check)
    assert report.kills.total() > 40
    assert report.wrong == []


@pytest.mark.parametrize("often", [1, 2, 3, 50])
def test_the_next_tasks_of_a_conversation_have_what_the_first_had(often: int) -> None:
    harness = AgentTestHarness(noter(noting(often)))
    context, expected = None, ""
    for text in ("one", "two", "three"):
        asked = harness.send(text, context_id=context)
        assert asked.said == "Which?"
        expected = f"{expected} {text} {NOTED}".strip()
        assert harness.send("red", task_id=asked.task.id).said == expected
        context = asked.task.context_id


def test_a_value_that_replaces_all_others_is_the_beginning_of_what_follows() -> None:
    graph = StateGraph(state_of(50))
    graph.add_node("note", lambda _: {"notes": ["noted"]})
    graph.add_node("forget", lambda state: {"notes": Overwrite(state["notes"][-1:])})
    graph.add_node("last", lambda _: {"notes": ["last"]})
    graph.add_edge(START, "note")
    graph.add_edge("note", "forget")
    graph.add_edge("forget", "last")
    harness = AgentTestHarness(noter(graph))
    first = harness.send("one")
    assert first.said == "noted last"
    assert harness.send("two", context_id=first.task.context_id).said == "noted last"


def test_a_graph_that_keeps_its_state_between_its_executions_cannot_have_such_a_channel() -> None:
    inner = StateGraph(state_of(50))
    inner.add_node("count", lambda state: {"notes": [str(len(state["notes"]))]})
    inner.add_edge(START, "count")
    lasting = inner.compile(checkpointer=True)
    outer = StateGraph(state_of(50))
    outer.add_node("count", lambda _: {"notes": lasting.invoke({"notes": ["go"]})["notes"]})
    outer.add_edge(START, "count")
    harness = AgentTestHarness(noter(outer))
    first = harness.send("one")
    assert first.said == "one go 1"
    second = harness.send("two", context_id=first.task.context_id)
    assert (second.state, second.said) == (
        "failed",
        "A graph with checkpointer=True cannot have a DeltaChannel here: notes",
    )


@OFTEN
def test_rule_07_a_thread_in_the_conversation_has_such_a_channel(often: int) -> None:
    """Each turn is a step, as with executors."""

    def make(ledger: Ledger) -> Agent:
        async def work(task: TaskContext) -> str:
            graph = noting(often).compile(checkpointer=ConversationSaver())
            config: Any = {"configurable": {"thread_id": task.context_id}}

            async def turn(given: str) -> str:
                ledger.pay(given)
                waits = (await graph.aget_state(config)).interrupts
                values = await graph.ainvoke(Command(resume=given) if waits else {"notes": [given]}, config)
                return "Which?" if "__interrupt__" in values else " ".join(values["notes"])

            answer = await task.ask(await task.step("first", turn, task.text()))
            return str(await task.step("second", turn, answer.text()))

        return agent_of(work)

    def check(played: Played) -> None:
        assert_one_answer(played)
        message = played.task.status.message
        assert message
        assert message.text() == f"go {NOTED}"

    report = kill_everywhere(Scenario(make, lambda what: {"go": "first", "red": "second"}[what], ["red"]), check)
    assert report.wrong == []
