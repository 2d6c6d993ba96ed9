"""The event loop of a run: it knows when no code is ready to go on, and the timers of the agent's own code.

``play`` takes the place of ``asyncio.run``, which waits for threads, and for tasks that ignore their cancellation.
"""

from __future__ import annotations

import asyncio
import signal
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from queue import SimpleQueue
from subprocess import TimeoutExpired
from threading import Event, Semaphore, Thread, current_thread, main_thread
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar, TypeVarTuple, Unpack
from weakref import WeakSet

if TYPE_CHECKING:
    import selectors
    from collections.abc import Callable, Coroutine, Iterator
    from contextvars import Context
    from types import FrameType

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVarTuple("A")

LEAVE_S: Final = 1.0
TURNS: Final = 1000
THREADS: Final = 32

ENGINE_TASK: Final = "engine"
"""The name of the asyncio tasks that only look after a run."""
OUTSIDE_STEPS: Final[ContextVar[bool]] = ContextVar("outside_steps", default=False)
"""Whether the calling code is the agent's, outside of its steps."""


class AgentThreads(ThreadPoolExecutor):
    """Threads for the plain code of one run. A process ends without waiting for them. asyncio asks for the base class.

    ``submit`` and ``shutdown`` are called in one thread.
    """

    def __init__(self) -> None:
        super().__init__()
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], object]] | None] = SimpleQueue()
        self._free = Semaphore(0)
        self._thread_count = 0

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """See ``Executor.submit``."""
        future = Future[T]()
        self._calls.put((future, partial(fn, *args, **kwargs)))
        if not self._free.acquire(blocking=False) and self._thread_count < THREADS:
            self._thread_count += 1
            Thread(target=self._work, name=f"agent_{self._thread_count}", daemon=True).start()
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = True) -> None:  # noqa: FBT001, FBT002 - the base's
        """Drops work that no thread has begun. Each thread ends after its current call."""
        del wait, cancel_futures
        while not self._calls.empty():
            if call := self._calls.get():
                call[0].cancel()
        for _ in range(self._thread_count):
            self._calls.put(None)

    def _work(self) -> None:
        while call := self._calls.get():
            future, work = call
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:  # noqa: BLE001 - whoever awaits it gets it
                    future.set_exception(error)
            del call, future, work  # the waiting thread keeps no object of the agent alive
            self._free.release()


class AgentTask(asyncio.Task[T]):
    """A task of the agent's code outside of steps. Its hash is its number, so that a set has one order in each run."""

    number = 0

    def __hash__(self) -> int:
        return self.number


class AgentWork(Protocol):
    """What ``dev`` and the test harness see of the agent's function in a loop."""

    @property
    def task(self) -> str:
        """The id of the task."""

    @property
    def running_paths(self) -> list[str]:
        """The paths of the steps that run."""

    @property
    def is_waiting(self) -> bool:
        """Whether the code waits for something from outside."""

    @property
    def is_stopping(self) -> bool:
        """Whether the code cannot act any more."""


