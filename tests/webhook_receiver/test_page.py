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
from a2a_webhook_receiver.errors import NoSignature, Unreadable, WrongAudience, WrongToken
from a2a_webhook_receiver.http import create_app
from a2a_webhook_receiver.inbox import Answer
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
def showing(browser: Browser, *, live: bool, **environment: str) -> Iterator[World]:
    """A page that has been loaded, in its first size and colours."""
    expected = replace(EXPECTED, expires=tell_time() + 86_400_000, agent_url=AGENT)
    settings = replace(settings_for(AUDIENCE=AUDIENCE, **environment), live=live)
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
    """In three widths, light and dark: nothing is wider than the page, and axe finds nothing serious (also contrast).

    PICTURES=<folder> keeps what was seen.
    """
    for size in (1280, 768, 360):
        for scheme in ("light", "dark"):
            browser.do(f"size {size}")
            browser.do(f"scheme {scheme}")
            browser.do(f"picture {name}-{size}-{scheme}")
            assert browser.do("overflow") == 0, (name, size)
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
    assert text_of(browser, "#command").startswith('a2a-serverless send AGENT "Hello" \\\n  --url https://')
    assert f"--inbox http://127.0.0.1:{world.port}" in text_of(browser, "#command")
    assert "docs/webhooks.md#a-webhook-was-refused" in text_of(browser, "#nothing")
    assert browser.do("evaluate document.querySelector('#console').href") == "https://agents.example.com/"
    assert browser.do("count #documents:not([hidden])") == 0
    assert AUDIENCE in text_of(browser, "#sample")
    look(browser, "empty")
    assert browser.do("problems") == []


HOSTILE = """# <img src=x onerror=alert(1)>

<script>alert(2)</script> <b onclick="alert(3)">bold</b> &lt;i&gt;

[run](javascript:alert(4)) [run](data:text/html,<script>alert(5)</script>) [run]( JaVaScRiPt:alert(6))
![far](https://far.example/pixel.png) ![bad](x" onerror="alert(7)) [good](https://good.example/?a=1&b=2)

| <iframe src=//far.example> | `<svg onload=alert(8)>` |
|---|---|
| <style>*{display:none}</style> | [x](vbscript:alert(9)) |

```html
<base href=https://far.example>
```
"""


def test_hostile_markdown_becomes_text_and_only_links_of_the_web_are_links(world: World) -> None:
    browser = world.browser
    markdown = {"text": HOSTILE, "mediaType": "text/markdown"}
    assert world.send(1, body=artifact("a", markdown)) == 200
    assert world.send(2, body=status("COMPLETED", HOSTILE)) == 200
    browser.do("rows 2")
    browser.do("click .row:last-child summary")
    browser.do("wait .row:last-child .markdown")
    assert browser.do("count .markdown") == 3
    for tag in ("img", "script", "style", "iframe", "svg", "base", "b", "i", "[onclick]", "[onerror]"):
        assert browser.do(f"count .markdown {tag}") == 0, tag
    links = "[...document.querySelectorAll('.markdown a')].map((link) => [link.href, link.rel])"
    safe = ["https://far.example/pixel.png", "https://good.example/?a=1&b=2"]
    assert browser.do(f"evaluate {links}") == [[url, "noopener noreferrer nofollow"] for url in safe] * 3
    assert browser.do("texts .artifact .markdown h3") == ["<img src=x onerror=alert(1)>"]
    assert "<script>alert(2)</script>" in text_of(browser, ".artifact .markdown p")
    assert browser.do("problems") == []  # also: nothing was asked of another host


def test_a_picture_in_markdown_is_one_of_the_task(world: World) -> None:
    browser = world.browser
    assert world.send(1, body=artifact("a.md", {"text": "![a sea](sea.png) ![no](none.png)"})) == 200
    sea = artifact("sea.png", {"raw": png(40, 25), "mediaType": "image/png", "filename": "sea.png"})
    sea["artifactUpdate"]["artifact"]["artifactId"] = "a-2"
    assert world.send(2, body=sea) == 200
    browser.do("until document.querySelector('.markdown img')?.naturalWidth === 40")
    assert browser.do("count .markdown img") == 1


