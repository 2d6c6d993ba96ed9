"""Export by OTLP to a real collector: what arrives, and that a collector without an answer costs spans only."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.collector import (
    NO_EXPORTER,
    SECONDS,
    Collector,
    attributes,
    collecting,
    exports,
    has_exporter,
    wait_for_exports,
)

if not has_exporter():
    pytest.skip(NO_EXPORTER, allow_module_level=True)

from a2a_serverless.adapters.open_telemetry import KEPT, PAUSE_S, OpenTelemetryTracer
from a2a_serverless.domain.spans import TraceSpan

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.enable_socket]
TRACE = f"00-{'a' * 32}-{'b' * 16}-01"
PARENT = f"00-{'a' * 32}-{'c' * 16}-01"
CHAT = {"gen_ai.operation.name": "chat"}
SECRET = "a confidential text"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


def span(name: str = "a", trace: str = TRACE, **fields: Any) -> TraceSpan:
    return TraceSpan(name, trace, PARENT, 1_000, 2_500, **fields)


def tracer_to(collector: Collector, **options: Any) -> OpenTelemetryTracer:
    return OpenTelemetryTracer(collector.url, "weather", **{"flush_s": SECONDS, "export_s": SECONDS, **options})


def test_a_span_arrives_as_it_was_recorded(collector: Collector) -> None:
    tracer = tracer_to(collector, headers=lambda: {"x-key": "secret"})
    tracer.record(span("POST webhook", kind="client", error="503", attributes={"a2a.task.id": "t", "n": 3}))
    tracer.flush()
    (found,) = collector.spans
    assert (found.name, found.trace_id.hex(), found.span_id.hex()) == ("POST webhook", "a" * 32, "b" * 16)
    assert (found.parent_span_id.hex(), found.kind, found.status.code) == ("c" * 16, 3, 2)
    assert (found.start_time_unix_nano, found.end_time_unix_nano) == (1_000_000_000, 2_500_000_000)
    assert attributes(found) == {"a2a.task.id": "t", "n": 3, "error.type": "503"}
    assert collector.services == {"weather"}
    assert collector.headers[0]["x-key"] == "secret"


def test_a_trace_that_is_not_sampled_is_not_exported(collector: Collector) -> None:
    tracer = tracer_to(collector)
    tracer.record(span(trace=TRACE[:-1] + "0"))
    tracer.record(span(trace=""))
    tracer.flush()
    assert collector.headers == []


@pytest.mark.parametrize(("share", "flags"), [(0.0, "00"), (1.0, "01")])
def test_a_share_of_new_traces_is_sampled(collector: Collector, share: float, flags: str) -> None:
    assert tracer_to(collector, share=share).sample(TRACE[:-2] + "00") == TRACE[:-2] + flags


def test_a_slow_collector_delays_one_flush_and_no_other_until_the_pause_is_over(collector: Collector) -> None:
    now = [0.0]
    tracer = tracer_to(collector, flush_s=0.01, now_s=lambda: now[0])
    collector.answers.clear()
    tracer.record(span("lost or late"))
    tracer.flush()
    for number in range(KEPT + 10):
        tracer.record(span(f"after {number}"))
    tracer.flush()
    assert len(exports()) == 1, "no second export beside the first"
    collector.answers.set()
    wait_for_exports()
    now[0] = PAUSE_S + 1
    tracer.flush()
    wait_for_exports()
    assert collector.spans[-1].name == f"after {KEPT + 9}"
    assert len(collector.spans) <= KEPT + 1, "what is kept is bounded"


@pytest.mark.parametrize("later_s", [PAUSE_S, -1], ids=["after the pause", "after the clock was set back"])
@pytest.mark.parametrize("status", [401, 404])
def test_a_collector_that_refuses_costs_the_spans(
    collector: Collector, status: int, later_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    tracer = tracer_to(collector, now_s=lambda: now[0])
    collector.status = status
    tracer.record(span("lost"))
    tracer.flush()
    (warning,) = [record for record in caplog.records if record.message == "spans not exported"]
    assert vars(warning)["reason"] == "failed"
    collector.status, now[0] = 200, later_s
    tracer.record(span("later"))
    tracer.flush()
    assert [one.name for one in collector.spans] == ["later"]


def test_a_process_without_a_thread_for_the_export_loses_spans_only(collector: Collector) -> None:
    now = [0.0]
    tracer = tracer_to(collector, now_s=lambda: now[0])
    tracer.record(span("lost"))
    threading.stack_size(2**46)  # more than a process has, so no thread starts
    try:
        tracer.flush()
    finally:
        threading.stack_size(0)
    now[0] = PAUSE_S + 1
    tracer.record(span("later"))
    tracer.flush()
    assert [one.name for one in collector.spans] == ["later"]


def test_headers_that_cannot_be_read_cost_the_spans_until_they_can(collector: Collector) -> None:
    now, answers = [0.0], iter([PermissionError("AccessDenied: secret/x"), {"x-key": "1"}])

    def headers() -> dict[str, str]:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]

    tracer = tracer_to(collector, headers=headers, now_s=lambda: now[0])
    tracer.record(span("lost"))
    tracer.flush()
    now[0] = PAUSE_S + 1
    tracer.record(span("later"))
    tracer.flush()
    assert [one.name for one in collector.spans] == ["later"]


def test_a_librarys_spans_are_children_of_what_is_entered(collector: Collector) -> None:
    tracer = tracer_to(collector)
    with tracer.enter(TRACE), tracer.provider.get_tracer("library").start_as_current_span("select"):
        pass
    with tracer.enter(TRACE[:-1] + "0"), tracer.provider.get_tracer("library").start_as_current_span("unsampled"):
        pass
    tracer.flush()
    (found,) = collector.spans
    assert (found.name, found.trace_id.hex(), found.parent_span_id.hex()) == ("select", "a" * 32, "b" * 16)


@pytest.mark.parametrize("content", [False, True])
def test_a_librarys_span_has_content_only_if_the_operator_wants_it(collector: Collector, *, content: bool) -> None:
    tracer = tracer_to(collector, content=content)
    names: dict[str, Any] = {"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 3, "rpc.service": "S3"}
    said = ["gen_ai.input.messages", "gen_ai.tool.call.arguments", "tool_response", "final_result", "url.full", "mine"]
    library = tracer.provider.get_tracer("library")

    def call_model() -> None:
        given = {**names, **dict.fromkeys(said, SECRET), "stop_sequences": [SECRET]}
        with tracer.enter(TRACE), library.start_as_current_span("chat m", attributes=given) as theirs:
            theirs.add_event("gen_ai.choice", {"message": SECRET})
            raise ValueError(SECRET)

    with pytest.raises(ValueError, match=SECRET):
        call_model()
    tracer.flush()
    (found,) = collector.spans
    assert attributes(found).items() >= names.items()
    assert (found.name, found.status.code, found.parent_span_id.hex()) == ("chat m", 2, "b" * 16)
    assert (SECRET in str(found)) is content


@pytest.mark.parametrize(("operation", "expected"), [("chat", ["theirs"]), ("execute_tool", ["theirs", "ours"])])
def test_a_model_call_that_a_library_has_a_span_of_gets_no_second_one(
    collector: Collector, operation: str, expected: list[str]
) -> None:
    tracer = tracer_to(collector)
    with tracer.enter(TRACE):
        theirs = tracer.provider.get_tracer("pydantic-ai").start_span(
            "theirs", attributes={"gen_ai.operation.name": operation}, start_time=1_000_000_000
        )
        theirs.end(end_time=2_000_000_000)
    tracer.record(span("ours", attributes=CHAT))
    tracer.flush()
    assert [one.name for one in collector.spans] == expected
