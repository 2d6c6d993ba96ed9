"""What a caller may do: checked in every binding before anything else, and said by the card from the same settings."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.access import Caller, is_allowed
from a2a_serverless.domain.publications import card_name
from a2a_serverless.http.api import AllowAnonymous
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.services.publish import CardPublisher, publish_cards
from a2a_serverless.settings import read
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from tests.echo import Writer
from tests.edge import Edge
from tests.handlers.requests import BINDINGS, DELIVERIES, Make, Names
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.edge import HttpResponse

EVERY = [(binding, operation) for binding, made in BINDINGS.items() for operation in made]


class Having(AllowAnonymous):
    """Everybody is the world's client, and may do what the header says."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        return Caller(ME, frozenset(headers["x-scopes"].split()), "agents/")


def asked(make: Make, names: Names, scopes: str, world: World | None = None) -> HttpResponse:
    world = world or World([Writer().agent])
    edge = Edge(world.service, world.engine.agents, Having(), MemoryCallbackVerifier(), 60)
    request = make(names)
    return edge.answer(request._replace(headers={**request.headers, "x-scopes": scopes}))


@pytest.mark.parametrize(
    ("scopes", "agent", "reads", "operates"),
    [
        ({"a2a"}, "echo", True, True),
        ({"a2a:echo"}, "echo", True, True),
        ({"a2a:echo"}, "other", False, False),
        ({"a2a:read"}, "echo", True, False),
        ({"a2a:echo:read"}, "echo", True, False),
        ({"a2a:other:read", "a2a:other"}, "echo", False, False),
        ({"a2a:other", "a2a:echo:read"}, "echo", True, False),
        ({"a2a:*", "A2A", "a2a:echo:", "a2a:ech", "echo", ""}, "echo", False, False),
        (set(), "echo", False, False),
    ],
)
def test_a_scope_allows_the_agent_and_the_right_that_it_names(
    scopes: set[str], agent: str, *, reads: bool, operates: bool
) -> None:
    assert (is_allowed(scopes, agent, "read"), is_allowed(scopes, agent, "operate")) == (reads, operates)


@pytest.mark.requirement(32, 33, 115, 116, 119)
@pytest.mark.parametrize(("binding", "operation"), EVERY)
def test_without_the_scope_every_operation_names_it_and_looks_at_nothing(binding: str, operation: Operation) -> None:
    world = World([Writer().agent])
    task = world.send("mine", push=False).id
    missing = "agents/a2a:echo" + (":read" if operation.access == "read" else "")
    other = "a2a:other a2a:echo:read" if operation.access != "read" else "a2a:other"
    for names in (Names(task=task), Names(task="nothing-of-the-kind")):
        answer = asked(BINDINGS[binding][operation], names, other, world)
        assert answer.status == 403
        assert answer.headers["www-authenticate"] == (
            f'Bearer realm="a2a", error="insufficient_scope", scope="{missing}"'
        )
        assert answer.headers["content-type"] == "application/json"
        body = json.loads(answer.body)
        assert missing in json.dumps(body)
        assert ("jsonrpc" in body) == ("JSON-RPC" in binding)
        assert task not in answer.body.decode()


@pytest.mark.parametrize(("binding", "operation"), EVERY)
def test_with_the_narrowest_scope_the_operation_is_served(binding: str, operation: Operation) -> None:
    world = World([Writer().agent])
    task = world.send("mine").id
    scope = "a2a:echo:read" if operation.access == "read" else "a2a:echo"
    names = Names(task=None if operation in {Operation.SEND, Operation.STREAM} else task)
    answer = asked(BINDINGS[binding][operation], names, scope, world)
    assert answer.status not in {401, 403}


def test_the_delivery_log_is_read_with_the_scope_to_read() -> None:
    world = World([Writer().agent])
    names = Names(task=world.send("mine").id)
    assert asked(DELIVERIES, names, "a2a:echo:read", world).status == 200
    assert asked(DELIVERIES, names, "a2a:other", world).status == 403


