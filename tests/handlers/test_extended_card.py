"""The extended card (specification 3.1.11): for callers that have signed in, in every binding."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.agent import Skill
from a2a_serverless.domain.errors import Unauthenticated
from a2a_serverless.domain.publications import card_name
from a2a_serverless.http.api import AllowAnonymous
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.services.publish import CardPublisher, publish_cards
from a2a_serverless.settings import read
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from tests.echo import Writer
from tests.edge import Edge
from tests.handlers.requests import BINDINGS, Make, Names
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.edge import HttpResponse

SECRET = Skill("vault", "Vault", "Opens the vault.", ("hidden",))
ASKING = {name: made[Operation.CARD] for name, made in BINDINGS.items() if Operation.CARD in made}


class Door(AllowAnonymous):
    """Lets in whoever knocks."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        if "x-knock" not in headers:
            raise Unauthenticated(given=False)
        return Caller(ME)


def edge_of(*skills: Skill, published: bool = True) -> Edge:
    world = World([replace(Writer().agent, extended_skills=skills)])
    if published:
        publisher = CardPublisher(
            world.table, world.clock, world.engine.agents, "https://x.example", schemes=read({}).schemes
        )
        publish_cards(publisher, "kid", lambda _: b"s" * 64)
    return Edge(world.service, world.engine.agents, Door(), MemoryCallbackVerifier(), 60)


def ask(edge: Edge, make: Make, **headers: str) -> HttpResponse:
    request = make(Names())
    return edge.answer(request._replace(headers={**request.headers, **headers}))


def body_of(answer: HttpResponse) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(answer.body)
    result: dict[str, Any] = body.get("result", body)
    return result


@pytest.mark.requirement(119, 120)
@pytest.mark.parametrize("binding", ASKING)
def test_a_caller_who_has_signed_in_is_told_of_all_skills(binding: str) -> None:
    answer = ask(edge_of(SECRET), ASKING[binding], **{"x-knock": "yes"})
    card = body_of(answer)
    assert answer.status == 200
    assert [skill["id"] for skill in card["skills"]] == ["s", "vault"]
    assert answer.headers["cache-control"] == "no-store"
    assert ("protocolVersion" in card, "signatures" in card) == (binding.startswith("0.3"), binding.startswith("1.0"))


@pytest.mark.requirement(119, 126)
@pytest.mark.parametrize("binding", ASKING)
def test_a_stranger_gets_no_extended_card(binding: str) -> None:
    answer = ask(edge_of(SECRET), ASKING[binding])
    assert answer.status == 401
    assert b"vault" not in answer.body


@pytest.mark.requirement(126)
def test_the_public_card_says_that_there_is_one_and_not_what_is_in_it() -> None:
    edge = edge_of(SECRET)
    document = edge.service.publications.get_document(card_name("echo"))
    assert isinstance(document, dict)
    card = json.loads(str(document["body"]))
    assert card["capabilities"]["extendedAgentCard"]
    assert card["supportsAuthenticatedExtendedCard"]
    assert "vault" not in str(document["body"])


@pytest.mark.requirement(45)
@pytest.mark.parametrize("binding", ASKING)
def test_an_agent_without_an_extended_card_refuses_to_show_it(binding: str) -> None:
    answer = ask(edge_of(), ASKING[binding], **{"x-knock": "yes"})
    assert b"no extended card" in answer.body
    assert b"UNSUPPORTED_OPERATION" in answer.body or b"-32004" in answer.body


@pytest.mark.requirement(45)
@pytest.mark.parametrize("binding", ASKING)
def test_an_extended_card_that_is_declared_but_missing_has_its_own_error(binding: str) -> None:
    answer = ask(edge_of(SECRET, published=False), ASKING[binding], **{"x-knock": "yes"})
    assert b"EXTENDED_AGENT_CARD_NOT_CONFIGURED" in answer.body or b"-32007" in answer.body
