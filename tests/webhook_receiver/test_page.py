"""The inbox page in a real browser. Skipped, and said so, where there is no Node, no Chromium or no ``npm ci``."""

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from a2a_webhook_receiver.body import Content, read_task
from a2a_webhook_receiver.errors import Unreadable
from a2a_webhook_receiver.http import create_app
from a2a_webhook_receiver.receive import Receiver, WebhookRequest
from a2a_webhook_receiver.wiring import tell_time
from tests.browser import NEEDED, Browser, png, started
from tests.webhook_receiver.sending import EXPECTED, event, receiving, settings_for
from tests.webhook_receiver.serving import post, serving
from vectors.cases import STATUS_UPDATE, TASK

AUDIENCE = "http://127.0.0.1:8010/webhook"
REFUSED = "Failed to load resource: the server responded with a status of 422 "
AGENT = "http://127.0.0.1:8000/document"

pytestmark = NEEDED


class OneTask:
    """A TaskSource with one task."""

    def fetch(self, agent_url: str, task_id: str) -> Content:
        if agent_url != AGENT:
            raise Unreadable("the agent answered with error -32001")
        artifact: Any = {"artifactId": "a-1", "name": "document.md", "parts": [{"text": "Wind and water."}]}
        status: Any = {"state": "TASK_STATE_COMPLETED"}
        return read_task({"id": task_id, "contextId": "c", "status": status, "artifacts": [artifact]})


