"""What runs inline agents is made for the first of them that is asked, once, and for no queued one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from a2a_serverless.engine.lazy_inline import LazyInlineRunner

from a2a_serverless.domain.events import Incoming
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.protocol.v1 import Message, Part, Role
from tests.echo import agent_of
from tests.world import ME, World

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import TaskContext
    from a2a_serverless.ports.agents import InlineRunner

HELLO = Message(message_id="m", role=Role.USER, parts=(Part(text="hello"),), context_id="context")


async def echo(task: TaskContext) -> str:
    return task.text()


class Making:
    """Counts how often the real thing is made."""

    def __init__(self) -> None:
        inline = replace(agent_of(echo, "quick"), runs="inline")
        self.world = World([inline, agent_of(echo, "slow")])
        self.made = 0
        self.inline_runner = LazyInlineRunner(self.world.engine.agents, self.make)

    def make(self) -> InlineRunner:
        self.made += 1
        return EngineInlineRunner(self.world.engine, self.world.play)


def test_a_queued_agent_is_not_run_here_and_nothing_is_made_for_it() -> None:
    making = Making()
    key = ME.key("task")
    assert making.inline_runner.answer_directly("slow", ME, Incoming(HELLO)) is None
    assert not making.inline_runner.run("slow", key, 1000)
    assert not making.inline_runner.start("nobody", key, 1000)
    assert making.made == 0


def test_what_runs_inline_agents_runs_no_queued_and_no_unknown_one() -> None:
    world = Making().world
    runner = EngineInlineRunner(world.engine, world.play)
    for agent in ("slow", "nobody"):
        key = ME.key(world.send("hello", push=False, agent="slow").id)
        assert runner.answer_directly(agent, ME, Incoming(HELLO)) is None
        assert not runner.run(agent, key, 60_000)
        assert not runner.start(agent, key, 60_000)
        assert world.table.read_head(key).last == 1


def test_the_run_of_an_inline_agent_is_played_here_or_started() -> None:
    making = Making()
    key = ME.key(making.world.send("hello", push=False, agent="quick").id)
    assert making.inline_runner.run("quick", key, 60_000)
    assert making.world.get(key.task, "quick").status.state == "completed"
    assert making.inline_runner.start("quick", key, 60_000)
    assert making.made == 1


async def catching(task: TaskContext) -> str:
    try:
        await task.emit("a.txt", "x")
    except BaseException:  # noqa: BLE001 - what careless agents do
        return "done without my task"
    return "done"


async def asking_why(task: TaskContext) -> str:
    return f"{task.data()} {task.cancellation}"


DIRECT: dict[str, tuple[Any, str | None]] = {
    "has caught that there is no task yet": (catching, None),
    "reads its data and why it is canceled": (asking_why, "{'a': 1} None"),
}


@pytest.mark.parametrize("case", DIRECT)
def test_without_a_task_an_agent_that(case: str) -> None:
    work, said = DIRECT[case]
    world = World([replace(agent_of(work, "quick"), runs="inline")])
    request = Incoming(HELLO.model_copy(update={"parts": (Part(data={"a": 1}),)}))
    answer = EngineInlineRunner(world.engine, world.play).answer_directly("quick", ME, request)
    assert (answer and answer.text()) == said


@pytest.mark.parametrize("times", [1, 3])
def test_an_inline_agent_answers_here_and_what_it_needs_is_made_once(times: int) -> None:
    making = Making()
    answers = [making.inline_runner.answer_directly("quick", ME, Incoming(HELLO)) for _ in range(times)]
    assert [answer and answer.text() for answer in answers] == ["hello"] * times
    assert making.made == 1
