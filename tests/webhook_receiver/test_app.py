import asyncio
import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from moto import mock_aws

import a2a_webhook_receiver
from a2a_webhook_receiver.settings import BadSettings, Settings, read_settings
from a2a_webhook_receiver.store_dynamodb import DynamoStore
from a2a_webhook_receiver.store_sqlite import SqliteStore
from a2a_webhook_receiver.wiring import build_receiver, open_store
from tests.webhook_receiver.test_stores import make_table

ENVIRONMENT = {"ISSUER": "https://agents.example.com", "AUDIENCE": "https://app.example.net/webhook"}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    for name, value in (ENVIRONMENT | {"REPLAY_DB": str(tmp_path / "receiver.db")}).items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "made-up")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return monkeypatch


def test_importing_the_module_reads_no_environment() -> None:
    assert importlib.import_module("a2a_webhook_receiver.app").handler


def test_the_factory_makes_the_app_that_the_environment_describes(environment: pytest.MonkeyPatch) -> None:
    made = importlib.import_module("a2a_webhook_receiver.app").app()
    assert isinstance(made, FastAPI)
    assert made.state.settings.issuer == "https://agents.example.com"
    made.state.receiver.expectations.close()
    environment.delenv("ISSUER")
    with pytest.raises(BadSettings, match="ISSUER is missing"):
        importlib.import_module("a2a_webhook_receiver.app").app()


def test_the_store_is_a_file_or_a_table(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    del environment
    file = open_store(read_settings(ENVIRONMENT | {"REPLAY_DB": str(tmp_path / "a.db")}))
    assert isinstance(file, SqliteStore)
    file.close()
    assert isinstance(open_store(read_settings(ENVIRONMENT | {"REPLAY_TABLE": "receiver"})), DynamoStore)


def test_a_topic_is_told_before_the_inbox_is(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    del environment
    more = {"REPLAY_DB": str(tmp_path / "a.db"), "RELAY_TOPIC_ARN": "arn:aws:sns:us-east-1:000000000000:topic"}
    receiver = build_receiver(read_settings(ENVIRONMENT | more))
    assert [type(relay).__name__ for relay in receiver.relays] == ["SnsRelay", "InboxRelay"]
    receiver.expectations.close()  # type: ignore[attr-defined]


@pytest.fixture
def deployed(environment: pytest.MonkeyPatch) -> Iterator[Callable[..., dict[str, Any]]]:
    """The handler as Lambda has it: a fresh module, a table, and a password of the inbox."""
    environment.delenv("REPLAY_DB")
    for name, value in (("AWS_LAMBDA_FUNCTION_NAME", "receiver"), ("REPLAY_TABLE", "receiver")):
        environment.setenv(name, value)
    environment.setenv("ADMIN_TOKEN_SHA256", sha256(b"pw").hexdigest())
    environment.delitem(sys.modules, "a2a_webhook_receiver.app", raising=False)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    with mock_aws():
        make_table()
        yield lambda *request, **headers: importlib.import_module("a2a_webhook_receiver.app").handler(
            http_api_event(*request, **headers), None
        )
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    asyncio.set_event_loop(None)


def http_api_event(method: str, path: str, body: str | None = None, **headers: str) -> dict[str, Any]:
    context = {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": ""}
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {name.replace("_", "-"): value for name, value in headers.items()} | {"host": "app.example.net"},
        "requestContext": {"http": context, "stage": "$default"},
        "body": body,
        "isBase64Encoded": False,
    }


def test_a_deployed_receiver_answers_as_one_on_a_server_does(deployed: Callable[..., dict[str, Any]]) -> None:
    assert deployed("GET", "/healthz")["statusCode"] == 200
    assert deployed("GET", "/")["statusCode"] == 401
    assert deployed("POST", "/webhook", "{}", content_type="application/json")["statusCode"] == 401
    password = {"content_type": "application/json", "authorization": "Bearer pw"}
    assert deployed("POST", "/expectations", "{}", **password)["statusCode"] == 201
    listed = json.loads(deployed("GET", "/api/notifications", **password)["body"])
    assert listed["receiver"]["expecting"] is True
    assert listed["receiver"]["live"] is False
    assert [entry["refusal"]["code"] for entry in listed["entries"]] == ["no-signature"]


def test_the_template_sets_variables_that_exist() -> None:
    template = (Path(a2a_webhook_receiver.__file__).parents[1] / "template.yaml").read_text()
    variables = set(re.findall(r"^ {10}([A-Z0-9_]+):", template, re.MULTILINE))
    assert variables == {"ISSUER", "AUDIENCE", "REPLAY_TABLE", "ADMIN_TOKEN_SHA256"}
    assert variables <= {field.name.upper() for field in fields(Settings)}
