"""A random agent that fails once, anywhere, and is retried comes to the same, and does nothing again that was kept."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import Budget
from a2a_serverless.domain.record_names import FAILED, act_path
from a2a_serverless.domain.task_copies import endings_of
from a2a_serverless.domain.values import ValueScope
from a2a_serverless.protocol.additions import RetryRequest
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.retries import retry_task
from tests.echo import agent_of
from tests.replay.plays import MOST_ANSWERS, MOST_VALUES, PLENTY, child, is_step_of, outcome_of_task, plan_event
from tests.replay.programs import FROM_OUTSIDE, KINDS, Effects, Player, answer_to, make_program, outcome_of
from tests.replay.test_replay import FIRST, SEEDS
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_serverless import Task, TaskContext
    from tests.replay.programs import Operation

CHANGED = {"value", "first", "race"}
"""Values stay as they are at the end of the failed task. A race may have another winner if a part of it is repeated."""
UNDECIDED = {*CHANGED, "plan", "flaky"}
"""What a step may change that is done again because its budget was spent meanwhile."""
MOST_TASKS = 40
COMPARED = ("answer", "artifacts", "values")


class Play:
    """A conversation with an agent that fails behind the first ``length`` of its operations, or at its budget."""

    def __init__(self, operations: Sequence[Operation], length: int, steps: int = PLENTY) -> None:
        self.effects, self.is_broken, self.asked = Effects(), True, 0
        self.operations = operations

        async def work(task: TaskContext) -> str:
            player = Player(task, self.effects)
            before = await player.play(operations[:length])
            await task.step("break", self._break)
            return str(before + await player.play(operations[length:]))

        agent = replace(agent_of(work), budget=Budget(usd=1000, steps=steps))
        self.world = World([agent, agent_of(child, "child")])
        self.effects.submit = partial(plan_event, self.world)

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

    def retry(self, failed: Task, step: str | None = None, request: str = "r") -> Task:
        self.is_broken = False
        context, agent = RequestContext(ME, "echo", "1.0"), self.world.engine.agents["echo"]
        wanted = RetryRequest(request_id=request, from_step=step)
        return retry_task(self.world.service, context, agent, failed.id, wanted)

    def outcome(self, task: Task) -> dict[str, Any]:
        values = self.world.table.list_values(ValueScope(ME.key(task.id)), "", "", MOST_VALUES)
        return outcome_of_task(task, self.world.events(task.id), values)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_rule_07_a_retry_after_a_failure_anywhere_comes_to_the_same_and_repeats_nothing(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - a seed, not a secret
    operations = [one for one in make_program(chance, 0, "", KINDS + FROM_OUTSIDE) if one.kind != "leave"]
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
    kinds = tuple(kind for kind in KINDS + FROM_OUTSIDE if kind not in CHANGED)
    operations = [one for one in make_program(chance, 0, "", kinds) if one.kind != "leave"]
    play = Play(operations, len(operations))
    failed = play.to_end(play.world.send("go", push=False))
    results = play.world.table.read_steps(ME.key(failed.id))
    paths = {act_path(name.removeprefix(FAILED)) for name in results}
    ended = {path for path in paths if path[:1] != "@" and not results.keys().isdisjoint(endings_of(path))}
    step = chance.choice(sorted(ended))
    play.effects.lost.clear()
    retried = play.to_end(play.retry(failed, step))
    program = f"from {step}: {' '.join(map(str, operations))}"
    assert retried.status.state is TaskState.COMPLETED, (program, retried.status)
    expected, outcome = (
        {name: _unnumbered(one[name]) for name in COMPARED}
        for one in (outcome_of(list(operations)), play.outcome(retried))
    )
    assert outcome == expected, program


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_rule_07_a_task_that_is_retried_whenever_its_budget_is_spent_comes_to_the_same(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - a seed, not a secret
    kinds = tuple(kind for kind in KINDS + FROM_OUTSIDE if kind not in UNDECIDED)
    operations = [one for one in make_program(chance, 0, "", kinds) if one.kind != "leave"]
    play = Play(operations, len(operations), chance.randint(4, 7))
    play.is_broken = False
    tasks = [play.to_end(play.world.send("go", push=False))]
    while tasks[-1].status.state is TaskState.FAILED and len(tasks) < MOST_TASKS:
        tasks.append(play.to_end(play.retry(tasks[-1], request=f"retry {len(tasks)}")))
    program = " ".join(map(str, operations))
    assert tasks[-1].status.state is TaskState.COMPLETED, (program, tasks[-1].status)
    expected, outcome = outcome_of(list(operations)), play.outcome(tasks[-1])
    assert {name: outcome[name] for name in COMPARED} == {name: expected[name] for name in COMPARED}, program
    tolerated = {f"{one.label}.1" for one in operations if one.kind == "map"}  # an error: it is tried again
    done = Counter(label for label in play.effects.done if label not in tolerated)
    again = {label: times for label, times in done.items() if times > 1}
    assert (again, play.effects.wrong) == ({}, []), program


def _unnumbered(told: object) -> str:
    """The answer of a client to a question that is asked again has another number."""
    return re.sub(r"answer \d+", "answer", str(told))
