"""However a random graph is interrupted, it comes to the same.

A program is a list of stages, and a stage a list of nodes that run at once. A node plays operations, some of which are
LangGraph's own interrupts and models. It is a node of its own, one of several ``Send`` to one node, a node that fails
at its first try and has a retry policy, or a subgraph, whose nodes play an operation each.
"""

from __future__ import annotations

import os
from collections import Counter
from operator import add
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed here: make frameworks")

from langchain_core.language_models import GenericFakeChatModel
from langgraph.graph import START, StateGraph
from langgraph.runtime import get_runtime
from langgraph.types import RetryPolicy, Send, interrupt

from a2a_serverless import current_task
from a2a_serverless.testing.simulated_loop import START as BEGAN
from a2a_serverless.testing.simulated_loop import SimulatedLoop
from a2a_serverless_frameworks.langgraph import agent
from tests.replay.plays import Conversation, differences
from tests.replay.programs import NAMES, Effects, Operation, Oracle, Player, make_operation
from tests.replay.tool_programs import ROUNDS, Rounds, leaves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_serverless import Agent, TaskContext

FIRST = int(os.environ.get("FIRST_SEED", "1"))
SEEDS = int(os.environ.get("SEEDS", "1"))
PLAYS = int(os.environ.get("PLAYS", "24"))
PARTS = "\n\n"
BESIDE = ("step", "repeat", "repeat", "flaky", "emit", "say", "usage", "interrupt", "interrupt", "model")
ALONE = (*BESIDE, "ask", "call", "sleep", "branches")
WITHIN = ("step", "repeat", "repeat", "say", "usage")
NODES = ("node", "node", "retried", "team")


def make_graph_program(chance: Random) -> list[Operation]:
    """A random program: two or three stages."""
    return [_stage(chance, str(number)) for number in range(chance.choice([2, 2, 3]))]


def _stage(chance: Random, label: str) -> Operation:
    count = chance.choice([1, 1, 2])
    kinds = sorted(chance.choice(NODES) for _ in range(count))  # the questions of subgraphs come last
    if kinds.count("team") > 1:
        kinds[0] = "node"
    kind = "sends" if count > 1 and chance.random() < 0.4 else "stage"
    nodes = [
        _node(chance, "node" if kind == "sends" else one, f"{label}.{place}", ALONE if count == 1 else BESIDE)
        for place, one in enumerate(kinds)
    ]
    return Operation(kind, label, label, inner=tuple((node,) for node in nodes))


def _node(chance: Random, kind: str, label: str, kinds: tuple[str, ...]) -> Operation:
    operations = list[Operation]()
    for number in range(chance.randint(2, 4)):
        one, own = chance.choice(kinds), f"{label}.{number}"
        if one == "model" and kind == "team":
            one = "interrupt"
        if one in {"interrupt", "model"}:
            operations.append(Operation(one, own, chance.choice(NAMES)))
        elif one == "branches":
            operations.append(Operation(one, own, own, inner=tuple(_branch(chance, f"{own}.{n}") for n in range(2))))
        else:
            operations.append(make_operation(chance, one, own, 1, WITHIN))
    return Operation(kind, label, label, inner=(tuple(operations),))


def _branch(chance: Random, label: str) -> tuple[Operation, ...]:
    return tuple(Operation("step", f"{label}.{n}", f"{label}.{n}", chance.choice([1, 7])) for n in range(2))


class NodePlayer(Player):
    """Plays the operations of nodes. Those of a node share its artifacts."""

    async def _emit(self, operation: Operation) -> str:
        artifact = f"art {operation.name} {operation.label.rpartition('.')[0]}"
        await self._task.emit(artifact, f"<{operation.label}>", append=True)
        return ""

    async def _interrupt(self, operation: Operation) -> str:
        return str(interrupt(f"interrupt {operation.name}?"))

    async def _model(self, operation: Operation) -> str:
        model = GenericFakeChatModel(messages=iter([f"model {operation.label}"]))
        return str((await model.ainvoke("go")).text)


class State(TypedDict, total=False):
    notes: Annotated[list[str], add]
    place: int


class Place(TypedDict, total=False):
    place: int


