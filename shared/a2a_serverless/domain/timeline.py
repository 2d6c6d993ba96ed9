"""The timeline of a task: spans of its states, steps and calls, made from its log, without contents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.record_names import FAILED, RAISED, UNFINISHED, act_path, call_of
from a2a_serverless.protocol.v1 import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_serverless.domain.events import Event, StatusEvent
    from a2a_serverless.domain.head import CurrentHead
    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.domain.push_configs import WebhookStatus
    from a2a_serverless.domain.record_names import CallName

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
    """The kind of a span of a task's time."""

    QUEUED = "queued"
    WORKING = "working"
    INPUT = "input-required"
    AUTH = "auth-required"
    STEP = "step"
    INTERRUPTED = "interrupted"
    RAISED = "raised"
    FAILED = "failed"
    CALL = "call"


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a task's time; ``ended_at`` is None if it goes on. ``name`` is the step's, the call's or the run's.

    An interrupted span is a step that did not end within its run. A raised span is a try of a step that ended with an
    ``error``. A failed span is a step whose ``error`` ended the task.
    """

    kind: SpanKind
    name: str
    began_at: int
    ended_at: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class TaskTimeline:
    """A task's first events, its spans by their beginning, its webhooks, and usage and budget as of these events."""

    current: CurrentHead
    events: list[Event]
    spans: list[Span]
    webhooks: list[WebhookStatus]
    usage: JsonObject | None = None
    budget: JsonObject | None = None


_WAITS: Final = {TaskState.INPUT_REQUIRED: SpanKind.INPUT, TaskState.AUTH_REQUIRED: SpanKind.AUTH}


def state_spans(events: Iterable[StatusEvent]) -> list[Span]:
    """The spans of the task's states, from its status events: in the queue, in a run, waiting for the client."""
    spans: list[Span] = []
    for event in events:
        last = spans[-1] if spans else None
        after = _span_of(event, last)
        if last and after and (last.kind, last.name) == (after.kind, after.name):
            continue
        if last:
            spans[-1] = replace(last, ended_at=event.at)
        if after:
            spans.append(after)
    return spans


def _span_of(event: StatusEvent, last: Span | None) -> Span | None:
    """The span that a status event begins or continues; None for a terminal status."""
    if event.state in _WAITS:
        return Span(_WAITS[event.state], "", event.at)
    if event.state is TaskState.WORKING and event.fence:
        return Span(SpanKind.WORKING, str(event.fence), event.at)
    if event.state is TaskState.WORKING and last and last.kind is SpanKind.WORKING:
        return last  # a further message while a run goes on
    return Span(SpanKind.QUEUED, "", event.at) if event.state in {TaskState.WORKING, TaskState.SUBMITTED} else None


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
