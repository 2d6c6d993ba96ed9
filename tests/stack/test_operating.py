"""An operator's work on the deployed stack: the program as it is typed, with nothing but ``--local``; and its API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.adapters.aws import emulated
from a2a_serverless.adapters.keys import HEAD, key_of_path
from a2a_serverless.domain.deployed import StackName
from a2a_serverless.domain.push import CursorState
from a2a_serverless.services.erase import Erased
from a2a_serverless.wiring import make_operations
from tests.observed import asked
from tests.stack.local import LocalStack, eventually

if TYPE_CHECKING:
    from a2a_serverless.services.deliveries import Operations

pytestmark = [pytest.mark.enable_socket, pytest.mark.stack]


class Moody(BaseHTTPRequestHandler):
    """A receiver that answers with whatever status it is told."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.server.status)  # type: ignore[attr-defined]
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@dataclass
class Desk:
    """Somebody at a terminal, and a task whose webhook goes to a moody receiver."""

    stack: LocalStack
    server: ThreadingHTTPServer
    task: str = ""
    config: str = "moody"
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def operations(self) -> Operations:
        return make_operations(StackName("a2a-serverless", self.stack.deployment.endpoint))

    def answers(self, status: int) -> None:
        self.server.status = status  # type: ignore[attr-defined]

    def send(self) -> None:
        """Sends the outline agent a message, with the webhook."""
        config = {"id": self.config, "url": f"http://127.0.0.1:{self.server.server_port}/a2a"}
        message = {"messageId": os.urandom(8).hex(), "role": "ROLE_USER", "parts": [{"text": "# Sea\n\nThe sea."}]}
        params = {
            "message": message,
            "configuration": {"returnImmediately": True, "taskPushNotificationConfig": config},
        }
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
        self.task = f"local/anybody/{self.http('POST', 'outline', call)['result']['task']['id']}"

    def http(self, verb: str, path: str, body: object = None) -> Any:
        """A call of the deployed REST API."""
        return asked(self.stack.deployment.rest_url, path, verb, body)

    def type(self, *words: str) -> Any:
        """What the program says, as JSON."""
        program = Path(sys.executable).with_name("a2a-serverless")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        done = subprocess.run(  # noqa: S603 - our own program
            [program, *words, "--local", "--json"],
            env={**environment, "A2A_STATE": str(self.stack.places.state)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def shown(self) -> Any:
        return self.type("push", "show", self.task, self.config)

    def give_up(self) -> None:
        """The webhook is given up, without the days that this takes."""
        store, key = self.operations.board.store, key_of_path(self.task)
        cursor = store.cursor(key, self.config)
        assert cursor is not None
        assert store.move(key, cursor, replace(cursor, state=CursorState.EXHAUSTED, due_at=1, position=0))

    def ended_long_ago(self) -> None:
        """The task's end, moved to the past, so that nobody can still be at it."""
        place = {"pk": {"S": f"TASK#{self.task}"}, "sk": {"S": HEAD}}
        emulated(self.stack.deployment.endpoint).dynamodb.update_item(
            TableName=self.stack.deployment.outputs["TableName"],
            Key=place,
            UpdateExpression="SET status_at = :past",
            ExpressionAttributeValues={":past": {"N": "1"}},
        )


@pytest.fixture
def desk(stack: LocalStack) -> Iterator[Desk]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Moody)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Desk(stack, server)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_webhooks_are_listed_redriven_paused_and_resumed_by_the_program(desk: Desk) -> None:
    desk.answers(HTTPStatus.GONE)
    desk.send()
    eventually(lambda: desk.operations.board.store.attempts(key_of_path(desk.task)))
    gone = eventually(lambda: (one := desk.shown())["state"] == "gone" and one)
    assert [attempt["status"] for attempt in gone["attempts"]] == [HTTPStatus.GONE]
    desk.answers(HTTPStatus.OK)
    desk.type("push", "redrive", desk.task, desk.config)
    eventually(lambda: (one := desk.shown())["deliveredUpTo"] == one["lastEvent"])
    assert desk.type("push", "pause", desk.task, desk.config)["state"] == "paused"
    assert desk.type("push", "resume", desk.task, desk.config)["state"] == "active"
    assert [one["id"] for one in desk.type("push", "list", desk.task)["deliveries"]] == [desk.config]


def test_what_was_given_up_is_found_and_redriven_by_host_from_the_program_and_over_the_api(desk: Desk) -> None:
    desk.answers(HTTPStatus.OK)
    desk.send()
    host = f"127.0.0.1:{desk.server.server_port}"
    named = {"task": desk.task, "id": desk.config}
    eventually(lambda: (one := desk.shown())["deliveredUpTo"] == one["lastEvent"] and one["lastEvent"] > 2)

    desk.give_up()
    listed = eventually(lambda: desk.type("push", "list", "--host", host)["deliveries"])
    assert [(one["task"], one["state"]) for one in listed] == [(desk.task, "exhausted")]
    assert desk.type("push", "redrive", "--host", host) == {"redriven": [named]}
    eventually(lambda: (one := desk.shown())["deliveredUpTo"] == one["lastEvent"])

    desk.give_up()
    where = f"operator/deliveries?host={host}"
    assert [one["id"] for one in eventually(lambda: desk.http("GET", where)["deliveries"])] == [desk.config]
    assert desk.http("POST", "operator/deliveries/redrive", {"host": host}) == {"redriven": [named]}
    eventually(lambda: (one := desk.shown())["deliveredUpTo"] == one["lastEvent"])
    assert desk.http("POST", f"operator/deliveries/{desk.task}/{desk.config}/pause")["state"] == "paused"


def test_keys_are_shown_and_a_key_is_revoked_by_the_program(desk: Desk) -> None:
    ring = desk.type("keys", "show")
    assert desk.type("keys", "rotate")["current"] == ring["current"], "the next key is not public for long enough"
    after = desk.type("keys", "revoke", ring["next"]["kid"])
    assert after["current"] == ring["current"]
    assert after["next"]["kid"] != ring["next"]["kid"]
    public = [key["kid"] for key in desk.http("GET", ".well-known/jwks.json")["keys"]]
    assert sorted(public) == sorted([after["current"]["kid"], after["next"]["kid"]])


def test_a_task_is_counted_and_erased_over_the_api_and_by_the_program(desk: Desk) -> None:
    desk.answers(HTTPStatus.OK)
    desk.send()
    owner, _, task = desk.task.rpartition("/")
    tenant, _, name = owner.partition("/")
    asked_for = {"tenant": tenant, "owner": name, "task": task}
    eventually(lambda: (one := desk.shown())["deliveredUpTo"] == one["lastEvent"] and one["lastEvent"] > 2)
    counted = desk.http("POST", "operator/erase", {**asked_for, "dryRun": True})
    assert (counted["tasks"], counted["later"]) == (1, 0)
    assert counted == desk.type("erase", "task", desk.task, "--dry-run")
    assert desk.http("POST", "operator/erase", asked_for) == Erased(later=1).told(), "it has ended just now"
    desk.ended_long_ago()
    assert desk.http("POST", "operator/erase", asked_for)["tasks"] == 1
    assert desk.type("erase", "task", desk.task) == Erased().told()
    desk.send()
    eventually(lambda: (one := desk.shown())["deliveredUpTo"] == one["lastEvent"] and one["lastEvent"] > 2)
    desk.ended_long_ago()
    assert desk.type("erase", "task", desk.task)["tasks"] == 1
    with pytest.raises(AssertionError, match="TASK_NOT_FOUND"):
        desk.http("GET", f"operator/deliveries/{desk.task}")
