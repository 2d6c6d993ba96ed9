"""What sees a run act: the test harness, which plays a run anew after each act. A deployment has no observer."""

from __future__ import annotations

from contextlib import nullcontext
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextlib import AbstractContextManager

    from a2a_serverless.domain.step_results import StepResult
    from a2a_serverless.domain.steps import Codec
    from a2a_serverless.protocol.v1 import Artifact, Message


class ActKind(StrEnum):
    """The kind of an act that has a result."""

    STEP = "step"
    CALL = "call"
    QUESTION = "question"
    SLEEP = "sleep"
    EVENT = "event"
    CARD = "card"
    VALUE = "value"


class Act(NamedTuple):
    """An act to which the code comes. ``is_new`` is whether no earlier run has begun it.

    ``arguments`` is the digest of what a step or a call gets, ``codec`` reads a step's stored result, ``question`` is
    the message of a question. ``is_open`` is whether a question, a sleep or a wait for an event has not ended.
    """

    kind: ActKind
    path: str
    is_new: bool
    arguments: str = ""
    codec: Codec[Any] | None = None
    question: Message | None = None
    is_open: bool = False


class ObservedExecution(Protocol):
    """What an observer sees of the agent's function in a run."""

    @property
    def is_at_rest(self) -> bool:
        """Whether no step, no call and no other unit of a framework is at work, and nothing ends the run."""

    @property
    def sent_ids(self) -> set[str]:
        """The ids of the messages in the log, and of those that were sent in this run."""

    @property
    def results(self) -> Mapping[str, StepResult]:
        """The stored results, by name."""

    @property
    def has_units(self) -> bool:
        """Whether a framework executes units of its own, with checkpoints of its own."""

    def missed_acts(self) -> list[str]:
        """The names of acts that earlier runs have stored, and to which this run has not come."""

    def unread_artifacts(self) -> list[str]:
        """The names of artifacts of which earlier runs emitted chunks that this run has not come to."""


class RunObserver:
    """Sees one run of a task; this class does nothing. Messages, chunks and arguments are those outside of steps.

    ``before_write`` and ``note_act`` may raise ProcessInterrupted: then the run ends there, as if its process died.
    """

    def begin(self, execution: ObservedExecution) -> None:
        """The agent's function begins."""

    def before_write(self) -> None:
        """The run is about to write."""

    def note_act(self, act: str) -> None:
        """An act is stored. Its text is the same in each run."""

    def suspend_task(self) -> None:
        """The task waits, and the run ends. May raise as ``note_act``."""

    def end_task(self) -> None:
        """The agent's function has returned, and the task is about to be completed. May raise as ``note_act``."""

    def stand_in(self, act: Act) -> Awaitable[Any] | None:
        """Gives the act's result in its place; None lets it happen."""

    def digest_arguments(self, path: str, args: tuple[object, ...], kwargs: Mapping[str, Any]) -> str:
        """The digest that stands for that of a step's arguments; "" for their own."""
        del path, args, kwargs
        return ""

    def optional(self) -> AbstractContextManager[None]:
        """While it is entered, a later run need not come to the acts of the calling code."""
        return nullcontext()

    def note_arguments(self, path: str, args: tuple[object, ...], kwargs: Mapping[str, Any]) -> None:
        """The code comes to a step."""

    def note_error(self, name: str, error: BaseException) -> None:
        """A step has raised an error, which is stored under this name."""

    def find_error(self, name: str) -> BaseException | None:
        """The error that was noted under this name in an earlier run, with its traceback."""

    def note_message(self, kind: str, message_id: str, content: object) -> None:
        """The code reports progress, or asks."""

    def note_chunk(self, path: str, artifact_id: str, make: Callable[[], Artifact]) -> None:
        """The code emits a chunk in the scope of this path. The log may hold it already."""
