"""A deployment in one process whose requests go through Lambda's streaming loop, as behind API Gateway.

API Gateway is an HTTP server that makes an event of each request, and the Runtime API one that hands the events to as
many loops as there would be instances of the function. What a loop posts goes on to the client piece by piece.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from a2a_serverless.handlers.gateway import make_gateway_handler
from a2a_serverless.handlers.runtime import SEPARATOR, RuntimeApi, serve
from a2a_serverless.services.keys import ensure_ring
from tests.conformance.live import Live, working

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import Agent

INSTANCES: Final = 12
PATIENCE_S: Final = 60
FUNCTION_MS: Final = 900_000


@dataclass
class Invocation:
    """An event on its way through a loop, and what came back; None is the end of it."""

    event: dict[str, Any]
    chunks: queue.Queue[bytes | None] = field(default_factory=queue.Queue)

    def answer(self) -> tuple[dict[str, Any], Iterator[bytes]]:
        """Status and headers, and the body as it comes."""
        begun = b""
        while SEPARATOR not in begun:
            chunk = self.chunks.get(timeout=PATIENCE_S)
            if chunk is None:  # the buffered form
                whole = json.loads(begun)
                assert not whole["isBase64Encoded"]
                return whole, iter([whole["body"].encode()])
            begun += chunk
        prelude, _, body = begun.partition(SEPARATOR)
        return json.loads(prelude), self._rest(body)

    def _rest(self, body: bytes) -> Iterator[bytes]:
        chunk: bytes | None = body
        while chunk is not None:
            yield chunk
            chunk = self.chunks.get(timeout=PATIENCE_S)


class Handler(BaseHTTPRequestHandler):
    """What both servers need."""

    protocol_version = "HTTP/1.1"

    def content(self) -> Iterator[bytes]:
        """The body of the request, in the pieces that it comes in."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            yield self.rfile.read(int(self.headers.get("Content-Length") or 0))
            return
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def say(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's word
        pass


class RuntimeHandler(Handler):
    """Lambda's Runtime API. ``waiting`` are the events that no loop has taken yet."""

    def __init__(self, waiting: queue.Queue[Invocation], taken: dict[str, Invocation], *args: Any) -> None:
        self.waiting, self.taken = waiting, taken
        super().__init__(*args)

    def do_GET(self) -> None:
        invocation = self.waiting.get()
        body, name = json.dumps(invocation.event).encode(), str(id(invocation))
        self.taken[name] = invocation
        deadline = str(time.time_ns() // 1_000_000 + FUNCTION_MS)
        told = {"Lambda-Runtime-Aws-Request-Id": name, "Lambda-Runtime-Deadline-Ms": deadline}
        self.say(200, told | {"Content-Length": str(len(body))}, body)

    def do_POST(self) -> None:
        invocation = self.taken.pop(self.path.split("/")[-2])
        for chunk in self.content():
            invocation.chunks.put(chunk)
        invocation.chunks.put(None)
        self.say(202, {"Content-Length": "0"})


class GatewayHandler(Handler):
    """API Gateway's REST API in front of the function."""

    def __init__(self, waiting: queue.Queue[Invocation], *args: Any) -> None:
        self.waiting = waiting
        super().__init__(*args)

    def do_GET(self) -> None:
        self.relay()

    def do_POST(self) -> None:
        self.relay()

    def do_DELETE(self) -> None:
        self.relay()

    def relay(self) -> None:
        invocation = Invocation(self.event())
        self.waiting.put(invocation)
        answer, body = invocation.answer()
        headers = {name: value for name, value in answer["headers"].items() if name.lower() != "content-length"}
        self.say(answer["statusCode"], headers | {"Transfer-Encoding": "chunked"})
        for chunk in filter(None, body):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")

    def event(self) -> dict[str, Any]:
        target = urlsplit(self.path)
        headers, query = dict(self.headers), dict(parse_qsl(target.query))
        return {
            "resource": _resource(target.path),
            "path": target.path,
            "httpMethod": self.command,
            "headers": headers,
            "multiValueHeaders": {name: [value] for name, value in headers.items()},
            "queryStringParameters": query,
            "multiValueQueryStringParameters": {name: [value] for name, value in query.items()},
            "requestContext": {"identity": {}},
            "body": b"".join(self.content()).decode(),
            "isBase64Encoded": False,
        }


def _resource(path: str) -> str:
    """The template's route. Documents have routes of their own, whose answers are buffered."""
    if "/.well-known/" in path:
        return "/{agent}/.well-known/agent-card.json"
    return "/{agent}/{proxy+}" if path.strip("/").count("/") else "/{agent}"


@contextmanager
def looping(agents: Sequence[Agent]) -> Iterator[str]:
    """A deployment whose answers are streamed; gives its base URL."""
    waiting: queue.Queue[Invocation] = queue.Queue()
    over = threading.Event()
    runtime = ThreadingHTTPServer(("127.0.0.1", 0), partial(RuntimeHandler, waiting, {}))
    gateway = ThreadingHTTPServer(("127.0.0.1", 0), partial(GatewayHandler, waiting))
    base_url = f"http://127.0.0.1:{gateway.server_port}"
    live = Live(agents, base_url)
    ensure_ring(live.smith)

    def instance() -> None:
        api = RuntimeApi(f"127.0.0.1:{runtime.server_port}")
        serve(api, live.edge, make_gateway_handler(live.edge), lambda: not over.is_set())
        api.close()

    servers = [threading.Thread(target=one.serve_forever) for one in (runtime, gateway)]
    instances = [threading.Thread(target=instance) for _ in range(INSTANCES)]
    with working(live):
        for thread in (*servers, *instances):
            thread.start()
        try:
            yield base_url
        finally:
            over.set()
            for _ in instances:  # each waits for one more event
                waiting.put(Invocation({"httpMethod": "GET", "path": "/agents", "resource": "/{agent}", "headers": {}}))
            for thread in instances:
                thread.join()
            for server in (gateway, runtime):
                server.shutdown()
            for thread in servers:
                thread.join()
            for server in (gateway, runtime):
                server.server_close()
            live.sender.close()
