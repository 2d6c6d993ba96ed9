"""Agent cards (specification 4.4), independent of the protocol version.

Only the features that our deployments support are here: an OAuth scheme has one flow, and none of the two that OAuth
2.1 removed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.domain.agent import AgentSkill
    from a2a_serverless.domain.model import JsonObject
    from a2a_serverless.domain.push import WireVersion


@dataclass(frozen=True, slots=True)
class AgentInterface:
    """A URL and protocol binding of the agent (4.4.6). ``version`` is Major.Minor; every request carries ``tenant``."""

    url: str
    binding: str
    version: WireVersion
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class AgentProvider:
    """The organization that runs the agent (4.4.2)."""

    organization: str
    url: str


@dataclass(frozen=True, slots=True)
class AgentExtension:
    """An extension that the agent supports, or requires of its clients (4.4.4)."""

    uri: str
    description: str = ""
    required: bool = False
    params: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ApiKeySecurityScheme:
    """A key in a header, a query parameter or a cookie (4.5.2)."""

    name: str
    location: Literal["header", "query", "cookie"] = "header"
    description: str = ""


@dataclass(frozen=True, slots=True)
class HttpAuthSecurityScheme:
    """An HTTP authentication scheme such as Bearer (4.5.3)."""

    scheme: str
    bearer_format: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class OAuth2SecurityScheme:
    """OAuth 2.0 with one flow (4.5.4), which decides which URLs are set. ``scopes`` maps scopes to descriptions."""

    flow: Literal["authorizationCode", "clientCredentials", "deviceCode"]
    token_url: str
    scopes: Mapping[str, str] = field(default_factory=dict)
    authorization_url: str = ""
    device_authorization_url: str = ""
    refresh_url: str = ""
    pkce_required: bool = False
    metadata_url: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class OpenIdConnectSecurityScheme:
    """OpenID Connect by its discovery document (4.5.5)."""

    url: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class MutualTlsSecurityScheme:
    """A client certificate (4.5.6)."""

    description: str = ""


SecurityScheme: TypeAlias = (
    ApiKeySecurityScheme
    | HttpAuthSecurityScheme
    | OAuth2SecurityScheme
    | OpenIdConnectSecurityScheme
    | MutualTlsSecurityScheme
)


@dataclass(frozen=True, slots=True)
class AgentCard:
    """An agent card (4.4.1). The first interface is the preferred one.

    ``security`` holds alternatives, each a mapping of scheme names to scopes that are needed together.
    """

    name: str
    description: str
    version: str
    interfaces: tuple[AgentInterface, ...]
    skills: tuple[AgentSkill, ...]
    input_modes: tuple[str, ...]
    output_modes: tuple[str, ...]
    streaming: bool = True
    push: bool = True
    extended: bool = False
    extensions: tuple[AgentExtension, ...] = ()
    provider: AgentProvider | None = None
    documentation_url: str = ""
    icon_url: str = ""
    schemes: Mapping[str, SecurityScheme] = field(default_factory=dict)
    security: tuple[Mapping[str, tuple[str, ...]], ...] = ()
