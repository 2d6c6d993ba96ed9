"""The task for adapters of agent frameworks: ``TaskContext``, and the methods that a framework's own loop needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from a2a_serverless.domain.record_names import fit_name
from a2a_serverless.domain.task_context import TaskContext
from a2a_serverless.engine.signals import StepAlreadyStored

__all__ = ["FrameworkTask", "StepAlreadyStored", "fit_name", "framework_task"]

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from a2a_serverless.domain.model import Json


class FrameworkTask(TaskContext, Protocol):
    """A task whose steps a framework's loop executes."""

    @property
    def current_step(self) -> str | None:
        """The name of the step that the calling code belongs to, or None."""

    def read_steps(self, prefix: str) -> dict[str, Json]:
        """The stored results of the steps whose names begin with ``prefix``, by name, as JSON values.

        It is for a framework that continues from a checkpoint: it does not execute these steps in this run.
        """

    def make_id(self, act: str) -> str:
        """An id for an act, by its scope and its number among equal acts there: the same in each run of the task."""

    def optional(self) -> AbstractContextManager[None]:
        """While it is entered, acts are stored that a later run need not come to."""

    def at_work(self) -> AbstractContextManager[None]:
        """While it is entered, the run is not suspended."""

    def set_unit(self, unit: Callable[[], str]) -> None:
        """Sets the function that names the scope of the calling code where no scope is open; "" is the whole task."""

    def begin_units(self, prefix: str = "") -> None:
        """The framework executes its units whose names begin with ``prefix`` anew, from their start."""

    def root(self) -> AbstractContextManager[None]:
        """While it is entered, durable acts belong to the whole task and not to a scope."""


def framework_task(task: TaskContext) -> FrameworkTask:
    """The task for its framework. ``task`` is the agent function's argument, or ``current_task()``."""
    from a2a_serverless.engine.task_context import DurableFrameworkTask  # the api has agents, too, and runs none

    return DurableFrameworkTask.of(task)
