"""Journeys told with faults, and what their undisturbed tellings were like."""

from __future__ import annotations

import os
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from tests.faults.journeys import Journey, Story, acting, quiet, same, waiting
from tests.faults.plans import LOOK, OUTSIDE, Count, Faults
from tests.world import World

if TYPE_CHECKING:
    from a2a_serverless.protocol.v1 import Task


SOME: Final = 5
MANY: Final = int(os.environ.get("EACH", "11"))
EACH: Final[dict[Journey, int]] = {quiet: 1, acting: MANY, waiting: MANY}
"""Every how many calls of a journey have a fault. With EACH=1 all that an agent may do meets one at every call."""


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
    """Numbered calls of the journey: of the quiet one all, of the others some, others of them when late.

    Of looks at the head in a row the first stands for all: a worker at work looks once a second, and changes nothing.
    """
    calls, each = calls_of(journey, ports), EACH.get(journey, SOME)
    pairs = enumerate(pairwise(["", *calls]), 1)
    numbered = [(number, call) for number, (before, call) in pairs if not before == call == LOOK]
    return numbered[late * (each // 2) :: each]


@cache
def undisturbed(journey: Journey) -> Task:
    """What the client has in the end when nothing goes wrong."""
    return same(told(journey, Count()).task())
