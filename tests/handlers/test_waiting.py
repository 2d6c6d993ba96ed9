"""A blocking send takes no longer than it may, whoever does the work; what is not done by then goes on without it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.http.lambda_proxy import BUFFERED_MS
from a2a_serverless.protocol.operations import Operation
from tests.echo import Writer, agent_of
from tests.handlers.requests import BINDINGS, Names
from tests.handlers.test_operations import CURRENT, MINUTE_MS, Place, state

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.http.messages import HttpRequest

WAITING: dict[str, Any] = {
    "1.0 JSON-RPC": {},
    "1.0 REST": {"returnImmediately": False},
    "0.3 JSON-RPC": {},
    "0.3 REST": {"blocking": True},
}


class Slow:
    """Thinks for a while before it reaches for its task, then takes three steps."""

    def __init__(self, thinks: float, seconds: float) -> None:
        self.thinks = thinks
        self.steps = Writer(seconds)
        self.agent = agent_of(self.work)

    async def work(self, task: TaskContext) -> None:
        await asyncio.sleep(self.thinks)
        await self.steps.work(task)


def waiting(binding: str) -> HttpRequest:
    """A send that waits, as far as its binding says so."""
    request = BINDINGS[binding][Operation.SEND](Names())
    if binding not in WAITING:
        return request
    body = json.loads(request.body)
    body.get("params", body)["configuration"] = WAITING[binding]
    return request._replace(body=json.dumps(body).encode())


def inline(agent: Agent, blocking_ms: int = 20_000) -> Place:
    """A deployment in which requests run the agent themselves."""
    place = Place(replace(agent, runs="inline"))
    here = EngineInlineRunner(place.world.engine, place.world.play)
    place.edge = replace(
        place.edge, service=place.world.service._replace(inline_runner=here.for_agent, blocking_ms=blocking_ms)
    )
    return place


def answered(place: Place, request: HttpRequest) -> tuple[Any, int]:
    """The task that the request is answered with, and how long that took (ms)."""
    began = place.world.now
    answer = place.edge.answer(request)
    document = json.loads(answer.body)
    result = document.get("result", document)
    return result.get("task", result), place.world.now - began


@pytest.mark.requirement(26)
@pytest.mark.parametrize("binding", BINDINGS)
def test_a_blocking_send_is_answered_with_the_task_as_it_is_before_the_platform_ends_the_request(binding: str) -> None:
    place = Place()
    place.world.busy = True  # no worker is free
    task, took = answered(place, waiting(binding)._replace(time_left_ms=12_000))
    assert 4_000 < took < 12_000
    assert task["id"] == place.call("ListTasks")["tasks"][0]["id"]
    assert state({"task": task}) == "submitted"


@pytest.mark.requirement(26)
@pytest.mark.parametrize("binding", CURRENT)
def test_a_blocking_send_waits_for_as_long_as_the_deployment_says_and_no_longer(binding: str) -> None:
    place = Place()
    place.world.busy = True  # no worker is free
    place.edge = replace(place.edge, service=place.edge.service._replace(blocking_ms=7_000))
    assert 6_500 < answered(place, waiting(binding))[1] < 7_500


def test_a_message_with_a_webhook_that_is_refused_is_not_answered_by_an_inline_agent_either() -> None:
    answered_: list[str] = []

    async def greet(task: TaskContext) -> str:
        answered_.append(task.text())
        return "hello"

    place = inline(agent_of(greet))
    request = BINDINGS["1.0 REST"][Operation.SEND](Names())
    body = json.loads(request.body)
    body["configuration"] = {"taskPushNotificationConfig": {"url": "http://127.0.0.1/hook"}}
    answer = place.edge.answer(request._replace(body=json.dumps(body).encode()))
    assert (answer.status, answered_) == (400, [])
    assert b"taskPushNotificationConfig.url" in answer.body


def test_an_inline_agent_needs_no_worker() -> None:
    place = inline(Slow(0, 1).agent)
    place.world.busy = True  # no worker is free
    assert state({"task": answered(place, waiting("1.0 REST"))[0]}) == "completed"


@pytest.mark.parametrize("thinks", [0, 9])
def test_an_inline_agent_whose_time_is_up_is_handed_over_and_repeats_no_step_that_it_has_taken(thinks: int) -> None:
    slow = Slow(thinks, 8)
    place = inline(slow.agent)
    task, took = answered(place, waiting("1.0 REST"))
    assert took < 21_000, "what it thought before it wanted a task is part of the time"
    assert state({"task": task}) in {"submitted", "working"}
    place.world.settle(5 * MINUTE_MS)
    assert state({"task": place.get(f"/tasks/{task['id']}")}) == "completed"
    assert slow.steps.ran == ["one", "two", "three"]


def test_an_agent_that_is_long_about_stopping_does_not_take_the_request_with_it() -> None:
    async def stubborn(task: TaskContext) -> None:
        await task.report_progress("at work")
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(60)

    place = inline(agent_of(stubborn), blocking_ms=25_000)
    task, took = answered(place, waiting("1.0 REST")._replace(time_left_ms=BUFFERED_MS))
    assert took < BUFFERED_MS
    assert state({"task": task}) == "working"


def test_a_blocking_send_lasts_no_longer_than_a_stream_where_nothing_else_limits_it() -> None:
    place = Place()
    place.world.busy = True  # no worker is free
    place.edge = replace(place.edge, service=place.world.service._replace(blocking_ms=900_000), stream_ms=60_000)
    _, took = answered(place, waiting("1.0 JSON-RPC"))
    assert took == 60_000
