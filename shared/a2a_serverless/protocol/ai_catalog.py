"""AI Catalog 1.0: a list of agents for clients that know no agent's address yet.

Source: the AI Catalog specification of the Agent Card working group, state of August 2026. A deployment serves its own,
signed, at ``/.well-known/ai-catalog.json``. An entry points to an agent's card, which is signed, too. Catalogs of April
2026, whose entries have ``mediaType`` for ``type``, are read as well.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from a2a_serverless.protocol.protojson import ProtoModel, violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from a2a_serverless.domain.agent import Skill
    from a2a_serverless.protocol.v1_card import AgentCard, AgentSkill

SPEC_VERSION: Final = "1.0"
CARD_MEDIA_TYPE: Final = "application/a2a-agent-card+json"
MAX_TAGS: Final = 1000

Text = Annotated[str, Field(max_length=4096)]
RequiredText = Annotated[str, Field(min_length=1, max_length=4096)]


class Host(ProtoModel):
    """The organization that runs the deployment."""

    display_name: Text


class CatalogEntry(ProtoModel):
    """An artifact: at ``url``, or inline as ``data``.

    An entry need not have ``display_name``, ``description`` and ``version``: then the artifact has them.
    """

    identifier: RequiredText
    type: RequiredText
    url: Text | None = None
    data: Any = None
    display_name: Text | None = None
    description: Text | None = None
    tags: Annotated[tuple[Text, ...], Field(max_length=MAX_TAGS)] = ()
    version: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_older_form(cls, entry: Any) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(entry, dict) and "type" not in entry and "mediaType" in entry:
            return entry | {"type": entry["mediaType"]}
        return entry

    @model_validator(mode="after")
    def _check_content(self) -> CatalogEntry:
        if (self.url is None) == (self.data is None):
            raise violation("must have exactly one of url and data")
        return self

    @property
    def name(self) -> str:
        """A name to show: the entry's own, else the last segment of its identifier."""
        return self.display_name or re.split("[:/]", self.identifier.rstrip(":/"))[-1]


class Catalog(ProtoModel):
    """The catalog that a deployment serves, without its signature."""

    spec_version: Text
    host: Host
    entries: tuple[CatalogEntry, ...]


def catalog_of(base_url: str, cards: Iterable[tuple[str, AgentCard]]) -> Catalog:
    """The catalog of a deployment at ``base_url``, from the ids and the cards of its agents.

    An entry's tags are the ids and the tags of the agent's skills; the agent's card has the rest of its description.
    """
    entries = (
        CatalogEntry(
            identifier=identifier_of(base_url, agent),
            type=CARD_MEDIA_TYPE,
            url=f"{base_url}/{agent}/.well-known/agent-card.json",
            tags=tags_of(card.skills),
        )
        for agent, card in cards
    )
    host = Host(display_name=urlsplit(base_url).hostname or base_url)
    return Catalog(spec_version=SPEC_VERSION, host=host, entries=tuple(entries))


def identifier_of(base_url: str, agent: str) -> str:
    """The URN of an agent, such as ``urn:air:agents.example.com:agents:tailor``.

    Port and path of the base URL are in the namespace, because a host may have several deployments.
    """
    parts = urlsplit(base_url)
    where = [str(parts.port or ""), *parts.path.split("/")]
    return ":".join(["urn:air", parts.hostname or "", "agents", *filter(None, where), agent])


def tags_of(skills: Sequence[AgentSkill | Skill]) -> tuple[str, ...]:
    """The ids of the skills, then their tags, each once."""
    return tuple(dict.fromkeys([*(skill.id for skill in skills), *(tag for skill in skills for tag in skill.tags)]))


def has_tags(tags: Iterable[str], required: Iterable[str]) -> bool:
    """Whether the tags include all ``required`` ones; case does not matter."""
    return {tag.casefold() for tag in required} <= {tag.casefold() for tag in tags}
