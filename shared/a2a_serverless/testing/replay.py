"""Plays a task anew after each act that a run stores, as if the process died there: the next run goes on from the log.

So an agent's ordinary test shows what a kill, a question or a time limit does at any place. A run is ended only where
no step is at work: a step that is interrupted runs again, and its effects happen twice.

What a later run does not come to, or does otherwise, fails the test (``ReplayDiffers``): each run starts the function
from its beginning, and only what steps return is the same in each.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from reprlib import Repr
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from a2a_serverless.engine.loop import AgentTask
from a2a_serverless.engine.observer import RunObserver
from a2a_serverless.engine.signals import ProcessInterrupted
from a2a_serverless.protocol.v1 import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from a2a_serverless.engine.observer import ObservedExecution
    from a2a_serverless.protocol.v1 import Artifact
    from a2a_serverless.testing.simulated_loop import SimulatedLoop

MOST: Final = 50
"""So many acts of a task are replayed each; then every second act, after twice as many every fourth, and so on."""
MISSED_LIMIT: Final = 5
"""So many runs in a row may end before they come to a stored act: of parallel branches they end at the first act."""
SENT: Final = {"progress": "report the progress", "ask": "ask"}
LISTED: Final = 5
REASONS: Final = (
    "Each run starts the function from its beginning, and code outside of steps must do the same in each: the usual"
    " reasons are clocks, random numbers, the order of a set, a loop over something that has changed, and an object"
    " that a step has changed. Put them into steps"
)

_IS_OPTIONAL: Final[ContextVar[bool]] = ContextVar("is_optional", default=False)
"""Whether the acts of the calling code are optional. Code beside it has acts that are not."""

_repr = Repr()
_repr.maxstring = _repr.maxother = 80
_shorten = _repr.repr


class RunEnded(BaseException):
    """The run has stored an act, and ends there."""


class ReplayDiffers(AssertionError):
    """A run did something else than an earlier run, up to the place to which the log had come."""


@dataclass
class Replay:
    """The runs of one task. ``acts`` are those after which a run was ended. ``difference`` is what fails the test.

    ``errors`` are those of steps, by the names under which they are stored.
    """

    task: str
    acts: list[str] = field(default_factory=list)
    difference: ReplayDiffers | None = None
    run_count: int = 0
    stored_count: int = 0
    is_comparable: bool = True
    errors: dict[str, BaseException] = field(default_factory=dict)
    _optional: set[str] = field(default_factory=set)
    _stored: set[str] = field(default_factory=set)
    _chunks: dict[tuple[str, str, int], Artifact] = field(default_factory=dict)
    _sent: dict[str, tuple[str, object, int]] = field(default_factory=dict)
    _arguments: dict[str, str] = field(default_factory=dict)
    _changed_arguments: dict[str, tuple[str, str]] = field(default_factory=dict)
    _missed: tuple[str, int] = ("", 0)

    def observe(self) -> RunObserver:
        """The observer of the next run."""
        self.run_count += 1
        return _RunEnder(self)

    def note_optional(self, act: str) -> None:
        """Notes the name of an act, or the id of a message, that a later run need not come to."""
        self._optional.add(act)

    def forget(self) -> None:
        """New code may do otherwise: from now on nothing is compared."""
        self.is_comparable = False

    def note_arguments(self, path: str, text: str) -> None:
        """Compares a step's arguments, as text, with those of the first run that came to it."""
        before = self._arguments.setdefault(path, text)
        if before != text:
            self._changed_arguments[path] = before, text

    def describe_arguments(self, error: str) -> str:
        """The arguments of the step that this text of a StepConflict names, then and now; "" if they are equal."""
        for path, (before, now) in self._changed_arguments.items():
            if repr(path) in error:
                return f"An earlier run called the step {path!r} with {before}, this run with {now}. {REASONS}.\n"
        return ""

    def note_sent(self, kind: str, message_id: str, content: object) -> None:
        """Notes a message to the client."""
        self._sent.setdefault(message_id, (kind, content, self.run_count))

    def first_chunk(self, path: str, artifact: Artifact, number: int) -> Artifact:
        """The chunk that the first run emitted at this place."""
        return self._chunks.setdefault((path, artifact.artifact_id, number), artifact)

    def find_missed(self, execution: ObservedExecution, sent: set[str]) -> str:
        """What is stored and this run did not come to, in words; "" if there is nothing."""
        if not self.is_comparable or execution.has_units:
            return ""
        for name in execution.missed_acts():
            if name not in self._optional:
                return f"did not come to {name!r}, which an earlier run has stored"
        for message_id, (kind, content, number) in self._sent.items():
            is_old = number < self.run_count and message_id in execution.sent_ids
            if is_old and message_id not in sent and message_id not in self._optional:
                return f"did not {SENT[kind]} {_shorten(content)}, as an earlier run did"
        for artifact in execution.unread_artifacts():
            if artifact not in self._optional:
                return f"did not emit a chunk of {artifact!r}, which an earlier run has emitted"
        return ""

    def count_missed(self, what: str) -> bool:
        """Whether so many runs in a row have missed the same that it is a difference."""
        self._missed = what, self._missed[1] + 1 if what and what == self._missed[0] else 0
        return self._missed[1] == MISSED_LIMIT

    def ends_after(self, act: str) -> bool:
        """Whether the run ends after this act, which is stored now."""
        if act in self._stored:
            return False
        self._stored.add(act)
        self.stored_count += 1
        stride = 1 << (self.stored_count // MOST).bit_length() if self.stored_count >= MOST else 1
        if self.stored_count % stride:
            return False
        self.acts.append(act)
        return True

    def differ(self, what: str) -> ReplayDiffers:
        """The difference, which is the first of this task."""
        acts = ", ".join(self.acts[-LISTED:])
        self.difference = self.difference or ReplayDiffers(
            f"Run {self.run_count} of the task {self.task} {what}. {REASONS} (docs/replay.md). The harness"
            f" ended a run after each of these acts: {acts}. AgentTestHarness(..., replay=False) plays the task in one"
            " run."
        )
        return self.difference

    def report(self) -> None:
        """Tells on stderr, which pytest shows if the test fails, that the task was replayed."""
        sys.stderr.write(
            f"The task {self.task} was played in {self.run_count} runs, a new one after each of {len(self.acts)} stored"
            " acts. AgentTestHarness(..., replay=False) plays it in one run.\n"
        )


def _content_of(artifact: Artifact) -> object:
    return text_of(artifact.parts) or [part.value for part in artifact.parts]


class _RunEnder(RunObserver):
    """Ends a run after its next act, and compares what it does with what earlier runs did."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._execution: ObservedExecution | None = None
        self._is_over = False
        self._sent: set[str] = set()
        self._emits: Counter[tuple[str, str]] = Counter()

    def begin(self, execution: ObservedExecution) -> None:
        self._execution, self._loop = execution, cast("SimulatedLoop", asyncio.get_running_loop())

    def before_write(self) -> None:
        if self._is_over:
            self._end()

    def note_act(self, act: str) -> None:
        execution, replay = self._execution, self._replay
        if _IS_OPTIONAL.get():
            replay.note_optional(act)
        if execution is not None and act.startswith("value "):
            # Each run may write the value anew, in another version: it would end there, and never go on.
            act = f"{act.rpartition(' ')[0]} after {len(execution.results)} results"
        # A thread cannot be killed: it would go on in the next run.
        is_at_rest = execution is not None and execution.is_at_rest and not self._loop.thread_work
        if not (is_at_rest and replay.ends_after(act)):
            return
        self._count_missed()
        self._end()

    @contextmanager
    def optional(self) -> Iterator[None]:
        token = _IS_OPTIONAL.set(True)
        try:
            yield
        finally:
            _IS_OPTIONAL.reset(token)

    def note_arguments(self, path: str, args: tuple[object, ...], kwargs: Mapping[str, Any]) -> None:
        named = [f"{name}={_shorten(value)}" for name, value in kwargs.items()]
        self._replay.note_arguments(path, f"({', '.join([*map(_shorten, args), *named])})")

    def note_error(self, name: str, error: BaseException) -> None:
        self._replay.errors[name] = error

    def find_error(self, name: str) -> BaseException | None:
        return self._replay.errors.get(name)

    def note_message(self, kind: str, message_id: str, content: object) -> None:
        self._sent.add(message_id)
        if _IS_OPTIONAL.get():
            self._replay.note_optional(message_id)
        self._replay.note_sent(kind, message_id, content)

    def note_chunk(self, path: str, artifact_id: str, make: Callable[[], Artifact]) -> None:
        artifact, self._emits[path, artifact_id] = make(), self._emits[path, artifact_id] + 1
        before = self._replay.first_chunk(path, artifact, self._emits[path, artifact_id])
        if before.parts != artifact.parts and self._replay.is_comparable and not self._has_units:
            now, then = _shorten(_content_of(artifact)), _shorten(_content_of(before))
            self._replay.differ(f"emitted {now} to {artifact.name!r} where an earlier run emitted {then}")
            self._end()

    def suspend_task(self) -> None:
        if self._count_missed():
            self._end()

    def end_task(self) -> None:
        """The function has returned, and the task ends: everything that is stored must have been come to."""
        if missed := self._find_missed():
            self._replay.differ(missed)
            self._end()

    @property
    def _has_units(self) -> bool:
        return self._execution is not None and self._execution.has_units

    def _count_missed(self) -> bool:
        """Whether so many runs in a row have missed the same act that it is a difference."""
        is_difference = self._replay.count_missed(missed := self._find_missed())
        if is_difference:
            self._replay.differ(missed)
        return is_difference

    def _find_missed(self) -> str:
        if self._execution is None or self._replay.run_count == 1:
            return ""
        return self._replay.find_missed(self._execution, self._sent)

    def _end(self) -> NoReturn:
        self._is_over = True
        for task in asyncio.all_tasks(self._loop) - {asyncio.current_task(self._loop)}:
            if isinstance(task, AgentTask):  # a process that dies does no more of the agent's other work
                task.cancel()
        raise ProcessInterrupted(RunEnded())
