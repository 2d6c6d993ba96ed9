"""API Gateway's REST API in front of the api function, on this machine, as its documentation describes it.

It makes a proxy event of each request for one of the instances behind it; each has its own Runtime API
(``tests/runtime_api.py``). The chunks of an answer go to the client as they arrive. The routes, and the headers of
its own errors, are the template's. Like API Gateway it

* knows only the routes and verbs of the template (403), and accepts only the form of answer that a route has (502);
* refuses a request of more than 10 MB (413), a throttled request (429), and an answer that takes 29 s (504);
* renames headers of the answer, ``WWW-Authenticate`` among them;
* does not notify the function when the client has disconnected.
"""

from __future__ import annotations

import json
import queue
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from a2a_serverless.http.runtime import SEPARATOR
from tests.functions.template import resources
from tests.runtime_api import Invocation, RuntimeApiServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

RENAMED: Final = {
    name: f"x-amzn-Remapped-{name}"
    for name in (
        "authorization",
        "connection",
        "content-md5",
        "date",
        "host",
        "proxy-authenticate",
        "server",
        "trailer",
        "upgrade",
        "user-agent",
        "www-authenticate",
    )
}
DROPPED: Final = frozenset({"content-length", "transfer-encoding"})
# Its own errors: the message in the body, and the type in x-amzn-ErrorType.
REFUSALS: Final = {
    403: ("Missing Authentication Token", "MissingAuthenticationTokenException"),  # no such route or verb
    413: ("Request Too Long", "RequestTooLargeException"),
    429: ("Too Many Requests", "TooManyRequestsException"),
    502: ("Internal server error", "InternalServerErrorException"),
    504: ("Endpoint request timed out", "InternalServerErrorException"),
}


@dataclass(frozen=True)
class Limits:
    """The largest body (bytes), and how long to wait for a buffered answer or for the next chunk of a streamed one."""

    body: int = 10 * 1024 * 1024
    buffered_s: float = 29
    streamed_s: float = 60


class Refused(Exception):
    """The gateway answers with its own status instead of the function's answer."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def answer_of(invocation: Invocation, *, streams: bool, limits: Limits) -> tuple[dict[str, Any], Iterator[bytes]]:
    """Returns status and headers, and the body in chunks. Raises Refused if the form is not that of the route."""
    rest = iter(partial(_next, invocation, limits.streamed_s if streams else limits.buffered_s), None)
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


def _next(invocation: Invocation, seconds: float) -> bytes | None:
    try:
        return invocation.chunks.get(timeout=seconds)
    except queue.Empty:
        raise Refused(504) from None


@dataclass(frozen=True)
class Route:
    """A resource of the template; ``streams`` says for each verb whether its answers are streamed."""

    resource: str
    streams: Mapping[str, bool]

    @property
    def _parts(self) -> list[str]:
        return self.resource.strip("/").split("/")

    def takes(self, path: str) -> bool:
        """Returns whether the resource matches the path. API Gateway delivers "/{agent}/" as "/{agent}"."""
        asked, parts = path.strip("/").split("/"), self._parts
        if parts[-1] == "{proxy+}":
            asked = asked[: len(parts)] if len(asked) >= len(parts) else []
        return len(asked) == len(parts) and all(
            part.startswith("{") or part == one for part, one in zip(parts, asked, strict=True)
        )

    @property
    def vague(self) -> tuple[bool, list[bool]]:
        """Sort key: literal words come before parameters, and those before "{proxy+}"."""
        return self._parts[-1] == "{proxy+}", [part.startswith("{") for part in self._parts]


def routes() -> list[Route]:
    """Returns the template's routes, the most specific first."""
    (api,) = resources("AWS::Serverless::Api").values()
    paths = api["DefinitionBody"]["paths"]
    found = [
        Route(path, {verb.upper(): "Fn::If" in one["x-amazon-apigateway-integration"] for verb, one in verbs.items()})
        for path, verbs in paths.items()
    ]
    return sorted(found, key=lambda route: route.vague)


def refusal_headers() -> dict[int, dict[str, str]]:
    """Returns the headers of the template's gateway responses, for 4xx (key 4) and 5xx (key 5)."""
    (api,) = resources("AWS::Serverless::Api").values()
    responses = api["GatewayResponses"]
    return {
        family: {
            name: value.strip("'")
            for name, value in responses[f"DEFAULT_{family}XX"]["ResponseParameters"]["Headers"].items()
        }
        for family in (4, 5)
    }


