"""Reading AI Catalogs of deployments of ours and of others."""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.client.catalog import MAX_DEPTH, MAX_DOCUMENTS, read_catalog, search
from a2a_serverless.client.discovery import CredentialsKept, discover
from a2a_serverless.domain.errors import InvalidAgentResponse
from a2a_serverless.http_client.transport import ClientRequest, ClientResponse
from tests.client.deployment import BASE, Deployment, documents
from tests.echo import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HOME = "https://agents.example.com"
WELL_KNOWN = f"{HOME}/.well-known/ai-catalog.json"
CARD = "application/a2a-agent-card+json"
NESTED = "application/ai-catalog+json"
SECRET = {"Authorization": "Bearer secret"}


def catalog(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"specVersion": "1.0", "entries": list(entries)}


def entry(name: str, media_type: str = CARD, **more: Any) -> dict[str, Any]:
    return {"identifier": f"urn:x:{name}", "displayName": name, "mediaType": media_type, "url": f"/{name}.json", **more}


def names(url: str, served: Mapping[str, object]) -> list[str]:
    return [one.display_name for one in read_catalog(url, documents(served))]


def test_the_catalog_of_a_deployment_leads_to_the_card_of_each_agent() -> None:
    deployment = Deployment(Writer().agent)
    (found,) = read_catalog(BASE, deployment.transport)
    assert (found.display_name, found.identifier, found.tags) == ("echo", f"{BASE}/echo", ("s",))
    assert found.url
    assert discover(found.url, deployment.transport).document["signatures"], "cards are signed"


def test_agents_are_found_by_tag_by_skill_and_by_words() -> None:
    served = {WELL_KNOWN: catalog(entry("painter", tags=["draw", "Art"]), entry("poet", tags=["write", "Art"]))}
    entries = read_catalog(HOME, documents(served))
    assert [one.display_name for one in search(entries, tags=["art"])] == ["painter", "poet"]
    assert [one.display_name for one in search(entries, tags=["ART", "write"])] == ["poet"]
    assert [one.display_name for one in search(entries, words=["PAINT", "draw"])] == ["painter"]
    assert search(entries, words=["nobody"]) == []


def test_nested_catalogs_are_read_and_what_is_no_agent_is_left_out() -> None:
    inner = catalog(entry("inner"))
    served = {
        WELL_KNOWN: catalog(entry("tool", "application/mcp-server-card+json"), entry("more", NESTED), entry("outer")),
        f"{HOME}/more.json": inner,
        f"{HOME}/all.json": catalog({**entry("inline", NESTED), "url": None, "data": inner}),
    }
    assert names(HOME, served) == ["inner", "outer"]
    assert names(f"{HOME}/all.json", served) == ["inner"]
    (found, _) = read_catalog(HOME, documents(served))
    assert found.url == f"{HOME}/inner.json", "addresses are relative to their catalog"


def test_a_catalog_that_contains_itself_is_read_once() -> None:
    assert names(HOME, {WELL_KNOWN: catalog(entry("a"), entry("b", NESTED, url=WELL_KNOWN))}) == ["a"]


def test_catalogs_are_read_to_the_depth_that_the_specification_recommends() -> None:
    served: dict[str, object] = {WELL_KNOWN: catalog(entry("1", NESTED), entry("a"))}
    served |= {f"{HOME}/{n}.json": catalog(entry(str(n + 1), NESTED), entry("a")) for n in range(1, 9)}
    skipped: list[str] = []
    assert len(read_catalog(HOME, documents(served), on_skipped=skipped.append)) == MAX_DEPTH
    assert skipped == [f"/{MAX_DEPTH}.json"]


def test_a_catalog_of_many_catalogs_is_read_as_far_as_so_many_documents_go() -> None:
    served: dict[str, object] = {f"{HOME}/{number}.json": catalog(entry("a")) for number in range(100)}
    served[WELL_KNOWN] = catalog(*(entry(str(number), NESTED) for number in range(100)))
    skipped: list[str] = []
    assert len(read_catalog(HOME, documents(served), on_skipped=skipped.append)) == MAX_DOCUMENTS - 1
    assert len(skipped) == 100 - MAX_DOCUMENTS + 1


@pytest.mark.parametrize(
    "url", ["/gone.json", "/broken.json", "http://[", "http://far.example.com/c.json", "https://127.0.0.1/c.json"]
)
def test_a_nested_catalog_that_is_not_read_hides_no_others(url: str) -> None:
    served: dict[str, object] = {
        WELL_KNOWN: catalog(entry("a"), entry("b", NESTED, url=url), entry("c")),
        f"{HOME}/broken.json": catalog({"displayName": None}),
        "http://far.example.com/c.json": catalog(entry("far")),
        "https://127.0.0.1/c.json": catalog(entry("near")),
    }
    skipped: list[str] = []
    assert [one.display_name for one in read_catalog(HOME, documents(served), on_skipped=skipped.append)] == ["a", "c"]
    assert skipped == [url]


@pytest.mark.parametrize("document", [[], {}, {"specVersion": "1.0", "entries": [{"displayName": "x"}]}, "catalog"])
def test_what_is_no_catalog_is_named_with_what_is_wrong(document: object) -> None:
    with pytest.raises(InvalidAgentResponse, match="is not an AI Catalog: "):
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

    assert read_catalog(HOME, transport, SECRET) == []
    assert ["Authorization" in call.headers for call in asked] == [True, True, False]
    with pytest.raises(CredentialsKept):
        read_catalog("http://agents.example.com", transport, SECRET)