class RunLoop(asyncio.SelectorEventLoop):
    """An event loop that notes the timers that agents set outside of steps.

    ``ready_count`` counts the callbacks that became ready: while it stays the same, no other code has run.
    ``work`` is the agent's function in this loop, for ``dev`` and the test harness.
    """

    work: AgentWork | None = None

    def __init__(self, selector: selectors.BaseSelector | None = None) -> None:
        super().__init__(selector)
        self.ready_count = 0
        self._task_count = 0
        self._timers: list[asyncio.TimerHandle] = []
        self._connections = WeakSet[asyncio.WriteTransport]()
        self._processes = WeakSet[asyncio.SubprocessTransport]()
        self._threads = AgentThreads()
        self.set_default_executor(self._threads)

    def create_task(self, coro: Any, *, name: object = None, context: Context | None = None) -> asyncio.Task[Any]:  # noqa: ANN401 - asyncio's
        """See ``asyncio.loop.create_task``."""
        # The tasks of steps and of the engine exist in some runs only: they do not count.
        # tests/engine/test_first_run.py: test_tasks_that_the_engine_or_a_step_starts_are_not_counted
        if name == ENGINE_TASK or not OUTSIDE_STEPS.get() or self.get_task_factory():
            return super().create_task(coro, name=name, context=context)
        task: AgentTask[Any] = AgentTask.__new__(AgentTask)
        self._task_count += 1
        task.number = self._task_count  # before the constructor, which adds the task to a set
        task.__init__(coro, loop=self, name=name, context=context)  # type: ignore[misc]
        return task

    def call_soon(
        self, callback: Callable[[Unpack[A]], object], *args: *A, context: Context | None = None
    ) -> asyncio.Handle:
        """See ``asyncio.loop.call_soon``."""
        self.ready_count += 1
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[A]], object],
        *args: *A,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """See ``asyncio.loop.call_at``."""
        handle = super().call_at(when, callback, *args, context=context)
        if OUTSIDE_STEPS.get() if context is None else context.get(OUTSIDE_STEPS, False):
            self._timers = [*self._open_timers(), handle]
        return handle

    async def create_connection(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - asyncio's
        """See ``asyncio.loop.create_connection``."""
        transport, protocol = await super().create_connection(*args, **options)
        self._connections.add(transport)
        return transport, protocol

    async def subprocess_exec(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - asyncio's
        """See ``asyncio.loop.subprocess_exec``."""
        transport, protocol = await super().subprocess_exec(*args, **options)
        self._processes.add(transport)
        return transport, protocol

    async def subprocess_shell(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - asyncio's
        """See ``asyncio.loop.subprocess_shell``."""
        transport, protocol = await super().subprocess_shell(*args, **options)
        self._processes.add(transport)
        return transport, protocol

    async def rest(self) -> None:
        """Returns when no callback is ready but the caller's, or after ``TURNS`` turns of the loop."""
        for _ in range(TURNS):
            before = self.ready_count
            await asyncio.sleep(0)
            if self.ready_count == before + 1:
                return

    def agent_timers(self) -> list[float]:
        """The due times of the timers that agents have set outside of steps, by the loop's clock."""
        self._timers = self._open_timers()
        return [timer.when() for timer in self._timers]

    def leave(self) -> None:
        """Closes the loop. Tasks have ``LEAVE_S`` to end after their cancellation; threads go on by themselves.

        Connections that are open are closed, so that a client that keeps them makes new ones in the next loop.
        Processes that were started in the loop are killed: nothing could read their output any more.
        """
        tasks = asyncio.all_tasks(self)
        for task in tasks:
            task.cancel()
        tasks.add(self.create_task(self.shutdown_asyncgens()))
        self.run_until_complete(asyncio.wait(tasks, timeout=LEAVE_S))
        for connection in self._connections:
            connection.abort()
        for process in self._processes:
            process.close()
            with suppress(TimeoutExpired):
                process.get_extra_info("subprocess").wait(LEAVE_S)
        self.run_until_complete(asyncio.sleep(0))  # the loop closes them in its next turn
        self._threads.shutdown()
        self.set_exception_handler(lambda *_: None)  # a task that ignored its cancellation is dropped
        self.close()

    def _open_timers(self) -> list[asyncio.TimerHandle]:
        return [timer for timer in self._timers if not timer.cancelled() and timer.when() > self.time()]


def create_engine_task(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Starts a task that is not the agent's."""
    return asyncio.get_running_loop().create_task(work, name=ENGINE_TASK)  # asyncio.create_task sets the name later


@contextmanager
def _note_interrupt() -> Iterator[Event]:
    """Yields an event that is set when the process is interrupted (SIGINT), which only its main thread learns."""
    interrupted, before = Event(), signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not callable(before):
        yield interrupted
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupted.set()
        before(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def play(work: Coroutine[Any, Any, T], loop: RunLoop | None = None) -> T:
    """Runs a coroutine to its end and returns its result.

    SystemExit and KeyboardInterrupt that are raised in another task do not end the loop. An interrupt of the process
    does.
    """
    loop = loop or RunLoop()
    main = loop.create_task(work)
    try:
        with _note_interrupt() as interrupted:
            while True:
                try:
                    result: T = loop.run_until_complete(main)
                except (SystemExit, KeyboardInterrupt):
                    if main.done() or interrupted.is_set():
                        raise
                else:
                    return result
    finally:
        loop.leave()
