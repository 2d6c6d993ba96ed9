from __future__ import annotations

from typing import Any

import pytest

from a2a_serverless.adapters.aws import CONNECT_S, READ_S, TRIES, Aws
from tests.adapters.clouds import session

SERVICES = ("dynamodb", "kms", "s3", "secrets", "sqs")


@pytest.mark.parametrize("service", SERVICES)
def test_a_client_is_made_once_when_it_is_asked_for(service: str) -> None:
    aws = Aws(session())
    client = getattr(aws, service)
    assert getattr(aws, service) is client
    client.close()


def test_every_client_gives_up_in_time_and_tries_again_a_bounded_number_of_times() -> None:
    aws = Aws(session())
    for service in SERVICES:
        client: Any = getattr(aws, service)
        config = client.meta.config
        assert (config.connect_timeout, config.read_timeout) == (CONNECT_S, READ_S)
        assert config.retries == {"mode": "standard", "total_max_attempts": TRIES}
        client.close()


def test_clients_go_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    client = Aws(session()).dynamodb
    assert client.meta.endpoint_url == "http://127.0.0.1:9"
    client.close()
