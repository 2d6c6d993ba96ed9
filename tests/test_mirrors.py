"""``mirror`` makes an agent of a remote agent's card: with their words, our address, and our abilities."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless import OAuthClientCredentials, SecretHeaders, SigV4, mirror
from a2a_serverless.agent_loader import by_id, describe, load_agents, write_manifest
from a2a_serverless.domain.agent import slug
from a2a_serverless.domain.remotes import Remote
from a2a_serverless.protocol.protojson import as_json
from a2a_serverless.services.publish import card_of

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_serverless.domain.remotes import Auth

URL = "https://far.example.com/a2a"
SKILL = {
    "id": "forecast",
    "name": "Forecast",
    "description": "Says the weather",
    "tags": ["weather"],
    "examples": ["Rain?"],
    "inputModes": ["text/plain"],
}
CARD: dict[str, Any] = {
    "name": "Weather Agent",
    "description": "Knows the weather",
    "version": "7",
    "supportedInterfaces": [
        {"url": f"{URL}/http", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0", "tenant": "acme"},
        {"url": f"{URL}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
    ],
    "capabilities": {
        "streaming": True,
        "extensions": [{"uri": "urn:x:maps", "description": "Maps", "params": {"zoom": 3}}],
    },
    "defaultInputModes": ["text/plain", "image/png"],
    "defaultOutputModes": ["application/json"],
    "skills": [SKILL],
}
OLD = {
    "name": "Old",
    "url": f"{URL}/old",
    "preferredTransport": "JSONRPC",
    "protocolVersion": "0.3.0",
    "capabilities": {"pushNotifications": True},
    "defaultInputModes": ["text"],
    "skills": [{"id": "s", "name": "", "description": "", "tags": []}],
}


def test_the_card_that_is_served_is_theirs_with_our_address_and_our_abilities() -> None:
    agent = mirror(URL, card=CARD)
    served = as_json(card_of(agent, "https://agents.example.com", {}))
    assert served["name"] == "Weather Agent"
    assert served["version"] == "7"
    assert served["defaultInputModes"] == CARD["defaultInputModes"]
    assert served["defaultOutputModes"] == CARD["defaultOutputModes"]
    assert served["skills"] == [SKILL | {"outputModes": ["application/json"]}]
    assert {one["url"] for one in served["supportedInterfaces"]} == {"https://agents.example.com/weather-agent"}
    assert served["capabilities"]["streaming"] is served["capabilities"]["pushNotifications"] is True
    assert served["capabilities"]["extensions"][0] == CARD["capabilities"]["extensions"][0]


@pytest.mark.parametrize(
    ("binding", "url", "tenant"),
    [("", f"{URL}/rpc", ""), ("JSONRPC", f"{URL}/rpc", ""), ("HTTP+JSON", f"{URL}/http", "acme")],
)
def test_the_interface_is_the_first_of_its_binding(binding: str, url: str, tenant: str) -> None:
    remote = mirror(URL, card=CARD, binding=binding).remote
    assert remote
    assert (remote.url, remote.tenant, remote.streaming, remote.push) == (url, tenant, True, False)
    assert remote.subscribes


def test_an_old_card_that_lacks_half_of_it_is_enough() -> None:
    agent = mirror(URL, card=OLD, id="old")
    streaming = mirror(URL, card=OLD | {"capabilities": {"streaming": True}}).remote
    assert streaming
    assert (streaming.streaming, streaming.subscribes) == (True, False)
    assert agent.remote == Remote(f"{URL}/old", "0.3", "JSONRPC", push=True, card_url=URL)
    assert by_id((agent,))["old"].skills[0].tags == ("s",)
    assert (agent.version, agent.description, agent.input_modes) == ("1.0.0", "Old", ("text/plain",))


@pytest.mark.parametrize(
    "auth",
    [
        None,
        SecretHeaders({"Authorization": "weather"}),
        OAuthClientCredentials("https://login.example.com/token", "me", "client", scope="a2a"),
        SigV4("bedrock-agentcore", "us-west-2"),
    ],
)
def test_the_build_writes_a_mirror_into_the_manifest_and_the_functions_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, auth: Auth | None
) -> None:
    module = f"weather_{type(auth).__name__.lower()}"
    (tmp_path / f"{module}.py").write_text(
        "from a2a_serverless import *\nfrom pathlib import Path\n"
        f"far = mirror({URL!r}, id='far', card=Path(__file__).with_name('far.json'), auth={auth!r}, silence_s=60)\n"
    )
    (tmp_path / "far.json").write_text(json.dumps(CARD))
    monkeypatch.syspath_prepend(tmp_path)
    path = f"{module}:far"
    write_manifest(tmp_path / "agents.json", {path: describe(path)})
    (agent,) = load_agents(tmp_path / "agents.json")
    assert agent.remote
    assert (agent.remote.auth, agent.remote.silence_s) == (auth, 60)
    assert agent.remote.card_file.endswith("far.json")
    assert agent.skills == mirror(URL, card=CARD).skills


WRONG: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("https://other.example.com", CARD, {}, "another origin: name https://far.example.com"),
    (URL, CARD, {"binding": "GRPC"}, "over GRPC"),
    (URL, {"name": ""}, {}, "cannot be used"),
    ("http://far.example.com", OLD | {"url": "http://far.example.com"}, {"auth": SigV4("s", "r")}, "https only"),
    (URL, CARD, {"auth": OAuthClientCredentials("http://login.example.com", "me", "client")}, "https only"),
]


@pytest.mark.parametrize(("url", "card", "options", "why"), WRONG)
def test_a_mirror_that_cannot_work_is_refused_when_it_is_made(
    url: str, card: dict[str, Any], options: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        mirror(url, card=card, **options)


def test_credentials_may_go_to_this_machine_in_clear() -> None:
    agent = mirror("http://127.0.0.1:1", card=OLD | {"url": "http://127.0.0.1:1"}, auth=SecretHeaders({"X": "x"}))
    assert agent.remote


@pytest.mark.parametrize(
    ("name", "made"), [("Weather Agent", "weather-agent"), ("Ünïcode 2!", "n-code-2"), ("!", "agent")]
)
def test_a_name_becomes_a_path_segment(name: str, made: str) -> None:
    assert slug(name) == made
