"""A clock for threads that race: its time moves only when all of them sleep, so a slow machine ends no lease."""

from __future__ import annotations

import heapq
from collections import deque
from itertools import count
from threading import Event, Lock, Semaphore, Thread
from typing import TYPE_CHECKING, Final

from a2a_serverless.testing.simulated_loop import START, SimulatedLoop

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT_S: Final = 600.0  # of real time, for one seed, which takes seconds


class VirtualTime:
    """``ports.Clock`` of the threads that ``spawn`` starts, of which at most ``width`` run.

    ``limit_s`` bounds the real time of a run: time stands still while a thread is blocked.
    """

    def __init__(self, width: int, limit_s: float = LIMIT_S) -> None:
        self._width, self._limit_s = width, limit_s
        self._now, self._running, self._order = START, 0, count()
        self._ready: deque[Semaphore] = deque()
        self._asleep: list[tuple[int, int, Semaphore]] = []
        self._lock, self._is_over = Lock(), Event()
        self.failures: list[BaseException] = []

    def now(self) -> int:
        return self._now

    def sleep(self, seconds: float) -> None:
        gate = Semaphore(0)
        with self._lock:
            heapq.heappush(self._asleep, (self._now + int(seconds * 1000), next(self._order), gate))
            self._leave()
        gate.acquire()

    def spawn(self, work: Callable[[], object]) -> None:
        """Starts a thread, which runs when its turn comes."""
        gate = Semaphore(0)

        def live() -> None:
            gate.acquire()
            try:
                work()
            except BaseException as failure:  # noqa: BLE001 - raised by ``run``
                self.failures.append(failure)
            with self._lock:
                self._leave()

        Thread(target=live, daemon=True).start()
        with self._lock:
            self._ready.append(gate)

    def run(self) -> None:
        """Runs until no thread is left; raises the first failure of one, TimeoutError after ``limit_s``."""
        self._is_over.clear()
        with self._lock:
            self._fill()
        if not self._is_over.wait(self._limit_s):
            text = f"{self._running} threads run since {self._now - START} ms; {self._limit_s} s have passed"
            raise TimeoutError(text) from next(iter(self.failures), None)
        if self.failures:
            raise self.failures[0]

    def loop(self) -> SimulatedLoop:
        """An event loop in this time."""
        return SimulatedLoop(self.now, lambda ms: self.sleep(ms / 1000), _All())

    def _leave(self) -> None:
        self._running -= 1
        self._fill()

    def _fill(self) -> None:
        """Lets ready threads run. If none runs or is ready, the time moves to the next wake-up."""
        if not self._running and not self._ready and self._asleep:
            self._now = max(self._now, self._asleep[0][0])
            while self._asleep and self._asleep[0][0] <= self._now:
                self._ready.append(heapq.heappop(self._asleep)[2])
        while self._ready and self._running < self._width:
            self._running += 1
            self._ready.popleft().release()
        if not self._running:
            self._is_over.set()


class _All(frozenset[Thread]):
    """Every thread: for the loop none is foreign, so it waits for none."""

    def __contains__(self, thread: object) -> bool:
        return True
