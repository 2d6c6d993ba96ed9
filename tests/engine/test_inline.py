"""Agents that run inside the request, and what they answer without a task."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.events import Incoming
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.protocol.v1 import Message, Part, Role
from tests.echo import agent_of
from tests.world import ME, World

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext

HELLO = Message(message_id="m", role=Role.USER, parts=(Part(text="hello"),), context_id="context")


async def echo(task: TaskContext) -> str:
    return task.text()


def test_only_inline_agents_are_run_here() -> None:
    world = World([replace(agent_of(echo, "quick"), runs="inline"), agent_of(echo, "slow")])
    runner = EngineInlineRunner(world.engine, world.play)
    assert [runner.for_agent(name) for name in ("quick", "slow", "nobody")] == [runner, None, None]


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
def test_the_inline_runner_tries_without_a_task_an_agent_that(case: str) -> None:
    work, said = DIRECT[case]
    world = World([replace(agent_of(work, "quick"), runs="inline")])
    request = Incoming(HELLO.model_copy(update={"parts": (Part(data={"a": 1}),)}))
    answer = EngineInlineRunner(world.engine, world.play).answer_directly("quick", ME, request)
    assert (answer and answer.text()) == said
