"""The timeline of a task: what ran and what it waited for, from its head and its records, without contents.

The periods of the head account for the whole life of the task (``domain/periods.py``). Steps, calls and waits lie in
them: each has the times of its own records. What clients saw, the states, is apart from that.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_serverless.domain.periods import QUEUED, RUN, Periods, RunEnd
from a2a_serverless.domain.record_names import FAILED, OVER, RAISED, UNFINISHED, act_path, call_of
from a2a_serverless.domain.states import INTERRUPTED
from a2a_serverless.domain.waits import REPEATED, SHOWN_WHEN_OVER, WaitKind, load_waits, wait_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from a2a_serverless.domain.events import Event, StatusEvent
    from a2a_serverless.domain.head import CurrentHead, Head
    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.domain.periods import EarlierRuns, Period
    from a2a_serverless.domain.push_configs import WebhookStatus
    from a2a_serverless.domain.record_names import CallName
    from a2a_serverless.domain.waits import OpenWait
    from a2a_serverless.protocol.v1 import TaskState

INTERNAL: Final = "@"


@dataclass(frozen=True, slots=True)
class StepTime:
    """The times (ms) at which a step, or a record like a step's, began and was stored; ``began_at`` is 0 if unknown.

    ``error`` is the class of the exception that ended it, or "".
    """

    name: str
    began_at: int
    ended_at: int
    error: str = ""


class SpanKind(StrEnum):
    """The kind of a span of a task's time: a period of its life, a part of a run, or a wait (``WaitKind``)."""

    EARLIER_RUNS = "earlier-runs"
    QUEUED = "queued"
    RUN = "run"
    SUSPENDED = "suspended"
    STEP = "step"
    INTERRUPTED = "interrupted"
    RAISED = "raised"
    FAILED = "failed"
    CALL = "call"
    QUESTION = "question"
    SLEEP = "sleep"
    EVENT = "event"
    BUDGET = "budget"
    PAUSE = "pause"
    RETRY = "retry"


PERIODS: Final = (SpanKind.EARLIER_RUNS, SpanKind.QUEUED, SpanKind.RUN, SpanKind.SUSPENDED)
"""The kinds of spans that follow one another without a gap, and account for the task's life."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a task's time; ``ended_at`` is None if it goes on. ``name`` is the step's, call's, wait's or run's.

    An interrupted span is a step that did not end within its run. A raised span is a try of a step that ended with an
    ``error``. A failed span is a step whose ``error`` ended the task. A run that is over has a ``reason``. One that
    died has ended between ``last_write_at`` and ``ended_at``, the end of its lease.
    """

    kind: SpanKind
    name: str
    began_at: int
    ended_at: int | None = None
    error: str = ""
    reason: RunEnd | None = None
    last_write_at: int | None = None


class StateSpan(NamedTuple):
    """A time in which clients saw the task in a state; ``ended_at`` is None if it goes on."""

    state: TaskState
    began_at: int
    ended_at: int | None = None


@dataclass(frozen=True, slots=True)
class TaskTimeline:
    """A task as of ``as_of`` (ms): its first events, its spans by their beginning, its webhooks.

    ``usage`` and ``budget`` are those as of these events. ``earlier_runs`` are the sums of the runs that have no span
    of their own. ``states`` are what clients saw.
    """

    as_of: int
    current: CurrentHead
    events: list[Event]
    spans: list[Span]
    states: list[StateSpan]
    webhooks: list[WebhookStatus]
    earlier_runs: EarlierRuns | None = None
    usage: JsonObject | None = None
    budget: JsonObject | None = None


def state_spans(events: Iterable[StatusEvent], *, is_over: bool = False) -> list[StateSpan]:
    """The states that clients saw, from status events. ``is_over`` if the last one is the end of the task."""
    spans: list[StateSpan] = []
    for event in events:
        if spans and spans[-1].state is event.state:
            continue
        if spans:
            spans[-1] = spans[-1]._replace(ended_at=event.at)
        spans.append(StateSpan(event.state, event.at))
    return spans[:-1] if is_over else spans


def make_spans(head: Head, periods: Periods, times: Sequence[StepTime], written: Iterable[int], now: int) -> list[Span]:
    """The spans of a task by their beginning. ``written`` are times (ms) at which its runs have written."""
    spans = [
        *_period_spans(head, periods, [*written, *(time.ended_at for time in times if not time.name.startswith(OVER))])
    ]
    waits = [*_waits_over(times)]
    spans += [*step_spans(times), *waits, *_listed_waits(head, periods.latest, waits, now)]
    return sorted(spans, key=lambda span: span.began_at)


