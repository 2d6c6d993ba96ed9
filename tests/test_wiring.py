"""Which generators a deployment gets is said by one parameter of the template; what a refused setting leads to."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from a2a_serverless.adapters.bedrock.picture import BedrockPicture
from a2a_serverless.adapters.bedrock.text import BedrockText
from a2a_serverless.adapters.builtin.picture import BuiltinPicture
from a2a_serverless.adapters.builtin.text import BuiltinText
from a2a_serverless.settings import SettingsError, read
from a2a_serverless.wiring import make_models, make_rotator

TEXT = "text=eu.example.writer-v1:0"
IMAGE = "image=amazon.nova-canvas-v1:0"


@pytest.mark.parametrize(
    ("named", "text", "pictures"),
    [
        ("", BuiltinText, BuiltinPicture),
        (" ", BuiltinText, BuiltinPicture),
        (TEXT, BedrockText, BuiltinPicture),
        (IMAGE, BuiltinText, BedrockPicture),
        (f"{TEXT}, {IMAGE}", BedrockText, BedrockPicture),
    ],
)
def test_a_model_that_is_named_is_asked_on_bedrock_and_the_built_in_ones_do_the_rest(
    monkeypatch: pytest.MonkeyPatch, named: str, text: type, pictures: type
) -> None:
    for name, value in (("DEFAULT_REGION", "eu-central-1"), ("ACCESS_KEY_ID", "test"), ("SECRET_ACCESS_KEY", "test")):
        monkeypatch.setenv(f"AWS_{name}", value)
    models = make_models(read({"MODELS": named}))
    assert (type(models.text), type(models.pictures)) == (text, pictures)


REFUSED = [
    ({"JWKS_MAX_AGE_SECONDS": "never"}, "JWKS_MAX_AGE_SECONDS must be a whole number from 1 to 86400, not 'never'"),
    ({}, "PUBLIC_TABLE_NAME is not set"),
]
CONTEXT: Any = SimpleNamespace(get_remaining_time_in_millis=lambda: 60_000)


@pytest.mark.parametrize("kind", ["Create", "Update"])
@pytest.mark.parametrize(("environment", "why"), REFUSED)
def test_cloudformation_is_told_at_once_which_setting_the_rotator_refuses(
    environment: dict[str, str], why: str, kind: str
) -> None:
    answers: list[tuple[str, Any]] = []
    rotator = make_rotator(environment, lambda url, body: answers.append((url, json.loads(body))))
    request = {"StackId": "s", "RequestId": "r", "LogicalResourceId": "KeyRing", "ResponseURL": "https://cfn.example"}
    rotator(request | {"RequestType": kind}, CONTEXT)
    ((url, answer),) = answers
    assert (url, answer["Status"], answer["Reason"]) == ("https://cfn.example", "FAILED", f"SettingsError: {why}")
    rotator(request | {"RequestType": "Delete"}, CONTEXT)
    assert answers[-1][1]["Status"] == "SUCCESS", "or the stack could not be rolled back or deleted"


@pytest.mark.parametrize("event", [{}, {"command": "rotate"}, {"command": "show"}, {"source": "aws.events"}])
def test_whoever_else_calls_such_a_rotator_fails_by_the_same_words(event: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="JWKS_MAX_AGE_SECONDS"):
        make_rotator({"JWKS_MAX_AGE_SECONDS": "never"})(event, CONTEXT)
