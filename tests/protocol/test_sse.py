import pytest

from a2a_serverless.protocol.sse import BEAT, frame, last_event_id


def test_an_event_carries_its_number_as_id() -> None:
    assert frame(b'{"a":1}', 7) == b'id: 7\ndata: {"a":1}\n\n'
    assert frame(b"{}") == b"data: {}\n\n"


def test_a_beat_of_a_stream_is_a_comment() -> None:
    assert BEAT.startswith(b":")
    assert BEAT.endswith(b"\n\n")


@pytest.mark.parametrize(
    ("header", "n"),
    [
        (None, None),
        ("", None),
        ("7", 7),
        (" 12 ", 12),
        ("0", 0),
        ("-1", None),
        ("x", None),
        ("٣", None),
        ("9" * 11, None),
    ],
)
def test_last_event_id_is_a_number_of_ours_or_nothing(header: str | None, n: int | None) -> None:
    assert last_event_id(header) == n
