"""The event loop of a run: it knows when no code is ready to go on, and which timers the agent's own code has set.

``play`` takes the place of ``asyncio.run``, which waits for threads, and for tasks that ignore their cancellation.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeVar, TypeVarTuple, Unpack

if TYPE_CHECKING:
    import selectors
    from collections.abc import Callable, Coroutine
    from contextvars import Context

T = TypeVar("T")
A = TypeVarTuple("A")

LEAVE_S: Final = 1.0
TURNS: Final = 1000

OUTSIDE_STEPS: Final[ContextVar[bool]] = ContextVar("outside_steps", default=False)
"""Whether the calling code is the agent's, outside of its steps."""


class RunLoop(asyncio.SelectorEventLoop):
    """An event loop that notes the timers that agents set outside of steps.

    ``ready_count`` counts the callbacks that became ready: while it stays the same, no other code has run.
    """

    def __init__(self, selector: selectors.BaseSelector | None = None) -> None:
        super().__init__(selector)
        self.ready_count = 0
        self._timers: list[asyncio.TimerHandle] = []
        self._threads = ThreadPoolExecutor(thread_name_prefix="agent")
        self.set_default_executor(self._threads)

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

    async def rest(self) -> None:
        """Returns when no callback is ready but the caller's, or after ``TURNS`` turns of the loop."""
        for _ in range(TURNS):
            before = self.ready_count
            await asyncio.sleep(0)
            if self.ready_count == before + 1:
                return

    def agent_timers(self) -> list[float]:
        """When the timers are due that agents have set outside of steps, by the loop's clock."""
        self._timers = self._open_timers()
        return [timer.when() for timer in self._timers]

    def leave(self) -> None:
        """Closes the loop. Tasks have ``LEAVE_S`` to end after their cancellation; threads go on by themselves."""
        left = asyncio.all_tasks(self)
        for task in left:
            task.cancel()
        if left:
            self.run_until_complete(asyncio.wait(left, timeout=LEAVE_S))
        self.run_until_complete(self.shutdown_asyncgens())
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.set_exception_handler(lambda *_: None)  # a task that ignored its cancellation is dropped
        self.close()

    def _open_timers(self) -> list[asyncio.TimerHandle]:
        return [timer for timer in self._timers if not timer.cancelled() and timer.when() > self.time()]


def play(work: Coroutine[Any, Any, T], loop: RunLoop | None = None) -> T:
    """Runs a coroutine to its end and returns its result. ``sys.exit()`` in another task does not end the loop."""
    loop = loop or RunLoop()
    main = loop.create_task(work)
    try:
        while True:
            try:
                return loop.run_until_complete(main)
            except SystemExit:
                if main.done():
                    raise
    finally:
        loop.leave()
