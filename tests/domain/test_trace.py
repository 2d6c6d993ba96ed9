import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_serverless.domain import trace

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_valid_header_is_accepted_as_it_is() -> None:
    assert trace.parse_traceparent(TRACE) == TRACE
    assert trace.parse_traceparent(f" {TRACE}\t") == TRACE


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "hello",
        TRACE.upper(),
        TRACE + "-what-comes-with-a-later-version",
        TRACE + ",00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "ff" + TRACE[2:],
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        TRACE + "\r\nX-Injected: yes",
        TRACE + "\n",
        TRACE.replace("4", "٤"),
    ],
)
def test_a_traceparent_that_breaks_the_specification_is_ignored(header: str | None) -> None:
    assert trace.parse_traceparent(header) is None


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    assert trace.parse_traceparent("42" + TRACE[2:] + "-more") == TRACE


def test_only_the_flag_that_is_known_is_passed_on() -> None:
    assert trace.parse_traceparent(TRACE[:-2] + "fe") == TRACE[:-2] + "00"
    assert trace.parse_traceparent(TRACE[:-2] + "ff") == TRACE


def test_a_child_is_in_the_same_trace_under_a_span_of_its_own() -> None:
    first, second = trace.child_of(TRACE, "a"), trace.child_of(TRACE, "b")
    assert len({TRACE, first, second}) == 3
    assert {trace.trace_id(one) for one in (TRACE, first, second)} == {"4bf92f3577b34da6a3ce929d0e0e4736"}
    assert trace.parse_traceparent(first) == first
    assert trace.child_of("", "a") == ""


def test_xrays_trace_is_taken_over_with_its_sampling() -> None:
    header = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
    found = trace.from_xray(header, "id")
    assert found is not None
    assert trace.trace_id(found) == "5759e988bd862e3fe1be46a994272793"
    assert found.endswith("-01")
    assert trace.parse_traceparent(found) == found
    assert trace.from_xray("Root=1-00000000-000000000000000000000000", "id") is None
    assert trace.from_xray("Self=1-5759e988-bd862e3fe1be46a99427279", "id") is None
    assert trace.from_xray(None, "id") is None


def test_a_trace_that_is_begun_is_valid_and_its_own() -> None:
    assert trace.parse_traceparent(trace.new_trace("a")) == trace.new_trace("a") != trace.new_trace("b")


@pytest.mark.parametrize(
    ("trace_id", "share", "flags"),
    [
        ("f" * 16 + "7" + "f" * 15, 0.5, "01"),
        ("0" * 16 + "8" + "0" * 15, 0.5, "00"),
        ("f" * 32, 1, "01"),
        ("0" * 31 + "1", 0, "00"),
    ],
)
def test_the_second_half_of_its_id_decides_whether_a_trace_is_sampled(trace_id: str, share: float, flags: str) -> None:
    beginning = f"00-{trace_id}-00f067aa0ba902b7-"
    assert trace.with_sampling(f"{beginning}00", share) == beginning + flags


@given(st.text())
def test_no_header_makes_a_trace_that_is_more_than_ids(header: str) -> None:
    for found in (trace.parse_traceparent(header), trace.from_xray(header, "id")):
        assert found is None or set(found) <= set("0123456789abcdef-")
