"""A blocking send of an inline agent: how much longer than its work and two calls of the database it takes (N7).

The real use case and engine over the store in memory, each of whose calls takes as long as DynamoDB's may. The wall
clock counts here, because the goal is about what a client waits for: `python bench/inline.py --rounds 30` on a busy
machine. Nothing passes a queue, so a worker's start and polling are no part of it.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.adapters.builtin.picture import BuiltinPicture
from a2a_serverless.adapters.builtin.text import BuiltinText
from a2a_serverless.adapters.memory import MemoryBells, MemoryNames, MemorySealer, MemoryTable
from a2a_serverless.adapters.system import SystemClock, UuidIds
from a2a_serverless.domain.agent import Agent, AgentTask, Skill
from a2a_serverless.domain.head import Life
from a2a_serverless.domain.model import Message, Part, Principal, Role, SendRequest, Task, TaskState
from a2a_serverless.domain.url_policy import EgressPolicy
from a2a_serverless.engine.calls import Directory
from a2a_serverless.engine.inline import Inline
from a2a_serverless.engine.run import Engine
from a2a_serverless.engine.work import Models
from a2a_serverless.services.listing import Shelf
from a2a_serverless.services.push import Webhooks
from a2a_serverless.services.tasks import Desk, send
from measuring import Report, figure, goal, main

if TYPE_CHECKING:
    from collections.abc import Callable

CALL_MS: Final = 5
WORK_MS: Final = (20, 50, 200)
GOAL_MS: Final = 50
ME: Final = Principal("tenant", "client")
DAY_MS: Final = 86_400_000


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


def desk(agent: Agent) -> tuple[Desk, Distant]:
    """A deployment of one inline agent, and its store."""
    clock, ids, sealer = SystemClock(), UuidIds(), MemorySealer()
    table: Any = Distant(MemoryTable(clock.now))
    bells = MemoryBells(clock.now)
    models = Models(BuiltinText(), BuiltinPicture())
    peers: Any = SimpleNamespace(traced=lambda _: None)  # nobody is called
    directory = Directory(peers, ids, "https://agents.example.com")
    engine = Engine(table, table, bells, ids, clock.now, {agent.id: agent}, models, directory)
    webhooks = Webhooks(table, table, bells, sealer, clock, ids, EgressPolicy(), MemoryNames())
    shelf, life = Shelf(table, table, sealer), Life(7 * DAY_MS, 30 * DAY_MS)
    return Desk(table, bells, clock, ids, webhooks, shelf, life, 20_000, here=Inline(engine)), table


def worker(ms: int) -> Agent:
    """An inline agent that works for so long, and makes an artifact."""

    async def work(task: AgentTask) -> None:
        await task.emit("begun.txt", "begun")
        await asyncio.sleep(ms / 1000)

    return Agent("quick", "Quick", "Quick", (Skill("quick", "Quick", "Quick", ()),), work, runs="inline")


def waited(agent: Agent) -> tuple[float, list[str]]:
    """How long (ms) a client waits for the whole task, and the calls of the store meanwhile."""
    given, store = desk(agent)
    message = Message(f"message-{random.random()}", Role.USER, (Part("text", "Be quick."),))  # noqa: S311
    start = time.perf_counter()
    task = send(given, ME, agent.id, SendRequest(message), "1.0")
    spent = (time.perf_counter() - start) * 1000
    if not isinstance(task, Task) or task.status.state is not TaskState.COMPLETED:
        raise SystemExit(f"the task did not end: {task}")
    return spent, store.calls


def measure(rounds: int) -> Report:
    """Agents that work for different times, in turns."""
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
