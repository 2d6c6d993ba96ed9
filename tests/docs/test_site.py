"""The built site: it asks no other host, and pages and search work in a browser, on a desk and on a phone."""

from __future__ import annotations

import http.server
import json
import os
import re
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import NEEDED, Browser, started
from tests.docs.documents import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

SITE = ROOT / "out/site"
PAGES = ("index", "api", "zh/quickstart")
LOADED = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?(https?:)?//|<link\b[^>]*\bhref=\"?(https?:)?//")
pytestmark = pytest.mark.skipif(not SITE.exists() and "CI" not in os.environ, reason="SITE NOT TESTED: make site")


def test_no_page_asks_another_host() -> None:
    pages = list(SITE.rglob("*.html"))
    assert len(pages) > 30
    assert [page.name for page in pages if LOADED.search(page.read_text())] == []


def test_the_search_finds_no_decisions_and_no_internals() -> None:
    index = json.loads((SITE / "search/search_index.json").read_text())
    pages = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert "webhooks.html" in pages
    assert [page for page in pages if page.startswith(("adr/0", "internals", "requirements", "evidence"))] == []


def in_a_browser(test: Any) -> Any:
    """A test that needs a browser."""
    for mark in NEEDED:
        test = mark(test)
    return test


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Logs nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with started(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@in_a_browser
def test_pages_fit_and_can_be_read_on_every_screen(browser: Browser, url: str) -> None:
    for page in PAGES:
        for size, scheme, colours in (("desktop", "light", "default"), ("phone", "dark", "slate")):
            browser.do(f"size {size}")
            browser.do(f"scheme {scheme}")
            browser.do(f"open {url}/{page}.html")
            browser.do(f"wait [data-md-color-scheme={colours}] article h1")
            browser.do(f"picture site-{page.replace('/', '-')}-{size}-{scheme}")
            assert browser.do("overflow") == 0, (page, size)
            assert browser.do("serious") == [], (page, size, scheme)
            assert browser.do("problems") == []


@in_a_browser
def test_search_finds_a_page(browser: Browser, url: str) -> None:
    browser.do("size desktop")
    browser.do(f"open {url}/index.html")
    browser.do("click input.md-search__input")
    browser.do("type taskPushNotificationConfig")
    browser.do("wait .md-search-result__item a[href*='api.html']")
    assert browser.do("problems") == []
