"""Writes the chunks that a run emits, except those that the log holds already.

A chunk belongs to the scope that emits it (``ArtifactEvent.step``). Code outside of steps runs again in each run: its
chunks have numbers within their scope, and chunks that the log holds are skipped. A step is atomic. The chunks of the
attempt whose result is stored count or, before a result is stored, the chunks of the newest attempt. An artifact that
shows chunks of another attempt is rewritten once, in one event (``append=false``), from the chunks that count. If a
step runs again after other scopes have emitted (its error could not be stored), they emit their chunks again behind its
own.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_serverless.domain.agent_errors import StepConflict
from a2a_serverless.domain.events import UNWRITTEN, ArtifactEvent
from a2a_serverless.domain.replay import join_chunks
from a2a_serverless.domain.step_results import MOMENT_BITS
from a2a_serverless.protocol.v1 import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from a2a_serverless.domain.events import Event
    from a2a_serverless.engine.run_session import RunSession
    from a2a_serverless.engine.scopes import RunningStep, Scope
    from a2a_serverless.protocol.v1 import Artifact


EMPTY: Final = Part(text="")
"""Replaces the content of an artifact without chunks that count: an artifact cannot be deleted."""
ATTEMPTS: Final = 1_000_000
"""More than the attempts at steps in a run."""


class _StoredEmits(NamedTuple):
    """A chunk that code outside of steps emitted in an earlier run; ``emits`` is the number of emits that it joins."""

    event: ArtifactEvent
    emits: int


class ArtifactWriter:
    """The chunks of one run, after those that the log holds.

    ``_ahead`` are the chunks of earlier runs that this run's code has not reached yet. ``_removed_chunks`` are those of
    them that a step's rewriting has removed from their artifacts. ``whole_last_chunk`` is the agent's option.
    """

    def __init__(self, session: RunSession, events: Iterable[Event], *, whole_last_chunk: bool) -> None:
        self._whole_last_chunk = whole_last_chunk
        self._session = session
        self._log: defaultdict[str, list[ArtifactEvent]] = defaultdict(list)
        self._attempts: defaultdict[str, dict[str, set[int]]] = defaultdict(dict)
        self._earlier: defaultdict[tuple[str, str], deque[_StoredEmits]] = defaultdict(deque)
        self._ahead: dict[int, ArtifactEvent] = {}
        self._removed_chunks: list[ArtifactEvent] = []
        self._numbers: Counter[str] = Counter()
        self._valid: dict[str, int] = {}
        self._moment = 0
        self._emitters: dict[str, tuple[RunningStep | None, int]] = {}
        for event in events:
            if isinstance(event, ArtifactEvent):
                self._note(event)
                self._ahead[event.n] = event
                self._hold(event)

    def moment(self) -> int:
        """A number greater than all earlier results: it orders the starts and ends of steps."""
        self._moment += 1
        return self._moment

    def attempt(self) -> int:
        """The id of a new attempt at a step, greater than those of earlier runs."""
        # The fence makes it greater than each attempt of the runs before, also of those that died: the newest counts.
        # tests/engine/test_emits_in_steps.py: test_an_artifact_that_is_written_anew_keeps_the_fields_of_its_first_chunk
        return self._session.fence * ATTEMPTS + self.moment()

    def emit(self, scope: Scope, artifact_id: str, make: Callable[[], Artifact], *, append: bool, last: bool) -> None:
        """Emits the artifact that ``make`` returns, unless the log holds it already."""
        self._claim(artifact_id, scope.step)
        if scope.step is None:
            self._session.observer.note_chunk(scope.path, artifact_id, make)
        if scope.step:
            self._emit_in(scope.step, make(), append=append, last=last)
        elif queue := self._earlier[scope.path, artifact_id]:
            event, emits = queue.popleft()
            if emits > 1:
                queue.appendleft(_StoredEmits(event, emits - 1))
            self._come_to([event])
        else:
            self._write(scope.path, 0, make(), append=append, last=last)

    def resume(self) -> None:
        """Lets the code go on behind all chunks that the log holds, in place of emitting them again."""
        self._earlier.clear()

    def parts(self, artifact_id: str) -> tuple[Part, ...]:
        """The parts that the artifact shows; empty if it was not emitted."""
        events = _visible_chunks(self._log[artifact_id])
        return _parts_of(events) if events else ()

    def unread_artifacts(self) -> list[str]:
        """The names of artifacts of which earlier runs emitted chunks, outside of steps, that no code came to yet.

        Without chunks that a retry has copied: they may be of other code.
        """
        copied = self._session.head.copied >> MOMENT_BITS
        events = (event for event in self._ahead.values() if not event.attempt and event.n > copied)
        return [event.artifact.name or event.artifact.artifact_id for event in events]

    def begin_units(self, prefix: str) -> None:
        """The scopes whose paths begin with ``prefix`` are executed anew, on top of the chunks that the log has now."""
        for path, artifact_id in [key for key in self._earlier if key[0].startswith(prefix)]:
            self._earlier[path, artifact_id].clear()
            for event in self._log[artifact_id]:
                if event.step == path:
                    self._hold(event)

    def settle(self, path: str, attempt: int) -> None:
        """From now on this attempt at the step counts: removes the chunks of other attempts from the artifacts."""
        self._valid[path] = attempt
        for artifact_id, attempts in self._attempts[path].items():
            log = self._log[artifact_id]
            # Only an artifact that shows chunks of another attempt is written anew: a client that has seen the right
            # content gets no second event with it.
            # tests/engine/test_emits_in_steps.py:
            # test_rule_07_a_step_that_repeats_its_chunks_replaces_the_first_in_one_event
            if attempts - {attempt} and not all(map(self._counts, _visible_chunks(log))):
                chunks = self._valid_chunks(artifact_id)
                last = chunks[-1].last_chunk if chunks else False
                self._write_anew(path, attempt, (chunks or log)[-1].artifact, chunks, last=last)
        self._come_to([event for event in self._ahead.values() if event.step == path])

    def read_back(self, path: str, attempt: int) -> None:
        """An ending of the step is stored with this attempt (0: it emitted nothing), so its chunks were settled before.

        It counts until code tries the step again, which an earlier run may have done: then a later attempt counts.
        """
        # The ending of the first try is read back in each run, but what the second try has emitted stays.
        # tests/engine/test_same_in_each_run.py:
        # test_rule_07_chunks_of_the_second_try_of_a_step_stay_in_later_runs
        if attempt and attempt == max(
            (number for numbers in self._attempts[path].values() for number in numbers), default=0
        ):
            self.settle(path, attempt)

    def _hold(self, event: ArtifactEvent) -> None:
        if not event.attempt:
            chunk = _StoredEmits(event, event.emits[1] - event.emits[0] + 1)
            self._earlier[event.step, event.artifact.artifact_id].append(chunk)

    def _emit_in(self, step: RunningStep, artifact: Artifact, *, append: bool, last: bool) -> None:
        artifact_id = artifact.artifact_id
        step.has_emitted = True
        # With its first chunk this attempt takes the place of the one that a death has interrupted.
        # tests/engine/test_chunks.py:
        # test_rule_07_an_agent_with_the_option_whose_step_is_interrupted_tells_one_whole_story
        self._valid[step.path] = step.attempt
        attempts = self._attempts[step.path].get(artifact_id, set())
        if not attempts or step.attempt in attempts:
            self._write(step.path, step.attempt, artifact, append=append, last=last)
            return
        # In the log, chunks of other scopes stand behind those of the interrupted attempt. The code has not reached
        # them yet, so they leave the artifact here, and are emitted again when the code reaches them (``_come_to``).
        # tests/engine/test_emits_in_steps.py: test_a_step_that_failed_in_an_earlier_run_and_now_says
        chunks, chunk = self._valid_chunks(artifact_id), ArtifactEvent(*UNWRITTEN, artifact)
        before = [event for event in chunks if event.n not in self._ahead]
        self._removed_chunks += [event for event in chunks if event.n in self._ahead]
        self._write_anew(step.path, step.attempt, artifact, [*before, chunk] if append else [chunk], last=last)

    def _come_to(self, events: Iterable[ArtifactEvent]) -> None:
        """The code has reached these chunks of earlier runs. Emits the displaced ones again."""
        chunks = [event for event in events if self._ahead.pop(event.n, None) and event in self._removed_chunks]
        for event in chunks:
            self._removed_chunks.remove(event)
            self._write(event.step, event.attempt, event.artifact, append=event.append, last=event.last_chunk)

    def _valid_chunks(self, artifact_id: str) -> list[ArtifactEvent]:
        """The chunks that count and that the artifact shows, if it is made of such chunks only."""
        return _visible_chunks(filter(self._counts, self._log[artifact_id]))

    def _counts(self, event: ArtifactEvent) -> bool:
        return not event.attempt or self._valid.get(event.step, event.attempt) == event.attempt

    def _write(self, path: str, attempt: int, artifact: Artifact, *, append: bool, last: bool) -> None:
        artifact_id = artifact.artifact_id
        # A first chunk begins the artifact, whatever the author says: there is nothing to append it to.
        # tests/engine/test_chunks.py: test_a_text_continues_the_one_before_it_in_one_event_and_over_events
        number, append = self._numbers[artifact_id] + 1, append and bool(self._log[artifact_id])
        if append and last and self._whole_last_chunk:
            artifact, append = self._whole(artifact), False
        self._note(self._session.emit(artifact, number, append=append, last=last, step=path, attempt=attempt))

    def _whole(self, last: Artifact) -> Artifact:
        """The artifact with its last chunk, under the fields of its first chunk."""
        chunks = [*self._valid_chunks(last.artifact_id), ArtifactEvent(*UNWRITTEN, last)]
        return chunks[0].artifact.model_copy(update={"parts": _parts_of(chunks)})

    def _write_anew(
        self, path: str, attempt: int, artifact: Artifact, chunks: list[ArtifactEvent], *, last: bool
    ) -> None:
        first = chunks[0].artifact if chunks else artifact
        whole = first.model_copy(update={"parts": _parts_of(chunks)})
        self._write(path, attempt, whole, append=False, last=last)

    def _claim(self, artifact_id: str, step: RunningStep | None) -> None:
        """Raises StepConflict if the step has ended or is nested, or if an artifact has two emitters at a time."""
        if step and (step.end_moment or step.within):
            over = f"The step {step.name!r} is over, so it cannot emit any more."
            inside = f"The step {step.name!r} is a part of another step, so it cannot emit. Emit in the outer one."
            raise StepConflict(over if step.end_moment else inside)
        other, at = self._emitters.get(artifact_id, (step, 0))
        until = other.end_moment if other else at
        if other is not step and (until is None or (step and until > step.start_moment)):
            both = " and ".join(f"the step {emitter.name!r}" if emitter else "the agent" for emitter in (other, step))
            raise StepConflict(f"One artifact is emitted at the same time by {both}. Give each an artifact of its own.")
        self._emitters[artifact_id] = step, self.moment()

    def _note(self, event: ArtifactEvent) -> None:
        artifact_id = event.artifact.artifact_id
        self._log[artifact_id].append(event)
        self._numbers[artifact_id] = max(self._numbers[artifact_id], event.emits[1])
        if event.attempt:
            self._attempts[event.step].setdefault(artifact_id, set()).add(event.attempt)


def _parts_of(chunks: Iterable[ArtifactEvent]) -> tuple[Part, ...]:
    """The parts of an artifact that is made of these chunks."""
    parts = (tuple(part for part in event.artifact.parts if part != EMPTY) for event in chunks)
    return join_chunks(filter(None, parts)) or (EMPTY,)


def _visible_chunks(events: Iterable[ArtifactEvent]) -> list[ArtifactEvent]:
    """The chunks from the last chunk on that begins the artifact anew."""
    chunks = list[ArtifactEvent]()
    for event in events:
        if not event.append:
            chunks.clear()
        chunks.append(event)
    return chunks
