"""The copies in a retried task of what its predecessor came to before the step from which it goes on.

Copied are the results of the steps and calls that ended well and do not depend on that step, with the chunks that they
emitted, and the messages until then. Not copied, so that the agent's code does it again: errors of steps and calls,
questions without an answer, and timers and addresses for events that were still open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from a2a_serverless.domain.events import INTERRUPTED, TERMINAL, ArtifactEvent, EarlierStatus
from a2a_serverless.domain.records import (
    CARD,
    EVENT,
    FAILED,
    GOT,
    MOMENT_BITS,
    OUTSIDE,
    RAISED,
    SEPARATOR,
    SIGNED,
    TAGS,
    TIMER,
    UNFINISHED,
    WAIT,
    call_name,
    call_of,
    path_of,
    raised_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.records import NamedResult, StepResult

Act: TypeAlias = "EarlierStatus | ArtifactEvent | NamedResult"

_NEVER: Final = 2**62
_NOTES: Final = (RAISED, FAILED, UNFINISHED, OUTSIDE, SIGNED)


def endings_of(path: str) -> tuple[str, ...]:
    """The names under which an ending of the step or call of this path may be stored, the last one first."""
    call = call_name(path)
    return path, call.done, call.failed, raised_name(path, 1), f"{FAILED}{path}"


def ended_paths(names: Iterable[str]) -> list[str]:
    """The paths of the steps and calls among these results that have ended, well or not."""
    return sorted({path for path in map(_ended_path, names) if path})


def select_acts(events: Sequence[Event], results: Mapping[str, StepResult], start: str) -> list[Act]:
    """What a retry copies of an ended task, in the order in which it was stored. It goes on from the step ``start``.

    "" is the step that failed or, if no step did, the end of the task.
    """
    cut = _Cut.of(events, results, start)
    kept = [(name, result) for name, result in results.items() if cut.keeps(name, result)]
    attempts = {(name, result.attempt) for name, result in kept if result.attempt}
    acts: list[tuple[int, int, Act]] = [(one.moment, 1, (name, replace(one, usage={}))) for name, one in kept]
    acts += [(n << MOMENT_BITS, 0, status) for n, status in _statuses(events, cut.last)]
    shown = set[str]()
    for event in events:
        if not isinstance(event, ArtifactEvent):
            continue
        if (event.step, event.attempt) in attempts if event.attempt else event.n <= cut.last:
            artifact_id = event.artifact.artifact_id
            acts.append((event.n << MOMENT_BITS, 0, event._replace(append=event.append and artifact_id in shown)))
            shown.add(artifact_id)
    return [act for *_, act in sorted(acts, key=lambda placed: placed[:2])]


@dataclass(frozen=True, slots=True)
class _Cut:
    """The ending of the step ``path`` at ``at`` (ms), whose place in the order is ``moment``; "" is no step.

    ``is_named`` means that the caller has named it: then the steps inside it run again, too.
    """

    results: Mapping[str, StepResult]
    path: str
    moment: int
    at: int
    is_named: bool

    @classmethod
    def of(cls, events: Sequence[Event], results: Mapping[str, StepResult], start: str) -> _Cut:
        path = start or next((name.removeprefix(FAILED) for name in results if name.startswith(FAILED)), "")
        raised = [one for name, one in results.items() if name.startswith(RAISED) and path_of(name) == path]
        found = [results[name] for name in endings_of(path)[:3] if name in results]
        found += sorted(raised, key=lambda one: -one.moment)
        ending = next(iter(found), results.get(f"{FAILED}{path}"))
        if ending is None:
            return cls(results, "", _NEVER, events[-1].at, is_named=False)
        return cls(results, path, ending.moment, ending.ended_at, is_named=bool(start))

    @property
    def last(self) -> int:
        """The number of the last event before it."""
        return self.moment >> MOMENT_BITS

    def keeps(self, name: str, result: StepResult) -> bool:
        """Whether this result is copied."""
        if name.startswith(_NOTES) or (self.is_named and _place(name).startswith(f"{self.path}{SEPARATOR}")):
            return False
        if name.startswith((EVENT, GOT)):
            return self._keeps_event(name.partition("/")[2])
        if call := call_of(name):
            return name in {call.opened, call.done} and call.done in self.results and self._is_before(call.done)
        if name.startswith((TIMER, WAIT)):
            return self._is_before(name) and self._is_over(name.partition("/")[2])
        if name.startswith("@"):
            is_error = name.startswith((CARD, TAGS)) and isinstance(result.value, str)
            return self._is_before(name) and not is_error
        is_around = f"{self.path}{SEPARATOR}".startswith(f"{name}{SEPARATOR}")  # or the step itself
        return not is_around and (self._is_before(name) or result.began_at < self.at)

    def _is_before(self, name: str) -> bool:
        return self.results[name].moment < self.moment

    def _keeps_event(self, path: str) -> bool:
        """An address is kept with the event that came to it; another one is of the task that has ended."""
        names = EVENT + path, GOT + path
        return all(name in self.results for name in names) and self._is_before(names[0])

    def _is_over(self, path: str) -> bool:
        """Whether the timer of this path is over, if there is one, and is not the pause before the next try of a step.

        A time limit is over if a step began after it: else it may have ended the task.
        """
        timer = self.results.get(TIMER + path)
        if timer is None:
            return True
        due_at = cast("int", timer.value)
        is_pause = raised_name(path.rpartition("/")[0], 1) in self.results
        is_limit = path.rpartition(SEPARATOR)[2].startswith("timeout:")
        went_on = not is_limit or any(one.began_at >= due_at for one in self.results.values())
        return due_at <= self.at and went_on and not is_pause


def _ended_path(name: str) -> str:
    """The path of the step or call whose ending has this name, or ""."""
    if name.startswith(FAILED):
        return name.removeprefix(FAILED)
    if call := call_of(name):
        return call.path if name in {call.done, call.failed} else ""
    return path_of(name) if name.startswith(RAISED) or not name.startswith("@") else ""


def _place(name: str) -> str:
    """The path in a result's name."""
    call = call_of(name)
    return call.path if call else name.partition("/")[2] if name.startswith("@") else name


def _statuses(events: Iterable[Event], last: int) -> Iterator[tuple[int, EarlierStatus]]:
    """The statuses with messages up to event ``last``, each with its event's number, without an open question."""
    found = list[tuple[int, EarlierStatus]]()
    for event in events:
        if isinstance(event, ArtifactEvent) or event.n > last or event.state in TERMINAL:
            continue
        found += [(event.n, one) for one in event.earlier]
        if event.n > 1 and (event.message or event.incoming):
            own: Any = (event.at, event.state, event.message, event.incoming, event.joined)
            found.append((event.n, EarlierStatus(*own)))
    answered = max((at for at, (_, one) in enumerate(found) if one.incoming), default=-1)
    return (pair for at, pair in enumerate(found) if at <= answered or pair[1].state not in INTERRUPTED)