def test_a_list_with_numbers_after_one_with_points_is_another_list(world: World) -> None:
    browser = world.browser
    assert world.send(1, body=artifact("a.md", {"text": "- linen\n- hemp\n  - tarred\n1. hoist\n2. trim"})) == 200
    browser.do("wait .artifact .markdown")
    assert browser.do("texts .artifact .markdown > ul > li") == ["linen", "hemp\ntarred"]
    assert browser.do("texts .artifact .markdown > ol > li") == ["hoist", "trim"]


def test_a_text_that_is_no_markdown_stays_as_it_is(world: World) -> None:
    assert world.send(1, body=artifact("a.txt", {"text": "# no *heading*"})) == 200
    world.browser.do("wait .artifact pre")
    assert world.browser.do("texts .artifact pre") == ["# no *heading*"]
    assert world.browser.do("count .artifact .name button:not([hidden])") == 0


def test_each_reason_says_the_remedy_and_the_values_that_differ(world: World) -> None:
    browser = world.browser
    another = "https://another.example/webhook"
    assert world.send(1, aud=another) == 401
    assert world.deliver(with_token(event(2, now=tell_time(), aud=AUDIENCE), "another-token-of-16")) == 401
    assert world.deliver(WebhookRequest((("Content-Type", "application/json"),), b"{}")) == 401
    browser.do("rows 3")
    browser.do("click #filter [data-filter=refused]")
    browser.do("wait #refused[open]")
    reasons = browser.do("texts .reason")
    for kind in (WrongAudience, WrongToken, NoSignature):
        (section,) = (text for text in reasons if text.startswith(kind.code))
        assert kind.remedy in section
    facts = browser.do("texts .reason:has-text('wrong-audience') > dl > *")
    assert facts == ["Remedy", WrongAudience.remedy, "Expected", AUDIENCE, "Received", another]
    assert browser.do("texts .reason:has-text('wrong-token') > dl > dt") == ["Remedy"]
    assert "another-token-of-16" not in browser.do("evaluate document.body.textContent")
    assert browser.do("texts #refused .more") == ["More about refused webhooks: docs/webhooks.md#a-webhook-was-refused"]
    look(browser, "reasons")
    assert browser.do("problems") == []


def test_reasons_link_to_the_documents_if_the_receiver_knows_where_they_are(browser: Browser) -> None:
    with showing(browser, live=True, DOCUMENTS_URL="https://docs.example.com/a2a/") as world:
        assert world.send(1, iss="https://evil.example") == 401
        browser.do("click #refused > summary")
        links = "[...document.querySelectorAll('.remedy a, #documents')].map((link) => link.href)"
        assert browser.do(f"evaluate {links}") == [
            "https://docs.example.com/a2a/",
            "https://docs.example.com/a2a/webhooks.html#a-webhook-was-refused",
        ]
        assert browser.do("count #refused .more") == 0
        assert browser.do("problems") == []


def test_the_raw_view_has_the_notification_as_json_and_no_token(world: World) -> None:
    browser = world.browser
    request = event(1, body=status("WORKING", "Go."), now=tell_time(), aud=AUDIENCE)
    assert world.deliver(request) == 200
    browser.do("click .row summary")
    browser.do("click .row .request summary")
    browser.do("wait .raw pre")
    headers, body = browser.do("texts .raw pre")
    assert json.loads(body) == json.loads(request.body)
    assert body.startswith('{\n  "statusUpdate"')
    assert "Bearer <the signed token>" in headers
    browser.do("click .raw button")
    assert browser.do("texts .raw pre")[1] == request.body.decode()
    shown = browser.do("evaluate document.documentElement.outerHTML")
    assert TOKEN not in shown
    assert dict(request.headers)["Authorization"].rpartition(".")[2] not in shown


