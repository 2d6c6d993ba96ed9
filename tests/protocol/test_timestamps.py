import pytest
from hypothesis import given

from a2a_serverless.protocol.protojson import read_http_date, read_timestamp, timestamp_text
from tests.protocol import strategies
from tests.protocol.strategies import SOME


@pytest.mark.requirement(86)
def test_a_moment_is_printed_in_utc_with_milliseconds() -> None:
    assert timestamp_text(1_760_000_000_123) == "2025-10-09T08:53:20.123Z"
    assert timestamp_text(1_760_000_000_000) == "2025-10-09T08:53:20.000Z"


@given(strategies.MOMENTS)
@SOME
def test_a_printed_moment_is_read_back_unchanged(at: int) -> None:
    assert read_timestamp(timestamp_text(at)) == at


@pytest.mark.requirement(86)
@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00", 0),
        ("1970-01-01t00:00:00.5z", 500),
        ("1970-01-01 00:00:01.123456789Z", 1_123),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_every_form_that_peers_send_is_read(text: str, at: int) -> None:
    assert read_timestamp(text) == at


@pytest.mark.requirement(86)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2025-10-09",
        "2025-13-01T00:00:00Z",
        "2025-01-01T25:00:00Z",
        "2025-W01-1T00:00:00Z",
        "2025-01-01T00:00:00.Z",
        "２025-01-01T00:00:00Z",
        "2025-01-01T00:00:00Z\n",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-00:01",
    ],
)
def test_a_text_that_is_no_timestamp_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_timestamp(text)


def test_a_date_of_http_is_read_and_what_is_none_refused() -> None:
    assert read_http_date("Thu, 09 Oct 2025 08:53:20 GMT") == 1_760_000_000_000
    for text in ("", "0", "Thu, 09 Oct 2025 08:53:20 +0000", "Thu, 32 Oct 2025 08:53:20 GMT", "2025-10-09T08:53:20Z"):
        with pytest.raises(ValueError, match=r".+"):
            read_http_date(text)
