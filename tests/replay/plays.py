"""Plays a program: undisturbed, killed before and after store calls, and handed over at seconds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from a2a_serverless import TaskState
from a2a_serverless.domain.events import StatusEvent
from a2a_serverless.domain.model import TaskKey
from tests.echo import agent_of
from tests.faults.plans import Count, NoFaults
from tests.frameworks.kills import PORTS, Death, MortalWorld
from tests.replay.programs import Effects, Operation, Player, answer_to, in_order, outcome_of
from tests.world import ME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

    from a2a_serverless import TaskContext
    from tests.faults.plans import Faults

MOST_ANSWERS = 60
HAND_OVER_MS = 1000


@dataclass(frozen=True)
class Played:
    """``outcome`` is as the oracle's; ``wrong`` are effects that must not happen; ``done`` counts effects by label."""

    outcome: dict[str, Any]
    wrong: list[str]
    done: Counter[str]
    lasted_ms: int


def play(operations: Sequence[Operation], faults: Faults, hand_over_at: int | None = None) -> Played:
    """Plays the program to its end. A run hands over ``hand_over_at`` ms after the beginning."""
    effects = Effects()

    async def work(task: TaskContext) -> str:
        return str(await Player(task, effects).play(operations))

    async def child(task: TaskContext) -> str:
        return f"child of {task.text()}"

    world = MortalWorld([agent_of(work), agent_of(child, "child")], faults)
    began, replaced = world.now, list[int]()

    def is_replaced() -> bool:
        if hand_over_at is None or replaced or world.now - began < hand_over_at:
            return False
        replaced.append(1)
        return True

    world.engine = replace(world.engine, is_replaced=is_replaced)
    task = world.send("go", push=False)
    key = TaskKey(ME.tenant, ME.owner, task.id)
    effects.is_stored = lambda label: any(_is_of(name, label) for name in world.table.read_steps(key))
    world.settle()
    asked = 0
    while (now := world.client(lambda: world.get(task.id))).status.state is TaskState.INPUT_REQUIRED:
        asked += 1
        question = now.status.message.text() if now.status.message else ""
        assert asked < MOST_ANSWERS, question
        world.send(answer_to(question, asked), push=False, task_id=task.id, context_id=task.context_id)
        world.settle()
    states = [event for event in world.events(task.id) if isinstance(event, StatusEvent) and event.message]
    said = [(event.state, event.message.text()) for event in states if event.message]
    assert now.status.state is TaskState.COMPLETED, now.status
    usage: Any = (now.metadata or {}).get("a2a-serverless/usage", {})
    outcome = {
        "answer": now.status.message.text() if now.status.message else "",
        "asked": in_order([text for state, text in said if state is TaskState.INPUT_REQUIRED]),
        "progress": Counter(text for state, text in said if state is TaskState.WORKING),
        "artifacts": {artifact.name: artifact.text() for artifact in now.artifacts},
        "usage": {model: amounts["tokens"] for model, amounts in usage.items()},
        "winners": effects.winners,
    }
    return Played(outcome, effects.wrong, Counter(effects.done), world.now - began)


def _is_of(name: str, label: str) -> bool:
    """Whether the step of this name is that of the label; steps with names that repeat have no label."""
    return name.rpartition(" > ")[2] == f"step {label}"


def differences(operations: Sequence[Operation], chance: Random, most: int) -> Iterator[str]:
    """How plays of a program differ from the oracle: the undisturbed one, and at most ``most`` interrupted ones."""
    expected = outcome_of(list(operations))
    calls = Count(PORTS)
    first = play(operations, calls)
    yield from (f"undisturbed: {label} was done {times} times" for label, times in first.done.items() if times > 1)
    yield from _difference("undisturbed", expected, first)
    deaths = [(number, late) for number in range(1, len(calls.calls) + 1) for late in (False, True)]
    hand_overs = range(HAND_OVER_MS // 2, min(first.lasted_ms, 60 * HAND_OVER_MS), HAND_OVER_MS)
    places: list[tuple[int, bool] | int] = [*deaths, *hand_overs]
    for place in places if len(places) <= most else chance.sample(places, most):
        if isinstance(place, int):
            where, played = f"handed over at {place} ms", play(operations, NoFaults(), place)
        else:
            number, late = place
            where = f"killed {'after' if late else 'before'} call {number}, {calls.calls[number - 1]}"
            played = play(operations, Death(number, late=late))
        yield from _difference(where, expected, played)


def _difference(where: str, expected: dict[str, Any], played: Played) -> Iterator[str]:
    for member, value in expected.items():
        if played.outcome[member] != value:
            yield f"{where}: {member} is {played.outcome[member]}, not {value}"
    for wrong in played.wrong:
        yield f"{where}: {wrong}"
