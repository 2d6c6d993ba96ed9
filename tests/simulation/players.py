"""Agents that play the random programs of ``tests.replay`` in a simulation, their clients, and what must come of them.

A message names a program by its seed. What a task came to is compared with the oracle, which is no run of the engine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.services import tasks
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.store.api_keys import ApiKeyStore
from a2a_serverless_tools.operators.erasure import ErasureScope, ErasureService, erase
from a2a_serverless_tools.operators.erasure_store import ErasureStore
from tests.echo import agent_of
from tests.replay.plays import child, compare, effects_of_run
from tests.replay.programs import Effects, Operation, Player, answer_to, make_program
from tests.simulation.deployment import HOUR_MS, ME, MINUTE_MS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.task_context import TaskContext
    from tests.simulation.scenarios import Play

QUEUED: Final = "player"
INLINE: Final = "inline-player"
PROGRAMS: Final = 1 << 30
GIVE_UP_MS: Final = 10 * HOUR_MS
OLD: Final = "old"
"""The webhook whose receiver speaks 0.3."""


@dataclass
class Program:
    """A program that a task plays, and what happened outside meanwhile."""

    operations: list[Operation]
    effects: Effects = field(default_factory=Effects)
    task: str = ""
    agent: str = QUEUED


class Players:
    """The agents of a simulation that play programs, and their clients."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self.programs: dict[str, Program] = {}
        self.erased_tasks: list[str] = []

    def agents(self) -> list[Agent]:
        inline = replace(agent_of(self._work, INLINE), runs="inline")
        return [agent_of(self._work, QUEUED), inline, agent_of(child, "child")]

    async def _work(self, task: TaskContext) -> str:
        program = self.programs[task.text()]
        effects = effects_of_run(program.effects, self._play.simulation.table.calm(), ME.key(task.id))
        return str(await Player(task, effects).play(program.operations))

    # ---- Scenarios

    def played(self) -> None:
        """A random program, with a webhook or two, of which one speaks 0.3."""
        program = self._start(QUEUED, "https://trusted.example.com/a")
        if self._play.random.random() < 1 / 2:
            self._play.register(QUEUED, program.task, OLD, "https://trusted.example.com/old", "0.3")
        self._talk(program)

    def inline(self) -> None:
        """A random program of an agent that runs in its client's request."""
        self._talk(self._start(INLINE, ""))

    def erased(self) -> None:
        """A task that an operator erases at any moment, while its client goes on to talk with it."""
        play, program = self._play, self._start(QUEUED, "https://trusted.example.com/a")
        play.simulation.spawn("operator", partial(self._erase, program.task), play.random.choice((50, 5_000, 120_000)))
        self._talk(program)

    def _erase(self, task_id: str) -> None:
        scope = ErasureScope(ME, task=task_id)
        self._play.ask(lambda: erase(self._erasure(), scope, lambda _: None))
        self.erased_tasks.append(task_id)

    def _erasure(self) -> ErasureService:
        simulation = self._play.simulation
        table, log = simulation.items, simulation.table
        return ErasureService(
            log=log,
            store=log,
            erasure_store=ErasureStore(table),
            blobs=log.blobs,
            api_keys=ApiKeyStore(table),
            clock=simulation.clock,
            ids=simulation.ids,
        )

    def _start(self, agent: str, url: str) -> Program:
        play, seed = self._play, self._play.random.randrange(PROGRAMS)
        program = self.programs[str(seed)] = Program(make_program(Random(seed)), agent=agent)  # noqa: S311 - a seed
        program.task = play.send(agent, str(seed), url, waits=agent == INLINE)
        return program

    def _talk(self, program: Program) -> None:
        """Answers each question once, and notes what the task has come to."""
        play, answered = self._play, set[str]()
        until = play.simulation.scheduler.now + GIVE_UP_MS
        while play.simulation.scheduler.now < until:
            task = play.ask(lambda: tasks.get(play.simulation.service, self._context(program), program.task))
            if task is None or task.status.state in TERMINAL:
                break
            question = task.status.message
            if task.status.state in INTERRUPTED and question and question.message_id not in answered:
                answered.add(question.message_id)
                play.send(program.agent, answer_to(question.text(), len(answered)), task_id=program.task)
            play.simulation.scheduler.sleep(play.random.choice((500, 5_000, MINUTE_MS)))

    def _context(self, program: Program) -> RequestContext:
        return RequestContext(ME, program.agent, "1.0")

    # ---- What must hold at the end

    def broken(self) -> Iterator[str]:
        """What is wrong with the tasks that played programs."""
        for program in self.programs.values():
            if program.task and program.task not in self.erased_tasks:
                yield from (f"{program.task} {text}" for text in self._differences(program))
            yield from (f"{program.task}: {text}" for text in program.effects.wrong)
        for task_id in self.erased_tasks:
            yield from (f"{task_id} was erased, and there is {name}" for name in self._left_of(task_id))

    def _differences(self, program: Program) -> Iterator[str]:
        play = self._play
        table = play.simulation.table.calm()
        task = tasks.get(play.simulation.service._replace(log=table), self._context(program), program.task)
        if task.status.state is not TaskState.COMPLETED:
            if not play.may_fail(calls=any(one.kind in {"call", "calls"} for one in program.operations)):
                yield f"is {task.status.state}: {task.status.message and task.status.message.text()}"
            return
        yield from compare(program.operations, program.effects, task, table, ME.key(program.task))

    def _left_of(self, task_id: str) -> Iterator[str]:
        items_ = self._play.simulation.items
        for pk, rows in items_.partitions.items():
            yield from (f"{pk} {sk}" for sk, row in rows.items() if task_id in pk or task_id in json.dumps(row))
        yield from (name for name in self._play.simulation.table.blobs.content if task_id in name)
