"""``POST /{agent}/tasks/{id}/retry``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.access import Caller, Quota
from a2a_serverless.domain.model import Principal
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.services.rate_limiter import RateLimiter
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from tests.echo import agent_of
from tests.edge import Edge
from tests.handlers.test_limits import Counting
from tests.isolation.matrix import As
from tests.world import HOOK, ME, World

if TYPE_CHECKING:
    from a2a_serverless import TaskContext


class Mended:
    """An agent whose step fails the first time."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    async def do(self, name: str) -> str:
        self.ran.append(name)
        if self.ran.count(name) == 1 and name == "b":
            raise ValueError(name)
        return name

    async def work(self, task: TaskContext) -> str:
        return await task.step("a", self.do, "a") + await task.step("b", self.do, "b")


def failed(agent: Mended, *, push: bool = False) -> tuple[World, str]:
    world = World([agent_of(agent.work)])
    task_id = world.send("hello", push=push).id
    world.settle()
    assert world.get(task_id).status.state is TaskState.FAILED
    return world, task_id


def post(
    world: World,
    task_id: str,
    body: object,
    caller: Caller | None = None,
    headers: dict[str, str] | None = None,
    **options: Any,
) -> tuple[int, Any]:
    auth = As(ME) if caller is None else As(caller.principal)
    if caller:
        object.__setattr__(auth, "authenticate", lambda _: caller)
    edge = Edge(world.service, world.engine.agents, auth, MemoryCallbackVerifier(), 60, **options)
    headers = {"content-type": "application/json", **(headers or {})}
    answer = edge.answer(HttpRequest("POST", f"/echo/tasks/{task_id}/retry", headers, body=json.dumps(body).encode()))
    return answer.status, json.loads(answer.body)


def test_a_failed_task_is_repeated_by_a_new_one() -> None:
    agent = Mended()
    world, task_id = failed(agent)
    status, task = post(world, task_id, {"requestId": "r"})
    assert (status, task["status"]["state"]) == (200, "TASK_STATE_SUBMITTED")
    assert task["id"] != task_id
    assert task["metadata"] == {"a2a-serverless/retry": {"taskId": task_id, "requestId": "r"}}
    world.settle()
    assert world.get(task["id"]).status.state is TaskState.COMPLETED
    assert agent.ran == ["a", "b", "b"]


def test_a_repeated_request_makes_no_second_task_and_another_one_under_its_id_is_refused() -> None:
    world, task_id = failed(Mended())
    first = post(world, task_id, {"requestId": "r"})[1]
    assert post(world, task_id, {"requestId": "r"})[1]["id"] == first["id"]
    status, refused = post(world, task_id, {"requestId": "r", "fromStep": "a"})
    assert (status, refused["error"]["details"][-1]["fieldViolations"][0]["field"]) == (400, "requestId")
    assert post(world, task_id, {"requestId": "s"})[1]["id"] != first["id"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "requestId"),
        ({"requestId": ""}, "requestId"),
        ({"requestId": "r", "fromStep": "none"}, "fromStep"),
        ({"requestId": "r", "fromStep": "@failed/b"}, "fromStep"),
    ],
)
def test_a_wrong_request_is_refused_and_makes_no_task(body: object, field: str) -> None:
    world, task_id = failed(Mended())
    status, refused = post(world, task_id, body)
    assert (status, refused["error"]["details"][-1]["fieldViolations"][0]["field"]) == (400, field)
    assert len(list(world.table.list_page(ME, None, None, 0, 100)[0])) == 1


def test_a_task_that_has_not_failed_is_not_repeated() -> None:
    world, task_id = failed(Mended())
    repeated = post(world, task_id, {"requestId": "r"})[1]["id"]
    world.settle()
    status, refused = post(world, repeated, {"requestId": "s"})
    assert (status, refused["error"]["message"]) == (400, "Only a failed task can be retried: this one is completed.")


def test_a_retry_needs_the_scope_of_the_agent_and_the_owner_of_the_task() -> None:
    world, task_id = failed(Mended())
    assert post(world, task_id, {"requestId": "r"}, Caller(ME, frozenset({"a2a:read"})))[0] == 403
    assert post(world, task_id, {"requestId": "r"}, Caller(Principal("tenant", "eve")))[0] == 404
    assert post(world, "none", {"requestId": "r"})[0] == 404


def test_a_retry_counts_as_a_send_of_its_owner() -> None:
    world, task_id = failed(Mended())
    limiter = RateLimiter(Counting(world.clock.now), world.clock, world.ids, Quota(sends=1))
    assert post(world, task_id, {"requestId": "r"}, limiter=limiter)[0] == 200
    assert post(world, task_id, {"requestId": "s"}, limiter=limiter)[0] == 429


def test_the_new_task_has_the_webhook_of_the_request_only() -> None:
    world, task_id = failed(Mended(), push=True)
    silent = post(world, task_id, {"requestId": "r"})[1]["id"]
    body = {"requestId": "s", "taskPushNotificationConfig": {"url": HOOK, "token": "t"}}
    told = post(world, task_id, body)[1]["id"]
    world.settle()
    tasks = {json.dumps(got.body) for got in world.receiver.posts}
    assert any(told in text for text in tasks)
    assert not any(silent in text for text in tasks)
