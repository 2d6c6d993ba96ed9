"""The console's page and files over HTTP; ``tests/console`` shows it in a browser."""

from __future__ import annotations

from importlib import resources

import pytest

from a2a_serverless.http.api import AllowAnonymous, Console
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from tests.echo import Writer
from tests.edge import Edge, HttpResponse
from tests.world import World

BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8"


def asked(path: str, verb: str = "GET", accept: str = "*/*", *, console: bool = True) -> HttpResponse:
    world = World([Writer().agent])
    edge = Edge(
        world.service,
        world.table,
        world.engine.agents,
        AllowAnonymous(),
        MemoryCallbackVerifier(),
        60,
        console=Console("my-agents") if console else None,
    )
    return edge.answer(HttpRequest(verb, path, {"accept": accept}))


def test_the_page_names_the_agents_and_each_answer_has_a_policy_with_a_nonce_of_its_own() -> None:
    answer, other = asked("/"), asked("/")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b'data-agent="echo"' in answer.body
    assert b"{{" not in answer.body
    policies = [one.headers["content-security-policy"] for one in (answer, other)]
    assert policies[0] != policies[1]
    assert all("default-src 'none'" in one and "frame-ancestors 'none'" in one for one in policies)


def test_every_file_of_the_page_is_served_with_its_type_and_nothing_else_is() -> None:
    files = {file.name for file in resources.files("a2a_serverless.http").joinpath("pages").iterdir() if file.is_file()}
    types = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
    served = {name for name in files if name.endswith((".js", ".css"))}
    assert {"console.js", "console.css"} <= served
    for name in served:
        answer = asked(f"/-/{name}")
        assert (answer.status, answer.headers["content-type"]) == (200, types[name[name.rfind(".") :]])
        assert answer.headers["x-content-type-options"] == "nosniff"
    for path in ("/-/page.html", "/-/none.js", "/-/..%2fconsole.py", "/-/.js"):
        assert asked(path).status == 404, path


@pytest.mark.parametrize("path", ["/", "/-/console.js"])
def test_where_it_is_off_nothing_of_it_is_there(path: str) -> None:
    assert asked(path, console=False).status == 404


@pytest.mark.parametrize("console", [True, False])
@pytest.mark.parametrize("path", ["/docs", "/docs/oauth2-redirect", "/redoc"])
def test_no_other_page_runs_scripts_in_the_origin_of_the_api(path: str, *, console: bool) -> None:
    answer = asked(path, console=console, accept=BROWSER)
    assert (answer.status, answer.headers["content-type"]) == (404, "application/json")


@pytest.mark.parametrize("path", ["/", "/-/console.js"])
def test_it_is_only_read(path: str) -> None:
    answer = asked(path, "POST")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_an_agents_base_url_leads_a_browser_to_its_page_and_refuses_other_clients() -> None:
    answer = asked("/echo", accept=BROWSER)
    assert (answer.status, answer.headers["location"], answer.headers["vary"]) == (303, "./?agent=echo", "accept")
    assert asked("/echo").status == 405
    assert asked("/echo", accept="application/json").status == 405
    assert asked("/echo", console=False, accept=BROWSER).status == 405
    assert asked("/none", accept=BROWSER).status == 404
