"""A few seeds of the simulation. ``make prove KIND=simulation`` plays more."""

from __future__ import annotations

from threading import Event

import pytest

from tests.removed_guards import REMOVED_GUARDS
from tests.simulated import Scheduler
from tests.simulation.run import find, play
from tests.simulation.scenarios import ALONE, ROUND, SCENARIOS, Play, scenarios_of

GUARD_SEEDS = 80
FIRST = {  # where a guard that not every seed needs was missed last
    "torn read": 50,
    "orphaned child": 20,
    "key ring": 65,
    "wrong delete": 10,
    "late renewal": 5,
    "store outage": 4,
}


@pytest.mark.parametrize("seed", range(1, ROUND + 1))
def test_a_deployment_keeps_its_promises_under_random_faults_of_its_instances(seed: int) -> None:
    assert play(seed) == []


@pytest.mark.parametrize("name", REMOVED_GUARDS)
def test_a_guard_that_is_removed_is_missed_by_the_promise_that_it_keeps(name: str) -> None:
    first = FIRST.get(name, 1)
    assert find(REMOVED_GUARDS[name], range(first, first + GUARD_SEEDS))[0], f"not in {GUARD_SEEDS} seeds"


def test_a_webhook_keeps_its_promises_though_all_instances_are_slow() -> None:
    assert play(7, ALONE) == []


def test_a_seed_plays_the_same_again() -> None:
    traces: list[list[str]] = [[], []]
    for trace in traces:
        Play(5, trace.append).run()
    assert traces[0] == traces[1]
    assert traces[0]


@pytest.mark.parametrize("first", [1, 1 + ROUND, 1 + 40 * ROUND])
def test_the_seeds_of_a_round_play_every_scenario_once(first: int) -> None:
    played = [name for seed in range(first, first + ROUND) for name in scenarios_of(seed)]
    assert sorted([*played, ALONE]) == sorted(SCENARIOS)


def test_a_process_that_blocks_its_thread_ends_the_simulation_with_its_name() -> None:
    blocked = Event()
    scheduler = Scheduler(1, limit_s=0.01)
    scheduler.spawn("blocked", blocked.wait)
    with pytest.raises(TimeoutError, match="blocked runs since 0 ms"):
        scheduler.rest()
    blocked.set()
