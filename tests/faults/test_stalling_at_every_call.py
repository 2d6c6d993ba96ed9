"""A process may stand still for longer than its lease and then go on: meanwhile others have done its work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_serverless.protocol.v1 import TaskState
from tests.faults.journeys import JOURNEYS, Journey, Story, assert_whole, canceled, invited
from tests.faults.plans import At
from tests.faults.run_report import some_calls
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_serverless.domain.agent import Agent

LONGER_THAN_ANY_LEASE_MS = 95_000
# Nobody can stop a request that its sender has decided to make. It comes late and twice; its number tells the receiver.
BETWEEN_CHECK_AND_POST = ("receiver.post", False)


class Stall:
    """Stands still at one call of a journey, while the world goes on with other processes."""

    def __init__(self, number: int, *, late: bool) -> None:
        self.faults = At(number, late=late, what=self.stand_still)
        self.world: World | None = None

    def stand_still(self) -> None:
        assert self.world
        self.world.elsewhere(LONGER_THAN_ANY_LEASE_MS)

    def make(self, agents: Sequence[Agent]) -> World:
        self.world = World(agents, faults=self.faults)
        return self.world


def told(journey: Journey, stall: Stall) -> Story:
    story = journey(stall.make)
    story.world.settle()
    if journey is canceled:
        story.ends |= {TaskState.COMPLETED}  # a cancel that stands still may come too late
    if journey is invited and not story.world.table.list_configs(ME.key(story.task_id)):
        story.hooks = []  # and so may a message that brings a webhook
    return story


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("journey", JOURNEYS)
def test_rule_06_sleeping_through_the_lease_at_any_call_spoils_no_result(journey: Journey, late: bool) -> None:  # noqa: FBT001
    for number, call in some_calls(journey, late):
        if (call, late) == BETWEEN_CHECK_AND_POST:
            continue
        stall = Stall(number, late=late)
        story = told(journey, stall)
        assert stall.faults.met == [call], f"call {number}"
        assert_whole(story)