class Gateway(ThreadingHTTPServer):
    """Passes every accepted request to ``invoke``. ``throttles`` returns whether to refuse a request with 429."""

    daemon_threads = True

    def __init__(
        self,
        invoke: Callable[[Invocation], object],
        *,
        port: int = 0,
        limits: Limits | None = None,
        throttles: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.invoke = invoke
        self.limits = limits or Limits()
        self.throttles = throttles
        self.routes = routes()
        self.refusal_headers = refusal_headers()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: object) -> None:
        """Ignores clients that disconnect."""


class _Handler(BaseHTTPRequestHandler):
    server: Gateway
    protocol_version = "HTTP/1.1"

    def relay(self) -> None:
        body = b"".join(self._content())
        try:
            self._relay(body)
        except Refused as refused:
            message, kind = REFUSALS[refused.status]
            told = json.dumps({"message": message}).encode()
            headers = {"Content-Type": "application/json", "x-amzn-ErrorType": kind, "Content-Length": str(len(told))}
            self._begin(refused.status, headers | self.server.refusal_headers[refused.status // 100])
            self.wfile.write(told)

    do_GET = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = do_HEAD = relay  # noqa: N815 - the base class's

    def _relay(self, body: bytes) -> None:
        path = urlsplit(self.path).path
        route = next((one for one in self.server.routes if one.takes(path)), None)
        if self.server.throttles():
            raise Refused(429)
        if route is None or self.command not in route.streams:
            raise Refused(403)
        if len(body) > self.server.limits.body:
            raise Refused(413)
        invocation = Invocation(json.dumps(self._event(route.resource, body)).encode())
        self.server.invoke(invocation)
        answer, pieces = answer_of(invocation, streams=route.streams[self.command], limits=self.server.limits)
        headers = {
            RENAMED.get(name.lower(), name): value
            for name, value in answer["headers"].items()
            if name.lower() not in DROPPED
        }
        gone = not self._begun(answer["statusCode"], headers | {"Transfer-Encoding": "chunked"})
        for chunk in filter(None, pieces):  # the function is not notified when the client has disconnected
            gone = gone or not self._written(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        broken = invocation.cut or bool(invocation.trailers)
        self.close_connection = gone or broken or not self._written(b"0\r\n\r\n")

    def _begun(self, status: int, headers: Mapping[str, str]) -> bool:
        try:
            self._begin(status, headers)
        except OSError:
            return False
        return True

    def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _written(self, content: bytes) -> bool:
        try:
            self.wfile.write(content)
        except OSError:
            return False
        return True

    def _content(self) -> Iterator[bytes]:
        """Yields the body of the request in chunks."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            yield self.rfile.read(int(self.headers.get("Content-Length") or 0))
            return
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _event(self, resource: str, body: bytes) -> dict[str, Any]:
        target = urlsplit(self.path)
        headers = {name: self.headers.get_all(name, []) for name in self.headers}
        query = parse_qs(target.query, keep_blank_values=True)
        return {
            "resource": resource,
            "path": target.path,
            "httpMethod": self.command,
            "headers": {name: values[-1] for name, values in headers.items()},
            "multiValueHeaders": headers,
            "queryStringParameters": {name: values[-1] for name, values in query.items()},
            "multiValueQueryStringParameters": query,
            "requestContext": {"identity": {}, "stage": "live", "resourcePath": resource},
            "body": body.decode("utf-8", "replace"),
            "isBase64Encoded": False,
        }

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's word
        pass


@dataclass(frozen=True)
class Behind:
    """A gateway, the Runtime API of each instance behind it, and all events that they got."""

    gateway: Gateway
    runtimes: list[RuntimeApiServer]
    waiting: queue.Queue[Invocation]
    seen: list[Invocation]

    @property
    def refused(self) -> list[tuple[int, str]]:
        """Returns the requests of instances that their Runtime API has refused."""
        return [one for runtime in self.runtimes for one in runtime.refused]

    @property
    def busy(self) -> int:
        """Returns how many instances have an unanswered event."""
        return sum(runtime.current is not None for runtime in self.runtimes)


@contextmanager
def gateway(instances: int, **options: Any) -> Iterator[Behind]:
    """Runs a gateway for a number of instances while the block lasts; ``options`` are those of Gateway."""
    waiting: queue.Queue[Invocation] = queue.Queue()
    runtimes = [RuntimeApiServer(waiting.get) for _ in range(instances)]
    seen: list[Invocation] = []

    def invoke(invocation: Invocation) -> None:
        seen.append(invocation)
        waiting.put(invocation)

    front = Gateway(invoke, **options)
    servers = [front, *runtimes]
    threads = [threading.Thread(target=one.serve_forever, args=(0.02,)) for one in servers]
    for thread in threads:
        thread.start()
    try:
        yield Behind(front, runtimes, waiting, seen)
    finally:
        for server in servers:
            server.shutdown()
        for thread in threads:
            thread.join()
        for server in servers:
            with suppress(OSError):
                server.server_close()
