import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_serverless.client.client import read_events
from a2a_serverless.client.event_stream import ServerEvent
from a2a_serverless.domain.errors import InvalidAgentResponse
from a2a_serverless.protocol import sse

LIMIT = 1000


def events_in(body: bytes) -> list[ServerEvent]:
    return list(read_events(io.BytesIO(body), LIMIT))


@given(st.lists(st.tuples(st.integers(1, 9_999_999), st.text(max_size=20).map(str.split).map("".join))))
def test_what_our_server_frames_is_read_back(told: list[tuple[int, str]]) -> None:
    body = b"".join(sse.frame(text.encode("utf-8", "replace"), number) + sse.BEAT for number, text in told)
    assert events_in(body) == [ServerEvent(text.encode("utf-8", "replace"), number) for number, text in told]


def test_an_event_of_several_lines_is_one_event() -> None:
    assert events_in(b"data: one\r\ndata:two\r\n\r\n") == [ServerEvent(b"one\ntwo")]


def test_an_id_that_is_no_number_is_no_number() -> None:
    assert events_in(b"id: x\xff\ndata: one\n\n") == [ServerEvent(b"one", None)]


def test_the_number_stays_until_there_is_a_new_one() -> None:
    assert events_in(b"id: 7\ndata: one\n\ndata: two\n\n") == [ServerEvent(b"one", 7), ServerEvent(b"two", 7)]


def test_what_a_broken_line_leaves_unfinished_is_dropped() -> None:
    assert events_in(b"data: one\n\ndata: tw") == [ServerEvent(b"one")]


@pytest.mark.parametrize("body", [b"data: " + b"x" * LIMIT, b"data: xxxxxxxxxx\n" * 100, b"event: " + b"x" * 2 * LIMIT])
def test_an_event_that_is_too_large_is_not_kept(body: bytes) -> None:
    with pytest.raises(InvalidAgentResponse, match="too large"):
        events_in(body)
