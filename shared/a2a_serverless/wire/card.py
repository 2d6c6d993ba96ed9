"""Agent cards (specification 4.4 and 8; 0.3: 5.5): 1.0, 0.3, both in one document, and the one from before.

Cards are printed by the presence rules that canonicalization (8.4.1) wants: REQUIRED fields and set ``optional`` ones
stay, everything else at its default goes. So the canonical form of a card is the JCS of what is served, without its
signatures. Nothing required may be empty: readers disagree on whether an empty member counts.

A union card carries the members of both versions, and signatures of its 1.0 half and of all of it.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import TYPE_CHECKING, Final, cast

from a2a_serverless.domain.agent import AgentSkill
from a2a_serverless.domain.card import (
    AgentCard,
    AgentInterface,
    ApiKeySecurityScheme,
    HttpAuthSecurityScheme,
    MutualTlsSecurityScheme,
    OAuth2SecurityScheme,
    OpenIdConnectSecurityScheme,
    SecurityScheme,
)
from a2a_serverless.domain.errors import A2AError
from a2a_serverless.protocol.limits import LIMITS, Limits
from a2a_serverless.protocol.strict_json import dumps, loads
from a2a_serverless.protocol.timestamps import from_http_date
from a2a_serverless.protocol.versions import asked
from a2a_serverless.wire.fields import Fields, read_peer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from a2a_serverless.domain.card import AgentExtension
    from a2a_serverless.domain.model import Json, JsonObject
    from a2a_serverless.domain.push import WireVersion

PROTOCOL_0_3: Final = "0.3.0"


def v1_card(card: AgentCard) -> JsonObject:
    """The card of 1.0."""
    return _common(card) | _set(
        {
            "supportedInterfaces": [_interface(one) for one in card.interfaces],
            "capabilities": _capabilities(card) | _set({"extendedAgentCard": card.extended or None}),
            "skills": [_skill(one) for one in card.skills],
            "securitySchemes": {name: _scheme(one) for name, one in card.schemes.items()},
            "securityRequirements": [_requirement(one) for one in card.security],
        }
    )


def v0_3_card(card: AgentCard) -> JsonObject:
    """The card of 0.3.0. Raises ValueError when the agent has no interface of that version."""
    old = [one for one in card.interfaces if one.version == "0.3"]
    if not old:
        raise ValueError("the agent has no 0.3 interface")
    return _common(card) | _set(
        {
            "protocolVersion": PROTOCOL_0_3,
            "url": old[0].url,
            "preferredTransport": old[0].binding,
            "additionalInterfaces": [{"url": one.url, "transport": one.binding} for one in old],
            "capabilities": _capabilities(card),
            "skills": [_skill(one) for one in card.skills],
            "supportsAuthenticatedExtendedCard": card.extended or None,
            "securitySchemes": {name: _old_scheme(one) for name, one in card.schemes.items()},
            "security": [{name: [*scopes] for name, scopes in one.items()} for one in card.security],
        }
    )


def union_card(card: AgentCard) -> JsonObject:
    """One document for clients of both versions; without a 0.3 interface it is the card of 1.0."""
    if not any(one.version == "0.3" for one in card.interfaces):
        return v1_card(card)
    return cast("JsonObject", _merged(v0_3_card(card), v1_card(card)))


def legacy_card(card: AgentCard, url: str) -> JsonObject:
    """The card that clients from before 0.3 read at ``agent.json``; ``url`` is where they are served."""
    skills: list[Json] = [_legacy_skill(card, one) for one in card.skills]
    schemes: list[Json] = [
        "apiKey" if isinstance(one, ApiKeySecurityScheme) else "http" for one in card.schemes.values()
    ]
    return {
        "name": card.name,
        "description": card.description,
        "url": url,
        "version": card.version,
        "capabilities": {"streaming": card.streaming, "pushNotifications": card.push},
        "authentication": {"schemes": schemes},
        "skills": skills,
    }


def _legacy_skill(card: AgentCard, skill: AgentSkill) -> JsonObject:
    """A skill that says everything itself: there were no defaults for all skills yet."""
    return {
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "inputModes": list(skill.input_modes or card.input_modes),
        "outputModes": list(skill.output_modes or card.output_modes),
        "examples": list(skill.examples),
    }


def canonical(card: JsonObject) -> bytes:
    """The card's canonical form (8.4.1): JCS (RFC 8785) of all but its signatures."""
    import rfc8785

    return rfc8785.dumps({name: value for name, value in card.items() if name != "signatures"})


