"""A server on this machine that speaks the APIs of model vendors, and says what a script tells it.

It is also the other services that agents call: everything outside of an agent's process. So it counts what a process
that dies cannot count.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import unquote

from tests.foreign.model_apis import END, ModelRequest, Said, ToolCall, api_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["CUT", "END", "ModelRequest", "ModelServer", "Said", "ToolCall", "model_server"]

CUT: Final = "CUT"
"""A piece of what a model says, at which the connection breaks."""
CONNECTIONS: Final = 24
IDLE_S: Final = 20
Say: TypeAlias = "Callable[[ModelRequest], Said | int]"


def _refuse(_: ModelRequest) -> int:
    return 500


def _no_service(_: str, __: str, ___: Any) -> tuple[int, Any]:
    return 404, {"error": "there is no such service"}


@dataclass
class ModelServer:
    """``say`` gets each request to a model, and returns pieces of text and tool calls, or the status of an error.

    ``serve`` gets the method, the path and the body of any other request, and returns its status and its body. The
    events of a stream come ``pause_s`` apart. ``keys`` are the bearer tokens of the requests to a model.
    """

    say: Say = _refuse
    serve: Callable[[str, str, Any], tuple[int, Any]] = _no_service
    pause_s: float = 0
    root: str = ""
    keys: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The base of OpenAI's API."""
        return f"{self.root}/v1"

    def environment(self) -> dict[str, str]:
        """The variables that lead the vendors' own clients here."""
        return {
            "OPENAI_BASE_URL": self.url,
            "OPENAI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": self.root,
            "GOOGLE_API_KEY": "none",
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": self.root,
            "AWS_ACCESS_KEY_ID": "none",
            "AWS_SECRET_ACCESS_KEY": "none",
            "AWS_REGION": "us-east-1",
        }


@contextmanager
def model_server(say: Say = _refuse, port: int = 0) -> Iterator[ModelServer]:
    """A server that runs while it is entered. Its threads are there before those of the agents that are tested."""
    made = ModelServer(say)
    with _Server(("127.0.0.1", port), _handler(made)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            made.root = f"http://127.0.0.1:{server.server_port}"
            yield made
        finally:
            server.shutdown()
            thread.join()


def _handler(made: ModelServer) -> type[BaseHTTPRequestHandler]:  # noqa: C901 - a class
    """What answers requests."""
    numbers = count(1)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = IDLE_S
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"] or 0)) or b"null")
            path = unquote(self.path)
            api = api_of(path.partition("?")[0])
            if api is None:
                self._serve(path, body)
                return
            made.keys.append(self.headers.get("authorization", "").removeprefix("Bearer "))
            request = api.read(path, body)
            said = made.say(request)
            if isinstance(said, int):
                self._answer(said, "application/json", json.dumps(api.error(said)).encode())
                return
            spoken = [_with_id(piece, numbers, request.api) for piece in said if piece != CUT]
            kind, content = api.stream(spoken) if request.streams else api.write(spoken)
            self._answer(200, kind, content, cut=CUT in said)

        def do_GET(self) -> None:
            self._serve(unquote(self.path), None)

        def _serve(self, path: str, body: Any) -> None:
            status, content = made.serve(self.command, path, body)
            self._answer(status, "application/json", json.dumps(content).encode())

        def _answer(self, status: int, kind: str, content: bytes, *, cut: bool = False) -> None:
            self.send_response(status)
            headers = {"content-type": kind, "content-length": str(len(content)), "retry-after": "0"}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if cut:
                content, self.close_connection = content[: len(content) * 2 // 3], True
            slowly = made.pause_s and kind == "text/event-stream"
            for event in [one + b"\n\n" for one in content.split(b"\n\n") if one] if slowly else [content]:
                self.wfile.write(event)
                self.wfile.flush()
                time.sleep(made.pause_s)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


class _Server(HTTPServer):
    """Each connection has a thread of a pool, until it is closed."""

    request_queue_size = CONNECTIONS

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._pool, all_there = ThreadPoolExecutor(CONNECTIONS), threading.Barrier(CONNECTIONS + 1)
        for _ in range(CONNECTIONS):
            self._pool.submit(all_there.wait)
        all_there.wait()
        self._open: set[Any] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        self._pool.submit(self._handle, request, client_address)

    def _handle(self, request: Any, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except OSError:
            pass  # the client has gone
        finally:
            self._open.discard(request)
            self.shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        for request in [*self._open]:
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)
        self._pool.shutdown()


def _with_id(piece: str | ToolCall, numbers: Iterator[int], api: str) -> str | ToolCall:
    if isinstance(piece, str) or piece.id or api == "gemini":
        return piece
    return replace(piece, id=f"call_{next(numbers)}")
