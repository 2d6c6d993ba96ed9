"""Requests to another agent and its answers, in the version that the agent speaks, and the agent's card.

Of a card of either version, this module reads the members that we use, as leniently as every answer of a peer.
``supportedInterfaces`` go before the members of 0.3. Interfaces of other versions are left out, and so is the security
of the card.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator

from a2a_serverless.domain.errors import A2AError
from a2a_serverless.protocol import v1, v1_card
from a2a_serverless.protocol.protojson import (
    EmptyIdent,
    Flag,
    Ident,
    LongText,
    Metadata,
    Names,
    ProtoModel,
    RequiredText,
    RequiredUrl,
    ShortText,
    items,
    printed,
    read_peer,
)
from a2a_serverless.protocol.versions import asked_version

if TYPE_CHECKING:
    from a2a_serverless.protocol.versions import ProtocolVersion

VERSIONS: Final = ("1.0", "0.3")
BINDINGS: Final = ("JSONRPC", "HTTP+JSON")


class NoInterface(A2AError):
    """The card has no interface that we support."""


def _is_supported(interface: object) -> bool:
    """Whether the interface has a version of ours. True for a value that is no interface: the reader refuses that."""
    if not isinstance(interface, dict):
        return True
    version = interface.get("protocolVersion", interface.get("protocol_version"))
    return not isinstance(version, str | None) or asked_version(version) in VERSIONS


def _filter_supported(interfaces: object) -> object:
    if not isinstance(interfaces, list):
        return interfaces
    return [interface for interface in interfaces if _is_supported(interface)]


class PeerInterface(ProtoModel):
    """An interface of 1.0, whose version is read as that of a request."""

    url: RequiredUrl
    protocol_binding: RequiredText
    protocol_version: Annotated[LongText, AfterValidator(asked_version)] = "0.3"
    tenant: EmptyIdent = ""


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
    examples: Annotated[tuple[RequiredText, ...], items("items")] = ()
    input_modes: Names = ()
    output_modes: Names = ()


class PeerExtension(ProtoModel):
    """An extension."""

    uri: RequiredUrl
    description: LongText = None
    required: Flag = False
    params: Metadata = None


class PeerCapabilities(ProtoModel):
    """The optional features of the agent."""

    streaming: Flag = False
    push_notifications: Flag = False
    extensions: Annotated[tuple[PeerExtension, ...], items("items")] = ()


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

    supported_interfaces: Annotated[tuple[PeerInterface, ...], BeforeValidator(_filter_supported), items("items")]

    def interfaces(self) -> list[v1_card.AgentInterface]:
        """The interfaces of versions that we speak."""
        return [v1_card.AgentInterface(**interface.__dict__) for interface in self.supported_interfaces]


class PeerOldCard(_PeerCard):
    """A card with the members of 0.3 only."""

    url: RequiredUrl
    preferred_transport: ShortText = None
    additional_interfaces: Annotated[tuple[PeerOldInterface, ...], items("items")] = ()

    def interfaces(self) -> list[v1_card.AgentInterface]:
        """All interfaces, the main one first."""
        main = PeerOldInterface(url=self.url, transport=self.preferred_transport or "JSONRPC")
        return [
            v1_card.AgentInterface(url=interface.url, protocol_binding=interface.transport, protocol_version="0.3")
            for interface in (main, *self.additional_interfaces)
        ]


def read_card(value: object) -> v1_card.AgentCard:
    """The card as one of 1.0. Raises InvalidAgentResponse."""
    names = ("supportedInterfaces", "supported_interfaces")
    is_new = isinstance(value, dict) and any(value.get(name) is not None for name in names)
    card = read_peer(PeerCard, value) if is_new else read_peer(PeerOldCard, value)
    return v1_card.AgentCard(
        name=card.name,
        description=card.description or "",
        version=card.version or "",
        default_input_modes=card.default_input_modes,
        default_output_modes=card.default_output_modes,
        supported_interfaces=tuple(card.interfaces()),
        capabilities=_capabilities(card.capabilities or PeerCapabilities()),
        skills=tuple(_skill(skill) for skill in card.skills),
    )


def _capabilities(capabilities: PeerCapabilities) -> v1_card.AgentCapabilities:
    extensions = tuple(
        v1_card.AgentExtension(**{**extension.__dict__, "description": extension.description or ""})
        for extension in capabilities.extensions
    )
    return v1_card.AgentCapabilities(**{**capabilities.__dict__, "extensions": extensions})


def _skill(skill: PeerSkill) -> v1_card.AgentSkill:
    return v1_card.AgentSkill(**{**skill.__dict__, "name": skill.name or "", "description": skill.description or ""})


def keeps_subscribed_tasks(version: str) -> bool:
    """Whether a peer's task stays as it is while its stream is subscribed to again.

    The official server of 0.3 in Python stores each chunk once more for each subscription.
    """
    return version != "0.3"


def interface_of(card: v1_card.AgentCard, binding: str | None = None) -> v1_card.AgentInterface:
    """The first interface of the newest version that we speak (8.3.2), JSON-RPC before HTTP+JSON.

    It has this ``binding`` if one is named. Raises NoInterface.
    """
    choices = [(version, name) for version in VERSIONS for name in ((binding,) if binding else BINDINGS)]
    interfaces = {(one.protocol_version, one.protocol_binding): one for one in reversed(card.supported_interfaces)}
    for choice in choices:
        if choice in interfaces:
            return interfaces[choice]
    raise NoInterface(f"The agent does not speak A2A 1.0 or 0.3 over {binding or 'JSON-RPC or HTTP+JSON'}.")


class TaskPage(ProtoModel):
    """A page of tasks."""

    tasks: Annotated[tuple[v1.Task, ...], items("items")] = ()
    next_page_token: LongText = None


def print_params(version: ProtocolVersion, request: ProtoModel, binding: str = "JSONRPC") -> bytes:
    """The JSON of the parameters of a request of 1.0. Raises ValueError for what JSON cannot express, such as NaN."""
    if version != "1.0":
        requests, *_ = _models(binding)
        request = requests.of(request)
    return printed(request)


def read_item(version: ProtocolVersion, value: object, binding: str = "JSONRPC") -> v1.StreamContent:
    """The answer to a send, or an item of a stream. Raises InvalidAgentResponse."""
    if version == "1.0":
        return read_peer(v1.StreamResponse, value).content
    _, model, _ = _models(binding)
    item: v1.StreamContent = read_peer(model, value).to_v1()
    return item


def read_task(version: ProtocolVersion, value: object, binding: str = "JSONRPC") -> v1.Task:
    """A task. Raises InvalidAgentResponse."""
    if version == "1.0":
        return read_peer(v1.Task, value)
    *_, model = _models(binding)
    task: v1.Task = read_peer(model, value).to_v1()
    return task


def _models(binding: str) -> tuple[Any, Any, Any]:
    """0.3's family of requests, its item of a stream, and its task, in this binding."""
    if binding == "JSONRPC":
        from a2a_serverless.protocol import v0_3

        return v0_3.REQUESTS, v0_3.StreamItem, v0_3.Task
    from a2a_serverless.protocol import v0_3_rest

    return v0_3_rest.REQUESTS, v0_3_rest.PeerItem, v0_3_rest.PeerTask
