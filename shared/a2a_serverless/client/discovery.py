"""Finds an agent by its URL: reads its card and makes a client for it (specification 8.2 and 8.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from a2a_serverless.client.client import OK, Client
from a2a_serverless.client.errors import HttpError, objects_in, retry_after_s, words_in
from a2a_serverless.domain.errors import A2AError, InvalidAgentResponse
from a2a_serverless.http_client.transport import ClientRequest, Transport, is_local
from a2a_serverless.protocol.peers import interface_of, read_card
from a2a_serverless.protocol.strict_json import ANSWER_LIMITS, loads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.domain.remotes import Binding
    from a2a_serverless.protocol.v1_card import AgentCard, AgentInterface
    from a2a_serverless.protocol.versions import ProtocolVersion

CARD_PATH: Final = "/.well-known/agent-card.json"
PORTS: Final = {"https": 443, "http": 80}
CREDENTIALS: Final = frozenset({"authorization", "cookie", "x-api-key"})


class CredentialsKept(A2AError):
    """The credentials were not sent: the URL is not https, or the card names another host."""


@dataclass(frozen=True, slots=True)
class DiscoveredAgent:
    """A client for an agent, its parsed card, and the card's JSON as the agent served it (``document``)."""

    client: Client
    card: AgentCard
    document: JsonObject


def discover(
    url: str, transport: Transport, headers: Mapping[str, str] | None = None, binding: Binding | None = None
) -> DiscoveredAgent:
    """Finds the agent at ``url``, which is its base URL or the URL of its card.

    The client uses the interface that ``interface_of`` chooses, of this ``binding`` if one is named. Raises
    Unreachable, HttpError, NoInterface, InvalidAgentResponse, or, when there are credentials, CredentialsKept if
    ``url`` is not https or the card names another host.
    """
    headers = headers or {}
    address = address_of(url, CARD_PATH, headers)
    document = fetch(address, transport, headers)
    if not isinstance(document, dict):
        raise InvalidAgentResponse(f"{address} is not an agent card.")
    card = read_card(document)
    interface = interface_of(card, binding)
    if _has_credentials(headers) and origin_of(url) != origin_of(interface.url):
        raise CredentialsKept(
            f"The card at {origin_of(url)} names {origin_of(interface.url)} for requests, which is another origin:"
            " credentials do not go there. Name that address if they may."
        )
    return DiscoveredAgent(client_of(interface, transport, headers), card, document)


def client_of(interface: AgentInterface, transport: Transport, headers: Mapping[str, str]) -> Client:
    """Makes a client for an interface that ``interface_of`` has chosen."""
    version: ProtocolVersion = "1.0" if interface.protocol_version == "1.0" else "0.3"
    binding: Binding = "HTTP+JSON" if interface.protocol_binding == "HTTP+JSON" else "JSONRPC"
    return Client(interface.url, transport, headers, interface.tenant or None, version, binding)


def agents_of(base_url: str, transport: Transport, headers: Mapping[str, str] | None = None) -> list[JsonObject]:
    """Lists a deployment's agents: ``id``, ``name``, ``url`` and ``card`` (a URL) of each. Raises as ``fetch`` does."""
    document = fetch(f"{base_url.rstrip('/')}/agents", transport, headers or {})
    if not isinstance(document, dict) or not isinstance(document.get("agents"), list):
        raise InvalidAgentResponse(f"{base_url} does not list agents.")
    return objects_in(document, "agents")


def fetch(url: str, transport: Transport, headers: Mapping[str, str]) -> Json:
    """Fetches the JSON document at ``url``. Raises Unreachable, HttpError, or InvalidAgentResponse."""
    with transport(ClientRequest(url, {"Accept": "application/json", **headers})) as answer:
        status, headers, body = answer.status, answer.headers, answer.body.read(ANSWER_LIMITS.body + 1)
    if status != OK:
        text = ": ".join(filter(None, [f"no document at {url}", words_in(body)]))
        raise HttpError(status, text, retry_after_s(headers))
    try:
        return loads(body, ANSWER_LIMITS)
    except A2AError as error:
        raise InvalidAgentResponse(f"{url} is not a JSON document: {error}") from error


def address_of(url: str, path: str, headers: Mapping[str, str]) -> str:
    """Returns the address of a document: ``url`` if it ends with .json, else ``path`` below it.

    Raises CredentialsKept for credentials among the headers, unless the URL is https or of this machine.
    """
    if _has_credentials(headers) and urlsplit(url).scheme != "https" and not is_local(url):
        raise CredentialsKept("Credentials are sent over https only.")
    return url if urlsplit(url).path.endswith(".json") else url.rstrip("/") + path


def origin_of(url: str) -> str:
    """The origin of a URL (RFC 6454, 4): scheme, host and port, as ``https://agents.example.com``.

    Without the scheme's own port, and without user and password. The URL itself if it has no host or a wrong port.
    """
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        return url
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname
    shown = f":{port}" if port and port != PORTS.get(parts.scheme) else ""
    return f"{parts.scheme}://{host}{shown}" if host else url


def _has_credentials(headers: Mapping[str, str]) -> bool:
    return any(name.lower() in CREDENTIALS for name in headers)
