"""The platform of a deployment in simulated time: its clock, the queue's consumers, the sweeper, planned actions.

Time moves only when nothing is left to do, to the next thing that is due.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from a2a_serverless.domain.queue_messages import QueueMessage, WorkMessage
from a2a_serverless.engine.loop import play
from a2a_serverless.services.sweep import sweep
from a2a_serverless.store.keys import SHARDS
from a2a_serverless.testing.deployment import LIFE, Adapters, InProcessDeployment
from a2a_serverless.testing.simulated_loop import IO_S, START, SimulatedLoop, play_in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.head import Head

T = TypeVar("T")

SETTLE_MS: Final = LIFE.max_life_ms + 3_600_000  # in which every task ends that goes on without its client


class Counter:
    """Makes ids in order, so that test runs are repeatable."""

    def __init__(self) -> None:
        self.last = 0

    def new(self) -> str:
        self.last += 1
        return f"id-{self.last:04d}"

    def secret(self) -> str:
        return f"secret-{self.new()}"


class SimulatedClock:
    """A clock with the time of a deployment; sleeping lets the deployment go on."""

    def __init__(self, deployment: SimulatedDeployment) -> None:
        self._deployment = deployment

    def now(self) -> int:
        return self._deployment.now

    def sleep(self, seconds: float) -> None:
        self._deployment.wait(int(seconds * 1000))


class SimulatedDeployment(InProcessDeployment):
    """A deployment in simulated time, with one worker.

    ``busy`` is whether an agent runs. ``loop`` makes the event loops.
    """

    now = START
    busy = False
    loop = SimulatedLoop

    def __init__(self, agents: Sequence[Agent], adapters: Adapters, *, io_s: float = IO_S, **options: Any) -> None:  # noqa: ANN401
        self.io_s = io_s
        self.plans: list[tuple[int, Callable[[], object]]] = []
        self._threads = frozenset(threading.enumerate())
        super().__init__(agents, adapters, **options)

    def wait(self, ms: int) -> None:
        """Moves the time forward by ``ms`` and does the work that is due in that time; tasks end with their life."""
        until = self.now + ms
        self._run_until(until, ends_lives=True)
        self.now = max(self.now, until)

    def _settle(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Runs until no work is left that needs no client, or until ``is_over()``.

        A task that goes on and on ends with its life; one that waits for its client or another system stays.
        """
        self._run_until(self.now + SETTLE_MS, is_over)

    def play(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in simulated time, also inside a running event loop. Raises Deadlock."""
        self._threads |= {threading.current_thread()}  # it waits here, and does not work
        return play_in_thread(partial(self._play, work), self._threads)

    def _play(self, work: Coroutine[Any, Any, T]) -> T:
        known = self._threads | {threading.current_thread()}
        loop = self.loop(lambda: self.now, self._pass, known, io_s=self.io_s, has_plans=lambda: bool(self.plans))
        busy, self.busy = self.busy, True
        try:
            return play(work, loop)
        finally:
            self.busy = busy

    def _step(self, *, ends_lives: bool) -> bool:
        """Does one due thing: a batch of the table's stream, a sweep, a message or a plan. False if nothing is due."""
        return self.relay_changes() or self._sweep(ends_lives=ends_lives) or self._handle_message() or self._do_plan()

    def _run_until(self, until: int, is_over: Callable[[], bool] = lambda: False, *, ends_lives: bool = False) -> None:
        while not is_over() and (self._step(ends_lives=ends_lives) or self._move_time(until, ends_lives=ends_lives)):
            pass

    def _move_time(self, until: int, *, ends_lives: bool) -> bool:
        """Moves the time to the next due thing; False if nothing is due before ``until``."""
        times = [at for at, _ in (*self.queue.waiting, *self.plans)]
        soonest = min(times, default=until + 1)
        soonest = min(soonest, self._next_sweep(min(soonest, until), ends_lives=ends_lives))
        is_due = self.now < soonest <= until
        self.now = soonest if is_due else self.now
        return is_due

    def _next_sweep(self, until: int, *, ends_lives: bool) -> int:
        """The next time at which an unfinished task is due; after ``until`` if there is none.

        Unless it ``ends_lives``, a task that only others can continue is not due.
        """
        due = (item.key for shard in range(SHARDS) for item in self.table.list_due(shard, until))
        heads = [snapshot.head for key in due if key and (snapshot := self.table.read_head(key))]
        times = [head.due_at or self.now for head in heads if not head.is_terminal and (ends_lives or _goes_on(head))]
        return min(times, default=until + 1)

    def _sweep(self, *, ends_lives: bool) -> bool:
        """Sweeps if it is time to; False if not, or if the sweep had nothing to do."""
        return self._next_sweep(self.now, ends_lives=ends_lives) <= self.now and sweep(self.sweeper) > 0

    def _handle_message(self) -> bool:
        message = self.queue.pop()
        if message is None:
            return False
        self.queue.finish(message, is_handled=self.survives(lambda: self.answer(message)))
        return True

    def _do_plan(self) -> bool:
        """Does one planned action that is due; a second later again if its process dies."""
        due = next((plan for plan in self.plans if plan[0] <= self.now), None)
        if due is None:
            return False
        self.plans.remove(due)
        if not self.survives(due[1]):
            self.plans.append((self.now + 1000, due[1]))
        return True

    def _pass(self, ms: int) -> None:
        """Lets time pass for an agent that waits: planned actions happen, and the queue's other consumers go on.

        They drop the messages of tasks under way. Handled after the run instead, each of them would begin one more.
        """
        self.now += ms
        self.queue.drop(self._is_under_way)
        while self._do_plan():
            pass

    def _is_under_way(self, message: QueueMessage) -> bool:
        snapshot = self.table.read_head(message.key) if isinstance(message, WorkMessage) else None
        return bool(snapshot and snapshot.head.is_leased(self.now))


def _goes_on(head: Head) -> bool:
    """Whether a task goes on without its client and other systems, if only because it has run out of time."""
    return bool(head.wake_at) or head.due_at != head.deadline
