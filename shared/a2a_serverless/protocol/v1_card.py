"""The agent card of A2A 1.0 (4.4, 4.5 and 8).

Cards are printed by the presence rules that canonicalization (8.4.1) wants: REQUIRED members and set ``optional`` ones
stay, everything else at its default goes. So the canonical form of a card is the JCS of what is served, without its
signatures. Nothing required may be empty: readers disagree on whether an empty member counts.

Only what a deployment of ours can mean is here: an OAuth scheme has one flow, and not the two that OAuth 2.1 removed.
``card_signatures`` signs the printed card.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from a2a_serverless.protocol.protojson import ProtoModel, violation

Texts = tuple[str, ...]


class AgentInterface(ProtoModel):
    """Where and how the agent is spoken to (4.4.6). The version is Major.Minor; ``tenant`` goes into every request."""

    url: str
    protocol_binding: str
    protocol_version: str
    tenant: str = ""


class AgentProvider(ProtoModel):
    """Who runs the agent (4.4.2)."""

    organization: str
    url: str


class AgentExtension(ProtoModel):
    """An extension that the agent understands, or requires of its clients (4.4.4)."""

    uri: str
    description: str = ""
    required: bool = False
    params: Annotated[dict[str, Any] | None, BeforeValidator(lambda params: params or None)] = None


class AgentCapabilities(ProtoModel):
    """What the agent can do besides (4.4.3)."""

    streaming: bool | None = None
    push_notifications: bool | None = None
    extensions: tuple[AgentExtension, ...] = ()
    extended_agent_card: bool | None = None


class StringList(ProtoModel):
    """The scopes of a requirement."""

    list: Texts = ()


class SecurityRequirement(ProtoModel):
    """Schemes that are needed together, with their scopes."""

    schemes: dict[str, StringList]


class AgentSkill(ProtoModel):
    """Something that the agent can do (4.4.5)."""

    id: str
    name: str
    description: str
    tags: Texts
    examples: Texts = ()
    input_modes: Texts = ()
    output_modes: Texts = ()


class ApiKeySecurityScheme(ProtoModel):
    """A key in a header, a query parameter or a cookie (4.5.2)."""

    location: Literal["header", "query", "cookie"]
    name: str
    description: str = ""


class HttpAuthSecurityScheme(ProtoModel):
    """An HTTP authentication scheme such as Bearer (4.5.3)."""

    scheme: str
    bearer_format: str = ""
    description: str = ""


class OAuthFlow(ProtoModel):
    """A flow (4.5.7 to 4.5.9). Which URLs it has is the flow's business; ``scopes`` describes each scope."""

    token_url: str
    scopes: dict[str, str]
    authorization_url: str = ""
    device_authorization_url: str = ""
    refresh_url: str = ""
    pkce_required: bool = False


class OAuthFlows(ProtoModel):
    """One flow, by its name."""

    authorization_code: OAuthFlow | None = None
    client_credentials: OAuthFlow | None = None
    device_code: OAuthFlow | None = None


class OAuth2SecurityScheme(ProtoModel):
    """OAuth 2.0 (4.5.4)."""

    flows: OAuthFlows
    oauth2_metadata_url: str = ""
    description: str = ""


class OpenIdConnectSecurityScheme(ProtoModel):
    """OpenID Connect by its discovery document (4.5.5)."""

    open_id_connect_url: str
    description: str = ""


class MutualTlsSecurityScheme(ProtoModel):
    """A client certificate (4.5.6)."""

    description: str = ""


class SecurityScheme(ProtoModel):
    """One of the five (4.5.1)."""

    api_key_security_scheme: ApiKeySecurityScheme | None = None
    http_auth_security_scheme: HttpAuthSecurityScheme | None = None
    oauth2_security_scheme: OAuth2SecurityScheme | None = None
    open_id_connect_security_scheme: OpenIdConnectSecurityScheme | None = None
    mtls_security_scheme: MutualTlsSecurityScheme | None = None

    @model_validator(mode="after")
    def _check_one_of(self) -> Self:
        if len([scheme for scheme in self.__dict__.values() if scheme is not None]) != 1:
            raise violation("must have exactly one scheme")
        return self


class AgentCard(ProtoModel):
    """What an agent says about itself (4.4.1). The first interface is the preferred one.

    ``security_requirements`` holds alternatives.
    """

    name: str
    description: str
    version: str
    provider: AgentProvider | None = None
    documentation_url: str | None = None
    icon_url: str | None = None
    default_input_modes: Texts
    default_output_modes: Texts
    supported_interfaces: tuple[AgentInterface, ...]
    capabilities: AgentCapabilities
    skills: tuple[AgentSkill, ...]
    security_schemes: dict[str, SecurityScheme] = Field({})
    security_requirements: tuple[SecurityRequirement, ...] = ()
