"""Settings from environment variables, as one frozen model that is checked once at the start.

Each function gets only the variables that it needs. Reading a required one that is not set raises an error with its
name. Switches for local runs are refused unless ``AWS_ENDPOINT_URL`` is on this machine, so that a forgotten variable
cannot open a real deployment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from a2a_serverless.domain.quota import Quota

if TYPE_CHECKING:
    from a2a_serverless.domain.access import TrustedIssuer
    from a2a_serverless.protocol.v1_card import SecurityScheme

Ownership: TypeAlias = Literal["enforce", "warn", "off"]
CardShape: TypeAlias = Literal["both", "v1", "v0_3"]

DAY_MS: Final = 86_400_000
_CLAIMS: Final = ("owner", "tenant", "audience", "scopes", "scope-prefix", "keys")
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class SettingsError(ValueError):
    """A variable is wrong or missing. The text names it and the allowed values."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The parsed environment. Names are those of the variables in lower case and contain the units."""

    values: Mapping[str, str]
    blocking_seconds: int = 20
    task_max_life_days: int = 7
    task_retention_days: int = 30
    jwks_max_age_seconds: int = 3600
    key_ring_rotation_days: int = 30
    webhook_ownership: Ownership = "enforce"
    webhook_trusted_domains: tuple[str, ...] = ()
    webhook_allowed_domains: tuple[str, ...] = ()
    webhook_local_allow: tuple[str, ...] = ()
    trusted_issuer: TrustedIssuer | None = None
    webhooks_per_owner_per_day: int = 100_000
    cors_origins: tuple[str, ...] = ()
    quota: Quota = field(default_factory=Quota)
    agent_urls: Mapping[str, str] = field(default_factory=dict)
    agents: tuple[str, ...] = ()
    local_agents: tuple[str, ...] = ()
    anonymous_access: bool = False
    card_shape: CardShape = "both"
    idempotency: bool = True

    @property
    def schemes(self) -> Mapping[str, SecurityScheme]:
        """The security schemes for agent cards, from the same settings that the API uses to authenticate callers."""
        from a2a_serverless.protocol import v1_card

        if self.anonymous_access:
            return {}
        key = v1_card.ApiKeySecurityScheme(location="header", name="X-API-Key")
        found = {"apiKey": v1_card.SecurityScheme(api_key_security_scheme=key)}
        if self.trusted_issuer:
            url = f"{self.trusted_issuer.issuer.rstrip('/')}/.well-known/openid-configuration"
            oidc = v1_card.OpenIdConnectSecurityScheme(open_id_connect_url=url)
            found["oidc"] = v1_card.SecurityScheme(open_id_connect_security_scheme=oidc)
        return found

    @property
    def local(self) -> bool:
        """Whether ``AWS_ENDPOINT_URL`` is on this machine."""
        return _aws_is_here(self.values)

    def need(self, name: str) -> str:
        """A required variable; raises SettingsError when it is not set."""
        value = self.values.get(name, "").strip()
        if not value:
            raise SettingsError(f"{name} is not set")
        return value

    def get(self, name: str) -> str:
        """A variable that may be empty."""
        return self.values.get(name, "").strip()


def read(environment: Mapping[str, str]) -> Settings:
    """Parses the settings from an environment; raises SettingsError for an invalid value."""
    settings = Settings(
        values=environment,
        blocking_seconds=_whole(environment, "BLOCKING_SECONDS", 20, 1, 900),
        task_max_life_days=_whole(environment, "TASK_MAX_LIFE_DAYS", 7, 1, 30),
        task_retention_days=_whole(environment, "TASK_RETENTION_DAYS", 30, 1, 3650),
        jwks_max_age_seconds=_whole(environment, "JWKS_MAX_AGE_SECONDS", 3600, 1, 86_400),
        key_ring_rotation_days=_whole(environment, "KEY_RING_ROTATION_DAYS", 30, 1, 3650),
        webhook_ownership=_choice(environment, "WEBHOOK_OWNERSHIP", get_args(Ownership)),
        webhook_trusted_domains=_list(environment, "WEBHOOK_TRUSTED_DOMAINS"),
        webhook_allowed_domains=_list(environment, "WEBHOOK_ALLOWED_DOMAINS"),
        webhook_local_allow=_list(environment, "WEBHOOK_LOCAL_ALLOW"),
        trusted_issuer=_trust(environment),
        webhooks_per_owner_per_day=_whole(environment, "WEBHOOKS_PER_OWNER_PER_DAY", 100_000, 1, 100_000_000),
        cors_origins=_origins(environment, "CORS_ORIGINS"),
        quota=Quota(
            requests=_whole(environment, "REQUESTS_PER_OWNER_PER_SECOND", 0, 0, 100_000),
            sends=_whole(environment, "SENDS_PER_OWNER_PER_MINUTE", 0, 0, 1_000_000),
            tasks=_whole(environment, "TASKS_PER_OWNER", 0, 0, 10_000),
            streams=_whole(environment, "STREAMS_PER_OWNER", 0, 0, 10_000),
            uploads=1024 * 1024 * _whole(environment, "UPLOADED_MIB_PER_OWNER_PER_DAY", 0, 0, 100_000_000),
            streams_in_all=_whole(environment, "STREAMS_PER_DEPLOYMENT", 0, 0, 100_000),
        ),
        agent_urls=_pairs(environment, "AGENT_URLS"),
        agents=_import_paths(environment, "AGENTS"),
        local_agents=_import_paths(environment, "LOCAL_AGENTS"),
        anonymous_access=_switch(environment, "ANONYMOUS_ACCESS", default=False),
        card_shape=_choice(environment, "CARD_SHAPE", get_args(CardShape)),
        idempotency=_switch(environment, "IDEMPOTENCY", default=True),
    )
    opened = _opened(settings)
    if opened and not _aws_is_here(environment):
        raise SettingsError(f"{', '.join(opened)}: only for local runs, where AWS_ENDPOINT_URL is on this machine")
    return settings


