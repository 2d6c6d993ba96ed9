"""Cards are printed in every form as they always were, and peers' cards are read as leniently."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_serverless.domain.errors import InvalidAgentResponse
from a2a_serverless.protocol.card_signatures import without_empties
from a2a_serverless.protocol.peers import NoInterface, interface_of, read_card
from a2a_serverless.protocol.protojson import as_json
from a2a_serverless.protocol.strict_json import dumps
from a2a_serverless.protocol.v0_3_card import LegacyCard, old_card, union_card
from a2a_serverless.protocol.v1_card import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentProvider,
    AgentSkill,
    ApiKeySecurityScheme,
    OpenIdConnectSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from tests.protocol import mutations
from tests.protocol.schema import assert_v0_3, assert_v1
from tests.protocol.strategies import SOME
from tests.protocol.test_fuzz import HOSTILE

URL = "https://agents.example.com/outline"
TOKEN = "https://example.com/token"
HERE = Path(__file__).parent
# What the codec before these models printed and read.
PRINTED: Final[dict[str, Any]] = json.loads((HERE / "printed_cards.json").read_text())
PEERS: Final[dict[str, Any]] = json.loads((HERE / "peer_cards.json").read_text())
PLAIN = AgentCard(
    name="Outline",
    description="Writes outlines.",
    version="1.2.3",
    supported_interfaces=(
        AgentInterface(url=URL, protocol_binding="JSONRPC", protocol_version="1.0"),
        AgentInterface(url=URL, protocol_binding="HTTP+JSON", protocol_version="1.0", tenant="acme"),
        AgentInterface(url=URL, protocol_binding="JSONRPC", protocol_version="0.3"),
        AgentInterface(url=URL, protocol_binding="HTTP+JSON", protocol_version="0.3"),
    ),
    skills=(
        AgentSkill(
            id="outline",
            name="Outline",
            description="Writes an outline.",
            tags=("writing",),
            examples=("Outline a text on bees",),
            input_modes=("text/plain",),
        ),
    ),
    default_input_modes=("text/plain",),
    default_output_modes=("application/json",),
    capabilities=AgentCapabilities(streaming=False, push_notifications=True),
)
KEY = SecurityScheme(api_key_security_scheme=ApiKeySecurityScheme(location="header", name="X-Key"))


def requirement(**schemes: tuple[str, ...]) -> SecurityRequirement:
    return SecurityRequirement(schemes={name: StringList(list=scopes) for name, scopes in schemes.items()})


def changed(card: AgentCard, **members: object) -> AgentCard:
    return card.model_copy(update=members)


FULL = changed(
    PLAIN,
    capabilities=AgentCapabilities(
        streaming=False,
        push_notifications=True,
        extensions=(
            AgentExtension(uri="urn:a", description="An extension", required=True, params={"deep": [1, {"x": None}]}),
            AgentExtension(uri="urn:b"),
        ),
        extended_agent_card=True,
    ),
    provider=AgentProvider(organization="Example", url="https://example.com"),
    documentation_url="https://example.com/docs",
    icon_url="https://example.com/icon.png",
    security_schemes={
        "key": KEY,
        "oidc": SecurityScheme(
            open_id_connect_security_scheme=OpenIdConnectSecurityScheme(
                open_id_connect_url="https://example.com/.well-known/openid-configuration"
            )
        ),
    },
    security_requirements=(requirement(key=()), requirement(oidc=("read",))),
)


@pytest.mark.parametrize(("name", "card"), [("plain", PLAIN), ("full", FULL)])
def test_every_form_of_a_card_has_the_recorded_bytes(name: str, card: AgentCard) -> None:
    legacy = as_json(LegacyCard.of(card, URL))
    forms = {"v1": as_json(card), "v0_3": old_card(card), "union": union_card(card), "legacy": legacy}
    for form, printed in forms.items():
        assert dumps(printed) == dumps(PRINTED[f"{name} {form}"])
    assert card.json_bytes() == dumps(PRINTED[f"{name} v1"])


@pytest.mark.requirement(87, 98)
@pytest.mark.parametrize("card", [PLAIN, FULL], ids=["plain", "full"])
def test_each_card_fits_the_schema_of_its_version(card: AgentCard) -> None:
    assert_v1("AgentCard", as_json(card))
    assert_v0_3("AgentCard", old_card(card))
    assert_v0_3("AgentCard", union_card(card))


@pytest.mark.requirement(61, 87, 101)
def test_a_plain_card_has_no_member_that_is_empty() -> None:
    assert as_json(PLAIN) == {
        "name": "Outline",
        "description": "Writes outlines.",
        "version": "1.2.3",
        "supportedInterfaces": [
            {"url": URL, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": URL, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0", "tenant": "acme"},
            {"url": URL, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
            {"url": URL, "protocolBinding": "HTTP+JSON", "protocolVersion": "0.3"},
        ],
        "capabilities": {"streaming": False, "pushNotifications": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["application/json"],
        "skills": [
            {
                "id": "outline",
                "name": "Outline",
                "description": "Writes an outline.",
                "tags": ["writing"],
                "examples": ["Outline a text on bees"],
                "inputModes": ["text/plain"],
            }
        ],
    }


def test_a_0_3_card_names_its_main_interface_first() -> None:
    card = old_card(PLAIN)
    assert {name: card[name] for name in ("protocolVersion", "url", "preferredTransport", "additionalInterfaces")} == {
        "protocolVersion": "0.3.0",
        "url": URL,
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": URL, "transport": "JSONRPC"}, {"url": URL, "transport": "HTTP+JSON"}],
    }


def test_security_is_spelled_as_each_version_does() -> None:
    assert as_json(FULL)["securityRequirements"] == [
        {"schemes": {"key": {}}},
        {"schemes": {"oidc": {"list": ["read"]}}},
    ]
    assert old_card(FULL)["security"] == [{"key": []}, {"oidc": ["read"]}]
    assert old_card(FULL)["supportsAuthenticatedExtendedCard"] is True
    capabilities = as_json(FULL)["capabilities"]
    assert isinstance(capabilities, dict)
    assert capabilities["extendedAgentCard"] is True


@pytest.mark.parametrize(
    ("scheme", "new", "old"),
    [
        (
            SecurityScheme(
                api_key_security_scheme=ApiKeySecurityScheme(location="query", name="k", description="A key")
            ),
            {"apiKeySecurityScheme": {"location": "query", "name": "k", "description": "A key"}},
            {"type": "apiKey", "in": "query", "name": "k", "description": "A key"},
        ),
        (
            SecurityScheme(open_id_connect_security_scheme=OpenIdConnectSecurityScheme(open_id_connect_url="u")),
            {"openIdConnectSecurityScheme": {"openIdConnectUrl": "u"}},
            {"type": "openIdConnect", "openIdConnectUrl": "u"},
        ),
    ],
)
def test_each_security_scheme_has_two_shapes_and_a_union_card_holds_both(
    scheme: SecurityScheme, new: dict[str, Any], old: dict[str, Any]
) -> None:
    card = changed(PLAIN, security_schemes={"x": scheme})
    assert as_json(card)["securitySchemes"] == {"x": new}
    assert old_card(card)["securitySchemes"] == {"x": old}
    assert union_card(card)["securitySchemes"] == {"x": old | new}


def test_a_union_card_has_every_member_of_both() -> None:
    union = union_card(FULL)
    assert union.keys() == as_json(FULL).keys() | old_card(FULL).keys()
    assert {name: union[name] for name in ("supportedInterfaces", "skills", "capabilities")} == {
        name: as_json(FULL)[name] for name in ("supportedInterfaces", "skills", "capabilities")
    }


def test_an_agent_without_a_0_3_interface_has_a_1_0_card_only() -> None:
    modern = changed(PLAIN, supported_interfaces=PLAIN.supported_interfaces[:2])
    assert union_card(modern) == as_json(modern)
    with pytest.raises(ValueError, match=r"no 0\.3 interface"):
        old_card(modern)


def test_the_older_card_lists_schemes_by_name_and_every_skill_says_all_of_its_modes() -> None:
    card = as_json(LegacyCard.of(changed(PLAIN, security_schemes={"key": KEY}), URL))
    assert card == {
        "name": "Outline",
        "description": "Writes outlines.",
        "url": URL,
        "version": "1.2.3",
        "capabilities": {"streaming": False, "pushNotifications": True},
        "authentication": {"schemes": ["apiKey"]},
        "skills": [
            {
                "id": "outline",
                "name": "Outline",
                "description": "Writes an outline.",
                "examples": ["Outline a text on bees"],
                "inputModes": ["text/plain"],
                "outputModes": list(PLAIN.default_output_modes),
            }
        ],
    }


@pytest.mark.parametrize("printed", [as_json(PLAIN), union_card(PLAIN)], ids=["v1", "union"])
def test_a_peers_card_is_read(printed: dict[str, Any]) -> None:
    assert read_card(printed) == changed(PLAIN)


def test_a_peers_0_3_card_is_read() -> None:
    card = read_card(old_card(PLAIN))
    assert card.supported_interfaces == (PLAIN.supported_interfaces[2], *PLAIN.supported_interfaces[2:])


def test_an_example_of_a_peers_skill_may_have_several_lines() -> None:
    card = as_json(changed(PLAIN))
    card["skills"] = [{"id": "s", "name": "s", "description": "s", "tags": [], "examples": ["# Bees\n\nA text."]}]
    assert read_card(card).skills[0].examples == ("# Bees\n\nA text.",)


def test_interfaces_of_versions_that_we_do_not_speak_are_left_out() -> None:
    interfaces: list[Any] = [
        {"url": "u", "protocolBinding": "GRPC", "protocolVersion": version}
        for version in ("2.0", "0.30", "1.0.1", "0.3.0", "")
    ]
    card = read_card({"name": "n", "supportedInterfaces": interfaces})
    assert [one.protocol_version for one in card.supported_interfaces] == ["1.0", "0.3", "0.3"]


@pytest.mark.parametrize("value", [None, {}, {"name": "n"}, {"name": "n", "supportedInterfaces": [{}]}])
def test_a_card_that_leads_nowhere_is_the_peers_fault(value: object) -> None:
    with pytest.raises((InvalidAgentResponse, NoInterface)):
        interface_of(read_card(value))


def _edited(base: str, place: str, put: object) -> Any:
    """The peer's card with one member replaced, removed, or spelled in snake_case."""
    card = copy.deepcopy(PEERS[base]["card"])
    *way, name = [int(word) if word.isdecimal() else word for word in place.split(".")]
    holder = card
    for word in way:
        holder = holder[word]
    match put:
        case "(removed)":
            del holder[name]
        case "(snake_case)":
            holder["".join(f"_{char.lower()}" if char.isupper() else char for char in str(name))] = holder.pop(name)
        case _:
            holder[name] = "x" * 1025 if put == "(1025)" else put
    return card


def _read(card: object) -> Any:
    try:
        return json.loads(json.dumps(without_empties(as_json(read_card(card)))).replace("x" * 1025, "(1025)"))
    except InvalidAgentResponse:
        return "refused"


@pytest.mark.parametrize("where", [name for name in PEERS if " " in name])
def test_a_card_of_a_peer_is_read_or_refused_as_recorded(where: str) -> None:
    base, place = where.split(" ")
    for put, said in PEERS[where]:
        expected = said
        if said != "refused":
            expected = {name: value for name, value in (PEERS[base]["read"] | said).items() if value is not None}
        assert _read(_edited(base, place, put)) == expected, put


@given(st.sampled_from([*PRINTED.values()]).flatmap(lambda card: mutations.changed(card, 2)) | HOSTILE)
@SOME
def test_any_card_of_a_peer_is_read_or_is_the_peers_fault(card: Any) -> None:
    with suppress(InvalidAgentResponse):
        read_card(card)