def signature(card: JsonObject, kid: str, sign: Callable[[bytes], bytes], jku: str | None = None) -> JsonObject:
    """An AgentCardSignature (8.4.2): a JWS whose payload is the card itself.

    ``sign`` makes an ES256 signature in JWS form (64 bytes, R and S) of what it is given. ``jku`` names the key set.
    """
    header = {"alg": "ES256", "kid": kid, "typ": "JOSE"} | ({"jku": jku} if jku else {})
    protected = _base64url(dumps(dict(header)))
    signing_input = f"{protected}.{_base64url(canonical(card))}".encode()
    return {"protected": protected, "signature": _base64url(sign(signing_input))}


def signed_by(served: JsonObject) -> Iterator[tuple[str, bytes, bytes]]:
    """Each signature of a card that was received: the key's id, what is signed, and the signature (8.4.3).

    What cannot be read of them is left out, and so is every algorithm but ES256.
    """
    listed, payload = served.get("signatures"), _base64url(canonical(served))
    for one in listed if isinstance(listed, list) else []:
        protected, signed = (one.get("protected"), one.get("signature")) if isinstance(one, dict) else (None, None)
        try:
            header, raw = loads(_unbase64url(str(protected))), _unbase64url(str(signed))
        except (ValueError, A2AError):
            continue
        if isinstance(header, dict) and header.get("alg") == "ES256":
            yield str(header.get("kid")), f"{protected}.{payload}".encode(), raw


def signed_forms(card: JsonObject, served: JsonObject) -> list[JsonObject]:
    """Each form in which clients verify the 1.0 card that is ``served``, alone or among members of 0.3.

    Clients that read it as a 1.0 card and know no other members verify ``card``; SDK 1.3.0 besides drops every empty
    member, required or not (a requirement without scopes is one); the letter (8.4.3) verifies the document as it was
    received. A client should verify at least one signature.
    """
    forms = [card, cast("JsonObject", _without_empties(card)), served]
    return list({canonical(form): form for form in forms}.values())


def etag(content: bytes) -> str:
    """A strong ETag (RFC 9110) of the bytes that are served."""
    return f'"{sha256(content).hexdigest()[:32]}"'


def unchanged(if_none_match: str | None, current: str) -> bool:
    """Whether the client's ``If-None-Match`` names the current ETag, so that 304 will do. Compares weakly."""
    names = [name.strip().removeprefix("W/") for name in (if_none_match or "").split(",")]
    return "*" in names or current in names


def unchanged_since(if_modified_since: str | None, modified: str) -> bool:
    """Whether the client's ``If-Modified-Since`` is not before ``modified``. A date that is none says nothing."""
    if not if_modified_since:
        return False
    try:
        return from_http_date(modified) <= from_http_date(if_modified_since)
    except ValueError:
        return False


def read_card(value: Json, limits: Limits = LIMITS) -> AgentCard:
    """Another agent's card, of either version; ``supportedInterfaces`` go before what 0.3 says. Without its security.

    Interfaces of versions that we do not speak are left out. Raises InvalidAgentResponse.
    """
    return read_peer(value, limits, _read_card)


def _common(card: AgentCard) -> JsonObject:
    provider = card.provider
    about: JsonObject = {"name": card.name, "description": card.description, "version": card.version}
    modes: JsonObject = {"defaultInputModes": [*card.input_modes], "defaultOutputModes": [*card.output_modes]}
    more: JsonObject = {
        "provider": {"organization": provider.organization, "url": provider.url} if provider else None,
        "documentationUrl": card.documentation_url,
        "iconUrl": card.icon_url,
    }
    return about | _set(more) | modes


def _capabilities(card: AgentCard) -> JsonObject:
    flags: JsonObject = {"streaming": card.streaming, "pushNotifications": card.push}
    return flags | _set({"extensions": [_extension(one) for one in card.extensions]})


def _extension(one: AgentExtension) -> JsonObject:
    required = one.required or None
    return _set({"uri": one.uri, "description": one.description, "required": required, "params": one.params})


def _interface(one: AgentInterface) -> JsonObject:
    required: JsonObject = {"url": one.url, "protocolBinding": one.binding, "protocolVersion": one.version}
    return required | _set({"tenant": one.tenant})


def _skill(skill: AgentSkill) -> JsonObject:
    required: JsonObject = {"id": skill.id, "name": skill.name, "description": skill.description, "tags": [*skill.tags]}
    modes: JsonObject = {"inputModes": [*skill.input_modes], "outputModes": [*skill.output_modes]}
    return required | _set({"examples": [*skill.examples], **modes})


def _requirement(alternative: Mapping[str, tuple[str, ...]]) -> JsonObject:
    return {"schemes": {name: _set({"list": [*scopes]}) for name, scopes in alternative.items()}}


def _scheme(scheme: SecurityScheme) -> JsonObject:
    name, _, members = _members(scheme)
    return {name: members | _set({"description": scheme.description})}


