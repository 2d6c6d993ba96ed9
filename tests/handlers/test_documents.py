"""What everybody may read: where it is, how long it may be kept, and that no request changes what it says."""

from __future__ import annotations

import json
from dataclasses import replace
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import Agent, AgentExtension, Skill
from a2a_serverless.domain.agent import BUDGET_EXTENSION, WEBHOOK_EXTENSIONS
from a2a_serverless.domain.publications import JWKS, card_name
from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.services.publish import CardPublisher, base_url_in, publish_cards
from tests.client.deployment import BASE, Deployment, Locked
from tests.echo import Writer, agent_of
from tests.protocol.schema import assert_v0_3
from tests.sample_agents.sketches import SHIPPED as AGENTS
from tests.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.edge import HttpResponse

CARD = "/echo/.well-known/agent-card.json"
EACH = ("/.well-known/agent-card.json", "/.well-known/agent.json", CARD, "/echo/.well-known/agent.json", "/agents",
        "/legacy/echo/.well-known/agent.json", "/.well-known/ai-catalog.json")  # fmt: skip
HOSTILE = {
    "host": "evil.example",
    "x-forwarded-host": "evil.example",
    "x-forwarded-proto": "ftp",
    "forwarded": "host=evil.example",
    "x-original-host": "evil.example",
    "origin": "https://evil.example",
}
DAY_MS = 86_400_000


class Place:
    """A deployment whose documents everybody may read, and nobody may do anything else."""

    def __init__(self) -> None:
        self.deployment = Deployment(Writer().agent, agent_of(Writer().work, "other"), authenticator=Locked())
        self.modified = self.ask(CARD).headers["last-modified"]

    def ask(self, path: str, verb: str = "GET", **headers: str) -> HttpResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.deployment.edge.answer(HttpRequest(verb, path, named))

    def read(self, path: str, headers: Mapping[str, str] | None = None) -> Any:
        answer = self.deployment.edge.answer(HttpRequest("GET", path, headers or {}))
        assert answer.status == 200
        return json.loads(answer.body)

    def publish(self, name: str = "echo") -> None:
        """The agent is called so from now on."""
        world = self.deployment.world
        agents = {
            key: replace(one, name=name if key == "echo" else one.name) for key, one in world.engine.agents.items()
        }
        publish_cards(CardPublisher(world.table, world.clock, agents, BASE), "kid-1", lambda _: bytes(64))


def urls_in(document: Any) -> Iterator[str]:
    """Every text in it that is an address."""
    if isinstance(document, str):
        yield from [document] if "://" in document else []
        return
    for inner in document.values() if isinstance(document, dict) else document if isinstance(document, list) else ():
        yield from urls_in(inner)


def v1_card_of(agent: Agent) -> Any:
    """The card of 1.0 of an agent, as it is published."""
    world = World([agent])
    publisher = CardPublisher(world.table, world.clock, world.engine.agents, BASE, "v1")
    publish_cards(publisher, "kid-1", lambda _: bytes(64))
    document: Any = world.table.get_document(card_name(agent.id))
    return json.loads(document["body"])


def test_a_card_is_where_clients_of_each_version_look_and_the_first_agents_at_the_root() -> None:
    place = Place()
    card = place.read(CARD)
    assert_v0_3("AgentCard", card)
    assert [place.read(path) for path in EACH[:4]] == [card] * 4
    assert place.read("/other/.well-known/agent-card.json")["name"] == "other"
    assert place.read("/legacy/echo/.well-known/agent.json")["url"] == f"{BASE}/legacy/echo"
    assert [one["card"] for one in place.read("/agents")["agents"]] == [
        f"{BASE}/{agent}/.well-known/agent-card.json" for agent in ("echo", "other")
    ]


def test_the_card_of_no_agent_is_no_path_and_not_a_document_that_is_still_to_come() -> None:
    answer = Place().ask("/nobody/.well-known/agent-card.json")
    assert answer.status == 404
    assert b"There is no such path." in answer.body


@pytest.mark.parametrize("path", EACH)
def test_addresses_come_from_the_configuration_whatever_a_request_says(path: str) -> None:
    place = Place()
    document = place.read(path, HOSTILE)
    assert document == place.read(path)
    assert all(url.startswith(f"{BASE}/") for url in urls_in(document))


