"""A process may die before or after any call that it makes. Whatever dies, the client sees one whole task."""

from __future__ import annotations

from functools import cache, partial
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.faults.journeys import JOURNEYS, Journey, Story, assert_whole, same
from tests.faults.plans import Count, Faults, kill_at
from tests.world import World

if TYPE_CHECKING:
    from a2a_serverless.domain.model import Task


def told(journey: Journey, faults: Faults) -> Story:
    story = journey(partial(World, faults=faults))
    story.world.settle()
    return story


@cache
def calls_of(journey: Journey) -> list[str]:
    """The calls that the journey makes when nothing goes wrong."""
    count = Count()
    told(journey, count)
    return count.calls


@cache
def undisturbed(journey: Journey) -> Task:
    return same(told(journey, Count()).task())


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("journey", JOURNEYS)
def test_a_death_at_any_call_loses_and_doubles_nothing(journey: Journey, late: bool) -> None:  # noqa: FBT001
    for number, call in enumerate(calls_of(journey), 1):
        faults = kill_at(number, late=late)
        story = told(journey, faults)
        assert faults.met == [call], f"call {number}"
        assert_whole(story)


@pytest.mark.parametrize("journey", [journey for journey in JOURNEYS if journey.__name__ != "canceled"])
def test_what_a_killed_run_leaves_behind_is_byte_for_byte_what_an_undisturbed_one_does(journey: Journey) -> None:
    for number in range(1, len(calls_of(journey)) + 1, 3):
        story = told(journey, kill_at(number, late=number % 2 == 0))
        assert same(story.task()).artifacts == undisturbed(journey).artifacts


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("journey", JOURNEYS)
def test_two_or_three_deaths_lose_and_double_nothing(journey: Journey, seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - a seed, not a secret
    numbers = chance.sample(range(1, len(calls_of(journey)) + 1), chance.choice([2, 3]))
    faults = kill_at(*numbers, late=chance.random() < 0.5)
    assert_whole(told(journey, faults))
    assert len(faults.met) >= 1
