"""Durable steps: tasks of a hundred steps, beside the local runner of AWS's SDK for Lambda durable functions (N14).

Ours run in the engine of a deployment, over the in-memory store and over dynoxide, where each step is one conditional
write by boto3. Each result is read back and compared with what the step gave: a number, or a dataclass of four fields.
Their local runner keeps its log in memory. Neither calls AWS. Needs `make dynoxide`.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless import Agent, TaskContext, TaskState
from a2a_serverless.adapters.clock import SystemClock
from a2a_serverless.engine.loop import play
from a2a_serverless.testing.memory import MemoryStores
from capacity import counted, database
from cost import PRICES
from deployment import SKILL, Deployment, deployed
from measuring import ROOT, Figure, Report, figure, goal, main, ratios

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from capacity import Database

STEPS: Final = 100
FEW: Final = 5
TASKS: Final = 10
PEER: Final = ROOT / ".a2a/venvs/bench-durable/bin/python"
THEIRS: Final = "durable functions, local runner"
MICROSECONDS: Final = {"in memory": 90, "in memory, dataclasses": 260}  # of CPU, for a step


async def plain(task: TaskContext) -> str:
    """Runs steps that return a number."""
    return str(sum([await task.step(f"step {number}", _same, number) for number in range(STEPS)]))


@dataclass(frozen=True)
class Order:
    """A result with a type."""

    number: int
    article: str
    price: Decimal
    day: date


async def typed(task: TaskContext) -> str:
    """Runs steps that return a dataclass."""
    return str(sum([(await task.step(f"step {number}", _order, number)).number for number in range(STEPS)]))


async def _order(number: int) -> Order:
    return Order(number, "a coat", Decimal("9.50"), date(2026, 11, 30))


async def streaming(task: TaskContext) -> str:
    """Runs steps that emit a chunk each."""

    async def emit(number: int) -> int:
        await task.emit("numbers.txt", f"{number}\n", append=True)
        return number

    return str(sum([await task.step(f"step {number}", emit, number) for number in range(STEPS)]))


async def _same(number: int) -> int:
    return number


def in_memory(work: Callable[[TaskContext], Awaitable[Any]]) -> Deployment:
    """Deploys an agent over the in-memory store."""
    store = MemoryStores(SystemClock().now)
    return deployed(Agent("bench", "Bench", "Is measured", (SKILL,), work), store, store, store)


def seconds(deployment: Deployment, tasks: int) -> dict[str, float]:
    """Runs tasks; returns the seconds of one task by the clock and by CPU."""
    sent = [deployment.send("go") for _ in range(tasks)]
    clock, cpu = time.perf_counter(), time.process_time()
    for task in sent:
        play(deployment.run(task))
    used = {"clock": (time.perf_counter() - clock) / tasks, "cpu": (time.process_time() - cpu) / tasks}
    if any(deployment.get(task).status.state is not TaskState.COMPLETED for task in sent):
        raise SystemExit("a task has not completed")
    return used


def theirs() -> dict[str, float]:
    """The seconds of one execution of their local runner, by the clock and by CPU."""
    command = [str(PEER), "-W", "ignore", str(ROOT / "bench/candidates/durable_steps.py"), str(STEPS)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=dict(os.environ))
    return dict(json.loads(done.stdout))


def measure(rounds: int) -> Report:
    """Measures all candidates in each round, after one round that does not count."""
    with database() as of:
        candidates: dict[str, Callable[[], dict[str, float]]] = {
            "in memory": lambda: seconds(in_memory(plain), TASKS),
            "in memory, dataclasses": lambda: seconds(in_memory(typed), TASKS),
            "in memory, a chunk in each step": lambda: seconds(in_memory(streaming), TASKS),
            "dynoxide": lambda: seconds(of.deploy(plain), 1),
            THEIRS: theirs,
        }
        found: dict[str, list[dict[str, float]]] = {name: [] for name in candidates}
        for turn in range(rounds + 1):
            for name, run in candidates.items():
                found[name] += [run()] if turn else [run()][1:]
        writes = {count: written(of, count) for count in (0, FEW, STEPS)}
    rate = partial(_rates, found)
    micros = {name: [one["cpu"] / STEPS * 1_000_000 for one in found[name]] for name in MICROSECONDS}
    return Report(
        "Durable steps",
        __doc__ or "",
        [
            *(figure(f"steps a CPU second: {name}", "", rate(name, "cpu"), ours=name != THEIRS) for name in found),
            *(figure(f"steps a second: {name}", "", rate(name, "clock"), ours=name != THEIRS) for name in found),
            *_costs(writes),
        ],
        [
            *(
                goal("N14", f"a step {name}, us of CPU", "<=", MICROSECONDS[name], used)
                for name, used in micros.items()
            ),
            goal(
                "N14",
                "steps a second on dynoxide, by theirs in memory",
                ">=",
                1,
                ratios(rate("dynoxide", "clock"), rate(THEIRS, "clock")),
            ),
            goal("N14", "write calls a step", "<=", 1, [(writes[STEPS][0] - writes[0][0]) / STEPS]),
        ],
        ["The local runner of the SDK is made for tests. Its log is in memory, and AWS's service is not measured."],
    )


def written(of: Database, steps: int) -> tuple[float, float]:
    """Returns write calls and write units of a task with so many steps on dynoxide."""

    async def work(task: TaskContext) -> None:
        for number in range(steps):
            await task.step(f"step {number}", _same, number)

    of.meter.reset()
    seconds(of.deploy(work), 1)
    return counted(of.meter)[:2]


def _costs(used: dict[int, tuple[float, float]]) -> list[Figure]:
    """Returns what DynamoDB's writes of a million steps and tasks cost, beside a million operations of theirs."""
    price, units = PRICES["per_million"]["dynamodb_write_unit"], {count: one[1] for count, one in used.items()}
    return [
        figure("writes of a million steps", "USD", [(units[STEPS] - units[0]) / STEPS * price], ours=True),
        figure(f"writes of a million tasks of {FEW} steps", "USD", [units[FEW] * price], ours=True),
        figure("a million operations of durable functions", "USD", [PRICES["per_million"]["durable_operation"]]),
    ]


def _rates(found: dict[str, list[dict[str, float]]], name: str, by: str) -> list[float]:
    return [STEPS / one[by] for one in found[name]]


if __name__ == "__main__":
    main(measure, rounds=5)