def test_an_open_notification_stays_open_when_its_answer_comes(world: World) -> None:
    browser, inbox, request = world.browser, world.receiver.inbox, event(1, now=tell_time(), aud=AUDIENCE)
    inbox.add(tell_time(), "challenge", {"kid": "k", "jti": "j"}, request)
    browser.do("click .row summary")
    browser.do("click .row .request summary")
    browser.do("wait .raw pre")
    inbox.note_answer(request, Answer(200, 7))
    assert world.send(1) == 200  # after an entry the page reads the answers of all
    browser.do("wait .row .facts:has-text('Answered 200 in 7 ms')")
    assert browser.do("count .raw pre") == 2


def test_a_task_of_which_nothing_came_is_said_in_place_until_something_comes(world: World) -> None:
    browser = world.browser
    browser.do("evaluate void (location.hash = '#task=<b>nobody</b>')")
    browser.do("wait #gone:not([hidden])")
    assert "No notification of task <b>nobody</b> is here" in text_of(browser, "#gone")
    browser.do(f"evaluate void (location.hash = '#task={TASK}')")
    browser.do("until document.querySelector('#gone').textContent.includes('7f9c2d1e')")
    assert browser.do("count #start:not([hidden])") == 1
    look(browser, "unknown-task")
    assert world.send(1, body=status("WORKING")) == 200
    browser.do("rows 1")
    browser.do("until document.querySelector('#gone').hidden")
    assert browser.do("texts #tasks [aria-pressed=true] .now") == ["working\nevent 1"]
    browser.do("evaluate void (location.hash = '#task=nobody')")
    browser.do("until !document.querySelector('#gone').hidden")
    assert browser.do("count .row:not([hidden])") == 0
    look(browser, "unknown-task-among-others")
    browser.do("click #all")
    assert browser.do("count #gone:not([hidden]), #none:not([hidden])") == 0
    assert browser.do("count .row:not([hidden])") == 1
    assert browser.do("problems") == []


def test_a_button_that_has_the_focus_keeps_it_when_a_webhook_comes(world: World) -> None:
    browser = world.browser
    assert world.send(1, body=status("WORKING")) == 200
    browser.do("rows 1")
    for selector in ("#filter [data-filter=accepted]", "#tasks button"):
        browser.do(f"click {selector}")
        number = int(browser.do("count .row")) + 1
        assert world.send(number, body=status("WORKING", "More.")) == 200
        browser.do(f"rows {number}")
        assert browser.do(f"evaluate document.activeElement === document.querySelector('{selector}')")


def test_long_names_without_a_space_stay_inside_of_the_page(world: World) -> None:
    browser = world.browser
    long = "x" * 250
    markdown = (
        f"# {long}\n\n{long} `{long}`\n\n| {long} | {long} |\n|---|---|\n| {long} | {long} |\n\n- {long}\n\n```\n{long}"
    )
    assert world.send(1, body=history(long)) == 200
    assert world.send(2, body=artifact(long, {"text": markdown, "mediaType": "text/markdown"})) == 200
    assert world.send(3, body=status("INPUT_REQUIRED", long), jti=long) == 200
    assert world.send(4, aud=f"https://{long}.example/{long}") == 401
    browser.do("rows 4")
    browser.do("click #refused > summary")
    browser.do("click #refused .row summary")
    for place in ("#refused .row", ".rows .row:last-child"):
        browser.do(f"click {place} > details > summary" if place != "#refused .row" else f"wait {place} .checks")
        browser.do(f"click {place} .claims summary")
    browser.do("wait .rows .row:last-child .claims dl")
    look(browser, "long")
    assert browser.do("problems") == []


