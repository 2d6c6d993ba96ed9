"""One deployment of instances that run at the same time, in simulated time: for the world of the tests and all plans.

An instance is a process, a thread of which one runs at a time. A process runs until it waits; then the one that is due
first goes on. The test's own thread is a process, too, and the last of those that are due at one time. With a seed,
chance decides among those that are due at one time; the same seed does the same again.
"""

from __future__ import annotations

import heapq
import json
import os
from bisect import insort
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from operator import itemgetter
from queue import Queue
from random import Random
from threading import Lock, Thread, current_thread
from threading import enumerate as all_threads
from typing import TYPE_CHECKING, Any, ClassVar, Final, ParamSpec, TypeVar

from a2a_serverless.domain.errors import TaskNotFound, TooManyRequests
from a2a_serverless.domain.outcomes import Outcome
from a2a_serverless.domain.queue_messages import DeliveryMessage, WorkMessage
from a2a_serverless.engine.loop import AgentThreads, play
from a2a_serverless.engine.run import run
from a2a_serverless.ports.agents import IncomingNotification
from a2a_serverless.services.callbacks import handle_callback
from a2a_serverless.testing.deployment import InProcessDeployment
from a2a_serverless.testing.memory import VISIBILITY_S, MemoryCallbackVerifier, MemoryQueues, MemoryTable
from a2a_serverless.testing.simulated_loop import START, SimulatedLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.queue_messages import QueueMessage
    from a2a_serverless.store.items import Item

P = ParamSpec("P")
T = TypeVar("T")

NEVER: Final = 1 << 62
LOOK_S, LOOKS = 0.01, 50  # how long a thread may do neither: it waits for its event loop
MOST_IDLE: Final = 8  # threads
DELAY: ContextVar[Callable[[int], object] | None] = ContextVar("DELAY", default=None)
"""Delays the queue message whose work is under way."""
LIMIT_S: Final = 600.0  # of real time, for one test or seed, which takes seconds


class Killed(BaseException):
    """The process is dead: each of its further calls raises this again."""


class Over(BaseException):
    """The simulation has ended."""


def _closed_gate() -> Lock:
    gate = Lock()
    gate.acquire()
    return gate


@dataclass(eq=False)
class Process:
    """One instance. ``offset_ms`` is by how much its clock differs; ``is_dead`` ends it at its next call.

    ``hops`` is how many functions sent the message that it handles, one after the other. ``gate`` opens when it may go
    on, ``exit`` when it has ended.
    """

    name: str
    offset_ms: int = 0
    gate: Lock = field(default_factory=_closed_gate)
    exit: Lock | None = None
    is_busy: bool = False
    is_waiting: bool = False
    is_dead: bool = False
    is_slow: bool = False
    hops: int = 0


class _ProcessThread(Thread):
    """A thread in which one process after another lives: the start of a thread takes longer than most of them.

    A few stay for later deployments: loops look through all threads whenever they wait.
    """

    idle: ClassVar[list[_ProcessThread]] = []

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.lives: Queue[Callable[[], None]] = Queue()
        self.has_ended = False
        self.start()

    def run(self) -> None:
        while not self.has_ended:
            Context().run(self.lives.get())

    @classmethod
    def live(cls, life: Callable[[_ProcessThread], None]) -> None:
        """Lives a life, in a thread of its own. It says itself when its thread may take the next one."""
        thread = cls.idle.pop() if cls.idle else cls()
        thread.lives.put(partial(life, thread))

    def rest(self) -> None:
        """Waits for the next life, or ends if enough others wait."""
        self.has_ended = len(self.idle) >= MOST_IDLE
        if not self.has_ended:
            self.idle.append(self)


os.register_at_fork(after_in_child=_ProcessThread.idle.clear)  # a copy of the process has none of these threads


@dataclass(frozen=True)
class Service:
    """What a process does whenever it is due. ``when`` returns the time, or any later than its argument (ms)."""

    process: Process
    when: Callable[[int], int]
    work: Callable[[], object]


