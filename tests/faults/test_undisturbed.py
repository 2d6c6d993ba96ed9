"""Every journey without faults: what the others are measured by."""

from __future__ import annotations

import pytest

from a2a_serverless.domain.events import ArtifactEvent
from tests.faults import journeys
from tests.faults.journeys import JOURNEYS, Story, assert_whole
from tests.world import World


def told(story: Story) -> list[str]:
    """The log in words."""
    return ["chunk" if isinstance(event, ArtifactEvent) else str(event.state) for event in story.events()]


@pytest.mark.parametrize("journey", JOURNEYS)
def test_an_undisturbed_journey_is_whole_and_tells_each_thing_once(journey: journeys.Journey) -> None:
    story = journey(World)
    story.world.settle()
    assert_whole(story)
    assert len(story.world.receiver.posts) == len(story.world.receiver.effects())


LOGS = {
    journeys.quiet: "submitted working working chunk chunk chunk completed",
    journeys.canceled: "submitted working working chunk canceled",
    journeys.talkative: "submitted working working working chunk working chunk chunk completed",
    journeys.asked: "submitted working input-required working working chunk completed",
}


@pytest.mark.parametrize(("journey", "log"), LOGS.items())
def test_the_log_of_an_undisturbed_journey_has_no_event_too_many(journey: journeys.Journey, log: str) -> None:
    story = journey(World)
    story.world.settle()
    assert told(story) == log.split()
