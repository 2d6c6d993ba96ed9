"""An agent elsewhere: it works for some time by the test's clock, and fails as the test says.

It answers the client's requests in this process, or on a loopback socket.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BytesIO
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Literal

from a2a_serverless.domain.outcomes import Outcome
from a2a_serverless.http_client.transport import ClientResponse, ResponseTimeout, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_serverless.http_client.transport import ClientRequest

CARD: Final = "card"
SEND: Final = "send"
GET: Final = "get"
CANCEL: Final = "cancel"
FILE: Final = "file"
_OPERATIONS: Final = {
    "SendMessage": SEND,
    "message/send": SEND,
    "GetTask": GET,
    "tasks/get": GET,
    "CancelTask": CANCEL,
    "tasks/cancel": CANCEL,
}
_STATES: Final = {"working": "TASK_STATE_WORKING", "completed": "TASK_STATE_COMPLETED"}


@dataclass(frozen=True)
class Failure:
    """How a request fails: with an HTTP status, with a JSON-RPC error, or without an answer."""

    status: int = 200
    retry_after: str = ""
    code: int = 0
    silence: Literal["", "closed", "hangs"] = ""
    worked: bool = False
    """Whether the message has taken effect nevertheless."""


WELL: Final = Failure()


@dataclass
class Peer:
    """The agent. ``fails`` says for each operation whether and how it fails; ``takes_ms`` is how long a task takes.

    With ``remembers`` it knows message ids, and starts one task for each. ``says`` are the parts of the message with
    which it ends a task; with ``talks`` that message is its answer, and it makes no task.
    """

    now: Callable[[], int] = lambda: 0
    version: str = "1.0"
    push: bool = False
    remembers: bool = True
    takes_ms: int = 0
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    says: list[dict[str, Any]] = field(default_factory=list)
    talks: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    fails: Callable[[str], Failure | None] = lambda _: None
    url: str = "https://far.example.com"
    asked: list[tuple[str, int]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    parts: list[dict[str, Any]] = field(default_factory=list)
    configurations: list[dict[str, Any]] = field(default_factory=list)
    tasks: dict[str, int] = field(default_factory=dict)
    ended_at: int = 0

    def card(self) -> dict[str, Any]:
        about: dict[str, Any] = {"name": "Far", "description": "d", "version": "1", "skills": []}
        about |= {"defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"]}
        about |= {"capabilities": {"pushNotifications": True} if self.push else {}}
        if self.version == "0.3":
            return about | {"url": self.url, "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC"}
        interface = {"url": self.url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        return about | {"supportedInterfaces": [interface]}

    def times(self, operation: str) -> list[int]:
        """When the operation was asked for (ms)."""
        return [at for one, at in self.asked if one == operation]

    def result(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        if operation != SEND:
            return self.task(params["id"])
        message = params["message"]["messageId"]
        self.configurations.append(params["configuration"])
        if self.talks:
            return {"message": self.message()} if self.version == "1.0" else self.message()
        task = self.task(self.start(message))
        return {"task": task} if self.version == "1.0" else task

    def start(self, message: str) -> str:
        name = message if self.remembers else f"{message}-{len(self.tasks)}"
        self.tasks.setdefault(name, self.now())
        return name

    def task(self, name: str) -> dict[str, Any]:
        self.ended_at = self.tasks[name] + self.takes_ms
        state = "completed" if self.now() >= self.ended_at else "working"
        said = _STATES[state] if self.version == "1.0" else state
        status: dict[str, Any] = {"state": said}
        kind: dict[str, Any] = {} if self.version == "1.0" else {"kind": "task"}
        task = kind | {"id": name, "contextId": "c", "status": status}
        if state == "completed":
            status |= {"message": self.message()} if self.says else {}
            task |= {"artifacts": self.artifacts}
        return task

    def message(self) -> dict[str, Any]:
        new = {"messageId": "said", "role": "ROLE_AGENT", "parts": self.says}
        return new if self.version == "1.0" else new | {"kind": "message", "role": "agent"}

    def answer(self, asked: dict[str, Any]) -> tuple[dict[str, Any], Failure]:
        """The answer to a JSON-RPC request, and how that fails."""
        operation, params = _OPERATIONS[asked["method"]], asked["params"]
        self.asked.append((operation, self.now()))
        if operation == SEND:
            self.messages.append(params["message"]["messageId"])
            self.parts = params["message"]["parts"]
        failure = self.fails(operation)
        if failure is None or failure.worked:
            return {"jsonrpc": "2.0", "id": 1, "result": self.result(operation, params)}, failure or WELL
        error = {"error": {"code": failure.code, "message": "out of order"}}
        return {"jsonrpc": "2.0", "id": 1} | error if failure.code else {}, failure

    def respond(self, path: str, body: bytes | None) -> tuple[bytes, Failure]:
        """The content of the response to a request, and how that fails."""
        if body is not None:
            document, failure = self.answer(json.loads(body))
            return json.dumps(document).encode(), failure
        file = self.files.get(path.partition("?")[0])
        operation = CARD if file is None else FILE
        self.asked.append((operation, self.now()))
        return json.dumps(self.card()).encode() if file is None else file, self.fails(operation) or WELL

    @contextmanager
    def transport(self, request: ClientRequest) -> Iterator[ClientResponse]:
        """The client's transport to the agent, without a socket."""
        content, failure = self.respond(request.url.removeprefix(self.url), request.body)
        if failure.silence:
            raise (ResponseTimeout if failure.silence == "hangs" else Unreachable)(request.url, "no answer")
        headers = {"retry-after": failure.retry_after} if failure.retry_after else {}
        yield ClientResponse(failure.status, headers, BytesIO(content))

    def fetch(self, url: str) -> Outcome:
        """Fetches one of the agent's files, without a socket."""
        content, failure = self.respond(url.removeprefix(self.url), None)
        return Outcome(status=failure.status, body=content)

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Serves the agent; gives its base URL."""
        with HTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"peer": self})) as server:
            self.url = f"http://127.0.0.1:{server.server_port}"
            thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
            thread.start()
            try:
                yield self.url
            finally:
                server.shutdown()
                thread.join()


class _Handler(BaseHTTPRequestHandler):
    peer: Peer

    def do_GET(self) -> None:
        self.say(*self.peer.respond(self.path, None))

    def do_POST(self) -> None:
        self.say(*self.peer.respond(self.path, self.rfile.read(int(self.headers["Content-Length"]))))

    def say(self, content: bytes, failure: Failure) -> None:
        self.close_connection = True
        if failure.silence == "hangs":
            self.rfile.read(1)  # until the client has gone
        if failure.silence:
            return
        self.send_response(failure.status)
        self.send_header("Content-Length", str(len(content)))
        if failure.retry_after:
            self.send_header("Retry-After", failure.retry_after)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass
