"""A deployment in one process whose requests go through Lambda's streaming loop, as behind API Gateway.

API Gateway is an HTTP server that makes an event of each request, for as many loops as there would be instances of the
function, each with a Runtime API of its own. What a loop posts goes on to the client piece by piece. Like API Gateway
it renames headers, refuses an answer in the wrong form for the route (502), one that takes 29 s (504) and a request of
more than 10 MB (413), and does not tell the function of a client that has gone.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from a2a_serverless.handlers.gateway import make_gateway_handler
from a2a_serverless.handlers.runtime import SEPARATOR, STREAMED, RuntimeApi, serve
from a2a_serverless.services.keys import ensure_ring
from tests.conformance.live import Live, working
from tests.runtime_api import Invocation, RuntimeApiServer

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import Agent

INSTANCES: Final = 12
PATIENCE_S: Final = 60
BUFFERED_S: Final = 29
LARGEST: Final = 10 * 1024 * 1024
RENAMED: Final = {name: f"x-amzn-Remapped-{name}" for name in ("www-authenticate", "date", "server", "connection")}


class Refused(Exception):
    """A status in place of the function's answer."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def answer_of(invocation: Invocation, *, streams: bool) -> tuple[dict[str, Any], Iterator[bytes]]:
    """Status and headers, and the body as it comes; a route takes an answer in its own form only."""
    rest = iter(partial(_next, invocation, PATIENCE_S if streams else BUFFERED_S), None)
    begun = next(rest, b"")
    if invocation.kind != "response" or invocation.streamed != streams:
        raise Refused(502)
    if not streams:
        whole = json.loads(begun)
        assert not whole["isBase64Encoded"]
        return whole, iter([whole["body"].encode()])
    while SEPARATOR not in begun:
        begun += next(rest)
    prelude, _, body = begun.partition(SEPARATOR)
    return json.loads(prelude), chain([body], rest)


def _check_size(body: bytes) -> None:
    if len(body) > LARGEST:
        raise Refused(413)


def _next(invocation: Invocation, seconds: float) -> bytes | None:
    try:
        return invocation.chunks.get(timeout=seconds)
    except queue.Empty:
        raise Refused(504) from None


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
        body = b"".join(self.content())
        try:
            _check_size(body)
            event = self.event(body)
            invocation = Invocation(json.dumps(event).encode())
            self.waiting.put(invocation)
            answer, pieces = answer_of(invocation, streams=event["resource"] in STREAMED)
        except Refused as refused:
            told = json.dumps({"message": "refused"}).encode()
            self.say(refused.status, {"Content-Length": str(len(told))}, told)
            return
        named = {RENAMED.get(name.lower(), name): value for name, value in answer["headers"].items()}
        headers = {name: value for name, value in named.items() if name.lower() != "content-length"}
        self.say(answer["statusCode"], headers | {"Transfer-Encoding": "chunked"})
        gone = False
        for chunk in filter(None, pieces):  # the function is not told when the client has gone
            gone = gone or not self.written(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.close_connection = gone or bool(invocation.trailers) or not self.written(b"0\r\n\r\n")

    def written(self, content: bytes) -> bool:
        try:
            self.wfile.write(content)
        except OSError:
            return False
        return True

    def event(self, body: bytes) -> dict[str, Any]:
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
            "body": body.decode(),
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
    runtimes = [RuntimeApiServer(waiting.get) for _ in range(INSTANCES)]
    gateway = ThreadingHTTPServer(("127.0.0.1", 0), partial(GatewayHandler, waiting))
    base_url = f"http://127.0.0.1:{gateway.server_port}"
    live = Live(agents, base_url)
    ensure_ring(live.smith)

    def instance(address: str) -> None:
        api = RuntimeApi(address)
        serve(api, live.edge, make_gateway_handler(live.edge), lambda: not over.is_set())
        api.close()

    servers = [threading.Thread(target=one.serve_forever) for one in (*runtimes, gateway)]
    instances = [threading.Thread(target=instance, args=[one.address]) for one in runtimes]
    with working(live):
        for thread in (*servers, *instances):
            thread.start()
        try:
            yield base_url
        finally:
            over.set()
            for _ in instances:  # each waits for one more event
                waiting.put(Invocation(b"{}"))
            for thread in instances:
                thread.join()
            for server in (gateway, *runtimes):
                server.shutdown()
            for thread in servers:
                thread.join()
            for server in (gateway, *runtimes):
                server.server_close()
            live.sender.close()
            assert [refused for runtime in runtimes for refused in runtime.refused] == []
