"""However a random agent that runs agents of Google's ADK is interrupted, it comes to the same."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("google.adk", reason="Google's ADK is not installed here: make frameworks")

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types

from a2a_serverless_frameworks.adk import run
from tests.frameworks.replays import SEEDS, assert_interruptions_change_nothing
from tests.replay.tool_programs import ToolPlayer, last_words

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from google.adk.models import LlmRequest

    from tests.replay.programs import Operation

MODEL = "fake"
APPROVAL = "May I? May I call guarded({})? Answer yes, or no and why."
pytestmark = [
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
    pytest.mark.filterwarnings("ignore:A test tried to use socket.socket:UserWarning"),  # the framework asks for IPv6
]


class OperationModel(BaseLlm):
    """Calls the tools of the operation, and says at last what they have answered."""

    model: str = MODEL
    player: Any
    operation: Any

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002 - the framework's
    ) -> AsyncIterator[LlmResponse]:
        turn, heard = _turn_of(llm_request.contents)
        calls = self.operation.inner[turn] if turn < len(self.operation.inner) else ()
        parts = []
        for piece in [f"I call my tools for the turn {turn}."] if calls else last_words(self.operation, heard):
            await asyncio.sleep(self.operation.seconds)
            parts.append(types.Part(text=piece))
            if stream:
                yield LlmResponse(content=types.Content(role="model", parts=[parts[-1]]), partial=True)
        calls_made = [types.FunctionCall(name=call.kind, id=call.name, args={}) for call in calls]
        parts += [types.Part(function_call=call) for call in calls_made]
        self.player.pay(self.operation, turn)
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def _turn_of(contents: list[types.Content]) -> tuple[int, list[str]]:
    """How many responses there are, and what the tools have answered, in the order of their ids."""
    heard = list[str]()
    for content in contents:
        responses = sorted((one.id, one.response["result"]) for one in map(_response, content.parts) if one)
        heard += [text for _, text in responses]
    return sum(content.role == "model" for content in contents), heard


def _response(part: types.Part) -> types.FunctionResponse | None:
    return part.function_response


class AdkPlayer(ToolPlayer):
    """Each run has a new session."""

    async def run_agent(self, operation: Operation, *, stream: bool) -> str:
        tools = [self._tool(operation, name) for name in ("work", "guarded", "delegate")]
        model = OperationModel(player=self, operation=operation)
        output = await run(LlmAgent(name=operation.name, model=model, tools=tools), "go", stream=stream)
        assert output
        return "".join(part.text for part in output.content.parts)

    def _tool(self, operation: Operation, name: str) -> FunctionTool:
        async def use(tool_context: ToolContext) -> str:
            """A tool."""
            answers = sum(bool(event.get_function_calls()) for event in _own(tool_context))
            call_id = tool_context.function_call_id
            (call,) = (one for one in operation.inner[answers - 1] if one.name == call_id)
            if name == "guarded" and not tool_context.tool_confirmation:
                tool_context.request_confirmation(hint="May I?")
                return "asked"

            async def approve() -> str:
                confirmation = tool_context.tool_confirmation
                return "yes" if confirmation.confirmed else str(confirmation.payload)

            return await self.play_tool(call, approve)

        use.__name__ = name
        return FunctionTool(use)


def _own(tool_context: ToolContext) -> list[Any]:
    """The events of the model, without the framework's requests for confirmations."""
    events = [event for event in tool_context.session.events if event.get_function_calls()]
    return [event for event in events if event.get_function_calls()[0].name != "adk_request_confirmation"]


@pytest.mark.parametrize("seed", SEEDS)
def test_rule_07_an_interruption_anywhere_changes_nothing_of_what_agents_with_tools_come_to(seed: int) -> None:
    assert_interruptions_change_nothing(AdkPlayer, seed, MODEL, APPROVAL)
