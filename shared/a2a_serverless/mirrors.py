"""Makes the agent that stands before a remote A2A agent, from the remote agent's card in a file of the project."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from a2a_serverless.domain.agent import Agent, AgentExtension, Skill, slug
from a2a_serverless.domain.errors import A2AError
from a2a_serverless.domain.loopback import LOOPBACK_NAMES
from a2a_serverless.domain.origins import origin_of
from a2a_serverless.domain.remotes import OAuthClientCredentials, Remote
from a2a_serverless.protocol.peers import interface_of, keeps_subscribed_tasks, read_card
from a2a_serverless.protocol.v1_card import AgentSkill

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.domain.remotes import Auth, Binding
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.protocol.v1_card import AgentCard, AgentInterface
    from a2a_serverless.protocol.versions import ProtocolVersion

MODES: Final = ("text/plain", "application/json")


def mirror(  # noqa: PLR0913 - what differs between remote agents
    url: str,
    *,
    card: str | Path | Mapping[str, Any],
    auth: Auth | None = None,
    id: str = "",  # noqa: A002 - the card's word
    binding: str = "",
    session_header: str = "",
    stream_s: float = 600,
    silence_s: float = 3600,
) -> Agent:
    """The agent that stands before the remote A2A agent at ``url``: durable tasks, webhooks, lists, replay.

    ``card`` is the file with the remote agent's card, as it was served, or its content. ``auth`` authenticates requests
    to it: ``SecretHeaders``, ``OAuthClientCredentials`` or ``SigV4``. ``id`` is the path segment of our agent, by
    default the remote agent's name. ``binding`` is JSONRPC or HTTP+JSON, by default what the
    card offers, JSONRPC first. ``session_header`` is a header that gets a name of the client, the same for all its
    tasks. A task streams for ``stream_s`` seconds after each message of its client, and waits without compute
    afterwards. A remote task of which nothing is heard for ``silence_s`` seconds is canceled, and ours fails.

    Raises ValueError for a card that cannot be read, has no interface that we speak, or points to another host, and for
    credentials that would go over http.
    """
    file = Path(card) if isinstance(card, str | Path) else None
    try:
        theirs = read_card(json.loads(file.read_text("utf-8")) if file else card)
        interface = interface_of(theirs, binding)
    except A2AError as invalid:
        raise ValueError(f"The card of {url} cannot be used: {invalid}") from None
    _check(url, interface, auth)
    streaming = bool(theirs.capabilities.streaming)
    remote = Remote(
        url=interface.url,
        version=cast("ProtocolVersion", interface.protocol_version),
        binding=cast("Binding", interface.protocol_binding),
        tenant=interface.tenant,
        streaming=streaming,
        subscribes=streaming and keeps_subscribed_tasks(interface.protocol_version),
        push=bool(theirs.capabilities.push_notifications),
        auth=auth,
        stream_s=stream_s,
        silence_s=silence_s,
        session_header=session_header,
        card_url=url,
        card_file=os.path.relpath(file) if file else "",
    )
    return _agent(id or slug(theirs.name), theirs, remote)


def _agent(agent_id: str, card: AgentCard, remote: Remote) -> Agent:
    skills = card.skills or (AgentSkill(id=agent_id, name=card.name, description=card.description, tags=()),)
    extensions = card.capabilities.extensions
    return Agent(
        id=agent_id,
        name=card.name,
        description=card.description or card.name,
        skills=tuple(map(_skill, skills)),
        work=_follow,
        version=card.version or "1.0.0",
        input_modes=_media_types(card.default_input_modes) or MODES,
        output_modes=_media_types(card.default_output_modes) or MODES,
        extensions=tuple(AgentExtension(one.uri, one.description, one.required, one.params) for one in extensions),
        remote=remote,
    )


def _skill(skill: AgentSkill) -> Skill:
    """The skill with a name, a description and a tag, which ours must have."""
    name, modes = skill.name or skill.id, (skill.input_modes, skill.output_modes)
    return Skill(skill.id, name, skill.description or name, skill.tags or (skill.id,), skill.examples, *modes)


def _media_types(modes: tuple[str, ...]) -> tuple[str, ...]:
    """The media types; older cards say ``text`` for ``text/plain``."""
    return tuple("text/plain" if mode == "text" else mode for mode in modes)


async def _follow(task: TaskContext) -> None:
    raise NotImplementedError(f"The engine does the work of a mirror ({task.id}).")


def _check(url: str, interface: AgentInterface, auth: Auth | None) -> None:
    theirs = origin_of(interface.url)
    if not theirs or origin_of(url) != theirs:
        raise ValueError(
            f"The card of {url} points to another origin: name {theirs or interface.url} if that is right."
        )
    addresses = [interface.url, *([auth.token_url] if isinstance(auth, OAuthClientCredentials) else [])]
    for address in addresses if auth else ():
        parts = urlsplit(address)
        if parts.scheme != "https" and parts.hostname not in LOOPBACK_NAMES:
            raise ValueError(f"Credentials go over https only, not to {address}.")
