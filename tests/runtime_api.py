"""Lambda's Runtime API as its documentation describes it, for one instance of a function, on this machine.

It enforces the states of an instance: the next event comes only after the answer to the one before, an answer is
accepted once, and a streamed answer ends its connection. Other requests are refused and recorded in ``refused``.
``init_errors`` has what an instance reported that could not start: the header with the error's type, and the body.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import parse_headers
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from email.message import Message

VERSION: Final = "/2018-06-01/runtime"
FUNCTION_MS: Final = 900_000
MOST_BUFFERED: Final = 6 * 1024 * 1024 + 100


@dataclass
class Invocation:
    """An event for a function, and its answer. ``chunks`` ends with None; ``last`` is the last chunk."""

    event: bytes
    chunks: queue.Queue[bytes | None] = field(default_factory=queue.Queue)
    kind: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    trailers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    last: bytes = b""

    @property
    def streamed(self) -> bool:
        return self.headers.get("Lambda-Runtime-Function-Response-Mode") == "streaming"

    def posted(self, seconds: float = 60) -> list[bytes]:
        """Waits for the whole answer; returns its chunks."""
        return list(iter(lambda: self.chunks.get(timeout=seconds), None))


class RuntimeApiServer(ThreadingHTTPServer):
    """Serves the events of ``take``. ``cut_after`` ends the connection within an answer, after so many chunks."""

    daemon_threads = True

    def __init__(self, take: Callable[[], Invocation], cut_after: int | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.take = take
        self.cut_after = cut_after
        self.refused: list[tuple[int, str]] = []
        self.init_errors: list[tuple[str, dict[str, Any]]] = []
        self.current: tuple[str, Invocation] | None = None
        self.count = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: RuntimeApiServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path != f"{VERSION}/invocation/next":
            self._refuse(404, "NotFound")
        elif self.server.current:  # not answered yet
            self._refuse(403, "InvalidStateTransition")
        else:
            self._hand_out()

    def _hand_out(self) -> None:
        invocation = self.server.take()
        self.server.count += 1
        self.server.current = (f"request-{self.server.count}", invocation)
        self.send_response(200)
        self.send_header("Lambda-Runtime-Aws-Request-Id", self.server.current[0])
        self.send_header("Lambda-Runtime-Deadline-Ms", str(time.time_ns() // 1_000_000 + FUNCTION_MS))
        self.send_header("Content-Length", str(len(invocation.event)))
        self.end_headers()
        self.wfile.write(invocation.event)

    def do_POST(self) -> None:
        if self.path == f"{VERSION}/init/error":
            return self._note_init_error()
        name, kind = self.path.removeprefix(f"{VERSION}/invocation/").split("/")
        chunked = self.headers.get("Transfer-Encoding") == "chunked"
        if self.server.current is None or self.server.current[0] != name:
            return self._refuse(403 if self.server.current is None else 400, "InvalidRequestID")
        invocation = self.server.current[1]
        invocation.kind, invocation.headers = kind, dict(self.headers)
        if invocation.streamed != chunked:
            return self._refuse(400, "InvalidResponseMode")
        try:
            self._take_in(invocation)
        finally:
            self.server.current = None
            invocation.chunks.put(None)
        if invocation.cut:
            self.close_connection = True
            return None
        if not chunked and int(self.headers["Content-Length"]) > MOST_BUFFERED:
            return self._refuse(413, "ResponseSizeTooLarge")
        self.close_connection = self.close_connection or invocation.streamed
        return self._say(202, {})

    def _note_init_error(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.init_errors.append((self.headers.get("Lambda-Runtime-Function-Error-Type", ""), body))
        self._say(202, {"status": "OK"})

    def _take_in(self, invocation: Invocation) -> None:
        if not invocation.streamed:
            invocation.chunks.put(self.rfile.read(int(self.headers["Content-Length"])))
            return
        seen = 0
        while True:
            if seen == self.server.cut_after:
                invocation.cut = True
                return
            size = int(self.rfile.readline() or b"0", 16)
            if size == 0:
                break
            invocation.last = self.rfile.read(size)
            invocation.chunks.put(invocation.last)
            self.rfile.readline()
            seen += 1
        trailers: Message = parse_headers(self.rfile)
        invocation.trailers = dict(trailers)

    def _refuse(self, status: int, kind: str) -> None:
        self.server.refused.append((status, kind))
        self.close_connection = True
        self._say(status, {"errorType": kind, "errorMessage": "refused"})

    def _say(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's word
        pass


@contextmanager
def runtime_api(take: Callable[[], Invocation], cut_after: int | None = None) -> Iterator[RuntimeApiServer]:
    """Runs the server while the block lasts."""
    server = RuntimeApiServer(take, cut_after)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
