"""What API Gateway does to requests and answers by itself, and what then becomes of clients and of the function."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pytest

from a2a_serverless.client import Client, HttpError, text_message
from a2a_serverless.domain.model import Principal
from a2a_serverless.http.cors import EXPOSED_HEADERS
from a2a_serverless.http.runtime import STREAMING_ROUTES
from a2a_serverless.protocol.v1 import SendMessageRequest, TaskState
from tests import gateway
from tests.conformance.loop import Looping, behind_gateway, looping
from tests.echo import Writer, agent_of
from tests.gateway import Limits, answer_of, routes
from tests.observed import observed
from tests.runtime_api import Invocation
from tests.stack.local import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.domain.task_context import TaskContext

pytestmark = pytest.mark.enable_socket
HEADERS: Final = {"content-type": "application/json", "a2a-version": "1.0"}
ALICE: Final = {"Authorization": "Bearer a2a_alice"}
SMALL: Final = 2_000


@contextmanager
def asked(base: str, verb: str, path: str, body: bytes = b"", **headers: str) -> Iterator[http.client.HTTPResponse]:
    """The answer to a request, on a connection of its own."""
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=30)
    try:
        connection.request(verb, path, body, HEADERS | headers)
        yield connection.getresponse()
    finally:
        connection.close()


def call(method: str, params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


GET: Final = call("GetTask", {"id": "no"})
MESSAGE: Final = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}


def refusal(base: str, verb: str, path: str, body: bytes = b"") -> tuple[int, str, str]:
    """Status, message and type of what the gateway says by itself, which any page may read."""
    with asked(base, verb, path, body) as answer:
        told: dict[str, Any] = json.loads(answer.read())
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert "x-amzn-errortype" in answer.headers["Access-Control-Expose-Headers"]
        assert answer.headers["Content-Type"] == "application/json"
        return answer.status, told["message"], answer.headers["x-amzn-ErrorType"]


def test_the_gateway_has_the_routes_of_the_template_and_each_takes_the_most_exact_path() -> None:
    def resource(path: str) -> str | None:
        return next((one.resource for one in routes() if one.takes(path)), None)

    assert {one.resource for one in routes() if any(one.streams.values())} == STREAMING_ROUTES
    for path in ("/agents", "/.well-known/jwks.json", "/.well-known/agent-card.json"):
        assert resource(path) == path
    assert resource("/echo/.well-known/agent-card.json") == "/{agent}/.well-known/agent-card.json"
    assert resource("/callbacks/one") == "/callbacks/{callback}"
    assert resource("/events/one") == "/events/{event}"
    assert (resource("/echo"), resource("/echo/")) == ("/{agent}", "/{agent}")
    assert resource("/echo/tasks/t:subscribe") == "/{agent}/{proxy+}"


@pytest.mark.parametrize("streams", [True, False])
def test_an_answer_in_the_wrong_form_for_its_route_is_refused(streams: bool) -> None:  # noqa: FBT001
    invocation = Invocation(b"{}", kind="response")
    if not streams:
        invocation.headers["Lambda-Runtime-Function-Response-Mode"] = "streaming"
    invocation.chunks.put(b"{}")
    with pytest.raises(gateway.Refused, match="502"):
        answer_of(invocation, streams=streams, limits=Limits())


def test_a_request_that_the_gateway_refuses_never_reaches_the_function() -> None:
    throttled = threading.Event()
    with behind_gateway([Writer().agent], instances=1, limits=Limits(body=SMALL), throttles=throttled.is_set) as run:
        assert refusal(run.url, "POST", "/echo", b"x" * (SMALL + 1)) == (
            413,
            "Request Too Long",
            "RequestTooLargeException",
        )
        for verb, path in (("PATCH", "/echo"), ("DELETE", "/agents"), ("DELETE", "/")):
            assert refusal(run.url, verb, path)[:2] == (403, "Missing Authentication Token")
        throttled.set()
        assert refusal(run.url, "POST", "/echo", GET) == (429, "Too Many Requests", "TooManyRequestsException")
        assert run.behind.seen == []
        throttled.clear()
        with asked(run.url, "POST", "/echo", GET) as answer:
            assert answer.status == 200
        assert len(run.behind.seen) == 1


def test_the_limit_of_a_request_is_ten_megabytes() -> None:
    assert Limits().body == 10 * 1024 * 1024
    assert Limits().buffered_s == 29


def test_an_answer_that_takes_too_long_on_a_buffered_route_is_given_up_but_not_on_one_that_streams() -> None:
    """Nobody runs behind this gateway, so no answer ever comes."""
    with gateway.gateway(0, limits=Limits(buffered_s=0.01, streamed_s=0.01)) as behind:
        for path in ("/agents", "/.well-known/jwks.json"):
            assert refusal(behind.gateway.url, "GET", path) == (
                504,
                "Endpoint request timed out",
                "InternalServerErrorException",
            )
    stream = call("SendStreamingMessage", {"message": MESSAGE})
    with (
        behind_gateway([slow()], instances=1, limits=Limits(buffered_s=0.01)) as run,
        asked(run.url, "POST", "/echo", stream) as answer,
    ):
        assert answer.status == 200
        assert b"TASK_STATE_COMPLETED" in answer.read()


def slow() -> Any:
    """An agent that takes longer than the gateway waits on a buffered route."""

    async def work(task: TaskContext) -> None:
        await asyncio.sleep(0.05)
        await task.emit("done", "done", last=True)

    return agent_of(work)


@contextmanager
def signed_in() -> Iterator[tuple[Looping, Client]]:
    """A deployment that lets only Alice in, and a client without her key."""
    callers = {"a2a_alice": Principal("default", "alice")}
    with behind_gateway([Writer(0).agent], instances=2, live_options={"callers": callers}) as run:
        yield run, Client(f"{run.url}/echo", observed(run.url))


def test_a_challenge_comes_under_its_other_name_and_our_client_knows_what_is_wrong_all_the_same() -> None:
    with signed_in() as (run, stranger):
        for verb, path in (("POST", "/echo"), ("GET", "/echo/tasks")):
            with asked(run.url, verb, path, GET) as answer:
                assert answer.status == 401
                assert answer.headers["x-amzn-Remapped-www-authenticate"] == 'Bearer realm="a2a"'
                assert "www-authenticate" not in answer.headers
                assert "x-amzn-remapped-www-authenticate" in EXPOSED_HEADERS, "a page may read it"
        with pytest.raises(HttpError, match="401") as refused:
            stranger.get("any")
        assert refused.value.status == 401
        alice = Client(stranger.url, observed(run.url), ALICE)
        items = list(alice.stream(SendMessageRequest(message=text_message("hello"))))
        assert items[-1].state is TaskState.COMPLETED


@pytest.mark.parametrize("status", [413, 429, 504])
def test_the_client_tells_a_refusal_of_the_gateway_from_a_refusal_of_an_agent(status: int) -> None:
    limits = {
        413: Limits(body=1),
        429: Limits(),
        504: Limits(streamed_s=0.01),
    }[status]
    with gateway.gateway(0, limits=limits, throttles=lambda: status == 429) as behind:
        client = Client(f"{behind.gateway.url}/echo", observed())
        for attempt in (
            lambda: client.get("any"),
            lambda: list(client.stream(SendMessageRequest(message=text_message("hello")))),
        ):
            with pytest.raises(HttpError, match=gateway.REFUSALS[status][0]) as refused:
                attempt()
            assert refused.value.status == status


@dataclass
class Patient:
    """An agent that works until it is told to end."""

    over: threading.Event = field(default_factory=threading.Event)

    async def work(self, task: TaskContext) -> None:
        await task.report_progress("begun")
        await asyncio.to_thread(self.over.wait, 60)


@contextmanager
def abandoned(agent: Patient, stream_ms: int) -> Iterator[tuple[Looping, Invocation]]:
    """A deployment of one instance, with the stream of a client that has gone after the first event."""
    with behind_gateway([agent_of(agent.work)], instances=1, live_options={"stream_ms": stream_ms}) as run:
        try:
            with asked(run.url, "POST", "/echo", call("SendStreamingMessage", {"message": MESSAGE})) as answer:
                assert answer.readline().startswith(b"id: 1")
            yield run, run.behind.seen[0]
        finally:
            agent.over.set()


def whole(stream: Invocation) -> bool:
    """Whether the function has sent its answer to the end, in its own time."""
    return (stream.kind, stream.streamed, stream.cut, stream.trailers) == ("response", True, False, {})


def test_a_client_that_has_gone_does_not_end_the_function_s_stream() -> None:
    agent = Patient()
    with abandoned(agent, stream_ms=60_000) as (run, stream):
        agent.over.set()
        eventually(lambda: not run.behind.busy)
        assert b"TASK_STATE_COMPLETED" in stream.last
        assert whole(stream)


def test_a_stream_whose_client_has_gone_costs_its_length_at_most_and_the_task_goes_on() -> None:
    with abandoned(Patient(), stream_ms=1_000) as (run, stream):
        eventually(lambda: not run.behind.busy)
        assert whole(stream)
        with asked(run.url, "GET", "/echo/tasks") as answer:
            (task,) = json.loads(answer.read())["tasks"]
        assert task["status"]["state"] == "TASK_STATE_WORKING"


def test_a_client_that_leaves_its_stream_does_not_disturb_the_next() -> None:
    with looping([Writer().agent]) as base:
        with asked(base, "POST", "/echo", call("SendStreamingMessage", {"message": MESSAGE})) as gone:
            assert gone.readline().startswith(b"id: 1")
        with asked(base, "POST", "/echo", GET) as after:
            assert after.status == 200
