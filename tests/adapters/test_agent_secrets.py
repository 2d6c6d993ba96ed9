"""Secrets by name, read by Powertools from where the project says, and never stored."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from aws_lambda_powertools.utilities.parameters import clear_caches
from moto import mock_aws

from a2a_serverless import SecretNotRead, Skill, StepConflict, TaskContext, agent
from a2a_serverless.adapters.agent_secrets import secrets_in_aws, secrets_in_environment, variable_of
from a2a_serverless.testing import AgentTestHarness

if TYPE_CHECKING:
    from collections.abc import Iterator

PLACES = json.dumps({"weather": "shop/weather", "mail": "ssm:/shop/mail"})
SKILL = Skill("look", "Look", "Looks.", ("demo",))


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        clear_caches()  # type: ignore[no-untyped-call]
        secrets = boto3.client("secretsmanager")
        secrets.create_secret(Name="shop/weather", SecretString="sunny-key")
        boto3.client("ssm").put_parameter(Name="/shop/mail", Value="mail-key", Type="SecureString")
        yield secrets
        clear_caches()  # type: ignore[no-untyped-call]


def test_a_secret_is_read_from_secrets_manager_or_the_parameter_store(aws: Any) -> None:  # noqa: ARG001
    read = secrets_in_aws(PLACES)
    assert (read("weather"), read("mail")) == ("sunny-key", "mail-key")


def test_a_secret_is_kept_for_a_while(aws: Any) -> None:
    read = secrets_in_aws(PLACES)
    read("weather")
    aws.put_secret_value(SecretId="shop/weather", SecretString="rainy-key")
    assert read("weather") == "sunny-key"


def test_a_secret_that_is_not_listed_is_named() -> None:
    with pytest.raises(SecretNotRead, match=r"'tides' is not in \[tool\.a2a-serverless\] secrets"):
        secrets_in_aws(PLACES)("tides")
    with pytest.raises(SecretNotRead, match="'weather' is not in"):
        secrets_in_aws("")("weather")


def test_on_a_developers_machine_a_secret_is_a_variable() -> None:
    read = secrets_in_environment({"A2A_SECRET_OPEN_METEO": "k"})
    assert read("open-meteo") == "k"
    with pytest.raises(SecretNotRead, match="give it in the variable A2A_SECRET_WEATHER"):
        read("weather")


@agent(id="look", name="Look", description="Looks.", skills=[SKILL])
async def look(task: TaskContext) -> str:
    """Uses a secret, and returns from a step what the message says of it."""

    async def fetch() -> dict[str, list[str]]:
        key = await task.secret("weather")
        return {"said": [f"with {key}" if task.text() == "tell" else f"{len(key)} characters"]}

    return str((await task.step("fetch", fetch))["said"][0])


def test_an_agent_uses_a_secret_in_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable_of("weather"), "sunny-key")
    assert AgentTestHarness(look).send("look").said == "9 characters"


def test_a_secret_is_not_stored_with_a_result_and_not_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(variable_of("weather"), "sunny-key")
    harness = AgentTestHarness(look)
    with caplog.at_level(logging.DEBUG):
        reply = harness.send("tell")
    assert (reply.state, type(reply.error)) == ("failed", StepConflict)
    assert "sunny-key" not in f"{vars(harness.table)} {reply.said} {caplog.records} {caplog.text}"


def test_a_secret_without_a_value_is_named_in_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variable_of("weather"), raising=False)
    reply = AgentTestHarness(look).send("look")
    assert "A2A_SECRET_WEATHER" in str(reply.error)
