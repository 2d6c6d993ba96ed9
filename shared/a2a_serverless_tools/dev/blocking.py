"""Finds agents that hang: that block the event loop of their run, or wait for something that may never come.

While a loop is blocked, no other coroutine of the run goes on, nor its lease.
"""

from __future__ import annotations

import asyncio
import linecache
import sys
import threading
import time
from contextvars import Context
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Final, cast

from a2a_serverless.testing.waiting import WaitingCode, own_line, thread_frames, waiting_code

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from a2a_serverless.domain.agent import Agent, Answer
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.engine.loop import RunLoop

BEAT_S: Final = 0.25
BLOCKED_S: Final = 1.0
WAITING_S: Final = 10.0
WAITING_IN_STEP_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class BlockedLoop:
    """An agent that has blocked its event loop for ``seconds``, and the line of code that it is at."""

    agent: str
    seconds: float
    file: str
    line: int
    code: str


@dataclass(frozen=True, slots=True)
class WaitingAgent:
    """An agent that waits in ``steps``, or outside of them, for something that is no timer and no wait of its task.

    The innermost lines of its code have been the same for ``seconds``.
    """

    agent: str
    task: str
    seconds: float
    steps: tuple[str, ...]
    codes: tuple[WaitingCode, ...]


class LoopWatch:
    """Watches the event loops in which agents run, one in a thread."""

    def __init__(self) -> None:
        self._beats: dict[int, tuple[str, float]] = {}
        self._waiting: dict[int, tuple[WaitingAgent, float]] = {}
        self._told: set[tuple[int, float]] = set()

    def watch(self, agent: Agent) -> Agent:
        """The agent, which is watched while it runs."""

        @wraps(agent.work)
        async def work(task: TaskContext) -> Answer:
            self._beat(agent.id)
            beating = asyncio.create_task(self._beat_on(agent.id), context=Context())  # its timers are not the agent's
            try:
                return await agent.work(task)
            finally:
                beating.cancel()
                self._beats.pop(threading.get_ident(), None)
                self._waiting.pop(threading.get_ident(), None)

        return replace(agent, work=work)

    def find_blocked(self) -> Iterator[BlockedLoop]:
        """The loops that have been blocked for ``BLOCKED_S`` and were not found before."""
        now, beats = time.monotonic(), [*self._beats.items()]
        for thread, (agent, at) in beats:
            if now - at > BLOCKED_S and (thread, at) not in self._told:
                self._told.add((thread, at))
                frame = sys._current_frames().get(thread)  # noqa: SLF001 - documented; there is no other way
                if frame:
                    yield _blocked(agent, now - at, frame)

    def find_waiting(self) -> Iterator[WaitingAgent]:
        """The agents that have waited for ``WAITING_S`` (in a step for ``WAITING_IN_STEP_S``), each wait once."""
        now = time.monotonic()
        for thread, (waiting, since) in [*self._waiting.items()]:
            limit_s = WAITING_IN_STEP_S if waiting.steps else WAITING_S
            if now - since > limit_s and (thread, since) not in self._told:
                self._told.add((thread, since))
                yield replace(waiting, seconds=now - since)

    def _beat(self, agent: str) -> None:
        self._beats[threading.get_ident()] = (agent, time.monotonic())

    async def _beat_on(self, agent: str) -> None:
        while True:
            self._beat(agent)
            self._note_waiting(agent)
            await asyncio.sleep(BEAT_S)

    def _note_waiting(self, agent: str) -> None:
        """Notes since when the agent of the running loop has waited at the same lines, if it does."""
        loop, thread = cast("RunLoop", asyncio.get_running_loop()), threading.get_ident()
        work = loop.work
        if work is None or work.is_waiting or loop.agent_timers():
            self._waiting.pop(thread, None)
            return
        steps = tuple(work.running_paths)
        waiting = WaitingAgent(agent, work.task, 0, steps, tuple(waiting_code(loop)))
        if self._waiting.get(thread, (None, 0))[0] != waiting:
            self._waiting[thread] = waiting, time.monotonic()


def _blocked(agent: str, seconds: float, frame: FrameType) -> BlockedLoop:
    """Names the innermost line that is in no library."""
    code = own_line(thread_frames(frame))
    return BlockedLoop(agent, seconds, code.file, code.line, linecache.getline(code.file, code.line).strip())
