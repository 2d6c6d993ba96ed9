"""However a random agent that runs Strands agents is interrupted, it comes to the same."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("strands", reason="Strands is not installed here: make frameworks")

from strands import Agent, ToolContext, tool
from strands.models import Model

from a2a_serverless_frameworks.strands import run
from tests.frameworks.replays import SEEDS, assert_interruptions_change_nothing
from tests.replay.tool_programs import ToolPlayer, last_words

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from a2a_serverless import TaskContext
    from tests.replay.programs import Effects, Operation

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


@pytest.mark.parametrize("seed", SEEDS)
def test_rule_07_an_interruption_anywhere_changes_nothing_of_what_agents_with_tools_come_to(seed: int) -> None:
    assert_interruptions_change_nothing(StrandsPlayer, seed, MODEL, APPROVAL, together=True)
