"""``GET /{agent}/tasks/{id}/deliveries``."""

from __future__ import annotations

import json

import pytest

from a2a_serverless.domain.access import Caller
from a2a_serverless.http.api import AllowAnonymous
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from tests.echo import Writer
from tests.edge import Edge, HttpResponse
from tests.world import ME, World


class MyAuthenticator(AllowAnonymous):
    def authenticate(self, headers: object) -> Caller:
        del headers
        return Caller(ME)


def asked(world: World, path: str, verb: str = "GET") -> HttpResponse:
    edge = Edge(world.service, world.engine.agents, MyAuthenticator(), MemoryCallbackVerifier(), 60)
    return edge.answer(HttpRequest(verb, path))


def test_an_owner_sees_how_the_webhooks_of_a_task_stand() -> None:
    world = World([Writer().agent])
    task_id = world.send("hello").id
    world.settle()
    answer = asked(world, f"/echo/tasks/{task_id}/deliveries")
    (one,) = json.loads(answer.body)["deliveries"]
    assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
    assert (one["verification"], one["deliveredUpTo"]) == ("verified", world.events(task_id)[-1].n)


@pytest.mark.parametrize("path", ["/echo/tasks/none/deliveries", "/other/tasks/none/deliveries"])
def test_another_owner_gets_404_for_the_deliveries_of_a_task(path: str) -> None:
    assert asked(World([Writer().agent]), path).status == 404


def test_a_delivery_log_is_only_read() -> None:
    answer = asked(World([Writer().agent]), "/echo/tasks/t/deliveries", "DELETE")
    assert (answer.status, answer.headers["allow"]) == (405, "GET")
