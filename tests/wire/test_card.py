import base64
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from jwt import InvalidSignatureError, PyJWS

from a2a_serverless.domain.agent import AgentSkill
from a2a_serverless.domain.card import (
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentProvider,
    ApiKeySecurityScheme,
    HttpAuthSecurityScheme,
    MutualTlsSecurityScheme,
    OAuth2SecurityScheme,
    OpenIdConnectSecurityScheme,
    SecurityScheme,
)
from a2a_serverless.domain.errors import InvalidAgentResponse
from a2a_serverless.domain.model import Json
from a2a_serverless.wire.card import (
    canonical,
    etag,
    legacy_card,
    read_card,
    signature,
    signed_forms,
    unchanged,
    union_card,
    v0_3_card,
    v1_card,
)
from tests.wire.schema import assert_v0_3, assert_v1

URL = "https://agents.example.com/outline"
SKILL = AgentSkill(
    "outline", "Outline", "Writes an outline.", ("writing",), ("Outline a text on bees",), ("text/plain",)
)
PLAIN = AgentCard(
    name="Outline",
    description="Writes outlines.",
    version="1.2.3",
    interfaces=(
        AgentInterface(URL, "JSONRPC", "1.0"),
        AgentInterface(URL, "HTTP+JSON", "1.0", tenant="acme"),
        AgentInterface(URL, "JSONRPC", "0.3"),
        AgentInterface(URL, "HTTP+JSON", "0.3"),
    ),
    skills=(SKILL,),
    input_modes=("text/plain",),
    output_modes=("application/json",),
    streaming=False,
)
FULL = replace(
    PLAIN,
    extended=True,
    extensions=(
        AgentExtension("urn:a", "An extension", required=True, params={"deep": [1, {"x": None}]}),
        AgentExtension("urn:b"),
    ),
    provider=AgentProvider("Example", "https://example.com"),
    documentation_url="https://example.com/docs",
    icon_url="https://example.com/icon.png",
    schemes={
        "key": ApiKeySecurityScheme("X-Key"),
        "bearer": HttpAuthSecurityScheme("Bearer", "JWT", "A token"),
        "oauth": OAuth2SecurityScheme(
            "authorizationCode",
            "https://example.com/token",
            {"read": "Reads"},
            authorization_url="https://example.com/authorize",
            refresh_url="https://example.com/refresh",
            pkce_required=True,
            metadata_url="https://example.com/.well-known/oauth",
        ),
        "machine": OAuth2SecurityScheme("clientCredentials", "https://example.com/token"),
        "tv": OAuth2SecurityScheme(
            "deviceCode", "https://example.com/token", device_authorization_url="https://example.com/device"
        ),
        "oidc": OpenIdConnectSecurityScheme("https://example.com/.well-known/openid-configuration"),
        "mtls": MutualTlsSecurityScheme(),
    },
    security=({"key": ()}, {"oauth": ("read",), "mtls": ()}),
)


@pytest.mark.requirement(87, 98)
@pytest.mark.parametrize("card", [PLAIN, FULL], ids=["plain", "full"])
def test_each_card_fits_the_schema_of_its_version(card: AgentCard) -> None:
    assert_v1("AgentCard", v1_card(card))
    assert_v0_3("AgentCard", v0_3_card(card))
    assert_v0_3("AgentCard", union_card(card))


