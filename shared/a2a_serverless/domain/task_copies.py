"""What a retried task copies of its predecessor: all that this came to before the step from which the retry goes on.

Copied are the results of the steps and calls that do not depend on that step, with the chunks that they emitted, and
the messages until then. A result that could not be read back is copied raw: new code may read it. Of errors only those
are copied after which the agent went on to another step, and of tries only those whose step has an ending that is
copied. Not copied, so that the agent's code does it again: other errors, questions without an answer, canceled calls,
open timers and addresses for events.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from a2a_serverless.domain import record_names as names
from a2a_serverless.domain.events import ArtifactEvent, StatusEvent
from a2a_serverless.domain.record_names import FAILED, RAISED, SEPARATOR, TIMER, act_of, act_path
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
from a2a_serverless.domain.step_results import MOMENT_BITS, StoredError
from a2a_serverless.protocol.v1 import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.step_results import NamedResult, StepResult

Act: TypeAlias = "StatusEvent | ArtifactEvent | NamedResult"

_NEVER: Final = 2**62
_LEFT_OUT: Final = (FAILED, names.UNFINISHED, names.OUTSIDE, names.OVER, names.SIGNED, names.SPENT)


def endings_of(path: str) -> tuple[str, ...]:
    """The names under which an ending of the step or call of this path may be stored; that of a success is first."""
    call = names.call_name(path)
    return path, call.canceled, call.done, call.failed, names.raised_name(path, 1), f"{FAILED}{path}"


def select_acts(events: Sequence[Event], results: Mapping[str, StepResult], start: str) -> list[Act]:
    """What a retry copies of an ended task, in the order in which it was stored. It goes on from the step ``start``.

    "" is the step that failed or, if no step did, the end of the task.
    """
    cut = _Cut.of(events, results, start)
    copies = {name: result for name, result in results.items() if cut.keeps(name, result)}
    in_order = sorted(copies.items(), key=lambda named: named[1].moment)
    ends = {act_path(name): one.moment for name, one in in_order if not _is_tried_again(name, one)}
    copies = {
        name: one
        for name, one in in_order
        if not _is_tried_again(name, one) or one.moment < ends.get(act_path(name), 0)
    }
    attempts = {(act_path(name), result.attempt) for name, result in copies.items() if result.attempt}
    acts: list[tuple[int, int, Act]] = [(one.moment, 1, (name, replace(one, usage={}))) for name, one in copies.items()]
    shown: list[StatusEvent | ArtifactEvent] = [*_messages(events, cut.last), *_chunks(events, cut.last, attempts)]
    acts += [(event.n << MOMENT_BITS, 0, event) for event in shown]
    return [act for *_, act in sorted(acts, key=lambda placed: placed[:2])]


@dataclass(frozen=True, slots=True)
class _Cut:
    """The ending of the step ``path`` at ``at`` (ms), whose place in the order is ``moment``; "" is no step.

    ``is_named`` means that the caller has named it: then the steps inside it run again, too. The last step of the task
    began at ``last_began_at`` (ms).
    """

    results: Mapping[str, StepResult]
    path: str
    moment: int
    at: int
    is_named: bool
    last_began_at: int

    @classmethod
    def of(cls, events: Sequence[Event], results: Mapping[str, StepResult], start: str) -> _Cut:
        path = start or next((name.removeprefix(FAILED) for name in results if name.startswith(FAILED)), "")
        well, canceled, done, failed, _, noted = (results.get(name) for name in endings_of(path))
        raised = [one for name, one in results.items() if name.startswith(RAISED) and act_path(name) == path]
        last_error = sorted(raised, key=lambda one: one.moment)[-1:]
        if noted:  # it names the error that has ended the task, if that is stored
            last_error = [results.get(str(noted.value), noted)]
        ending = next(filter(None, (well, canceled, done, failed, *last_error)), None)
        began_at = max((one.began_at for one in results.values()), default=0)
        if ending is None:
            return cls(results, "", _NEVER, events[-1].at, is_named=False, last_began_at=began_at)
        return cls(results, path, ending.moment, ending.ended_at, is_named=bool(start), last_began_at=began_at)

    @property
    def last(self) -> int:
        """The number of the last event before it."""
        return self.moment >> MOMENT_BITS

    def keeps(self, name: str, result: StepResult) -> bool:
        """Whether this result is copied."""
        path, call = act_path(name), names.call_of(name)
        if name.startswith(_LEFT_OUT) or (self.is_named and path.startswith(f"{self.path}{SEPARATOR}")):
            return False
        if name.startswith((names.EVENT, names.GOT)):  # the address with the event that came to it
            got = self.results.get(names.GOT + path)
            return got is not None and cast("Any", got.value)["at"] <= self.at
        is_around = f"{self.path}{SEPARATOR}".startswith(f"{path}{SEPARATOR}")  # or the step itself
        if call:
            ending = call.done if call.done in self.results else call.failed
            is_ending = name in {call.opened, ending} and call.canceled not in self.results
            return is_ending and not is_around and self._is_before(ending) and self._is_over(ending)
        if name.startswith(names.RAW) and is_around and (self.is_named or path != self.path):
            return False  # the caller wants the work to be done again, or a part of it is
        if name.startswith("@"):
            return not (is_around and name.startswith(RAISED)) and self._is_before(name) and self._is_over(name)
        return not is_around and (self._is_before(name) or result.began_at < self.at)

    def _is_before(self, name: str) -> bool:
        return name in self.results and self.results[name].moment < self.moment

    def _is_over(self, name: str) -> bool:
        """Whether the agent went on after this error or timer; True for any other result.

        An error or a time limit after which no step began may have ended the task.
        """
        path, result = act_path(name), self.results[name]
        call, timer = names.call_of(name), self.results.get(TIMER + path)
        is_card_error = name.startswith((names.CARD, names.TAGS)) and isinstance(result.value, str)
        if is_card_error or name.startswith(RAISED) or (call and name == call.failed):
            return result.ended_at < self.last_began_at
        if timer is None:
            return True
        due_at = cast("int", timer.value)
        is_limit = act_of(path.rpartition(SEPARATOR)[2])[0] == "timeout"
        return due_at <= self.at and (not is_limit or due_at <= self.last_began_at)


def _is_tried_again(name: str, result: StepResult) -> bool:
    """Whether this is the error of a try after which another one was to come."""
    return name.startswith(RAISED) and StoredError.of(result).retry_at > 0


def _messages(events: Iterable[Event], last: int) -> list[StatusEvent]:
    """The statuses with messages up to event ``last``, without the open question. They leave the task working."""
    statuses, answer_n, question_id = list[StatusEvent](), 0, ""
    for event in events:
        if isinstance(event, ArtifactEvent) or not 1 < event.n <= last or event.state in TERMINAL:
            continue
        if event.state in INTERRUPTED and event.message:
            question_id = event.message.message_id
        if event.message or event.incoming:
            statuses.append(event._replace(answers=event.answers or (question_id if event.incoming else "")))
        if event.incoming:
            answer_n, question_id = event.n, ""
    past = (one for one in statuses if one.n <= answer_n or one.state not in INTERRUPTED)
    return [one._replace(state=TaskState.WORKING, usage=None) for one in past]


def _chunks(events: Iterable[Event], last: int, attempts: set[tuple[str, int]]) -> list[ArtifactEvent]:
    """The chunks of these attempts at steps, and those that code outside of steps emitted up to event ``last``."""
    chunks, artifact_ids = list[ArtifactEvent](), set[str]()
    for event in events:
        if isinstance(event, ArtifactEvent) and (
            (event.step, event.attempt) in attempts if event.attempt else event.n <= last
        ):
            chunks.append(event._replace(append=event.append and event.artifact.artifact_id in artifact_ids))
            artifact_ids.add(event.artifact.artifact_id)
    return chunks
