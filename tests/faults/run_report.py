"""Journeys told with faults, and what their undisturbed tellings were like."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

from tests.faults.journeys import Journey, Story, quiet, same
from tests.faults.plans import OUTSIDE, Count, Faults
from tests.world import World

if TYPE_CHECKING:
    from a2a_serverless.protocol.v1 import Task


def told(journey: Journey, faults: Faults, **world: Any) -> Story:
    """The journey in a world in which these faults happen, to its end."""
    story = journey(partial(World, faults=faults, **world))
    story.world.settle()
    return story


@cache
def calls_of(journey: Journey, ports: frozenset[str] = OUTSIDE) -> list[str]:
    """The calls that the journey makes when nothing goes wrong."""
    count = Count(ports)
    told(journey, count)
    return count.calls


def some_calls(journey: Journey, late: bool, ports: frozenset[str] = OUTSIDE) -> list[tuple[int, str]]:  # noqa: FBT001
    """Numbered calls of the journey: of the quiet one all, of the others each fifth, others of them when late."""
    numbered = list(enumerate(calls_of(journey, ports), 1))
    return numbered if journey is quiet else numbered[late * 2 :: 5]


@cache
def undisturbed(journey: Journey) -> Task:
    """What the client has in the end when nothing goes wrong."""
    return same(told(journey, Count()).task())
