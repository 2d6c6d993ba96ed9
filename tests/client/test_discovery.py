from typing import Any

import pytest

from a2a_serverless.client import HttpError, NoInterface, agents_of, discover
from a2a_serverless.domain.errors import InvalidAgentResponse
from tests.client.deployment import BASE, Deployment, answering, documents
from tests.echo import Writer

HOME = "https://agents.example.com"


def card(*interfaces: dict[str, str]) -> dict[str, Any]:
    return {"name": "echo", "version": "1", "supportedInterfaces": list(interfaces)}


def interface(url: str, binding: str = "JSONRPC", version: str = "1.0", **more: str) -> dict[str, str]:
    return {"url": url, "protocolBinding": binding, "protocolVersion": version, **more}


def at_home(document: object) -> dict[str, object]:
    return {f"{HOME}/.well-known/agent-card.json": document}


def test_the_first_interface_that_we_speak_is_taken() -> None:
    first, second = interface(f"{HOME}/a", "GRPC"), interface(f"{HOME}/b", tenant="acme")
    found = discover(HOME, documents(at_home(card(first, second, interface(f"{HOME}/c")))))
    assert (found.client.url, found.client.tenant) == (f"{HOME}/b", "acme")


def test_a_client_discovers_an_agent_by_the_url_of_its_card() -> None:
    found = discover(f"{HOME}/cards/echo.json", documents({f"{HOME}/cards/echo.json": card(interface(HOME))}))
    assert found.client.url == HOME


def test_an_agent_that_speaks_nothing_that_we_do_cannot_be_talked_to() -> None:
    with pytest.raises(NoInterface, match="JSON-RPC"):
        discover(HOME, documents(at_home(card(interface(HOME, binding="GRPC")))))


def test_an_agent_of_both_versions_is_spoken_to_in_the_newer_and_an_old_one_in_its_own() -> None:
    old, new = interface(f"{HOME}/old", version="0.3"), interface(f"{HOME}/new")
    assert discover(HOME, documents(at_home(card(old, new)))).client.version == "1.0"
    found = discover(HOME, documents(at_home(card(old)))).client
    assert (found.version, found.url) == ("0.3", f"{HOME}/old")


@pytest.mark.parametrize("document", [[], {"name": ""}, {"supportedInterfaces": 1}])
def test_an_invalid_card_is_an_invalid_response_of_the_agent(document: object) -> None:
    with pytest.raises(InvalidAgentResponse):
        discover(HOME, documents(at_home(document)))


def test_discovering_an_agent_without_a_card_raises_the_404() -> None:
    with pytest.raises(HttpError, match="404"):
        discover(HOME, documents({}))


def test_the_answer_of_a_gateway_instead_of_a_document_is_shown() -> None:
    transport, _ = answering((429, {}, b'{"message":"Too Many Requests"}'))
    with pytest.raises(HttpError, match=f"HTTP 429: no document at {HOME}/.*: Too Many Requests"):
        discover(HOME, transport)


def test_a_web_page_instead_of_a_card_is_an_invalid_response() -> None:
    transport, _ = answering((200, {}, b"<html>"))
    with pytest.raises(InvalidAgentResponse, match="JSON"):
        discover(HOME, transport)


def test_a_deployment_lists_its_agents() -> None:
    (only,) = agents_of(BASE, Deployment(Writer().agent).transport)
    assert (only["id"], only["card"]) == ("echo", f"{BASE}/echo/.well-known/agent-card.json")


def test_a_host_that_lists_nothing_is_no_deployment() -> None:
    with pytest.raises(InvalidAgentResponse, match="list"):
        agents_of(HOME, documents({f"{HOME}/agents": {"agents": None}}))
