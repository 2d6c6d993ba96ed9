"""Random agents with tools: however their tasks are interrupted, they come to the same, in each framework."""

from __future__ import annotations

import os
from random import Random
from typing import TYPE_CHECKING, Final

from tests.echo import agent_of
from tests.replay.plays import Conversation, differences, is_step_of
from tests.replay.tool_programs import ToolPlayer, answer_to, leaves, make_tool_program, tool_outcome_of

if TYPE_CHECKING:
    from a2a_serverless import Agent, TaskContext
    from tests.replay.programs import Effects, Operation

FIRST: Final = int(os.environ.get("FIRST_SEED", "1"))
SEEDS: Final = range(FIRST, FIRST + int(os.environ.get("SEEDS", "1")))
PLAYS: Final = int(os.environ.get("PLAYS", "24"))


def assert_interruptions_change_nothing(
    player: type[ToolPlayer], seed: int, model: str, approval: str, *, suffix: str = ": model", together: bool = False
) -> None:
    """Plays the program of a seed. The steps of models end with ``suffix``; the rest is as in ``tool_outcome_of``."""
    chance = Random(seed)  # noqa: S311 - a seed, not a secret
    operations = make_tool_program(chance)
    expected, responses = tool_outcome_of(operations, model, approval, together=together)

    def stores(name: str, label: str) -> bool:
        agent, _, number = responses.get(label, "").partition("#")
        step = f"{agent}{suffix}" if number == "1" else f"{agent}{suffix}#{number}"
        return is_step_of(name, label) or (bool(agent) and name == step)

    conversation = Conversation(lambda effects: _agent_of(player, operations, effects), expected, answer_to, stores)
    wrong = list(differences(conversation, chance, PLAYS))
    assert not wrong, f"{len(wrong)} of {' '.join(map(str, operations))}: " + "\n".join(wrong[:5])


def _agent_of(player: type[ToolPlayer], operations: list[Operation], effects: Effects) -> Agent:
    async def work(task: TaskContext) -> str:
        return " ".join(leaves(await player(task, effects).play(operations)))

    return agent_of(work)