def _trust(environment: Mapping[str, str]) -> TrustedIssuer | None:
    """The trusted issuer of OIDC tokens; None without one."""
    from a2a_serverless.domain.access import TrustedIssuer

    if not (issuer := _text(environment, "OIDC_ISSUER")):
        return None
    if not (audience := _text(environment, "OIDC_AUDIENCE")):
        raise SettingsError("OIDC_ISSUER needs OIDC_AUDIENCE")
    claims = _named(environment, "OIDC_CLAIMS", _CLAIMS)
    if not (keys := claims.get("keys", "https://")).startswith("https://"):
        raise SettingsError(f"OIDC_CLAIMS: keys must be an https URL, not {keys!r}")
    return TrustedIssuer(
        issuer,
        audience,
        claims.get("keys", ""),
        claims.get("audience", "aud"),
        claims.get("owner", "sub"),
        claims.get("tenant", ""),
        tuple(claims.get("scopes", "").split()),
        claims.get("scope-prefix", ""),
    )


def _opened(settings: Settings) -> list[str]:
    """The local switches that are on."""
    switches = {
        "WEBHOOK_LOCAL_ALLOW": bool(settings.webhook_local_allow),
        "ANONYMOUS_ACCESS": settings.anonymous_access,
        "LOCAL_AGENTS": bool(settings.local_agents),
        "CARD_SHAPE": settings.card_shape != "both",
        "IDEMPOTENCY": not settings.idempotency,
        "WEBHOOK_OWNERSHIP=off": settings.webhook_ownership == "off",
    }
    return [name for name, on in switches.items() if on]


def _aws_is_here(environment: Mapping[str, str]) -> bool:
    try:
        return urlsplit(environment.get("AWS_ENDPOINT_URL", "")).hostname in _LOOPBACK
    except ValueError:
        return False


def _text(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name, "").strip()


def _whole(environment: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = environment.get(name, "").strip() or str(default)
    if not re.fullmatch("[0-9]{1,9}", text) or not least <= int(text) <= most:
        raise SettingsError(f"{name} must be a whole number from {least} to {most}, not {text!r}")
    return int(text)


def _switch(environment: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = environment.get(name, "").strip().lower() or ("on" if default else "off")
    if text not in {"on", "off"}:
        raise SettingsError(f'{name} must be "on" or "off", not {text!r}')
    return text == "on"


def _choice(environment: Mapping[str, str], name: str, choices: tuple[str, ...]) -> Any:  # noqa: ANN401
    text = environment.get(name, "").strip() or choices[0]
    if text not in choices:
        raise SettingsError(f"{name} must be one of {', '.join(choices)}, not {text!r}")
    return text


def _list(environment: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in environment.get(name, "").split(",") if item.strip())


def _import_paths(environment: Mapping[str, str], name: str) -> tuple[str, ...]:
    paths = _list(environment, name)
    if not all(re.fullmatch(r"\w+(\.\w+)*:\w+", path) for path in paths):
        raise SettingsError(f"{name} must be a list of import paths such as package.module:attribute, not {paths!r}")
    return paths


def _origins(environment: Mapping[str, str], name: str) -> tuple[str, ...]:
    origins = _list(environment, name)
    if not all(one == "*" or re.fullmatch(r"https?://[^/?#\s,@]+", one) for one in origins):
        raise SettingsError(f"{name} must be a list of origins such as https://app.example.com, or *")
    return origins


def _named(environment: Mapping[str, str], name: str, names: tuple[str, ...]) -> dict[str, str]:
    """Parses a list such as ``owner=...,tenant=...`` with only these names."""
    found: dict[str, str] = {}
    for item in _list(environment, name):
        key, _, value = (part.strip() for part in item.partition("="))
        if key not in names or not value or key in found:
            raise SettingsError(
                f"{name} must be a list of name=value with each of {', '.join(names)} once at most, not {item!r}"
            )
        found[key] = value
    return found


def _pairs(environment: Mapping[str, str], name: str) -> dict[str, str]:
    pairs = [item.partition("=") for item in _list(environment, name)]
    if not all(key.strip() and value.strip().startswith(("https://", "http://")) for key, _, value in pairs):
        raise SettingsError(f"{name} must be a list of name=url, separated by commas")
    return {key.strip(): value.strip().rstrip("/") for key, _, value in pairs}
