import pytest

from a2a_serverless.protocol.conditional_requests import etag, is_current

MODIFIED = "Thu, 09 Oct 2025 08:53:20 GMT"


def test_an_etag_is_the_contents() -> None:
    assert etag(b"a") == etag(b"a") != etag(b"b")
    assert etag(b"a").startswith('"')


@pytest.mark.requirement(104)
@pytest.mark.parametrize(
    ("if_none_match", "expected"),
    [
        (None, False),
        ("", False),
        ('"x"', False),
        ('"e"', True),
        ('W/"e"', True),
        ('"x", W/"e"', True),
        ("*", True),
        ("e", False),
    ],
)
def test_a_client_that_has_the_current_card_is_told_so(if_none_match: str | None, *, expected: bool) -> None:
    headers = {} if if_none_match is None else {"if-none-match": if_none_match}
    assert is_current(headers, '"e"', MODIFIED) is expected


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (MODIFIED, True),
        ("Thu, 09 Oct 2025 08:53:21 GMT", True),
        ("Thu, 09 Oct 2025 08:53:19 GMT", False),
        ("", False),
        ("0", False),
        ("Fri, 10 Oct 2025 08:53:20 +0000", False),
        ("Thu, 32 Oct 2025 08:53:20 GMT", False),
        ("2025-10-10T08:53:20Z", False),
    ],
)
def test_a_date_counts_if_it_is_one_of_http_and_not_before_the_change(since: str, *, expected: bool) -> None:
    assert is_current({"if-modified-since": since}, '"e"', MODIFIED) is expected


def test_an_etag_goes_before_a_date() -> None:
    assert not is_current({"if-none-match": '"x"', "if-modified-since": MODIFIED}, '"e"', MODIFIED)
