"""The streaming loop against a Runtime API that enforces its states: whatever comes in, each event is answered once."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from a2a_serverless.http.lambda_proxy import NotHttp, make_gateway_handler
from a2a_serverless.http.messages import EventStream
from a2a_serverless.http.runtime import SEPARATOR, RuntimeApi
from a2a_serverless.http.runtime import Invocation as Asked
from tests.contexts import Context
from tests.echo import Writer
from tests.handlers.test_runtime import call, edge, event, served
from tests.runtime_api import Invocation, runtime_api
from tests.world import World

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

pytestmark = pytest.mark.enable_socket

GOOD: Final = event("/{agent}", "/echo", "POST", call("GetTask", {"id": "no"}))
STREAMED: Final = event("/{agent}/{proxy+}", "/echo/tasks/any:subscribe")
NO_REQUESTS: Final[dict[str, object]] = {
    "null": None,
    "a list": [],
    "a text": "hello",
    "a number": 1,
    "nothing in it": {},
    "a schedule": {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}},
    "messages of a queue": {"Records": [{"eventSource": "aws:sqs", "body": "{}"}]},
    "an HTTP API's or a function URL's": {"version": "2.0", "rawPath": "/echo", "requestContext": {"http": {}}},
    "a stream's route and nothing else": {"resource": "/{agent}"},
}
# API Gateway sends none of these: whoever may invoke the function may send them.
ODD: Final[dict[str, object]] = {
    "a route that is no text": GOOD | {"resource": ["/{agent}"]},
    "a verb that is no text": GOOD | {"httpMethod": None},
    "a path that is no text": GOOD | {"path": 7},
    "headers that are none": GOOD | {"multiValueHeaders": "x", "headers": "x"},
    "a buffered route with headers that are none": event("/agents", "/agents") | {"multiValueHeaders": [1]},
    "a header without values": GOOD | {"multiValueHeaders": {"accept": None}},
    "queries that are none": GOOD | {"multiValueQueryStringParameters": {"a": 1}},
    "a body that is no text": GOOD | {"body": {"a": 1}},
}


def answering(respond: Callable[[], Response]) -> ASGIApp:
    """An application that answers what it is told to."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await respond()(scope, receive, send)

    return app


def written(*events: object) -> list[bytes]:
    return [json.dumps(one).encode() for one in events]


def statuses(invocation: Invocation) -> tuple[str, bool, bool]:
    return invocation.kind, invocation.streamed, bool(invocation.trailers)


@pytest.fixture
def real() -> ASGIApp:
    writer = Writer()
    return edge(World([writer.agent]), writer).app


@pytest.mark.parametrize("name", NO_REQUESTS)
def test_an_event_that_is_no_request_is_refused_by_name_and_the_next_one_is_answered(real: ASGIApp, name: str) -> None:
    [odd, good], server = served(real, *written(NO_REQUESTS[name], GOOD))
    refusal = json.loads(b"".join(odd.posted()))
    assert (odd.kind, refusal["errorType"]) == ("error", "NotHttp")
    assert "API Gateway" in refusal["errorMessage"]
    assert (good.kind, good.streamed, server.refused) == ("response", True, [])


@pytest.mark.parametrize("name", ODD)
def test_an_odd_event_is_reported_or_answered_and_the_next_one_is_answered(real: ASGIApp, name: str) -> None:
    [_, good], server = served(real, *written(ODD[name], GOOD))
    assert (good.kind, good.streamed, server.refused) == ("response", True, [])


def test_an_event_that_cannot_be_read_is_refused_and_the_next_one_is_answered(real: ASGIApp) -> None:
    deep = b"[" * 200_000 + b"]" * 200_000
    [first, second, good], server = served(real, b"{", deep, *written(GOOD))
    assert [first.kind, second.kind, good.kind, server.refused] == ["error", "error", "response", []]


