"""However a random agent is interrupted, it comes to the same questions, progress, artifacts, usage and end."""

from __future__ import annotations

import os
from random import Random
from typing import Final

import pytest

from tests.replay.plays import conversation_of, differences
from tests.replay.programs import make_program

FIRST = int(os.environ.get("FIRST_SEED", "1"))
SEEDS = int(os.environ.get("SEEDS", "12"))
PLAYS = int(os.environ.get("PLAYS", "24"))

FEW: Final = {
    "a question in repeated steps": ("repeat", "repeat", "ask", "ask"),
    "repeats inside of steps": ("step", "repeat", "repeat"),
    "repeated steps that raise": ("flaky", "repeat", "ask"),
    "progress and usage of branches": ("branches",),
    "steps that a time limit of the agent's cancels": ("cancel", "ask"),
    "a streaming step that is tried again": ("stream", "ask"),
    "questions beside steps": ("questions",),
    "races whose winners decide names": ("first", "race", "ask"),
    "durable time limits": ("timeout", "sleep", "ask"),
}
"""Programs of a few kinds of operations, which meet each other more often there."""


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_rule_07_an_interruption_anywhere_changes_nothing_of_what_a_random_agent_comes_to(seed: int) -> None:
    _check(seed)


@pytest.mark.parametrize("kinds", FEW.values(), ids=FEW.keys())
def test_rule_07_an_interruption_anywhere_changes_nothing_for_an_agent_of_a_few_kinds_of_acts(
    kinds: tuple[str, ...],
) -> None:
    for seed in range(FIRST, FIRST + max(1, SEEDS // 4)):
        _check(seed, kinds)


def _check(seed: int, *kinds: tuple[str, ...]) -> None:
    chance = Random(seed)  # noqa: S311 - a seed, not a secret
    operations = make_program(chance, 0, "", *kinds)
    wrong = list(differences(conversation_of(operations), chance, PLAYS))
    assert not wrong, f"seed {seed}, {len(wrong)} of {' '.join(map(str, operations))}: " + "\n".join(wrong[:5])
