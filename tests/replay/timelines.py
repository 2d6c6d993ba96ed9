"""What is wrong with the timeline of an ended task: a second for which no bar accounts, or for which two do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless.domain.record_names import RAISED
from a2a_serverless.domain.timeline import PERIODS, Span, SpanKind
from a2a_serverless.services.timelines import read_timeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.timeline import TaskTimeline
    from tests.world import World

WORK = {SpanKind.STEP, SpanKind.RAISED, SpanKind.FAILED, SpanKind.INTERRUPTED}


def timeline_faults(world: World, key: TaskKey, agent: str) -> Iterator[str]:
    """What is wrong with the timeline of a task that has ended, after at most twenty runs."""
    timeline = read_timeline(world.table, world.table, key, agent, world.now)
    head, spans = timeline.current.head, timeline.spans
    periods = [span for span in spans if span.kind in PERIODS]
    yield from _gaps(periods, head.created_at, head.status_at)
    yield from _work_outside_of_runs(world, key, timeline)
    waits = [span for span in spans if span.kind not in {*PERIODS, *WORK}]
    for wait in waits:
        if wait.ended_at is None or not head.created_at <= wait.began_at <= wait.ended_at <= head.status_at:
            yield f"timeline: {wait} of a task from {head.created_at} to {head.status_at}"
    for one in periods:
        if one.kind is SpanKind.SUSPENDED and (left := _uncovered(one, waits)):
            yield f"timeline: nothing accounts for {left} of {one}: {waits}"


def _work_outside_of_runs(world: World, key: TaskKey, timeline: TaskTimeline) -> Iterator[str]:
    head = timeline.current.head
    runs = {span.name: span for span in timeline.spans if span.kind is SpanKind.RUN}
    if [*runs] != [str(number) for number in range(1, head.fence + 1)]:
        yield f"timeline: the runs {[*runs]}, and {head.fence} were begun"
    for event in timeline.events:
        run = runs.get(str(event.fence))
        if event.fence and (run is None or not _is_in(run, event.at, event.at)):
            yield f"timeline: the event {event.n} of run {event.fence} lies outside of {run}"
    for name, result in world.table.read_steps(key).items():
        if name.startswith(RAISED) or not name.startswith("@"):
            began_at = result.began_at or result.ended_at
            if not any(_is_in(run, began_at, result.ended_at) for run in runs.values()):
                yield f"timeline: {name} ran from {began_at} to {result.ended_at}, and no run did"


def _is_in(run: Span, began_at: int, ended_at: int) -> bool:
    return run.ended_at is not None and run.began_at <= began_at and ended_at <= run.ended_at


def _gaps(periods: Sequence[Span], began_at: int, ended_at: int) -> Iterator[str]:
    at: int | None = began_at
    for one in periods:
        if one.began_at != at:
            yield f"timeline: {one} does not begin at {at}"
        at = one.ended_at
    if at != ended_at:
        yield f"timeline: the last period ends at {at}, and the task at {ended_at}"


def _uncovered(suspended: Span, waits: Iterable[Span]) -> tuple[int, int] | None:
    """The first part of a suspension in which the task waited for nothing."""
    at = suspended.began_at
    for wait in sorted(waits, key=lambda wait: wait.began_at):
        if wait.began_at <= at:
            at = max(at, wait.ended_at or at)
    return None if at >= (suspended.ended_at or at) else (at, suspended.ended_at or at)
