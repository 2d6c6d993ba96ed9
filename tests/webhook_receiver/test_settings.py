import re
from dataclasses import fields
from inspect import getdoc

import pytest

from a2a_webhook_receiver.settings import BadSettings, Settings, read_settings

REQUIRED = {"ISSUER": "https://agents.example.com", "AUDIENCE": "https://app.example.net/webhook"}
LOCAL = REQUIRED | {"AUDIENCE": "http://127.0.0.1:8010/webhook"}


def test_the_receiver_starts_with_two_variables() -> None:
    settings = read_settings(REQUIRED)
    assert settings.jwks_url == "https://agents.example.com/.well-known/jwks.json"
    assert settings.replay_db == "receiver.db"
    assert settings.max_body_bytes == 1024 * 1024
    assert settings.expectation_seconds == 7 * 86_400
    assert settings.live
    assert not settings.is_local


def test_an_issuer_keeps_its_slash_and_its_keys_are_found() -> None:
    settings = read_settings(REQUIRED | {"ISSUER": "https://agents.example.com/prod/"})
    assert settings.issuer == "https://agents.example.com/prod/"
    assert settings.jwks_url == "https://agents.example.com/prod/.well-known/jwks.json"


@pytest.mark.parametrize("audience", ["http://127.0.0.1:8010/webhook", "http://localhost/webhook", "http://[::1]:1/w"])
def test_a_webhook_on_this_machine_is_local(audience: str) -> None:
    assert read_settings(REQUIRED | {"AUDIENCE": audience}).is_local


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"ISSUER": ""}, "ISSUER is missing"),
        ({"AUDIENCE": ""}, "AUDIENCE is missing"),
        ({"ISSUER": "http://agents.example.com"}, "ISSUER: neither https"),
        ({"AUDIENCE": "http://10.0.0.1/webhook"}, "AUDIENCE: neither https"),
        ({"AUDIENCE": "/webhook"}, "AUDIENCE: not an absolute URL"),
        ({"AUDIENCE": "https://me@app.example.net/webhook"}, "AUDIENCE: not an absolute URL"),
        ({"AUDIENCE": "https://app.example.net/webhook#x"}, "AUDIENCE: not an absolute URL"),
        ({"JWKS_URL": "ftp://agents.example.com"}, "JWKS_URL: neither https"),
        ({"JWKS_URL": "https://agents.example.com:port/"}, "JWKS_URL: Port could not"),
        ({"MAX_BODY_BYTES": "1e6"}, "MAX_BODY_BYTES is not a number"),
        ({"BODY_SECONDS": "0"}, "BODY_SECONDS is not a number"),
        ({"EXPECTATION_SECONDS": "-1"}, "EXPECTATION_SECONDS is not a number"),
        ({"ADMIN_TOKEN_SHA256": "secret"}, "ADMIN_TOKEN_SHA256 is not 64"),
        ({"WEBHOOK_TOKEN": "short"}, "WEBHOOK_TOKEN is not 16 to 256"),
        ({"WEBHOOK_TOKEN": "sixteen and spaces"}, "WEBHOOK_TOKEN is not 16 to 256"),
        ({"OPEN_REGISTRATION": "yes"}, "OPEN_REGISTRATION is neither"),
        ({"OPEN_REGISTRATION": "true"}, "OPEN_REGISTRATION needs an AUDIENCE on this machine"),
        ({"REPLAY_DB": "a", "REPLAY_TABLE": "b"}, "exclude each other"),
        ({"AWS_LAMBDA_FUNCTION_NAME": "receiver"}, "REPLAY_TABLE is missing"),
    ],
    ids=repr,
)
def test_a_wrong_setting_is_named(change: dict[str, str], problem: str) -> None:
    with pytest.raises(BadSettings, match=re.escape(problem)):
        read_settings(REQUIRED | change)


def test_reading_the_settings_names_all_problems_at_once() -> None:
    with pytest.raises(BadSettings) as error:
        read_settings({"BODY_SECONDS": "x", "OPEN_REGISTRATION": "x"})
    assert str(error.value).count(";") == 3


def test_no_problem_repeats_a_value_that_may_be_secret() -> None:
    with pytest.raises(BadSettings) as error:
        read_settings(REQUIRED | {"ADMIN_TOKEN_SHA256": "hunter2", "ISSUER": "https://me:hunter2@x.example"})
    assert "hunter2" not in str(error.value)


def test_open_registration_is_for_this_machine() -> None:
    assert read_settings(LOCAL | {"OPEN_REGISTRATION": "true"}).open_registration


def test_a_receiver_on_lambda_does_not_stream() -> None:
    assert not read_settings(REQUIRED | {"AWS_LAMBDA_FUNCTION_NAME": "receiver", "REPLAY_TABLE": "t"}).live


def test_the_docstring_of_the_settings_names_every_variable() -> None:
    documented = set(re.findall(r"^([A-Z][A-Z0-9_]+) ", getdoc(Settings) or "", re.MULTILINE))
    assert documented == {field.name.upper() for field in fields(Settings)} - {"LIVE"}
