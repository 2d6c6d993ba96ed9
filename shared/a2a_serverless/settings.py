"""Settings from environment variables, as one frozen model that is checked once at the start.

Each function gets only the variables that it needs. Reading a required variable that is not set raises an error with
its name. Switches for local runs are refused unless ``AWS_ENDPOINT_URL`` is on this machine, so that a forgotten
variable cannot open a real deployment. Annotations are not postponed, as in ``protocol/v1.py``.
"""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator

from a2a_serverless.domain.access import Quota
from a2a_serverless.domain.loopback import LOOPBACK_NAMES
from a2a_serverless.domain.model import DAY_MS
from a2a_serverless.domain.push_configs import WebhookEvents

if TYPE_CHECKING:
    from a2a_serverless.domain.access import TrustedIssuer
    from a2a_serverless.domain.decisions import TaskLifetime
    from a2a_serverless.protocol.v1_card import SecurityScheme

_LAST_PORT: Final = 65_535
# The names in OIDC_CLAIMS, and the fields of TrustedIssuer.
_CLAIMS: Final = {
    "owner": "owner_claim",
    "tenant": "tenant_claim",
    "audience": "audience_claim",
    "scopes": "scope_claims",
    "scope-prefix": "scope_prefix",
    "keys": "jwks_url",
}


class SettingsError(ValueError):
    """Variables are wrong or missing. The text names each, and the allowed values."""


def _read(parse: Callable[[str], object]) -> BeforeValidator:
    """Parses the text of a variable. A value that is no text is parsed already."""
    return BeforeValidator(lambda value: parse(value) if isinstance(value, str) else value)


def _whole(least: int, most: int) -> BeforeValidator:
    def parse(text: str) -> int:
        if not re.fullmatch("[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}, not {text!r}")
        return int(text)

    return _read(parse)


def _choice(*choices: str) -> BeforeValidator:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}, not {text!r}")
        return text

    return _read(parse)


def _parse_switch(text: str) -> bool:
    if text.lower() not in {"on", "off"}:
        raise ValueError(f'must be "on" or "off", not {text!r}')
    return text.lower() == "on"


