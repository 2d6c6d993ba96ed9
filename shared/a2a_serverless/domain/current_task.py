"""The task that the calling code works on."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import Agent, Answer
    from a2a_serverless.domain.task_context import TaskContext

_CURRENT_TASK: Final[ContextVar[TaskContext]] = ContextVar("current_task")


def current_task() -> TaskContext:
    """The task that the calling code works on. Raises LookupError when no agent's function is running.

    It is known in everything that the agent's function calls, in asyncio tasks that it starts, and in threads started
    by ``asyncio.to_thread`` or anyio. Methods of the task must be awaited in the event loop, not in a thread.
    """
    return _CURRENT_TASK.get()


async def work_on(agent: Agent, task: TaskContext) -> Answer:
    """Runs the agent's function. ``current_task`` returns ``task`` from now on, in the calling context."""
    _CURRENT_TASK.set(task)
    return await agent.work(task)
