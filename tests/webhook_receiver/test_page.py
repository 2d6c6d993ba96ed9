"""The inbox page in a real browser. Skipped, and said so, where there is no Node, no Chromium or no ``npm ci``."""

import base64
import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from a2a_serverless.protocol.v1 import SendMessageRequest
from a2a_webhook_receiver.body import Content, read_task
from a2a_webhook_receiver.errors import Unreadable
from a2a_webhook_receiver.http import create_app
from a2a_webhook_receiver.receive import Receiver, WebhookRequest
from a2a_webhook_receiver.wiring import tell_time
from tests.browser import NEEDED, Browser, png, started
from tests.webhook_receiver.sending import EXPECTED, event, receiving, settings_for
from tests.webhook_receiver.serving import post, serving
from vectors.cases import STATUS_UPDATE, TASK, TOKEN

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


def history(text: str) -> dict[str, Any]:
    said = {"messageId": "m-0", "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"task": {"id": TASK, "contextId": "ctx-1", "status": {"state": "TASK_STATE_SUBMITTED"}, "history": [said]}}


def with_token(request: WebhookRequest, token: str) -> WebhookRequest:
    header = "x-a2a-notification-token"
    kept = [(name, value) for name, value in request.headers if name.lower() != header]
    return WebhookRequest((*kept, (header, token)), request.body)


def text_of(browser: Browser, selector: str) -> str:
    return "\n".join(browser.do(f"texts {selector}"))


def look(browser: Browser, name: str) -> None:
    """On a desk and on a phone, by day and by night: nothing sticks out, and axe finds nothing serious.

    PICTURES=<folder> keeps what was seen.
    """
    for size in ("desktop", "phone"):
        for scheme in ("light", "dark"):
            browser.do(f"size {size}")
            browser.do(f"scheme {scheme}")
            browser.do(f"picture {name}-{size}-{scheme}")
            assert browser.do("overflow") == 0
            assert browser.do("serious") == []
    browser.do("size desktop")


def test_a_refused_request_names_its_task_if_the_issuer_signed_it(world: World) -> None:
    browser = world.browser
    wrong = event(6, now=tell_time(), aud=AUDIENCE)
    assert world.deliver(with_token(wrong, "another-token-of-16")) == 401
    assert world.deliver(WebhookRequest(wrong.headers, b"{}")) == 401
    browser.do("rows 2")
    browser.do("click #refused > summary")
    rows = browser.do("texts #refused .row")
    assert sum("Task 7f9c2d1e: Not the token that is registered for this task" in row for row in rows) == 1
    assert not any("Task" in row for row in rows if "body" in row)
    browser.do("click #refused .row:has-text('7f9c2d1e') summary")
    browser.do(f"wait #refused .facts:has-text('Task {TASK}')")
    look(browser, "refused-task")


def test_an_artifact_is_not_to_be_continued_once_its_task_has_ended(world: World) -> None:
    browser = world.browser
    world.send(1, artifact("coat.txt", {"text": "a coat"}, last=False))
    browser.do("wait .joined .name:has-text('to be continued')")
    world.send(2, status("COMPLETED"))
    browser.do("wait .joined .name:has-text('the last chunk is not marked')")
    assert "to be continued" not in text_of(browser, ".joined")


def test_an_empty_inbox_says_what_to_do_next_with_the_command(world: World) -> None:
    browser = world.browser
    browser.do("wait #start:not([hidden])")
    assert f"--inbox http://127.0.0.1:{world.port}" in text_of(browser, "#command")
    assert AUDIENCE in text_of(browser, "#sample")
    look(browser, "empty")
    assert browser.do("problems") == []


def test_times_have_24_hours(world: World) -> None:
    assert world.send(1, body=status("WORKING")) == 200
    world.browser.do("wait time")
    assert re.search(r"\d\d:\d\d:\d\d$", world.browser.do("texts time")[0])


def test_the_events_of_a_task_are_joined_to_its_document_and_its_pictures(world: World) -> None:
    browser = world.browser
    assert world.send(1, body=history("Write about sailing 写一篇关于帆船的文章。\nLong.")) == 200
    assert world.send(3, body=status("WORKING", "Writing two sections.")) == 200
    for number, text in ((5, "## Water 水\n\nIt carries.\n"), (4, "# Sailing\n\nWind 风.\n\n")):
        assert world.send(number, body=artifact("document.md", {"text": text}, last=number == 5)) == 200
    large = {"raw": png(400, 250, level=0), "mediaType": "image/png", "filename": "sailboat.png"}
    assert len(large["raw"]) > 300_000
    picture = artifact("sailboat.png", large, {"data": {"sea": ["blue", "calm"]}})
    picture["artifactUpdate"]["artifact"]["artifactId"] = "a-2"
    assert world.send(6, body=picture) == 200
    assert world.send(7, body=status("COMPLETED", "It is done.")) == 200
    assert world.send(7, body=status("COMPLETED"), jti="second-attempt") == 200
    browser.do("rows 7")
    browser.do("wait .artifact img")
    browser.do("until document.querySelector('.artifact img').naturalWidth === 400")
    assert text_of(browser, ".group h3") == "document Write about sailing 写一篇关于帆船的文章。"
    assert browser.do("texts .artifact:nth-child(2) pre") == ["# Sailing\n\nWind 风.\n\n## Water 水\n\nIt carries.\n"]
    assert "calm" in text_of(browser, ".artifact:nth-child(3) pre")
    assert text_of(browser, ".said") == "It is done."
    assert text_of(browser, ".gap").startswith("Event 2: not here.")
    assert browser.do("texts .rows .event") == ["1", "3", "4", "5", "6", "7", "7"]
    assert browser.do("texts .rows .badge") == ["Late", "Duplicate"]
    assert text_of(browser, "#tasks .now") == "completed\nevent 7"
    browser.do("click .row:first-child summary")
    browser.do("wait .row:first-child .note")  # it is made when the row has opened
    assert "A snapshot is the whole task" in text_of(browser, ".row:first-child .note")
    assert browser.do("count .row:first-child .checks li:not(.failed):not(.skipped)") == 9
    look(browser, "full")
    assert browser.do("problems") == []


def test_a_long_text_is_cut_and_shown_whole_on_demand(world: World) -> None:
    browser = world.browser
    assert world.send(1, body=artifact("long.md", {"text": "风" * 9000})) == 200
    browser.do("click .artifact button")
    browser.do("until document.querySelector('.artifact pre').textContent.length === 9000")
    assert browser.do("problems") == []


def test_a_flood_of_refused_requests_is_one_line_and_hides_nothing(world: World) -> None:
    browser = world.browser
    assert world.send(1, body=status("WORKING")) == 200
    assert world.send(2, aud="https://another.example/webhook") == 401
    assert world.deliver(replace(event(3, now=tell_time(), aud=AUDIENCE), body=b"{}")) == 401
    for _ in range(40):
        assert world.deliver(WebhookRequest((("Content-Type", "application/json"),), b"{}")) == 401
    browser.do("until document.querySelector('#refused summary').textContent.startsWith('42 refused requests')")
    assert text_of(browser, "#refused summary").startswith("42 refused requests no-signature 40")
    assert browser.do("count .group:not(.refused) .row") == 1
    assert "no-signature: 40, the newest 10 are kept" in browser.do(
        "evaluate document.querySelector('#refused').textContent"
    )
    assert browser.do("texts #filter .count") == ["13", "1", "12"]
    look(browser, "flood")
    browser.do("click #refused > summary")
    browser.do("click #refused .row:has-text('audience') summary")
    browser.do("wait #refused details[open] .checks")  # they are made when the row has opened
    inside = text_of(browser, "#refused .row:has(details[open])")
    assert "ANSWERED 401" in inside.upper()
    assert browser.do("count #refused details[open] .checks .skipped") == 4
    browser.do("click #refused details[open] .claims summary")
    claimed = text_of(browser, "#refused details[open] dl")
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
    assert world.send(1, body=history(evil)) == 200
    assert world.send(2, body=artifact(evil, *parts)) == 200
    assert world.send(3, sub=evil.replace(" ", "_"), taskId=evil.replace(" ", "_")) == 401
    browser.do("rows 3")
    assert evil in text_of(browser, ".group h3")
    browser.do("click .group:last-child .row:nth-child(2) summary")
    browser.do("click .group:last-child .row:nth-child(2) .request summary")
    browser.do("wait .raw pre")
    assert evil in text_of(browser, ".raw pre")
    assert browser.do("count .group img, .group script, .group svg, .group a") == 0
    look(browser, "evil")
    assert browser.do("problems") == []


def test_a_request_is_copied_as_a_command_that_sends_it_again(world: World) -> None:
    browser = world.browser
    assert world.send(1, body=status("WORKING", "It's a 'quoted' word: 引号 \"$HOME\" `x`.")) == 200
    browser.do("rows 1")
    browser.do("click .row summary")
    browser.do("click .row .curl")
    browser.do("wait .row .curl:has-text('Copied')")
    command = browser.do("clipboard").replace(AUDIENCE, f"http://127.0.0.1:{world.port}/webhook")
    environment = {**os.environ, "WEBHOOK_TOKEN": TOKEN}
    again = subprocess.run(["/bin/bash", "-c", command], env=environment, capture_output=True, check=True)  # noqa: S603
    assert b'"duplicate":true' in again.stdout
    assert TOKEN not in command
    assert browser.do("problems") == []


def test_a_link_leads_to_one_notification_and_says_when_it_is_gone(world: World) -> None:
    browser = world.browser
    for number in range(1, 30):
        assert world.send(number, body=status("WORKING", f"Part {number}")) == 200
    browser.do("rows 29")
    browser.do("click .rows > summary")
    browser.do("click .row:nth-child(2) summary")
    browser.do("click .row:nth-child(2) .link")
    browser.do("wait .row .link:has-text('Copied')")
    linked = browser.do("clipboard")
    browser.do("open about:blank")
    browser.do(f"open {linked}")
    browser.do("wait .row.chosen details[open]")
    assert "Part 2" in text_of(browser, ".row.chosen .what")
    browser.do("evaluate void (location.hash = '#n999')")
    browser.do("wait #gone:not([hidden])")
    assert browser.do("problems") == []


def test_where_nothing_can_stream_the_page_asks_again_and_again(browser: Browser) -> None:
    with showing(browser, live=False) as world:
        assert world.send(1, body=status("WORKING")) == 200
        browser.do("rows 1")
        assert browser.do("texts #status") == ["Checking every 3 s"]
        assert browser.do("problems") == []


def test_a_person_can_create_a_token_and_filter_and_search_what_came(world: World) -> None:
    browser = world.browser
    browser.do("click #expect")
    browser.do("fill #agent :: not a url")
    browser.do("click #form [type=submit]")
    browser.do("wait #problem:not([hidden])")
    browser.do("picture dialog-problem")
    browser.do(f"fill #agent :: {AGENT}")
    browser.do("click #form [type=submit]")
    browser.do("wait #result:not([hidden])")
    look(browser, "dialog")
    config = json.loads(browser.do("texts #config")[0])
    assert config["url"] == AUDIENCE
    sent = json.loads(text_of(browser, "#curl").rpartition("-d '")[2].rstrip("'"))
    asked = SendMessageRequest.model_validate(sent["params"]).configuration
    assert asked.task_push_notification_config
    assert asked.task_push_notification_config.token == config["token"]
    browser.do("click #done")
    browser.do("until !document.querySelector('#unused').hidden")
    request = event(1, body=status_of("new-task"), now=tell_time(), aud=AUDIENCE, sub="new-task", taskId="new-task")
    headers = dict(request.headers) | {"X-A2A-Notification-Token": config["token"]}
    assert world.deliver(replace(request, headers=tuple(headers.items()))) == 200
    assert world.send(2) == 200
    assert world.send(3, iss="https://evil.example") == 401
    browser.do("rows 3")
    used = "document.querySelector('#token-list').textContent.split('Used by document').length"
    browser.do(f"until {used} === 3")
    browser.do("click #tokens summary")
    assert config["token"] not in text_of(browser, "#token-list")
    browser.do("until document.querySelector('#unused').hidden")
    browser.do("click #filter button:nth-child(3)")
    assert browser.do("count .group:not([hidden])") == 1
    browser.do("click #filter button:nth-child(1)")
    browser.do("click #tasks li:last-child button")
    assert browser.do("count .row:not([hidden])") == 1
    assert browser.do("texts #filter .count") == ["1", "1", "0"]
    browser.do("click #tasks li:last-child button")
    browser.do("fill #search :: EVIL.example")
    assert browser.do("texts #filter .count") == ["1", "0", "1"]
    browser.do("fill #search :: nowhere")
    assert "nowhere" in text_of(browser, "#none")
    look(browser, "tokens")
    assert [problem.split("(")[0] for problem in browser.do("problems")] == [REFUSED]


def status_of(task: str) -> dict[str, Any]:
    return {"statusUpdate": {"taskId": task, "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}
