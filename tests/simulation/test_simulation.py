"""A few seeds of the simulation. ``make prove KIND=simulation`` plays more."""

from __future__ import annotations

from threading import Event

import pytest

from tests.removed_guards import REMOVED_GUARDS
from tests.simulated import Scheduler
from tests.simulation.run import find, play
from tests.simulation.scenarios import SCENARIOS, Play

SEEDS = 6
GUARD_SEEDS = 80
FIRST = {"stream slots": 44, "multiplying messages": 22}  # where a removed guard was missed last


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_a_deployment_keeps_its_promises_under_random_faults_of_its_instances(seed: int) -> None:
    assert play(seed) == []


@pytest.mark.parametrize("name", FIRST)
def test_a_guard_that_is_removed_is_missed(name: str) -> None:
    needed, how = find(REMOVED_GUARDS[name], range(FIRST[name], FIRST[name] + GUARD_SEEDS))
    assert needed, f"not in {GUARD_SEEDS} seeds"
    assert how


def test_a_seed_plays_the_same_again() -> None:
    traces: list[list[str]] = [[], []]
    for trace in traces:
        Play(5, trace.append).run()
    assert traces[0] == traces[1]
    assert traces[0]


def test_a_few_hundred_seeds_play_every_scenario() -> None:
    played = {name for seed in range(200) for name in Play(seed).names}
    assert played == {*SCENARIOS}


def test_a_process_that_blocks_its_thread_ends_the_simulation_with_its_name() -> None:
    blocked = Event()
    scheduler = Scheduler(1, limit_s=0.01)
    scheduler.spawn("blocked", blocked.wait)
    with pytest.raises(TimeoutError, match="blocked runs since 0 ms"):
        scheduler.rest()
    blocked.set()
