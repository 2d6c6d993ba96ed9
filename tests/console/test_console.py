"""The console in a real browser, in three widths, by day and by night. PICTURES=<folder> keeps what was seen."""

from __future__ import annotations

import base64
import json
import logging
import re
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain.circuit_breaker import FAILURE_THRESHOLD
from a2a_serverless.domain.model import Principal
from a2a_serverless.http.api import Console
from a2a_serverless.services.briefs import BRIEFS
from a2a_serverless_tools.local.dev_log import DevLog
from tests.browser import NEEDED, Browser, png, started
from tests.conformance.live import serving
from tests.console.talkers import AGENTS, EVIL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = NEEDED
CONSOLE = Console("my-agents", "http://127.0.0.1:8021/", internals=True)
STATE = "#task .badge"
TASKS_OF_BREAKER = (
    "fetch('breaker/tasks', { headers: { 'A2A-Version': '1.0' } })"
    ".then((answer) => answer.json()).then(({ tasks }) => tasks.length)"
)
WEBHOOKS = (
    "fetch(`tailor/tasks/${new URLSearchParams(location.search).get('task')}/deliveries`)"
    ".then((answer) => answer.json()).then(({ deliveries }) => deliveries.length)"
)

# Holds the answer to a request until it is released; ``held`` is done when it has come.
HELD = """(() => {
  const real = window.fetch;
  const [held, released, read] = [1, 2, 3].map(() => Promise.withResolvers());
  const frame = () => new Promise(requestAnimationFrame);
  window.held = held.promise;
  window.release = async () => { released.resolve(); await read.promise; await frame(); await frame(); };
  window.fetch = async (url, options) => {
    const answer = await real(url, options);
    if (!String(url).includes("%s")) return answer;
    held.resolve();
    await released.promise;
    window.fetch = real;
    setTimeout(read.resolve);
    return answer;
  };
})()""".replace("\n", " ")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with started(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A deployment that keeps the log lines of its runs as ``dev`` does."""
    log = DevLog(tmp_path_factory.mktemp("dev"))
    handler = log.handler()
    logging.getLogger().addHandler(handler)
    try:
        with serving(AGENTS, console=replace(CONSOLE, log_lines=log.of_task)) as url:
            yield url
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Browser]:
    yield from opened(browser, url)


def opened(browser: Browser, url: str) -> Iterator[Browser]:
    browser.do("scheme light")
    browser.do("size desktop")
    browser.do(f"open {url}/")
    browser.do("wait #card h2")
    yield browser
    browser.do("open about:blank")


class Refusing(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_error(401)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def refusing() -> Iterator[str]:
    """A receiver that refuses everything; gives its origin."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def choose(page: Browser, agent: str) -> None:
    page.do(f"click [data-agent={agent}]")
    page.do(f"wait [data-agent={agent}][aria-current]")
    page.do("wait #flow .empty")


def say(page: Browser, agent: str, text: str, state: str) -> None:
    choose(page, agent)
    page.do(f"fill #text :: {text}")
    page.do("click #send")
    become(page, state)


def become(page: Browser, state: str) -> None:
    page.do(f'wait {STATE}[data-state="{state}"]')


def look(page: Browser, name: str) -> None:
    """Nothing sticks out, and axe finds nothing serious, in three widths and both colours."""
    for size in ("desktop", "768", "360"):
        for scheme in ("light", "dark"):
            page.do(f"size {size}")
            page.do(f"scheme {scheme}")
            page.do(f"picture {name}-{size}-{scheme}")
            assert page.do("overflow") == 0, (name, size)
            assert page.do("serious") == []
    page.do("size desktop")
    page.do("scheme light")


def test_the_agents_and_the_card_of_the_first_are_shown_and_what_to_do(page: Browser) -> None:
    assert page.do("count #agents a") == len(AGENTS)
    assert page.do("texts #card h2") == ["Sailor"]
    assert "Write about sailing." in page.do("texts #card .skills")[0]
    assert "Nothing was said yet" in page.do("texts #flow")[0]
    look(page, "start")
    assert page.do("problems") == []


def test_a_message_is_streamed_and_artifacts_are_shown_as_what_they_are(page: Browser) -> None:
    choose(page, "sailor")
    page.do("click .example")
    page.do("click #send")
    become(page, "completed")
    document = "article:has(header:has-text('document.md'))"
    assert page.do(f"texts {document} .markdown h3") == ["Sailing 风"]
    assert page.do(f"count {document} td") == 4
    assert page.do(f"texts {document} li li") == ["check the halyard"]
    assert "2026. A year begins no list." in page.do(f"texts {document} p")
    assert page.do("evaluate document.querySelector('.markdown img').naturalWidth") == 480
    assert page.do("evaluate document.querySelector('figure img').naturalWidth") == 480
    page.do("wait details.data pre")
    assert '"crew": 3' in page.do("texts details.data pre")[0]
    assert page.do("texts details.data summary") == ["Data: 2 members"]
    assert page.do("texts .theirs strong") == ["Fair winds."]
    page.do("wait .waterfall .step")
    look(page, "completed")
    assert page.do("problems") == []


def test_the_timeline_has_states_steps_chunks_and_webhooks_with_their_attempts(page: Browser) -> None:
    choose(page, "sailor")
    page.do("click #show-hook")
    page.do("fill #hook-url :: http://127.0.0.1:1/hook")
    page.do("fill #hook-token :: t")
    page.do("fill #text :: hello")
    page.do("click #send")
    become(page, "completed")
    page.do("wait .waterfall .webhook[data-bad]")
    rows = page.do("texts .waterfall .label")
    assert {"outline", "draw the boat", "document.md", "boat.png", "127.0.0.1:1"} <= set(rows)
    assert (rows[0], rows[-1]) == ("runs", "clients saw")
    page.do("click .waterfall summary:has-text('runs')")
    page.do("wait .waterfall table")
    assert "the task has ended" in page.do("texts .waterfall table")[0]
    page.do("click .delivery summary")
    assert "connect" in page.do("texts .delivery table")[0]
    look(page, "timeline")
    assert page.do("problems") == []


def test_a_step_opens_with_its_output_or_error_and_stays_open(page: Browser) -> None:
    say(page, "breaker", "a hood", "failed")
    page.do("wait .waterfall details")
    page.do("click .waterfall summary:has-text('thread')")
    page.do("wait .inside .output pre")
    assert page.do("texts .inside .output pre") == ["drawn"]
    assert "a digest of it only" in page.do("texts details[open] > .inside")[0]
    page.do("click .waterfall summary:has-text('sew: TaskFailed')")
    page.do("wait .inside:has-text('The needle broke') pre")
    assert page.do("texts .inside .output h3") == ["Output", "Error of try 1", "Log"]
    look(page, "inside")
    assert page.do("problems") == []


def test_a_user_opens_a_step_that_keeps_the_focus_while_the_task_runs(page: Browser) -> None:
    say(page, "slow", "Sew slowly.", "working")
    page.do("wait .waterfall details")
    page.do("click .waterfall summary:has-text('cut')")
    page.do("wait .inside .output pre")
    page.do("evaluate document.querySelector('.waterfall').dataset.old = '1'")
    page.do("wait .waterfall:not([data-old]) details[open] .output pre")
    assert "cut" in page.do("evaluate document.activeElement.innerText")
    page.do("click #cancel")
    become(page, "canceled")
    assert page.do("problems") == []


def test_a_call_opens_with_the_called_agents_task(page: Browser) -> None:
    say(page, "master", "A coat, please.", "completed")
    page.do("wait .waterfall details")
    page.do("click .waterfall summary:has-text('have it sewn')")
    page.do("wait .inside a")
    assert "The seam holds." in page.do("texts .inside .output pre")[0]
    look(page, "call")
    page.do("click .inside a")
    page.do("wait [data-agent=mender][aria-current]")
    become(page, "completed")
    assert page.do("texts .mine .text") == ["a seam for A coat, please."]
    assert page.do("problems") == []


def test_a_deployment_that_shows_no_internals_says_so(browser: Browser) -> None:
    with serving(AGENTS, console=Console()) as url:
        for page in opened(browser, url):
            assert page.do("texts #deployment") == ["Agents"]
            say(page, "sailor", "hello", "completed")
            page.do("wait .waterfall details")
            page.do("click .waterfall summary:has-text('outline')")
            page.do("wait .inside .note")
            assert "does not show what is inside" in page.do("texts details[open] > .inside")[0]
            placeholder = "evaluate document.getElementById('hook-url').placeholder"
            assert page.do(placeholder) == "https://hooks.example.com/webhook", "it knows of no receiver"
            say(page, "courier", "Deliver a parcel.", "waiting")
            page.do("wait #why summary")
            page.do("click #why summary")
            page.do("wait #why .inside .note")
            assert "does not show it" in page.do("texts #why .inside")[0]
            assert page.do("problems") == []


def test_a_webhook_that_its_host_holds_says_until_when_and_why(page: Browser) -> None:
    for number in range(FAILURE_THRESHOLD + 1):
        choose(page, "sailor")
        page.do("click #show-hook")
        page.do("fill #hook-url :: http://127.0.0.1:2/hook")
        page.do(f"fill #text :: boat {number}")
        page.do("click #send")
        become(page, "completed")
    page.do("wait .delivery summary")
    told = page.do("texts .delivery summary")[0]
    assert re.search(r"host paused until [0-9:]{8} after [0-9]+ unanswered, nothing delivered", told), told
    page.do("wait #why .wait")
    held = page.do("texts #why .wait")[0]
    assert re.search(r"No webhook is sent to 127.0.0.1:2: it has not answered [0-9]+ times in a row", held), held
    look(page, "held")
    assert page.do("problems") == []


def test_a_webhook_is_sent_with_one_message_and_not_with_the_answer_to_a_question(page: Browser) -> None:
    choose(page, "tailor")
    page.do("click #show-hook")
    assert page.do("evaluate document.getElementById('hook-url').placeholder") == "http://127.0.0.1:8021/webhook"
    assert "Create webhook token" in page.do("texts #extra-hook")[0]
    assert "another webhook" not in page.do("texts #extra-hook")[0]
    page.do("fill #text :: a coat")
    page.do("click #send")
    assert "The webhook has no URL" in page.do("texts #problem")[0]
    look(page, "webhook")
    page.do("fill #hook-url :: http://127.0.0.1:1/hook")
    page.do("fill #hook-token :: t")
    page.do("select #hook-events :: results")
    page.do("click #tab-request")
    assert "urn:a2a-serverless:webhook-results:1" in page.do("texts #request")[0]
    page.do("click #tab-timeline")
    page.do("click #send")
    become(page, "input-required")
    assert page.do("count #extra-hook:not([hidden])") == 0
    page.do("fill #text :: red")
    page.do("click #send")
    become(page, "completed")
    assert page.do(f"evaluate {WEBHOOKS}") == 1
    page.do("click #show-hook")
    assert page.do("evaluate document.getElementById('hook-url').value") == ""
    assert page.do("evaluate document.getElementById('hook-events').value") == ""
    assert page.do("problems") == []


def test_a_question_whose_time_is_over_is_left_without_a_click(page: Browser) -> None:
    say(page, "hasty", "A coat.", "completed")
    page.do('until document.querySelector("#flow").innerText.includes("Too late.")')
    page.do("until document.getElementById('why').hidden")
    assert page.do("problems") == []


def test_a_task_that_waits_says_why_and_since_when_at_its_head(page: Browser) -> None:
    say(page, "tailor", "a coat", "input-required")
    page.do("wait #why .wait")
    assert re.fullmatch(r"Waits for your answer since [0-9:]{8} \(for [0-9]+ s\)\. *", page.do("texts #why .wait")[0])
    assert page.do("texts #timeline .budget") == ["Budget: usd 0 of 2"]
    page.do("fill #text :: red")
    page.do("click #send")
    become(page, "completed")
    page.do("until document.getElementById('why').hidden")
    assert page.do("problems") == []


def test_an_event_that_a_task_waits_for_is_sent_from_its_head(page: Browser) -> None:
    say(page, "courier", "Deliver a parcel.", "waiting")
    page.do("wait #tasks li:nth-child(1) .badge[data-state=waiting]")
    assert page.do("texts #tasks li:nth-child(1) .reason") == ["event door opened"]
    page.do("wait #why .wait")
    told = page.do("texts #why .wait")[0]
    assert re.search(r"the event “door opened” from outside since .* It gives up at .* \(in (1 h|59 min)", told), told
    page.do("click #why summary")
    page.do("wait #why textarea")
    assert "/events/" in page.do("texts #why .event code")[0]
    look(page, "event")
    page.do('fill #why textarea :: {"door": 3}')
    page.do("click #why .primary")
    become(page, "completed")
    assert "Delivered: {'door': 3}" in page.do("texts .theirs")[-1]
    page.do("until document.getElementById('why').hidden")
    assert page.do("problems") == []


def test_the_bar_of_a_run_ends_where_its_task_is_suspended(page: Browser) -> None:
    say(page, "napper", "Nap.", "waiting")
    page.do("wait #why .wait")
    told = page.do("texts #why .wait")[0]
    assert re.search(r"Sleeps in “nap” since .* It goes on at .* \(in (9|10) min", told), told
    page.do("wait .waterfall .wait")
    assert page.do("texts .waterfall .label") == ["runs", "sleep nap", "clients saw"]
    page.do("click .waterfall summary")
    page.do("wait .waterfall table")
    assert "it waits" in page.do("texts .waterfall table")[0]
    page.do("click #cancel")
    become(page, "canceled")
    page.do("until !document.querySelector('.waterfall').innerText.includes('…')")
    assert "sleep nap" in page.do("texts .waterfall .label"), "a wait that is over keeps its bar"
    assert page.do("problems") == []


def test_a_webhook_of_a_task_that_goes_on_is_one_more_and_a_refused_one_is_a_draft_again(page: Browser) -> None:
    say(page, "tailor", "a coat", "input-required")
    page.do("click #show-hook")
    assert "This adds another webhook to the task." in page.do("texts #extra-hook")[0]
    page.do("fill #hook-url :: ftp://127.0.0.1/hook")
    page.do("fill #text :: red")
    page.do("click #send")
    page.do("wait #problem:not([hidden])")
    page.do("wait #extra-hook:not([hidden])")
    assert page.do("evaluate document.getElementById('hook-url').value") == "ftp://127.0.0.1/hook"
    page.do("fill #hook-url :: http://127.0.0.1:1/hook")
    page.do("click #send")
    become(page, "completed")
    assert page.do(f"evaluate {WEBHOOKS}") == 1


def test_a_question_is_answered_in_its_task_and_a_further_message_goes_on_in_the_conversation(
    page: Browser,
) -> None:
    say(page, "tailor", "一件大衣", "input-required")
    assert "什么颜色" in page.do("texts [data-asks]")[0]
    assert page.do("texts #send") == ["Answer"]
    look(page, "question")
    page.do("fill #text :: red")
    page.do("press Enter")
    become(page, "completed")
    assert "a red coat" in page.do('texts article:has-text("coat.txt")')[0]
    page.do("fill #text :: one more")
    page.do("click #send")
    become(page, "input-required")
    assert page.do("count .turn") == 2
    page.do("wait #tasks a:nth-child(1)")
    page.do("click #fresh")
    assert page.do("count .turn") == 0
    assert page.do("problems") == []


def test_attempts_of_a_webhook_after_the_end_are_not_the_tasks_time_and_a_refusal_says_where_its_reason_is(
    page: Browser,
) -> None:
    with refusing() as hook:
        choose(page, "tailor")
        page.do("click #show-hook")
        page.do(f"fill #hook-url :: {hook}/hook")
        page.do("fill #text :: a coat")
        page.do("click #send")
        become(page, "input-required")
        page.do("fill #text :: red")
        page.do("click #send")
        become(page, "completed")
        page.do("wait .delivery:has-text('failing: 1 attempt, next ')")
        took = page.do("texts .took-in-all")[0].partition(" events")[0]
        page.do("wait .delivery:has-text('failing: 2 attempts, next ')")
        assert page.do("texts .took-in-all")[0].partition(" events")[0] == took
        assert "nothing delivered, URL trusted" in page.do("texts .delivery summary")[0]
        page.do("click .delivery summary")
        assert "Usually its audience, issuer, keys or clock is wrong" in page.do("texts .delivery")[0]
        assert f"On the local stack: {hook}/ and a2a-serverless logs receiver." in page.do("texts .delivery")[0]
        look(page, "refused-webhook")
        assert page.do("problems") == []


def test_an_answer_without_a_task_is_shown_as_a_message(page: Browser) -> None:
    say(page, "oracle", "hello", "message, no task")
    assert "You said: hello" in page.do("texts .theirs")[0]
    page.do("wait #timeline:has-text('There is no task, so there is no timeline.')")
    assert page.do("count #cancel") == 0
    look(page, "message")
    assert page.do("problems") == []


def test_the_page_says_which_deployment_it_is_and_links_to_the_inbox(page: Browser) -> None:
    assert page.do("texts #deployment") == ["my-agents"]
    assert page.do("evaluate document.title") == "Sailor · my-agents"
    assert page.do("texts nav a") == ["Inbox", "OpenAPI"]
    assert page.do("evaluate document.querySelector('nav a').href") == CONSOLE.inbox


def test_the_list_has_the_tasks_of_all_agents_with_their_first_words_and_opens_each(page: Browser) -> None:
    say(page, "breaker", "a lost button", "failed")
    say(page, "tailor", "# A blue coat", "input-required")
    first = "#tasks li:nth-child(1)"
    page.do(f"wait {first} .badge[data-state=input-required]")
    assert page.do(f"texts {first} .words") == ["A blue coat"]
    assert page.do("texts #tasks li:nth-child(2) .words") == ["a lost button"]
    assert page.do("texts #tasks li:nth-child(2) .of") == ["Breaker"]
    assert page.do("texts #tasks li:nth-child(2) .reason") == ["The needle broke on 'a lost button'."]
    page.do("evaluate document.querySelector('#tasks li:nth-child(2) a').focus()")
    page.do("press Enter")
    page.do("wait [data-agent=breaker][aria-current]")
    become(page, "failed")
    assert page.do("texts #why .failure")[0].startswith("Failed: The needle broke on 'a lost button'.\n")
    assert "The step “sew” raised TaskFailed." in page.do("texts #why .failure")[0]
    page.do("wait #tasks li:nth-child(2) [aria-current]:focus")
    assert page.do("problems") == []


def test_older_tasks_follow_when_they_are_asked_for(page: Browser) -> None:
    for number in range(BRIEFS + 1):
        message = {"messageId": f"older-{number}", "role": "ROLE_USER", "parts": [{"text": f"boat {number}"}]}
        body = json.dumps({"message": message, "configuration": {"returnImmediately": True}})
        sent = {"method": "POST", "body": body, "headers": {"A2A-Version": "1.0", "Content-Type": "application/json"}}
        page.do(f"evaluate fetch('sailor/message:send', {json.dumps(sent)}).then((answer) => answer.json())")
    page.do("click #reload")
    page.do("wait #more:not([hidden])")
    page.do("click #more")
    page.do(f"wait #tasks li:nth-child({BRIEFS + 1})")
    assert page.do("evaluate document.activeElement.closest('#tasks') !== null"), "the focus is on the first older one"
    assert page.do("problems") == []


def test_the_list_shows_the_time_of_each_task_and_the_whole_description_of_each_agent(page: Browser) -> None:
    say(page, "tailor", "a coat", "input-required")
    page.do("wait #tasks .badge[data-state=input-required]")
    cut = "[...document.querySelectorAll('#tasks a')].filter((one) => one.scrollWidth > one.clientWidth).length"
    assert page.do(f"evaluate {cut}") == 0
    assert (
        page.do("evaluate document.querySelector('[data-agent=tailor]').title")
        == "Makes coats, and asks for their colour."
    )


def test_a_task_is_cancelled_and_opened_again_by_its_address(page: Browser) -> None:
    say(page, "sleeper", "sleep", "working")
    page.do("wait .theirs")
    page.do("click #cancel")
    become(page, "canceled")
    address = page.do("evaluate location.href")
    page.do(f"open {address}")
    become(page, "canceled")
    assert "This takes a while." in page.do("texts #flow")[0]
    page.do("wait .waterfall .run")
    assert page.do("count #timeline :text('Progress')") == 0, "the task has ended"
    assert page.do("problems") == []


def test_a_task_that_goes_on_is_followed_when_it_is_opened(page: Browser) -> None:
    say(page, "sleeper", "sleep", "working")
    page.do("wait .theirs")
    page.do(f"open {page.do('evaluate location.href')}")
    page.do("wait .live")
    assert page.do("evaluate document.querySelector('.theirs progress').value") == 40
    assert "40 %" in page.do("texts .theirs")[0]
    page.do("click #cancel")
    become(page, "canceled")
    assert page.do("problems") == []


def test_a_failed_task_is_retried_by_its_button_as_a_new_task(page: Browser) -> None:
    say(page, "breaker", "a hem", "failed")
    failed = page.do("evaluate new URLSearchParams(location.search).get('task')")
    before = page.do(f"evaluate {TASKS_OF_BREAKER}")
    assert page.do("texts #retry") == ["Retry"]
    look(page, "retry")
    page.do("evaluate document.getElementById('retry').click() ?? document.getElementById('retry').click()")
    become(page, "completed")
    repeated = page.do("evaluate new URLSearchParams(location.search).get('task')")
    assert repeated != failed
    assert (page.do("count .turn"), page.do("count #retry")) == (2, 0)
    page.do("wait .turn:nth-child(2) .artifact")
    assert "The seam holds." in page.do("texts .theirs")[-1]
    page.do("wait .waterfall")
    look(page, "retried")
    assert page.do(f"evaluate {TASKS_OF_BREAKER}") == before + 1, "two presses, one new task"
    page.do(f"open {page.do('evaluate location.href')}")
    become(page, "completed")
    assert page.do("problems") == []


def test_errors_are_said_and_a_failed_task_says_why(page: Browser) -> None:
    say(page, "breaker", "a seam", "failed")
    assert "The needle broke on 'a seam'." in page.do("texts .theirs")[0]
    page.do("click #fresh")
    page.do("click #send")
    assert "Write a message" in page.do("texts #problem")[0]
    page.do("click #show-data")
    page.do("fill #data :: {nope")
    page.do("click #send")
    assert "not JSON" in page.do("texts #problem")[0]
    look(page, "failed")
    assert page.do("problems") == []


def test_a_message_that_is_refused_is_a_draft_again(page: Browser) -> None:
    choose(page, "tailor")
    page.do("click #show-data")
    page.do("fill #data :: [1]")
    page.do("fill #text :: a coat")
    page.do("click #send")
    page.do("wait #problem:not([hidden])")
    assert "must be one of text/plain, not application/json" in page.do("texts #problem")[0]
    assert page.do("evaluate document.getElementById('text').value") == "a coat"
    assert page.do("count .turn") == 0
    assert [one for one in page.do("problems") if "400" not in one] == []


def test_a_task_that_is_not_there_is_said_in_the_place_of_the_conversation(page: Browser, url: str) -> None:
    page.do(f"open {url}/?agent=sailor&task=none")
    page.do("wait #flow .absent")
    assert "This agent has no task none of yours." in page.do("texts #flow")[0]
    assert page.do("count #problem:not([hidden])") == 0
    look(page, "unknown-task")
    page.do("click #flow .absent a")
    page.do("wait #flow .empty")
    assert page.do("evaluate location.search") == "?agent=sailor"
    assert all("404" in one for one in page.do("problems"))


def test_an_agent_that_is_not_there_is_said_with_the_way_out(page: Browser, url: str) -> None:
    page.do(f"open {url}/?agent=nobody%3Cb%3E&task=none")
    page.do("wait #no-agent:not([hidden])")
    assert "This deployment has no agent “nobody<b>”." in page.do("texts #no-agent")[0]
    assert page.do("count #talk:not([hidden])") == 0
    look(page, "unknown-agent")
    page.do("click #no-agent a")
    page.do("wait [data-agent=sailor][aria-current]")
    assert page.do("count #no-agent:not([hidden])") == 0
    assert page.do("problems") == []


def test_files_and_data_are_sent(page: Browser, tmp_path: Path) -> None:
    picture = tmp_path / "海 sea.png"
    picture.write_bytes(base64.b64decode(png(400, 250, level=0)))
    (tmp_path / "big.bin").write_bytes(b"\0" * 4_000_000)
    choose(page, "sailor")
    page.do(f"upload #file :: {picture} :: {tmp_path / 'big.bin'}")
    page.do("wait #files li")
    assert "too big" in page.do("texts #problem")[0]
    page.do("click #show-data")
    page.do('fill #data :: {"knots": 12}')
    page.do("fill #text :: see")
    page.do("click #send")
    become(page, "completed")
    assert "3 parts read" in page.do("texts .theirs")[-1]
    assert page.do("evaluate document.querySelector('.mine img').naturalWidth") == 400
    look(page, "files")
    assert page.do("problems") == []


def test_content_never_becomes_markup_and_asks_no_other_host(page: Browser) -> None:
    say(page, "hostile", EVIL, "completed")
    assert page.do("count main script, main iframe, main svg, main [onclick], main [onerror]") == 0
    assert (
        page.do("evaluate [...document.querySelectorAll('main a')].filter((a) => !/^https?:/.test(a.href)).length") == 0
    )
    shown = page.do("texts main")[0]
    assert EVIL in shown
    assert "<202e>gpj.exe<200b>" in shown
    assert "not a picture" in shown
    look(page, "hostile")
    page.do("wait .waterfall li:nth-child(2) summary")
    page.do("click .waterfall li:nth-child(2) summary")
    page.do("wait .inside .output")
    inside = page.do("texts details[open] > .inside")[0]
    assert EVIL in inside
    assert "<202e>gpj.exe<200b>" in inside
    assert page.do("count #timeline script, #timeline img, #tasks img, #why img") == 0
    page.do("click details.data summary")
    page.do("click #tab-request")
    assert page.do("problems") == []


def test_a_failed_step_and_its_task_have_their_log_lines_and_the_traceback(page: Browser) -> None:
    say(page, "ripper", "a sleeve", "failed")
    page.do("wait .waterfall details")
    page.do("click .waterfall summary:has-text('rip: ValueError')")
    page.do("wait .inside .log")
    inside = page.do("texts .waterfall details[open] > .inside")[0]
    assert "pulling at a sleeve" in inside
    assert 'raise ValueError(f"torn: {text}")' in inside
    assert "begins" not in inside, "it was logged outside of the step"
    page.do("click #why .traceback summary")
    page.do("wait #why .traceback pre")
    assert "ValueError: torn: a sleeve" in page.do("texts #why .traceback pre")[0]
    look(page, "step-log")
    page.do("click #tab-log")
    page.do("wait #log .log li:nth-child(3)")
    assert [text.split(" ")[1] for text in page.do("texts #log .log li")] == ["WARNING", "WARNING", "ERROR"]
    assert "pulling at a sleeve run 1, step rip" in page.do("texts #log .log li")[1]
    look(page, "log")
    assert page.do("problems") == []


def test_the_log_and_the_events_are_those_of_the_open_task_however_late_an_answer_comes(page: Browser) -> None:
    tasks = []
    for text in ("a sleeve", "a collar"):
        say(page, "ripper", text, "failed")
        tasks.append(page.do("evaluate new URLSearchParams(location.search).get('task')"))
        page.do(f'wait #tasks [data-task="{tasks[-1]}"][aria-current]')
        page.do("click #fresh")
    first, second = (f'#tasks [data-task="{task}"]' for task in tasks)
    for tab, shown in (("log", "#log .log"), ("events", "#events .events")):
        page.do(f"click #tab-{tab}")
        page.do(f"wait #{tab} .empty")
        page.do(f"click {second}")
        page.do(f"wait {shown}")
        page.do("click #fresh")
        page.do(f"wait #{tab} .empty")
        page.do(f"click {second}")
        page.do(f"wait {shown} li:nth-child(3)")
        page.do(f"evaluate {HELD % f'/-/{tab}?agent=ripper&task={tasks[0]}'}")
        page.do(f"click {first}")
        page.do(f"wait {first}[aria-current]")
        page.do(f"wait {STATE}[data-state=failed]")
        page.do("evaluate held")
        page.do(f"click {second}")
        page.do(f"wait {second}[aria-current]")
        page.do(f"wait {shown} li:nth-child(3)")
        text = page.do(f"texts #{tab}")
        page.do("evaluate release()")
        assert page.do(f"texts #{tab}") == text
        page.do("click #fresh")
    assert page.do("problems") == []


def test_a_page_that_cannot_read_the_log_says_which_command_does(browser: Browser) -> None:
    with serving(AGENTS, console=CONSOLE) as url:
        for page in opened(browser, url):
            say(page, "ripper", "a sleeve", "failed")
            task = page.do("evaluate new URLSearchParams(location.search).get('task')")
            assert page.do("count .traceback") == 0
            page.do("click #tab-log")
            page.do("wait #log code")
            assert page.do("texts #log code") == [f"a2a-serverless logs --task {task}"]
            look(page, "no-log")
            assert page.do("problems") == []


def test_the_events_of_a_task_are_shown_as_they_are_sent_and_new_ones_are_added(page: Browser) -> None:
    page.do("click #tab-events")
    assert page.do("texts #events") == ["There is no task yet."]
    say(page, "tailor", "a coat", "input-required")
    page.do("wait #events li:nth-child(3)")
    assert page.do("texts #events summary strong") == ["submitted", "working", "input-required"]
    page.do("click #events li:nth-child(1) summary")
    page.do("wait #events li:nth-child(1) pre")
    event = json.loads(page.do("texts #events li:nth-child(1) pre")[0])
    assert event["received"]["parts"] == [{"text": "a coat"}]
    assert event["sent"]["statusUpdate"]["status"]["state"] == "TASK_STATE_SUBMITTED"
    look(page, "events")
    page.do("fill #text :: red")
    page.do("click #send")
    become(page, "completed")
    page.do("wait #events li:has-text('completed')")
    assert page.do("count #events li:nth-child(1) details[open]") == 1, "what was opened stays open"
    page.do("click #events .quiet:has-text('Copy all')")
    page.do("wait #events .quiet:has-text('Copied')")
    copied = json.loads(page.do("evaluate navigator.clipboard.readText()"))
    assert [one["eventNumber"] for one in copied] == [*range(1, page.do("count #events li") + 1)]
    assert page.do("problems") == []


def test_the_list_is_narrowed_by_agent_state_and_words_and_finds_an_id(page: Browser) -> None:
    say(page, "oracle", "who is there", "message, no task")
    say(page, "booker", "a trip to Oslo", "input-required")
    booked = page.do("evaluate new URLSearchParams(location.search).get('task')")
    say(page, "tailor", "a coat for Oslo", "input-required")
    page.do("select #filter-agent :: booker")
    page.do("until [...document.querySelectorAll('#tasks a')].every((one) => one.dataset.of === 'booker')")
    page.do("select #filter-agent :: ")
    page.do("fill #filter-text :: coat for OSLO")
    page.do("until document.querySelector('#tasks').innerText.includes('coat for Oslo')")
    page.do("until document.querySelectorAll('#tasks a').length === 1")
    page.do("select #filter-state :: failed")
    page.do("wait #no-task:not([hidden])")
    assert page.do("texts #no-task") == ["No task matches."]
    look(page, "filters")
    page.do("select #filter-state :: ")
    page.do(f"fill #filter-text :: {booked}")
    page.do(f"wait #tasks a[data-task='{booked}']")
    assert page.do("count #tasks a") == 1
    page.do("click #tasks a")
    page.do("wait [data-agent=booker][aria-current]")
    become(page, "input-required")
    assert page.do("problems") == []


def test_a_question_for_an_approval_has_a_button_for_each_answer(page: Browser) -> None:
    say(page, "booker", "Book a flight.", "input-required")
    page.do("wait #decide:not([hidden])")
    assert page.do("count #reply:not([hidden])") == 0
    look(page, "approval")
    page.do("click #approve")
    become(page, "completed")
    assert page.do("texts .mine .text") == ["Book a flight.", "yes"]
    assert "Booked." in page.do("texts .theirs")[-1]
    assert page.do("count #decide:not([hidden])") == 0
    page.do("click #fresh")
    page.do("fill #text :: Book a flight.")
    page.do("click #send")
    page.do("wait #decide:not([hidden])")
    page.do("fill #text :: too dear")
    page.do("click #deny")
    become(page, "completed")
    assert "Not booked: too dear" in page.do("texts .theirs")[-1]
    assert page.do("evaluate document.getElementById('text').value") == ""
    assert page.do("problems") == []


def test_the_axis_is_linear_and_its_cuts_are_drawn(page: Browser) -> None:
    say(page, "tailor", "a coat", "input-required")
    page.do("until document.querySelectorAll('.waterfall li .cut').length > 0")
    page.do("wait .took-in-all:has-text('Cut out, because nothing happened')")
    widths = (
        "['queued', 'run'].map((kind) => document.querySelector(`.waterfall .span.${kind}`))"
        ".map((node) => node.style.width.replace('%', '') / Number(node.title.match(/([0-9]+) ms/)[1]))"
    )
    queued, run = page.do(f"evaluate {widths}")
    assert abs(queued - run) < 0.5 * max(queued, run), "a millisecond is as wide in the queue as in a run"
    assert page.do("problems") == []


def test_a_user_sends_a_message_and_reads_the_timeline_by_keyboard_alone(page: Browser) -> None:
    page.do("press Tab")
    page.do("press Enter")
    for _ in range(30):
        if page.do("evaluate document.activeElement.id") == "text":
            break
        page.do("press Tab")
    page.do("type by keyboard")
    page.do("press Shift+Enter")
    page.do("type alone")
    page.do("press Enter")
    become(page, "completed")
    assert "by keyboard\nalone" in page.do("texts .mine")[0]
    for _ in range(60):
        if page.do("evaluate document.activeElement.id") == "tab-timeline":
            break
        page.do("press Tab")
    for tab in ("events", "log"):
        page.do("press ArrowRight")
        page.do(f"wait #{tab}:not([hidden])")
    page.do("press ArrowRight")
    page.do("wait #request .code")
    page.do("press ArrowRight")
    page.do("wait #timeline:not([hidden])")
    assert page.do("problems") == []


PROGRAMS = {
    "curl": ["bash", "-c"],
    "Python": [sys.executable, "-c"],
    "JavaScript": ["node", "--input-type=module", "-e"],
}


@pytest.mark.parametrize("language", PROGRAMS)
def test_the_request_can_be_copied_and_run(page: Browser, language: str) -> None:
    choose(page, "sailor")
    page.do('fill #text :: it\'s "quoted" \\ $HOME `date` 你好')
    page.do("click #tab-request")
    page.do(f"click #request .choice button:has-text('{language}')")
    look(page, f"request-{language}")
    page.do("click #request .quiet")
    page.do("wait #request .quiet:has-text('Copied')")
    program = page.do("evaluate navigator.clipboard.readText()")
    command = PROGRAMS[language]
    assert shutil.which(command[0])
    ran = subprocess.run([*command, program], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    assert "TASK_STATE_COMPLETED" in ran.stdout, (program, ran.stderr)
    assert "$HOME `date` 你好" in ran.stdout


def test_a_deployment_with_sign_in_asks_for_a_key_and_shows_nothing_without(browser: Browser) -> None:
    with serving(AGENTS, console=CONSOLE, callers={"a2a_key": Principal("t", "alice")}) as url:
        for page in opened(browser, url):
            page.do("wait #dialog[open]")
            look(page, "sign-in")
            assert page.do("count #recent:not([hidden])") == 0
            page.do("fill #key :: a2a_key")
            page.do("press Enter")
            page.do("wait #recent:not([hidden])")
            say(page, "sailor", "hello", "completed")
            page.do("click #tab-request")
            assert "a2a_key" not in page.do("texts #request")[0]
            page.do("click #sign-in")
            page.do("wait #dialog[open]")


def test_an_agents_base_url_leads_a_browser_to_its_page(page: Browser, url: str) -> None:
    page.do(f"open {url}/tailor")
    page.do("wait [data-agent=tailor][aria-current]")
    assert page.do("evaluate location.search") == "?agent=tailor"


@pytest.mark.parametrize("address", ["", "/", "?agent=tailor"])
def test_in_a_deployment_its_address_needs_no_slash_at_the_end(browser: Browser, address: str) -> None:
    with serving(AGENTS, console=CONSOLE, stage="/live") as url:
        browser.do(f"open {url}{address}")
        browser.do("wait #card h2")
        assert browser.do("evaluate location.href").startswith(f"{url}/")
        assert browser.do("texts #card h2") == ["Tailor 裁缝" if address.endswith("tailor") else "Sailor"]
        browser.do("open about:blank")


def test_without_agents_the_page_says_where_to_name_them(browser: Browser) -> None:
    with serving([], console=CONSOLE) as url:
        browser.do(f"open {url}/")
        browser.do("wait #none:not([hidden])")
        look(browser, "no-agents")
        browser.do("open about:blank")
