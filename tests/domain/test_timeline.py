"""What a task spent its time on, from its status events and the times of its steps."""

from __future__ import annotations

from a2a_serverless.domain.events import Incoming, StatusEvent
from a2a_serverless.domain.timeline import Span, SpanKind, StepTime, state_spans, step_spans
from a2a_serverless.protocol.v1 import Message, Part, Role, TaskState

MESSAGE = Incoming(Message(message_id="m", role=Role.USER, parts=(Part(text="hi"),)))


def status(at: int, state: TaskState, fence: int = 0) -> StatusEvent:
    return StatusEvent(at, at, "by", state, incoming=None if fence else MESSAGE, fence=fence)


def test_a_task_is_queued_until_a_run_takes_it_waits_for_its_client_and_is_queued_again() -> None:
    events = [
        status(1, TaskState.SUBMITTED),
        status(5, TaskState.WORKING, 1),
        status(6, TaskState.WORKING, 1),
        status(9, TaskState.INPUT_REQUIRED, 1),
        status(20, TaskState.WORKING),
        status(22, TaskState.WORKING, 2),
        status(30, TaskState.COMPLETED, 2),
    ]
    assert state_spans(events) == [
        Span(SpanKind.QUEUED, "", 1, 5),
        Span(SpanKind.WORKING, "1", 5, 9),
        Span(SpanKind.INPUT, "", 9, 20),
        Span(SpanKind.QUEUED, "", 20, 22),
        Span(SpanKind.WORKING, "2", 22, 30),
    ]


def test_a_message_during_a_run_does_not_end_its_span_and_a_new_run_begins_one() -> None:
    events = [status(1, TaskState.WORKING, 1), status(2, TaskState.WORKING), status(3, TaskState.WORKING, 2)]
    assert state_spans(events) == [Span(SpanKind.WORKING, "1", 1, 3), Span(SpanKind.WORKING, "2", 3)]
    assert state_spans([status(1, TaskState.SUBMITTED), status(4, TaskState.CANCELED)]) == [
        Span(SpanKind.QUEUED, "", 1, 4)
    ]
    assert state_spans([]) == []


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