class Scheduler:
    """Runs processes. ``trace`` gets what happens.

    ``limit_s`` bounds the real time of a wait: a process that blocks its thread would stop all others for ever.
    """

    def __init__(
        self, seed: int | None = None, trace: Callable[[str], None] | None = None, limit_s: float = LIMIT_S
    ) -> None:
        self.random = Random(seed)  # noqa: S311 - a seed, not a secret
        self.now = START
        self.main = self.current = Process("main")
        self.services: list[Service] = []
        self.failures: list[BaseException] = []
        self._is_by_chance, self._limit_s, self._trace = seed is not None, limit_s, trace
        self._order = count()
        self._asleep: list[tuple[int, bool, int, Process]] = []
        self._threads = _Known()
        self._until = NEVER
        self._is_over = False

    def trace(self, text: str) -> None:
        """Writes a line of the trace, if somebody wants it."""
        if self._trace:
            self._trace(f"{(self.now - START) / 1000:10.3f} {self.current.name:12} {text}")

    def spawn(self, name: str, work: Callable[[], object], offset_ms: int = 0, after_ms: int = 0) -> None:
        """Adds a process that does ``work`` in ``after_ms``."""
        process = Process(name, offset_ms)
        self._start(process, work)
        self._push(process, after_ms)

    def serve(self, name: str, when: Callable[[int], int], work: Callable[[], object], offset_ms: int = 0) -> Service:
        """Adds a process that does ``work`` whenever it is idle and it is time to."""
        self.services.append(service := Service(Process(name, offset_ms), when, work))
        return service

    def sleep(self, ms: int) -> None:
        """Suspends the running process for ``ms``."""
        if self._is_over:
            raise Over
        process = self.current
        self._push(process, ms)
        self._switch(process)

    def rest(self, until: int = NEVER) -> None:
        """Suspends the test's thread until nothing is due any more up to that time, which time does not move to."""
        self._until = until
        try:
            self._switch(self.main)
        finally:
            self._until = NEVER

    def end(self) -> None:
        """Ends every process that waits: its call raises ``Over``."""
        self._is_over = True
        for _, _, _, process in self._asleep:
            self.current = process
            process.gate.release()
            if process.exit:
                process.exit.acquire(timeout=self._limit_s)

    def make_loop(self, kind: type[SimulatedLoop] = SimulatedLoop) -> SimulatedLoop:
        """An event loop of the running process, in simulated time. For a dead one no time passes."""
        process, skipped = self.current, [0]

        def pass_time(ms: int) -> None:
            if process.is_dead or self._is_over:
                skipped[0] += ms
            else:
                self.sleep(ms)

        loop = kind(lambda: self.now + skipped[0], pass_time, self._threads)
        loop.set_default_executor(_Threads(process))
        return loop

    def _start(self, process: Process, work: Callable[[], object]) -> None:
        way_out = _closed_gate()

        def live(thread: _ProcessThread) -> None:
            process.gate.acquire()
            try:
                if not self._is_over:
                    work()
            except Over:
                pass
            except BaseException as error:  # noqa: BLE001 - raised in the test's thread
                self.failures.append(error)
            process.is_busy = False
            thread.rest()
            if not self._is_over:
                self._pass_on()
            way_out.release()

        process.is_busy, process.exit = True, way_out
        _ProcessThread.live(live)

    def _pass_on(self) -> None:
        try:
            following = self._next()
        except Exception as error:  # noqa: BLE001 - raised in the test's thread
            self.failures.append(error)
            following = self._next()
        self._resume(following)

    def _push(self, process: Process, ms: int) -> None:
        row = self.now + max(0, ms), process is self.main, next(self._order), process
        heapq.heappush(self._asleep, row)

    def _switch(self, process: Process) -> None:
        process.is_waiting = True
        following = self._next()
        if following is not process:
            self._resume(following)
            self._await(process)
        process.is_waiting = False
        if self._is_over:
            raise Over
        if process is self.main and self.failures:
            raise self.failures.pop()

    def _await(self, process: Process) -> None:
        limit_s = self._limit_s if process is self.main else -1
        self._threads.waiting.add(thread := current_thread())
        try:
            if not process.gate.acquire(timeout=limit_s):
                raise TimeoutError(f"{self.current.name} runs since {self.now - START} ms; {limit_s} s have passed")
        finally:
            self._threads.waiting.discard(thread)

    def _resume(self, process: Process) -> None:
        self.current = process
        process.gate.release()

    def _next(self) -> Process:
        """The process that is due first, and the time moves there; the test's, if none is until it wants to go on."""
        if self.failures:
            self._asleep = [row for row in self._asleep if row[3] is not self.main]
            heapq.heapify(self._asleep)
            return self.main
        timed, is_main = self._asleep[0][:2] if self._asleep else (NEVER, False)
        soonest, due = self._due_services(min(timed, self._until))
        at = max(self.now, min(timed, soonest))
        if at > self._until or at == NEVER:
            return self.main
        self.now = at
        if due and (soonest < timed or (is_main and soonest <= timed)):
            service = self.random.choice(due) if self._is_by_chance else due[0]
            self._start(service.process, service.work)
            return service.process
        return heapq.heappop(self._asleep)[3]

    def _due_services(self, until: int) -> tuple[int, list[Service]]:
        soonest, due = NEVER, list[Service]()
        for service in self.services:
            if service.process.is_busy or (at := max(self.now, service.when(until))) > until:
                continue
            if at < soonest:
                soonest, due = at, []
            due += [service] if at == soonest else []
            until = min(until, at)
        return soonest, due


class _Threads(ThreadPoolExecutor):
    """Threads whose calls belong to a process: also a thread that waits for the scheduler is at work."""

    def __init__(self, process: Process) -> None:
        super().__init__()
        self._process = process

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        thread, looks = AgentThreads(), 0
        future = thread.submit(fn, *args, **kwargs)
        while not wait([future], timeout=LOOK_S).done and looks < LOOKS:
            looks = 0 if self._process.is_waiting else looks + 1
        thread.shutdown()
        return future


class _Known:
    """The threads that no event loop waits for: those of before, those of processes, and those that wait for one."""

    def __init__(self) -> None:
        self.before, self.waiting = frozenset(all_threads()), set[Thread]()

    def __contains__(self, thread: object) -> bool:
        return isinstance(thread, _ProcessThread) or thread in self.before or thread in self.waiting


@dataclass(frozen=True)
class InstanceClock:
    """The clock of whichever instance runs."""

    scheduler: Scheduler

    def now(self) -> int:
        return self.scheduler.now + self.scheduler.current.offset_ms

    def sleep(self, seconds: float) -> None:
        self.scheduler.sleep(int(seconds * 1000))


class SharedQueues(MemoryQueues):
    """Both queues, of work and of deliveries. ``rows`` are (due in ms, number, message), the soonest first."""

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__(now)
        self.rows: list[tuple[int, int, QueueMessage]] = []
        self._received: dict[int, QueueMessage] = {}
        self._clock, self._numbers = now, count()

    def enqueue(self, message: QueueMessage, delay_s: int = 0) -> None:
        super().enqueue(message, delay_s)  # it refuses a delay that SQS refuses
        super().clear()
        insort(self.rows, (self._clock() + delay_s * 1000, next(self._numbers), message), key=itemgetter(0, 1))

    @property
    def waiting(self) -> list[tuple[int, QueueMessage]]:
        return [(due, message) for due, _, message in self.rows]

    def soonest(self, kind: type[QueueMessage]) -> int:
        """When the next message of this kind is due (ms)."""
        return next((due for due, _, message in self.rows if isinstance(message, kind)), NEVER)

    def take(self, kind: type[QueueMessage]) -> tuple[int, QueueMessage] | None:
        """Takes the soonest message of this kind, with its number; None if none is due."""
        row = next((row for row in self.rows if isinstance(row[2], kind)), None)
        if row is None or row[0] > self._clock():
            return None
        self.rows.remove(row)
        self._received[row[1]] = row[2]
        return row[1:]

    def delay(self, number: int, seconds: int) -> None:
        """Lets a message that was taken come again, as SQS does; raises KeyError if it was deleted."""
        message = self._received[number]
        self.rows[:] = [row for row in self.rows if row[1] != number]
        insort(self.rows, (self._clock() + seconds * 1000, number, message), key=itemgetter(0, 1))

    def delete(self, number: int, *, fails: bool) -> None:
        """Deletes a message that was taken; if its work ``fails``, it comes again, as from SQS."""
        message = self._received.pop(number, None)
        if message is None:  # another one that got it has deleted it
            return
        if not fails:
            self.rows[:] = [row for row in self.rows if row[1] != number]
        elif all(row[1] != number for row in self.rows):
            self.enqueue(message, VISIBILITY_S)

    def pop(self, now: int | None = None) -> QueueMessage | None:
        if not self.ready(now):
            return None
        return self.rows.pop(0)[2]

    def clear(self) -> None:
        self.rows.clear()


NEWER: Final = 99  # the version of items that this release cannot read