@pytest.mark.requirement(61, 87, 101)
def test_a_plain_card_has_no_member_that_is_empty() -> None:
    assert v1_card(PLAIN) == {
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
    card = v0_3_card(PLAIN)
    assert {name: card[name] for name in ("protocolVersion", "url", "preferredTransport", "additionalInterfaces")} == {
        "protocolVersion": "0.3.0",
        "url": URL,
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": URL, "transport": "JSONRPC"}, {"url": URL, "transport": "HTTP+JSON"}],
    }


def test_security_is_spelled_as_each_version_does() -> None:
    assert v1_card(FULL)["securityRequirements"] == [
        {"schemes": {"key": {}}},
        {"schemes": {"oauth": {"list": ["read"]}, "mtls": {}}},
    ]
    assert v0_3_card(FULL)["security"] == [{"key": []}, {"oauth": ["read"], "mtls": []}]
    assert v0_3_card(FULL)["supportsAuthenticatedExtendedCard"] is True
    capabilities = v1_card(FULL)["capabilities"]
    assert isinstance(capabilities, dict)
    assert capabilities["extendedAgentCard"] is True


@pytest.mark.parametrize(
    ("scheme", "new", "old"),
    [
        (
            ApiKeySecurityScheme("k", "query", "A key"),
            {"apiKeySecurityScheme": {"location": "query", "name": "k", "description": "A key"}},
            {"type": "apiKey", "in": "query", "name": "k", "description": "A key"},
        ),
        (
            HttpAuthSecurityScheme("Basic"),
            {"httpAuthSecurityScheme": {"scheme": "Basic"}},
            {"type": "http", "scheme": "Basic"},
        ),
        (
            OpenIdConnectSecurityScheme("u"),
            {"openIdConnectSecurityScheme": {"openIdConnectUrl": "u"}},
            {"type": "openIdConnect", "openIdConnectUrl": "u"},
        ),
        (MutualTlsSecurityScheme(), {"mtlsSecurityScheme": {}}, {"type": "mutualTLS"}),
        (
            OAuth2SecurityScheme("authorizationCode", "t", authorization_url="a", pkce_required=True),
            {
                "oauth2SecurityScheme": {
                    "flows": {
                        "authorizationCode": {
                            "tokenUrl": "t",
                            "authorizationUrl": "a",
                            "scopes": {},
                            "pkceRequired": True,
                        }
                    }
                }
            },
            {
                "type": "oauth2",
                "flows": {
                    "authorizationCode": {
                        "tokenUrl": "t",
                        "authorizationUrl": "a",
                        "scopes": {},
                        "pkceRequired": True,
                    }
                },
            },
        ),
        (
            OAuth2SecurityScheme("deviceCode", "t", device_authorization_url="d"),
            {
                "oauth2SecurityScheme": {
                    "flows": {"deviceCode": {"tokenUrl": "t", "deviceAuthorizationUrl": "d", "scopes": {}}}
                }
            },
            {
                "type": "oauth2",
                "flows": {"deviceCode": {"tokenUrl": "t", "deviceAuthorizationUrl": "d", "scopes": {}}},
            },
        ),
    ],
)
def test_each_security_scheme_has_two_shapes_and_a_union_card_holds_both(
    scheme: SecurityScheme, new: dict[str, Any], old: dict[str, Any]
) -> None:
    card = replace(PLAIN, schemes={"x": scheme})
    assert v1_card(card)["securitySchemes"] == {"x": new}
    assert v0_3_card(card)["securitySchemes"] == {"x": old}
    assert union_card(card)["securitySchemes"] == {"x": old | new}


def test_a_union_card_has_every_member_of_both() -> None:
    union = union_card(FULL)
    assert union.keys() == v1_card(FULL).keys() | v0_3_card(FULL).keys()
    assert {name: union[name] for name in ("supportedInterfaces", "skills", "capabilities")} == {
        name: v1_card(FULL)[name] for name in ("supportedInterfaces", "skills", "capabilities")
    }


def test_an_agent_without_a_0_3_interface_has_a_1_0_card_only() -> None:
    modern = replace(PLAIN, interfaces=PLAIN.interfaces[:2])
    assert union_card(modern) == v1_card(modern)
    with pytest.raises(ValueError, match=r"no 0\.3 interface"):
        v0_3_card(modern)


def test_the_older_card_lists_schemes_by_name_and_every_skill_says_all_of_its_modes() -> None:
    card = legacy_card(replace(PLAIN, schemes={"key": ApiKeySecurityScheme("X-Key")}), URL)
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
                "outputModes": list(PLAIN.output_modes),
            }
        ],
    }


@pytest.mark.requirement(101)
def test_the_canonical_form_is_sorted_compact_and_without_signatures() -> None:
    card: dict[str, Json] = {"b": 1.0, "a": "é", "signatures": [{}], "\U0001f600": None, "\ufb33": True}
    assert canonical(card) == '{"a":"é","b":1,"\U0001f600":null,"\ufb33":true}'.encode()


KEY = ec.generate_private_key(ec.SECP256R1())


