"""Runs several processes in world time: each in a thread, one at a time; the one with the earliest wake-up is next."""

from __future__ import annotations

import heapq
from dataclasses import replace
from itertools import count
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from a2a_serverless.engine import run as running
from a2a_serverless.services import deliver as delivering
from a2a_serverless.testing.simulated_loop import SimulatedLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.queue_messages import DeliveryMessage
    from a2a_serverless.engine.engine import RunOutcome
    from tests.world import World

T = TypeVar("T")


class Together:
    """A clock for concurrent processes: time passes when all of them sleep."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._order = count()
        self._asleep: list[tuple[int, int, Semaphore]] = []
        world.receiver.clock = self

    def now(self) -> int:
        return self.world.now

    def sleep(self, seconds: float) -> None:
        gate = self._gate(int(seconds * 1000))
        self._wake_next()
        gate.acquire()

    def run(self, *processes: Callable[[], object]) -> list[object]:
        """Runs the processes, started in this order; returns their results. Raises the first error of one of them."""
        results: dict[int, object] = {}
        failures: list[BaseException] = []

        def live(number: int, process: Callable[[], object], gate: Semaphore) -> None:
            gate.acquire()
            try:
                results[number] = process()
            except BaseException as error:  # noqa: BLE001 - raised below, in the test's thread
                failures.append(error)
            self._wake_next()

        threads = [
            Thread(target=live, args=(number, process, self._gate(0)), daemon=True)
            for number, process in enumerate(processes)
        ]
        for thread in threads:
            thread.start()
        self._wake_next()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return [results[number] for number in range(len(processes))]

    def later(self, ms: int, process: Callable[[], T]) -> Callable[[], T]:
        """Returns the process with a start delay of ``ms``."""

        def waited() -> T:
            self.sleep(ms / 1000)
            return process()

        return waited

    def notifier(self, message: DeliveryMessage, time_ms: int = 60_000) -> Callable[[], delivering.DeliveryOutcome]:
        """Returns a notifier that handles a delivery message."""
        post = replace(self.world.post, clock=self)

        def notify() -> delivering.DeliveryOutcome:
            until = self.now() + time_ms
            return delivering.deliver(post, message, lambda: until - self.now())

        return notify

    def worker(self, key: TaskKey, time_ms: int = 900_000) -> Callable[[], RunOutcome]:
        """Returns a worker that handles a work message of a task."""

        def work() -> RunOutcome:
            until = self.now() + time_ms
            return self._play(running.run(self.world.engine, key, lambda: until - self.now()))

        return work

    def _play(self, work: Coroutine[Any, Any, T]) -> T:
        loop = SimulatedLoop(self.now, lambda ms: self.sleep(ms / 1000))
        try:
            return loop.run_until_complete(work)
        finally:
            loop.close()

    def _gate(self, ms: int) -> Semaphore:
        gate = Semaphore(0)
        heapq.heappush(self._asleep, (self.now() + ms, next(self._order), gate))
        return gate

    def _wake_next(self) -> None:
        if self._asleep:
            at, _, gate = heapq.heappop(self._asleep)
            self.world.now = max(self.world.now, at)
            gate.release()
