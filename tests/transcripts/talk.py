"""Requests to a deployment as they are sent, and what comes back, made comparable: a record of each.

Nothing here imports the project: a record says what a client and a webhook can see. What differs from run to run (ids,
times, addresses, signatures, ciphertexts) is replaced by a placeholder; the same id gets the same one.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSING: Final = frozenset({"date", "server", "content-length", "connection", "transfer-encoding"})
SECRETS: Final = ("x-a2a-notification-jwt", "authorization")
UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
HEX: Final = re.compile(r"\b[0-9a-f]{16,64}\b")
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
HTTP_TIME: Final = re.compile(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT")
TRACE: Final = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]")
LOCAL: Final = re.compile(r"127\.0\.0\.1:\d+")
DAY: Final = re.compile(r"20\d{6}T\d{6}Z|(?<=%2F)20\d{6}(?=%2F)")
OPAQUE: Final = re.compile(r"[A-Za-z0-9_+/=-]{43,}")
TIMES: Final = frozenset({"iat", "exp", "at", "nextAt", "expires", "ms"})
KEY_MEMBERS: Final = frozenset({"x", "y", "kid", "signature", "protected", "jti"})

Json = Any


@dataclass
class Names:
    """What is replaced in one scenario. ``addresses`` are replaced first, whole."""

    addresses: dict[str, str]
    seen: dict[str, str] = field(default_factory=dict)

    def plain(self, text: str) -> str:
        """The text with placeholders in it."""
        for address, name in self.addresses.items():
            text = text.replace(address, name)
        for kind, pattern in (("trace", TRACE), ("time", TIME), ("time", HTTP_TIME), ("local", LOCAL), ("day", DAY)):
            text = pattern.sub(f"<{kind}>", text)
        for kind, pattern in (("id", UUID), ("hex", HEX), ("opaque", OPAQUE)):
            for found in pattern.findall(text):
                text = text.replace(found, self._name(kind, found))
        return text

    def value(self, value: Json, key: str = "") -> Json:
        """A JSON value with placeholders in it."""
        if isinstance(value, dict):
            return {name: self.value(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if key in TIMES and not isinstance(value, bool) and value is not None:
            return f"<{key}>"
        if key in KEY_MEMBERS and isinstance(value, str):
            return f"<{key}>"
        return self.plain(value) if isinstance(value, str) else value

    def _name(self, kind: str, found: str) -> str:
        return self.seen.setdefault(found, f"<{kind} {len(self.seen) + 1}>")


@dataclass(frozen=True)
class Request:
    """One request. ``body`` is JSON, or text that is sent as it is."""

    verb: str
    path: str
    body: Json = None
    headers: dict[str, str] = field(default_factory=dict)

    def content(self) -> bytes:
        if self.body is None:
            return b""
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()

    def sent_headers(self) -> dict[str, str]:
        given = {name.lower() for name in self.headers}
        own = {} if self.body is None or "content-type" in given else {"Content-Type": "application/json"}
        return own | self.headers


@dataclass(frozen=True)
class Answer:
    """One answer, whole. A stream's body is all of its events."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        return json.loads(self.body)

    @property
    def items(self) -> list[Json]:
        """What a stream told."""
        lines = [line for line in self.body.decode().splitlines() if line.startswith("data:")]
        return [json.loads(line.removeprefix("data:")) for line in lines]


class Talk:
    """A conversation of one scenario with the deployment at ``base``, written down."""

    def __init__(self, base: str, hook: str) -> None:
        self.base, self.hook = base, hook
        hosts = {urlsplit(base).netloc: "<host>", urlsplit(hook).netloc: "<hook's host>"}
        self.resolver = Names({base: "<base>", hook: "<hook>"} | hosts)
        self.records: list[Json] = []

    def ask(self, request: Request) -> Answer:
        """Sends a request; it and its answer are written down."""
        answer = send(self.base, request)
        self.records.append({"request": self._request(request), "answer": self._answer(answer)})
        return answer

    def poll(self, request: Request) -> Answer:
        """Sends a request of which nothing is written down."""
        return send(self.base, request)

    def webhooks(self, posts: list[tuple[dict[str, str], bytes]]) -> None:
        """Writes down what a webhook got."""
        for headers, body in posts:
            self.records.append({"webhook": {"headers": self._headers(headers), "body": self._body(headers, body)}})

    def _request(self, request: Request) -> Json:
        body = request.body
        said = self.resolver.plain(body) if isinstance(body, str) else self.resolver.value(body)
        head = f"{request.verb} {self.resolver.plain(request.path)}"
        return {"line": head, "headers": self._headers(request.sent_headers()), "body": said}

    def _answer(self, answer: Answer) -> Json:
        body = self._body(answer.headers, answer.body)
        return {"status": answer.status, "headers": self._headers(answer.headers), "body": body}

    def _headers(self, headers: dict[str, str]) -> Json:
        kept = {name.lower(): value for name, value in headers.items() if name.lower() not in PASSING}
        return {name: self._header(name, value) for name, value in sorted(kept.items())}

    def _header(self, name: str, value: str) -> Json:
        if name == "etag":
            return "<etag>"
        if name in SECRETS and value.count(".") == 2:
            return self._token(value.rpartition(" ")[2]) | {"scheme": value.partition(" ")[0] if " " in value else ""}
        return self.resolver.plain(value)

    def _token(self, token: str) -> dict[str, Json]:
        header, claims, _ = (json.loads(_decoded(part)) if part else {} for part in [*token.split(".")[:2], ""])
        return {"header": self.resolver.value(header), "claims": self.resolver.value(claims)}

    def _body(self, headers: dict[str, str], body: bytes) -> Json:
        kind = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
        if kind.startswith("text/event-stream"):
            return [self._event(event) for event in body.decode().split("\n\n") if event]
        if "json" in kind and body:
            return self.resolver.value(json.loads(body))
        return self.resolver.plain(body.decode("utf-8", "replace")) or None

    def _event(self, event: str) -> Json:
        lines = dict(line.partition(":")[::2] for line in event.splitlines())
        return {
            name: self.resolver.value(json.loads(value)) if name == "data" else value.strip()
            for name, value in lines.items()
            if name
        }


def send(base: str, request: Request) -> Answer:
    """The answer to a request. Redirects are not followed."""
    where = urlsplit(base)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
    try:
        connection.request(request.verb, where.path + request.path, request.content(), request.sent_headers())
        answer = connection.getresponse()
        return Answer(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


class Hook(ThreadingHTTPServer):
    """A webhook that accepts everything and keeps it, in the order of arrival, by path."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posts: dict[str, list[tuple[dict[str, str], bytes]]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        content = json.loads(body)
        self.server.posts.setdefault(self.path, []).append((dict(self.headers.items()), body))
        answer = json.dumps({"challenge": content["challenge"]} if "challenge" in content else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def listening() -> Iterator[Hook]:
    """A webhook on this machine."""
    with Hook() as hook:
        thread = Thread(target=hook.serve_forever)
        thread.start()
        try:
            yield hook
        finally:
            hook.shutdown()
            thread.join()
