"""An HTTP proxy in front of the emulator's DynamoDB and SQS, at which calls go wrong as they do in AWS.

It throttles calls of DynamoDB, ends connections after a call took effect, and loses or doubles messages on their way
to a queue. ``faults`` says how often; it may be changed at any time.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import md5
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from random import Random

LOOPBACK: Final = "127.0.0.1"
TIMEOUT_S: Final = 60.0
DYNAMODB: Final = "DynamoDB_20120810."
SENDS: Final = frozenset({"AmazonSQS.SendMessage", "AmazonSQS.SendMessageBatch"})
THROTTLED: Final = {
    "__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
    "message": "The level of configured provisioned throughput for the table was exceeded.",
}
JSON: Final = ("Content-Type", "application/x-amz-json-1.0")
DROPPED: Final = frozenset({"host", "connection", "content-length", "transfer-encoding", "keep-alive"})


@dataclass(frozen=True)
class Rates:
    """How often each thing goes wrong, from 0 to 1: throttled and unanswered calls, lost and doubled messages."""

    throttled: float = 0.0
    unanswered: float = 0.0
    lost: float = 0.0
    doubled: float = 0.0


@dataclass
class FaultyProxy:
    """Forwards to the emulator at ``port``. ``happened`` counts what went wrong."""

    port: int
    random: Random
    rates: Rates = field(default_factory=Rates)
    happened: Counter[str] = field(default_factory=Counter)

    def decide(self, target: str) -> str:
        """Returns what goes wrong with a call; empty if nothing does."""
        chance, rates = self.random.random(), self.rates
        named: dict[str, float] = {}
        if target in SENDS:
            named = {"lost": rates.lost, "doubled": rates.doubled}
        elif target.startswith(DYNAMODB):
            named = {"throttled": rates.throttled, "unanswered": rates.unanswered}
        for name, rate in named.items():
            if chance < rate:
                self.happened[name] += 1
                return name
            chance -= rate
        return ""

    def forward(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """Returns the emulator's status, headers and body."""
        connection = HTTPConnection(LOOPBACK, self.port, timeout=TIMEOUT_S)
        try:
            kept = {name: value for name, value in headers.items() if name.lower() not in DROPPED}
            connection.request(method, path, body, {**kept, "Host": f"{LOOPBACK}:{self.port}"})
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


class Handler(BaseHTTPRequestHandler):
    """Answers for the proxy of its subclass."""

    protocol_version = "HTTP/1.1"
    proxy: FaultyProxy

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        fate = self.proxy.decide(self.headers.get("X-Amz-Target", ""))
        try:
            self._answer(fate, body)
        except (OSError, HTTPException):
            self.close_connection = True

    do_GET = do_PUT = do_DELETE = do_HEAD = do_POST  # noqa: N815 - their caller spells them so

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def _answer(self, fate: str, body: bytes) -> None:
        if fate == "throttled":
            self._send(HTTPStatus.BAD_REQUEST, [JSON], json.dumps(THROTTLED).encode())
            return
        if fate == "lost":
            self._send(HTTPStatus.OK, [JSON], accepted(json.loads(body)))
            return
        if fate == "doubled":
            self._forward(body)
        status, headers, content = self._forward(body)
        if fate == "unanswered":
            self.close_connection = True
            return
        self._send(status, [(name, value) for name, value in headers if name.lower() not in DROPPED], content)

    def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        return self.proxy.forward(self.command, self.path, dict(self.headers.items()), body)

    def _send(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        for name, value in [*headers, ("Content-Length", str(len(content)))]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


class QuietServer(ThreadingHTTPServer):
    """A server that says nothing of connections that its clients broke: they are killed on purpose."""

    daemon_threads = True

    def handle_error(self, *about: Any) -> None:  # noqa: ANN401 - socketserver's arguments
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(*about)


@contextmanager
def serving(proxy: FaultyProxy, port: int) -> Iterator[None]:
    """Serves the proxy at ``port`` on this machine while the block lasts."""
    with QuietServer((LOOPBACK, port), type("OurHandler", (Handler,), {"proxy": proxy})) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def accepted(request: Mapping[str, Any]) -> bytes:
    """Makes SQS's answer to a message, or a batch of them, that it has taken."""

    def taken(entry: Mapping[str, Any]) -> dict[str, str]:
        digest = md5(entry["MessageBody"].encode(), usedforsecurity=False).hexdigest()
        return {"MessageId": digest, "MD5OfMessageBody": digest}

    if "Entries" not in request:
        return json.dumps(taken(request)).encode()
    done = [{"Id": entry["Id"], **taken(entry)} for entry in request["Entries"]]
    return json.dumps({"Successful": done, "Failed": []}).encode()
