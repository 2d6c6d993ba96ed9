"""The api mounted in another FastAPI application: every route answers below the path, beside the others' routes."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from fastapi import FastAPI
from moto import mock_aws

from a2a_serverless.aws.agents_app import make_agents_app
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.protocol.operations import Operation
from tests.contract.backends import client_at
from tests.contract.schema import table_schema
from tests.edge import scope_of
from tests.handlers.requests import BINDINGS, Names
from tests.handlers.test_event_loop import of_local_server
from tests.handlers.test_operations import Place
from tests.manifests import manifest_of_samples
from tests.test_wiring import ACCOUNT, NAMES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp
    from starlette.types import Message as Sent

    from tests.edge import Edge

PATH = "/agents"


def shop(edge: Edge, seen: list[str]) -> FastAPI:
    """An application with a route, a middleware and the agents."""
    app = FastAPI(title="Shop")
    app.mount(PATH, edge.app)

    @app.middleware("http")
    async def note(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        seen.append(request.url.path)
        return await call_next(request)

    @app.get("/prices")
    async def prices() -> dict[str, int]:
        return {"coat": 100}

    return app


def answer(app: ASGIApp, request: HttpRequest) -> tuple[int, bytes]:
    """Status and body of what an application answers."""
    unread: list[Sent] = [{"type": "http.request", "body": request.body, "more_body": False}]
    sent: list[Sent] = []

    async def receive() -> Sent:
        return unread.pop() if unread else await asyncio.Future()

    async def send(message: Sent) -> None:
        sent.append(message)

    async def ask() -> None:
        await app(scope_of(request), receive, send)

    asyncio.run(ask())
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


def below(request: HttpRequest) -> HttpRequest:
    return request._replace(path=PATH + request.path)


@pytest.mark.parametrize("binding", BINDINGS)
def test_each_binding_reads_a_task_below_the_path(binding: str) -> None:
    place, seen = Place(), list[str]()
    task = place.send()
    request = BINDINGS[binding][Operation.GET](Names(task=task))
    app = shop(of_local_server(place.edge), seen)
    assert answer(app, below(request)) == answer(place.edge.app, request)
    assert task.encode() in answer(app, below(request))[1]
    assert seen == [PATH + request.path] * 2


@pytest.mark.parametrize(
    "path",
    [
        *("/.well-known/agent-card.json", "/echo/.well-known/agent-card.json", "/.well-known/jwks.json", "/agents"),
        *("/openapi.json", "/", "/nobody", "/echo/no/such/path", "/echo%2Fx", "/callbacks/nothing", "/legacy/echo/x"),
    ],
)
def test_every_other_path_answers_as_it_does_at_the_root(path: str) -> None:
    edge = of_local_server(Place().edge)
    request = HttpRequest("GET", path, {"a2a-version": "1.0"})
    assert answer(shop(edge, []), below(request)) == answer(edge.app, request)


def test_the_api_of_a_deployment_is_mounted_by_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    names = (*NAMES, "ACCESS_TABLE_NAME", "DELIVERY_QUEUE_URL", "PUBLIC_TABLE_NAME")
    environment = {**dict.fromkeys(names, "some"), **ACCOUNT, "AGENTS_FILE": str(manifest_of_samples())}
    app = FastAPI()
    with mock_aws(), client_at(None) as client:
        client.create_table(TableName="some", **table_schema())
        app.mount(PATH, make_agents_app(environment))
        assert b"has not been published yet" in answer(app, HttpRequest("GET", "/agents/agents", {}))[1]
        assert b"-32600" not in answer(app, HttpRequest("POST", "/agents/document", {}))[1]


def test_the_other_routes_and_their_description_stay() -> None:
    app = shop(of_local_server(Place().edge), [])
    assert answer(app, HttpRequest("GET", "/prices", {})) == (200, b'{"coat":100}')
    described = json.loads(answer(app, HttpRequest("GET", "/openapi.json", {}))[1])
    assert (described["info"]["title"], [*described["paths"]]) == ("Shop", ["/prices"])
