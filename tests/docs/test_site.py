"""The built site: it asks no other host; pages, search and copy buttons work in a browser, on a desk and on a phone."""

from __future__ import annotations

import html
import http.server
import json
import os
import re
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import NEEDED, Browser, started
from tests.docs.documents import DOCUMENTS, ROOT, diagram_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SITE = ROOT / "out/site"
PAGES = ("index", "parameters", "zh/index")
# What users type, and the page that answers it: among the first three that the search shows.
QUERIES = {
    "": {
        "webhook signature invalid": "webhooks",
        "retry failed task": "retry",
        "deploy to production": "deploy",
        "api key": "access",
        "langgraph": "frameworks/langgraph",
        "how much does it cost": "cost",
        "delete a task": "access",
        "stream": "api",
        "human approval": "approval",
        "timeout": "waiting",
        "test my agent": "agents",
        "push notification to a phone": "mobile",
        "taskPushNotificationConfig": "api",
    },
    "zh/": {
        "术语": "zh/quickstart",
        "开始": "zh/quickstart",
        "收件箱": "zh/quickstart",
        "工作原理": "zh/index",
        "教程": "zh/tutorial-agent",
        "提问": "zh/tutorial-agent",
        "重试": "zh/tutorial-agents",
        "租约": "zh/tutorial-agents",
        "签名": "zh/webhooks",
        "重复": "zh/tutorial-receiver",
        "令牌": "zh/webhooks",
        "质询": "zh/webhooks",
        "取消": "zh/agents",
        "拒绝": "zh/webhooks",
    },
}
FIRST = 3
# Questions as people ask them: the first or the second hit answers each.
QUESTIONS = {
    "": {
        "Can I mount the agents inside an existing FastAPI application?": "fastapi",
        "How do I use my own model key?": "frameworks/openai-agents",
        "agents in my VPC": "projects",
        "call from ADK": "frameworks/adk",
        "How can I rotate the signing keys now?": "command-options",
        "wait for a human approval": "approval",
        "unknown-task": "webhooks",
        "What are the limits?": "scale",
        "limits of an owner": "scale",
        "rate limit": "scale",
        "Do tasks survive when I restart dev?": "agents",
        "verify the signature of a webhook": "receiver",
        "My webhook is not delivered": "webhooks",
        "run an agent every night": "schedules",
        "How much does an idle deployment cost?": "cost",
        "Who may call my agents?": "access",
        "What happens after a crash?": "guarantees",
        "change the code while tasks run": "code-changes",
        "test an agent without AWS": "test-your-agent",
        "limit the cost of an agent": "budgets",
        "restore deleted tasks": "operate",
        "How do I upload a big file?": "content",
        "use my own domain": "deploy",
        "deploy from GitHub Actions": "deploy",
        "erase a user's data": "access",
        "export traces by OpenTelemetry": "observability",
        "run the worker in a container": "container",
        "repeat a failed task": "retry",
        "How do I cancel a running task?": "agents",
        "Which Python types may a step return?": "steps",
        "store secrets": "projects",
        "wait for a payment of Stripe": "waiting",
        "an alarm rings, what do I do?": "operate",
    },
    "zh/": {
        "如何测试智能体": "zh/agents",
        "智能体卡住": "zh/agents",
        "webhook 被拒绝怎么办": "zh/webhooks",
        "如何验证签名": "zh/webhooks",
        "如何取消任务": "zh/agents",
        "调用另一个智能体": "zh/tutorial-agents",
        "进程崩溃之后": "zh/tutorial-agents",
        "如何向客户端提问": "zh/agents",
        "步骤失败后重试": "zh/tutorial-agents",
        "怎么接收 webhook": "zh/webhooks",
        "费用是多少": "zh/index",
        "从未在 AWS 上运行": "zh/index",
        "错误码 429": "zh/errors",
        "INVALID_PARAMS 是什么意思": "zh/errors",
        "错误的解决办法": "zh/errors",
        "任务为什么等待": "zh/waiting",
        "等待外部事件": "zh/waiting",
        "谁可以调用": "zh/access",
        "API 密钥": "zh/access",
        "清除一个所有者的数据": "zh/access",
        "部署到 AWS": "zh/deploy",
        "自己的域名": "zh/deploy",
        "谁可以部署": "zh/deploy",
        "收到告警怎么办": "zh/operate",
        "OldestDueTaskAlarm": "zh/operate",
        "暂停一个智能体": "zh/operate",
    },
}
DIAGRAM = re.compile(r"^```mermaid\n.*?^```$", re.MULTILINE | re.DOTALL)
RESULT = ".md-search-result__item"
LOADED = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?(https?:)?//|<link\b[^>]*\bhref=\"?(https?:)?//")
# Puts each page's article into the open page, and says what does not fit: of the page, a table or a drawing.
MISFITS = """
(async (pages) => {
  const misfits = [];
  const letters = async (address) => {
    const drawing = document.createElement("div");
    drawing.innerHTML = await (await fetch(address)).text();
    document.body.append(drawing);
    const sizes = [...drawing.querySelectorAll("text, foreignObject *")].filter((one) => one.textContent.trim())
      .map((one) => parseFloat(getComputedStyle(one).fontSize));
    drawing.remove();
    return Math.min(...sizes);
  };
  const known = {};
  for (const page of pages) {
    const base = new URL(page, location.origin);
    const text = await (await fetch(base)).text();
    const article = new DOMParser().parseFromString(text, "text/html").querySelector("article");
    if (!article) continue;
    document.querySelector("article").replaceWith(article);
    const images = [...article.querySelectorAll("img")];
    await Promise.all(images.map((image) => {
      image.src = new URL(image.getAttribute("src"), base);
      return image.decode().catch(() => misfits.push(`${page}: no ${image.src}`));
    }));
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth > width) misfits.push(`${page}: the page`);
    for (const one of article.querySelectorAll("table, pre, img, p, li")) {
      const box = one.getBoundingClientRect();
      let outer = one;
      while (outer !== article && getComputedStyle(outer).overflowX === "visible") outer = outer.parentElement;
      if (box.right > width && outer === article) misfits.push(`${page}: ${one.outerHTML.slice(0, 80)}`);
    }
    for (const image of article.querySelectorAll("img.drawing")) {
      known[image.src] ??= await letters(image.src);
      const size = known[image.src] * image.clientWidth / image.naturalWidth;
      if (!(size >= 10)) misfits.push(`${page}: letters of ${size} in ${image.src}`);
      if (width >= 768 && image.clientWidth > article.clientWidth) misfits.push(`${page}: ${image.src} is too wide`);
    }
  }
  return misfits;
})
"""
pytestmark = pytest.mark.skipif(not SITE.exists() and "CI" not in os.environ, reason="SITE NOT TESTED: make site")


