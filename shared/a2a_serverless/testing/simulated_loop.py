"""An event loop with simulated time, which stands still while something real is under way."""

from __future__ import annotations

import asyncio
import selectors
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Final, NoReturn, ParamSpec, TypeVar, TypeVarTuple, Unpack, cast
from weakref import WeakSet

from a2a_serverless.engine.loop import ENGINE_TASK, AgentThreads, RunLoop
from a2a_serverless.testing.waiting import (
    WaitingCode,
    is_agent_asleep,
    open_io,
    own_line,
    running_threads,
    thread_frames,
    waiting_text,
    waits,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Container
    from concurrent.futures import Executor
    from contextvars import Context

T = TypeVar("T")
P = ParamSpec("P")
A = TypeVarTuple("A")

START: Final = 1_790_000_000_000
THREADS_S: Final = 30.0
IO_S: Final = 60.0
SLICE_S: Final = 0.05
STUCK_MS: Final = 60_000
POLL_S: Final = 0.002
BLOCKED_S: Final = 3.0
LOOK_S: Final = 0.2
LOOKS: Final = 10
"""A thread that waits at so many looks in a row is not running: it may wait for this loop."""


class Deadlock(BaseException):
    """The agent waits for something that does not come. The text says which code waits, and for what.

    No ``Exception``: the api, which runs inline agents, would answer it as an internal error.
    """


class SimulatedLoop(RunLoop):
    """An event loop with simulated time: ``now`` returns it (ms), and ``wait`` moves it forward (by ms).

    Work for ``asyncio.to_thread`` is done while this loop waits for it, because other threads have no simulated time.
    While a thread that is not in ``known`` is running, no time passes, for at most ``THREADS_S`` real seconds. A thread
    that waits for a lock or a queue, without a time limit, is not running: it may wait for this loop.

    While a connection, a pipe or a process of the agent is open, no time passes until something comes from there. If
    something of the agent sleeps beside it (``asyncio.sleep``) or ``has_plans()``, simulated time passes as real time
    does. If nothing has come for ``io_s`` real seconds, time passes beside it, or Deadlock is raised if nothing
    sleeps. With ``io_s=0`` open connections do not count.
    """

    def __init__(
        self,
        now: Callable[[], int],
        wait: Callable[[int], None],
        known: Container[threading.Thread] | None = None,
        *,
        io_s: float = IO_S,
        has_plans: Callable[[], bool] | None = None,
    ) -> None:
        self._now = now
        self._selector_of_time = _SimulatedSelector(
            wait, frozenset(threading.enumerate()) if known is None else known, io_s, has_plans
        )
        super().__init__(self._selector_of_time)
        self._selector_of_time.own = frozenset(key.fd for key in self._selector_of_time.get_map().values())
        self.set_default_executor(_AtOnce())
        self.thread_work: set[Awaitable[object]] = set()

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[A]], T], *args: *A
    ) -> asyncio.Future[T]:
        """See ``AbstractEventLoop.run_in_executor``. ``thread_work`` is what has not ended of it."""
        future = super().run_in_executor(executor, func, *args)
        self.thread_work.add(future)
        future.add_done_callback(self.thread_work.discard)
        return future

    def time(self) -> float:
        return (self._now() - START) / 1000

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[A]], object],
        *args: *A,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = super().call_at(when, callback, *args, context=context)
        task = asyncio.current_task(self)
        if task is None or task.get_name() != ENGINE_TASK:
            self._selector_of_time.agent_timers.add(handle)
        return handle

    def leave(self) -> None:
        self._selector_of_time.is_leaving = True
        super().leave()


