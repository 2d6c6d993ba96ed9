"""Events from outside: an address, the request to it, and the task that waits for it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pytest

from a2a_serverless import CallbackRequest, Task, TaskState
from a2a_serverless.services.callbacks import find_event_address, store_event
from a2a_serverless.testing import AgentTestHarness
from tests.echo import agent_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless import TaskContext
    from a2a_serverless.store.task_log import TaskLog

HOUR_S = 3600


class Payment:
    """An agent that gives its address to a payment provider, and waits for the payment."""

    def __init__(self, timeout_s: float | None = None) -> None:
        self.urls: list[str] = []
        self.charges: list[str] = []
        self.timeout_s = timeout_s
        self.agent = agent_of(self.work)

    async def work(self, task: TaskContext) -> str:
        paid = await task.callback("paid")
        self.urls.append(paid.url)
        await task.step("charge", self.charge, paid.url)
        try:
            request = await paid.received(self.timeout_s)
        except TimeoutError:
            await task.sleep("afterwards", HOUR_S)
            return "not paid"
        return f"{request.json()} {dict(sorted(request.headers.items()))} {int(request.received_at.timestamp() * 1000)}"

    async def charge(self, url: str) -> None:
        self.charges.append(url)


def waiting(payment: Payment) -> tuple[AgentTestHarness, Task]:
    harness = AgentTestHarness(payment.agent)
    task = harness.begin("a lamp")
    assert isinstance(task, Task)
    harness.settle(60_000)
    return harness, task


def test_a_post_to_the_address_resumes_the_task_with_what_was_sent() -> None:
    payment = Payment()
    harness, task = waiting(payment)
    harness.wait(3 * HOUR_S * 1000)
    runs, now = len(harness.runs), harness.now
    headers = {"Content-Type": "text/plain", "Stripe-Signature": "t=1", "Authorization": "secret", "Cookie": "a=b"}
    assert harness.send_event(payment.urls[0], '{"amount": 20}', headers) == 200
    harness.settle()
    allowed = {"content-type": "text/plain", "stripe-signature": "t=1"}
    assert harness.reply(task.id).said == f"{{'amount': 20}} {allowed} {now}"
    assert (len(harness.runs) - runs, len(payment.charges), len(set(payment.urls))) == (1, 1, 1)
    assert harness.runs[-1][1] - now < 2000


def test_the_same_body_again_is_taken_and_another_one_is_refused() -> None:
    payment = Payment()
    harness, task = waiting(payment)
    assert [harness.send_event(payment.urls[0], body) for body in ("1", "1", "2")] == [200, 200, 409]
    harness.settle()
    assert harness.reply(task.id).said.startswith("1 ")
    assert harness.send_event(payment.urls[0], "1") == 404, "the task has ended"
    assert harness.send_event("https://host/events/unknown", "1") == 404


def test_an_event_that_comes_before_the_agent_waits_for_it_is_there_when_it_does() -> None:
    class Quick(Payment):
        async def charge(self, url: str) -> None:
            assert harness.send_event(url, '"paid"') == 200
            await asyncio.sleep(5)

    payment = Quick()
    harness = AgentTestHarness(payment.agent)
    assert harness.send("a lamp").said.startswith("paid ")


def test_an_event_after_the_time_is_stored_and_a_later_wait_gets_it() -> None:
    async def work(task: TaskContext) -> str:
        paid = await task.callback("paid")
        urls.append(paid.url)
        late = 0
        while True:
            try:
                return f"{(await paid.received(HOUR_S)).body.decode()} after {late}"
            except TimeoutError:
                late += 1

    urls = list[str]()
    harness = AgentTestHarness(agent_of(work))
    task = harness.begin("go")
    assert isinstance(task, Task)
    harness.settle(2500 * HOUR_S)
    harness.send_event(urls[0], "paid")
    harness.settle()
    assert harness.reply(task.id).said == "paid after 2"


def test_an_event_that_is_late_is_never_returned_by_the_wait_that_timed_out() -> None:
    payment = Payment(timeout_s=60)
    harness, task = waiting(payment)
    harness.settle(60_000)
    assert harness.send_event(payment.urls[0], "1") == 200
    harness.settle()
    assert harness.reply(task.id).said == "not paid"


def test_an_address_stays_as_it_is_when_the_deployment_gets_another_one() -> None:
    payment = Payment()
    harness, task = waiting(payment)
    registry = replace(harness.engine.registry, base_url="https://new.example.com")
    harness.engine = replace(harness.engine, registry=registry)
    assert harness.send_event(payment.urls[0], "1") == 200
    harness.settle()
    assert harness.reply(task.id).said.startswith("1 ")
    assert len(set(payment.urls)) == 1


def test_the_same_body_again_costs_no_run() -> None:
    payment = Payment(timeout_s=60)
    harness, _ = waiting(payment)
    harness.settle(120_000)
    runs = []
    for _ in range(3):
        assert harness.send_event(payment.urls[0], "1") == 200
        harness.settle(60_000)
        runs.append(len(harness.runs))
    assert runs[0] == runs[2]


def test_an_address_takes_ten_requests_a_minute() -> None:
    payment = Payment()
    harness, _ = waiting(payment)
    assert [harness.send_event(payment.urls[0], str(number)) for number in range(12)] == [200, *[409] * 10, 429]
    harness.now += 60_000
    assert harness.send_event(payment.urls[0], "0") == 200


def test_the_second_use_of_a_name_is_another_address() -> None:
    async def work(task: TaskContext) -> str:
        both = [await task.callback("paid"), await task.callback("paid")]
        urls[:] = [one.url for one in both]
        return str([request.json() for request in await asyncio.gather(*(one.received() for one in both))])

    urls = list[str]()
    harness = AgentTestHarness(agent_of(work))
    task = harness.begin("go")
    assert isinstance(task, Task)
    harness.settle(60_000)
    for number in (1, 0):
        assert harness.send_event(urls[number], str(number)) == 200
    harness.settle()
    assert harness.reply(task.id).said == "[0, 1]"


def test_a_race_of_an_event_and_a_sleep_and_a_question_has_one_winner() -> None:
    async def work(task: TaskContext) -> str:
        paid = await task.callback("paid")
        urls.append(paid.url)
        waits: dict[asyncio.Future[Any], str] = {
            asyncio.ensure_future(paid.received()): "paid",
            asyncio.ensure_future(task.sleep("nap", HOUR_S)): "nap",
            asyncio.ensure_future(task.ask("Stop?")): "stop",
        }
        done, others = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for one in others:
            one.cancel()
        won = [waits[one] for one in done]
        await task.sleep("afterwards", 2 * HOUR_S)
        return str(won)

    urls = list[str]()
    harness = AgentTestHarness(agent_of(work))
    task = harness.begin("go")
    assert isinstance(task, Task)
    harness.settle(60_000)
    assert harness.reply(task.id).state == TaskState.INPUT_REQUIRED
    harness.send_event(urls[0], "1")
    harness.settle(60_000)
    assert harness.reply(task.id).state == TaskState.WORKING
    harness.settle()
    assert harness.reply(task.id).said == "['paid']"


def test_the_harness_refuses_a_body_that_is_too_long_as_the_api_does() -> None:
    payment = Payment()
    harness, _ = waiting(payment)
    assert harness.send_event(payment.urls[0], bytes(256 * 1024 + 1)) == 413


@pytest.mark.parametrize("size", [200_000, 256 * 1024])
def test_a_long_body_is_whole(size: int) -> None:
    async def work(task: TaskContext) -> str:
        paid = await task.callback("paid")
        urls.append(paid.url)
        return str(len((await paid.received()).body))

    urls = list[str]()
    harness = AgentTestHarness(agent_of(work))
    task = harness.begin("go")
    assert isinstance(task, Task)
    harness.settle(60_000)
    assert harness.send_event(urls[0], bytes(size)) == 200
    harness.settle()
    assert harness.reply(task.id).said == str(size)


class Overtaken:
    """A task log whose first update of a head comes after ``earlier``."""

    def __init__(self, log: TaskLog, earlier: Callable[[], object]) -> None:
        self._log, self._earlier = log, [earlier]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def update_head(self, *arguments: Any) -> bool:
        if self._earlier:
            self._earlier.pop()()
        return self._log.update_head(*arguments)


def overtaken(harness: AgentTestHarness, url: str, body: bytes, earlier: Callable[[], object]) -> bool:
    """Whether the event is taken; ``earlier`` happens between its read and its write of the head."""
    log = cast("TaskLog", Overtaken(harness.service.log, earlier))
    service = harness.service._replace(log=log)
    return store_event(service, find_event_address(service, url.rpartition("/")[2]), {}, body)


def test_of_two_events_of_a_task_at_once_none_is_lost() -> None:
    async def work(task: TaskContext) -> str:
        both = [await task.callback(name) for name in ("paid", "sent")]
        urls[:] = [one.url for one in both]
        return str([request.json() for request in await asyncio.gather(*(one.received() for one in both))])

    urls = list[str]()
    harness = AgentTestHarness(agent_of(work))
    task = harness.begin("go")
    assert isinstance(task, Task)
    harness.settle(60_000)
    assert overtaken(harness, urls[0], b"0", lambda: harness.send_event(urls[1], "1"))
    harness.settle()
    assert harness.reply(task.id).said == "[0, 1]"


def test_of_two_bodies_at_once_the_second_is_refused() -> None:
    payment = Payment()
    harness, task = waiting(payment)
    assert not overtaken(harness, payment.urls[0], b"0", lambda: harness.send_event(payment.urls[0], "1"))
    harness.settle()
    assert harness.reply(task.id).said.startswith("1 ")


@pytest.mark.parametrize("name", ["paid", "p" * 256], ids=["short", "long"])
def test_an_event_is_waited_for_with_a_limit_also_in_a_scope(name: str) -> None:
    async def work(task: TaskContext) -> str:
        with task.scope("order"):
            paid = await task.callback(name)
            try:
                await paid.received(timeout_s=60)
            except TimeoutError:
                return "not paid"
        return "paid"

    assert AgentTestHarness(agent_of(work)).send("go").said == "not paid"


@pytest.mark.parametrize(
    "body",
    [b"[" * 250_000, b"NaN", b"1e999", b"\xff", b'{"a": 1, "a": 2}', b""],
    ids=["deep", "no number", "infinite", "no UTF-8", "twice", "empty"],
)
def test_a_body_that_is_no_json_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        CallbackRequest(body, {}, datetime.now(UTC)).json()
