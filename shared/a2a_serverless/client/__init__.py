"""A client for any agent that speaks A2A 1.0 or 0.3 over JSON-RPC or HTTP+JSON.

::

    from a2a_serverless.client import discover, over_urllib, text_message
    from a2a_serverless.protocol.v1 import SendMessageConfiguration, SendMessageRequest

    agent = discover("https://agents.example.com/document", over_urllib).client
    at_once = SendMessageConfiguration(return_immediately=True)
    task = agent.send(SendMessageRequest(message=text_message("Lighthouses"), configuration=at_once))
    print(agent.get(task.id).status.state)

It is synchronous and imports only the standard library and the models of the protocol, because it also runs inside
functions, where every import lengthens the cold start (``docs/adr/0008-client-on-the-standard-library.md``). A
``Transport`` sends the requests: ``over_urllib`` on a laptop, a guarded one where URLs are not trusted.
"""

from __future__ import annotations

from a2a_serverless.client.client import Client, ClientEvent, text_message
from a2a_serverless.client.discovery import DiscoveredAgent, agents_of, discover
from a2a_serverless.client.errors import HttpError, PeerError
from a2a_serverless.http_client.credentials import with_credentials
from a2a_serverless.http_client.transport import (
    ClientRequest,
    ClientResponse,
    ResponseTimeout,
    Transport,
    Unreachable,
    over_urllib,
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
    "over_urllib",
    "text_message",
    "with_credentials",
]
