"""A process may die before or after any call that it makes. Whatever dies, the client sees one whole task."""

from __future__ import annotations

from random import Random

import pytest

from tests.faults.journeys import JOURNEYS, Journey, assert_whole, canceled, same
from tests.faults.plans import kill_at
from tests.faults.run_report import calls_of, some_calls, told, undisturbed


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("journey", JOURNEYS)
def test_a_death_at_any_call_loses_and_doubles_nothing(journey: Journey, late: bool) -> None:  # noqa: FBT001
    for number, call in some_calls(journey, late):
        faults = kill_at(number, late=late)
        story = told(journey, faults)
        assert faults.met == [call], f"call {number}"
        assert_whole(story)
        assert journey is canceled or same(story.task()).artifacts == undisturbed(journey).artifacts


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("journey", JOURNEYS)
def test_two_or_three_deaths_lose_and_double_no_event(journey: Journey, seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - a seed, not a secret
    numbers = chance.sample(range(1, len(calls_of(journey)) + 1), chance.choice([2, 3]))
    faults = kill_at(*numbers, late=chance.random() < 0.5)
    assert_whole(told(journey, faults))
    assert len(faults.met) >= 1
