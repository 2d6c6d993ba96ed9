"""The task for adapters of agent frameworks: ``TaskContext``, and the methods that a framework's own loop needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from a2a_serverless.domain.record_names import fit_name
from a2a_serverless.domain.task_context import TaskContext
from a2a_serverless.engine.signals import NoResult, StepAlreadyStored

__all__ = ["FrameworkTask", "NoResult", "StepAlreadyStored", "fit_name", "framework_task"]

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractContextManager

    from a2a_serverless.domain.key_value_store import KeyValueStore
    from a2a_serverless.domain.model import Json
    from a2a_serverless.domain.steps import Step

T = TypeVar("T")


class FrameworkTask(TaskContext, Protocol):
    """A task whose steps a framework's loop executes."""

    @property
    def store(self) -> KeyValueStore:
        """Values of this task, as they are now: a framework's checkpoints. A write happens again in each run."""

    @property
    def conversation(self) -> KeyValueStore:
        """Values of this conversation and owner, as those of ``store``."""

    @property
    def current_step(self) -> str | None:
        """The name of the step that the calling code belongs to, or None."""

    async def step_with_state(
        self, step: Step, work: Callable[[Any], Awaitable[T]], *, state: object, name: str, kind: object = None
    ) -> tuple[T, list[Any]]:
        """The result of a tool's step, and the keys or attributes of ``state`` that it has changed.

        ``work`` gets a copy of the state: a dataclass, a pydantic model or a dict. What it changes there is stored with
        the result, and made in ``state`` in each run, once the step has ended. ``name`` is what the tool's code calls
        the state, and ``kind`` its declared type, which a TypedDict needs. Raises StepConflict, which fails the task,
        if a change cannot be stored, or if a tool that runs at the same time makes another one there.
        """

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

    def set_unit(self, unit: Callable[[], str], has_others: Callable[[], bool] = bool) -> None:
        """Sets the function that names the scope of the calling code where no scope is open; "" is the whole task.

        ``has_others`` is whether code of other units works beside the calling code. The harness ends no run then.
        """

    def begin_units(self, prefix: str = "") -> None:
        """The framework executes its units whose names begin with ``prefix`` anew, from their start."""

    def root(self) -> AbstractContextManager[None]:
        """While it is entered, durable acts belong to the whole task and not to a scope."""


def framework_task(task: TaskContext) -> FrameworkTask:
    """The task for its framework. ``task`` is the agent function's argument, or ``current_task()``."""
    from a2a_serverless.engine.task_context import DurableFrameworkTask  # the api has agents, too, and runs none

    return DurableFrameworkTask.of(task)