@dataclass
class World:
    """A page in a browser, the receiver behind it, and a sender."""

    browser: Browser
    receiver: Receiver
    port: int

    def send(self, number: int, body: object = STATUS_UPDATE, aud: str = AUDIENCE, **claims: object) -> int:
        return self.deliver(event(number, attempt=1, body=body, now=tell_time(), aud=aud, **claims))

    def deliver(self, request: WebhookRequest) -> int:
        return post(self.port, request)[0]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with started(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def world(browser: Browser) -> Iterator[World]:
    with showing(browser, live=True) as world:
        yield world


@contextmanager
def showing(browser: Browser, *, live: bool) -> Iterator[World]:
    """A page that has been loaded, in its first size and colours."""
    expected = replace(EXPECTED, expires=tell_time() + 86_400_000, agent_url=AGENT)
    settings = replace(settings_for(AUDIENCE=AUDIENCE), live=live)
    with (
        receiving(expected, audience=AUDIENCE, clock=tell_time, tasks=OneTask()) as receiver,
        serving(create_app(receiver, settings)) as port,
    ):
        browser.do("scheme light")
        browser.do("size desktop")
        browser.do(f"open http://127.0.0.1:{port}/")
        browser.do(f"status {'live' if live else 'polling'}")
        yield World(browser, receiver, port)
        browser.do("open about:blank")  # or the page would complain of its server's end, to the next test


def status(state: str, text: str | None = None) -> dict[str, Any]:
    said = {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": text}]}} if text else {}
    update = {"taskId": TASK, "contextId": "ctx-1", "status": {"state": f"TASK_STATE_{state}"} | said}
    return {"statusUpdate": update}


def artifact(name: str, *parts: dict[str, Any], last: bool = True) -> dict[str, Any]:
    made = {"artifactId": "a-1", "name": name, "parts": list(parts)}
    return {
        "artifactUpdate": {"taskId": TASK, "contextId": "ctx-1", "artifact": made, "append": True, "lastChunk": last}
    }


def test_an_empty_inbox_says_what_to_do(world: World) -> None:
    browser = world.browser
    browser.do("wait #start:not([hidden])")
    assert "Say what you expect" in browser.do("texts #start")[0]
    assert AUDIENCE in browser.do("texts #sample")[0]
    look(browser, "empty")
    assert browser.do("problems") == []


def test_notifications_appear_as_they_come_with_their_checks_and_content(world: World) -> None:
    browser = world.browser
    assert world.send(1, body=status("WORKING", "Writing two sections.")) == 200
    browser.do("cards 1")
    text, picture = {"text": "# Sailing\n\nWind 风 and water ⛵."}, {"raw": png(160, 100), "mediaType": "image/png"}
    assert world.send(2, body=artifact("document.md", text, last=False)) == 200
    assert (
        world.send(3, body=artifact("sailboat.png", picture, {"data": {"width": 160, "sea": ["blue", "calm"]}})) == 200
    )
    assert world.send(4, body=status("COMPLETED")) == 200
    assert world.send(4, body=status("COMPLETED"), jti="second-attempt") == 200
    browser.do("cards 5")
    assert browser.do("texts .card .badge") == ["Duplicate", "Verified", "Verified", "Verified", "Verified"]
    assert browser.do("texts .card h3") == [
        "Came before, no effect",
        "Status: completed",
        "Artifact sailboat.png",
        "Artifact document.md, to be continued",
        "Status: working",
    ]
    assert "风" in browser.do("texts .card:nth-child(4) pre")[0]
    assert browser.do("count .card:nth-child(3) img") == 1
    assert browser.do("evaluate document.querySelector('.card img').naturalWidth") == 160
    assert "calm" in browser.do("texts .card:nth-child(3) pre")[0]
    assert browser.do("texts .card:nth-child(2) .note") == ["Fetched the task: completed, with document.md."]
    assert browser.do("count .card:nth-child(2) .checks li:not(.failed):not(.skipped)") == 9
    assert browser.do("texts #tasks .now") == ["completed\nevent 4"]
    look(browser, "full")
    assert browser.do("problems") == []


def look(browser: Browser, name: str) -> None:
    """On a desk and on a phone, by day and by night: nothing sticks out. PICTURES=<folder> keeps what was seen."""
    for size in ("desktop", "phone"):
        for scheme in ("light", "dark"):
            browser.do(f"size {size}")
            browser.do(f"scheme {scheme}")
            browser.do(f"picture {name}-{size}-{scheme}")
            assert browser.do("overflow") == 0
    browser.do("size desktop")


def test_a_refused_request_says_which_rule_it_broke(world: World) -> None:
    browser = world.browser
    assert world.send(1, aud="https://another.example/webhook") == 401
    assert world.send(2, sub="stranger", taskId="stranger") == 401
    assert world.deliver(replace(event(3, now=tell_time(), aud=AUDIENCE), body=b"{}")) == 401
    assert world.deliver(WebhookRequest((("Content-Type", "application/json"),), b"{}")) == 401
    browser.do("cards 4")
    assert browser.do("texts .facts .code") == ["no-signature", "wrong-body", "unknown-task", "wrong-audience"]
    assert browser.do("texts .checks .failed") == ["token", "body hash", "expectation", "claims"]
    assert browser.do("count .card:last-child .checks .skipped") == 4
    browser.do("click .card:last-child summary")
    browser.do("wait .card:last-child dl")
    claimed = browser.do("texts .card:last-child dl")[0]
    assert "https://another.example/webhook" in claimed
    assert re.search(r"exp\s+\d{10} \(20\d\d-.*Z\)", claimed)
    look(browser, "refused")
    assert browser.do("problems") == []


def test_content_never_becomes_markup(world: World) -> None:
    browser = world.browser
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    svg = base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(3)'/>").decode()
    parts = (
        {"text": evil},
        {"data": {evil: evil}},
        {"raw": svg, "mediaType": "image/png"},
        {"url": "javascript:alert(4)"},
    )
    assert world.send(1, body=artifact(evil, *parts)) == 200
    assert world.send(2, sub=evil.replace(" ", "_"), taskId=evil.replace(" ", "_")) == 401
    browser.do("cards 2")
    browser.do("click .card summary")
    assert evil in browser.do("texts .card h3")[1]
    assert browser.do("count .card img, .card script, .card svg, .card a") == 0
    look(browser, "evil")
    assert browser.do("problems") == []


def test_a_late_event_is_marked_and_does_not_turn_the_task_back(world: World) -> None:
    browser = world.browser
    world.send(5, body=status("COMPLETED"))
    world.send(2, body=status("WORKING"))
    browser.do("cards 2")
    assert browser.do("texts .card .badge") == ["Verified, late", "Verified"]
    assert browser.do("texts #tasks .now") == ["completed\nevent 5"]
    assert browser.do("problems") == []


def test_where_nothing_can_stream_the_page_asks_again_and_again(browser: Browser) -> None:
    with showing(browser, live=False) as world:
        assert world.send(1, body=status("WORKING")) == 200
        browser.do("cards 1")
        assert browser.do("texts #status") == ["Checking every 3 s"]
        assert browser.do("problems") == []


def test_a_person_can_say_what_to_expect_and_filter_what_came(world: World) -> None:
    browser = world.browser
    browser.do("click #expect")
    browser.do("fill #agent :: not a url")
    browser.do("click #form [type=submit]")
    browser.do("wait #problem:not([hidden])")
    browser.do("picture dialog-problem")
    browser.do(f"fill #agent :: {AGENT}")
    browser.do("click #form [type=submit]")
    browser.do("wait #result:not([hidden])")
    browser.do("picture dialog-result")
    browser.do("size phone")
    browser.do("picture dialog-phone")
    config = json.loads(browser.do("texts #config")[0])
    assert config["url"] == AUDIENCE
    browser.do("click #done")
    request = event(1, body=status_of("new-task"), now=tell_time(), aud=AUDIENCE, sub="new-task", taskId="new-task")
    headers = dict(request.headers) | {"X-A2A-Notification-Token": config["token"]}
    assert world.deliver(replace(request, headers=tuple(headers.items()))) == 200
    assert world.send(2) == 200
    assert world.send(3, iss="https://evil.example") == 401
    browser.do("cards 3")
    browser.do("click #filter button:nth-child(3)")
    assert browser.do("count .card:not([hidden])") == 1
    browser.do("click #filter button:nth-child(1)")
    browser.do("click #tasks li:last-child button")
    assert "new-task" in browser.do("texts .card:not([hidden]) .facts")[0]
    assert browser.do("count .card:not([hidden])") == 1
    assert [problem.split("(")[0] for problem in browser.do("problems")] == [REFUSED]


def status_of(task: str) -> dict[str, Any]:
    return {"statusUpdate": {"taskId": task, "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}
