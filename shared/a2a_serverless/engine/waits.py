"""The waits of an agent's code for moments: sleeps, time limits and reminders. They use no compute."""

from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from a2a_serverless.domain.record_names import NOW
from a2a_serverless.domain.waits import WaitKind
from a2a_serverless.engine.loop import create_engine_task

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine
    from contextlib import AbstractAsyncContextManager

    from a2a_serverless.engine.endings import Question, Wait
    from a2a_serverless.engine.execution import Execution
    from a2a_serverless.engine.scopes import Scope


class Waits:
    """The waits for moments of an execution, in the scope of the calling code. Each has a name of its own there."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution

    async def sleep(self, name: str, seconds: float) -> None:
        """See ``TaskContext.sleep``."""
        scope, timer = self._timer(WaitKind.SLEEP, "sleep", name, self._in(seconds))
        await self._execution.sleep(timer, scope)

    async def sleep_until(self, name: str, at: datetime) -> None:
        """See ``TaskContext.sleep_until``."""
        if at.tzinfo is None:
            raise ValueError("A moment needs a time zone: datetime(..., tzinfo=ZoneInfo(...)).")
        scope, timer = self._timer(WaitKind.SLEEP, "sleep", name, math.ceil(at.timestamp() * 1000))
        await self._execution.sleep(timer, scope)

    @asynccontextmanager
    async def timeout(self, name: str, seconds: float | None) -> AsyncIterator[None]:
        """As ``asyncio.timeout``, with a limit that holds over several runs; None is no limit."""
        if seconds is None:
            yield
            return
        scope, timer = self._timer(WaitKind.TIMEOUT, "timeout", name, self._in(seconds))
        async with asyncio.timeout(None) as limit:

            async def expire() -> None:
                await self._execution.endings.wait(timer, scope)
                limit.reschedule(self._execution.loop.time())

            async with _run_meanwhile(expire()):
                yield

    def remind(self, question: Question, name: str, seconds: float) -> AbstractAsyncContextManager[None]:
        """Repeats the question while it is entered, until the end of the task's life."""
        first = self._timer(WaitKind.REMINDER, "remind", name, self._in(seconds))

        async def repeat() -> None:
            scope, timer = first
            while True:
                await self._execution.endings.wait(timer, scope)
                question.remind()
                scope, timer = self._timer(WaitKind.REMINDER, "remind", name, self._in(seconds))

        return _run_meanwhile(repeat())

    def now(self, name: str) -> datetime:
        """See ``TaskContext.now``."""
        path = self._execution.open_scope().place("now", name)
        ms = cast("int", self._execution.store_once(NOW + path, self._execution.session.now()))
        return datetime.fromtimestamp(ms / 1000, UTC)

    def _in(self, seconds: float) -> int:
        """The moment (ms) in so many seconds."""
        if not (0 <= seconds < math.inf):
            raise ValueError(f"A task waits for 0 seconds or more, not for {seconds}.")
        return self._execution.session.now() + math.ceil(seconds * 1000)

    def _timer(self, kind: WaitKind, act: str, name: str, ends_at: int) -> tuple[Scope, Wait]:
        scope = self._execution.open_scope()
        return scope, self._execution.timer(kind, scope.place(act, name), ends_at)


@asynccontextmanager
async def _run_meanwhile(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Runs the work while it is entered."""
    task = create_engine_task(work)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # a signal is remembered
    try:
        yield
    finally:
        task.cancel()
