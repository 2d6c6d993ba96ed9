"""Reading AI Catalogs of deployments of ours and of others."""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.client import discover, with_credentials
from a2a_serverless.domain.errors import InvalidAgentResponse
from a2a_serverless.http_client.transport import ClientRequest, ClientResponse
from a2a_serverless_tools.cli.catalog import MAX_CARDS, MAX_DEPTH, MAX_DOCUMENTS, MAX_ENTRIES, CatalogReader
from tests.client.deployment import BASE, Deployment, documents
from tests.echo import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

HOME = "https://agents.example.com"
WELL_KNOWN = f"{HOME}/.well-known/ai-catalog.json"
CARD = "application/a2a-agent-card+json"
NESTED = "application/ai-catalog+json"
SECRET = {"Authorization": "Bearer secret"}


def catalog(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"specVersion": "1.0", "entries": list(entries)}


def entry(name: str, kind: str = CARD, **more: Any) -> dict[str, Any]:
    return {"identifier": f"urn:air:example.com:x:{name}", "type": kind, "url": f"/{name}.json", **more}


def card(name: str, description: str = "d", *tags: str) -> dict[str, Any]:
    interface = {"url": f"{HOME}/{name}", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    skills = [{"id": f"do-{name}", "name": name, "description": "d", "tags": [*tags]}]
    modes = {"defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"]}
    about = {"name": name, "description": description, "version": "2", "capabilities": {}}
    return about | modes | {"skills": skills, "supportedInterfaces": [interface]}


class Reading:
    """What a reader finds, and what it skips."""

    def __init__(self, url: str, served: Mapping[str, object]) -> None:
        self.skipped: dict[str, str] = {}
        self.reader = CatalogReader(url, documents(served), on_skipped=self.skipped.__setitem__)
        self.entries = self.reader.read()

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.entries]

    def search(self, *words: str, tags: Sequence[str] = ()) -> list[str]:
        return [one.name for one in self.reader.search(self.entries, words, tags)]


def names(url: str, served: Mapping[str, object]) -> list[str]:
    return Reading(url, served).names


def test_the_catalog_of_a_deployment_leads_to_the_card_of_each_agent() -> None:
    deployment = Deployment(Writer().agent)
    (found,) = CatalogReader(BASE, deployment.transport).read()
    assert (found.name, found.identifier, found.tags) == ("echo", "urn:air:127.0.0.1:agents:8000:echo", ("s",))
    assert found.url
    assert discover(found.url, deployment.transport).document["signatures"], "cards are signed"


@pytest.mark.parametrize("older", [False, True], ids=["current form", "form of April 2026"])
def test_catalogs_of_both_forms_are_read(older: bool) -> None:  # noqa: FBT001 - a parameter of the test
    listed = entry("painter", extensions={"https://example.com/x": 1}, updatedAt="2026-08-01T00:00:00Z")
    if older:
        kind = {"mediaType": listed.pop("type"), "displayName": "painter", "metadata": {"x": 1}}
        listed |= kind
    assert names(HOME, {WELL_KNOWN: catalog(listed) | {"host": {"displayName": "x"}, "signature": "a..b"}}) == [
        "painter"
    ]


def test_agents_are_found_by_tag_by_skill_and_by_words() -> None:
    told = {"displayName": "Painter", "description": "Draws."}
    served = {WELL_KNOWN: catalog(entry("painter", tags=["draw", "Art"], **told), entry("poet", tags=["write", "Art"]))}
    reading = Reading(HOME, served)
    assert reading.search(tags=["art"]) == ["Painter", "poet"]
    assert reading.search(tags=["ART", "write"]) == ["poet"]
    assert reading.search("PAINT", "draw") == ["Painter"]
    assert reading.search("nobody") == []


def test_a_catalog_entry_comes_before_its_card_which_fills_the_gaps() -> None:
    inline = {"identifier": "urn:air:example.com:x:inline", "type": CARD, "data": card("Sculptor", "Carves stone.")}
    served = {
        WELL_KNOWN: catalog(entry("a", displayName="Ours"), entry("b", tags=["odes"]), inline),
        f"{HOME}/a.json": card("Theirs", "Paints walls.", "art"),
        f"{HOME}/b.json": card("Poet", "Writes odes."),
    }
    reading = Reading(HOME, served)
    (painter,) = reading.reader.search(reading.entries, ["walls"], ["art"])
    assert (painter.name, painter.description, painter.version) == ("Ours", "Paints walls.", "2")
    assert reading.search() == ["Ours", "Poet", "Sculptor"]
    assert reading.search("stone") == ["Sculptor"]
    assert reading.search(tags=["do-b"]) == [], "an entry that has tags is listed under them"


def test_a_card_that_is_not_read_leaves_the_entry_as_it_is_listed() -> None:
    served: dict[str, object] = {
        WELL_KNOWN: catalog(
            entry("gone", tags=["art"]), entry("broken"), entry("far", url="http://far.example.com/card.json")
        ),
        f"{HOME}/broken.json": {"name": 5},
    }
    reading = Reading(HOME, served)
    assert reading.search() == ["gone", "broken", "far"]
    assert reading.search("art") == ["gone"]
    assert [*reading.skipped] == [f"{HOME}/gone.json", f"{HOME}/broken.json", "http://far.example.com/card.json"]
    assert all(reading.skipped.values())


