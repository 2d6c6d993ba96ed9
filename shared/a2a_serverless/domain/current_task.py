"""The task that the calling code works on, and the ids of its run for log lines."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.domain.agent import Agent, Answer
    from a2a_serverless.domain.task_context import TaskContext

_CURRENT_TASK: Final[ContextVar[TaskContext]] = ContextVar("current_task")
_RUN_FIELDS: Final[ContextVar[Mapping[str, str | int] | None]] = ContextVar("run_fields", default=None)
RAISED: Final = "raised"
"""The attribute of a log record that has what an agent has raised, as ``Raised``."""
CURRENT_STEP: Final[ContextVar[str]] = ContextVar("current_step", default="")
"""The path of the step that the calling code belongs to; "" outside of steps."""


class Raised:
    """What an agent has raised. A log that prints all attributes of its records shows none of its text."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def raised_of(record: object) -> BaseException | None:
    """What an agent has raised, by a log record; only a log for its author shows it."""
    raised = getattr(record, RAISED, None)
    return raised.error if isinstance(raised, Raised) else None


def note_run(agent: str, task: str, context: str, run: int) -> None:
    """Gives these ids to ``run_fields``, in the calling context and those that it starts. ``run`` is the fence."""
    _RUN_FIELDS.set({"agent": agent, "task": task, "context": context, "run": run})


def run_fields() -> dict[str, str | int]:
    """What each log line of the calling code carries: agent, task, context, run and step; nothing outside of runs."""
    fields = _RUN_FIELDS.get()
    if fields is None:
        return {}
    step = CURRENT_STEP.get()
    return {**fields, "step": step} if step else {**fields}


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
