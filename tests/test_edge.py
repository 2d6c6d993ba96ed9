"""``tests.edge`` accepts answers of the protocol and refuses others."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import ValidationError

from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from tests.echo import Writer
from tests.edge import Edge, HttpResponse, conforming, form_of
from tests.handlers.requests import BINDINGS, Names
from tests.handlers.test_runtime import Mine
from tests.world import World

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

WRONG = (AssertionError, ValidationError)
EACH = pytest.mark.parametrize("binding", BINDINGS)


def answered(binding: str, operation: Operation, **names: Any) -> tuple[HttpResponse, Any]:
    """Returns an answer, and the form that it must have."""
    world = World([Writer().agent])
    request = BINDINGS[binding][operation](Names(**names))
    edge = Edge(world.service, world.engine.agents, Mine(), MemoryCallbackVerifier(), 60)
    return edge.answer(request), form_of(request, ("echo",))


@EACH
def test_a_task_with_a_state_of_its_own_is_refused(binding: str) -> None:
    answer, form = answered(binding, Operation.SEND)
    body = answer.body.decode()
    state = json.loads(body[body.index('"status":') + 9 : body.index("}", body.index('"status":')) + 1])["state"]
    changed = body.replace(f'"state":"{state}"', '"state":"TASK_STATE_LOST"')
    with pytest.raises(WRONG):
        conforming(form, HttpResponse(200, changed.encode(), answer.headers))


@EACH
def test_an_error_that_says_more_than_it_should_is_refused(binding: str) -> None:
    answer, form = answered(binding, Operation.GET, task="none")
    body = json.loads(answer.body)
    body.get("result", body)["trace"] = "Traceback"
    with pytest.raises(WRONG):
        conforming(form, HttpResponse(answer.status, json.dumps(body).encode(), answer.headers))


@EACH
def test_an_event_of_another_version_is_refused(binding: str) -> None:
    _, form = answered(binding, Operation.STREAM)

    async def stream() -> AsyncGenerator[bytes]:
        yield b'id: 1\ndata: {"jsonrpc":"2.0","id":1,"result":{"tusk":{"id":"t"}}}\n\n'

    async def first() -> None:
        answer: Any = conforming(form, HttpResponse(200, b"", {"content-type": "text/event-stream"}, stream()))
        await anext(answer.stream)

    with pytest.raises(WRONG):
        asyncio.run(first())


@pytest.mark.parametrize(
    "card",
    [
        {},
        {"name": "echo"},
        {"protocolVersion": "0.3.0", "supportedInterfaces": []},
        {"supportedInterfaces": [{"url": "u", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]},
    ],
)
def test_a_card_that_lacks_what_its_version_requires_is_refused(card: dict[str, Any]) -> None:
    form = form_of(HttpRequest("GET", "/echo/.well-known/agent-card.json"), ("echo",))
    with pytest.raises(WRONG):
        conforming(form, HttpResponse(200, json.dumps(card).encode(), {"content-type": "application/json"}))
