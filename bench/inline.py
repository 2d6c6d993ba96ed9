"""A blocking send to an inline agent: how much longer it takes than the agent's work and two database calls (N7).

The real use case and engine run over the in-memory store, with a delay in each call as of DynamoDB. Wall-clock time is
measured, because the goal is about how long a client waits. No queue is used, so a worker's start and polling are not
included.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless import Agent, TaskContext
from a2a_serverless.adapters.clock import SystemClock
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.testing.memory import MemoryStores
from deployment import SKILL, deployed
from measuring import Report, figure, goal, main

if TYPE_CHECKING:
    from collections.abc import Callable

CALL_MS: Final = 5
WORK_MS: Final = (20, 50, 200)
GOAL_MS: Final = 50


@dataclass
class Distant:
    """A store whose every call takes ``CALL_MS``."""

    inner: Any
    calls: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def called(*args: object, **kwargs: object) -> object:
            self.calls.append(name)
            time.sleep(CALL_MS / 1000)
            result: object = getattr(self.inner, name)(*args, **kwargs)
            return result

        return called


def worker(ms: int) -> Agent:
    """Makes an inline agent that emits an artifact and works for ``ms``."""

    async def work(task: TaskContext) -> None:
        await task.emit("begun.txt", "begun")
        await asyncio.sleep(ms / 1000)

    return Agent("quick", "Quick", "Quick", (SKILL,), work, runs="inline")


def waited(agent: Agent) -> tuple[float, list[str]]:
    """Returns how long (ms) a client waits for the whole task, and the store's calls meanwhile."""
    store = Distant(MemoryStores(SystemClock().now))
    deployment = deployed(agent, store, store, store)
    start = time.perf_counter()
    task = deployment.send("Be quick.", wait=True)
    spent = (time.perf_counter() - start) * 1000
    if task.status.state is not TaskState.COMPLETED:
        raise SystemExit(f"the task did not end: {task}")
    return spent, store.calls


def measure(rounds: int) -> Report:
    """Measures agents that work for different times, in each round."""
    walls: dict[int, list[float]] = {ms: [] for ms in WORK_MS}
    calls: list[str] = []
    for turn in range(rounds + 1):
        for ms in WORK_MS:
            wall, calls = waited(worker(ms))
            if turn:
                walls[ms].append(wall)
    ratios = {ms: [wall / (ms + 2 * CALL_MS) for wall in walls[ms]] for ms in WORK_MS}
    return Report(
        "Blocking send, inline agent",
        __doc__ or "",
        [
            *(figure(f"an agent that works for {ms} ms", "ms", walls[ms], ours=True) for ms in WORK_MS),
            *(figure(f"{ms} ms, by work and two calls", "x", ratios[ms], ours=True) for ms in WORK_MS),
        ],
        [goal("N7", f"blocking send, by {GOAL_MS} ms of work and two calls of {CALL_MS} ms", "<=", 2, ratios[GOAL_MS])],
        [f"Calls of the database: {len(calls)} ({', '.join(calls)}). An agent that answers with a message makes none."],
    )


if __name__ == "__main__":
    main(measure, rounds=20)