def _old_scheme(scheme: SecurityScheme) -> JsonObject:
    """0.3 has neither the device flow nor the PKCE mark, but its readers let them pass.

    They stay because the official 1.0 SDK reads this half of a union card where there is one, signature included.
    """
    _, kind, members = _members(scheme)
    if isinstance(scheme, ApiKeySecurityScheme):
        members = {"in": scheme.location, "name": scheme.name}
    return {"type": kind} | members | _set({"description": scheme.description})


def _members(scheme: SecurityScheme) -> tuple[str, str, JsonObject]:
    """The wrapper of 1.0, the ``type`` of 0.3, and the members."""
    match scheme:
        case ApiKeySecurityScheme():
            return "apiKeySecurityScheme", "apiKey", {"location": scheme.location, "name": scheme.name}
        case HttpAuthSecurityScheme():
            form = _set({"bearerFormat": scheme.bearer_format})
            return "httpAuthSecurityScheme", "http", {"scheme": scheme.scheme} | form
        case OpenIdConnectSecurityScheme():
            return "openIdConnectSecurityScheme", "openIdConnect", {"openIdConnectUrl": scheme.url}
        case MutualTlsSecurityScheme():
            return "mtlsSecurityScheme", "mutualTLS", {}
    flows: JsonObject = {"flows": {scheme.flow: _flow(scheme)}}
    return "oauth2SecurityScheme", "oauth2", flows | _set({"oauth2MetadataUrl": scheme.metadata_url})


def _flow(scheme: OAuth2SecurityScheme) -> JsonObject:
    required: JsonObject = {"tokenUrl": scheme.token_url, "scopes": dict(scheme.scopes)}
    return required | _set(
        {
            "authorizationUrl": scheme.authorization_url,
            "deviceAuthorizationUrl": scheme.device_authorization_url,
            "refreshUrl": scheme.refresh_url,
            "pkceRequired": scheme.pkce_required or None,
        }
    )


def _set(members: JsonObject) -> JsonObject:
    return {name: value for name, value in members.items() if value not in (None, "", [], {})}


def _without_empties(value: Json) -> Json:
    """The value without what is empty, or becomes so; None when nothing is left."""
    if isinstance(value, dict):
        value = {name: bare for name, inner in value.items() if (bare := _without_empties(inner)) is not None}
    elif isinstance(value, list):
        value = [bare for inner in value if (bare := _without_empties(inner)) is not None]
    return None if value in ("", [], {}) else value


def _merged(old: Json, new: Json) -> Json:
    """Both, member by member; where they differ, the new one."""
    if isinstance(old, dict) and isinstance(new, dict):
        shared = {name: _merged(old[name], new[name]) for name in old.keys() & new.keys()}
        return new | {name: value for name, value in old.items() if name not in new} | shared
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [_merged(one, other) for one, other in zip(old, new, strict=True)]
    return new


def _base64url(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def _unbase64url(text: str) -> bytes:
    return urlsafe_b64decode(text + "==")


def _read_card(fields: Fields) -> AgentCard:
    capabilities = fields.child("capabilities")
    return AgentCard(
        name=fields.need_text("name", fields.limits.name),
        description=fields.text("description") or "",
        version=fields.text("version", fields.limits.name) or "",
        interfaces=tuple(_read_interfaces(fields)),
        skills=tuple([_read_skill(one) for one in fields.children("skills", fields.limits.items)]),
        input_modes=fields.strings("defaultInputModes"),
        output_modes=fields.strings("defaultOutputModes"),
        streaming=bool(capabilities and capabilities.flag("streaming")),
        push=bool(capabilities and capabilities.flag("pushNotifications")),
    )


def _read_skill(fields: Fields) -> AgentSkill:
    limit = fields.limits.name
    name = fields.text("name", limit) or ""
    return AgentSkill(fields.need_ident("id"), name, fields.text("description") or "", fields.strings("tags"))


def _read_interfaces(fields: Fields) -> Iterator[AgentInterface]:
    for one in fields.children("supportedInterfaces", fields.limits.items):
        version = _VERSIONS.get(asked(one.text("protocolVersion")))
        if version:
            binding = one.need_text("protocolBinding", one.limits.name)
            yield AgentInterface(one.need_text("url", one.limits.url), binding, version, one.ident("tenant"))
    if fields.value("supportedInterfaces") is None:
        binding = fields.text("preferredTransport", fields.limits.name) or "JSONRPC"
        yield AgentInterface(fields.need_text("url", fields.limits.url), binding, "0.3")
        for one in fields.children("additionalInterfaces", fields.limits.items):
            transport = one.need_text("transport", one.limits.name)
            yield AgentInterface(one.need_text("url", one.limits.url), transport, "0.3")


_VERSIONS: Final[Mapping[str, WireVersion]] = {"1.0": "1.0", "0.3": "0.3"}
