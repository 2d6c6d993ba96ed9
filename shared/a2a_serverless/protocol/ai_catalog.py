"""AI Catalog 1.0: a list of agents for clients that know no agent's address yet.

Source: the AI Catalog specification of the Agent Card working group, draft of April 2026. A deployment serves its own
at ``/.well-known/ai-catalog.json``. An entry points to an agent's card, which is signed; the catalog itself is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

from pydantic import Field

from a2a_serverless.protocol.protojson import ProtoModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from a2a_serverless.protocol.v1_card import AgentCard, AgentSkill

CARD_MEDIA_TYPE: Final = "application/a2a-agent-card+json"
MAX_ENTRIES: Final = 1000

Text = Annotated[str, Field(max_length=4096)]


class Host(ProtoModel):
    """Who runs the deployment."""

    display_name: Text


class CatalogEntry(ProtoModel):
    """An artifact: at ``url``, or inline as ``data``. Our ``tags`` are the ids and the tags of the agent's skills."""

    identifier: Text
    display_name: Text
    media_type: Text
    url: Text | None = None
    data: dict[str, object] | None = None
    description: Text | None = None
    tags: Annotated[tuple[Text, ...], Field(max_length=MAX_ENTRIES)] = ()
    version: Text | None = None


class Catalog(ProtoModel):
    """A catalog. Unknown members are ignored, entries of other kinds are kept."""

    spec_version: Text
    host: Host | None = None
    entries: Annotated[tuple[CatalogEntry, ...], Field(max_length=MAX_ENTRIES)]


def catalog_of(base_url: str, cards: Iterable[tuple[str, AgentCard]]) -> Catalog:
    """The catalog of a deployment at ``base_url``, from the ids and the cards of its agents."""
    return Catalog(
        spec_version="1.0",
        host=Host(display_name=urlsplit(base_url).hostname or base_url),
        entries=tuple(_entry(f"{base_url}/{agent}", card) for agent, card in cards),
    )


def _entry(url: str, card: AgentCard) -> CatalogEntry:
    return CatalogEntry(
        identifier=url,
        display_name=card.name,
        media_type=CARD_MEDIA_TYPE,
        url=f"{url}/.well-known/agent-card.json",
        description=card.description,
        tags=tags_of(card.skills),
        version=card.version,
    )


def tags_of(skills: Sequence[AgentSkill]) -> tuple[str, ...]:
    """The ids of the skills, then their tags, each once."""
    return tuple(dict.fromkeys([*(skill.id for skill in skills), *(tag for skill in skills for tag in skill.tags)]))


def has_tags(tags: Iterable[str], wanted: Iterable[str]) -> bool:
    """Whether all that is wanted is among the tags; case does not matter."""
    return {one.casefold() for one in wanted} <= {one.casefold() for one in tags}