@pytest.mark.parametrize("name", NO_REQUESTS)
def test_under_lambda_s_own_runtime_such_an_event_is_refused_in_the_same_words(real: ASGIApp, name: str) -> None:
    with pytest.raises(NotHttp, match="API Gateway"):
        make_gateway_handler(real)(cast("Any", NO_REQUESTS[name]), Context())


@pytest.mark.parametrize("error", [OSError("disk"), ConnectionResetError(), ValueError("x")])
def test_an_error_before_the_first_byte_is_reported_whatever_its_kind(error: Exception) -> None:
    def fails() -> Response:
        raise error

    def buffered(_: object, __: object) -> dict[str, Any]:
        raise error

    invocations, server = served(
        answering(fails), *written(STREAMED, event("/agents", "/agents"), STREAMED), buffered=buffered
    )
    assert [one.kind for one in invocations] == ["error"] * 3
    assert {json.loads(one.posted()[0])["errorType"] for one in invocations} == {type(error).__name__}
    assert server.refused == []


class Closing:
    """Notes that a stream was closed, and may fail to close it."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.closed = error, False

    async def __call__(self) -> None:
        self.closed = True
        if self.error:
            raise self.error


async def frames(count: int, error: BaseException | None) -> AsyncGenerator[bytes]:
    for number in range(count):
        yield b"id: %d\n\n" % number
    if error:
        raise error


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("kind", [ValueError, OSError, ConnectionResetError, TimeoutError])
def test_an_error_in_mid_stream_breaks_this_answer_off_and_no_other(kind: type[Exception], count: int) -> None:
    made: list[Closing] = []

    def answer() -> Response:
        made.append(Closing())
        return EventStream(frames(count, kind("of ours")), {}, made[-1])

    invocations, server = served(answering(answer), *written(STREAMED, STREAMED))
    assert server.refused == []
    for one in invocations:
        assert one.streamed
        body = b"".join(one.posted()).partition(SEPARATOR)[2]
        assert body.count(b"id: ") == count
        assert one.trailers["Lambda-Runtime-Function-Error-Type"] == kind.__name__
        told = json.loads(base64.b64decode(one.trailers["Lambda-Runtime-Function-Error-Body"]))
        assert told == {"errorType": kind.__name__, "errorMessage": "see the log"}
    assert [one.closed for one in made] == [True, True]


def test_a_stream_that_cannot_be_closed_has_been_answered_all_the_same() -> None:
    def answer() -> Response:
        return EventStream(frames(1, None), {}, Closing(OSError("the table")))

    invocations, server = served(answering(answer), *written(STREAMED, STREAMED))
    assert [statuses(one) for one in invocations] == [("response", True, False)] * 2
    assert server.refused == []


def test_an_answer_of_which_the_connection_breaks_is_over_and_the_next_event_is_answered(real: ASGIApp) -> None:
    for cut_after in (0, 1):
        invocations, server = served(real, *written(GOOD, GOOD), cut_after=cut_after)
        assert [one.cut for one in invocations] == [True, True]
        assert server.refused == []


def test_a_runtime_api_that_refuses_the_next_event_ends_the_process_with_its_reason() -> None:
    with runtime_api(lambda: Invocation(b"{}")) as server:
        runtime = RuntimeApi(server.address)
        runtime.next()
        with pytest.raises(RuntimeError, match="403"):
            runtime.next()
        runtime.close()


def test_a_connection_that_has_broken_while_nothing_was_asked_costs_no_event() -> None:
    """The Runtime API ends each connection after a refused request; the loop opens another for what it has to say."""
    invocations = [Invocation(one) for one in written(event("/agents", "/agents"), GOOD)]
    left = iter(invocations)
    with runtime_api(lambda: next(left)) as server:
        runtime = RuntimeApi(server.address)
        first = runtime.next()
        runtime.respond(Asked("another", 0, {}), b"{}")  # refused, and the connection ended
        runtime.respond(first, b"{}")
        assert runtime.next().aws_request_id == "request-2"
        runtime.close()
    assert [kind for _, kind in server.refused] == ["InvalidRequestID"]
    assert invocations[0].kind == "response"