def _period_spans(head: Head, periods: Periods, written: Sequence[int]) -> Iterator[Span]:
    earlier, latest = periods
    if earlier:
        name = f"1-{earlier.runs}" if earlier.runs > 1 else "1"
        yield Span(SpanKind.EARLIER_RUNS, name, head.created_at, head.created_at + earlier.total_ms)
    for one in latest:
        if one.letter == RUN:
            yield Span(
                SpanKind.RUN, str(one.run), one.began_at, one.ended_at, "", one.end, _last_write_at(one, written)
            )
        elif one.began_at != one.ended_at:
            kind = SpanKind.QUEUED if one.letter == QUEUED else SpanKind.SUSPENDED
            yield Span(kind, "", one.began_at, one.ended_at)


def _last_write_at(run: Period, written: Sequence[int]) -> int | None:
    """When a run that died wrote last: that which the head knows, or a result or an event after that."""
    if run.last_write_at is None:
        return None
    return max([run.last_write_at, *(at for at in written if run.began_at < at <= (run.ended_at or 0))])


def _waits_over(times: Iterable[StepTime]) -> Iterator[Span]:
    for time in times:
        if time.name.startswith(OVER):
            kind, name = wait_of(time.name)
            yield Span(SpanKind(kind), name, time.began_at, time.ended_at)


def _listed_waits(head: Head, periods: Sequence[Period], known: Iterable[Span], now: int) -> Iterator[Span]:
    """The waits that the head lists and that have no record yet: they are open, or were over in the run at work."""
    names = {(span.kind.value, span.name) for span in known if span.kind.value not in REPEATED}
    for wait in load_waits(head.waits).waits:
        if wait.kind in SHOWN_WHEN_OVER and (wait.kind, wait.name) not in names:
            yield Span(SpanKind(wait.kind), wait.name, wait.since, _end_of_wait(head, periods, wait, now))


def _end_of_wait(head: Head, periods: Sequence[Period], wait: OpenWait, now: int) -> int | None:
    is_timed = wait.kind in {WaitKind.SLEEP, WaitKind.RETRY}
    at = head.status_at if head.is_terminal else now
    if is_timed and wait.until is not None and wait.until <= at:
        return wait.until
    if head.parked or (not head.is_terminal and (is_timed or _is_asked(head, wait))):
        return None
    ends = [one.ended_at for one in periods if one.letter not in {QUEUED, RUN} and one.ended_at is not None]
    return max([*ends, wait.since])


def _is_asked(head: Head, wait: OpenWait) -> bool:
    return wait.kind == WaitKind.QUESTION and head.state in INTERRUPTED


def step_spans(times: Iterable[StepTime]) -> list[Span]:
    """The spans of steps and of calls of other agents, by their beginning."""
    by_name = {time.name: time for time in times}
    spans = filter(None, (_step_span(time, by_name) for time in by_name.values()))
    return sorted(spans, key=lambda span: (span.began_at, span.name))


def _step_span(time: StepTime, times: dict[str, StepTime]) -> Span | None:
    if time.name.startswith(UNFINISHED):
        name = act_path(time.name)
        return Span(SpanKind.INTERRUPTED, name, time.began_at or time.ended_at, time.ended_at)
    if time.name.startswith(FAILED):
        name = act_path(time.name)
        return Span(SpanKind.FAILED, name, time.began_at or time.ended_at, time.ended_at, time.error)
    if time.name.startswith(RAISED):
        failed = times.get(FAILED + (name := act_path(time.name)))
        is_last = failed is not None and failed.began_at == time.began_at
        return None if is_last else Span(SpanKind.RAISED, name, time.began_at, time.ended_at, time.error)
    if call := call_of(time.name):
        return _call_span(time, call, times) if time.name == call.opened else None
    if time.name.startswith(INTERNAL):
        return None
    return Span(SpanKind.STEP, time.name, time.began_at or time.ended_at, time.ended_at)


def _call_span(time: StepTime, call: CallName, times: dict[str, StepTime]) -> Span:
    ending = times.get(call.done) or times.get(call.failed) or times.get(call.canceled)
    return Span(SpanKind.CALL, call.path, time.ended_at, ending.ended_at if ending else None)
