"""A stand-in for AWS on loopback: answers every call at once with an empty object, to measure only the caller.

It stores nothing. `capacity.py` measures the calls' cost in DynamoDB, on dynoxide.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answers with an empty object, or for SQS with a message id."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        sent = self.headers.get("X-Amz-Target", "").startswith("AmazonSQS.")
        body = json.dumps({"MessageId": "00000000-0000-4000-8000-000000000000"} if sent else {}).encode()
        self.send_response_only(200)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


@contextmanager
def running() -> Iterator[str]:
    """Runs it in a separate process while the block lasts; gives its URL."""
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.terminate()
        process.join()
        here.close()


def _serve(parent: Connection) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answer)
    server.daemon_threads = True
    parent.send(server.server_address[1])
    server.serve_forever()
