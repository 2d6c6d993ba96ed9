"""What runs inline agents is made for the first of them that is asked, once, and for no queued one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain.model import Message, Part, Role
from a2a_serverless.engine.here import LateHere
from a2a_serverless.engine.inline import Inline
from tests.echo import agent_of
from tests.world import ME, World

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import AgentTask
    from a2a_serverless.ports import Here

HELLO = Message("m", Role.USER, (Part("text", "hello"),), "context")


async def echo(task: AgentTask) -> str:
    return task.text()


class Making:
    """Counts how often the real thing is made."""

    def __init__(self) -> None:
        inline = replace(agent_of(echo, "quick"), runs="inline")
        self.world = World([inline, agent_of(echo, "slow")])
        self.made = 0
        self.here = LateHere(self.world.engine.agents, self.make)

    def make(self) -> Here:
        self.made += 1
        return Inline(self.world.engine, self.world.play)


def test_a_queued_agent_is_not_run_here_and_nothing_is_made_for_it() -> None:
    making = Making()
    key = ME.key("task")
    assert making.here.reply("slow", HELLO, ()) is None
    assert not making.here.run("slow", key, 1000)
    assert not making.here.start("nobody", key, 1000)
    assert making.made == 0


@pytest.mark.parametrize("times", [1, 3])
def test_an_inline_agent_answers_here_and_what_it_needs_is_made_once(times: int) -> None:
    making = Making()
    answers = [making.here.reply("quick", HELLO, ()) for _ in range(times)]
    assert [answer and answer.text() for answer in answers] == ["hello"] * times
    assert making.made == 1