class Graph:
    """Makes the graph of a program."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects

    def agent(self, operations: Sequence[Operation]) -> Agent:
        """The graph, with a node after each stage."""
        graph = StateGraph(State)
        before = START
        for stage in operations:
            after = f"after {stage.label}"
            graph.add_node(after, lambda _: {})
            (self._add_sends if stage.kind == "sends" else self._add_nodes)(graph, stage, before, after)
            before = after
        return agent(graph, id="graph", read_input=no_notes, write_answer=lambda values: " ".join(values["notes"]))

    def _add_sends(self, graph: Any, stage: Operation, before: str, after: str) -> None:
        async def work(state: State) -> State:
            return await self._play(stage.inner[state["place"]][0])

        graph.add_node(stage.label, work)
        sends = [Send(stage.label, {"place": place}) for place in range(len(stage.inner))]
        graph.add_conditional_edges(before, lambda _: sends, [stage.label])
        graph.add_edge(stage.label, after)

    def _add_nodes(self, graph: Any, stage: Operation, before: str, after: str) -> None:
        for (one,) in stage.inner:
            retries = RetryPolicy(initial_interval=3, jitter=False) if one.kind == "retried" else None
            graph.add_node(one.label, self._team(one) if one.kind == "team" else self._node(one), retry_policy=retries)
            graph.add_edge(before, one.label)
        graph.add_edge([one.label for (one,) in stage.inner], after)

    def _team(self, operation: Operation) -> Any:
        inner = StateGraph(State, input_schema=Place)  # without notes: it would return them again
        before = START
        for one in operation.inner[0]:
            inner.add_node(f"{one.label} node", self._node(Operation("node", one.label, "", inner=((one,),))))
            inner.add_edge(before, f"{one.label} node")
            before = f"{one.label} node"
        return inner.compile()

    def _node(self, operation: Operation) -> Any:
        async def work(_: State) -> State:
            return await self._play(operation)

        async def fail_first(_: State) -> State:
            done = await self._play(operation)
            about = get_runtime().execution_info
            if about and about.node_attempt == 1:
                raise ConnectionError(operation.label)
            return done

        return fail_first if operation.kind == "retried" else work

    async def _play(self, node: Operation) -> State:
        return {"notes": list(leaves(await NodePlayer(current_task(), self._effects).play(node.inner[0])))}


async def no_notes(_: TaskContext) -> State:
    return {"notes": []}


class _OraclePlayer(NodePlayer):
    def __init__(self, oracle: Oracle) -> None:
        super().__init__(oracle, Effects())
        self._oracle = oracle

    async def _stage(self, operation: Operation) -> list[Any]:
        return await Rounds(self._put).gather(*(self.play(branch[0].inner[0]) for branch in operation.inner))

    _sends = _stage

    async def _interrupt(self, operation: Operation) -> str:
        return await ROUNDS.get().interrupt(f"interrupt {operation.name}?")

    async def _model(self, operation: Operation) -> str:
        return f"model {operation.label}"

    def _put(self, questions: list[str]) -> list[str]:
        """They are one question, which is asked again without what was answered."""
        answers = []
        for place in range(len(questions)):
            self._oracle.asked.append(PARTS.join(questions[place:]))
            answers.append(f"answer {len(self._oracle.asked)}")
        return answers


def conversation_of(operations: list[Operation]) -> Conversation:
    oracle, clock = Oracle(), [BEGAN]

    def wait(ms: int) -> None:
        clock[0] += ms

    loop = SimulatedLoop(lambda: clock[0], wait)
    try:
        answer = loop.run_until_complete(_OraclePlayer(oracle).play(operations))
    finally:
        loop.close()
    expected = {
        "answer": " ".join(leaves(answer)),
        "asked": [part for question in oracle.asked for part in question.split(PARTS)],
        "progress": Counter(oracle.progress),
        "artifacts": {**oracle.texts, **_spoken(operations)},
        "usage": dict(oracle.usage),
    }
    return Conversation(lambda effects: Graph(effects).agent(operations), expected)


def _spoken(operations: Sequence[Operation]) -> dict[str, str]:
    """What models say, by the name of the artifact: node and superstep, and its number in there."""
    texts = dict[str, str]()
    for number, stage in enumerate(operations):
        for place, (one,) in enumerate(stage.inner):
            own = (
                f"{stage.label}@{2 * number + 1}[{place}]" if stage.kind == "sends" else f"{one.label}@{2 * number + 1}"
            )
            said = [f"model {inner.label}" for inner in one.inner[0] if inner.kind == "model"]
            texts |= {own if turn == 1 else f"{own}.{turn}": text for turn, text in enumerate(said, 1)}
    return texts


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_rule_07_an_interruption_anywhere_changes_nothing_of_what_a_random_graph_comes_to(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - a seed, not a secret
    operations = make_graph_program(chance)
    wrong = list(differences(conversation_of(operations), chance, PLAYS))
    assert not wrong, f"{len(wrong)} of {' '.join(map(str, operations))}: " + "\n".join(wrong[:5])