def pages() -> list[Path]:
    return sorted(SITE.rglob("*.html"))


def test_no_page_asks_another_host() -> None:
    assert len(pages()) > 30
    assert [page.name for page in pages() if LOADED.search(page.read_text())] == []


def test_every_link_leads_to_a_page_and_a_place_in_it() -> None:
    texts = {page: page.read_text() for page in pages()}
    places = {page: set(re.findall(r'\bid="?([^">\s]+)', text)) for page, text in texts.items()}
    dead = []
    for page, text in texts.items():
        for link in set(re.findall(r'\bhref="?([^">\s]+)', text)):
            path, _, place = html.unescape(link).partition("#")
            target = (page.parent / path).resolve() if path else page
            if re.match(r"[a-z]+:|/", path) or not path + place:
                continue
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (place and place not in places[target]):
                dead.append((str(page.relative_to(SITE)), link))
    assert dead == []


def test_the_search_of_a_language_finds_its_pages_and_no_decisions_and_no_internals() -> None:
    for part, page in (("", "webhooks.html"), ("zh/", "quickstart.html")):
        index = json.loads((SITE / part / "search/search_index.json").read_text())
        found = {entry["location"].partition("#")[0] for entry in index["docs"]}
        assert page in found
        assert [one for one in found if one.startswith(("zh/", "adr/", "internals", "requirements", "evidence"))] == []
        assert [one for one in found if not (SITE / part / one).exists()] == []


def test_lines_of_chinese_join_without_a_space() -> None:
    spaced = re.compile(r".{9}[，。；：、！？）]\n *[^\W\d_].{9}")
    assert [found for page in pages() for found in spaced.findall(page.read_text())] == []


def test_every_diagram_of_the_documents_has_its_picture() -> None:
    blocks = [block for path in DOCUMENTS for block in re.findall(DIAGRAM, path.read_text())]
    assert len(blocks) > 3
    assert [block for block in blocks if not (ROOT / "docs/pictures" / diagram_name(block)).exists()] == []


def in_a_browser(test: Any) -> Any:
    """A test that needs a browser."""
    for mark in NEEDED:
        test = mark(test)
    return test


