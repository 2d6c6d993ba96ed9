"""However a random agent is interrupted, it comes to the same questions, progress, artifacts, usage and end."""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.replay.plays import differences
from tests.replay.programs import make_program

FIRST = int(os.environ.get("FIRST_SEED", "1"))
SEEDS = int(os.environ.get("SEEDS", "12"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_rule_07_an_interruption_anywhere_changes_nothing_of_what_a_random_agent_comes_to(seed: int) -> None:
    operations = make_program(Random(seed))  # noqa: S311 - a seed, not a secret
    found = list(differences(operations))
    assert not found, f"{len(found)} of {' '.join(map(str, operations))}: " + "\n".join(found[:5])
