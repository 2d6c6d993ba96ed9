"""However a random agent is interrupted, it comes to the same questions, progress, artifacts, usage and end."""

from __future__ import annotations

import os
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Final

import pytest

from tests.replay.planted import PLANTED, SHOWN_BY
from tests.replay.plays import conversation_of, differences
from tests.replay.programs import FROM_OUTSIDE, KINDS, SEQUENTIAL, make_program

if TYPE_CHECKING:
    from tests.removed_guards import RemovedGuard

FIRST = int(os.environ.get("FIRST_SEED", "1"))
SEEDS = int(os.environ.get("SEEDS", "12"))
PLAYS = int(os.environ.get("PLAYS", "24"))

FEW: Final = {
    "a question in repeated steps": ("repeat", "repeat", "ask", "ask"),
    "repeats inside of steps": ("step", "repeat", "repeat"),
    "repeated steps that raise": ("flaky", "repeat", "ask", "emit"),
    "progress and usage of branches": ("branches",),
    "steps that a time limit of the agent's cancels": ("cancel", "ask"),
    "plans that an error decides": ("plan", "flaky", "ask"),
    "a streaming step that is tried again": ("stream", "ask"),
    "questions beside steps": ("questions",),
    "races whose winners decide names": ("first", "race", "ask"),
    "durable time limits": ("timeout", "sleep", "ask", "overdue", "alarm"),
    "steps that are tried again": ("retry", "retry", "repeat", "ask", "alarm"),
    "steps over items": ("map", "map", "race", "ask", "retry"),
    "races of calls": ("calls", "calls", "ask", "sleep", "race"),
    "events from outside": ("event", "event", "ask", "overdue", "race"),
    "models of steps": ("alias", "alias", "ask"),
    "errors with causes": ("cause", "cause", "ask"),
    "contexts that steps set": ("context", "context", "ask"),
    "sets of tasks": ("order", "order", "calls", "ask"),
    "values outside of steps": ("count", "count", "ask", "race"),
    "races of an event and a sleep": ("duel", "duel", "ask", "step"),
}
"""Programs of a few kinds of operations, which meet each other more often there."""

WAITS: Final = (
    "sleep",
    "ask",
    "event",
    "duel",
    "race",
    "calls",
    "retry",
    "timeout",
    "overdue",
    "alarm",
    "questions",
    "step",
)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_rule_07_an_interruption_anywhere_changes_nothing_of_what_a_random_agent_comes_to(seed: int) -> None:
    _check(seed, KINDS + FROM_OUTSIDE)


@pytest.mark.parametrize("kinds", FEW.values(), ids=FEW.keys())
def test_rule_07_an_interruption_anywhere_changes_nothing_for_an_agent_of_a_few_kinds_of_acts(
    kinds: tuple[str, ...],
) -> None:
    for seed in range(FIRST, FIRST + max(1, SEEDS // 6)):
        _check(seed, kinds)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_the_bars_of_runs_and_waits_account_for_every_second_however_a_random_agent_is_interrupted(seed: int) -> None:
    # Each play looks at the timeline of its task (tests/replay/timelines.py).
    _check(seed, WAITS)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_rule_07_a_budget_ends_a_random_agent_at_the_same_act_however_it_is_interrupted(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - a seed, not a secret
    operations = [*make_program(chance, 0, "some.", SEQUENTIAL), *make_program(chance, 1, "more.", SEQUENTIAL)]
    conversation = conversation_of(operations, chance.randint(0, 6))
    wrong = [*islice(differences(conversation, chance, PLAYS), 5)]
    assert not wrong, f"seed {seed}: " + "\n".join([*wrong, " ".join(map(str, operations))])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name)
def test_a_planted_count_or_order_is_found(bug: RemovedGuard) -> None:
    with bug():
        assert any(_differences(seed, FEW[SHOWN_BY[bug.name]], most=1) for seed in range(1, 13))


def _check(seed: int, *kinds: tuple[str, ...]) -> None:
    wrong = _differences(seed, *kinds)
    assert not wrong, f"seed {seed}, {len(wrong)} differences: " + "\n".join(wrong[:5])


def _differences(seed: int, *kinds: tuple[str, ...], most: int = 5) -> list[str]:
    """The first differences of a random program, ``most`` of them, and the program."""
    chance = Random(seed)  # noqa: S311 - a seed, not a secret
    operations = make_program(chance, 0, "", *kinds)
    wrong = [*islice(differences(conversation_of(operations), chance, PLAYS), most)]
    return [*wrong, " ".join(map(str, operations))] if wrong else []
