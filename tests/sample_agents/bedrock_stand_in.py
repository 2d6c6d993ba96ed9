"""A server that stands in for Amazon Bedrock: it speaks its HTTP and event stream, and answers from a script.

The shapes are those of the service's API reference: ``ConverseStream`` answers with frames of
``application/vnd.amazon.eventstream``, errors carry their class in ``x-amzn-ErrorType``.
"""

from __future__ import annotations

import base64
import json
import struct
import threading
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import boto3

from sample_agents.bedrock import BedrockClient, make_client

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server says to one request."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


def said(*pieces: str, stop: str = "end_turn") -> Answer:
    """A language model that says ``pieces``."""
    frames = [_frame("messageStart", {"role": "assistant"})]
    frames += [_frame("contentBlockDelta", {"delta": {"text": piece}, "contentBlockIndex": 0}) for piece in pieces]
    frames += [
        _frame("contentBlockStop", {"contentBlockIndex": 0}),
        _frame("messageStop", {"stopReason": stop}),
        _frame("metadata", {"metrics": {"latencyMs": 1}}),
    ]
    return _stream(*frames)


def broke_off(*pieces: str, error: str | None = None) -> Answer:
    """A stream that ends in the middle, with an error of its own or without a word."""
    frames = [_frame("contentBlockDelta", {"delta": {"text": piece}, "contentBlockIndex": 0}) for piece in pieces]
    if error:
        frames.append(_frame(error, {"message": "Too many tokens."}, kind="exception"))
    return _stream(*frames)


def refused(status: int, error: str) -> Answer:
    """An error before anything was said."""
    return Answer(json.dumps({"message": "No."}).encode(), status, {"x-amzn-ErrorType": error})


def showed(body: Any) -> Answer:
    """What an image model answers."""
    return Answer(json.dumps(body).encode())


def _stream(*frames: bytes) -> Answer:
    return Answer(b"".join(frames), headers={"Content-Type": "application/vnd.amazon.eventstream"})


def _frame(event: str, payload: dict[str, Any], kind: str = "event") -> bytes:
    headers = b"".join(
        _header(name, value)
        for name, value in (
            (f":{kind}-type", event),
            (":content-type", "application/json"),
            (":message-type", kind),
        )
    )
    body = json.dumps(payload).encode()
    prelude = struct.pack(">II", len(headers) + len(body) + 16, len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + body
    return message + struct.pack(">I", zlib.crc32(message))


def _header(name: str, value: str) -> bytes:
    return bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()


class StandIn(ThreadingHTTPServer):
    """Answers requests from ``script`` in order and keeps what was asked."""

    def __init__(self, script: list[Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def client(self) -> BedrockClient:
        session = boto3.Session("stand-in", "stand-in", region_name="eu-central-1")
        return make_client(session, f"http://127.0.0.1:{self.server_address[1]}")


class _Handler(BaseHTTPRequestHandler):
    server: StandIn

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((unquote(self.path), body))
        answer = self.server.script.pop(0)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the base class gives
        """Says nothing."""


@contextmanager
def bedrock_answers(*script: Answer) -> Iterator[StandIn]:
    """A running server; all of the script must have been asked for when it stops."""
    with StandIn([*script]) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
    assert server.script == []


PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
