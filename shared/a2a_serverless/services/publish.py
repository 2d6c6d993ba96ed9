"""Publishes a deployment's public documents: its key set, its agents' cards, their list and the AI Catalog of them.

The rotator writes them and the api serves them. The stored text of a document is the text that is served, so its ETag
and its signature are made once. A document keeps its ``modified`` time until its content changes.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from email.utils import formatdate
from typing import TYPE_CHECKING, Final, Literal

from a2a_serverless.domain.publications import AGENTS, CATALOG, JWKS, card_name, extended_card_name, legacy_card_name
from a2a_serverless.protocol import v0_3_card, v1_card
from a2a_serverless.protocol.ai_catalog import catalog_of
from a2a_serverless.protocol.card_signatures import CARDS, CATALOGS, sign_catalog, signature, signed_forms
from a2a_serverless.protocol.conditional_requests import etag
from a2a_serverless.protocol.protojson import as_json
from a2a_serverless.protocol.strict_json import dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from a2a_serverless.domain.access import TrustedIssuer
    from a2a_serverless.domain.agent import Agent, Skill
    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.ports.system import Clock
    from a2a_serverless.protocol.versions import ProtocolVersion
    from a2a_serverless.store.stores import Publications

BINDINGS: Final = ("JSONRPC", "HTTP+JSON")
VERSIONS: Final[tuple[ProtocolVersion, ...]] = ("1.0", "0.3")
_SHAPES: Final = {"both": v0_3_card.union_card, "v1": as_json, "v0_3": v0_3_card.old_card}


@dataclass(frozen=True, slots=True)
class CardPublisher:
    """The dependencies of publishing. ``base_url`` is the address for clients, without a slash at the end.

    The tokens of the ``issuer`` among ``schemes`` must have its scopes for an agent.
    """

    public: Publications
    clock: Clock
    agents: Mapping[str, Agent]
    base_url: str
    shape: Literal["both", "v1", "v0_3"] = "both"
    schemes: Mapping[str, v1_card.SecurityScheme] = field(default_factory=dict)
    issuer: TrustedIssuer | None = None


def publish(
    publisher: CardPublisher,
    name: str,
    document: Json,
    basis: Json = None,
    more: Callable[[Json], JsonObject] = lambda _: {},
) -> None:
    """Publishes a document under ``name``, unless ``basis`` (by default the document) is the same as before.

    A document that was altered meanwhile is published again. ``more`` returns values to store with it that are not
    served; its argument is the stored item so far.
    """
    digest = etag(dumps(document if basis is None else basis))
    before = publisher.public.get_document(name)
    if isinstance(before, dict) and before.get("basis") == digest and _parse_stored(before) == _readable(document):
        return
    body, modified = dumps(document), formatdate(publisher.clock.now() / 1000, usegmt=True)
    stored: JsonObject = {"body": body.decode(), "etag": etag(body), "modified": modified, "basis": digest}
    publisher.public.publish(name, stored | more(before))


def strip_signatures(document: Json) -> Json:
    """Returns a document without its signatures, at the top and in the forms of each version."""
    if not isinstance(document, dict):
        return document
    members = {name: member for name, member in document.items() if name not in {CARDS, CATALOGS}}
    return {name: strip_signatures(member) if name in VERSIONS else member for name, member in members.items()}


def find_altered(publisher: CardPublisher, keys: Sequence[Json]) -> list[str]:
    """Returns the names of the published documents whose content is wrong, signatures apart.

    ``keys`` are the keys that the key set may hold. A missing document does not count as altered.
    """
    names = [
        name
        for name, document, _ in _documents(publisher)
        if _stored_content(publisher, name) not in (None, _readable(document))
    ]
    key_set = _stored_content(publisher, JWKS)
    jwks = key_set.get("keys") if isinstance(key_set, dict) else None
    is_known = isinstance(jwks, list) and all(key in keys for key in jwks)
    return names if key_set is None or is_known else [JWKS, *names]


def _documents(publisher: CardPublisher) -> Iterator[tuple[str, JsonObject, v1_card.AgentCard | None]]:
    """Yields every document except the key set: name, content without signatures, and the card to sign, if any."""
    agents: list[Json] = []
    cards: dict[str, v1_card.AgentCard] = {}
    for agent in publisher.agents.values():
        scopes = publisher.issuer.scopes_for(agent.id) if publisher.issuer else ()
        card = card_of(agent, publisher.base_url, publisher.schemes, scopes)
        cards[agent.id] = card
        yield card_name(agent.id), _SHAPES[publisher.shape](card), card
        if agent.extended_skills:  # one form for each version, because requests name their version (3.1.11)
            more = card.model_copy(update={"skills": (*card.skills, *_skills(agent, agent.extended_skills))})
            yield extended_card_name(agent.id), {"1.0": as_json(more), "0.3": v0_3_card.old_card(more)}, more
        url = f"{publisher.base_url}/{agent.id}"
        legacy = v0_3_card.LegacyCard.of(card, f"{publisher.base_url}/legacy/{agent.id}")
        yield legacy_card_name(agent.id), as_json(legacy), None
        agents.append({"id": agent.id, "name": agent.name, "url": url, "card": f"{url}/.well-known/agent-card.json"})
    yield AGENTS, {"agents": agents}, None
    yield CATALOG, as_json(catalog_of(publisher.base_url, cards.items())), None


def _readable(document: Json) -> Json:
    """A document as its readers parse it, without signatures."""
    return strip_signatures(json.loads(dumps(document)))


def _stored_content(publisher: CardPublisher, name: str) -> Json:
    stored = publisher.public.get_document(name)
    return _parse_stored(stored) if isinstance(stored, dict) else None


def _parse_stored(stored: Mapping[str, Json]) -> Json:
    """The content of a stored document, without signatures; its text if it is not JSON."""
    try:
        return strip_signatures(json.loads(str(stored.get("body"))))
    except ValueError:
        return str(stored.get("body"))


def publish_cards(publisher: CardPublisher, kid: str, sign: Callable[[bytes], bytes]) -> None:
    """Publishes every agent's card, signed (specification 8.4), the list of the agents, and their catalog, signed.

    ES256 signatures differ each time, so a signed document is written when its content or the key's id changes.
    """
    for name, served, card in _documents(publisher):
        if name == CATALOG:
            catalog = sign_catalog(served, kid, sign, _key_set_url(publisher))
            publish(publisher, name, catalog, {"kid": kid, "catalog": served})
        elif card is None:
            publish(publisher, name, served)
        elif isinstance(new := served.get("1.0"), dict):
            forms = served | {"1.0": _sign_document(publisher, card, new, kid, sign)}
            publish(publisher, name, forms, {"kid": kid, "card": v0_3_card.union_card(card)})
        else:
            basis: Json = {"kid": kid, "forms": [*signed_forms(as_json(card), served)]}
            publish(publisher, name, _sign_document(publisher, card, served, kid, sign), basis)


def base_url_in(public: Publications) -> str:
    """The deployment's published base URL; "" before the first publication."""
    document = public.get_document(AGENTS)
    listed = json.loads(str(document["body"]))["agents"] if isinstance(document, dict) else []
    return str(listed[0]["url"]).rpartition("/")[0] if listed else ""


