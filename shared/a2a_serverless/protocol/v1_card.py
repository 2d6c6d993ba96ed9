"""The agent card of A2A 1.0 (4.4, 4.5 and 8).

Cards are printed by the presence rules of canonicalization (8.4.1): REQUIRED members and set ``optional`` members
stay, every other member at its default is left out. So the canonical form of a card is the JCS of the served document
without its signatures. No required member may be empty: readers disagree on whether an empty member counts.

Here are only the security schemes that a deployment of ours can have: API keys, and tokens of an OpenID Connect issuer.
``card_signatures`` signs the printed card.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from a2a_serverless.protocol.protojson import ProtoModel, violation

Texts = tuple[str, ...]


class AgentInterface(ProtoModel):
    """An address of the agent and its binding (4.4.6). The version is Major.Minor; every request repeats ``tenant``."""

    url: str
    protocol_binding: str
    protocol_version: str
    tenant: str = ""


class AgentProvider(ProtoModel):
    """The organization that runs the agent (4.4.2)."""

    organization: str
    url: str


class AgentExtension(ProtoModel):
    """An extension that the agent understands, or requires of its clients (4.4.4)."""

    uri: str
    description: str = ""
    required: bool = False
    params: Annotated[dict[str, Any] | None, BeforeValidator(lambda params: params or None)] = None


class AgentCapabilities(ProtoModel):
    """The optional features of the agent (4.4.3)."""

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


class OpenIdConnectSecurityScheme(ProtoModel):
    """OpenID Connect by its discovery document (4.5.5)."""

    open_id_connect_url: str
    description: str = ""


class SecurityScheme(ProtoModel):
    """An API key or OpenID Connect (4.5.1)."""

    api_key_security_scheme: ApiKeySecurityScheme | None = None
    open_id_connect_security_scheme: OpenIdConnectSecurityScheme | None = None

    @model_validator(mode="after")
    def _check_one_of(self) -> Self:
        if len([scheme for scheme in self.__dict__.values() if scheme is not None]) != 1:
            raise violation("must have exactly one scheme")
        return self


class AgentCard(ProtoModel):
    """The card of an agent (4.4.1). The first interface is the preferred one.

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
