"""An operator's work on the deployed stack: the program as it is typed, with nothing but ``--local``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field, replace
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.adapters.aws import emulated
from a2a_serverless.domain.circuit_breaker import FAILURE_THRESHOLD
from a2a_serverless.domain.cursors import CursorState
from a2a_serverless.domain.model import key_of_path
from a2a_serverless.services.webhook_statuses import list_statuses
from a2a_serverless.store.keys import HEAD
from a2a_serverless_tools.operators.deployed import StackName
from a2a_serverless_tools.operators.operations import make_operations, redrive_receiver
from tests.observed import asked
from tests.stack.local import LocalStack, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.domain.push_configs import WebhookStatus
    from a2a_serverless_tools.operators.deliveries import Operations

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]


class Moody(BaseHTTPRequestHandler):
    """A receiver that answers with whatever status it is told, and echoes the challenge."""

    def do_POST(self) -> None:
        challenge = json.loads(self.rfile.read(int(self.headers["Content-Length"]))).get("challenge")
        body = json.dumps({"challenge": challenge}).encode()
        self.send_response(self.server.status)  # type: ignore[attr-defined]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@dataclass
class Operator:
    """Somebody at a terminal, and a task whose webhook goes to a moody receiver."""

    stack: LocalStack
    server: ThreadingHTTPServer
    task: str = ""
    config: str = "moody"
    environment: dict[str, str] = field(default_factory=dict)

    @cached_property
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

    def typing(self, *words: str) -> subprocess.Popen[str]:
        """The program, which runs."""
        program = Path(sys.executable).with_name("a2a-serverless")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return subprocess.Popen(  # noqa: S603 - our own program
            [program, *words, "--local"],
            env={**environment, "A2A_STATE": str(self.stack.paths.state)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def type(self, *words: str) -> Any:
        """What the program says, as JSON."""
        with self.typing(*words, "--json") as command:
            out, err = command.communicate()
        assert command.returncode == 0, out + err
        return json.loads(out)

    def shown(self) -> Any:
        return self.type("push", "show", self.task, self.config)

    def status(self) -> WebhookStatus:
        """What the program shows, read here: to wait for it, which would start the program again and again."""
        admin = self.operations.admin
        snapshot = admin.log.read_head(key_of_path(self.task))
        assert snapshot is not None
        (only,) = list_statuses(admin.store, snapshot)
        return only

    def is_delivered(self) -> bool:
        """Whether the task has ended and its webhook has got everything."""
        return (status := self.status()).cursor.position == status.last > 2

    def give_up(self) -> None:
        """The webhook is given up, without the days that this takes."""
        store, key = self.operations.admin.store, key_of_path(self.task)
        cursor = store.get_cursor(key, self.config)
        assert cursor is not None
        assert store.move_cursor(key, cursor, replace(cursor, state=CursorState.EXHAUSTED, due_at=1, position=0))

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
def operator(stack: LocalStack) -> Iterator[Operator]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Moody)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Operator(stack, server)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_webhooks_are_listed_redriven_paused_and_resumed_by_the_program(operator: Operator) -> None:
    operator.answers(HTTPStatus.GONE)
    operator.send()
    eventually(lambda: operator.operations.admin.store.list_attempts(key_of_path(operator.task)))
    eventually(lambda: operator.status().cursor.state is CursorState.GONE)
    gone = operator.shown()
    assert gone["state"] == "gone"
    assert [attempt["status"] for attempt in gone["attempts"]] == [HTTPStatus.GONE]
    operator.answers(HTTPStatus.OK)
    operator.type("push", "redrive", operator.task, operator.config)
    eventually(operator.is_delivered)
    delivered = operator.shown()
    assert delivered["deliveredUpTo"] == delivered["lastEvent"]
    assert operator.type("push", "pause", operator.task, operator.config)["state"] == "paused"
    assert operator.type("push", "resume", operator.task, operator.config)["state"] == "active"
    assert [one["id"] for one in operator.type("push", "list", operator.task)["deliveries"]] == [operator.config]


def test_an_operator_lists_and_redrives_exhausted_deliveries_by_host(operator: Operator) -> None:
    operator.answers(HTTPStatus.OK)
    operator.send()
    host = f"127.0.0.1:{operator.server.server_port}"
    named = {"task": operator.task, "id": operator.config}
    eventually(operator.is_delivered)

    operator.give_up()
    listed = eventually(lambda: operator.type("push", "list", "--host", host)["deliveries"])
    assert [(one["task"], one["state"]) for one in listed] == [(operator.task, "exhausted")]
    assert operator.type("push", "redrive", "--host", host) == {"redriven": [named]}
    eventually(operator.is_delivered)


def test_deliveries_of_a_paused_host_are_sent_when_its_receiver_runs_again(stack: LocalStack) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Moody, bind_and_activate=False)
    server.server_bind()
    host = f"127.0.0.1:{server.server_address[1]}"
    server.server_port = server.server_address[1]
    held = [Operator(stack, server) for _ in range(FAILURE_THRESHOLD + 1)]
    for one in held:
        one.answers(HTTPStatus.OK)
        one.send()
    paused = eventually(
        lambda: [pause for one in held if one.status().cursor.unanswered and (pause := one.shown().get("hostPaused"))]
    )
    assert paused[0]["unanswered"] >= FAILURE_THRESHOLD
    server.server_activate()
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        redriven = redrive_receiver(StackName("a2a-serverless", stack.deployment.endpoint), host)
        assert redriven == len(held)
        eventually(lambda: all(one.is_delivered() for one in held))
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_keys_are_shown_and_a_key_is_revoked_by_the_program(operator: Operator) -> None:
    ring = operator.type("keys", "show")
    assert operator.type("keys", "rotate")["current"] == ring["current"], "the next key is not public for long enough"
    after = operator.type("keys", "revoke", ring["next"]["kid"])
    assert after["current"] == ring["current"]
    assert after["next"]["kid"] != ring["next"]["kid"]
    public = [key["kid"] for key in operator.http("GET", ".well-known/jwks.json")["keys"]]
    assert sorted(public) == sorted([after["current"]["kid"], after["next"]["kid"]])


def test_a_task_is_counted_and_erased_by_the_program(operator: Operator) -> None:
    operator.answers(HTTPStatus.OK)
    operator.send()
    eventually(operator.is_delivered)
    counted = operator.type("erase", "task", operator.task, "--dry-run")
    assert (counted["tasks"], counted["items"] > 0) == (1, True)
    with operator.typing("erase", "task", operator.task, "--yes") as command:
        assert command.stderr
        said = command.stderr.readline()
        command.kill()
    assert said.startswith("Tasks left: 1. Until "), "it has ended just now"
    assert operator.shown()["id"] == operator.config
    operator.ended_long_ago()
    erased = operator.type("erase", "task", operator.task, "--yes")
    assert erased["tasks"] == 1
    assert set(operator.type("erase", "task", operator.task, "--yes").values()) == {0}
    with pytest.raises(AssertionError, match="TaskNotFoundError"):
        operator.shown()
