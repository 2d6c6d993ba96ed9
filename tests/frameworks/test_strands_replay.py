"""However a random agent that runs Strands agents is interrupted, it comes to the same."""

from __future__ import annotations

import asyncio
import os
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("strands", reason="Strands is not installed here: make frameworks")

from strands import Agent, ToolContext, tool
from strands.models import Model

from a2a_serverless_frameworks.strands import run
from tests.echo import agent_of
from tests.replay.plays import Conversation, differences, is_step_of
from tests.replay.tool_programs import ToolPlayer, answer_to, last_words, leaves, make_tool_program, tool_outcome_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from a2a_serverless import Agent as A2AAgent
    from a2a_serverless import TaskContext
    from tests.replay.programs import Effects, Operation

FIRST = int(os.environ.get("FIRST_SEED", "1"))
SEEDS = int(os.environ.get("SEEDS", "1"))
PLAYS = int(os.environ.get("PLAYS", "24"))
MODEL = "fake"
APPROVAL = "approve: May I?"


class OperationModel(Model):
    """Calls the tools of the operation, and says at last what they have answered."""

    def __init__(self, player: StrandsPlayer, operation: Operation) -> None:
        self._player, self._operation = player, operation

    def update_config(self, **model_config: Any) -> None:
        pass

    def get_config(self) -> dict[str, Any]:
        return {"model_id": MODEL}

    async def structured_output(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
        yield

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        turn, heard = _turn_of(messages)
        calls = self._operation.inner[turn] if turn < len(self._operation.inner) else ()
        yield {"messageStart": {"role": "assistant"}}
        for piece in [f"I call my tools for the turn {turn}."] if calls else last_words(self._operation, heard):
            await asyncio.sleep(self._operation.seconds)
            yield {"contentBlockDelta": {"delta": {"text": piece}}}
        yield {"contentBlockStop": {}}
        for call in calls:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": call.kind, "toolUseId": call.name}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": "{}"}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}
        self._player.pay(self._operation, turn)


def _turn_of(messages: Any) -> tuple[int, list[str]]:
    """How many responses there are since the prompt, and what the tools have answered, in the order of their ids."""
    began = max(place for place, one in enumerate(messages) if any("text" in block for block in _user(one)))
    heard = list[str]()
    for message in messages[began:]:
        results = sorted((one["toolResult"]["toolUseId"], one) for one in _user(message) if "toolResult" in one)
        heard += [block["toolResult"]["content"][0]["text"] for _, block in results]
    return sum(message["role"] == "assistant" for message in messages[began:]), heard


def _user(message: Any) -> Any:
    return message["content"] if message["role"] == "user" else []


class StrandsPlayer(ToolPlayer):
    """Each run gets the messages of the run before it."""

    def __init__(self, task: TaskContext, effects: Effects) -> None:
        super().__init__(task, effects)
        self._messages: list[Any] = []

    async def run_agent(self, operation: Operation, *, stream: bool) -> str:
        tools = [self._tool(operation, name) for name in ("work", "guarded", "delegate")]
        model = OperationModel(self, operation)
        made = Agent(
            model,
            tools=tools,
            name=operation.name,
            messages=[*self._messages],
            callback_handler=None,
            load_tools_from_directory=False,
        )
        result = await run(made, "go", stream=stream)
        if stream:
            self._messages = made.messages
        return "".join(block["text"] for block in result.message["content"])

    def _tool(self, operation: Operation, name: str) -> Any:
        async def use(tool_context: ToolContext) -> str:
            """A tool."""
            turn, _ = _turn_of(tool_context.agent.messages)
            use_id = tool_context.tool_use["toolUseId"]
            (call,) = (one for one in operation.inner[turn - 1] if one.name == use_id)

            async def approve() -> str:
                return str(tool_context.interrupt("approve", reason="May I?"))

            return await self.play_tool(call, approve)

        return tool(name=name, context=True)(use)


def conversation_of(operations: list[Operation]) -> Conversation:
    def make(effects: Effects) -> A2AAgent:
        async def work(task: TaskContext) -> str:
            return " ".join(leaves(await StrandsPlayer(task, effects).play(operations)))

        return agent_of(work)

    expected, responses = tool_outcome_of(operations, MODEL, APPROVAL, together=True)

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
