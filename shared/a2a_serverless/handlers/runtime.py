"""The loop between Lambda's Runtime API and the edge, for answers that are streamed.

Lambda's own Python runtime cannot stream, so the api function starts this loop instead (``AWS_LAMBDA_EXEC_WRAPPER``
names ``functions/api/stream``, which steps aside under ``sam local``). A streamed answer is a chunked POST: a JSON
prelude with status and headers, eight NUL bytes, then the body as it comes. API Gateway refuses that form on a route
whose integration buffers and the other form on one that streams, so the route decides; a test holds ``STREAMED``
against the template.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.failures import described
from a2a_serverless.handlers.gateway import SECURE, request_of

if TYPE_CHECKING:
    from a2a_serverless.handlers.exchange import Frames, HttpAnswer
    from a2a_serverless.handlers.http import Edge
    from a2a_serverless.handlers.queues import Event, Handler

STREAMED: Final = frozenset({"/{agent}", "/{agent}/{proxy+}"})
VERSION: Final = "/2018-06-01"
CONTENT_TYPE: Final = "application/vnd.awslambda.http-integration-response"
SEPARATOR: Final = b"\0" * 8
STALL_S: Final = 45  # a client that reads nothing for so long is as good as gone: its stream counts no longer

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Invocation:
    """One event to answer. ``deadline`` is in ms since the epoch."""

    id: str
    deadline: int
    event: Event

    def get_remaining_time_in_millis(self) -> int:
        """What Lambda's own context says too."""
        return max(0, self.deadline - time.time_ns() // 1_000_000)


class RuntimeApi:
    """Lambda's Runtime API at ``host:port``, over one connection that is opened again when it breaks.

    A piece of a streamed answer that is not taken within ``stall_s`` breaks it too.
    """

    def __init__(self, address: str, stall_s: float = STALL_S) -> None:
        self._connection = HTTPConnection(address)
        self._stall_s = stall_s

    def next(self) -> Invocation:
        """Waits for the next event."""
        self._connection.request("GET", f"{VERSION}/runtime/invocation/next")
        answer = self._connection.getresponse()
        body = answer.read()
        os.environ["_X_AMZN_TRACE_ID"] = answer.headers.get("Lambda-Runtime-Trace-Id", "")
        request_id = answer.headers["Lambda-Runtime-Aws-Request-Id"]
        return Invocation(request_id, int(answer.headers["Lambda-Runtime-Deadline-Ms"]), json.loads(body))

    def respond(self, invocation: Invocation, body: bytes) -> None:
        """Sends a whole answer."""
        self._post(f"/runtime/invocation/{invocation.id}/response", {}, body)

    def stream(self, invocation: Invocation, chunks: Iterator[bytes]) -> None:
        """Sends an answer piece by piece, each as soon as it is there."""
        headers = {"Lambda-Runtime-Function-Response-Mode": "streaming", "Content-Type": CONTENT_TYPE}
        self._post(f"/runtime/invocation/{invocation.id}/response", headers, self._bounded(chunks))

    def _bounded(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self._connection.sock.settimeout(self._stall_s)
            yield chunk
            self._connection.sock.settimeout(None)

    def fail(self, invocation: Invocation, kind: str) -> None:
        """Says that an event could not be answered."""
        body = json.dumps({"errorType": kind, "errorMessage": "see the log"}).encode()
        self._post(f"/runtime/invocation/{invocation.id}/error", {"Lambda-Runtime-Function-Error-Type": kind}, body)

    def _post(self, path: str, headers: Mapping[str, str], body: bytes | Iterator[bytes]) -> None:
        self._connection.request(
            "POST", VERSION + path, body, dict(headers), encode_chunked=not isinstance(body, bytes)
        )
        self._connection.getresponse().read()

    def close(self) -> None:
        """Drops the connection; the next call opens another."""
        self._connection.close()


def serve(api: RuntimeApi, edge: Edge, buffered: Handler, forever: Callable[[], bool] = lambda: True) -> None:
    """Answers one event after the other."""
    with asyncio.Runner() as runner:
        while forever():
            _serve_one(api, edge, buffered, runner.get_loop())


def _serve_one(api: RuntimeApi, edge: Edge, buffered: Handler, loop: asyncio.AbstractEventLoop) -> None:
    invocation = api.next()
    try:
        _answer(api, edge, buffered, invocation, loop)
    except (HTTPException, OSError):
        logger.warning("the caller has gone", extra={"request": invocation.id})
        api.close()
    except Exception as error:  # noqa: BLE001 - the next event has done nothing wrong
        logger.error("invocation failed", extra=described(error) | {"request": invocation.id})
        api.fail(invocation, type(error).__name__)


def _answer(
    api: RuntimeApi, edge: Edge, buffered: Handler, invocation: Invocation, loop: asyncio.AbstractEventLoop
) -> None:
    event = invocation.event
    if event.get("resource") not in STREAMED:
        api.respond(invocation, json.dumps(buffered(event, invocation)).encode())
        return
    answer = edge.answer(request_of(event, invocation.get_remaining_time_in_millis()))
    try:
        api.stream(invocation, _chunks(answer, loop))
    finally:
        if answer.stream:
            loop.run_until_complete(answer.stream.aclose())


def _chunks(answer: HttpAnswer, loop: asyncio.AbstractEventLoop) -> Iterator[bytes]:
    yield json.dumps({"statusCode": answer.status, "headers": dict(answer.headers) | SECURE}).encode() + SEPARATOR
    if answer.stream is None:
        yield answer.body
    else:
        yield from _as_they_come(answer.stream, loop)


def _as_they_come(stream: Frames, loop: asyncio.AbstractEventLoop) -> Iterator[bytes]:
    try:
        while True:
            yield loop.run_until_complete(stream.__anext__())
    except StopAsyncIteration:
        return


class JsonLines(logging.Formatter):
    """One JSON object a line, as CloudWatch's JSON format wants it: what the record says, and its extra fields."""

    _KNOWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}

    def format(self, record: logging.LogRecord) -> str:
        said = {"timestamp": self.formatTime(record), "level": record.levelname, "message": record.getMessage()}
        more = {name: value for name, value in vars(record).items() if name not in self._KNOWN}
        trouble = {"stackTrace": self.formatException(record.exc_info)} if record.exc_info else {}
        return json.dumps(said | {"logger": record.name} | more | trouble, default=str)


def log_json_lines() -> None:
    """Makes this process log as Lambda's own runtime would."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