@pytest.mark.requirement(104)
@pytest.mark.parametrize("path", EACH)
def test_a_document_says_how_long_it_may_be_kept_when_it_was_made_and_its_etag(path: str) -> None:
    answer = Place().ask(path)
    assert answer.headers["cache-control"] == "public, max-age=300"
    kind = "application/ai-catalog+json" if "catalog" in path else "application/json"
    assert answer.headers["content-type"] == kind
    assert answer.headers["etag"].startswith('"')
    assert answer.headers["last-modified"].endswith(" GMT")


def test_the_key_set_is_kept_for_as_long_as_the_deployment_says() -> None:
    place = Place()
    place.deployment.world.table.publish(JWKS, {"body": '{"keys":[]}', "etag": '"1"', "modified": "x", "basis": "1"})
    assert place.ask("/.well-known/jwks.json").headers["cache-control"] == "public, max-age=3600"
    assert place.ask("/.well-known/jwks.json", if_modified_since=place.modified).status == 200, "it has no date"


@pytest.mark.requirement(104)
@pytest.mark.parametrize("verb", ["GET", "HEAD"])
@pytest.mark.parametrize(
    ("since", "status"),
    [(0, 304), (1_000, 304), (DAY_MS, 304), (-1_000, 200), (-DAY_MS, 200), ("soon", 200), ("", 200), ("0", 200)],
)
def test_a_client_with_a_document_of_that_date_or_later_gets_304(since: int | str, status: int, verb: str) -> None:
    place = Place()
    at = place.deployment.world.now
    date = since if isinstance(since, str) else formatdate((at + since) / 1000, usegmt=True)
    answer = place.ask(CARD, verb, if_modified_since=date)
    assert answer.status == status
    assert bool(answer.body) == (status == 200)


@pytest.mark.requirement(104)
def test_a_client_with_the_document_gets_its_cache_headers_with_the_304() -> None:
    place = Place()
    whole = place.ask(CARD)
    short = place.ask(CARD, if_none_match=whole.headers["etag"])
    assert short.status == 304
    for name in ("cache-control", "etag", "last-modified"):
        assert short.headers[name] == whole.headers[name]


@pytest.mark.requirement(104)
def test_an_etag_goes_before_a_date() -> None:
    place = Place()
    assert place.ask(CARD, if_none_match='"other"', if_modified_since=place.modified).status == 200
    etag = place.ask(CARD).headers["etag"]
    assert place.ask(CARD, if_none_match=etag, if_modified_since="Thu, 01 Jan 1970 00:00:00 GMT").status == 304


def test_a_card_that_has_changed_is_a_new_document_and_one_that_was_written_again_is_not() -> None:
    place = Place()
    before = place.ask(CARD)
    place.deployment.world.now += DAY_MS
    place.publish()
    assert place.ask(CARD).headers == before.headers
    place.publish("Echo")
    after = place.ask(CARD, if_none_match=before.headers["etag"])
    assert (after.status, json.loads(after.body)["name"]) == (200, "Echo")
    assert place.ask(CARD, if_modified_since=before.headers["last-modified"]).status == 200


def test_the_catalog_lists_each_agent_once_and_leaves_to_its_card_what_is_on_it() -> None:
    document = Place().read("/.well-known/ai-catalog.json")
    assert document["specVersion"] == "1.0"
    assert document["host"] == {"displayName": "127.0.0.1"}
    assert document["entries"] == [
        {
            "identifier": f"urn:air:127.0.0.1:agents:8000:{agent}",
            "type": "application/a2a-agent-card+json",
            "url": f"{BASE}/{agent}/.well-known/agent-card.json",
            "tags": ["s"],
        }
        for agent in ("echo", "other")
    ]
    assert set(document) == {"specVersion", "host", "entries", "signature"}


