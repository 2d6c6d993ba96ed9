"""The loop between Lambda's Runtime API and the application, for streamed answers.

Lambda's own Python runtime cannot stream, so the api function starts this loop instead: ``AWS_LAMBDA_EXEC_WRAPPER``
names ``functions/api/stream``, which starts the ordinary runtime under ``sam local``. A streamed answer is a chunked
POST: a JSON prelude with status and headers, eight NUL bytes, then the body as it comes. API Gateway accepts that form
only on a route with a streaming integration, and accepts no other form there, so the route decides. A test compares
``STREAMING_ROUTES`` with the template.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from aws_lambda_powertools.utilities.typing import LambdaContext

from a2a_serverless.domain.errors import safe_error_fields
from a2a_serverless.http.lambda_proxy import SECURE, NotHttp, open_exchange, proxy_body, proxy_event, proxy_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from starlette.types import ASGIApp

    from a2a_serverless.adapters.invocations import Event, Handler
    from a2a_serverless.http.lambda_proxy import Exchange

Answer: TypeAlias = "bytes | Exchange"

STREAMING_ROUTES: Final = frozenset({"/{agent}", "/{agent}/{proxy+}"})
APPLICATION_ROUTE: Final = "/{proxy+}"  # streams, too, where the project has an application of its own
VERSION: Final = "/2018-06-01"
CONTENT_TYPE: Final = "application/vnd.awslambda.http-integration-response"
SEPARATOR: Final = b"\0" * 8
WRITE_TIMEOUT_S: Final = 45  # a client that reads nothing for so long counts as disconnected

OK: Final = 200
ACCEPTED: Final = 202
ARN: Final = "Lambda-Runtime-Invoked-Function-Arn"
HIDDEN_REASON: Final = "see the log"
ERROR_TYPE: Final = "Lambda-Runtime-Function-Error-Type"
ERROR_BODY: Final = "Lambda-Runtime-Function-Error-Body"
STREAM_HEADERS: Final = {
    "Lambda-Runtime-Function-Response-Mode": "streaming",
    "Content-Type": CONTENT_TYPE,
    "Transfer-Encoding": "chunked",
    "Trailer": f"{ERROR_TYPE}, {ERROR_BODY}",
}
# Errors that may break off a stream; a cancellation raised by a stream concerns that stream only.
BROKEN: Final = (Exception, asyncio.CancelledError)

logger = logging.getLogger(__name__)


class Invocation(LambdaContext):
    """One event to answer, and its Lambda context. ``event`` is None if it could not be parsed.

    ``deadline`` is in ms since the epoch.
    """

    def __init__(self, request_id: str, deadline: int, event: Event | None, arn: str = "") -> None:
        self._aws_request_id = request_id
        self._invoked_function_arn = arn
        self._function_name = os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "")
        self._memory_limit_in_mb = int(os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "0"))
        self._deadline = deadline
        self.event = event

    def get_remaining_time_in_millis(self) -> int:  # type: ignore[override] # theirs is static
        """How long this invocation may still take, in ms."""
        return max(0, self._deadline - time.time_ns() // 1_000_000)


class RuntimeApi:
    """Lambda's Runtime API at ``host:port``, over one connection that is opened again when it breaks.

    A chunk of a streamed answer that is not accepted within ``stall_s`` breaks it too.
    """

    def __init__(self, address: str, stall_s: float = WRITE_TIMEOUT_S) -> None:
        self._connection = HTTPConnection(address)
        self._stall_s = stall_s

    def next(self) -> Invocation:
        """Waits for the next event. Raises RuntimeError if the Runtime API refuses: then this process has to end."""
        answer, body = self._request("GET", "/runtime/invocation/next", None, {})
        if answer.status != OK:
            raise RuntimeError(f"The Runtime API gives no event: {answer.status} {body[:200]!r}")
        os.environ["_X_AMZN_TRACE_ID"] = answer.headers.get("Lambda-Runtime-Trace-Id", "")
        request_id, arn = answer.headers["Lambda-Runtime-Aws-Request-Id"], answer.headers.get(ARN, "")
        return Invocation(request_id, int(answer.headers["Lambda-Runtime-Deadline-Ms"]), _read(body), arn)

    def respond(self, invocation: Invocation, body: bytes) -> None:
        """Sends a whole answer."""
        self._post(invocation, "response", body, {})

    def stream(self, invocation: Invocation, chunks: Iterator[bytes]) -> None:
        """Sends an answer chunk by chunk, each without a delay, then closes the connection.

        If ``chunks`` raises, the answer ends with trailers that name the error's class.
        """
        connection = self._connection
        connection.putrequest("POST", f"{VERSION}/runtime/invocation/{invocation.aws_request_id}/response")
        for name, value in STREAM_HEADERS.items():
            connection.putheader(name, value)
        connection.endheaders()
        trailers = b""
        while not trailers:
            try:
                chunk = next(chunks)
            except StopIteration:
                break
            except BROKEN as error:
                logger.error("stream broken off", extra=safe_error_fields(error))
                trailers = _trailers(type(error).__name__)
            else:
                self._send(chunk)
        connection.send(b"0\r\n%b\r\n" % trailers)
        connection.getresponse().read()
        self.close()

    def _send(self, chunk: bytes) -> None:
        if chunk:  # an empty chunk would end the answer
            self._connection.sock.settimeout(self._stall_s)
            self._connection.send(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            self._connection.sock.settimeout(None)

    def fail(self, invocation: Invocation, kind: str, message: str = HIDDEN_REASON) -> None:
        """Reports that an event could not be answered."""
        self._post(invocation, "error", _error(kind, message), {ERROR_TYPE: kind})

    def _post(self, invocation: Invocation, kind: str, body: bytes, headers: Mapping[str, str]) -> None:
        answer, _ = self._request("POST", f"/runtime/invocation/{invocation.aws_request_id}/{kind}", body, headers)
        if answer.status != ACCEPTED:
            logger.error("answer not accepted", extra={"status": answer.status})

    def _request(
        self, verb: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[HTTPResponse, bytes]:
        """Returns the response to a request. If the connection fails, sends it once more over a new one.

        That is safe: the Runtime API accepts one answer to an event, and gives no other event before.
        """
        try:
            return self._request_once(verb, path, body, headers)
        except (HTTPException, OSError):
            self.close()
            return self._request_once(verb, path, body, headers)

    def _request_once(
        self, verb: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[HTTPResponse, bytes]:
        self._connection.request(verb, VERSION + path, body, dict(headers))
        answer = self._connection.getresponse()
        return answer, answer.read()

    def close(self) -> None:
        """Drops the connection; the next call opens another."""
        self._connection.close()


def make_streaming_handler(
    app: ASGIApp, buffered_handler: Handler, loop: asyncio.AbstractEventLoop | None = None
) -> Callable[[object, LambdaContext], Answer]:
    """Returns a handler for ``serve``: it returns bytes on a buffered route, an Exchange on one that streams.

    With a ``loop`` the application runs in it.
    """

    def handler(event: object, context: LambdaContext) -> Answer:
        proxy_request = proxy_event(event)
        if proxy_request.get("resource") not in {*STREAMING_ROUTES, APPLICATION_ROUTE}:
            return json.dumps(buffered_handler(proxy_request, context)).encode()
        scope = proxy_scope(proxy_request, context, context.get_remaining_time_in_millis())
        return open_exchange(app, scope, proxy_body(proxy_request), loop)

    return handler


def serve(
    api: RuntimeApi,
    handler: Callable[[object, LambdaContext], Answer],
    forever: Callable[[], bool] = lambda: True,
    after: Callable[[], None] = lambda: None,
    loop: asyncio.AbstractEventLoop | None = None,
) -> None:
    """Answers one event after another while ``forever()`` is true. Calls ``after`` after each answer.

    Answers stream in the ``loop``, or in one of their own; it is closed in the end.
    """
    with asyncio.Runner(loop_factory=(lambda: loop) if loop else None) as runner:
        while forever():
            _serve_one(api, handler, runner.get_loop())
            after()


def _serve_one(
    api: RuntimeApi, handler: Callable[[object, LambdaContext], Answer], loop: asyncio.AbstractEventLoop
) -> None:
    invocation = api.next()
    try:
        answer = handler(invocation.event, invocation)
    except Exception as error:  # noqa: BLE001 - the loop goes on with the next event
        logger.error("invocation failed", extra=safe_error_fields(error))
        kind, reason = type(error).__name__, str(error) if isinstance(error, NotHttp) else HIDDEN_REASON
        _post_response(api, lambda: api.fail(invocation, kind, reason))
        return
    if isinstance(answer, bytes):
        _post_response(api, lambda: api.respond(invocation, answer))
        return
    _post_response(api, lambda: api.stream(invocation, _chunks(answer, loop)))
    _close(answer, loop)


def _post_response(api: RuntimeApi, post: Callable[[], None]) -> None:
    """Posts an answer; if the connection breaks meanwhile, the caller or Lambda has closed it."""
    try:
        post()
    except (HTTPException, OSError):
        logger.warning("the caller has gone")
        api.close()


def _close(answer: Exchange, loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_until_complete(answer.aclose())
    except BROKEN as error:
        logger.error("stream not closed", extra=safe_error_fields(error))


def _read(body: bytes) -> Event | None:
    try:
        event: Event = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return event


def _error(kind: str, message: str) -> bytes:
    return json.dumps({"errorType": kind, "errorMessage": message}).encode()


def _trailers(kind: str) -> bytes:
    body = base64.b64encode(_error(kind, HIDDEN_REASON)).decode()
    return f"{ERROR_TYPE}: {kind}\r\n{ERROR_BODY}: {body}\r\n".encode()


def _chunks(answer: Exchange, loop: asyncio.AbstractEventLoop) -> Iterator[bytes]:
    """The prelude, and the body as it comes, without a content length: the body is chunked."""
    values: dict[str, list[str]] = {}
    for name, value in (*answer.headers, SECURE):
        values.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    values.pop("content-length", None)
    prelude: dict[str, Any] = {"statusCode": answer.status}
    prelude["headers"] = {name: one[0] for name, one in values.items() if len(one) == 1}
    if several := {name: ones for name, ones in values.items() if len(ones) > 1}:  # such as set-cookie
        prelude["multiValueHeaders"] = several
    yield json.dumps(prelude).encode() + SEPARATOR
    if not answer.streams:
        yield answer.read()
        return
    with suppress(StopAsyncIteration):
        while True:
            yield loop.run_until_complete(anext(answer))
