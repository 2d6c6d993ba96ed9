"""A client for any agent that speaks A2A 1.0 or 0.3 over JSON-RPC or HTTP+JSON.

::

    from a2a_serverless.client import discover, open_request, text_message
    from a2a_serverless.protocol.v1 import SendMessageConfiguration, SendMessageRequest

    agent = discover("https://agents.example.com/document", open_request).client
    at_once = SendMessageConfiguration(return_immediately=True)
    task = agent.send(SendMessageRequest(message=text_message("Lighthouses"), configuration=at_once))
    print(agent.get(task.id).status.state)

It is synchronous and imports little, because it also runs inside functions, where every import lengthens the cold start
(``docs/adr/0008-one-http-client.md``). A ``Transport`` sends the requests: ``open_request`` on a laptop, which needs
the extra ``client``, or a guarded one where URLs are not trusted.
"""

from __future__ import annotations

from a2a_serverless.client.client import Client, ClientEvent, text_message
from a2a_serverless.client.discovery import DiscoveredAgent, agents_of, discover
from a2a_serverless.client.errors import HttpError, PeerError
from a2a_serverless.http_client import open_request
from a2a_serverless.http_client.credentials import with_credentials
from a2a_serverless.http_client.transport import (
    ClientRequest,
    ClientResponse,
    ResponseTimeout,
    Transport,
    Unreachable,
)
from a2a_serverless.protocol.peers import NoInterface

__all__ = [
    "Client",
    "ClientEvent",
    "ClientRequest",
    "ClientResponse",
    "DiscoveredAgent",
    "HttpError",
    "NoInterface",
    "PeerError",
    "ResponseTimeout",
    "Transport",
    "Unreachable",
    "agents_of",
    "discover",
    "open_request",
    "text_message",
    "with_credentials",
]
