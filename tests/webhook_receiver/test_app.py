import importlib
from pathlib import Path

import pytest
from fastapi import FastAPI

from receiver.settings import BadSettings, read_settings
from receiver.store_dynamodb import DynamoStore
from receiver.store_sqlite import SqliteStore
from receiver.wiring import build_receiver, open_store

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
    assert importlib.import_module("app").handler


def test_the_factory_makes_the_app_that_the_environment_describes(environment: pytest.MonkeyPatch) -> None:
    made = importlib.import_module("app").app()
    assert isinstance(made, FastAPI)
    assert made.state.settings.issuer == "https://agents.example.com"
    made.state.receiver.expectations.close()
    environment.delenv("ISSUER")
    with pytest.raises(BadSettings, match="ISSUER is missing"):
        importlib.import_module("app").app()


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
