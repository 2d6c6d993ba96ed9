"""The rotator's commands and its schedule, and CloudFormation's requests."""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.aws.custom_resource import make_rotator_handler, put_answer
from a2a_serverless.http_client.transport import ClientRequest, ClientResponse, Transport, Unreachable
from a2a_serverless.settings import SettingsError
from tests.handlers.test_queues import Clock

if TYPE_CHECKING:
    from collections.abc import Iterator

URL = "https://cloudformation.example.com/answer?signature=secret"


class Rotator:
    """Commands that note that they were given, and CloudFormation's end of the line."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.done: list[str] = []
        self.answers: list[tuple[str, Any]] = []
        self.handler = make_rotator_handler(
            {name: self.command(name) for name in ("ensure", "schedule", "rotate", "revoke")}, self.answer
        )

    def command(self, name: str) -> Any:
        def run(event: Any) -> dict[str, Any]:
            self.done.append(name)
            if self.error:
                raise self.error
            return {"current": "key-1", "kid": event.get("kid")}

        return run

    def answer(self, url: str, body: bytes) -> None:
        self.answers.append((url, json.loads(body)))

    def handle(self, event: dict[str, Any]) -> dict[str, Any]:
        return self.handler(event, Clock())


def request(kind: str, **fields: str) -> dict[str, str]:
    """What CloudFormation sends to a custom resource."""
    return {
        "RequestType": kind,
        "ServiceToken": "arn:aws:lambda:us-east-1:000000000000:function:rotator",
        "ResponseURL": URL,
        "StackId": "arn:stack",
        "RequestId": "request-1",
        "LogicalResourceId": "KeyRing",
        "ResourceType": "Custom::KeyRing",
    } | fields


IDS = {"StackId": "arn:stack", "RequestId": "request-1", "LogicalResourceId": "KeyRing"}


@pytest.mark.parametrize(
    ("event", "command"),
    [
        ({"source": "aws.events", "detail-type": "Scheduled Event"}, "schedule"),
        ({}, "schedule"),
        ({"command": "rotate"}, "rotate"),
        ({"command": "revoke", "kid": "key-1"}, "revoke"),
    ],
)
def test_a_command_is_carried_out_and_anything_else_is_the_schedule(event: dict[str, Any], command: str) -> None:
    rotator = Rotator()
    assert rotator.handle(event) == {"current": "key-1", "kid": event.get("kid")}
    assert (rotator.done, rotator.answers) == ([command], [])


def test_the_rotator_logs_the_name_of_its_command(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    Rotator().handle({"command": "revoke", "kid": "key-1"})
    assert [(line.getMessage(), line.__dict__["command"]) for line in caplog.records] == [
        ("key ring command", "revoke")
    ]


@pytest.mark.parametrize("command", ["destroy", "", None, 7, ["rotate"], {"a": 1}])
def test_an_unknown_command_is_refused_with_the_list_of_those_that_there_are(command: object) -> None:
    rotator = Rotator()
    with pytest.raises(ValueError, match="unknown command; there are ensure, revoke, rotate, schedule"):
        rotator.handle({"command": command})
    assert rotator.done == []


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_a_deployment_is_answered_with_its_first_keys(kind: str) -> None:
    rotator = Rotator()
    told = rotator.handle(request(kind))
    answer = IDS | {"Status": "SUCCESS", "Data": {"current": "key-1", "kid": None}, "PhysicalResourceId": "key-ring"}
    assert told == {"Status": "SUCCESS", "Data": answer["Data"]}
    assert (rotator.done, rotator.answers) == (["ensure"], [(URL, answer)])


def test_a_removal_does_nothing_and_is_answered() -> None:
    rotator = Rotator()
    rotator.handle(request("Delete", PhysicalResourceId="what-it-was"))
    answer = IDS | {"Status": "SUCCESS", "Data": {}, "PhysicalResourceId": "what-it-was"}
    assert (rotator.done, rotator.answers) == ([], [(URL, answer)])


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_a_failure_is_answered_too_and_keeps_its_reason_to_itself(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    rotator = Rotator(PermissionError("AKIA0000 may not"))
    rotator.handle(request(kind))
    ((url, answer),) = rotator.answers
    assert url == URL
    reason = "PermissionError; see the log of the rotator"
    assert answer == IDS | {"Status": "FAILED", "Reason": reason, "PhysicalResourceId": "key-ring"}
    (line,) = caplog.records
    assert (line.getMessage(), line.__dict__["error"]) == ("custom resource failed", "PermissionError")
    assert "AKIA0000" not in str(line.__dict__)
    assert "signature=secret" not in str(line.__dict__)


def test_a_setting_that_is_refused_is_told_in_full_because_it_says_what_to_do() -> None:
    rotator = Rotator(SettingsError("OIDC_ISSUER needs OIDC_AUDIENCE"))
    rotator.handle(request("Create"))
    ((_, answer),) = rotator.answers
    assert answer["Reason"] == "SettingsError: OIDC_ISSUER needs OIDC_AUDIENCE"


def test_a_command_that_fails_fails_the_invocation() -> None:
    with pytest.raises(OSError, match="down"):
        Rotator(OSError("down")).handle({"command": "rotate"})


def cloudformation(status: int, sent: list[ClientRequest]) -> Transport:
    """A transport that notes each request, and answers with the status."""

    @contextmanager
    def transport(request: ClientRequest) -> Iterator[ClientResponse]:
        sent.append(request)
        yield ClientResponse(status, {}, BytesIO())

    return transport


def test_the_answer_is_put_as_the_signature_of_its_address_wants_it() -> None:
    """S3 refuses a content type that was not signed, and CloudFormation signs the empty one."""
    sent: list[ClientRequest] = []
    put_answer(URL, b"{}", cloudformation(200, sent))
    (request,) = sent
    assert (request.verb, request.url, request.headers, request.body) == ("PUT", URL, {"content-type": ""}, b"{}")


def test_an_answer_that_is_not_taken_is_an_error_that_quotes_no_signature() -> None:
    with pytest.raises(Unreachable, match=r"cloudformation\.example\.com: HTTP 403") as raised:
        put_answer(URL, b"{}", cloudformation(403, []))
    assert "secret" not in str(raised.value)
