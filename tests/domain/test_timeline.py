"""What a task spent its time on, from its head and the times of its records; and what its client saw."""

from __future__ import annotations

import pytest

from a2a_serverless.domain.decisions import RUN_LEASE_MS, ask, cancel, periods_at, resume_run, suspend, wake
from a2a_serverless.domain.events import Incoming, StatusEvent
from a2a_serverless.domain.head import CurrentHead, Head
from a2a_serverless.domain.periods import RunEnd
from a2a_serverless.domain.timeline import (
    PERIODS,
    Span,
    SpanKind,
    StateSpan,
    StepTime,
    make_spans,
    state_spans,
    step_spans,
)
from a2a_serverless.domain.waits import OpenWait, WaitKind, dump_waits
from a2a_serverless.protocol.v1 import Message, Part, Role, TaskState
from tests.domain.test_head import NOW, QUESTION, taken

TEN = 10_000
MESSAGE = Incoming(Message(message_id="m", role=Role.USER, parts=(Part(text="hi"),)))


def status(at: int, state: TaskState, fence: int = 0) -> StatusEvent:
    return StatusEvent(at, at, "by", state, incoming=None if fence else MESSAGE, fence=fence)


def test_the_states_that_clients_saw_follow_one_another() -> None:
    events = [
        status(1, TaskState.SUBMITTED),
        status(5, TaskState.WORKING, 1),
        status(6, TaskState.WORKING, 1),
        status(9, TaskState.INPUT_REQUIRED, 1),
        status(20, TaskState.WORKING),
        status(22, TaskState.WORKING, 2),
        status(30, TaskState.COMPLETED, 2),
    ]
    seen = [
        StateSpan(TaskState.SUBMITTED, 1, 5),
        StateSpan(TaskState.WORKING, 5, 9),
        StateSpan(TaskState.INPUT_REQUIRED, 9, 20),
        StateSpan(TaskState.WORKING, 20, 30),
    ]
    assert state_spans(events, is_over=True) == seen
    assert state_spans(events[:-1]) == [*seen[:-1], StateSpan(TaskState.WORKING, 20)]
    assert state_spans([]) == []


def waiting(*waits: OpenWait) -> Head:
    """A task that is suspended for these waits since its 10th second."""
    current = taken(now=NOW)
    return suspend(current.head, 1, 0, now=NOW + TEN, waits=dump_waits(waits), wake_at=NOW + 9 * TEN)


def spans_at(head: Head, now: int, *times: StepTime, written: tuple[int, ...] = ()) -> list[Span]:
    return make_spans(head, periods_at(head, now), times, written, now)


NAP = OpenWait(WaitKind.SLEEP, "nap", NOW + TEN, NOW + 9 * TEN)
PAID = OpenWait(WaitKind.EVENT, "paid", NOW + TEN)
ASKED = OpenWait(WaitKind.QUESTION, "id", NOW + TEN)


def test_an_open_wait_goes_on_and_one_that_is_over_has_the_times_of_its_record() -> None:
    head = waiting(NAP, PAID, OpenWait(WaitKind.CALL, "mend", NOW), OpenWait(WaitKind.TIMEOUT, "paid", NOW))
    record = StepTime("@over/question/old", NOW + 1, NOW + 2)
    pause = StepTime(f"@over/pause/agent/{NOW}", NOW, NOW + 1)
    assert [span for span in spans_at(head, NOW + 5 * TEN, record, pause) if span.kind not in PERIODS] == [
        Span(SpanKind.PAUSE, "agent", NOW, NOW + 1),
        Span(SpanKind.QUESTION, "old", NOW + 1, NOW + 2),
        Span(SpanKind.SLEEP, "nap", NOW + TEN),
        Span(SpanKind.EVENT, "paid", NOW + TEN),
    ]


