"""The orchestrator over the real writing agents, and over agents that fail, ask, are slow or are not there."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import Agent, Skill, TaskContext, TaskFailed
from a2a_serverless.domain.contents import references_in
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.protocol.v1 import Message, Part, Role, SendMessageConfiguration, SendMessageRequest, TaskState
from a2a_serverless.testing import AgentTestHarness
from sample_agents.document import document
from sample_agents.orchestrator import orchestrator
from sample_agents.outline import outline
from sample_agents.summary import summary
from tests.sample_agents.sketches import SKETCHED
from tests.sample_agents.test_writing_agents import CHINESE, ENGLISH
from tests.world import ME, World

if TYPE_CHECKING:
    from a2a_serverless import Answer

SKILL = Skill("s", "s", "s", ("s",))


def harness(*instead: Agent, without: str = "") -> AgentTestHarness:
    """The shipped agents, some of them replaced by others of the same id."""
    agents = {agent.id: agent for agent in (*SKETCHED, *instead) if agent.id != without}
    return AgentTestHarness(*agents.values())


def agent_of(name: str, work: Any, **fields: Any) -> Agent:
    """An agent that says of itself what the shipped one of that id says."""
    skills = next((agent.skills for agent in SKETCHED if agent.id == name), (SKILL,))
    return Agent(name, name, name, skills, work, **fields)


async def fails(task: TaskContext) -> Answer:
    del task
    raise TaskFailed("out of ink")


async def asks(task: TaskContext) -> Answer:
    return (await task.ask("In which tone?")).text()


async def sleeps(task: TaskContext) -> Answer:
    await asyncio.sleep(500)
    await task.emit("late.txt", "late")
    return None


def steps(reply: Any) -> dict[str, str]:
    report = reply.data("report.json")
    return {one["step"]: one.get("reason", one["state"]) for one in report["steps"]}


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["English", "Chinese"])
def test_the_chain_gives_an_outline_a_summary_and_the_document_last_in_one_conversation(text: str) -> None:
    world = harness()
    reply = world.send(text)
    assert (reply.state, reply.said) == (TaskState.COMPLETED, "")
    assert list(reply.artifacts) == ["outline.json", "summary.md", "report.json", "document.md"]
    alone = AgentTestHarness(document).send([Part(text=text), Part(data=reply.data("outline.json"))])
    assert reply.text("document.md") == alone.text("document.md")
    assert reply.text("summary.md") == AgentTestHarness(summary).send(alone.text("document.md")).said
    (origin,) = references_in(reply.artifacts["document.md"].parts)
    assert world.reply(origin.task_id, to="document").task.context_id == reply.task.context_id
    assert steps(reply) == {"outline": "done", "document": "done", "summary": "done"}


def test_a_picture_is_made_beside_the_chain_when_it_is_wanted() -> None:
    reply = harness().send([Part(text=ENGLISH), Part(data={"picture": "a lighthouse by the sea"})])
    assert reply.state is TaskState.COMPLETED
    kinds = [part.kind for part in reply.artifacts["lighthouse_image.png"].parts]
    assert kinds == ["raw", "data"]
    assert steps(reply)["picture"] == "done"


def test_a_step_that_fails_leaves_the_others_and_is_named_with_its_reason() -> None:
    world = harness(agent_of("document", fails))
    reply = world.send([Part(text=ENGLISH), Part(data={"picture": "a lighthouse"})])
    assert reply.state is TaskState.COMPLETED
    assert reply.said.startswith("A partial result: outline.json, lighthouse_image.png.")
    assert steps(reply) == {
        "outline": "done",
        "document": "failed: out of ink",
        "summary": "there is no document",
        "picture": "done",
    }


def test_a_document_is_written_without_an_outline_when_that_fails() -> None:
    reply = harness(agent_of("outline", fails)).send(CHINESE)
    assert (reply.said, list(reply.artifacts)[-1]) == ("", "document.md")
    assert steps(reply)["outline"] == "failed: out of ink"
    assert reply.task.history[-1].text().startswith("部分结果：document.md, summary.md。缺少：outline")
    assert reply.text("document.md").startswith("# 城市养蜂")


def test_a_step_for_which_no_agent_has_the_skill_is_missing() -> None:
    reply = harness(without="summary").send(ENGLISH)
    assert steps(reply)["summary"] == "no agent has the skill summarise"
    assert list(reply.artifacts) == ["outline.json", "report.json", "document.md"]


def test_any_agent_that_has_the_skill_of_a_step_will_do() -> None:
    other = replace(summary, id="shortener", name="Shortener")
    reply = harness(other, without="summary").send(ENGLISH)
    assert reply.text("summary.md") == harness().send(ENGLISH).text("summary.md")


def test_without_any_result_the_task_fails_with_the_reasons() -> None:
    reply = harness(agent_of("document", fails), agent_of("outline", fails)).send(ENGLISH)
    assert reply.state is TaskState.FAILED
    assert "outline (failed: out of ink)" in reply.said


def test_the_question_of_a_called_agent_is_asked_and_its_answer_goes_back() -> None:
    world = harness(agent_of("document", asks), without="summary")
    asked = world.send(ENGLISH)
    assert (asked.state, asked.said) == (TaskState.INPUT_REQUIRED, "In which tone?")
    reply = world.send("A dry one", task_id=asked.task.id)
    assert reply.text("document.md") == "A dry one", "a last word is a result too"


def test_two_agents_that_ask_at_once_each_get_their_own_answer() -> None:
    async def tone(task: TaskContext) -> None:
        await task.emit("document.md", f"tone: {(await task.ask('Which tone?')).text()}")

    async def colour(task: TaskContext) -> None:
        await task.emit("picture.txt", f"colour: {(await task.ask('Which colour?')).text()}")

    world = harness(agent_of("document", tone), agent_of("image", colour))
    reply = world.send([Part(text=ENGLISH), Part(data={"picture": "a lighthouse"})])
    answers = {"Which tone?": "dry", "Which colour?": "red"}
    while answers:
        assert reply.state is TaskState.INPUT_REQUIRED
        reply = world.send(answers.pop(reply.said), task_id=reply.task.id)
    assert reply.text("document.md") == "tone: dry"
    assert reply.text("picture.txt") == "colour: red"


def test_after_the_deadline_nobody_else_is_called() -> None:
    called: list[str] = []

    async def counts(task: TaskContext) -> str:
        called.append(task.text())
        return "counted"

    world = harness(agent_of("outline", sleeps), agent_of("document", counts), without="summary")
    reply = world.send([Part(text=ENGLISH), Part(data={"deadlineSeconds": 60})])
    assert called == []
    assert "no time left" in reply.said


def test_at_the_deadline_what_is_under_way_is_canceled_and_the_rest_is_given_with_the_reason() -> None:
    async def slow(task: TaskContext) -> None:
        world.elsewhere(600_000)
        await task.emit("document.md", "too late")

    world = World([orchestrator, outline, agent_of("document", slow), summary])
    parts = (Part(text=ENGLISH), Part(data={"deadlineSeconds": 60}))
    sent = world.sent(
        SendMessageRequest(
            message=Message(message_id="m", role=Role.USER, parts=parts),
            configuration=SendMessageConfiguration(return_immediately=True),
        ),
        "orchestrator",
    )
    world.settle()
    task = world.get(sent.id, "orchestrator")
    assert task.status.state is TaskState.COMPLETED
    assert task.status.message
    assert task.status.message.text().startswith("A partial result: outline.json. Missing: document (canceled")
    (child,) = [one for one in world.table.list_page(ME, task.context_id, None, 0, 10)[0] if one.agent == "document"]
    assert world.get(child.task, "document").status.state is TaskState.CANCELED


def test_the_picture_and_the_chain_are_under_way_at_the_same_time() -> None:
    unfinished: list[int] = []

    async def looks(task: TaskContext) -> str:
        unfinished.append(sum(1 for other in await task.get_previous_tasks() if other.status.state not in TERMINAL))
        return "seen"

    world = harness(agent_of("outline", looks), agent_of("image", looks), without="document")
    world.send([Part(text=ENGLISH), Part(data={"picture": "a lighthouse"})])
    assert (len(unfinished), unfinished[0]) == (2, 2), "the first to run sees the orchestrator and the other"


def test_canceling_the_orchestrator_cancels_what_it_has_called() -> None:
    world = harness(agent_of("document", asks))
    asked = world.send(ENGLISH)
    (child,) = [one for one in world.tasks(asked.task.context_id) if one.agent == "document"]
    assert world.cancel(asked.task.id).state is TaskState.CANCELED
    assert world.reply(child.task, to="document").state is TaskState.CANCELED


def test_an_agent_whose_card_takes_no_data_gets_it_as_text() -> None:
    got: list[Message] = []

    async def reads(task: TaskContext) -> None:
        got.append(task.message)
        await task.emit("document.md", "read")

    harness(agent_of("document", reads, input_modes=("text/plain",))).send(ENGLISH)
    assert [part.kind for part in got[0].parts] == ["text", "text"]
    assert '"sections"' in str(got[0].parts[1].value)


def test_without_a_text_it_asks_what_to_write_about() -> None:
    world = harness()
    asked = world.send({"picture": "a lighthouse"})
    assert asked.state is TaskState.INPUT_REQUIRED
    reply = world.send(ENGLISH, task_id=asked.task.id)
    assert {"document.md", "lighthouse_image.png"} <= set(reply.artifacts)


def test_while_others_work_no_run_of_the_orchestrator_is_open() -> None:
    async def slow(task: TaskContext) -> None:
        await asyncio.sleep(600)
        await task.emit("document.md", "slow")

    world = harness(agent_of("document", slow))
    reply = world.send(ENGLISH)
    (child,) = [one for one in world.tasks(reply.task.context_id) if one.agent == "document"]
    (began, ended) = next((began, ended) for task, began, ended in world.runs if task == child.task)
    assert ended - began >= 600_000
    own = [(start, end) for task, start, end in world.runs if task == reply.task.id]
    assert not [1 for start, end in own if start < ended and end > began]
    assert sum(end - start for start, end in own) < 30_000
