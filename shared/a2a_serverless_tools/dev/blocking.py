"""Finds agents that block the event loop of their run: then no other coroutine of the run goes on, nor its lease."""

from __future__ import annotations

import asyncio
import linecache
import sys
import threading
import time
from contextvars import Context
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from a2a_serverless.domain.agent import Agent, Answer, TaskContext

BEAT_S: Final = 0.25
BLOCKED_S: Final = 1.0
LIBRARY: Final = __name__.partition(".")[0]


@dataclass(frozen=True, slots=True)
class BlockedLoop:
    """An agent that has blocked its event loop for ``seconds``, and the line of code that it is at."""

    agent: str
    seconds: float
    file: str
    line: int
    code: str


class LoopWatch:
    """Watches the event loops in which agents run, one in a thread."""

    def __init__(self) -> None:
        self._beats: dict[int, tuple[str, float]] = {}
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

        return replace(agent, work=work)

    def find_blocked(self) -> Iterator[BlockedLoop]:
        """The loops that have been blocked for ``BLOCKED_S`` and were not found before."""
        now, beats = time.monotonic(), [*self._beats.items()]
        self._told &= {(thread, at) for thread, (_, at) in beats}
        for thread, (agent, at) in beats:
            if now - at > BLOCKED_S and (thread, at) not in self._told:
                self._told.add((thread, at))
                frame = sys._current_frames().get(thread)  # noqa: SLF001 - documented; there is no other way
                if frame:
                    yield _blocked(agent, now - at, frame)

    def _beat(self, agent: str) -> None:
        self._beats[threading.get_ident()] = (agent, time.monotonic())

    async def _beat_on(self, agent: str) -> None:
        while True:
            self._beat(agent)
            await asyncio.sleep(BEAT_S)


def _blocked(agent: str, seconds: float, frame: FrameType) -> BlockedLoop:
    """Names the innermost line that is in no library."""
    own: FrameType | None = frame
    while own and _is_foreign(own):
        own = own.f_back
    own = own or frame
    file, line = own.f_code.co_filename, own.f_lineno
    return BlockedLoop(agent, seconds, file, line, linecache.getline(file, line).strip())


def _is_foreign(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return module in sys.stdlib_module_names or module == LIBRARY or "site-packages" in frame.f_code.co_filename
