"""A server of sloppy and hostile agents on 127.0.0.1, one for each behaviour and form.

An agent is at ``/NAME/VERSION/BINDING/LABEL``: each label is an agent that has met nobody. ``GET`` of that address with
``/asked`` behind it lists the operations that it was asked for, ``GET /`` lists the addresses without labels.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.client import ClientResponse, Unreachable
from tests.peers.behaviours import BEHAVIOURS
from tests.peers.forms import JSON, Refusal, next_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.peers.behaviours import Answers, Behaviour
    from tests.peers.forms import Form

BLOCK: Final = 64 * 1024
PAUSE_S: Final = 0.05
"""Between the pieces of a stream without an end."""
BINDINGS: Final = {"JSONRPC": "jsonrpc", "HTTP+JSON": "rest"}
NOT_FOUND: Final = ClientResponse(404, JSON, BytesIO())


def path_of(behaviour: Behaviour, form: Form) -> str:
    """The path of an agent, without its label."""
    return f"{behaviour.name}/{form.version}/{BINDINGS[form.binding]}"


@dataclass
class PlayedTask:
    """A task of a peer. A message that it knows is answered again as before."""

    stages: list[Answers]
    seen: dict[str, Any] = field(default_factory=dict)


class Peer:
    """An agent that behaves so, in one form, at ``url``."""

    def __init__(self, behaviour: Behaviour, form: Form, url: str) -> None:
        self.behaviour, self.form, self.url = behaviour, form, f"{url}{behaviour.query}"
        self.asked: list[str] = []
        self._tasks: dict[str, PlayedTask] = {}
        self._first: dict[str, str] = {}
        self._lock = threading.Lock()

    def card(self) -> dict[str, Any]:
        """Its card."""
        behaviour = self.behaviour
        if behaviour.card:
            return behaviour.card(self.form, self.url)
        return self.form.card(self.url, streaming=behaviour.streaming, pushNotifications=behaviour.push)

    def respond(self, target: str, headers: Mapping[str, str], body: bytes | None) -> ClientResponse:
        """The response to a request. Raises Unreachable where the connection is closed without one."""
        path, _, query = target.partition("?")
        if path.endswith("/asked"):
            return _document(self.asked)
        if self.behaviour.query.removeprefix("?") not in query:
            return NOT_FOUND
        if path.endswith("/.well-known/agent-card.json"):
            return _document(self.card())
        with self._lock:
            answer = self._answer(target, headers, body)
        return self.form.response(answer)

    def _answer(self, target: str, headers: Mapping[str, str], body: bytes | None) -> Any:
        operation, message, task_id = self.form.read(target, body)
        self.asked.append(operation)
        message_id = str((message or {}).get("messageId", ""))
        if message:
            task_id = message.get("taskId") or self._first.setdefault(message_id, f"t{len(self._first)}")
        task = self._tasks.get(task_id)
        if task is None:
            if not message:
                return Refusal(-32001)
            stages = self.behaviour.stages(self.form._replace(task_id=task_id))
            task = self._tasks[task_id] = PlayedTask(stages)
            task.seen[message_id] = stages[0]
        elif message and message_id not in task.seen:
            if len(task.stages) > 1:
                task.stages.pop(0)
            task.seen[message_id] = task.stages[0]
        answers = task.seen[message_id] if message else task.stages[0]
        answer = next_of(answers.get(operation) or [Refusal(-32601)])
        return answer(headers) if callable(answer) else answer


def _document(content: object) -> ClientResponse:
    return ClientResponse(200, JSON, BytesIO(json.dumps(content).encode()))


class PeerServer(ThreadingHTTPServer):
    """All peers."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.is_over = threading.Event()
        self._forms = {path_of(one, form): (one, form) for one in BEHAVIOURS for form in one.forms}
        self._peers: dict[str, Peer] = {}

    def respond(self, target: str, headers: Mapping[str, str], body: bytes | None) -> ClientResponse:
        """The response of the agent, which begins with the first request to its address."""
        *parts, label = target.partition("?")[0].split("/")[1:5] or [""]
        behaviour, form = self._forms.get("/".join(parts), (None, None))
        if target == "/":
            return _document({f"{self.url}/{path}": behaviour.does for path, (behaviour, _) in self._forms.items()})
        if behaviour is None or form is None:
            return NOT_FOUND
        address = f"{self.url}/{'/'.join(parts)}/{label}"
        return self._peers.setdefault(address, Peer(behaviour, form, address)).respond(target, headers, body)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: PeerServer

    def do_GET(self) -> None:
        self._respond(None)

    def do_POST(self) -> None:
        self._respond(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _respond(self, body: bytes | None) -> None:
        self.close_connection, headers = True, {name.lower(): value for name, value in self.headers.items()}
        with suppress(ConnectionError, Unreachable):  # the client has gone, or the behaviour breaks the connection
            self._write(self.server.respond(self.path, headers, body))

    def _write(self, response: ClientResponse) -> None:
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while block := response.body.read1(BLOCK):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(block), block))
            if block.startswith(b":"):
                self.server.is_over.wait(PAUSE_S)
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving_peers(port: int = 0) -> Iterator[PeerServer]:
    """Serves all peers until the block ends."""
    with PeerServer(port) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.is_over.set()
            server.shutdown()
            thread.join()