@contextmanager
def served() -> Iterator[str]:
    """The address of the built site."""

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
def url() -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with started(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@in_a_browser
def test_pages_can_be_read_on_every_screen(browser: Browser, url: str) -> None:
    for page in PAGES:
        for size, scheme, colours in (("desktop", "light", "default"), ("narrow", "dark", "slate")):
            browser.do(f"size {size}")
            browser.do(f"scheme {scheme}")
            browser.do(f"open {url}/{page}.html")
            browser.do(f"wait [data-md-color-scheme={colours}] article h1")
            browser.do(f"picture site-{page.replace('/', '-')}-{size}-{scheme}")
            assert browser.do("overflow") == 0, (page, size)
            assert browser.do("serious") == [], (page, size, scheme)
            assert browser.do("problems") == []


@in_a_browser
@pytest.mark.parametrize("size", ["desktop", "tablet", "narrow"])
def test_every_page_table_and_drawing_fits(browser: Browser, url: str, size: str) -> None:
    named = [str(page.relative_to(SITE)) for page in pages()]
    browser.do(f"size {size}")
    browser.do(f"open {url}/index.html")
    assert browser.do(f"evaluate ({' '.join(MISFITS.split())})({json.dumps(named)})") == []


@in_a_browser
@pytest.mark.parametrize("part", QUERIES)
def test_the_search_finds_the_pages_that_users_ask_for(browser: Browser, url: str, part: str) -> None:
    browser.do("size desktop")
    browser.do(f"open {url}/{part}index.html")
    browser.do("click input.md-search__input")
    found = {query: results(browser, query) for query in QUERIES[part]}
    print(*(f"{query:30} {', '.join(pages)}" for query, pages in found.items()), sep="\n")  # noqa: T201 - with -s
    assert [query for query, page in QUERIES[part].items() if page not in found[query]] == []
    assert browser.do("problems") == []


@in_a_browser
@pytest.mark.parametrize("part", QUESTIONS)
def test_a_question_is_answered_by_the_first_or_the_second_hit(browser: Browser, url: str, part: str) -> None:
    assert unanswered(browser, url, part) == {}


def unanswered(browser: Browser, url: str, part: str) -> dict[str, list[str]]:
    """The questions of a part that no first or second hit answers, with their hits."""
    browser.do("size desktop")
    browser.do(f"open {url}/{part}index.html")
    browser.do("click input.md-search__input")
    hits = {question: results(browser, question)[:2] for question in QUESTIONS[part]}
    print(*(f"{question:60} {', '.join(pages)}" for question, pages in hits.items()), sep="\n")  # noqa: T201 - with -s
    return {question: hits[question] for question, page in QUESTIONS[part].items() if page not in hits[question]}


def results(browser: Browser, query: str) -> list[str]:
    """The first pages that the search shows for a query."""
    for text, count in (("zzqq", "=== 0"), (query, "> 0")):
        browser.do(f"fill input.md-search__input :: {text}")
        browser.do("press End")  # the theme listens to keys
        browser.do(f"until document.querySelectorAll('{RESULT}').length {count}")
    links = f"[...document.querySelectorAll('{RESULT}')].map((one) => new URL(one.querySelector('a').href).pathname)"
    return [link.removeprefix("/").removesuffix(".html") for link in browser.do(f"evaluate {links}")[:FIRST]]


@in_a_browser
def test_a_copy_button_copies_commands_only(browser: Browser, url: str) -> None:
    def copied(page: str, block: str) -> str:
        browser.do(f"open {url}/{page}.html")
        browser.do(f"click {block} .md-code__button")
        browser.do("wait .md-dialog--active")
        return str(browser.do("clipboard"))

    assert copied("index", ".language-console") == "make setup\nmake demo"
    assert copied("zh/index", ".language-console") == "make setup\nmake demo"
    assert copied("roles", ".language-console").splitlines()[:2] == [
        "sed 's/a2a-serverless/agents/' docs/operator-policy.json > policy.json",
        "aws cloudformation describe-stacks --stack-name agents --output text \\",
    ]
    assert copied("index", ".language-python").startswith("import boto3")
    consoles = [
        block for page in pages() for block in re.findall(r'<[^>]*class="language-console[^>]*>', page.read_text())
    ]
    assert len(consoles) > 30
    assert [block for block in consoles if not re.match(r'<div data-copy="[^$\s]', block)] == []


@in_a_browser
def test_a_page_leads_to_itself_in_the_other_language(browser: Browser, url: str) -> None:
    browser.do("size desktop")
    for page, other in (("quickstart", "zh/quickstart"), ("zh/deploy", "deploy"), ("roles", "zh/index")):
        browser.do(f"open {url}/{page}.html")
        assert f"{url}/{other}.html" in browser.do(
            "evaluate [...document.querySelectorAll('.md-select__link')].map((one) => one.href)"
        )
