"""The table of limits: what each rate of tasks needs, by independent arrivals."""

from __future__ import annotations

import heapq
import random

import pytest

import cost
import limits


def occupancy(mean: float, seconds: float, moments: int, seed: int) -> list[int]:
    """The tasks that are there at many moments, if they arrive independently and stay for ``seconds``."""
    chance = random.Random(seed)  # noqa: S311 - the same numbers in each run
    now, ends, seen = 0.0, list[float](), list[int]()
    looks = 2 * seconds
    while len(seen) < moments:
        now += chance.expovariate(mean / seconds)
        while looks <= now and len(seen) < moments:
            while ends and ends[0] <= looks:
                heapq.heappop(ends)
            seen.append(len(ends))
            looks += seconds / 7
        heapq.heappush(ends, now + seconds)
    return sorted(seen)


@pytest.mark.parametrize("mean", [0.5, 5.0, 100.0, 700.0])
def test_the_number_that_is_enough_is_exceeded_at_a_moment_in_a_thousand(mean: float) -> None:
    seen = occupancy(mean, 10.0, 7_000, seed=31)
    share = sum(number > cost.enough(mean) for number in seen) / len(seen)
    assert share <= 0.002
    assert sum(number > cost.enough(mean) - max(2, mean**0.5) for number in seen) / len(seen) > 0.001


@pytest.mark.parametrize("limit", limits.LIMITS, ids=lambda limit: limit.what)
def test_a_limit_is_full_where_its_default_just_suffices(limit: limits.Limit) -> None:
    load = limits.Load(1)
    full = limit.full_at(load)
    assert limit.needed(limits.Load(full * 0.99)) <= limit.default
    assert limit.needed(limits.Load(full * 1.01 + 0.01)) > limit.default


def test_the_first_limit_of_agents_that_work_is_the_number_of_workers() -> None:
    lines = limits.table(limits.Load(1)).splitlines()
    assert lines[2].startswith("| workers at a time | 50 |")
    assert "**132**" in lines[2]
    assert lines[-1].startswith("| USD an hour |")


def test_the_cost_of_an_hour_grows_with_the_rate() -> None:
    one, ten = (limits.usd_an_hour(limits.Load(rate)) for rate in (1, 10))
    assert ten == pytest.approx(10 * one)
