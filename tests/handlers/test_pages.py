"""Which web pages the application serves on a developer's machine: those that CorsOrigins names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from a2a_serverless_tools.local.edge import refuse_foreign_pages
from tests.handlers.test_hostile import Place
from tests.webhook_receiver.asgi import Answer, Call, call

PAGE = "https://app.example.com"
SERVED = 404  # nothing is published here, as the application itself says


def asked(origins: tuple[str, ...], method: str = "GET", **headers: str) -> Answer:
    web = refuse_foreign_pages(replace(Place().edge, origins=origins).app, "agents.example.com", origins)
    return call(web, Call(method, "/agents", tuple((name.replace("_", "-"), value) for name, value in headers.items())))


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8000", "localhost", "[::1]:8000", "agents.example.com", "AGENTS.example.com"]
)
def test_a_request_that_names_this_machine_or_its_public_address_is_served(host: str) -> None:
    assert asked((), host=host).status == SERVED


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8000", "agents.example.com.evil.example", ""])
def test_a_request_that_names_another_host_is_refused(host: str) -> None:
    assert asked((), host=host).status == 400


def test_a_page_whose_origin_is_set_is_served_and_may_read() -> None:
    answer = asked((PAGE,), host="127.0.0.1:8000", origin=PAGE, sec_fetch_site="cross-site")
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (SERVED, PAGE)
    assert asked(("*",), host="127.0.0.1:8000", origin="https://other.example").status == SERVED


@pytest.mark.parametrize("origins", [(), (PAGE,)])
@pytest.mark.parametrize("origin", ["https://other.example", "null", "http://127.0.0.1:3000", f"{PAGE}.evil.example"])
def test_a_request_of_a_page_from_another_origin_is_refused(origins: tuple[str, ...], origin: str) -> None:
    answer = asked(origins, host="127.0.0.1:8000", origin=origin)
    assert (answer.status, b"CorsOrigins" in answer.body) == (403, True)


def test_another_sites_script_that_asks_without_an_origin_is_refused() -> None:
    assert asked((PAGE,), host="127.0.0.1:8000", sec_fetch_site="cross-site").status == 403
    assert asked((PAGE,), host="127.0.0.1:8000", sec_fetch_site="none").status == SERVED


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_link_that_another_program_opens_in_the_browser_changes_no_state(method: str) -> None:
    assert asked((PAGE,), method, host="127.0.0.1:8000", sec_fetch_site="none").status == 403
    assert asked((PAGE,), method, host="127.0.0.1:8000", sec_fetch_site="same-origin").status == 405
    assert asked((PAGE,), method, host="127.0.0.1:8000").status == 405


def test_a_link_of_a_page_on_this_machine_is_followed_and_changes_nothing() -> None:
    link = {"sec_fetch_site": "same-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    assert asked((), host="127.0.0.1:8000", **link).status == SERVED
    assert asked((), "POST", host="127.0.0.1:8000", **link).status == 403
    for other in ({"sec_fetch_site": "cross-site"}, {"sec_fetch_mode": "no-cors"}, {"sec_fetch_dest": "iframe"}):
        assert asked((), host="127.0.0.1:8000", **link | other).status == 403
