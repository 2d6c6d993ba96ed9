"""However a random agent that runs Pydantic AI agents is interrupted, it comes to the same."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pydantic_ai", reason="Pydantic AI is not installed here: make frameworks")

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from a2a_serverless_frameworks.pydantic_ai import run
from tests.frameworks.replays import SEEDS, assert_interruptions_change_nothing
from tests.replay.tool_programs import ToolPlayer, last_words

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pydantic_ai.messages import ModelMessage

    from a2a_serverless import TaskContext
    from tests.replay.programs import Effects, Operation

MODEL = "model"
APPROVAL = "May I call guarded({})? Answer yes, edit and the arguments as JSON, or no and why."


class PydanticPlayer(ToolPlayer):
    """Each run gets the messages of the run before it."""

    def __init__(self, task: TaskContext, effects: Effects) -> None:
        super().__init__(task, effects)
        self._messages: list[ModelMessage] = []

    async def run_agent(self, operation: Operation, *, stream: bool) -> str:
        result = await run(self._agent_of(operation), "go", stream=stream, message_history=self._messages)
        if stream:
            self._messages = result.all_messages()
        return str(result.output)

    def _agent_of(self, operation: Operation) -> Agent[None, str]:
        def turn_of(messages: list[ModelMessage]) -> tuple[int, list[str]]:
            own = messages[max(place for place, one in enumerate(messages) if _is_prompt(one)) :]
            heard = [str(part.content) for one in own for part in one.parts if isinstance(part, ToolReturnPart)]
            return sum(isinstance(one, ModelResponse) for one in own), heard

        async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
            del info
            turn, heard = turn_of(messages)
            calls = operation.inner[turn] if turn < len(operation.inner) else ()
            for piece in [f"I call my tools for the turn {turn}."] if calls else last_words(operation, heard):
                await asyncio.sleep(operation.seconds)
                yield piece
            for place, call in enumerate(calls):
                yield {1 + place: DeltaToolCall(call.kind, "{}", tool_call_id=call.name)}
            self.pay(operation, turn)

        async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            said = [one async for one in stream(messages, info)]
            texts = TextPart("".join(one for one in said if isinstance(one, str)))
            calls = [call for one in said if isinstance(one, dict) for call in one.values()]
            return ModelResponse([texts, *(ToolCallPart(one.name, {}, one.tool_call_id) for one in calls)])

        made = Agent(FunctionModel(answer, stream_function=stream, model_name=MODEL), name=operation.name)

        async def use(ctx: RunContext[None]) -> str:
            (call,) = (one for one in operation.inner[ctx.run_step - 1] if one.name == ctx.tool_call_id)
            return await self.play_tool(call)

        for name in ("work", "delegate"):
            made.tool(name=name)(use)
        made.tool(name="guarded", requires_approval=True)(use)
        return made


def _is_prompt(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)


@pytest.mark.parametrize("seed", SEEDS)
def test_rule_07_an_interruption_anywhere_changes_nothing_of_what_agents_with_tools_come_to(seed: int) -> None:
    assert_interruptions_change_nothing(PydanticPlayer, seed, MODEL, APPROVAL, suffix="__model")
