"""A random agent that fails once, anywhere, and is retried comes to the same, and does nothing again that was kept."""

from __future__ import annotations

import re
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.task_copies import ended_paths
from a2a_serverless.domain.values import ValueScope
from a2a_serverless.protocol.additions import RetryRequest
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.services.retries import retry_task
from a2a_serverless.services.tasks import RequestContext
from tests.echo import agent_of
from tests.replay.plays import MOST_ANSWERS, MOST_VALUES, is_step_of, outcome_of_task
from tests.replay.programs import KINDS, Effects, Player, answer_to, make_program, outcome_of
from tests.replay.test_replay import FIRST, SEEDS
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_serverless import Task, TaskContext
    from tests.replay.programs import Operation

CHANGED = {"value", "first", "race"}
"""Values stay as they are at the end of the failed task. A race may have another winner if a part of it is repeated."""
COMPARED = ("answer", "artifacts", "values")


async def _child(task: TaskContext) -> str:
    return f"child of {task.text()}"


class Play:
    """A conversation with an agent that fails behind the first ``length`` of its operations."""

    def __init__(self, operations: Sequence[Operation], length: int) -> None:
        self.effects, self.is_broken, self.asked = Effects(), True, 0
        self.operations = operations

        async def work(task: TaskContext) -> str:
            player = Player(task, self.effects)
            before = await player.play(operations[:length])
            await task.step("break", self._break)
            return str(before + await player.play(operations[length:]))

        self.world = World([agent_of(work), agent_of(_child, "child")])

    def _break(self) -> None:
        if self.is_broken:
            raise RuntimeError("broken")

    def to_end(self, task: Task) -> Task:
        """The task after all of its questions have their answers."""
        world, key = self.world, ME.key(task.id)
        self.effects.is_stored = lambda label: any(is_step_of(name, label) for name in world.table.read_steps(key))
        world.settle()
        while (now := world.get(task.id)).status.state is TaskState.INPUT_REQUIRED and self.asked < MOST_ANSWERS:
            self.asked += 1
            text = now.status.message.text() if now.status.message else ""
            world.send(answer_to(text, self.asked), push=False, task_id=task.id)
            world.settle()
        return now

    def retry(self, failed: Task, step: str | None = None) -> Task:
        self.is_broken = False
        context, agent = RequestContext(ME, "echo", "1.0"), self.world.engine.agents["echo"]
        return retry_task(self.world.service, context, agent, failed.id, RetryRequest(request_id="r", from_step=step))

    def outcome(self, task: Task) -> dict[str, Any]:
        values = self.world.table.list_values(ValueScope(ME.key(task.id)), "", "", MOST_VALUES)
        return outcome_of_task(task, self.world.events(task.id), values)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_rule_07_a_retry_after_a_failure_anywhere_comes_to_the_same_and_repeats_nothing(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - a seed, not a secret
    operations = [one for one in make_program(chance) if one.kind != "leave"]
    play = Play(operations, chance.randint(0, len(operations)))
    failed = play.to_end(play.world.send("go", push=False))
    assert failed.status.state is TaskState.FAILED
    retried = play.to_end(play.retry(failed))
    program = " ".join(map(str, operations))
    assert retried.status.state is TaskState.COMPLETED, (program, retried.status)
    expected, outcome = outcome_of(list(operations)), play.outcome(retried)
    assert {name: outcome[name] for name in COMPARED} == {name: expected[name] for name in COMPARED}, program
    again = {label: times for label, times in Counter(play.effects.done).items() if times > 1}
    assert (again, play.effects.wrong) == ({}, []), program
    before, after = (Counter(play.outcome(task)["usage"]) for task in (failed, retried))
    assert before + after == Counter(expected["usage"]), program


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_rule_07_a_retry_from_any_step_comes_to_the_same(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - a seed, not a secret
    kinds = tuple(kind for kind in KINDS if kind not in CHANGED)
    operations = [one for one in make_program(chance, 0, "", kinds) if one.kind != "leave"]
    play = Play(operations, len(operations))
    failed = play.to_end(play.world.send("go", push=False))
    results = play.world.table.read_steps(ME.key(failed.id))
    step = chance.choice(ended_paths(results))
    play.effects.lost.clear()
    retried = play.to_end(play.retry(failed, step))
    program = f"from {step}: {' '.join(map(str, operations))}"
    assert retried.status.state is TaskState.COMPLETED, (program, retried.status)
    expected, outcome = (
        {name: _unnumbered(one[name]) for name in COMPARED}
        for one in (outcome_of(list(operations)), play.outcome(retried))
    )
    assert outcome == expected, program


def _unnumbered(told: object) -> str:
    """The answer of a client to a question that is asked again has another number."""
    return re.sub(r"answer \d+", "answer", str(told))
