"""LangChain's reviews of actions, through its own agents and middleware, with fake chat models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain", reason="LangChain is not installed here: make frameworks")

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel

from a2a_serverless import Part
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.langgraph import agent
from tests.frameworks.kills import Ledger, Played, Scenario, assert_one_answer, kill_everywhere

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_serverless import Agent
    from a2a_serverless.testing import Reply


class Model(BaseChatModel):
    """Says its messages, one in each turn."""

    turns: list[AIMessage]

    @property
    def _llm_type(self) -> str:
        return "fake"

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        turn = sum(message.type == "ai" for message in messages)
        return ChatResult(generations=[ChatGeneration(message=self.turns[turn].model_copy())])

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        del tools
        return self


def calls_of(*things: str) -> AIMessage:
    calls: Any = [{"name": "buy", "args": {"thing": thing}, "id": f"c{n}"} for n, thing in enumerate(things)]
    return AIMessage("", tool_calls=calls)


def buyer(ledger: Ledger, *things: str, allowed: Sequence[str] = (), **options: Any) -> Agent:
    """Buys things, if the client approves; its answer is what the tools have said."""

    @tool
    def buy(thing: str) -> str:
        """Buys."""
        ledger.pay(thing)
        return f"bought a {thing}"

    on: Any = {"buy": {"allowed_decisions": [*allowed]} if allowed else True}
    review = HumanInTheLoopMiddleware(interrupt_on=on, edit_notice=None, **options)
    model = Model(turns=[calls_of(*things), AIMessage("Done.")])

    def heard(values: Any) -> str:
        return "; ".join(message.text for message in values["messages"] if message.type == "tool")

    graph = create_agent(model, tools=[buy], middleware=[review])
    return agent(graph, id="buyer", write_answer=heard)


def shop(*things: str, **options: Any) -> tuple[AgentTestHarness, list[str]]:
    ledger = Ledger(str)
    return AgentTestHarness(buyer(ledger, *things, **options)), ledger.paid


def say(harness: AgentTestHarness, asked: Reply, answer: Any) -> Reply:
    return harness.send(answer if isinstance(answer, str) else [Part(data=answer)], task_id=asked.task.id)


MODES = pytest.mark.parametrize("mode", ["batched", "per_call"])
BOAT = {"name": "buy", "args": {"thing": "boat"}}


@MODES
@pytest.mark.parametrize(
    ("answer", "bought", "heard"),
    [
        ("yes", ["car"], "bought a car"),
        ("Accept.", ["car"], "bought a car"),
        ({"type": "approve"}, ["car"], "bought a car"),
        ({"approved": True}, ["car"], "bought a car"),
        ('edit {"thing": "boat"}', ["boat"], "bought a boat"),
        ({"type": "edit", "edited_action": BOAT}, ["boat"], "bought a boat"),
        ({"approved": True, "override_args": {"thing": "boat"}}, ["boat"], "bought a boat"),
        ("no, too dear", [], "User rejected the tool call for `buy` with reason: too dear"),
        ({"type": "reject", "message": "dear"}, [], "User rejected the tool call for `buy` with reason: dear"),
        ("respond sold out", [], "sold out"),
        ({"type": "respond", "message": "sold out"}, [], "sold out"),
    ],
)
def test_an_action_is_decided_in_words_and_in_the_forms_of_vendors(
    mode: str, answer: Any, bought: list[str], heard: str
) -> None:
    harness, paid = shop("car", interrupt_mode=mode)
    asked = harness.send("go")
    assert (asked.error, asked.state) == (None, "input-required")
    assert asked.said.startswith('May I call buy({"thing": "car"})? Answer yes, edit')
    reply = say(harness, asked, answer)
    assert (reply.error, paid, reply.said) == (None, bought, heard)


def test_the_question_has_the_request_as_the_middleware_makes_it() -> None:
    harness, _ = shop("car")
    message = harness.send("go").task.status.message
    assert message
    data: Any = message.data()
    assert data["action_requests"][0]["name"] == "buy"
    assert data["review_configs"][0]["allowed_decisions"] == ["approve", "edit", "reject", "respond"]


@MODES
@pytest.mark.parametrize(
    ("allowed", "metadata"),
    [
        ([], {"kind": "approval"}),
        (["approve", "reject"], {"kind": "approval"}),
        (["approve", "edit"], None),
        (["reject", "respond"], None),
    ],
)
def test_a_question_that_a_yes_and_a_no_answer_is_an_approval(mode: str, allowed: list[str], metadata: Any) -> None:
    harness, _ = shop("car", allowed=allowed, interrupt_mode=mode)
    message = harness.send("go").task.status.message
    assert message
    assert message.metadata == metadata


@MODES
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("perhaps", "It does not begin with a yes or a no."),
        ("yes, but a red one", "There is more text than a yes."),
        ({"type": "approve", "note": "red"}, "I do not know what to do with the members type, note"),
        ("edit {'thing': 'boat'}", "are no JSON"),
        ("respond sold out", "The decision 'respond' is not possible here. Answer yes, edit"),
    ],
)
def test_an_answer_that_cannot_be_read_is_asked_for_again(mode: str, answer: Any, reason: str) -> None:
    harness, paid = shop("car", allowed=["approve", "edit", "reject"], interrupt_mode=mode)
    asked = harness.send("go")
    again = say(harness, asked, answer)
    assert (again.error, again.state) == (None, "input-required")
    assert reason in again.said
    assert again.said.endswith(asked.said)
    assert (say(harness, asked, "yes").said, paid) == ("bought a car", ["car"])


@MODES
def test_the_fourth_answer_that_cannot_be_read_is_a_denial(mode: str) -> None:
    harness, paid = shop("car", interrupt_mode=mode)
    reply = harness.send("go")
    for _ in range(4):
        assert reply.state == "input-required"
        reply = say(harness, reply, "perhaps")
    assert (reply.error, paid) == (None, [])
    assert reply.said.endswith("The client has not given an answer that can be read.")


def test_arguments_that_the_tool_does_not_take_are_asked_for_again() -> None:
    harness, paid = shop("car", interrupt_mode="per_call")
    asked = reply = harness.send("go")
    for left in ("After 3 more", "After 2 more", "This is the last time"):
        reply = say(harness, asked, 'edit {"thing": 7}')
        assert (reply.error, reply.state) == (None, "input-required")
        assert "thing" in reply.said
        assert left in reply.said
    assert say(harness, asked, 'edit {"thing": 7}').said.endswith("an answer that can be read.")
    assert paid == []


def test_an_action_that_cannot_be_denied_is_asked_for_until_an_answer_can_be_read() -> None:
    harness, paid = shop("car", allowed=["approve"])
    asked = reply = harness.send("go")
    for _ in range(6):
        reply = say(harness, asked, "no")
        assert (reply.error, reply.state) == (None, "input-required")
    assert (say(harness, asked, "yes").said, paid) == ("bought a car", ["car"])


@pytest.mark.parametrize(
    ("answer", "bought"),
    [
        ("yes", ["boat", "car"]),
        ("no", []),
        ({"decisions": [{"type": "reject"}, {"type": "approve"}]}, ["boat"]),
        ({"decisions": ["yes", "no"]}, ["car"]),
        ([True, False], ["car"]),
    ],
)
def test_actions_of_one_turn_are_one_question(answer: Any, bought: list[str]) -> None:
    harness, paid = shop("car", "boat")
    asked = harness.send("go")
    assert asked.said.startswith('May I call buy({"thing": "car"})? May I call buy({"thing": "boat"})? Answer')
    again = say(harness, asked, {"decisions": [{"type": "approve"}]})
    assert "It has 1 decisions for 2 actions." in again.said
    again = say(harness, asked, 'edit {"thing": "bike"}')
    assert "It belongs to one of several actions." in again.said
    reply = say(harness, asked, answer)
    assert (reply.error, sorted(paid)) == (None, bought)


def test_actions_that_ask_one_by_one_are_answered_by_ids() -> None:
    harness, paid = shop("car", "boat", interrupt_mode="per_call")
    asked = harness.send("go")
    message = asked.task.status.message
    assert message
    car, boat = [(part.metadata or {})["interrupt"] for part in message.parts if part.kind == "data"]
    again = say(harness, asked, {str(car): "no", str(boat): "perhaps"})
    assert "It does not begin with a yes or a no." in again.said
    again = say(harness, asked, {str(car): "no", "other": "yes"})
    assert "No question that is open has the id other." in again.said
    reply = say(harness, asked, {str(car): {"type": "reject"}, str(boat): {"type": "approve"}})
    assert (reply.error, paid) == (None, ["boat"])


def inbox(*requests: Any) -> AgentTestHarness:
    def triage(state: MessagesState) -> Any:
        del state
        return {"messages": [AIMessage(str(interrupt([*requests])))]}

    graph = StateGraph(MessagesState)
    graph.add_node("triage", triage)
    graph.add_edge(START, "triage")
    return AgentTestHarness(agent(graph, id="inbox"))


def request_of(**config: bool) -> Any:
    return {"action_request": {"action": "send", "args": {"to": "Ada"}}, "config": config, "description": "..."}


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        ("accept", {"type": "accept", "args": None}),
        ({"type": "ignore"}, {"type": "ignore", "args": None}),
        ("no", {"type": "ignore", "args": None}),
        ("no, not now", {"type": "response", "args": "not now"}),
        ("response not now", {"type": "response", "args": "not now"}),
        ('edit {"to": "Bob"}', {"type": "edit", "args": {"action": "send", "args": {"to": "Bob"}}}),
        (
            [{"type": "edit", "args": {"action": "send", "args": {"to": "Bob"}}}],
            {"type": "edit", "args": {"action": "send", "args": {"to": "Bob"}}},
        ),
    ],
)
def test_requests_of_an_agent_inbox_get_its_replies(answer: Any, reply: dict[str, Any]) -> None:
    harness = inbox(request_of(allow_accept=True, allow_edit=True, allow_ignore=True, allow_respond=True))
    asked = harness.send("go")
    assert asked.said.startswith('May I call send({"to": "Ada"})?')
    assert say(harness, asked, answer).said == str([reply])


class Order(BaseModel):
    number: int


def test_an_answer_that_does_not_match_the_schema_of_an_interrupt_is_asked_for_again() -> None:
    def order(state: MessagesState) -> Any:
        del state
        return {"messages": [AIMessage(f"{interrupt('Which?', response_schema=Order).number} ordered")]}

    graph = StateGraph(MessagesState)
    graph.add_node("order", order)
    graph.add_edge(START, "order")
    harness = AgentTestHarness(agent(graph, id="orders"))
    asked = harness.send("go")
    for _ in range(5):
        again = say(harness, asked, {"number": "x"})
        assert (again.error, again.state) == (None, "input-required")
        assert "valid integer" in again.said
        assert again.said.endswith("Which?")
    assert say(harness, asked, {"number": 7}).said == "7 ordered"


def test_a_review_whose_schema_takes_no_denial_ends_the_task_after_the_last_answer_that_cannot_be_used() -> None:
    def triage(state: MessagesState) -> Any:
        del state
        return {"messages": [AIMessage(str(interrupt(request_of(allow_ignore=True), response_schema=Order)))]}

    graph = StateGraph(MessagesState)
    graph.add_node("triage", triage)
    graph.add_edge(START, "triage")
    harness = AgentTestHarness(agent(graph, id="inbox"))
    reply = asked = harness.send("go")
    while reply.state == "input-required":
        reply = say(harness, asked, "no")
    assert reply.state == "failed"
    assert "a denial do not match the schema of an interrupt" in reply.said


@MODES
def test_an_agent_that_is_a_tool_asks_the_client_and_its_usage_counts(mode: str) -> None:
    bought: list[str] = []

    @tool
    def buy(thing: str) -> str:
        """Buys."""
        bought.append(thing)
        return "bought"

    def said(message: AIMessage) -> AIMessage:
        used: Any = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
        return message.model_copy(update={"usage_metadata": used, "response_metadata": {"model_name": "m"}})

    review = HumanInTheLoopMiddleware(interrupt_on={"buy": True}, edit_notice=None, interrupt_mode=mode)
    inner_model = Model(turns=[said(calls_of("car")), said(AIMessage("It is bought."))])
    inner = create_agent(inner_model, tools=[buy], middleware=[review])

    @tool
    async def delegate(text: str) -> str:
        """Delegates."""
        values = await inner.ainvoke({"messages": [("user", text)]})
        return str(values["messages"][-1].text)

    calls: Any = [{"name": "delegate", "args": {"text": "buy"}, "id": "d1"}]
    model = Model(turns=[said(AIMessage("", tool_calls=calls)), said(AIMessage("Done."))])
    harness = AgentTestHarness(agent(create_agent(model, tools=[delegate]), id="chief"))
    asked = harness.send("go")
    assert (asked.error, asked.said.partition("?")[0]) == (None, 'May I call buy({"thing": "car"})')
    reply = say(harness, asked, "yes")
    assert (reply.error, reply.said, bought) == (None, "Done.", ["car"])
    usage = (reply.task.metadata or {})["a2a-serverless/usage"]
    assert usage == {"m": {"input_tokens": 12, "output_tokens": 8}}


def check(played: Played) -> None:
    assert_one_answer(played)
    assert {*played.ledger.paid} == {"boat"}
    questions = [event for event in played.events if str(getattr(event, "state", "")) == "input-required"]
    assert len({question.message.message_id for question in questions}) == 3


@MODES
def test_a_death_anywhere_asks_no_question_twice_and_pays_for_nothing_twice(mode: str) -> None:
    answers = ["perhaps", 'edit {"thing": 7}' if mode == "per_call" else "edit 7", 'edit {"thing": "boat"}']
    scenario = Scenario(lambda ledger: buyer(ledger, "car", interrupt_mode=mode), str, answers)
    report = kill_everywhere(scenario, check)
    assert not report.wrong, "\n".join(report.wrong[:10])
