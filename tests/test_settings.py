"""Settings from environment variables, and those that only local runs may have."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain.access import Quota, TrustedIssuer
from a2a_serverless.settings import Settings, SettingsError, read

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}
LOCAL_SWITCHES = {
    "WEBHOOK_LOCAL_ALLOW": "127.0.0.1:8010",
    "ANONYMOUS_ACCESS": "on",
    "WEBHOOK_OWNERSHIP": "off",
}
QUOTAS = (
    "sends_per_owner_per_minute",
    "streams_per_owner",
    "uploaded_mib_per_owner_per_day",
    "usd_per_owner_per_day",
    "streams_per_deployment",
)
ELSEWHERE = [
    "",
    "https://dynamodb.us-east-1.amazonaws.com",
    "http://localhost.evil.example",
    "http://127.0.0.1.evil.example",
    "http://127.0.0.1@evil.example",
    "http://evil.example#127.0.0.1",
    "http://evil.example/127.0.0.1",
    "http://10.0.0.1:4566",
    "http://[::2]:4566",
    "127.0.0.1:4566",
    "localhost",
    "http://[::1",
]


def test_an_empty_environment_means_the_defaults() -> None:
    assert read({}) == Settings(values={})


def test_every_setting_has_a_safe_default() -> None:
    settings = read({})
    assert settings.webhook_ownership == "enforce"
    assert not settings.anonymous_access
    assert settings.webhook_local_allow == ()


def test_settings_are_read_from_their_variables() -> None:
    environment = {
        "BLOCKING_SECONDS": "25",
        "STREAM_SECONDS": "600",
        "TASK_MAX_LIFE_DAYS": "2",
        "TASK_RETENTION_DAYS": " 5 ",
        "JWKS_MAX_AGE_SECONDS": "600",
        "KEY_RING_ROTATION_DAYS": "90",
        "WEBHOOK_OWNERSHIP": "warn",
        "WEBHOOK_TRUSTED_DOMAINS": "example.com, example.org ,",
        "WEBHOOK_ALLOWED_DOMAINS": "example.com",
        "WEBHOOKS_PER_OWNER_PER_DAY": "5",
    }
    assert read(environment) == Settings(
        values=environment,
        blocking_seconds=25,
        stream_seconds=600,
        task_max_life_days=2,
        task_retention_days=5,
        jwks_max_age_seconds=600,
        key_ring_rotation_days=90,
        webhook_ownership="warn",
        webhook_trusted_domains=("example.com", "example.org"),
        webhook_allowed_domains=("example.com",),
        webhooks_per_owner_per_day=5,
    )


def test_quotas_of_owners_are_read_from_variables_and_have_no_default() -> None:
    names = {
        "SENDS_PER_OWNER_PER_MINUTE": "2",
        "STREAMS_PER_OWNER": "4",
        "STREAMS_PER_DEPLOYMENT": "5",
    }
    assert read(names).quota == Quota(sends=2, streams=4, streams_in_all=5)
    assert read({}).quota == Quota()


# ---- Local switches


@pytest.mark.parametrize("name", LOCAL_SWITCHES)
@pytest.mark.parametrize("endpoint", ELSEWHERE)
def test_a_local_switch_is_refused_unless_aws_is_on_this_machine(name: str, endpoint: str) -> None:
    with pytest.raises(SettingsError, match=f"{name}.*: only for local runs"):
        read({name: LOCAL_SWITCHES[name], "AWS_ENDPOINT_URL": endpoint})


@pytest.mark.parametrize("name", LOCAL_SWITCHES)
def test_a_local_switch_is_refused_without_an_endpoint(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        read({name: LOCAL_SWITCHES[name]})


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:4566", "http://localhost:4566", "http://[::1]:4566"])
def test_local_switches_may_be_on_where_aws_is_on_this_machine(endpoint: str) -> None:
    settings = read(LOCAL_SWITCHES | {"AWS_ENDPOINT_URL": endpoint})
    assert settings.webhook_local_allow == ("127.0.0.1:8010",)
    assert (settings.anonymous_access, settings.webhook_ownership) == (True, "off")


def test_a_refusal_names_every_switch_that_is_on() -> None:
    with pytest.raises(SettingsError) as refusal:
        read(LOCAL_SWITCHES)
    assert all(name in str(refusal.value) for name in LOCAL_SWITCHES)


def test_every_switch_of_the_settings_is_known_to_be_local_or_known_to_be_harmless() -> None:
    """Every new field has to be added to one of these two lists."""
    harmless = {
        "values",
        "blocking_seconds",
        "stream_seconds",
        "task_max_life_days",
        "task_retention_days",
        "jwks_max_age_seconds",
        "key_ring_rotation_days",
        "webhook_trusted_domains",
        "webhook_allowed_domains",
        "oidc_issuer",
        "oidc_audience",
        "oidc_claims",
        "console",
        "cors_origins",
        "webhooks_per_owner_per_day",
        "agent_urls",
        "webhook_events",
        "tasks_at_once",
        "drain_seconds",
        "health_address",
        "worker_name",
    }
    local = {name.lower() for name in LOCAL_SWITCHES}
    assert {*Settings.model_fields} == harmless | local | {*QUOTAS}


# ---- Invalid values


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("BLOCKING_SECONDS", 1, 900),
        ("STREAM_SECONDS", 120, 840),
        ("TASK_MAX_LIFE_DAYS", 1, 30),
        ("TASK_RETENTION_DAYS", 1, 3650),
        ("JWKS_MAX_AGE_SECONDS", 1, 86_400),
        ("KEY_RING_ROTATION_DAYS", 1, 3650),
        ("WEBHOOKS_PER_OWNER_PER_DAY", 1, 100_000_000),
        ("TASKS_AT_ONCE", 1, 1000),
        ("DRAIN_SECONDS", 0, 86_400),
    ],
)
def test_a_number_is_whole_and_within_its_bounds(name: str, least: int, most: int) -> None:
    assert getattr(read({name: str(least)}), name.lower()) == least
    assert getattr(read({name: str(most)}), name.lower()) == most
    for text in (str(least - 1), str(most + 1), "-1", "1.5", "1e2", "ten", "٣", "0x10", "+5", "9" * 5000):
        with pytest.raises(SettingsError, match=f"{name} must be a whole number from {least} to {most}"):
            read({name: text})


def test_a_switch_takes_on_or_off_and_no_other_text() -> None:
    for text in ("true", "1", "yes", "enabled", "on off"):
        with pytest.raises(SettingsError, match='ANONYMOUS_ACCESS must be "on" or "off"'):
            read(HERE | {"ANONYMOUS_ACCESS": text})
    assert read(HERE | {"ANONYMOUS_ACCESS": " On "}).anonymous_access is True
    assert read(HERE | {"ANONYMOUS_ACCESS": "OFF"}).anonymous_access is False


@pytest.mark.parametrize("name", ["WEBHOOK_OWNERSHIP", "WEBHOOK_EVENTS", "CONSOLE"])
def test_a_choice_is_one_of_those_that_there_are(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} must be one of .*, not 'maybe'"):
        read(HERE | {name: "maybe"})


@pytest.mark.parametrize(
    "text", ["8080", ":8080", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:٣", "[::1]:80"]
)
def test_the_health_is_served_at_an_address_and_a_port(text: str) -> None:
    assert read({"HEALTH_ADDRESS": "0.0.0.0:65535"}).health_address == "0.0.0.0:65535"
    with pytest.raises(SettingsError, match="HEALTH_ADDRESS must be an address and a port"):
        read({"HEALTH_ADDRESS": text})


def test_every_invalid_variable_is_named_at_once() -> None:
    with pytest.raises(SettingsError) as refusal:
        read({"BLOCKING_SECONDS": "0", "CONSOLE": "v2", "AGENT_URLS": "billing=ftp://key@example.com"})
    assert str(refusal.value) == (
        "BLOCKING_SECONDS must be a whole number from 1 to 900, not '0'; "
        "CONSOLE must be one of off, on, internals, not 'v2'; "
        "AGENT_URLS must be a list of name=url, separated by commas"
    )


def test_a_variable_in_lower_case_is_another_one() -> None:
    assert read({"blocking_seconds": "5", "values": "x", "VALUES": "y"}).blocking_seconds == 20


def test_an_issuer_needs_an_audience_and_its_keys_are_found_by_discovery() -> None:
    whole = {
        "OIDC_ISSUER": "https://id.example.com",
        "OIDC_AUDIENCE": "a2a",
    }
    assert read(whole).trusted_issuer == TrustedIssuer("https://id.example.com", "a2a", "")
    with pytest.raises(SettingsError, match="OIDC_ISSUER needs OIDC_AUDIENCE"):
        read({"OIDC_ISSUER": "https://id.example.com"})


def test_one_variable_says_which_claims_of_an_issuer_count() -> None:
    environment = {
        "OIDC_ISSUER": "https://id.example.com",
        "OIDC_AUDIENCE": "a2a",
        "OIDC_CLAIMS": "owner=oid, tenant=tid,audience=client_id,scopes=scp  roles,scope-prefix=api://a2a/,"
        "keys=https://id.example.com/k",
    }
    trust = read(environment).trusted_issuer
    assert trust == TrustedIssuer(
        "https://id.example.com",
        "a2a",
        "https://id.example.com/k",
        "client_id",
        "oid",
        "tid",
        ("scp", "roles"),
        "api://a2a/",
    )
    assert trust.scopes_for("document") == ("api://a2a/a2a:document",)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("ower=oid", "'ower=oid'"), ("owner", "'owner'"), ("owner=", "'owner='"), ("owner=a,owner=b", "'owner=b'")],
)
def test_a_claim_that_nobody_knows_is_named(text: str, wrong: str) -> None:
    environment = {"OIDC_ISSUER": "https://id.example.com", "OIDC_AUDIENCE": "a2a", "OIDC_CLAIMS": text}
    with pytest.raises(SettingsError, match=f"OIDC_CLAIMS must be a list of name=value .* not {wrong}"):
        read(environment)
    with pytest.raises(SettingsError, match="OIDC_CLAIMS: keys must be an https URL, not 'http://id'"):
        read(environment | {"OIDC_CLAIMS": "keys=http://id"})


def test_cors_origins_takes_origins_and_refuses_other_urls() -> None:
    environment = {"CORS_ORIGINS": "https://app.example.com, http://localhost:3000"}
    assert read(environment).cors_origins == ("https://app.example.com", "http://localhost:3000")
    for text in (
        "app.example.com",
        "https://app.example.com/",
        "https://a.example.com/x",
        "null",
        "https://u@a.example",
    ):
        with pytest.raises(SettingsError, match="CORS_ORIGINS must be a list of origins"):
            read({"CORS_ORIGINS": text})


# ---- Required variables


def test_a_variable_that_is_needed_is_named_when_it_is_missing() -> None:
    settings = read({"TABLE_NAME": "tasks", "BLOBS_BUCKET": "  "})
    assert settings.need("TABLE_NAME") == "tasks"
    for name in ("BLOBS_BUCKET", "WORK_QUEUE_URL"):
        with pytest.raises(SettingsError, match=f"^{name} is not set$"):
            settings.need(name)


def test_a_variable_that_may_be_empty_is_empty_when_it_is_missing() -> None:
    settings = read({"BLOBS_BUCKET": " blobs "})
    assert (settings.get("BLOBS_BUCKET"), settings.get("OTHER")) == ("blobs", "")


def test_reading_does_not_change_the_environment() -> None:
    environment: Mapping[str, str] = MappingProxyType({"BLOCKING_SECONDS": "5"})
    assert read(environment).values == environment