def card_of(
    agent: Agent, base_url: str, schemes: Mapping[str, v1_card.SecurityScheme], scopes: tuple[str, ...] = ()
) -> v1_card.AgentCard:
    """The card of an agent of this deployment: both bindings in both versions, at one URL.

    Any one of ``schemes`` is enough; an issuer's tokens must have ``scopes``.
    """
    url = f"{base_url}/{agent.id}"
    return v1_card.AgentCard(
        name=agent.name,
        description=agent.description,
        version=agent.version,
        default_input_modes=agent.input_modes,
        default_output_modes=agent.output_modes,
        supported_interfaces=tuple(
            v1_card.AgentInterface(url=url, protocol_binding=binding, protocol_version=version)
            for version in VERSIONS
            for binding in BINDINGS
        ),
        capabilities=v1_card.AgentCapabilities(
            streaming=agent.streaming,
            push_notifications=agent.push,
            extensions=tuple(v1_card.AgentExtension(**asdict(extension)) for extension in agent.offered_extensions),
            extended_agent_card=bool(agent.extended_skills) or None,
        ),
        skills=_skills(agent, agent.skills),
        security_schemes=schemes,
        security_requirements=tuple(_requirement(name, scheme, scopes) for name, scheme in schemes.items()),
    )


def _requirement(name: str, scheme: v1_card.SecurityScheme, scopes: tuple[str, ...]) -> v1_card.SecurityRequirement:
    scope_list = v1_card.StringList(list=scopes if scheme.open_id_connect_security_scheme else ())
    return v1_card.SecurityRequirement(schemes={name: scope_list})


def _skills(agent: Agent, skills: Sequence[Skill]) -> tuple[v1_card.AgentSkill, ...]:
    """The skills, each with its media types: they are optional (4.4.5), but some clients refuse skills without them."""
    return tuple(
        v1_card.AgentSkill(
            **asdict(skill)
            | {
                "input_modes": skill.input_modes or agent.input_modes,
                "output_modes": skill.output_modes or agent.output_modes,
            }
        )
        for skill in skills
    )


def _sign_document(
    publisher: CardPublisher, card: v1_card.AgentCard, served: JsonObject, kid: str, sign: Callable[[bytes], bytes]
) -> JsonObject:
    """Returns the served document with its signatures; a card for 0.3 gets none, because 0.3 has no canonical form."""
    if "supportedInterfaces" not in served:
        return served
    forms = signed_forms(as_json(card), served)
    return served | {"signatures": [signature(form, kid, sign, _key_set_url(publisher)) for form in forms]}


def _key_set_url(publisher: CardPublisher) -> str:
    return f"{publisher.base_url}/.well-known/jwks.json"
