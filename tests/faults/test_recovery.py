"""How long a death delays a task and its webhooks, if the queue message of the dead function never comes back.

The times of docs/guarantees.md. In AWS such a message does come back, when its visibility timeout ends.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import pytest

from tests.faults.journeys import Journey, Story, assert_whole, handed_on, quiet, stubborn
from tests.faults.plans import Faults, NoFaults, kill_at
from tests.faults.run_report import calls_of
from tests.simulated import Killed
from tests.world import HOUR_MS, MINUTE_MS, World

if TYPE_CHECKING:
    from a2a_serverless.domain.queue_messages import QueueMessage

EACH: Final = 5  # each fifth call, others in each journey


class Forgetful(World):
    """The message of a function that died is lost."""

    def answer(self, message: QueueMessage) -> object:
        try:
            return super().answer(message)
        except Killed:
            self.kills += 1
            return "died"


def told(journey: Journey, faults: Faults) -> Story:
    story = journey(lambda agents: Forgetful(agents, faults))
    story.world.settle()
    return story


def times(story: Story) -> tuple[int, int]:
    """When the task ended, and when its webhook got the last event."""
    return story.events()[-1].at, story.world.receiver.posts[-1].at


@cache
def undisturbed(journey: Journey) -> tuple[int, int]:
    return times(told(journey, NoFaults()))


@pytest.mark.parametrize("journey", [quiet, handed_on])
def test_rule_05_a_death_whose_message_is_lost_delays_task_and_webhook_by_90_seconds_at_most(journey: Journey) -> None:
    for number in range(1, len(calls_of(journey)) + 1, EACH):
        story = told(journey, kill_at(number, late=number % 2 == 0))
        assert_whole(story)
        late = [after - before for after, before in zip(times(story), undisturbed(journey), strict=True)]
        assert max(late) <= 1.5 * MINUTE_MS, f"call {number}"


def test_rule_05_a_webhook_that_came_back_after_failures_goes_on_within_an_hour() -> None:
    calls = len(calls_of(stubborn))
    for number in range(calls - 40, calls + 1, EACH):
        story = told(stubborn, kill_at(number, late=number % 2 == 0))
        assert_whole(story)
        assert times(story)[1] - undisturbed(stubborn)[1] <= HOUR_MS, f"call {number}"
