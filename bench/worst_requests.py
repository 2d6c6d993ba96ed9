"""The worst single request of each kind, at the largest tasks of an owner (N30).

Each of these tasks has 600 results of 20 KB, 6 MB of text and a history of 1 MB. The requests go through the HTTP
application over the in-memory store. Calls are those of the table, the bucket and the queue. A query reads pages of a
megabyte and whole items, as DynamoDB's do.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Final

from a2a_serverless import Agent, TaskContext
from a2a_serverless.adapters.clock import SystemClock
from a2a_serverless.domain.budgets import Budget
from a2a_serverless.testing.memory import MemoryStores
from deployment import SKILL, deployed
from measuring import ROOT, Report, figure, goal, main, ratios, side_by_side
from steps import seconds

sys.path.insert(0, str(ROOT))

from tests.costs.worst_requests import REFUSED, Scene, count_requests, stored_by_emitted

STEPS: Final = 10_000
CHUNKS: Final = 512
UNITS: Final = ("calls", "items read", "KB read", "KB written")


async def work(task: TaskContext) -> None:
    """Runs many quick steps."""
    for number in range(STEPS):
        await task.step(f"step {number}", _nothing)


async def _nothing() -> None:
    pass


def cpu_s(budget: Budget) -> float:
    """The CPU seconds of a task of many steps."""
    agent = replace(Agent("bench", "Bench", "Is measured", (SKILL,), work), budget=budget)
    store = MemoryStores(SystemClock().now)
    return seconds(deployed(agent, store, store, store), 1)["cpu"]


def measure(rounds: int) -> Report:
    """Makes each request once, and runs the steps in each round."""
    scene = Scene()
    rows = list(count_requests(scene))
    refused = [row.used for row in rows if row.worst.is_refused]
    reads = [row.used for row in rows if row.worst.what.startswith("Get")]
    page, stored = scene.copy(), stored_by_emitted(CHUNKS)
    cpu = side_by_side({"with": lambda: cpu_s(Budget(steps=2 * STEPS)), "without": lambda: cpu_s(Budget())}, rounds)
    return Report(
        "The worst requests",
        __doc__ or "",
        [
            *(
                figure(f"{row.worst.what}: {unit}", "", [value], ours=True)
                for row in rows
                for unit, value in zip((*UNITS, "CPU ms"), (*row.used, row.cpu_ms), strict=True)
            )
        ],
        [
            goal("N30", "calls of a refused request", "<=", REFUSED.calls, [max(one.calls for one in refused)]),
            goal("N30", "KB that a refused request reads", "<=", REFUSED.read, [max(one.read for one in refused)]),
            goal("N30", "KB that GetTask writes", "<=", 0, [max(one.written for one in reads)]),
            goal("N30", "items that a retry copies by one call", "<=", 25, [page]),
            goal("N30", "bytes of snapshots, by those emitted", "<=", 3, [stored]),
            goal("N30", "10,000 steps with a budget, by those without", "<=", 1.2, ratios(cpu["with"], cpu["without"])),
        ],
    )


if __name__ == "__main__":
    main(measure, rounds=3)
