"""Two URLs have the same origin if scheme, host and port are the same, as browsers compare them."""

import pytest

from a2a_serverless.domain.origins import origin_of

HOME = "https://agents.example.com"


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        (HOME, HOME),
        (f"{HOME}/echo?a=b#c", HOME),
        ("HTTPS://Agents.EXAMPLE.com/", HOME),
        (f"{HOME}:443/echo", HOME),
        (f"{HOME}:/echo", HOME),
        ("https://somebody:secret@agents.example.com/", HOME),
        (f"{HOME}@evil.example/", "https://evil.example"),
        (f"{HOME}:8443", f"{HOME}:8443"),
        (f"{HOME}.", f"{HOME}."),
        ("http://agents.example.com:80/", "http://agents.example.com"),
        ("http://agents.example.com:443/", "http://agents.example.com:443"),
        ("https://bücher.example/", "https://xn--bcher-kva.example"),
        ("https://BÜCHER.example/", "https://xn--bcher-kva.example"),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example"),
        ("http://[::1]:8000/echo", "http://[::1]:8000"),
    ],
)
def test_an_origin_is_the_same_however_a_url_is_spelt(url: str, origin: str) -> None:
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    "url",
    [
        "",
        "agents.example.com",
        "//agents.example.com",
        "file:///etc/passwd",
        "https://",
        f"{HOME}:99999",
        f"{HOME}:x",
        "https://[::1",
        f"https://{'ü' * 80}.example",
        "https://evil.example\\@agents.example.com/",
        "https://evil.example%2f@agents.example.com/",
        "https://agents%2eexample.com/",
        "https://agents.example .com/",
    ],
)
def test_a_url_that_parsers_read_differently_has_no_origin(url: str) -> None:
    assert origin_of(url) == ""
