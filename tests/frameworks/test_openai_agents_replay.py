"""However a random agent that runs agents of the OpenAI Agents SDK is interrupted, it comes to the same."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("agents", reason="The OpenAI Agents SDK is not installed here: make frameworks")

from agents import Agent, function_tool
from agents.tool_context import ToolContext  # noqa: TC002 - the SDK reads the annotation

from a2a_serverless_frameworks.openai_agents import run
from tests.frameworks.replays import SEEDS, assert_interruptions_change_nothing
from tests.frameworks.test_openai_agents import FakeModel
from tests.replay.tool_programs import ToolPlayer, last_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_serverless import TaskContext
    from tests.replay.programs import Effects, Operation

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


@pytest.mark.parametrize("seed", SEEDS)
def test_rule_07_an_interruption_anywhere_changes_nothing_of_what_agents_with_tools_come_to(seed: int) -> None:
    assert_interruptions_change_nothing(AgentsPlayer, seed, FakeModel.model, APPROVAL)
