"""Tasks of graphs that wait while new code takes away the place at which they go on."""

from __future__ import annotations

from operator import add
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed here: make frameworks")

from langgraph.func import entrypoint
from langgraph.func import task as as_task
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt

from a2a_serverless import StepConflict, current_task
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.langgraph import agent

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless import Agent, TaskContext


class Notes(TypedDict, total=False):
    notes: Annotated[list[str], add]


class Topic(TypedDict, total=False):
    notes: list[str]


def ask(_: Notes) -> Notes:
    return {"notes": [f"asked {interrupt('Which?')}"]}


async def wait(_: Notes) -> Notes:
    """Waits for the client without an interrupt: the node has no writes then."""
    return {"notes": [f"asked {(await current_task().ask('Which?')).text()}"]}


def note(_: Notes) -> Notes:
    return {"notes": ["noted"]}


async def no_input(_: TaskContext) -> Notes:
    return {"notes": []}


def agent_with(graph: StateGraph[Any]) -> Agent:
    return agent(graph, id="changing", read_input=no_input, write_answer=lambda values: ", ".join(values["notes"]))


def one_node(name: str, work: Any = ask) -> StateGraph[Any]:
    graph = StateGraph(Notes)
    graph.add_node(name, work)
    graph.add_edge(START, name)
    return graph


def waiting(name: str) -> Agent:
    return agent_with(one_node(name, wait))


def asking(name: str) -> Agent:
    return agent_with(one_node(name))


def asking_beside(name: str) -> Agent:
    graph = one_node(name)
    graph.add_node("lasting", ask)
    graph.add_edge(START, "lasting")
    return agent_with(graph)


def noting_beside(name: str) -> Agent:
    """The node that gets another name has ended: its writes wait for the node beside it."""
    graph = one_node("lasting")
    graph.add_node(name, note)
    graph.add_edge(START, name)
    return agent_with(graph)


def sending(name: str) -> Agent:
    graph = StateGraph(Notes)
    graph.add_node(name, ask)
    graph.add_conditional_edges(START, lambda _: [Send(name, {})], [name])
    return agent_with(graph)


def joining(name: str) -> Agent:
    """Both nodes come before "last". The first has ended when the second asks, a superstep later."""
    graph = StateGraph(Notes)
    for node, work in ((name, note), ("between", note), ("second", ask), ("last", note)):
        graph.add_node(node, work)
    graph.add_edge(START, name)
    graph.add_edge(START, "between")
    graph.add_edge("between", "second")
    graph.add_edge([name, "second"], "last")
    return agent_with(graph)


def inside(name: str) -> Agent:
    return agent_with(one_node("team", one_node(name).compile()))


def inside_twice(name: str) -> Agent:
    return agent_with(one_node("team", one_node("inner", one_node(name).compile()).compile()))


def called(name: str) -> Agent:
    inner = one_node(name).compile()

    async def call(state: Notes) -> Any:
        return await inner.ainvoke(state)

    return agent_with(one_node("team", call))


def hidden(name: str) -> Agent:
    """The graph is in an object, and the node asks itself if the graph has ended at once."""

    class Hidden:
        def __init__(self) -> None:
            self.graph = one_node(name).compile()

        async def __call__(self, state: Notes) -> Any:
            given = await self.graph.ainvoke(state)
            return {"notes": given["notes"] or [f"asked {interrupt('Which?')}"]}

    return agent_with(one_node("team", Hidden()))


MADE: list[Callable[[str], Agent]] = [
    waiting,
    asking,
    asking_beside,
    noting_beside,
    sending,
    joining,
    inside,
    inside_twice,
    called,
    hidden,
]


@pytest.mark.parametrize("make", MADE)
def test_a_task_that_goes_on_at_a_node_that_new_code_lacks_fails_and_says_so(make: Callable[[str], Agent]) -> None:
    harness = AgentTestHarness(make("old"))
    asked = harness.send("go")
    assert asked.state == "input-required", asked.error
    harness.deploy(make("new"))
    reply = harness.send("red", task_id=asked.task.id)
    assert reply.state == "failed", reply.said
    assert isinstance(reply.error, StepConflict), reply.error
    assert "the node 'old'" in reply.said
    harness.deploy(make("old"))
    again = harness.retry(reply.task.id)
    while again.state == "input-required":
        again = harness.send("blue", task_id=again.task.id)
    assert "asked red" in again.said, again.error


@pytest.mark.parametrize("make", MADE)
def test_a_node_that_a_task_has_not_come_to_may_have_another_name(make: Callable[[str], Agent]) -> None:
    harness = AgentTestHarness(make("same"))
    asked = harness.send("go")
    harness.deploy(make("same"))
    reply = harness.send("red", task_id=asked.task.id)
    while reply.state == "input-required":
        reply = harness.send("blue", task_id=reply.task.id)
    assert (reply.error, reply.state) == (None, "completed")
    harness.deploy(make("other"))
    next_one = harness.send("go", context_id=asked.task.context_id)
    while next_one.state == "input-required":
        next_one = harness.send("green", task_id=next_one.task.id)
    assert (next_one.error, next_one.state) == (None, "completed")


def sending_inside(name: str) -> Agent:
    """The graph inside ends at once, because nothing tells it that it lacks the node."""
    inner = StateGraph(Notes)
    inner.add_node(name, ask)
    inner.add_conditional_edges(START, lambda _: [Send(name, {})], [name])
    compiled = inner.compile()

    async def call(state: Notes) -> Notes:
        given = await compiled.ainvoke(state)
        return {"notes": given["notes"] or [f"asked {interrupt('Which?')}"]}

    return agent_with(one_node("team", call))


def with_tasks(name: str) -> Agent:
    async def work() -> str:
        return str(interrupt("Which?"))

    work.__name__ = name
    durable = as_task(work)

    @entrypoint()
    async def flow(_: Notes) -> Notes:
        return {"notes": [f"asked {await durable()}"]}

    return agent(flow, id="changing", read_input=no_input, write_answer=lambda values: ", ".join(values["notes"]))


@pytest.mark.parametrize("make", [sending_inside, with_tasks])
def test_an_interrupt_that_is_pending_though_it_was_answered_ends_the_task(make: Callable[[str], Agent]) -> None:
    harness = AgentTestHarness(make("old"), replay=False)  # a later run knows no more that the answer was given
    asked = harness.send("go")
    harness.deploy(make("new"))
    reply = harness.send("red", task_id=asked.task.id)
    if reply.state == "input-required":
        reply = harness.send("green", task_id=asked.task.id)
    assert isinstance(reply.error, StepConflict), reply.said
    assert "The node 'old' was given the answer to its interrupt" in reply.said
