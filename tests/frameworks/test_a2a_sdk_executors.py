"""Executors that other frameworks ship for the official SDK: ADK's for 1.x, Strands' for 0.3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("a2a", reason="a2a-sdk is not installed here: make frameworks")

from a2a_serverless import Skill
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.a2a_sdk import IS_0_3, from_executor
from tests.frameworks.kills import Ledger, Played, Scenario, assert_one_answer, kill_everywhere

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from a2a_serverless import Agent

FIELDS: dict[str, Any] = {"id": "sdk", "name": "SDK", "description": "x", "skills": (Skill("s", "s", "s", ("s",)),)}


def adk(ledger: Ledger) -> Agent:
    from google.adk.a2a.executor.a2a_agent_executor import A2aAgentExecutor
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    class Fake(BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[Any]:  # noqa: ARG002, FBT001, FBT002
            said = types.Part(text=f"Hello {ledger.pay('turn')}.")
            yield LlmResponse(content=types.Content(role="model", parts=[said]))

    def make() -> Any:
        return A2aAgentExecutor(runner=InMemoryRunner(LlmAgent(name="greeter", model=Fake(model="fake"))))

    return from_executor(make, **FIELDS)


def conversation(ledger: Ledger) -> Agent:
    """ADK's executor with sessions in the conversation. Its model says what it hears, and asks for an approval."""
    from google.adk.a2a.executor.a2a_agent_executor import A2aAgentExecutor
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import Runner
    from google.adk.tools import LongRunningFunctionTool
    from google.genai import types

    from a2a_serverless_frameworks.adk_sessions import ConversationSessions

    def approve() -> None:
        """Asks."""

    def count(callback_context: Any) -> None:
        callback_context.state["turns"] = callback_context.state.get("turns", 0) + 1

    class Fake(BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[Any]:  # noqa: ARG002, FBT001, FBT002
            ledger.pay("turn")
            parts = [part for content in llm_request.contents for part in content.parts]
            heard = [part.text for part in parts if part.text]
            second = "turn 2" in llm_request.config.system_instruction
            said = types.Part(text=f"{heard} {second}")
            if heard[-1] == "go" and not any(part.function_call for part in parts):
                said = types.Part(function_call=types.FunctionCall(name="approve", id="c1", args={}))
            yield LlmResponse(content=types.Content(role="model", parts=[said]))

    root = LlmAgent(
        name="greeter",
        model=Fake(model="fake"),
        instruction="turn {turns}",
        tools=[LongRunningFunctionTool(approve)],
        before_agent_callback=count,
    )
    runner = Runner(app_name="greeter", agent=root, session_service=ConversationSessions())
    return from_executor(lambda: A2aAgentExecutor(runner=runner), **FIELDS)


def strands(ledger: Ledger) -> Agent:
    from strands import Agent as StrandsAgent
    from strands.models import Model
    from strands.multiagent.a2a.executor import StrandsA2AExecutor

    class Fake(Model):
        def update_config(self, **model_config: Any) -> None:
            pass

        def get_config(self) -> dict[str, Any]:
            return {}

        def structured_output(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        async def stream(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
            number = ledger.pay("turn")
            yield {"messageStart": {"role": "assistant"}}
            yield {"contentBlockStart": {"start": {}}}
            for word in ("Hello ", f"{number}", "."):
                yield {"contentBlockDelta": {"delta": {"text": word}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}

    def make() -> Any:
        def agent(_: str) -> Any:
            return StrandsAgent(model=Fake(), callback_handler=None)

        return StrandsA2AExecutor(agent_factory=agent, enable_a2a_compliant_streaming=True)

    return from_executor(make, **FIELDS)


def one_greeting(played: Played) -> None:
    """One try's words, and no others."""
    assert_one_answer(played)
    said = [artifact.text() for artifact in played.task.artifacts if artifact.text()]
    assert said in [[f"Hello {number}."] for number in range(len(played.ledger.paid))], said


@pytest.mark.filterwarnings("ignore")  # the frameworks' own
def test_rule_07_whenever_a_process_dies_the_executor_of_a_framework_greets_once() -> None:
    report = kill_everywhere(Scenario(strands if IS_0_3 else adk, lambda _: "turn"), one_greeting)
    assert report.wrong == []
    assert sum(report.kills.values()) > 20


@pytest.mark.skipif(IS_0_3, reason="ADK's executor is tried with 1.x")
@pytest.mark.filterwarnings("ignore")  # the framework's own
def test_rule_07_whenever_a_process_dies_an_executor_s_session_in_the_conversation_has_each_turn_once() -> None:
    def check(played: Played) -> None:
        assert_one_answer(played)
        assert [one.text() for one in played.task.artifacts if one.text()] == ["['go', 'yes'] True"]

    report = kill_everywhere(Scenario(conversation, lambda _: "never", ["yes"]), check)
    assert report.wrong == []
    assert sum(report.kills.values()) > 40


@pytest.mark.skipif(IS_0_3, reason="ADK's executor is tried with 1.x")
@pytest.mark.filterwarnings("ignore")  # the framework's own
def test_the_next_task_of_a_conversation_gets_an_executor_s_session() -> None:
    harness = AgentTestHarness(conversation(Ledger(lambda _: "never")))
    first = harness.send("a")
    assert harness.send("b", context_id=first.task.context_id).text("artifact").startswith("['a', ")
    assert harness.send("b").text("artifact").startswith("['b']"), "another conversation has another session"
