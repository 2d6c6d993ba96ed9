"""Agents of deepagents, LangChain's own, unchanged, with fake chat models: to-dos, files, sub-agents and approvals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("deepagents", reason="deepagents is not installed here: make frameworks")

from deepagents import create_deep_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.types import Command

from a2a_serverless import Part, TaskState
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_frameworks.langgraph import agent
from tests.frameworks.kills import Ledger, Played, Scenario, assert_one_answer, kill_everywhere

if TYPE_CHECKING:
    from a2a_serverless import Agent
    from a2a_serverless.testing import Reply

TODOS = ["Read", "Write"]


class Model(BaseChatModel):
    """Makes the calls of a turn since the last user message, and then says what the last tool has returned."""

    turns: list[list[tuple[str, dict[str, Any]]]]
    ledger: Any

    @property
    def _llm_type(self) -> str:
        return "fake"

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        namespace = str(get_config()["metadata"]["langgraph_checkpoint_ns"])
        self.ledger.pay(namespace.rpartition(":")[2])
        since = max(place for place, message in enumerate(messages) if message.type == "human")
        turn = sum(message.type == "ai" for message in messages[since:])
        if turn == len(self.turns):
            message = AIMessage(f"{messages[since].text}: {messages[-1].text}")
        else:
            calls: Any = [
                {"name": name, "args": args, "id": f"{messages[since].text} {turn} {place}"}
                for place, (name, args) in enumerate(self.turns[turn])
            ]
            message = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        del tools
        return self


def todos(*states: str) -> tuple[str, dict[str, Any]]:
    listed = [{"content": content, "status": state} for content, state in zip(TODOS, states, strict=True)]
    return "write_todos", {"todos": listed}


def own_task() -> str:
    """LangGraph's id of the node's task that the caller runs in."""
    return str(get_config()["metadata"]["langgraph_checkpoint_ns"]).rpartition(":")[2]


def make_graph(ledger: Ledger, *, short: bool = False) -> Any:
    """Lists what is to do, sends two sub-agents, who search and write files, edits a file and publishes it.

    A ``short`` one sends a sub-agent, and publishes its file.
    """

    @tool
    def search(query: str) -> str:
        """Searches."""
        ledger.pay(own_task())
        return f"all about {query}"

    @tool
    def publish(path: str) -> str:
        """Publishes."""
        ledger.pay(own_task())
        return f"published {path}"

    searches = [("search", {"query": "Lambda"}), ("search", {"query": "A2A"})]
    write = ("write_file", {"file_path": "/notes.md", "content": "durable"})
    edit = ("edit_file", {"file_path": "/notes.md", "old_string": "durable", "new_string": "durable agents"})
    ask = ("publish", {"path": "/notes.md"})
    read = ("read_file", {"file_path": "/notes.md"})
    reads, checks = (("task", {"description": "Look", "subagent_type": name}) for name in ("reader", "checker"))
    turns = [
        *([todos("in_progress", "pending")], [reads, checks], [todos("completed", "in_progress")]),
        *([edit], [ask], [todos("completed", "completed")], [read]),
    ]
    team = {
        "reader": [[write]] if short else [searches, [write]],
        "checker": [[("search", {"query": "facts"})]],
    }
    subagents: Any = [
        {
            "name": name,
            "description": name,
            "system_prompt": name,
            "model": Model(turns=inner, ledger=ledger),
            "tools": [search],
        }
        for name, inner in team.items()
    ]
    return create_deep_agent(
        Model(turns=[[reads], [ask], [read]] if short else turns, ledger=ledger),
        tools=[publish],
        subagents=subagents,
        middleware=[TodoListMiddleware()],
        interrupt_on={"publish": True},
    )


def researcher(ledger: Ledger, **options: Any) -> Agent:
    return agent(make_graph(ledger, **options), id="researcher", description="Writes reports.")


def publishes(harness: AgentTestHarness, text: str, **place: Any) -> Reply:
    asked = harness.send(text, **place)
    assert (asked.error, asked.state) == (None, TaskState.INPUT_REQUIRED)
    assert asked.said.startswith('May I call publish({"path": "/notes.md"})? Answer yes, edit')
    return harness.send("yes", task_id=asked.task.id)


WRITTEN = "@@ lines 1-1 of 1 @@\ndurable agents"


def test_a_deep_agent_answers_with_the_file_of_its_sub_agent() -> None:
    reply = publishes(AgentTestHarness(researcher(Ledger(str))), "Report")
    assert (reply.error, reply.said) == (None, f"Report: {WRITTEN}")


def test_the_list_of_todos_of_a_deep_agent_is_progress() -> None:
    task = publishes(AgentTestHarness(researcher(Ledger(str))), "Report").task
    listed: list[Any] = [part.value for message in task.history for part in message.parts if part.data is not None]
    states = [[todo["status"] for todo in value["todos"]] for value in listed if "todos" in value]
    assert states == [["in_progress", "pending"], ["completed", "in_progress"], ["completed", "completed"]]


def state_of(values: Any) -> dict[str, Any]:
    messages = [f"{message.type}: {message.text}" for message in values["messages"]]
    return {"messages": messages, "files": {name: file["content"] for name, file in values["files"].items()}}


def test_the_tasks_of_a_conversation_have_the_state_that_deepagents_keeps_without_us() -> None:
    def write(values: Any) -> list[Part]:
        return [Part(data=state_of(values))]

    harness = AgentTestHarness(agent(make_graph(Ledger(str)), id="researcher", write_answer=write))
    alone = make_graph(Ledger(str))
    alone.checkpointer = InMemorySaver()
    thread: Any = {"configurable": {"thread_id": "1"}}
    context, kept = None, dict[str, Any]()
    for text in ("Report", "Again"):
        reply = publishes(harness, text, context_id=context)
        context = reply.task.context_id
        alone.invoke({"messages": [("user", text)]}, thread)
        kept = state_of(alone.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread))
        assert reply.task.status.message
        assert reply.task.status.message.data() == kept
    assert kept["messages"].count(f"ai: Report: {WRITTEN}") == 1


def test_a_call_that_is_refused_is_not_made() -> None:
    ledger = Ledger(str)
    harness = AgentTestHarness(researcher(ledger, short=True))
    asked = harness.send("Report")
    before = len(ledger.paid)
    assert harness.send("no, not yet", task_id=asked.task.id).said == "Report: @@ lines 1-1 of 1 @@\ndurable"
    assert len(ledger.paid) - before == len(["a model that reads", "a model that answers"])


def test_rule_07_a_death_anywhere_repeats_nothing_that_a_sub_agent_has_done() -> None:
    def check(played: Played) -> None:
        assert_one_answer(played)
        message = played.task.status.message
        assert message
        assert message.text() == "go: @@ lines 1-1 of 1 @@\ndurable"

    def make(ledger: Ledger) -> Agent:
        return researcher(ledger, short=True)

    report = kill_everywhere(Scenario(make, lambda node: f"node/{node}/0", ["yes"]), check)
    assert report.kills.total() > 100
    assert report.wrong == []
