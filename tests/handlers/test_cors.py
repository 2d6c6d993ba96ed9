"""Pages of other origins: those that are set may call agents and read cards, all others may not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.http.api import AllowAnonymous, OidcOrApiKey
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.services.publish import CardPublisher, publish_cards
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from tests.echo import Writer
from tests.edge import Edge
from tests.handlers.requests import BINDINGS, Names
from tests.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.http.api import Authenticator
    from tests.edge import HttpResponse

APP = "https://app.example.com"
CARD = "/echo/.well-known/agent-card.json"
ASKS = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,a2a-version"}
CROSS = "access-control-"


def ask(
    verb: str,
    path: str,
    origin: str | None = APP,
    *,
    origins: tuple[str, ...] = (APP,),
    authenticator: Authenticator | None = None,
    more: Mapping[str, str] | None = None,
) -> HttpResponse:
    world = World([Writer().agent])
    publish_cards(
        CardPublisher(world.table, world.clock, world.engine.agents, "https://a.example.com"), "k", lambda _: bytes(64)
    )
    edge = Edge(
        world.service,
        world.engine.agents,
        authenticator or AllowAnonymous(),
        MemoryCallbackVerifier(),
        60,
        origins=origins,
    )
    headers = {**(more or {}), **({"origin": origin} if origin else {})}
    return edge.answer(HttpRequest(verb, path, headers))


def crossed(answer: HttpResponse) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith(CROSS)}


@pytest.mark.parametrize(
    "path", ["/echo", "/echo/message:stream", "/echo/v1/tasks/x", "/legacy/echo/tasks/send", CARD, "/agents"]
)
def test_a_browser_may_ask_before_anybody_has_signed_in(path: str) -> None:
    answer = ask("OPTIONS", path, authenticator=OidcOrApiKey(lambda _: None), more=ASKS)
    told = crossed(answer)
    assert (answer.status, answer.body, answer.headers["vary"]) == (204, b"", "Origin")
    assert told["access-control-allow-origin"] == APP
    assert told["access-control-allow-methods"] == "GET, POST, DELETE"
    for name in ("authorization", "x-api-key", "a2a-version", "a2a-extensions", "last-event-id", "content-type"):
        assert name in told["access-control-allow-headers"].split(", ")
    assert "access-control-allow-credentials" not in told


@pytest.mark.parametrize(
    "origin", ["https://evil.example.com", "https://app.example.com.evil.com", "null", APP + ":8443", None]
)
def test_a_page_of_another_origin_gets_no_cors_headers(origin: str | None) -> None:
    assert crossed(ask("OPTIONS", "/echo", origin, more=ASKS)) == {}
    card = ask("GET", CARD, origin)
    assert (card.status, crossed(card), card.headers["vary"]) == (200, {}, "Origin")


def test_answers_errors_and_streams_can_be_read_by_the_page() -> None:
    for answer in (
        ask("GET", CARD),
        ask("GET", CARD, more={"if-none-match": "*"}),
        ask("GET", "/echo/tasks/none", more={"a2a-version": "1.0"}),
        ask("POST", "/echo", authenticator=OidcOrApiKey(lambda _: None)),
    ):
        assert crossed(answer)["access-control-allow-origin"] == APP
        assert "retry-after" in crossed(answer)["access-control-expose-headers"]
    world = World([Writer().agent])
    edge = Edge(world.service, world.engine.agents, AllowAnonymous(), MemoryCallbackVerifier(), 60, origins=(APP,))
    for make in BINDINGS["1.0 REST"].values():
        request = make(Names(task=None))
        answer = edge.answer(
            HttpRequest(request.verb, request.path, {**request.headers, "origin": APP}, (), request.body)
        )
        assert crossed(answer)["access-control-allow-origin"] == APP
        if answer.stream is not None:
            stream: Any = answer.stream
            asyncio.run(stream.aclose())


def test_a_page_gets_no_cors_headers_for_a_callback() -> None:
    assert crossed(ask("OPTIONS", "/callbacks/some-call", more=ASKS)) == {}
    assert crossed(ask("GET", "/callbacks/some-call")) == {}


def test_an_api_without_origins_sends_no_cors_headers() -> None:
    for answer in (ask("OPTIONS", "/echo", origins=(), more=ASKS), ask("GET", CARD, origins=())):
        assert (crossed(answer), "vary" in answer.headers) == ({}, False)


def test_a_star_is_every_origin_and_says_so_to_caches() -> None:
    answer = ask("GET", CARD, "https://anywhere.example.com", origins=("*",))
    assert (crossed(answer)["access-control-allow-origin"], "vary" in answer.headers) == ("*", False)


def test_options_without_a_question_is_an_ordinary_wrong_verb() -> None:
    assert ask("OPTIONS", "/echo").status == 405
