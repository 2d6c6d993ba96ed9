"""Another agent's card, of either version: the members that we look at, read as leniently as every peer's answer.

``supportedInterfaces`` go before what 0.3 says. Interfaces of versions that we do not speak are left out, and so is its
security.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BeforeValidator

from a2a_serverless.protocol import v1_card, versions
from a2a_serverless.protocol.limits import ANSWER_LIMITS, Limits
from a2a_serverless.protocol.protojson import (
    Flag,
    Ident,
    LongText,
    Names,
    OptionalIdent,
    ProtoModel,
    RequiredText,
    RequiredUrl,
    ShortText,
    items,
)
from a2a_serverless.protocol.validation import read_peer

VERSIONS: Final = ("1.0", "0.3")


def _is_spoken(interface: object) -> bool:
    """Whether the interface is of a version of ours; what is no interface is for the reader to refuse."""
    if not isinstance(interface, dict):
        return True
    said = interface.get("protocolVersion", interface.get("protocol_version"))
    return not isinstance(said, str | None) or versions.asked(said) in VERSIONS


def _spoken(interfaces: object) -> object:
    return [one for one in interfaces if _is_spoken(one)] if isinstance(interfaces, list) else interfaces


class PeerInterface(ProtoModel):
    """An interface of 1.0."""

    url: RequiredUrl
    protocol_binding: RequiredText
    protocol_version: LongText = None
    tenant: OptionalIdent = None


class PeerOldInterface(ProtoModel):
    """An interface of 0.3."""

    url: RequiredUrl
    transport: RequiredText


class PeerSkill(ProtoModel):
    """A skill."""

    id: Ident
    name: ShortText = None
    description: LongText = None
    tags: Names = ()


class PeerCapabilities(ProtoModel):
    """What it can do besides."""

    streaming: Flag = False
    push_notifications: Flag = False


class _PeerCard(ProtoModel):
    name: RequiredText
    description: LongText = None
    version: ShortText = None
    skills: Annotated[tuple[PeerSkill, ...], items("items")] = ()
    default_input_modes: Names = ()
    default_output_modes: Names = ()
    capabilities: PeerCapabilities | None = None


class PeerCard(_PeerCard):
    """A card with the members of 1.0."""

    supported_interfaces: Annotated[tuple[PeerInterface, ...], BeforeValidator(_spoken), items("items")]

    def interfaces(self) -> list[v1_card.AgentInterface]:
        """The interfaces of versions that we speak."""
        return [
            _interface(one.url, one.protocol_binding, versions.asked(one.protocol_version), one.tenant or "")
            for one in self.supported_interfaces
        ]


class PeerOldCard(_PeerCard):
    """A card with the members of 0.3 only."""

    url: RequiredUrl
    preferred_transport: ShortText = None
    additional_interfaces: Annotated[tuple[PeerOldInterface, ...], items("items")] = ()

    def interfaces(self) -> list[v1_card.AgentInterface]:
        """All interfaces, the main one first."""
        main = _interface(self.url, self.preferred_transport or "JSONRPC", "0.3")
        return [main, *(_interface(one.url, one.transport, "0.3") for one in self.additional_interfaces)]


def _interface(url: str, binding: str, version: str, tenant: str = "") -> v1_card.AgentInterface:
    return v1_card.AgentInterface(url=url, protocol_binding=binding, protocol_version=version, tenant=tenant)


def read_card(value: object, limits: Limits = ANSWER_LIMITS) -> v1_card.AgentCard:
    """The card as one of 1.0. Raises InvalidAgentResponse."""
    names = ("supportedInterfaces", "supported_interfaces")
    is_new = isinstance(value, dict) and any(value.get(name) is not None for name in names)
    card = read_peer(PeerCard, value, limits) if is_new else read_peer(PeerOldCard, value, limits)
    said = card.capabilities or PeerCapabilities()
    return v1_card.AgentCard(
        name=card.name,
        description=card.description or "",
        version=card.version or "",
        default_input_modes=card.default_input_modes,
        default_output_modes=card.default_output_modes,
        supported_interfaces=tuple(card.interfaces()),
        capabilities=v1_card.AgentCapabilities(streaming=said.streaming, push_notifications=said.push_notifications),
        skills=tuple(_skill(one) for one in card.skills),
    )


def _skill(skill: PeerSkill) -> v1_card.AgentSkill:
    return v1_card.AgentSkill(id=skill.id, name=skill.name or "", description=skill.description or "", tags=skill.tags)
