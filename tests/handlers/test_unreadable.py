"""A task whose stored form cannot be read: it is an internal error by itself, and no other task's."""

from __future__ import annotations

import json

import pytest

from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from tests.contract.tasks import SPOILED, spoil
from tests.echo import Writer
from tests.edge import Edge, HttpResponse
from tests.handlers.test_deliveries import MyAuthenticator
from tests.world import ME, World


@pytest.mark.parametrize("how", SPOILED)
def test_an_unreadable_task_is_an_internal_error_that_is_logged_and_others_are_answered(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World([Writer().agent])
    spoiled, whole = (world.send(push=False).id for _ in range(2))
    spoil(world.table, ME.key(spoiled), how)
    edge = Edge(world.service, world.engine.agents, MyAuthenticator(), MemoryCallbackVerifier(), 60)

    def ask(path: str) -> HttpResponse:
        return edge.answer(HttpRequest("GET", path, {"a2a-version": "1.0"}))

    answer = ask(f"/echo/tasks/{spoiled}")
    assert answer.status == 500
    assert json.loads(answer.body)["error"]["status"] == "INTERNAL"
    assert "request failed" in [record.message for record in caplog.records]
    assert ask(f"/echo/tasks/{whole}").status == 200
    listed = json.loads(ask("/echo/tasks").body)["tasks"]
    assert [task["id"] for task in listed] == [whole]
