"""Any call to a service may fail, before or after it took effect. The task is none the worse for it."""

from __future__ import annotations

from random import Random

import pytest

from tests.faults.journeys import JOURNEYS, Journey, assert_whole
from tests.faults.plans import STORES, break_at
from tests.faults.run_report import calls_of, some_calls, told


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("journey", JOURNEYS)
def test_a_failure_at_any_call_is_nobodys_failure_but_its_own(journey: Journey, late: bool) -> None:  # noqa: FBT001
    for number, call in some_calls(journey, late, STORES):
        faults = break_at(number, late=late)
        story = told(journey, faults)
        assert faults.met == [call], f"call {number}"
        assert_whole(story)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("journey", JOURNEYS)
def test_a_service_that_fails_for_a_while_delays_everything_and_loses_nothing(journey: Journey, seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - a seed, not a secret
    begins = chance.randint(1, len(calls_of(journey, STORES)))
    assert_whole(told(journey, break_at(*range(begins, begins + 4), late=chance.random() < 0.5)))
