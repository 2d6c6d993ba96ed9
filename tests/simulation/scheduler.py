"""Processes in simulated time: threads of which one runs at a time, in an order that a seed decides.

A process waits for a time (``sleep``) or for a condition (``wait_for``); then the one that is due first goes on. Two
runs with the same seed do the same.
"""

from __future__ import annotations

import asyncio
import heapq
import selectors
from dataclasses import dataclass, field
from itertools import count
from random import Random
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

from a2a_serverless.engine.loop import RunLoop
from a2a_serverless.testing import START

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

NEVER: Final = 1 << 62
LIMIT_S: Final = 600.0  # of real time, for one seed, which takes seconds


class Killed(BaseException):
    """The process is dead: each of its further calls raises this again."""


class Over(BaseException):
    """The simulation has ended."""


@dataclass(eq=False)
class Process:
    """One instance. ``offset_ms`` is by how much its clock differs; ``is_dead`` ends it at its next call.

    ``looks`` counts the heads that it has read since its suspension was refused. ``hops`` is how many functions sent
    the message that it handles, one after the other.
    """

    name: str
    offset_ms: int
    gate: Semaphore = field(default_factory=lambda: Semaphore(0))
    is_dead: bool = False
    looks: int = 0
    hops: int = 0
    is_slow: bool = False


class Scheduler:
    """Runs processes until ``until`` (ms), or until none waits for a time. ``trace`` gets what happens.

    ``limit_s`` bounds the real time of a run: a process that blocks its thread would stop all others for ever.
    """

    def __init__(
        self, seed: int, until: int, trace: Callable[[str], None] | None = None, limit_s: float = LIMIT_S
    ) -> None:
        self.random = Random(seed)  # noqa: S311 - a seed, not a secret
        self.now = START
        self.current = Process("main", 0)
        self.failures: list[BaseException] = []
        self._until, self._limit_s = until, limit_s
        self._trace = trace
        self._order = count()
        self._asleep: list[tuple[int, int, Process]] = []
        self._waiting: dict[Process, Callable[[], int]] = {}
        self._threads: list[Thread] = []
        self._processes: list[Process] = []
        self._finished = Semaphore(0)
        self._over = False

    def trace(self, text: str) -> None:
        """Writes a line of the trace, if somebody wants it."""
        if self._trace:
            self._trace(f"{(self.now - START) / 1000:10.3f} {self.current.name:12} {text}")

    def spawn(self, name: str, work: Callable[[], object], offset_ms: int = 0, after_ms: int = 0) -> None:
        """Adds a process that starts in ``after_ms``."""
        process = Process(name, offset_ms)

        def live() -> None:
            process.gate.acquire()
            try:
                if not self._over:
                    work()
            except Over:
                pass
            except BaseException as error:  # noqa: BLE001 - raised by ``run``
                self.failures.append(error)
            if not self._over:
                self._pass_on()

        thread = Thread(target=live, name=name, daemon=True)
        self._threads.append(thread)
        self._processes.append(process)
        heapq.heappush(self._asleep, (self.now + after_ms, next(self._order), process))
        thread.start()

    def run(self) -> None:
        """Runs everything; raises the first error that a process did not handle, TimeoutError after ``limit_s``."""
        self._pass_on()
        if not self._finished.acquire(timeout=self._limit_s):
            raise TimeoutError(f"{self.current.name} runs since {self.now - START} ms; {self._limit_s} s have passed")
        self._over = True
        for process, thread in zip(self._processes, self._threads, strict=True):
            process.gate.release()
            thread.join(self._limit_s)
            if thread.is_alive():
                raise TimeoutError(f"{process.name} has not ended in {self._limit_s} s after the simulation")
        if self.failures:
            raise self.failures[0]

    def sleep(self, ms: int) -> None:
        """Suspends the running process for ``ms``."""
        process = self._running()
        heapq.heappush(self._asleep, (self.now + max(0, ms), next(self._order), process))
        self._switch(process)

    def wait_for(self, when: Callable[[], int]) -> None:
        """Suspends the running process until the time that ``when`` returns; it may change while others run."""
        process = self._running()
        self._waiting[process] = when
        self._switch(process)

    def play(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the running process, in simulated time."""
        loop, process = _Loop(self), self.current
        try:
            return loop.run_until_complete(work)
        finally:
            was_dead, process.is_dead = process.is_dead, True  # what is left of the run makes no calls
            loop.leave()
            process.is_dead = was_dead

    def _running(self) -> Process:
        if self._over:
            raise Over
        return self.current

    def _switch(self, process: Process) -> None:
        following = self._next()
        if following is not process:
            self._resume(following)
            process.gate.acquire()
            if self._over:
                raise Over

    def _pass_on(self) -> None:
        self._resume(self._next())

    def _resume(self, process: Process | None) -> None:
        if process:
            self.current = process
        (process.gate if process else self._finished).release()

    def _next(self) -> Process | None:
        """The process that is due first, and the time moves there; None if the simulation is over."""
        timed = self._asleep[0][0] if self._asleep else NEVER
        waiting = [(max(self.now, when()), process) for process, when in self._waiting.items()]
        soonest = min((at for at, _ in waiting), default=NEVER)
        at = min(timed, soonest)
        if at > self._until or self.failures:
            return None
        self.now = at
        if soonest < timed:
            process = self.random.choice([process for due, process in waiting if due == soonest])
            del self._waiting[process]
            return process
        return heapq.heappop(self._asleep)[2]


@dataclass(frozen=True)
class InstanceClock:
    """The clock of whichever instance runs."""

    scheduler: Scheduler

    def now(self) -> int:
        return self.scheduler.now + self.scheduler.current.offset_ms

    def sleep(self, seconds: float) -> None:
        self.scheduler.sleep(int(seconds * 1000))


class _Loop(RunLoop):
    """An event loop in simulated time. What is for a thread is done in the loop's own."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._selects = _Selector(scheduler)
        super().__init__(self._selects)

    def time(self) -> float:
        return (self._scheduler.now - START) / 1000 + self._selects.skipped_s

    def leave(self) -> None:
        """Cancels what is left, without letting time pass, and closes the loop."""
        self._selects.is_ending = True
        if left := asyncio.all_tasks(self):
            for task in left:
                task.cancel()
            done, _ = self.run_until_complete(asyncio.wait(left, timeout=60))
            for task in done:
                if not task.cancelled():
                    task.exception()
        self.close()

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        del executor
        done: asyncio.Future[Any] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - as of an executor
            done.set_exception(error)
        return done


class _Selector(selectors.SelectSelector):
    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler
        self.is_ending = False
        self.skipped_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("deadlock: everything waits, and nothing is scheduled")
        if self.is_ending:
            self.skipped_s += timeout
        elif timeout > 0:
            self._scheduler.sleep(int(timeout * 1000) + 1)
        return []
