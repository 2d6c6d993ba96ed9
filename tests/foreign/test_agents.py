"""Agents that others wrote, served by a line of ours: they answer, ask, stream, are canceled, and die at each call."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("a2a", reason="the foreign agents are not installed here: make foreign")

from a2a_serverless import Task, TaskState
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.a2a_sdk import IS_0_3
from tests.foreign.cases import CASES, PUBLISHED, SERVICES, Case, answer_of
from tests.foreign.mcp_server import mcp_server
from tests.foreign.model_server import ModelRequest, ModelServer, Said, model_server
from tests.foreign.outside import FAULTS, Fault, Outside
from tests.foreign.table import note
from tests.frameworks.kills import Ledger, Played, Scenario, assert_one_answer, kill_everywhere
from tests.frameworks.observed import chunks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless import Agent
    from a2a_serverless.testing import Reply

pytestmark = [pytest.mark.enable_socket, pytest.mark.filterwarnings("ignore")]  # the frameworks' own warnings
HERE = [case for case in CASES if (case.sdk == "0.3") is IS_0_3]
each = pytest.mark.parametrize("case", [case.param for case in HERE])
sys.path.insert(0, str(PUBLISHED))
PAUSE_S = 0.5
NOTICE_S = 3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    """The models and services, for all agents of this process: some read their address once."""
    with model_server() as made, mcp_server(lambda call: made.serve("MCP", call, None)) as mcp_url:
        own = {f"{service}_URL": made.root for service in SERVICES} | {"MCP_URL": mcp_url, "SECRET_NUMBER": "42"}
        own["BANK_DB"] = str(tmp_path_factory.mktemp("bank") / "bank.db")
        before = dict(os.environ)
        os.environ.update(made.environment() | own)
        yield made
        os.environ.clear()
        os.environ.update(before)


def outside(server: ModelServer, case: Case, fault: Fault | None = None) -> Outside:
    """Servers that have seen nothing yet."""
    made = Outside(case.say, case.serve, case.by_turn, fault=fault)
    server.say, server.serve = made.answer, made.serve_path
    return made


def converse(harness: AgentTestHarness, case: Case, **fields: Any) -> Reply:
    """Sends the message, and answers the questions. The last answer is that to all further questions."""
    reply = harness.send(case.content, **fields)
    answers = [*case.answers]
    for _ in range(8):
        if reply.state is not TaskState.INPUT_REQUIRED or not answers:
            break
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        task = reply.task
        references = [task.id] if case.refers else []
        reply = harness.send(answer, task_id=task.id, context_id=task.context_id, references=references)
    return reply


def most_users(seen: Outside) -> int:
    """The most messages of a user in one request to a model."""
    return max((sum(turn.role == "user" for turn in request.turns) for request in seen.requests), default=0)


@each
def test_a_foreign_agent_asks_its_questions_and_gives_its_answer(case: Case, server: ModelServer) -> None:
    seen, harness = outside(server, case), AgentTestHarness(*case.agents())
    first = harness.send(case.content)
    assert first.state is (TaskState.INPUT_REQUIRED if case.answers else TaskState.COMPLETED), first.error
    seen = outside(server, case)
    reply = converse(harness, case)
    assert reply.state is TaskState.COMPLETED, reply.error
    assert case.final in answer_of(reply.task)
    assert seen.wrong == []
    assert max(seen.effects.values(), default=1) == 1
    assert seen.count(case.effect) == bool(case.effect)


@each
def test_a_foreign_agent_that_streams_answers_in_chunks(
    case: Case, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not case.streams:
        pytest.skip("it does not stream")
    outside(server, case)
    monkeypatch.setattr(server, "pause_s", PAUSE_S)
    harness = AgentTestHarness(*case.agents())
    # So simulated time passes beside the server, as real time does, also after a question.
    harness.at(harness.now + 600_000, lambda: None)
    reply = converse(harness, case, until_question=True)
    chunks = chunks_of(harness, reply.task.id, case.streams)
    assert len(chunks) > 1
    assert chunks[-1].last


@each
def test_a_foreign_agent_answers_the_next_task_of_a_conversation(case: Case, server: ModelServer) -> None:
    before, harness = outside(server, case), AgentTestHarness(*case.agents())
    first = converse(harness, case)
    seen = outside(server, case)
    second = converse(harness, case, context_id=first.task.context_id)
    assert second.state is TaskState.COMPLETED, second.error
    assert case.final in answer_of(second.task)
    assert (most_users(seen) > most_users(before)) is case.remembers


@each
def test_a_client_cancels_a_foreign_agent_while_its_model_answers(case: Case, server: ModelServer) -> None:
    if not case.has_model:
        pytest.skip("it has no model, and ends at once")
    seen, harness = outside(server, case), AgentTestHarness(*case.agents())
    task = harness.begin(case.content)
    assert isinstance(task, Task)

    def say(request: ModelRequest) -> Said | int:
        if not seen.requests:
            harness.cancel(task.id)
            time.sleep(0 if case.blocks else NOTICE_S)
        return seen.answer(request)

    server.say = say
    harness.at(harness.now + 600_000, lambda: None)  # so simulated time passes beside the server, as real time does
    harness.settle()
    reply = harness.reply(task.id)
    assert reply.state is TaskState.CANCELED
    assert len(seen.requests) <= 1 or case.blocks, "it goes on after the cancel"
    outside(server, case)
    again = converse(harness, case, context_id=reply.task.context_id)
    assert again.state is TaskState.COMPLETED, again.error


@each
def test_a_death_at_any_call_repeats_no_effect(case: Case, server: ModelServer) -> None:
    agent, kept = case.agents()[0], list[Outside]()

    def make(ledger: Ledger) -> Agent:
        made = outside(server, case)
        made.stored = lambda: ledger.stored()  # noqa: PLW0108 - the play sets it later
        made.wrong = ledger.twice
        kept[:] = [made]
        return agent

    def check(played: Played) -> None:
        assert_one_answer(played)
        assert case.final in answer_of(played.task)
        assert kept[0].count(case.effect) >= bool(case.effect)

    scenario = Scenario(make, lambda _: "never", case.answers, case.content, refers=case.refers)
    report = kill_everywhere(scenario, check)
    note(case, kills=report.kills.total(), wrong=len(report.wrong))
    assert report.wrong == []


@each
@pytest.mark.parametrize("fault", FAULTS)
def test_a_model_that_is_no_friend_leaves_a_task_that_ends(case: Case, fault: Fault, server: ModelServer) -> None:
    if not case.has_model:
        pytest.skip("it has no model")
    outside(server, case, fault)
    harness = AgentTestHarness(*case.agents())
    reply = converse(harness, case)
    assert reply.state in {TaskState.COMPLETED, TaskState.FAILED}
    note(case, **{reply.state: 1})
    if reply.state is TaskState.COMPLETED and fault != "an empty answer":
        assert case.final in answer_of(reply.task) or case.hides_errors
    if fault in {"repeated ids", "parallel calls"}:
        assert reply.state is TaskState.COMPLETED, reply.error
    outside(server, case)
    again = converse(harness, case, context_id=reply.task.context_id)
    assert again.state is TaskState.COMPLETED, again.error
    assert case.final in answer_of(again.task)


@pytest.mark.skipif(IS_0_3, reason="the email assistant is tried with the other agents")
def test_a_node_that_asks_twice_repeats_what_it_did_before_as_langgraph_does_without_us(server: ModelServer) -> None:
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    from tests.foreign.agents.email_assistant import email_assistant

    case = next(case for case in HERE if case.name == "email_assistant")
    seen = outside(server, case, "parallel calls")
    # Without replay: it compares how often LangGraph executes a node, and each later run is one more.
    assert converse(AgentTestHarness(*case.agents(), replay=False), case).state is TaskState.COMPLETED
    graph, thread = email_assistant.copy(), {"configurable": {"thread_id": "1"}}
    graph.checkpointer = InMemorySaver()
    alone = outside(server, case, "parallel calls")
    graph.invoke({"email_input": json.loads(case.text)}, thread)
    for _ in range(2):
        graph.invoke(Command(resume=[{"type": "accept", "args": None}]), thread)
    assert seen.count(case.effect) == alone.count(case.effect) == 3


@pytest.mark.skipif(IS_0_3, reason="the file chat is tried with the other agents")
def test_the_next_question_about_a_file_needs_no_file_and_its_answer_has_the_cited_lines(server: ModelServer) -> None:
    case = next(case for case in HERE if case.name == "file_chat")
    outside(server, case)
    harness = AgentTestHarness(*case.agents())
    first = converse(harness, case)
    seen = outside(server, case)
    second = harness.send("What is a lease?", context_id=first.task.context_id)
    assert answer_of(second.task) == case.final
    assert "Chatting with 5 messages." in [message.text() for message in second.task.history]
    assert seen.count(case.effect) == 0
