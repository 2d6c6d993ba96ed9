"""A function that handles webhooks without FastAPI, as Lambda calls it. What it answers is in ``test_semantics.py``."""

import base64
import logging
import subprocess
import sys
from typing import Any

import pytest
from moto import mock_aws

from a2a_webhook_receiver.aws_lambda import build_from_environment, make_handler
from a2a_webhook_receiver.receive import Claimed
from a2a_webhook_receiver.settings import BadSettings
from a2a_webhook_receiver.testing import TOKEN, StubIssuer, lambda_event
from a2a_webhook_receiver.wiring import build_receiver
from examples import lambda_function
from tests.webhook_receiver.test_stores import make_table

ANSWERED = '{"received":true,"duplicate":false,"late":false}'


class Application:
    """Remembers what it handles; fails while it is told to."""

    def __init__(self) -> None:
        self.handled: list[tuple[str, str | None]] = []
        self.fails = False
        self.issuer = StubIssuer()
        self.handler = make_handler(self.handle, self.issuer.build)

    def handle(self, claimed: Claimed) -> None:
        if self.fails:
            raise OSError("content of the application")
        self.handled.append((claimed.notification.subject.task_id, claimed.notification.content.state))


@pytest.fixture
def application() -> Application:
    return Application()


def test_a_notification_is_handled_once(application: Application) -> None:
    request = application.issuer.notification("task-1", "input-required")
    again = application.issuer.notification("task-1", "input-required")
    assert application.handler(lambda_event(request), None)["body"] == ANSWERED
    assert application.handler(lambda_event(again), None)["body"] == '{"received":true,"duplicate":true}'
    assert application.handled == [("task-1", "input-required")]


def test_a_notification_whose_handler_failed_is_handled_at_the_next_attempt(
    application: Application, caplog: pytest.LogCaptureFixture
) -> None:
    application.fails = True
    event = lambda_event(application.issuer.notification("task-1"))
    assert application.handler(event, None)["statusCode"] == 500
    assert caplog.messages[0] == "failed task=task-1 event=1 error=OSError"
    application.fails = False
    assert application.handler(event, None)["body"] == ANSWERED


def test_a_body_in_base64_is_the_same_body(application: Application) -> None:
    event = lambda_event(application.issuer.notification("task-1"))
    event |= {"body": base64.b64encode(event["body"].encode()).decode(), "isBase64Encoded": True}
    assert application.handler(event, None)["body"] == ANSWERED


@pytest.mark.parametrize("event", [{}, {"headers": None, "body": None}, {"headers": {}, "body": "\ud800"}])
def test_an_event_without_a_request_is_refused(application: Application, event: dict[str, Any]) -> None:
    assert application.handler(event, None)["statusCode"] == 415


def test_the_function_echoes_a_challenge_of_the_issuer(application: Application) -> None:
    assert application.handler(lambda_event(application.issuer.challenge()), None)["body"] == '{"challenge":"stub"}'


def test_the_example_is_a_handler() -> None:
    assert callable(lambda_function.handler)


def test_the_environment_describes_the_function(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    issuer = StubIssuer()
    described = {"ISSUER": issuer.settings.issuer, "AUDIENCE": issuer.settings.audience, "WEBHOOK_TOKEN": TOKEN}
    described |= {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"}
    for name, value in (described | {"AWS_LAMBDA_FUNCTION_NAME": "receiver"}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BadSettings, match="REPLAY_TABLE is missing"):
        build_from_environment()
    monkeypatch.setenv("REPLAY_TABLE", "receiver")
    with mock_aws():
        make_table()
        settings = build_from_environment()[1]
        receiver = build_receiver(settings, issuer.fetch_keys)
        handler = make_handler(lambda_function.handle, lambda: (receiver, settings))
        assert handler(lambda_event(issuer.notification("task-1")), None)["body"] == ANSWERED
    assert capsys.readouterr().out == "task-1 completed\n"
    assert logging.getLogger("a2a_webhook_receiver").level == logging.INFO


def test_a_function_loads_no_web_framework() -> None:
    program = "import sys, a2a_webhook_receiver.aws_lambda; print({'fastapi', 'boto3', 'mangum'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "set()\n"
