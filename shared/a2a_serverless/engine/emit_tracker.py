"""Compares what a run emits with what the log holds, and writes only what is new.

Outside of steps, emits are identified by number: a later run skips the numbers that the log holds. An interrupted step
runs again and may emit something else, so its emits are compared by content. Equal content is not written again. If it
differs, the artifact is rewritten in one event (``append=false``): its content before the step, then what the step has
emitted so far. Numbers only grow, and an event names the step that emitted it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.agent import StepConflict
from a2a_serverless.domain.events import ArtifactEvent, is_same_text, join_chunks, join_texts
from a2a_serverless.protocol.v1 import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.usage import Usage
    from a2a_serverless.engine.run_session import RunSession
    from a2a_serverless.protocol.v1 import Artifact

EMPTY: Final = Part(text="")
"""Replaces the content of an artifact that its step does not emit again: an artifact cannot be deleted."""


@dataclass(eq=False, slots=True)
class RunningStep:
    """A running step. ``began`` and ``ended`` come from ``EmitTracker.moment``; ``began_at`` is in ms.

    ``counts`` and ``usage`` go into the step's result. ``trace`` has the step's span, if spans are recorded,
    and ``model_at`` is when the last model call in it ended.
    """

    owner: object
    name: str
    within: RunningStep | None
    began: int
    began_at: int
    kept_before: int
    ended: int | None = None
    emitted: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=dict)
    trace: str = ""
    model_at: int = 0
    again: dict[str, RepeatedArtifact | None] = field(default_factory=dict)

    def count(self, what: str, times: int) -> None:
        """Adds to the counts of this step and of the steps that contain it."""
        self.counts[what] = self.counts.get(what, 0) + times
        if self.within:
            self.within.count(what, times)


class RepeatedArtifact:
    """What a repeated step emits of an artifact, compared with what the log holds of it up to number ``end``."""

    def __init__(self, header: Artifact, before: _Content, said: _Content, end: int) -> None:
        self.end = end
        self.header = header
        self.chunks = [*before.chunks]
        self.last = False
        self._said, self._said_last = _joined(said.parts), said.last
        self._place, self._offset = 0, 0
        self._same = all(map(self._follow, before.parts))

    @property
    def is_complete(self) -> bool:
        """Whether the step has emitted exactly what the log holds."""
        return self._same and self._place == len(self._said)

    def matches(self, artifact: Artifact, *, append: bool, last: bool) -> bool:
        """Adds the step's next chunk; returns whether the log holds the same."""
        if not append or not self.chunks:
            self.chunks, self._place, self._offset, self._same = [], 0, 0, True
        self.header, self.last = artifact, last
        self.chunks.append(artifact.parts)
        self._same = self._same and all(map(self._follow, artifact.parts))
        return self._same and (not last or (self.is_complete and self._said_last))

    def _follow(self, part: Part) -> bool:
        if part == EMPTY:
            return True
        if self._place == len(self._said):
            return False
        there = self._said[self._place]
        if part.kind != "text":
            self._place += 1
            return part == there
        if not is_same_text(part, there) or not str(there.value).startswith(str(part.value), self._offset):
            return False
        self._offset += len(str(part.value))
        if self._offset == len(str(there.value)):
            self._place, self._offset = self._place + 1, 0
        return True


@dataclass(frozen=True, slots=True)
class _Content:
    chunks: tuple[tuple[Part, ...], ...] = ()
    last: bool = False

    @property
    def parts(self) -> Iterable[Part]:
        return chain.from_iterable(self.chunks)


