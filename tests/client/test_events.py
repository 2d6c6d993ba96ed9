import io
import sys
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_serverless.client.client import read_events
from a2a_serverless.client.event_stream import EventStreamParser, ServerEvent
from a2a_serverless.domain.errors import InvalidAgentResponse
from a2a_serverless.protocol import sse

LIMIT = 1000


def events_in(body: bytes) -> list[ServerEvent]:
    return list(read_events(io.BytesIO(body), LIMIT))


@given(st.lists(st.tuples(st.integers(1, 9_999_999), st.text(max_size=20).map(str.split).map("".join))))
def test_the_client_reads_back_events_that_our_server_frames(told: list[tuple[int, str]]) -> None:
    body = b"".join(sse.frame(text.encode("utf-8", "replace"), number) + sse.BEAT for number, text in told)
    assert events_in(body) == [ServerEvent(text.encode("utf-8", "replace"), number) for number, text in told]


def test_an_event_of_several_lines_is_one_event() -> None:
    assert events_in(b"data: one\r\ndata:two\r\n\r\n") == [ServerEvent(b"one\ntwo")]


def test_an_id_that_is_no_number_is_no_number() -> None:
    assert events_in(b"id: x\xff\ndata: one\n\n") == [ServerEvent(b"one", None)]


def test_the_number_stays_until_there_is_a_new_one() -> None:
    assert events_in(b"id: 7\ndata: one\n\ndata: two\n\n") == [ServerEvent(b"one", 7), ServerEvent(b"two", 7)]


def test_an_id_with_a_null_and_a_time_to_reconnect_change_nothing() -> None:
    assert events_in(b"id: 7\n\nid: 8\0\nretry: 9\ndata: one\n\n") == [ServerEvent(b"one", 7)]


def test_an_event_that_a_broken_connection_cuts_off_is_dropped() -> None:
    assert events_in(b"data: one\n\ndata: tw") == [ServerEvent(b"one")]


@pytest.mark.parametrize("body", [b"data: " + b"x" * LIMIT, b"data: xxxxxxxxxx\n" * 100, b"event: " + b"x" * 2 * LIMIT])
def test_an_event_that_is_too_large_is_not_kept(body: bytes) -> None:
    with pytest.raises(InvalidAgentResponse, match="too large"):
        events_in(body)


@pytest.mark.parametrize(
    ("body", "events"),
    [
        (b"\xef\xbb\xbfdata: one\n\n", [b"one"]),
        (b"data: one\r\rdata: two\r\r", [b"one", b"two"]),
        (b"data: one\rdata: two\r\n\r\n", [b"one\ntwo"]),
        (b"data\n\ndata\ndata\n\ndata:", [b"", b"\n"]),
        (b"data:test\n\ndata: test\n\n", [b"test", b"test"]),
        (b": a comment\n\nevent: x\nretry: 10\ndata: one\nother: 1\n\n", [b"one"]),
        (b"id\ndata: one\n\n", [b"one"]),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_the_grammar_of_the_standard_in_blocks_of_any_size(body: bytes, events: list[bytes], size: int) -> None:
    parser = EventStreamParser(LIMIT)
    blocks = [body[at : at + size] for at in range(0, len(body), size)]
    assert [event.data for block in blocks for event in parser.feed(block)] == events


def slowly(body: bytes) -> list[ServerEvent]:
    """The events by the standard's words, one line after the other."""
    events, data, number = list[ServerEvent](), list[bytes](), None
    text = body.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for line in text.split(b"\n")[:-1]:
        name, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if not line and data:
            events.append(ServerEvent(b"\n".join(data), number))
        if not line:
            data = []
        elif name == b"data":
            data.append(value)
        elif name == b"id" and b"\0" not in value:
            number = sse.last_event_id(value.decode("ascii", "replace"))
    return events


@given(
    st.lists(
        st.sampled_from(
            [b"data", b"id", b"event", b":", b" ", b"\r", b"\n", b"\r\n", b"7", b"x", b"\xef\xbb\xbf", b"\0"]
        )
    ),
    st.lists(st.integers(1, 5), min_size=1),
)
def test_any_bytes_in_any_blocks_are_read_as_by_a_slow_reader(pieces: list[bytes], sizes: list[int]) -> None:
    body, at, parser, events = b"".join(pieces), 0, EventStreamParser(LIMIT), list[ServerEvent]()
    for size in cycle(sizes):
        events += parser.feed(body[at : at + size])
        at += size
        if at >= len(body):
            break
    assert events == slowly(body)


def test_the_lines_of_one_event_are_counted_and_cost_what_they_weigh() -> None:
    with pytest.raises(InvalidAgentResponse, match="too large"):
        events_in(b"data:\n" * 1000)
    assert read_in_steps(b"data:\n" * 32_000) < 3 * read_in_steps(b"data:\n" * 16_000)


def read_in_steps(body: bytes) -> int:
    """The steps of the interpreter in which a body is read, as one event."""
    steps = 0

    def count(*_: object) -> Any:
        nonlocal steps
        steps += 1
        return count

    parser, before = EventStreamParser(len(body)), sys.gettrace()
    sys.settrace(count)
    try:
        list(parser.feed(body))
    finally:
        sys.settrace(before)
    return steps
