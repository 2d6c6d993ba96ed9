"""Plays a conversation with an agent again and again, and kills its process before and after each call of its ports.

A killed process makes no further call, even if the agent's framework catches the exception. Then another worker goes
on. What the agent pays for is written into a ledger, which knows what was stored when it was paid.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless import TaskState
from a2a_serverless.domain.model import TaskKey
from tests.faults.plans import Count, kill_at
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_serverless import Agent, Part, Task
    from tests.faults.plans import At, Faults

PORTS: Final = frozenset({"table", "queue"})


@dataclass
class Ledger:
    """What an agent has paid for, and what of it was stored already at that time.

    ``step_of`` returns the end of the name of the step that stores it.
    """

    step_of: Callable[[str], str]
    paid: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    stored: Callable[[], Sequence[str]] = tuple

    def pay(self, what: str) -> int:
        """Notes a payment; returns how often this was paid before."""
        if any(name.endswith(self.step_of(what)) for name in self.stored()):
            self.twice.append(what)
        self.paid.append(what)
        return self.paid.count(what) - 1


@dataclass(frozen=True)
class Scenario:
    """A conversation: a message to the agent that ``make`` returns, and the answers to its questions.

    With ``refers`` the answers also have the task as a reference.
    """

    make: Callable[[Ledger], Agent]
    step_of: Callable[[str], str]
    answers: Sequence[str] = ()
    text: str | Part = "go"
    refers: bool = False


@dataclass(frozen=True)
class Played:
    """How a conversation went."""

    task: Task
    events: Sequence[Any]
    steps: dict[str, Any]
    ledger: Ledger

    def answer(self) -> str:
        """The text of the artifact ``answer``."""
        return next(artifact.text() for artifact in self.task.artifacts if artifact.name == "answer")


def play(scenario: Scenario, faults: Faults) -> Played:
    """Plays the conversation to its end."""
    ledger = Ledger(scenario.step_of)
    agent = scenario.make(ledger)
    world = World([agent], faults)
    task = world.send(scenario.text, push=False, agent=agent.id)
    key = TaskKey(ME.tenant, ME.owner, task.id)
    ledger.stored = lambda: list(dict(world.table.read_steps(key)))
    world.settle()
    for answer in scenario.answers:
        assert world.client(lambda: world.get(task.id, agent.id)).status.state is TaskState.INPUT_REQUIRED
        place: dict[str, Any] = {"task_id": task.id, "context_id": task.context_id}
        if scenario.refers:
            place["reference_task_ids"] = (task.id,)
        world.send(answer, push=False, agent=agent.id, **place)
        world.settle()
    ended = world.client(lambda: world.get(task.id, agent.id))
    return Played(ended, world.events(task.id), dict(world.table.read_steps(key)), ledger)


@dataclass
class Report:
    """The deaths of a scenario: by call, and what went wrong."""

    kills: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def kill_everywhere(scenario: Scenario, check: Callable[[Played], None]) -> Report:
    """Kills the process before and after each call, and checks what comes of it."""
    calls = Count(PORTS)
    check(play(scenario, calls))
    report = Report()
    for number in range(1, len(calls.calls) + 1):
        for late in (False, True):
            _kill(scenario, check, kill_at(number, late=late, ports=PORTS), report)
    return report


def kill_at_random(scenario: Scenario, check: Callable[[Played], None], seed: int, times: int = 10) -> Report:
    """Kills the process at two or three calls of the conversation, ``times`` times."""
    calls, chance, report = Count(PORTS), Random(seed), Report()  # noqa: S311 - a seed, not a secret
    play(scenario, calls)
    for _ in range(times):
        numbers = chance.sample(range(1, len(calls.calls) + 1), chance.choice([2, 3]))
        _kill(scenario, check, kill_at(*numbers, late=chance.random() < 0.5, ports=PORTS), report)
    return report


def _kill(scenario: Scenario, check: Callable[[Played], None], faults: At, report: Report) -> None:
    played = play(scenario, faults)
    report.kills.update(faults.met)
    where = f"{'after' if faults.late else 'before'} {sorted(faults.counts)} {faults.met}"
    if played.ledger.twice:
        report.wrong.append(f"{where}: {played.ledger.twice} was stored and paid again")
    try:
        check(played)
    except AssertionError as error:
        report.wrong.append(f"{where}: {error}")


def assert_one_answer(played: Played) -> None:
    """The task is completed, with one terminal event and nothing after it."""
    states = [event.state for event in played.events if hasattr(event, "state")]
    assert states.count(TaskState.COMPLETED) == 1, states
    assert states[-1] is TaskState.COMPLETED, (states, played.task.status.message)
    assert played.events[-1].state is TaskState.COMPLETED
