"""The agent card of A2A 0.3.0 (5.5), both versions in one document, and the card from before 0.3."""

from __future__ import annotations

from typing import Any, Final, Literal, Self

from pydantic import Field

from a2a_serverless.protocol import v1_card
from a2a_serverless.protocol.protojson import ProtoModel, as_json

PROTOCOL_VERSION: Final = "0.3.0"
# 0.3's ``type`` of each scheme of 1.0.
_TYPES: Final = {"api_key_security_scheme": "apiKey", "open_id_connect_security_scheme": "openIdConnect"}


class AgentInterface(ProtoModel):
    """The address and the transport of an interface (5.5.5)."""

    url: str
    transport: str


class SecurityScheme(ProtoModel):
    """A scheme in OpenAPI's form (5.5.3); ``type`` tells its members."""

    type: Literal["apiKey", "openIdConnect"]
    location: str = Field("", alias="in")
    name: str = ""
    open_id_connect_url: str = ""
    description: str = ""

    @classmethod
    def of(cls, scheme: v1_card.SecurityScheme) -> Self:
        """A scheme of 1.0 in 0.3's form."""
        ((name, inner),) = [(name, inner) for name, inner in scheme.__dict__.items() if inner is not None]
        return cls(type=_TYPES[name], **inner.__dict__)


class AgentCard(ProtoModel):
    """The card of an agent (5.5)."""

    name: str
    description: str
    version: str
    provider: v1_card.AgentProvider | None = None
    documentation_url: str | None = None
    icon_url: str | None = None
    default_input_modes: tuple[str, ...]
    default_output_modes: tuple[str, ...]
    protocol_version: str
    url: str
    preferred_transport: str
    additional_interfaces: tuple[AgentInterface, ...]
    capabilities: v1_card.AgentCapabilities
    skills: tuple[v1_card.AgentSkill, ...]
    supports_authenticated_extended_card: bool = False
    security_schemes: dict[str, SecurityScheme] = Field({})
    security: tuple[dict[str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, card: v1_card.AgentCard) -> Self:
        """A card of 1.0 in 0.3's form. Raises ValueError when the agent has no interface of that version."""
        old = [interface for interface in card.supported_interfaces if interface.protocol_version == "0.3"]
        if not old:
            raise ValueError("the agent has no 0.3 interface")
        return cls(
            **card.__dict__
            | {
                "protocol_version": PROTOCOL_VERSION,
                "url": old[0].url,
                "preferred_transport": old[0].protocol_binding,
                "additional_interfaces": tuple(
                    AgentInterface(url=interface.url, transport=interface.protocol_binding) for interface in old
                ),
                "capabilities": card.capabilities.model_copy(update={"extended_agent_card": None}),
                "supports_authenticated_extended_card": card.capabilities.extended_agent_card or False,
                "security_schemes": {name: SecurityScheme.of(scheme) for name, scheme in card.security_schemes.items()},
                "security": tuple(
                    {name: scopes.list for name, scopes in requirement.schemes.items()}
                    for requirement in card.security_requirements
                ),
            }
        )


def old_card(card: v1_card.AgentCard) -> dict[str, Any]:
    """The card of 0.3 as JSON values. Raises ValueError when the agent has no interface of that version."""
    return as_json(AgentCard.of(card))


def union_card(card: v1_card.AgentCard) -> dict[str, Any]:
    """One document for clients of both versions; without a 0.3 interface it is the card of 1.0.

    A member that both versions have has the value of 1.0. A security scheme has the members of both.
    """
    new: dict[str, Any] = as_json(card)
    if not any(interface.protocol_version == "0.3" for interface in card.supported_interfaces):
        return new
    union: dict[str, Any] = _merge(old_card(card), new)
    return union


def _merge(old: Any, new: Any) -> Any:  # noqa: ANN401 - JSON values
    """Both, member by member; where they differ, the new one."""
    if isinstance(old, dict) and isinstance(new, dict):
        both = {name: _merge(old[name], new[name]) for name in old.keys() & new.keys()}
        return new | {name: value for name, value in old.items() if name not in new} | both
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [_merge(first, second) for first, second in zip(old, new, strict=True)]
    return new


# --- before 0.3 ------------------------------------------------------------------------------------------------------


class LegacySkill(ProtoModel):
    """A skill with all of its members: there were no defaults for all skills yet."""

    id: str
    name: str
    description: str
    input_modes: tuple[str, ...]
    output_modes: tuple[str, ...]
    examples: tuple[str, ...]

    @classmethod
    def of(cls, skill: v1_card.AgentSkill, card: v1_card.AgentCard) -> Self:
        """A skill of a card of 1.0 with the modes that it has."""
        modes = {
            "input_modes": skill.input_modes or card.default_input_modes,
            "output_modes": skill.output_modes or card.default_output_modes,
        }
        return cls(**skill.__dict__ | modes)


class LegacyAuthentication(ProtoModel):
    """The names of schemes."""

    schemes: tuple[str, ...]


class LegacyCard(ProtoModel):
    """The card that clients from before 0.3 read at ``agent.json``."""

    name: str
    description: str
    url: str
    version: str
    capabilities: v1_card.AgentCapabilities
    authentication: LegacyAuthentication
    skills: tuple[LegacySkill, ...]

    @classmethod
    def of(cls, card: v1_card.AgentCard, url: str) -> Self:
        """A card of 1.0 in the older form; ``url`` is the address for those clients."""
        schemes = ["apiKey" if scheme.api_key_security_scheme else "http" for scheme in card.security_schemes.values()]
        return cls(
            name=card.name,
            description=card.description,
            url=url,
            version=card.version,
            capabilities=card.capabilities.model_copy(update={"extensions": (), "extended_agent_card": None}),
            authentication=LegacyAuthentication(schemes=tuple(schemes)),
            skills=tuple(LegacySkill.of(skill, card) for skill in card.skills),
        )
