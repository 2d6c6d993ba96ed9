"""A process may die before or after any call that it makes. Whatever dies, the client sees one whole task."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_serverless.domain.events import ArtifactEvent, fold
from a2a_serverless.domain.model import TaskState
from tests.echo import Writer
from tests.faults.plans import Count, Faults, NoFaults, kill_at
from tests.world import World


def journey(faults: Faults) -> tuple[World, Writer, str]:
    writer = Writer()
    world = World([writer.agent], faults=faults)
    task = world.send("hello")
    world.settle()
    return world, writer, task.task_id


def calls_of_an_undisturbed_journey() -> list[str]:
    count = Count()
    journey(count)
    return count.calls


CALLS = calls_of_an_undisturbed_journey()


def assert_whole(world: World, task_id: str) -> None:
    """Nothing is lost, nothing is doubled, and every webhook came, in order, with one effect."""
    events = world.events(task_id)
    assert [event.n for event in events] == list(range(1, len(events) + 1))
    task = fold(task_id, events[0].incoming.message.context_id, events)
    assert task.status.state is TaskState.COMPLETED
    assert [part.value for part in task.artifacts[0].parts] == ["one: hello. ", "two: hello. ", "three: hello. "]
    chunks = [event.emits for event in events if isinstance(event, ArtifactEvent)]
    assert chunks == [(1, 1), (2, 2), (3, 3)]
    effects = [got.n for got in world.receiver.effects()]
    assert effects == sorted(set(effects)), "each event once, in log order"
    told = set(range(1, effects[0] + 1)) | set(effects)
    assert {event.n for event in events} - told <= plain_workings(events)
    assert effects[-1] == events[-1].n


def plain_workings(events: list[Any]) -> set[int]:
    """What may be left out: a ``working`` that says nothing and has a later status behind it."""
    return {
        event.n
        for event in events
        if not isinstance(event, ArtifactEvent) and event.state is TaskState.WORKING and event.message is None
    }


def test_an_undisturbed_journey_is_whole_and_runs_each_step_once() -> None:
    world, writer, task_id = journey(NoFaults())
    assert_whole(world, task_id)
    assert writer.ran == ["one", "two", "three"]
    assert len(world.receiver.posts) == len(world.receiver.effects())


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("count", range(1, len(CALLS) + 1), ids=[f"{i}-{call}" for i, call in enumerate(CALLS, 1)])
def test_a_death_at_any_call_loses_and_doubles_nothing(count: int, late: bool) -> None:  # noqa: FBT001
    faults = kill_at(count, late=late)
    world, _, task_id = journey(faults)
    assert faults.met == [CALLS[count - 1]]
    assert_whole(world, task_id)