def next_due(items: MemoryTable) -> int:
    """When the next item is due for the sweeper (ms), of those that it can read."""
    stored = (item for rows in items.partitions.values() for item in rows.values())
    return min((int(item["due_at"]["S"]) for item in stored if _is_swept(item)), default=NEVER)


def _is_swept(item: Item) -> bool:
    return "due_at" in item and item["v"]["N"] != str(NEWER) and item.get("due_shard", {"S": ""})["S"].isdigit()


class Instances(InProcessDeployment):
    """A deployment whose functions are instances of a scheduler: a relay, workers, notifiers and a sweeper.

    ``busy``: no worker takes a message. A subclass makes ``scheduler`` before it calls ``__init__``, and says when the
    sweeper is due.
    """

    scheduler: Scheduler
    queue: SharedQueues
    loop = SimulatedLoop
    workers = notifiers = sweepers = 1
    busy = False
    relayed = 0  # how much of the feed was relayed when there was nothing more to relay

    def start(self) -> None:
        """Adds the instances of the functions."""
        self._serve("relay", lambda _: self.scheduler.now if self._is_behind() else NEVER, self.relay_changes)
        for number in range(self.workers):
            self.add_consumer(f"worker-{number}", WorkMessage)
        for number in range(self.notifiers):
            self.add_consumer(f"notifier-{number}", DeliveryMessage)
        for number in range(self.sweepers):
            self._serve(
                f"sweeper-{number}", partial(self.next_sweep, number=number), partial(self.sweep_due, number=number)
            )

    def _is_behind(self) -> bool:
        return len(self.table.feed) > self.relayed

    def relay_changes(self) -> bool:
        written = len(self.table.feed)
        has_changes = super().relay_changes()
        if not has_changes:
            self.relayed = written
        return has_changes

    def add_consumer(self, name: str, kind: type[QueueMessage]) -> Service:
        """Adds an instance that handles messages of this kind, one after the other."""

        def when(_: int) -> int:
            return NEVER if self.busy and kind is WorkMessage else self.queue.soonest(kind)

        return self._serve(name, when, lambda: self.consume(kind))

    def _serve(self, name: str, when: Callable[[int], int], work: Callable[[], object]) -> Service:
        return self.scheduler.serve(name, when, work, self.offset_ms())

    def offset_ms(self) -> int:
        """By how much the clock of a new instance differs."""
        return 0

    def consume(self, kind: type[QueueMessage]) -> None:
        """Handles a message as SQS and Lambda do: one that fails comes again."""
        if taken := self.queue.take(kind):
            number, message = taken
            queues: Any = self.engine.queues

            token = DELAY.set(lambda seconds: queues.delay(number, seconds))
            self.queue.delete(number, fails=not self.survives(lambda: self.answer(message)))
            DELAY.reset(token)

    def run(self, key: TaskKey) -> object:
        return self.play(run(self.engine, key, self._time_left(self.run_ms), DELAY.get()))

    def next_sweep(self, until: int, number: int = 0) -> int:
        """When the sweeper of this number is due; after ``until`` if it is not until then."""
        raise NotImplementedError

    def sweep_due(self, number: int = 0) -> bool:
        """Sweeps, in the instance of this number."""
        raise NotImplementedError

    def elsewhere(self, ms: int) -> None:
        """Suspends the running process for ``ms`` while the deployment goes on, with one more worker."""
        spare = self.add_consumer("spare", WorkMessage)
        self.scheduler.sleep(ms)
        self.scheduler.services.remove(spare)

    def called_back(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        """Answers the webhook of a called agent as the api function does."""
        incoming = IncomingNotification({name.lower(): value for name, value in headers.items()}, body)
        try:
            challenge = handle_callback(self.service, MemoryCallbackVerifier(), url.rpartition("/")[2], incoming)
        except (TaskNotFound, TooManyRequests) as refusal:
            status = 404 if isinstance(refusal, TaskNotFound) else 429
            return Outcome(status=status, connected=True, request_sent=True)
        answer = json.dumps({"challenge": challenge} if challenge else {}).encode()
        return Outcome(status=200, connected=True, request_sent=True, body=answer)

    def play(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine as an instance does."""
        return play(work, self.make_loop())

    def make_loop(self) -> SimulatedLoop:
        """An event loop of the running process."""
        return self.scheduler.make_loop(self.loop)
