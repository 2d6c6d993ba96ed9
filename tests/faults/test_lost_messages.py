"""Messages may be lost, doubled, late and out of order. The truth is in the log, and the sweeper enqueues again."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.testing.simulated_loop import START
from tests.faults.journeys import JOURNEYS, Journey, Story, assert_whole, canceled, quiet, same
from tests.faults.plans import NoFaults, UnreliableQueue, kill_at
from tests.faults.run_report import calls_of, told, undisturbed
from tests.world import MINUTE_MS, World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_serverless.domain.agent import Agent


class Silence:
    """A queue that loses every message that is enqueued here."""

    def __init__(self, *_: object) -> None:
        pass

    def enqueue(self, *_: object) -> None:
        pass

    def enqueue_many(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("journey", JOURNEYS)
def test_rule_05_messages_that_go_astray_change_nothing_but_the_time(journey: Journey, seed: int) -> None:
    assert_whole(told(journey, NoFaults(), between=lambda queue: UnreliableQueue(queue, seed)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("journey", JOURNEYS)
def test_rule_05_deaths_among_messages_that_go_astray_lose_and_double_nothing(journey: Journey, seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - a seed, not a secret
    faults = kill_at(*chance.sample(range(1, len(calls_of(journey))), 3), late=seed % 2 == 0)
    assert_whole(told(journey, faults, between=lambda queue: UnreliableQueue(queue, seed)))


def told_by_the_sweeper(journey: Journey) -> Story:
    """The journey in a world in which only the sweeper's messages arrive."""

    def make(agents: Sequence[Agent]) -> World:
        world = World(agents, between=Silence)
        world.sweeper = replace(world.sweeper, queues=world.queue)
        return world

    story = journey(make)
    story.world.settle()
    return story


@pytest.mark.parametrize("journey", [journey for journey in JOURNEYS if journey is not canceled])
def test_rule_05_the_sweeper_alone_brings_everything_to_its_end(journey: Journey) -> None:
    story = told_by_the_sweeper(journey)
    assert_whole(story)
    assert same(story.task()).artifacts == undisturbed(journey).artifacts


def test_rule_05_the_sweeper_alone_takes_minutes_and_not_hours() -> None:
    story = told_by_the_sweeper(quiet)
    assert story.task().status.timestamp - START < 2 * MINUTE_MS
    assert story.world.receiver.posts[-1].at - START < 4 * MINUTE_MS
