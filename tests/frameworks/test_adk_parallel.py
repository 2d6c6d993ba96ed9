"""Parallel agents of Google's ADK that wait for the client: what the client approves is done, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("google.adk", reason="Google's ADK is not installed here: make frameworks")

from google.adk.agents import ParallelAgent, SequentialAgent
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.genai import types

from a2a_serverless_frameworks.adk import agent
from tests.frameworks.kills import Ledger, Scenario, kill_everywhere
from tests.frameworks.test_adk import harness_of, llm

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from google.adk.agents import LlmAgent
    from google.adk.agents.callback_context import CallbackContext

    from a2a_serverless import Agent as A2AAgent
    from a2a_serverless.testing import Reply
    from tests.frameworks.kills import Played

pytestmark = [
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
    pytest.mark.filterwarnings("ignore:(Sequential|Parallel|Loop)Agent is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:A test tried to use socket.socket:UserWarning"),  # the framework asks for IPv6
]

NAMES = ("a", "b", "c")


def buyer(name: str, pay: Callable[[str], Any], *, is_long: bool, calls: int = 1) -> LlmAgent:
    """Buys with its client's approval, or waits for its client's result; then it says the results."""

    def buy(number: int) -> dict[str, str]:
        """Buys."""
        pay(f"{name}{number}")
        return {"bought": f"{name}{number}"}

    def wait(number: int) -> None:
        """Takes long."""
        pay(f"{name}{number}")

    tool = LongRunningFunctionTool(wait) if is_long else FunctionTool(buy, require_confirmation=True)
    made = [(tool.name, f"{name}{number}", {"number": number}) for number in range(calls)]
    return llm(name, made, [f"{name} is done."], tools=[tool])


def play(root: Any, *answers: Any) -> tuple[Reply, list[str]]:
    """The last reply, and the questions that the answers answer."""
    harness, questions = harness_of(root), list[str]()
    reply = harness.send("go")
    for answer in answers:
        assert reply.state == "input-required", reply.error
        questions.append(reply.said)
        reply = harness.send(answer, task_id=reply.task.id)
    return reply, questions


def texts_of(reply: Reply) -> dict[str | None, str]:
    return {artifact.name: artifact.text() for artifact in reply.task.artifacts}


@pytest.mark.parametrize("is_long", [False, True])
def test_each_call_that_the_client_answers_has_its_result(is_long: bool) -> None:  # noqa: FBT001
    paid: list[str] = []
    root = ParallelAgent(name="all", sub_agents=[buyer(name, paid.append, is_long=is_long) for name in NAMES])
    reply, _ = play(root, "yes", "yes", "yes")
    assert (reply.error, reply.state) == (None, "completed")
    assert sorted(paid) == ["a0", "b0", "c0"]
    assert texts_of(reply) == {name: f"{name} is done." for name in NAMES}


def test_a_refusal_of_a_parallel_agent_s_call_leaves_the_others_their_results() -> None:
    paid: list[str] = []
    root = ParallelAgent(name="all", sub_agents=[buyer(name, paid.append, is_long=False) for name in NAMES])
    reply, questions = play(root, "yes", "no", "yes")
    assert (reply.error, reply.state) == (None, "completed")
    refused = next(name for name in NAMES if f"{name}0" not in paid)
    assert "May I call" in questions[1]
    assert len(paid) == 2
    assert texts_of(reply)[refused] == f"{refused} is done."


def test_parallel_agents_make_their_calls_and_the_agent_after_them_runs() -> None:
    paid: list[str] = []
    agents: Sequence[Any] = [
        buyer("a", paid.append, is_long=False, calls=2),
        buyer("b", paid.append, is_long=True),
        SequentialAgent(name="both", sub_agents=[buyer(name, paid.append, is_long=False) for name in ("c", "d")]),
    ]
    last = llm("last", ["All is done."])
    root = SequentialAgent(name="all", sub_agents=[ParallelAgent(name="beside", sub_agents=[*agents]), last])
    reply, _ = play(root, *["yes"] * 5)
    assert (reply.error, reply.state) == (None, "completed")
    assert sorted(paid) == ["a0", "a1", "b0", "c0", "d0"]
    assert texts_of(reply) == {**{name: f"{name} is done." for name in "abcd"}, "answer": "All is done."}


def test_no_task_is_completed_without_the_result_of_a_call_that_the_client_approved() -> None:
    paid: list[str] = []

    def skip(callback_context: CallbackContext) -> types.Content | None:
        """Lets the agent run once."""
        if callback_context.state.get("ran"):
            return types.Content(role="model", parts=[types.Part(text="It ran before.")])
        callback_context.state["ran"] = True
        return None

    root = buyer("a", paid.append, is_long=False)
    root.before_agent_callback = skip
    reply, _ = play(root, "yes")
    assert (reply.state, paid) == ("failed", [])
    assert 'ended without the result of buy({"number": 0})' in reply.said


@pytest.mark.parametrize("is_long", [False, True])
def test_rule_07_deaths_around_parallel_questions_pay_nothing_twice_and_lose_nothing(is_long: bool) -> None:  # noqa: FBT001
    def make(ledger: Ledger) -> A2AAgent:
        agents = [buyer(name, ledger.pay, is_long=is_long) for name in ("a", "b")]
        return agent(ParallelAgent(name="all", sub_agents=[*agents]), id="fake", description="Buys.")

    def check(played: Played) -> None:
        assert {artifact.name: artifact.text() for artifact in played.task.artifacts} == {
            "a": "a is done.",
            "b": "b is done.",
        }
        assert {*played.ledger.paid} == {"a0", "b0"}

    report = kill_everywhere(Scenario(make, lambda what: f":{what}", ["yes", "yes"]), check)
    assert not report.wrong, "\n".join(report.wrong[:5])
