"""``tests.observed`` accepts answers of the protocol over HTTP and refuses others."""

from __future__ import annotations

import json

import pytest
from jsonschema import ValidationError

from a2a_serverless.client import Client, discover, text_message
from a2a_serverless.protocol.v1 import SendMessageRequest, TaskState
from tests.conformance import live
from tests.echo import Writer
from tests.http_client.test_transport import Handler, serving
from tests.observed import asked, observed

pytestmark = pytest.mark.enable_socket
WRONG = (AssertionError, ValidationError)


def saying(kind: str, document: object) -> str:
    """Returns the body that a server sends: one document, or one event."""
    text = json.dumps(document)
    return f"id: 1\ndata: {text}\n\n" if kind == "text/event-stream" else text


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("application/json", {"tasks": []}),
        ("text/html", {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}),
        ("text/event-stream", {"task": {}}),
    ],
)
def test_an_answer_that_the_protocol_does_not_have_is_refused(kind: str, document: object) -> None:
    def answer(handler: Handler) -> None:
        handler.say(200, saying(kind, document).encode(), Content_Type=kind)

    with serving(answer) as url, pytest.raises(WRONG):
        asked(url, "echo/tasks")


def test_an_event_that_the_protocol_does_not_have_is_refused() -> None:
    def answer(handler: Handler) -> None:
        frame = saying("text/event-stream", {"jsonrpc": "2.0", "id": 1, "result": {"task": {"id": "t"}}})
        handler.say(200, frame.encode(), Content_Type="text/event-stream")

    with serving(answer) as url, pytest.raises(WRONG):
        list(Client(f"{url}/echo", observed(url)).subscribe("t"))


def test_answers_and_streams_of_a_deployment_pass_the_check() -> None:
    with live.serving([Writer(seconds=0.1).agent]) as url:
        client = discover(f"{url}/echo", observed(url)).client
        told = [item.state for item in client.stream(SendMessageRequest(message=text_message("hello")))]
        assert told[-1] is TaskState.COMPLETED
        assert asked(url, "echo/tasks")["totalSize"] == 1