@pytest.mark.parametrize("verb", ["POST", "PUT", "DELETE", "PATCH"])
def test_a_document_is_only_read(verb: str) -> None:
    answer = Place().ask(CARD, verb)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_each_skill_of_a_card_says_its_media_types_which_are_the_agents_unless_it_has_its_own() -> None:
    plain, own = Skill("a", "a", "a", ("a",)), Skill("b", "b", "b", ("b",), (), ("image/png",), ("text/csv",))
    agent = replace(Writer().agent, skills=(plain, own), extended_skills=(replace(plain, id="c"),))
    edge = Deployment(agent).edge

    def modes(path: str) -> list[tuple[list[str], list[str]]]:
        answer = edge.answer(HttpRequest("GET", path, {"a2a-version": "1.0"}))
        return [(one["inputModes"], one["outputModes"]) for one in json.loads(answer.body)["skills"]]

    agents = (["text/plain", "application/json"], ["text/plain", "application/json"])
    assert modes(CARD) == [agents, (["image/png"], ["text/csv"])]
    assert modes("/echo/extendedAgentCard") == [agents, (["image/png"], ["text/csv"]), agents]
    assert modes("/legacy/echo/.well-known/agent.json")[0] == agents


@pytest.mark.requirement(87)
def test_a_card_says_all_that_the_agent_says_of_itself() -> None:
    extension = AgentExtension("https://example.com/extension", "Extends.", required=True, params={"a": [1]})
    agent = Agent(
        id="painter",
        name="Painter",
        description="Paints.",
        skills=(Skill("paint", "Paint", "Paints anything.", ("art",), ("a boat",)),),
        work=Writer().work,
        version="2.3.4",
        input_modes=("text/plain",),
        output_modes=("image/png", "image/jpeg"),
        streaming=False,
        push=False,
        extensions=(extension,),
    )
    card = v1_card_of(agent)
    assert card == {
        "name": "Painter",
        "description": "Paints.",
        "version": "2.3.4",
        "supportedInterfaces": [
            {"url": f"{BASE}/painter", "protocolBinding": binding, "protocolVersion": version}
            for version in ("1.0", "0.3")
            for binding in ("JSONRPC", "HTTP+JSON")
        ],
        "capabilities": {
            "streaming": False,
            "pushNotifications": False,
            "extensions": [
                {
                    "uri": "https://example.com/extension",
                    "description": "Extends.",
                    "required": True,
                    "params": {"a": [1]},
                },
                {"uri": BUDGET_EXTENSION.uri, "description": BUDGET_EXTENSION.description},
            ],
        },
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["image/png", "image/jpeg"],
        "skills": [
            {
                "id": "paint",
                "name": "Paint",
                "description": "Paints anything.",
                "tags": ["art"],
                "examples": ["a boat"],
                "inputModes": ["text/plain"],
                "outputModes": ["image/png", "image/jpeg"],
            }
        ],
        "signatures": card["signatures"],
    }
    assert v1_card_of(replace(agent, streaming=True, push=True, extended_skills=agent.skills))["capabilities"] == {
        **card["capabilities"],
        "extensions": [
            *card["capabilities"]["extensions"],
            *({"uri": one.uri, "description": one.description} for one in WEBHOOK_EXTENSIONS.values()),
        ],
        "streaming": True,
        "pushNotifications": True,
        "extendedAgentCard": True,
    }


@pytest.mark.parametrize("agents", [1, 2])
def test_the_published_documents_say_where_the_deployment_is(agents: int) -> None:
    world = World([agent_of(Writer().work, f"agent-{number}") for number in range(agents)])
    assert base_url_in(world.table) == "", "nothing is published yet"
    publish_cards(CardPublisher(world.table, world.clock, world.engine.agents, BASE), "kid-1", lambda _: bytes(64))
    assert base_url_in(world.table) == BASE


def test_the_documents_of_a_deployment_without_agents_name_no_address() -> None:
    world = World([Writer().agent])
    publish_cards(CardPublisher(world.table, world.clock, {}, BASE), "kid-1", lambda _: bytes(64))
    assert base_url_in(world.table) == ""


@pytest.mark.requirement(87)
@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.id)
def test_no_card_of_a_shipped_agent_has_a_list_that_is_empty(agent: Any) -> None:
    card = Deployment(agent).edge.answer(HttpRequest("GET", f"/{agent.id}/.well-known/agent-card.json")).body

    def empty(value: Any) -> bool:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return value in ("", [], {}) or any(map(empty, inner))

    assert not empty(json.loads(card))