class EmitTracker:
    """The emits of one run, after those that the log holds. ``whole_last_chunk`` is the agent's option."""

    def __init__(self, session: RunSession, events: Iterable[Event]) -> None:
        self.whole_last_chunk = False
        self._session = session
        self._log: defaultdict[str, list[ArtifactEvent]] = defaultdict(list)
        self._by_step: defaultdict[str, dict[str, list[ArtifactEvent]]] = defaultdict(dict)
        self._numbers: Counter[str] = Counter()
        self._moment = 0
        self._emitters: dict[str, tuple[RunningStep | None, int]] = {}
        for event in events:
            if isinstance(event, ArtifactEvent):
                self._note(event)

    def moment(self) -> int:
        """A number greater than all that it returned before: it orders the starts and ends of steps."""
        self._moment += 1
        return self._moment

    def emit(
        self, step: RunningStep | None, artifact_id: str, make: Callable[[], Artifact], *, append: bool, last: bool
    ) -> bool:
        """Emits the artifact that ``make`` returns. False, without a write, if the log holds it already."""
        self._claim(artifact_id, step)
        if step:
            step.emitted = True
            return self._emit_in(step, make(), append=append, last=last)
        if self._numbers[artifact_id] < self._highest(artifact_id):
            self._numbers[artifact_id] += 1
            return False
        self._write("", make(), append=append, last=last)
        return True

    def settle(self, step: RunningStep) -> None:
        """Removes from artifacts what an earlier try of the step emitted and this finished one did not."""
        for artifact_id in self._by_step[step.name]:
            again = self._again(step, artifact_id)
            if again and not again.is_complete:
                self._write_anew(step.name, again.header, again.chunks, last=again.last)
                step.again[artifact_id] = None

    def read_back(self, name: str, fence: int) -> None:
        """Counts the emits of a stored step as done. ``fence`` is that of the run that stored it."""
        for artifact_id, own in self._by_step[name].items():
            late = own[-1].fence > fence
            gone = own[0].emits[0] <= self._numbers[artifact_id]
            if late or gone:
                self._move_stored(name, artifact_id, own, fence)
            else:
                self._numbers[artifact_id] = own[-1].emits[1]

    def _move_stored(self, name: str, artifact_id: str, own: Sequence[ArtifactEvent], fence: int) -> None:
        """Rewrites an artifact so that a stored step's content is in its right place.

        This is needed when a later run emitted in the same step before this result was stored, or when the content
        before the step's was rewritten.
        """
        ours = [event.emits[1] for event in own if event.fence <= fence]
        before = self._content(artifact_id, own[0].emits[0] - 1).chunks
        said = self._content(artifact_id, ours[-1]) if ours else _Content(before)
        now = self._content(artifact_id, self._numbers[artifact_id])
        appended = said.chunks[: len(before)] == before
        want = now.chunks + said.chunks[len(before) :] if appended else said.chunks
        end = max(own[-1].emits[1], self._numbers[artifact_id])
        if _joined(_Content(want).parts) == _joined(self._content(artifact_id, end).parts):
            self._numbers[artifact_id] = end
        else:
            self._write_anew(name, own[-1].artifact, want, last=said.last)

    def _emit_in(self, step: RunningStep, artifact: Artifact, *, append: bool, last: bool) -> bool:
        artifact_id = artifact.artifact_id
        again = self._again(step, artifact_id)
        if again is None:
            self._write(step.name, artifact, append=append, last=last)
            return True
        more = again.is_complete and append and again.end == self._highest(artifact_id)
        if again.matches(artifact, append=append, last=last):
            return False
        step.again[artifact_id] = None
        if more:
            self._write(step.name, artifact, append=append, last=last)
        else:
            self._write_anew(step.name, artifact, again.chunks, last=last)
        return True

    def _again(self, step: RunningStep, artifact_id: str) -> RepeatedArtifact | None:
        """The comparison with the log for this artifact; None if the log holds nothing more of it."""
        if artifact_id not in step.again:
            step.again[artifact_id] = self._emitted_before(step.name, artifact_id)
        return step.again[artifact_id]

    def _emitted_before(self, name: str, artifact_id: str) -> RepeatedArtifact | None:
        number = self._numbers[artifact_id]
        if number >= self._highest(artifact_id):
            return None
        own = self._by_step[name].get(artifact_id)
        self._numbers[artifact_id] = end = max(number, own[-1].emits[1]) if own else number
        before = self._content(artifact_id, number)
        return RepeatedArtifact(self._log[artifact_id][-1].artifact, before, self._content(artifact_id, end), end)

    def _write(self, name: str, artifact: Artifact, *, append: bool, last: bool) -> None:
        artifact_id = artifact.artifact_id
        self._numbers[artifact_id] += 1
        number = self._numbers[artifact_id]
        append = append and number > 1
        if append and last and self.whole_last_chunk:
            artifact, append = self._whole(artifact), False
        self._note(self._session.emit(artifact, number, append=append, last=last, step=name))

    def _whole(self, last: Artifact) -> Artifact:
        """The artifact with its last chunk, under the fields of its first chunk."""
        artifact_id = last.artifact_id
        before = self._content(artifact_id, self._highest(artifact_id)).chunks
        first = next(event.artifact for event in reversed(self._log[artifact_id]) if not event.append)
        return first.model_copy(update={"parts": join_chunks([*before, last.parts])})

    def _write_anew(self, name: str, artifact: Artifact, chunks: Iterable[Sequence[Part]], *, last: bool) -> None:
        self._numbers[artifact.artifact_id] = self._highest(artifact.artifact_id)
        parts = join_chunks(chunks) or (EMPTY,)
        self._write(name, artifact.model_copy(update={"parts": parts}), append=False, last=last)

    def _claim(self, artifact_id: str, step: RunningStep | None) -> None:
        """Raises StepConflict if the step has ended or is nested, or if an artifact has two emitters at a time."""
        if step and (step.ended or step.within):
            over = f"The step {step.name!r} is over, so it cannot emit any more."
            inside = f"The step {step.name!r} is a part of another step, so it cannot emit. Emit in the outer one."
            raise StepConflict(over if step.ended else inside)
        other, at = self._emitters.get(artifact_id, (step, 0))
        until = other.ended if other else at
        if other is not step and (until is None or (step and until > step.began)):
            both = " and ".join(f"the step {one.name!r}" if one else "the agent" for one in (other, step))
            raise StepConflict(f"One artifact is emitted at the same time by {both}. Give each an artifact of its own.")
        self._emitters[artifact_id] = step, self.moment()

    def _note(self, event: ArtifactEvent) -> None:
        artifact_id = event.artifact.artifact_id
        self._log[artifact_id].append(event)
        if event.step:
            self._by_step[event.step].setdefault(artifact_id, []).append(event)

    def _highest(self, artifact_id: str) -> int:
        events = self._log[artifact_id]
        return events[-1].emits[1] if events else 0

    def _content(self, artifact_id: str, until: int) -> _Content:
        """The artifact's content after the emit with number ``until``."""
        chunks: list[tuple[Part, ...]] = []
        last = False
        for event in takewhile(lambda event: event.emits[1] <= until, self._log[artifact_id]):
            if not event.append:
                chunks.clear()
            chunks.append(event.artifact.parts)
            last = event.last_chunk
        return _Content(tuple(chunks), last)


def _joined(parts: Iterable[Part]) -> list[Part]:
    """The parts with adjacent texts joined, because a repeated step may split its chunks differently."""
    runs: list[list[Part]] = []
    for part in parts:
        if part == EMPTY:
            continue
        if runs and is_same_text(part, runs[-1][0]):
            runs[-1].append(part)
        else:
            runs.append([part])
    return [run[0] if len(run) == 1 else join_texts(run) for run in runs]