def sign(content: bytes) -> bytes:
    r, s = decode_dss_signature(KEY.sign(content, ec.ECDSA(SHA256())))
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def verified(parts: Json, payload: bytes) -> dict[str, Any]:
    """The protected header of a signature that fits the payload; raises when it does not fit."""
    assert isinstance(parts, dict)
    carried = base64.urlsafe_b64encode(payload).rstrip(b"=").decode()
    token = f"{parts['protected']}.{carried}.{parts['signature']}"
    header: dict[str, Any] = PyJWS().decode_complete(token, KEY.public_key(), algorithms=["ES256"])["header"]
    return header


@pytest.mark.requirement(101, 102)
def test_a_signature_is_a_detached_jws_over_the_canonical_card() -> None:
    card = v1_card(FULL)
    made = signature(card, "kid-1", sign, jku="https://example.com/jwks.json")
    signed: dict[str, Json] = card | {"signatures": [made]}
    assert_v1("AgentCard", signed)
    assert canonical(signed) == canonical(card)
    assert verified(made, canonical(signed)) == {
        "alg": "ES256",
        "kid": "kid-1",
        "typ": "JOSE",
        "jku": "https://example.com/jwks.json",
    }


def test_a_signature_does_not_fit_another_card() -> None:
    made = signature(v1_card(PLAIN), "kid-1", sign)
    with pytest.raises(InvalidSignatureError):
        verified(made, canonical(v1_card(FULL)))


def test_a_card_of_1_0_without_empties_is_signed_in_one_form() -> None:
    assert signed_forms(v1_card(PLAIN), v1_card(PLAIN)) == [v1_card(PLAIN)]


def test_a_card_with_an_empty_member_is_also_signed_as_the_official_sdk_reads_it() -> None:
    card = v1_card(replace(PLAIN, schemes={"key": ApiKeySecurityScheme("X-Key")}, security=({"key": ()},)))
    without = {name: value for name, value in card.items() if name != "securityRequirements"}
    assert signed_forms(card, card) == [card, without]


@pytest.mark.requirement(101)
def test_a_card_among_members_of_0_3_is_signed_alone_and_as_it_is_served() -> None:
    assert signed_forms(v1_card(PLAIN), union_card(PLAIN)) == [v1_card(PLAIN), union_card(PLAIN)]


def test_an_etag_is_the_contents() -> None:
    assert etag(b"a") == etag(b"a") != etag(b"b")
    assert etag(b"a").startswith('"')


@pytest.mark.requirement(104)
@pytest.mark.parametrize(
    ("if_none_match", "expected"),
    [
        (None, False),
        ("", False),
        ('"x"', False),
        ('"e"', True),
        ('W/"e"', True),
        ('"x", W/"e"', True),
        ("*", True),
        ("e", False),
    ],
)
def test_a_client_that_has_the_current_card_is_told_so(if_none_match: str | None, *, expected: bool) -> None:
    assert unchanged(if_none_match, '"e"') is expected


@pytest.mark.parametrize("printed", [v1_card(PLAIN), union_card(PLAIN)], ids=["v1", "union"])
def test_a_peers_card_is_read(printed: dict[str, Json]) -> None:
    without_modes = replace(SKILL, examples=(), input_modes=())
    assert read_card(printed) == replace(PLAIN, skills=(without_modes,))


def test_a_peers_0_3_card_is_read() -> None:
    card = read_card(v0_3_card(PLAIN))
    assert card.interfaces == (AgentInterface(URL, "JSONRPC", "0.3"), *PLAIN.interfaces[2:])


def test_interfaces_of_versions_that_we_do_not_speak_are_left_out() -> None:
    interfaces: list[Json] = [
        {"url": "u", "protocolBinding": "GRPC", "protocolVersion": version}
        for version in ("2.0", "0.30", "1.0.1", "0.3.0", "")
    ]
    card = read_card({"name": "n", "supportedInterfaces": interfaces})
    assert [one.version for one in card.interfaces] == ["1.0", "0.3", "0.3"]


@pytest.mark.parametrize("value", [None, {}, {"name": "n"}, {"name": "n", "supportedInterfaces": [{}]}])
def test_a_card_that_leads_nowhere_is_the_peers_fault(value: Json) -> None:
    with pytest.raises(InvalidAgentResponse):
        read_card(value)
