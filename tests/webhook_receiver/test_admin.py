import base64
from hashlib import sha256

import pytest

from a2a_webhook_receiver.admin import Access, decide
from tests.webhook_receiver.sending import settings_for

LOCAL = settings_for(AUDIENCE="http://127.0.0.1:8010/webhook")
OPEN = settings_for(AUDIENCE="http://127.0.0.1:8010/webhook", OPEN_REGISTRATION="true")
PUBLIC = settings_for()
GUARDED = settings_for(ADMIN_TOKEN_SHA256=sha256(b"pass:word").hexdigest())
HERE = {"host": "127.0.0.1:8010"}


def basic(text: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(text.encode()).decode()}


@pytest.mark.parametrize("host", ["127.0.0.1:8010", "localhost:8010", "localhost", "127.0.0.1", "[::1]:8010", "[::1]"])
def test_a_browser_on_this_machine_sees_the_inbox_of_a_local_receiver(host: str) -> None:
    assert decide(LOCAL, {"host": host}, "127.0.0.1") is Access.GRANTED


@pytest.mark.parametrize(
    "host", ["", "evil.example", "evil.example:8010", "127.0.0.1.evil.example", "0.0.0.0:8010", "[::]"]
)
def test_a_name_that_only_leads_to_this_machine_is_refused(host: str) -> None:
    assert decide(LOCAL, {"host": host}, "127.0.0.1") is Access.FORBIDDEN


@pytest.mark.parametrize("peer", ["10.0.0.7", "192.0.2.1", "::ffff:10.0.0.7", None])
def test_a_local_receiver_refuses_another_machine(peer: str | None) -> None:
    assert decide(LOCAL, HERE, peer) is Access.FORBIDDEN


def test_a_receiver_that_the_world_can_reach_trusts_no_address() -> None:
    assert decide(PUBLIC, HERE, "127.0.0.1") is Access.FORBIDDEN
    assert decide(GUARDED, HERE, "127.0.0.1") is Access.UNKNOWN


def test_the_password_opens_a_receiver_to_anybody_who_has_it() -> None:
    for headers in (basic("admin:pass:word"), basic(":pass:word"), {"authorization": "Bearer pass:word"}):
        assert decide(GUARDED, headers, "192.0.2.1") is Access.GRANTED


@pytest.mark.parametrize(
    "headers",
    [
        {},
        basic("pass:word"),
        basic("admin:wrong"),
        {"authorization": "Basic ???"},
        {"authorization": "Basic " + base64.b64encode(b"\xff:\xff").decode()},
        {"authorization": "pass:word"},
        {"authorization": "Bearer " + sha256(b"pass:word").hexdigest()},
    ],
    ids=repr,
)
def test_a_request_without_the_password_is_asked_for_it(headers: dict[str, str]) -> None:
    assert decide(GUARDED, headers, "192.0.2.1") is Access.UNKNOWN


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_another_sites_page_is_refused_even_with_the_password(site: str) -> None:
    asked = {"sec-fetch-site": site}
    assert decide(LOCAL, HERE | asked, "127.0.0.1") is Access.FORBIDDEN
    assert decide(OPEN, HERE | asked, "127.0.0.1") is Access.FORBIDDEN
    assert decide(GUARDED, basic("a:pass:word") | asked, "192.0.2.1") is Access.FORBIDDEN


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_the_page_of_the_inbox_may_read_the_inbox(site: str) -> None:
    assert decide(LOCAL, HERE | {"sec-fetch-site": site}, "127.0.0.1") is Access.GRANTED


LINK = {"sec-fetch-site": "same-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


def test_a_link_of_the_console_on_this_machine_opens_the_inbox() -> None:
    assert decide(LOCAL, HERE | LINK, "127.0.0.1") is Access.GRANTED
    assert decide(GUARDED, LINK, "192.0.2.1") is Access.UNKNOWN


@pytest.mark.parametrize(
    "other",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-mode": "no-cors"},
        {"sec-fetch-dest": "iframe"},
        {"origin": "http://127.0.0.1:3000"},
    ],
    ids=repr,
)
def test_a_link_from_another_site_to_the_inbox_is_refused(other: dict[str, str]) -> None:
    assert decide(LOCAL, HERE | LINK | other, "127.0.0.1") is Access.FORBIDDEN


@pytest.mark.parametrize("host", ["receiver:8010", "172.17.0.2:8010", "[fd00::2]:8010", "host.docker.internal:8010"])
def test_open_registration_lets_a_container_in(host: str) -> None:
    assert decide(OPEN, {"host": host}, "172.17.0.3") is Access.GRANTED


@pytest.mark.parametrize("peer", ["127.0.0.1", "172.17.0.3"])
@pytest.mark.parametrize(
    "host", ["", "evil.example", "evil.example:8010", "127.0.0.1.evil.example", "internal.evil.example", "receiver."]
)
def test_open_registration_opens_nothing_to_a_name_on_the_net(host: str, peer: str) -> None:
    assert decide(OPEN, {"host": host}, peer) is Access.FORBIDDEN


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:3000", "http://localhost:8010"])
def test_another_origin_is_refused_even_by_a_browser_that_does_not_say_whose_site_asks(origin: str) -> None:
    asked = {"origin": origin}
    assert decide(LOCAL, HERE | asked, "127.0.0.1") is Access.FORBIDDEN
    assert decide(OPEN, HERE | asked, "127.0.0.1") is Access.FORBIDDEN
    assert decide(GUARDED, basic("a:pass:word") | HERE | asked, "192.0.2.1") is Access.FORBIDDEN


def test_a_request_from_the_origin_of_the_page_is_granted() -> None:
    assert decide(LOCAL, HERE | {"origin": "http://127.0.0.1:8010"}, "127.0.0.1") is Access.GRANTED
