"""The agent that a mirror stands before: its address, its abilities, and how requests to it are authenticated.

It is written into the manifest of the build. Secrets are in it by their names only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.protocol.versions import ProtocolVersion

SUFFIX: Final = "/remote"
PATH: Final = "remote"
"""The path of the call that a mirror's task makes."""

Binding: TypeAlias = Literal["JSONRPC", "HTTP+JSON"]
"""The bindings of the client, by their names in cards."""


@dataclass(frozen=True, slots=True)
class SecretHeaders:
    """Headers of every request: the names of the project's secrets, by header (``{"Authorization": "weather"}``)."""

    secrets: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class OAuthClientCredentials:
    """A bearer token by the client credentials grant (RFC 6749, 4.4), kept until it expires.

    ``secret`` is the name of the project's secret with the client's secret. ``scope`` and ``audience`` are asked for if
    they are given.
    """

    token_url: str
    client_id: str
    secret: str
    scope: str = ""
    audience: str = ""


@dataclass(frozen=True, slots=True)
class SigV4:
    """AWS's Signature Version 4 with the function's own credentials, such as for ``bedrock-agentcore``."""

    service: str
    region: str


Auth: TypeAlias = SecretHeaders | OAuthClientCredentials | SigV4
_AUTHS: Final[Mapping[frozenset[str], type[Auth]]] = {
    frozenset(one.__dataclass_fields__): one for one in (SecretHeaders, OAuthClientCredentials, SigV4)
}


@dataclass(frozen=True, slots=True)
class Remote:
    """A remote agent. ``url``, ``version``, ``binding`` and ``tenant`` are those of the interface that is used.

    With ``subscribes`` a stream that has broken is subscribed to again. A task streams from it for at most
    ``stream_s`` seconds after a message of its client. Then it waits for a webhook, or looks. A remote task of
    which nothing is heard for ``silence_s`` seconds is canceled. ``session_header`` is the header that names the
    client's session at the remote agent; "" if it has none. ``card_url`` is the address below which its card is,
    ``card_file`` the card's file in the project; "" if there is none.
    """

    url: str
    version: ProtocolVersion
    binding: Binding
    tenant: str = ""
    streaming: bool = False
    push: bool = False
    auth: Auth | None = None
    subscribes: bool = False
    stream_s: float = 600
    silence_s: float = 3600
    session_header: str = ""
    card_url: str = ""
    card_file: str = ""


def remote_of(description: Mapping[str, Any] | None) -> Remote | None:
    """The remote agent that ``dataclasses.asdict`` has described."""
    if description is None:
        return None
    auth: dict[str, Any] | None = description["auth"]
    return Remote(**{**description, "auth": _AUTHS[frozenset(auth)](**auth) if auth else None})


def remote_name(agent: str) -> str:
    """The name under which the remote agent of a mirror is called. No agent has such an id."""
    return f"{agent}{SUFFIX}"
