"""Today's card as the new one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from a2a_serverless.domain.card import (
    AgentCard,
    ApiKeySecurityScheme,
    HttpAuthSecurityScheme,
    MutualTlsSecurityScheme,
    OAuth2SecurityScheme,
    OpenIdConnectSecurityScheme,
    SecurityScheme,
)
from a2a_serverless.protocol import v1_card

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import AgentSkill


def converted_card(card: AgentCard) -> v1_card.AgentCard:
    """The card with 1.0's objects."""
    extensions = tuple(
        v1_card.AgentExtension(uri=one.uri, description=one.description, required=one.required, params=one.params)
        for one in card.extensions
    )
    return v1_card.AgentCard(
        name=card.name,
        description=card.description,
        version=card.version,
        provider=card.provider
        and v1_card.AgentProvider(organization=card.provider.organization, url=card.provider.url),
        documentation_url=card.documentation_url or None,
        icon_url=card.icon_url or None,
        default_input_modes=card.input_modes,
        default_output_modes=card.output_modes,
        supported_interfaces=tuple(
            v1_card.AgentInterface(
                url=one.url, protocol_binding=one.binding, protocol_version=one.version, tenant=one.tenant or ""
            )
            for one in card.interfaces
        ),
        capabilities=v1_card.AgentCapabilities(
            streaming=card.streaming,
            push_notifications=card.push,
            extensions=extensions,
            extended_agent_card=card.extended or None,
        ),
        skills=tuple(_skill(one) for one in card.skills),
        security_schemes={name: _scheme(one) for name, one in card.schemes.items()},
        security_requirements=tuple(
            v1_card.SecurityRequirement(schemes={name: {"list": scopes} for name, scopes in one.items()})
            for one in card.security
        ),
    )


def _skill(skill: AgentSkill) -> v1_card.AgentSkill:
    return v1_card.AgentSkill(
        id=skill.id,
        name=skill.name,
        description=skill.description,
        tags=skill.tags,
        examples=skill.examples,
        input_modes=skill.input_modes,
        output_modes=skill.output_modes,
    )


def _scheme(scheme: SecurityScheme) -> v1_card.SecurityScheme:
    about = {"description": scheme.description}
    match scheme:
        case ApiKeySecurityScheme():
            return v1_card.SecurityScheme(
                api_key_security_scheme={"location": scheme.location, "name": scheme.name, **about}
            )
        case HttpAuthSecurityScheme():
            inner = {"scheme": scheme.scheme, "bearer_format": scheme.bearer_format}
            return v1_card.SecurityScheme(http_auth_security_scheme=inner | about)
        case OpenIdConnectSecurityScheme():
            inner = {"open_id_connect_url": scheme.url}
            return v1_card.SecurityScheme(open_id_connect_security_scheme=inner | about)
        case MutualTlsSecurityScheme():
            return v1_card.SecurityScheme(mtls_security_scheme=about)
        case OAuth2SecurityScheme():
            flow = v1_card.OAuthFlow(
                token_url=scheme.token_url,
                scopes=dict(scheme.scopes),
                authorization_url=scheme.authorization_url,
                device_authorization_url=scheme.device_authorization_url,
                refresh_url=scheme.refresh_url,
                pkce_required=scheme.pkce_required,
            )
            flows: dict[str, Any] = {"flows": {scheme.flow: flow}, "oauth2_metadata_url": scheme.metadata_url}
            return v1_card.SecurityScheme(oauth2_security_scheme=flows | about)