def test_the_page_shows_times_with_24_hours(world: World) -> None:
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
    assert text_of(browser, ".group > header h3") == "document Write about sailing 写一篇关于帆船的文章。"
    assert browser.do("texts .artifact:nth-child(2) .markdown :is(h3, h4, p)") == [
        *("Sailing", "Wind 风."),
        *("Water 水", "It carries."),
    ]
    browser.do("click .artifact:nth-child(2) button:has-text('As text')")
    assert browser.do("texts .artifact:nth-child(2) pre") == ["# Sailing\n\nWind 风.\n\n## Water 水\n\nIt carries.\n"]
    browser.do("click .artifact:nth-child(2) button[aria-pressed=true]")
    assert browser.do("count .artifact:nth-child(2) .markdown") == 1
    browser.do("click .artifact:nth-child(3) .data summary")
    assert "calm" in text_of(browser, ".artifact:nth-child(3) pre")
    assert text_of(browser, ".said") == "It is done."
    assert text_of(browser, ".gap").startswith("Event 2: not here.")
    assert browser.do("texts .facts button") == ["1 gap in the order of events"]
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
    browser.do("click .artifact button:has-text('Show all 9,000 characters')")
    browser.do("until document.querySelector('.artifact .markdown').textContent.length === 9000")
    assert browser.do("problems") == []


def test_a_flood_of_refused_requests_is_one_line_and_hides_nothing(world: World) -> None:
    browser = world.browser
    assert world.send(1, body=status("WORKING")) == 200
    assert world.send(2, aud="https://another.example/webhook") == 401
    assert world.deliver(replace(event(3, now=tell_time(), aud=AUDIENCE), body=b"{}")) == 401
    for _ in range(40):
        assert world.deliver(WebhookRequest((("Content-Type", "application/json"),), b"{}")) == 401
    browser.do("until document.querySelector('#refused summary').textContent.startsWith('42 refused requests')")
    assert browser.do("texts #refused > summary .badge") == ["no-signature 40", "wrong-audience 1", "wrong-body 1"]
    assert browser.do("count .group:not(.refused) .row") == 1
    assert "no-signature40, the newest 10 are kept" in browser.do(
        "evaluate document.querySelector('#refused').textContent"
    )
    assert browser.do("texts #filter .count") == ["43", "1", "0", "42"]
    assert browser.do("texts #forgotten") == ["Of 43 requests the newest are kept: 13."]
    look(browser, "flood")
    browser.do("click #refused > summary")
    browser.do("click #refused .row:has-text('audience') summary")
    browser.do("wait #refused details[open] .checks")  # they are made when the row has opened
    inside = text_of(browser, "#refused .row:has(details[open])")
    assert "ANSWERED 401" in inside.upper()
    assert browser.do("count #refused details[open] .checks .skipped") == 4
    browser.do("click #refused details[open] .claims summary")
    claimed = text_of(browser, "#refused details[open] .claims dl")
    assert "https://another.example/webhook" in claimed
    assert re.search(r"exp\s+\d{10} \(20\d\d-.*Z\)", claimed)
    look(browser, "refused")
    assert browser.do("problems") == []


def test_the_page_never_shows_content_as_markup(world: World) -> None:
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
    assert evil in text_of(browser, ".group > header h3")
    browser.do("click .group:last-child .row:nth-child(2) summary")
    browser.do("click .group:last-child .row:nth-child(2) .request summary")
    browser.do("wait .raw pre")
    assert evil in text_of(browser, ".raw pre")
    assert browser.do("count .group img, .group script, .group svg, .joined a, .rows a") == 0
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


def test_the_page_polls_if_the_receiver_cannot_stream(browser: Browser) -> None:
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
    browser.do("click #filter [data-filter=refused]")
    assert browser.do("count .group:not([hidden])") == 1
    browser.do("click #filter [data-filter=all]")
    browser.do("click #tasks li:last-child button")
    assert browser.do("count .row:not([hidden])") == 1
    assert browser.do("texts #filter .count") == ["1", "1", "0", "0"]
    browser.do("click #tasks li:last-child button")
    browser.do("fill #search :: EVIL.example")
    assert browser.do("texts #filter .count") == ["1", "0", "0", "1"]
    browser.do("fill #search :: nowhere")
    assert "nowhere" in text_of(browser, "#none")
    look(browser, "tokens")
    assert [problem.split("(")[0] for problem in browser.do("problems")] == [REFUSED]


def status_of(task: str) -> dict[str, Any]:
    return {"statusUpdate": {"taskId": task, "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}
