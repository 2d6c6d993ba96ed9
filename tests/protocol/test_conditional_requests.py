import pytest

from a2a_serverless.protocol.conditional_requests import etag, unchanged


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
    assert unchanged(if_none_match, '"e"') is expected