@pytest.mark.parametrize(
    ("wait", "after", "ended_at"),
    [
        (NAP, 5 * TEN, None),
        (NAP, 10 * TEN, 9 * TEN),
        (PAID, 5 * TEN, 3 * TEN),
        (ASKED, 5 * TEN, 3 * TEN),
    ],
)
def test_a_wait_that_has_no_record_while_a_run_works_was_over_with_the_suspension(
    wait: OpenWait, after: int, ended_at: int | None
) -> None:
    woken = wake(waiting(wait), now=NOW + 3 * TEN)
    at_work = resume_run(woken, now=NOW + 4 * TEN, by="run 2")
    (span,) = [one for one in spans_at(at_work, NOW + after) if one.kind not in PERIODS]
    assert span.ended_at == (None if ended_at is None else NOW + ended_at)


def test_a_question_that_is_still_asked_is_open_beside_a_run() -> None:
    asked = ask(
        taken(),
        1,
        TaskState.INPUT_REQUIRED,
        QUESTION,
        0,
        now=NOW + TEN,
        by="by",
        wake_at=NOW + TEN,
        waits=dump_waits([ASKED]),
    ).after
    at_work = resume_run(asked, now=NOW + 2 * TEN, by="run 2")
    assert Span(SpanKind.QUESTION, "id", NOW + TEN) in spans_at(at_work, NOW + 3 * TEN)


@pytest.mark.parametrize("wait", [NAP, PAID, ASKED])
def test_a_wait_ends_with_the_task_that_is_canceled_meanwhile(wait: OpenWait) -> None:
    ended = cancel(CurrentHead(waiting(wait), 2), now=NOW + 4 * TEN, by="client").after
    (span,) = [one for one in spans_at(ended, NOW + 99 * TEN) if one.kind not in PERIODS]
    assert span.ended_at == NOW + 4 * TEN


def test_a_run_that_died_wrote_last_what_its_records_and_events_say() -> None:
    died = taken(now=NOW).head
    now = NOW + 3 * RUN_LEASE_MS
    run = spans_at(died, now, StepTime("a", NOW + 2, NOW + 7_000), written=(NOW + 8_000, now))[0]
    assert run == Span(SpanKind.RUN, "1", NOW, NOW + RUN_LEASE_MS, "", RunEnd.DIED, NOW + 8_000)
    late = spans_at(died, now, StepTime("@over/sleep/nap", NOW, NOW + 9_000))
    assert late[0].last_write_at == NOW, "a wait's end is no write"


def test_steps_interrupted_raised_and_failed_ones_and_calls_are_spans_and_what_else_the_engine_stores_is_not() -> None:
    times = [
        StepTime("@call/ask/sent", 0, 12),
        StepTime("@call/ask", 0, 10),
        StepTime("@call/ask/done", 0, 19),
        StepTime("@call/ask/answer/question", 0, 15),
        StepTime("@call/other%2Fcall", 0, 11),
        StepTime("@usage/1", 0, 3),
        StepTime("@card/x", 0, 3),
        StepTime("@running/draw a/b/1", 2, 8),
        StepTime("draw a/b", 20, 25),
        StepTime("@raised/cut a/b/1", 21, 23, "OSError"),
        StepTime("@raised/cut a/b/2", 26, 28, "ValueError"),
        StepTime("@failed/cut a/b", 26, 28, "ValueError"),
        StepTime("@call/lost", 0, 12),
        StepTime("@call/lost/canceled", 0, 18),
        StepTime("old", 0, 1),
    ]
    assert step_spans(times) == [
        Span(SpanKind.STEP, "old", 1, 1),
        Span(SpanKind.INTERRUPTED, "draw a/b", 2, 8),
        Span(SpanKind.CALL, "ask", 10, 19),
        Span(SpanKind.CALL, "other/call", 11),
        Span(SpanKind.CALL, "lost", 12, 18),
        Span(SpanKind.STEP, "draw a/b", 20, 25),
        Span(SpanKind.RAISED, "cut a/b", 21, 23, "OSError"),
        Span(SpanKind.FAILED, "cut a/b", 26, 28, "ValueError"),
    ]