def test_cards_are_read_as_far_as_so_many_go() -> None:
    served: dict[str, object] = {f"{HOME}/{n}.json": card(f"agent {n}") for n in range(MAX_CARDS + 2)}
    served[WELL_KNOWN] = catalog(*(entry(str(n)) for n in range(MAX_CARDS + 2)))
    reading = Reading(HOME, served)
    assert reading.search()[-3:] == [f"agent {MAX_CARDS - 1}", str(MAX_CARDS), str(MAX_CARDS + 1)]
    assert len(reading.skipped) == 2


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (None, "the entry: "),
        ("x", "the entry: "),
        ({"type": CARD, "url": "/x.json"}, "identifier: "),
        ({"identifier": "urn:x", "url": "/x.json"}, "type: "),
        (entry("x", CARD, data={}), "the entry: must have exactly one of url and data"),
        ({"identifier": "urn:x", "type": CARD}, "the entry: must have exactly one of url and data"),
        (entry("x", tags="art"), "tags: "),
        (entry("x", displayName=["x"]), "displayName: "),
        (entry("x", url="http://["), "Invalid IPv6 URL"),
    ],
)
def test_an_entry_that_cannot_be_read_is_skipped_with_a_reason_and_hides_no_other(broken: Any, why: str) -> None:
    reading = Reading(HOME, {WELL_KNOWN: catalog(entry("a"), broken, entry("b"))})
    assert reading.names == ["a", "b"]
    ((where, told),) = reading.skipped.items()
    assert where in {f"{WELL_KNOWN}, entry 2", "http://["}
    assert told.startswith(why)


def test_a_catalog_is_read_as_far_as_so_many_entries_go() -> None:
    reading = Reading(HOME, {WELL_KNOWN: catalog(*(entry(str(n)) for n in range(MAX_ENTRIES + 1)))})
    assert len(reading.names) == MAX_ENTRIES
    assert reading.skipped == {WELL_KNOWN: f"only the first {MAX_ENTRIES} entries are read"}


def test_nested_catalogs_are_read_and_what_is_no_agent_is_left_out() -> None:
    inner = catalog(entry("inner"))
    served = {
        WELL_KNOWN: catalog(entry("tool", "application/mcp-server-card+json"), entry("more", NESTED), entry("outer")),
        f"{HOME}/more.json": inner,
        f"{HOME}/all.json": catalog({**entry("inline", NESTED), "url": None, "data": inner}),
    }
    assert names(HOME, served) == ["inner", "outer"]
    assert names(f"{HOME}/all.json", served) == ["inner"]
    (found, _) = Reading(HOME, served).entries
    assert found.url == f"{HOME}/inner.json", "addresses are relative to their catalog"


def test_a_catalog_that_contains_itself_is_read_once() -> None:
    assert names(HOME, {WELL_KNOWN: catalog(entry("a"), entry("b", NESTED, url=WELL_KNOWN))}) == ["a"]


def test_catalogs_are_read_to_the_depth_that_the_specification_recommends() -> None:
    served: dict[str, object] = {WELL_KNOWN: catalog(entry("1", NESTED), entry("a"))}
    served |= {f"{HOME}/{n}.json": catalog(entry(str(n + 1), NESTED), entry("a")) for n in range(1, 9)}
    reading = Reading(HOME, served)
    assert len(reading.names) == MAX_DEPTH
    assert [*reading.skipped] == [f"/{MAX_DEPTH}.json"]


def test_a_catalog_of_many_catalogs_is_read_as_far_as_so_many_documents_go() -> None:
    served: dict[str, object] = {f"{HOME}/{number}.json": catalog(entry("a")) for number in range(100)}
    served[WELL_KNOWN] = catalog(*(entry(str(number), NESTED) for number in range(100)))
    reading = Reading(HOME, served)
    assert len(reading.names) == MAX_DOCUMENTS - 1
    assert len(reading.skipped) == 100 - MAX_DOCUMENTS + 1


@pytest.mark.parametrize(
    "url", ["/gone.json", "/broken.json", "http://[", "http://far.example.com/c.json", "https://127.0.0.1/c.json"]
)
def test_a_nested_catalog_that_is_not_read_hides_no_others(url: str) -> None:
    served: dict[str, object] = {
        WELL_KNOWN: catalog(entry("a"), entry("b", NESTED, url=url), entry("c")),
        f"{HOME}/broken.json": {"entries": []},
        "http://far.example.com/c.json": catalog(entry("far")),
        "https://127.0.0.1/c.json": catalog(entry("near")),
    }
    reading = Reading(HOME, served)
    assert reading.names == ["a", "c"]
    assert [*reading.skipped] == [url]


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ([], "it must be an object"),
        ("catalog", "it must be an object"),
        ({}, "specVersion must be 1.0"),
        ({"specVersion": "2.0", "entries": []}, "specVersion must be 1.0"),
        ({"specVersion": 1.0, "entries": []}, "specVersion must be 1.0"),
        ({"specVersion": "1.0"}, "entries must be a list"),
        ({"specVersion": "1.7", "entries": {}}, "entries must be a list"),
    ],
)
def test_an_invalid_catalog_is_refused_with_its_url_and_the_fault(document: object, what: str) -> None:
    with pytest.raises(InvalidAgentResponse, match=f"^{WELL_KNOWN}: It is not an AI Catalog.*: {what}"):
        names(HOME, {WELL_KNOWN: document})


def test_credentials_go_to_the_host_of_the_catalog_only_and_by_https() -> None:
    asked: list[ClientRequest] = []
    served = {
        WELL_KNOWN: catalog(entry("near", NESTED), entry("far", NESTED, url="https://far.example.com/c.json")),
        f"{HOME}/near.json": catalog(),
        "https://far.example.com/c.json": catalog(),
    }

    @contextmanager
    def transport(call: ClientRequest) -> Iterator[ClientResponse]:
        asked.append(call)
        yield ClientResponse(200, {}, io.BytesIO(json.dumps(served[call.url]).encode()))

    assert CatalogReader(HOME, with_credentials(transport, HOME, SECRET)).read() == []
    assert ["Authorization" in call.headers for call in asked] == [True, True, False]
