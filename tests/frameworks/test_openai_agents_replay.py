"""However a random agent that runs agents of the OpenAI Agents SDK is interrupted, it comes to the same."""

from __future__ import annotations

import os
from itertools import groupby
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("agents", reason="The OpenAI Agents SDK is not installed here: make frameworks")

from agents import Agent, function_tool
from agents.tool_context import ToolContext  # noqa: TC002 - the SDK reads the annotation

from a2a_serverless_frameworks.openai_agents import run
from tests.echo import agent_of
from tests.frameworks.test_openai_agents import FakeModel
from tests.replay.plays import Conversation, differences, is_step_of
from tests.replay.tool_programs import ToolPlayer, answer_to, last_words, leaves, make_tool_program, tool_outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_serverless import Agent as A2AAgent
    from a2a_serverless import TaskContext
    from tests.replay.programs import Effects, Operation

FIRST = int(os.environ.get("FIRST_SEED", "1"))
SEEDS = int(os.environ.get("SEEDS", "1"))
PLAYS = int(os.environ.get("PLAYS", "24"))
APPROVAL = "May I call guarded({})? Answer yes, or no and why."


class AgentsPlayer(ToolPlayer):
    """Each run gets the items of the run before it."""

    def __init__(self, task: TaskContext, effects: Effects) -> None:
        super().__init__(task, effects)
        self._items: list[Any] = []

    async def run_agent(self, operation: Operation, *, stream: bool) -> str:
        result = await run(self._agent_of(operation), [*self._items, {"role": "user", "content": "go"}], stream=stream)
        if stream:
            self._items = result.to_input_list()
        return str(result.final_output)

    def _agent_of(self, operation: Operation) -> Agent:
        heard = list[Any]()

        def turns(turn: int) -> Iterable[Any]:
            calls = operation.inner[turn - 1] if turn <= len(operation.inner) else ()
            texts = ["I call my tools."] if calls else last_words(operation, _outputs(heard[-1]))
            yield from (*texts, *((call.kind, call.name, {}) for call in calls))
            self.pay(operation, turn - 1)

        async def use(context: ToolContext[Any]) -> str:
            """A tool."""
            turn = operation.inner[context.usage.requests - 1]
            (call,) = (one for one in turn if one.name == context.tool_call_id.partition("-")[0])
            return await self.play_tool(call)

        tools = [function_tool(use, name_override=name) for name in ("work", "delegate")]
        tools.append(function_tool(use, name_override="guarded", needs_approval=True))
        return Agent(operation.name, model=FakeModel(turns, operation.seconds, heard), tools=[*tools])


def _outputs(items: list[Any]) -> list[str]:
    """What the tools have answered since the last prompt: turn by turn, in the order of the calls' ids."""
    began = max(place for place, item in enumerate(items) if item.get("role") == "user")
    turns = groupby(items[began:], lambda item: item.get("type") == "function_call_output")
    answered = [sorted(turn, key=lambda item: str(item["call_id"])) for is_output, turn in turns if is_output]
    return [item["output"] for turn in answered for item in turn]


def conversation_of(operations: list[Operation]) -> Conversation:
    def make(effects: Effects) -> A2AAgent:
        async def work(task: TaskContext) -> str:
            return " ".join(leaves(await AgentsPlayer(task, effects).play(operations)))

        return agent_of(work)

    expected, responses = tool_outcome_of(operations, FakeModel.model, APPROVAL)

    def stores(name: str, label: str) -> bool:
        agent, _, number = responses.get(label, "").partition("#")
        model = f"{agent}: model" if number == "1" else f"{agent}: model#{number}"
        return is_step_of(name, label) or (bool(agent) and name == model)

    return Conversation(make, expected, answer_to, stores)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_rule_07_an_interruption_anywhere_changes_nothing_of_what_agents_with_tools_come_to(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - a seed, not a secret
    operations = make_tool_program(chance)
    wrong = list(differences(conversation_of(operations), chance, PLAYS))
    assert not wrong, f"{len(wrong)} of {' '.join(map(str, operations))}: " + "\n".join(wrong[:5])
