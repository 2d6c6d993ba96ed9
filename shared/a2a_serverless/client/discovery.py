"""Finds an agent by its URL: reads its card and makes a client for it (specification 8.2 and 8.3).

Credentials are the transport's (``http_client/credentials.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from a2a_serverless.client.client import Client
from a2a_serverless.client.errors import (
    ERROR,
    REDIRECT,
    HttpError,
    SkippedContent,
    beginning_of,
    log_skipped,
    objects_in,
    redirect_error,
    retry_after_s,
    words_in,
)
from a2a_serverless.domain.errors import A2AError, InvalidAgentResponse
from a2a_serverless.domain.origins import address_below
from a2a_serverless.http_client.transport import ClientRequest, Transport
from a2a_serverless.protocol.peers import interface_of, read_card
from a2a_serverless.protocol.strict_json import ANSWER_LIMITS, dumps, loads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.domain.remotes import Binding
    from a2a_serverless.protocol.v1_card import AgentCard, AgentInterface
    from a2a_serverless.protocol.versions import ProtocolVersion

CARD_PATH: Final = "/.well-known/agent-card.json"


@dataclass(frozen=True, slots=True)
class DiscoveredAgent:
    """A client for an agent, its parsed card, and the card's JSON as the agent served it (``document``)."""

    client: Client
    card: AgentCard
    document: JsonObject


def discover(url: str, transport: Transport, binding: Binding | None = None) -> DiscoveredAgent:
    """Finds the agent at ``url``, which is its base URL or the URL of its card.

    The client uses the interface that ``interface_of`` chooses, of this ``binding`` if one is named. Raises
    Unreachable, HttpError, NoInterface or InvalidAgentResponse.
    """
    address = address_of(url, CARD_PATH)
    document = fetch(address, transport)
    if not isinstance(document, dict):
        raise InvalidAgentResponse(f"{address} is not an agent card.")
    skipped = list[str]()
    card = read_card(document, skipped)
    if skipped:
        beginning = beginning_of(dumps(document))
        log_skipped(SkippedContent("the card", "", address.partition("?")[0], tuple(skipped), beginning))
    interface = interface_of(card, binding)
    return DiscoveredAgent(client_of(interface, transport), card, document)


def client_of(interface: AgentInterface, transport: Transport) -> Client:
    """Makes a client for an interface that ``interface_of`` has chosen."""
    version: ProtocolVersion = "1.0" if interface.protocol_version == "1.0" else "0.3"
    binding: Binding = "HTTP+JSON" if interface.protocol_binding == "HTTP+JSON" else "JSONRPC"
    return Client(interface.url, transport, {}, interface.tenant or None, version, binding)


def agents_of(base_url: str, transport: Transport) -> list[JsonObject]:
    """Lists a deployment's agents: ``id``, ``name``, ``url`` and ``card`` (a URL) of each. Raises as ``fetch`` does."""
    document = fetch(f"{base_url.rstrip('/')}/agents", transport)
    if not isinstance(document, dict) or not isinstance(document.get("agents"), list):
        raise InvalidAgentResponse(f"{base_url} does not list agents.")
    return objects_in(document, "agents")


def fetch(url: str, transport: Transport, headers: Mapping[str, str] = MappingProxyType({})) -> Json:
    """Fetches the JSON document at ``url``. Raises Unreachable, HttpError, or InvalidAgentResponse."""
    with transport(ClientRequest(url, {"Accept": "application/json", **headers})) as answer:
        status, headers, body = answer.status, answer.headers, answer.body.read(ANSWER_LIMITS.body + 1)
    if REDIRECT <= status < ERROR:
        raise redirect_error(answer)
    if status >= ERROR:
        text = ": ".join(filter(None, [f"no document at {url}", words_in(body)]))
        raise HttpError(status, text, retry_after_s(headers))
    try:
        return loads(body, ANSWER_LIMITS)
    except A2AError as error:
        beginning = beginning_of(body)
        raise InvalidAgentResponse(f"{url} is not a JSON document: {error} It begins with {beginning!r}.") from error


def address_of(url: str, path: str) -> str:
    """Returns the address of a document: ``url`` if it ends with .json, else ``path`` below it."""
    return url if urlsplit(url).path.endswith(".json") else address_below(url, path)