class _SimulatedSelector(selectors.SelectSelector):
    """A selector that moves simulated time instead of waiting, once no other thread is running and no input awaited.

    ``agent_timers`` are the timers of the agent's code, ``own`` the descriptors by which threads wake the loop.
    """

    def __init__(
        self,
        wait: Callable[[int], None],
        known: Container[threading.Thread],
        io_s: float,
        has_plans: Callable[[], bool] | None,
    ) -> None:
        super().__init__()
        self._wait, self._known, self._io_s, self._has_plans = wait, known, io_s, has_plans
        self._given_up: set[tuple[int | None, int, int]] = set()
        self._quiet_s, self._was_paced, self._stuck_ms = 0.0, False, 0
        self.agent_timers = WeakSet[asyncio.TimerHandle]()
        self.own = frozenset[int]()
        self.is_leaving = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout != 0:
            ready = self._from_threads() or self._from_io(timeout)
            if not ready:
                self._pass_time(timeout)
        self._quiet_s = 0.0 if ready else self._quiet_s
        return ready

    def _pass_time(self, timeout: float | None) -> None:
        if timeout is None:
            self._raise_deadlock("Everything waits, and nothing is scheduled.")
        ms = int(timeout * 1000) + 1
        self._stuck_ms = self._stuck_ms + ms if self._is_stuck() else 0
        if self._stuck_ms > STUCK_MS:
            self._raise_deadlock(
                "The agent waits for something that nothing in this test will do: no timer, no thread, no open"
                " connection and no action of harness.at. Outside of steps an agent waits with the methods of its task;"
                " a plain function that blocks belongs into a step, which runs it in a thread."
            )
        self._wait(ms)

    def _raise_deadlock(self, why: str) -> NoReturn:
        self.is_leaving = True
        raise Deadlock(f"{why}\n{waiting_text(self._threads())}")

    def _is_stuck(self) -> bool:
        """Whether nothing but the engine's own looks will happen."""
        if self._has_plans is None or self.is_leaving or self._has_plans() or self._open_io():
            return False
        if any(not timer.cancelled() for timer in self.agent_timers):
            return False
        work = cast("RunLoop", asyncio.get_running_loop()).work
        return work is not None and not (work.is_stopping or work.is_waiting)

    def _from_threads(self) -> list[tuple[selectors.SelectorKey, int]]:
        """Waits for events from running threads; empty if none runs, or after ``THREADS_S`` seconds without one."""
        until = time.monotonic() + THREADS_S
        while others := self._threads():
            at_work = running_threads(others) - self._given_up
            ready = super().select(POLL_S)
            if ready or not at_work:
                return ready
            if time.monotonic() > until:
                self._given_up |= at_work
        return []

    def _from_io(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        """Waits for real input while any is awaited. Raises Deadlock after ``io_s`` seconds without any."""
        if not self._open_io():
            self._quiet_s = 0.0
            return []
        is_paced = timeout is not None and self._is_paced()
        if is_paced != self._was_paced:
            self._quiet_s, self._was_paced = 0.0, is_paced
        passed_s = 0.0
        while self._quiet_s < self._io_s and (not is_paced or passed_s < (timeout or 0)) and self._open_io():
            began = time.monotonic()
            ready = super().select(SLICE_S)
            elapsed_s = time.monotonic() - began
            if ready and is_paced:
                self._wait(int((passed_s + elapsed_s) * 1000))
            if ready:
                return ready
            passed_s, self._quiet_s = passed_s + elapsed_s, self._quiet_s + elapsed_s
        if self._io_s and not is_paced and self._quiet_s >= self._io_s and (sources := self._open_io()):
            self._raise_deadlock(
                f"Nothing has come for {self._io_s:g} real seconds from {' and '.join(sources)}. With"
                " AgentTestHarness(..., io_s=300) the clock stands still for longer, with io_s=0 simulated time also"
                " passes while a connection is open, so that a client's own time limit ends the wait."
            )
        return []

    def _is_paced(self) -> bool:
        """Whether something shall happen at a time, beside the input that is awaited."""
        return self.is_leaving or bool(self._has_plans and self._has_plans()) or is_agent_asleep()

    def _open_io(self) -> list[str]:
        keys, threads = [key for key in self.get_map().values() if key.fd not in self.own], self._threads()
        return open_io(keys, threads) if keys or threads else []

    def _threads(self) -> list[threading.Thread]:
        """The other threads of the agent and its libraries."""
        return [thread for thread in threading.enumerate() if self._is_foreign(thread)]

    def _is_foreign(self, thread: threading.Thread) -> bool:
        return thread not in self._known and thread is not threading.current_thread()


class _AtOnce(ThreadPoolExecutor):
    """Returns when the work is done, waits without a time limit, or has run for ``THREADS_S`` real seconds."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        thread, before = AgentThreads(), threading.enumerate()
        future = thread.submit(fn, *args, **kwargs)
        until, looks = time.monotonic() + THREADS_S, 0
        while not wait([future], timeout=POLL_S).done and looks < LOOKS and time.monotonic() < until:
            at_work = running_threads([candidate for candidate in threading.enumerate() if candidate not in before])
            looks = 0 if at_work else looks + 1
        thread.shutdown()
        return future


def play_in_thread(work: Callable[[], T], known: Container[threading.Thread]) -> T:
    """Does work that runs an event loop of its own, also while one runs here. Raises Deadlock if it blocks its loop."""
    result = Future[T]()
    thread = threading.Thread(target=_resolve, args=(result, work), daemon=True)
    thread.start()
    line, at = None, time.monotonic()
    while not wait([result], timeout=LOOK_S).done:
        line, earlier = _blocked_line(thread, known), line
        at = at if line and line == earlier else time.monotonic()
        if line and time.monotonic() - at > BLOCKED_S:
            raise Deadlock(
                "The agent blocks its event loop: it waits there for something that no other thread will do. Put a"
                f" plain function into a step, which runs it in a thread, or await what it waits for.\n  {line}"
            )
    return result.result()


def _resolve(future: Future[T], work: Callable[[], T]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised in the thread that waits for it
        future.set_exception(error)


def _blocked_line(thread: threading.Thread, known_threads: Container[threading.Thread]) -> WaitingCode | None:
    """The line at which a thread waits for a lock, in a callback of its event loop; None if any other thread runs."""
    frames = thread_frames(sys._current_frames().get(thread.ident or 0))  # noqa: SLF001 - documented
    codes = {frame.f_code for frame in frames}
    if not frames or codes & {_SimulatedSelector.select.__code__, _AtOnce.submit.__code__} or not waits(frames[-1]):
        return None
    others = [other for other in threading.enumerate() if other not in known_threads and other is not thread]
    return None if running_threads(others) or open_io([], others) else own_line(frames)