def _split(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _list(pattern: str, items: str) -> BeforeValidator:
    def parse(text: str) -> tuple[str, ...]:
        if not all(re.fullmatch(pattern, item) for item in _split(text)):
            raise ValueError(f"must be a list of {items}, not {text!r}")
        return _split(text)

    return _read(parse)


def _parse_urls(text: str) -> dict[str, str]:
    pairs = {name.strip(): url.strip().rstrip("/") for name, _, url in (item.partition("=") for item in _split(text))}
    if not all(name and url.startswith(("https://", "http://")) for name, url in pairs.items()):
        raise ValueError("must be a list of name=url, separated by commas")
    return pairs


def _parse_claims(text: str) -> dict[str, str]:
    claims: dict[str, str] = {}
    for item in _split(text):
        name, _, value = (part.strip() for part in item.partition("="))
        if name not in _CLAIMS or not value or name in claims:
            names = ", ".join(_CLAIMS)
            raise ValueError(f"must be a list of name=value with each of {names} once at most, not {item!r}")
        claims[name] = value
    return claims


def _parse_address(text: str) -> str:
    match = re.fullmatch(r"[^\s:]+:([0-9]{1,5})", text)
    if not match or int(match[1]) > _LAST_PORT:
        raise ValueError(f"must be an address and a port, such as 127.0.0.1:8080, not {text!r}")
    return text


def _parse_name(text: str) -> str:
    if not re.fullmatch("[A-Za-z0-9._-]{0,40}", text):
        raise ValueError(f"must be at most 40 letters, digits, dots, hyphens and underscores, not {text!r}")
    return text


Ownership: TypeAlias = Literal["enforce", "warn", "off"]
ConsoleSwitch: TypeAlias = Literal["off", "on", "internals"]
_Switch: TypeAlias = Annotated[bool, _read(_parse_switch)]
_Items: TypeAlias = Annotated[tuple[str, ...], _read(_split)]
_ORIGIN: Final = _list(r"\*|https?://[^/?#\s,@]+", "origins such as https://app.example.com, or *")


class Settings(BaseModel):
    """The parsed environment. Names are those of the variables in lower case and contain the units."""

    model_config = ConfigDict(frozen=True, alias_generator=str.upper, validate_by_name=True)

    values: Mapping[str, str]
    blocking_seconds: Annotated[int, _whole(1, 900)] = 20
    stream_seconds: Annotated[int, _whole(120, 840)] = 180
    task_max_life_days: Annotated[int, _whole(1, 30)] = 7
    task_retention_days: Annotated[int, _whole(1, 3650)] = 30
    jwks_max_age_seconds: Annotated[int, _whole(1, 86_400)] = 3600
    key_ring_rotation_days: Annotated[int, _whole(1, 3650)] = 30
    webhook_ownership: Annotated[Ownership, _choice(*get_args(Ownership))] = "enforce"
    webhook_events: Annotated[WebhookEvents, _choice(*get_args(WebhookEvents))] = "all"
    webhook_trusted_domains: _Items = ()
    webhook_allowed_domains: _Items = ()
    webhook_local_allow: _Items = ()
    oidc_issuer: str = ""
    oidc_audience: str = ""
    oidc_claims: Annotated[Mapping[str, str], _read(_parse_claims)] = {}
    webhooks_per_owner_per_day: Annotated[int, _whole(1, 100_000_000)] = 100_000
    cors_origins: Annotated[tuple[str, ...], _ORIGIN] = ()
    sends_per_owner_per_minute: Annotated[int, _whole(0, 1_000_000)] = 0
    streams_per_owner: Annotated[int, _whole(0, 10_000)] = 0
    uploaded_mib_per_owner_per_day: Annotated[int, _whole(0, 100_000_000)] = 0
    usd_per_owner_per_day: Annotated[int, _whole(0, 100_000_000)] = 0
    streams_per_deployment: Annotated[int, _whole(0, 100_000)] = 0
    tasks_at_once: Annotated[int, _whole(1, 1000)] = 50
    drain_seconds: Annotated[int, _whole(0, 86_400)] = 0
    health_address: Annotated[str, _read(_parse_address)] = ""
    worker_name: Annotated[str, _read(_parse_name)] = ""
    console: Annotated[ConsoleSwitch, _choice(*get_args(ConsoleSwitch))] = "off"
    agent_urls: Annotated[Mapping[str, str], _read(_parse_urls)] = {}
    anonymous_access: _Switch = False

    @property
    def quota(self) -> Quota:
        """The limits for each owner."""
        return Quota(
            sends=self.sends_per_owner_per_minute,
            streams=self.streams_per_owner,
            uploads=1024 * 1024 * self.uploaded_mib_per_owner_per_day,
            streams_in_all=self.streams_per_deployment,
        )

    @property
    def life(self) -> "TaskLifetime":
        """How long tasks may work, and how long they are kept."""
        from a2a_serverless.domain.decisions import TaskLifetime

        return TaskLifetime(self.task_max_life_days * DAY_MS, self.task_retention_days * DAY_MS)

    @property
    def trusted_issuer(self) -> "TrustedIssuer | None":
        """The trusted issuer of OIDC tokens; None without one."""
        from a2a_serverless.domain.access import TrustedIssuer

        if not self.oidc_issuer:
            return None
        claims = {_CLAIMS[name]: value for name, value in self.oidc_claims.items()}
        scopes = tuple(claims.pop("scope_claims", "").split())
        fields: dict[str, Any] = {"jwks_url": "", **claims, "scope_claims": scopes}
        return TrustedIssuer(self.oidc_issuer, self.oidc_audience, **fields)

    @property
    def schemes(self) -> "Mapping[str, SecurityScheme]":
        """The security schemes for agent cards, from the same settings that the API uses to authenticate callers."""
        from a2a_serverless.protocol import v1_card

        if self.anonymous_access:
            return {}
        key = v1_card.ApiKeySecurityScheme(location="header", name="X-API-Key")
        schemes = {"apiKey": v1_card.SecurityScheme(api_key_security_scheme=key)}
        if self.trusted_issuer:
            url = f"{self.trusted_issuer.issuer.rstrip('/')}/.well-known/openid-configuration"
            oidc = v1_card.OpenIdConnectSecurityScheme(open_id_connect_url=url)
            schemes["oidc"] = v1_card.SecurityScheme(open_id_connect_security_scheme=oidc)
        return schemes

    @property
    def local(self) -> bool:
        """Whether ``AWS_ENDPOINT_URL`` is on this machine."""
        try:
            return urlsplit(self.values.get("AWS_ENDPOINT_URL", "")).hostname in LOOPBACK_NAMES
        except ValueError:
            return False

    def need(self, name: str) -> str:
        """A required variable; raises SettingsError when it is not set."""
        value = self.values.get(name, "").strip()
        if not value:
            raise SettingsError(f"{name} is not set")
        return value

    def get(self, name: str) -> str:
        """A variable that may be empty."""
        return self.values.get(name, "").strip()

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        """Checks variables that depend on each other, and the switches that only local runs may have."""
        switches = {
            "WEBHOOK_LOCAL_ALLOW": bool(self.webhook_local_allow),
            "ANONYMOUS_ACCESS": self.anonymous_access,
            "WEBHOOK_OWNERSHIP=off": self.webhook_ownership == "off",
        }
        wrong = []
        if self.oidc_issuer and not self.oidc_audience:
            wrong.append("OIDC_ISSUER needs OIDC_AUDIENCE")
        if not (keys := self.oidc_claims.get("keys", "https://")).startswith("https://"):
            wrong.append(f"OIDC_CLAIMS: keys must be an https URL, not {keys!r}")
        if not self.local and any(switches.values()):
            names = ", ".join(name for name, on in switches.items() if on)
            wrong.append(f"{names}: only for local runs, where AWS_ENDPOINT_URL is on this machine")
        if wrong:
            raise ValueError("; ".join(wrong))
        return self


def read(environment: Mapping[str, str]) -> Settings:
    """Parses the settings from an environment; raises SettingsError, which names every invalid value."""
    variables: dict[str, object] = {name: text.strip() for name, text in environment.items() if text.strip()}
    if "OIDC_ISSUER" not in variables:
        variables.pop("OIDC_CLAIMS", None)
    try:
        return Settings.model_validate(variables | {"VALUES": {**environment}}, by_alias=True, by_name=False)
    except ValidationError as error:
        errors = [
            (*map(str, details["loc"]), details["msg"].removeprefix("Value error, ")) for details in error.errors()
        ]
    raise SettingsError("; ".join(" ".join(words) for words in errors))