@pytest.mark.requirement(30, 31, 80, 92)
@pytest.mark.parametrize(("binding", "operation"), EVERY)
def test_a_caller_without_credentials_gets_401_in_the_form_of_the_binding(binding: str, operation: Operation) -> None:
    class Nobody(AllowAnonymous):
        def authenticate(self, headers: Mapping[str, str]) -> Caller:
            from a2a_serverless.domain.errors import Unauthenticated

            raise Unauthenticated(given="authorization" in headers)

    world = World([Writer().agent])
    edge = Edge(world.service, world.engine.agents, Nobody(), MemoryCallbackVerifier(), 60)
    answer = edge.answer(BINDINGS[binding][operation](Names(task="any")))
    body: dict[str, Any] = json.loads(answer.body)
    assert (answer.status, answer.headers["www-authenticate"]) == (401, 'Bearer realm="a2a"')
    assert answer.stream is None
    match binding:
        case "1.0 JSON-RPC" | "0.3 JSON-RPC":
            assert (body["jsonrpc"], body["id"]) == ("2.0", None)
            assert body["error"]["code"] == (-31401 if binding == "1.0 JSON-RPC" else -32603)
        case "1.0 REST":
            assert body["error"]["status"] == "UNAUTHENTICATED"
        case _:
            assert body["type"] == "UnauthenticatedError"


# ---- Cards


ISSUER = {
    "OIDC_ISSUER": "https://id.example.com/",
    "OIDC_AUDIENCE": "a2a",
}
SCOPED = ISSUER | {"OIDC_CLAIMS": "scopes=scope,scope-prefix=agents/"}


def card(environment: Mapping[str, str]) -> dict[str, Any]:
    """The card that is published under these settings."""
    world, settings = World([Writer().agent]), read(environment)
    schemes, issuer = settings.schemes, settings.trusted_issuer
    publisher = CardPublisher(
        world.table, world.clock, world.engine.agents, "https://a.example.com", schemes=schemes, issuer=issuer
    )
    publish_cards(publisher, "kid-1", lambda _: bytes(64))
    document = world.table.get_document(card_name("echo"))
    found: dict[str, Any] = json.loads(document["body"])
    return found


@pytest.mark.requirement(92)
@pytest.mark.parametrize(
    ("environment", "new", "old"),
    [
        ({}, [{"schemes": {"apiKey": {}}}], [{"apiKey": []}]),
        (ISSUER, [{"schemes": {"apiKey": {}}}, {"schemes": {"oidc": {}}}], [{"apiKey": []}, {"oidc": []}]),
        (
            SCOPED,
            [{"schemes": {"apiKey": {}}}, {"schemes": {"oidc": {"list": ["agents/a2a:echo"]}}}],
            [{"apiKey": []}, {"oidc": ["agents/a2a:echo"]}],
        ),
        ({"ANONYMOUS_ACCESS": "on", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, None, None),
    ],
)
def test_a_card_says_in_both_versions_how_to_sign_in_and_with_which_scope(
    environment: Mapping[str, str], new: object, old: object
) -> None:
    found = card(environment)
    assert (found.get("securityRequirements"), found.get("security")) == (new, old)
    assert ("securitySchemes" in found) == (new is not None)
    if "OIDC_ISSUER" in environment:
        url = "https://id.example.com/.well-known/openid-configuration"
        scheme = found["securitySchemes"]["oidc"]
        assert scheme["openIdConnectSecurityScheme"]["openIdConnectUrl"] == scheme["openIdConnectUrl"] == url


@pytest.mark.requirement(92)
def test_the_scope_that_a_card_asks_for_allows_that_agent_only() -> None:
    (wanted,) = card(SCOPED)["security"][1]["oidc"]
    assert is_allowed({wanted.removeprefix("agents/")}, "echo", "operate")
    assert not is_allowed({wanted.removeprefix("agents/")}, "other", "read")


def test_a_stream_that_is_refused_for_its_scope_is_no_stream() -> None:
    answer = asked(BINDINGS["0.3 JSON-RPC"][Operation.STREAM], Names(), "a2a:read")
    assert (answer.status, answer.stream) == (403, None)
    served = asked(BINDINGS["0.3 JSON-RPC"][Operation.STREAM], Names(), "a2a")
    assert served.stream is not None
    asyncio.run(served.stream.aclose())
