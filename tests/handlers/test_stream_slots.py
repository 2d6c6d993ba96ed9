"""Open streams are counted for as long as they are open: whoever leaves, however that happens, frees the slot."""

from __future__ import annotations

import asyncio
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import repeat
from threading import Barrier, Event
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless.domain.access import Caller, Quota
from a2a_serverless.domain.errors import Overloaded, TooManyRequests
from a2a_serverless.domain.model import Principal
from a2a_serverless.http.api import AllowAnonymous
from a2a_serverless.http.runtime import WRITE_TIMEOUT_S, Invocation, RuntimeApi
from a2a_serverless.http.threads import in_threads
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.services.rate_limiter import STREAM_LEASE_MS, STREAM_RENEW_MS, RateLimiter
from a2a_serverless.services.streams import HEARTBEAT_MS, QUIET_S
from a2a_serverless.testing.memory import MemoryCallbackVerifier
from tests.doubles import MemoryOwnerStore
from tests.echo import Asker
from tests.edge import Edge
from tests.handlers.requests import BINDINGS, Names
from tests.handlers.test_runtime import event, served
from tests.webhook_receiver.serving import serving
from tests.world import ME, MINUTE_MS, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.edge import HttpResponse

DEADLINE_S: Final = 60
SUBSCRIBE: Final = b"GET /echo/tasks/%s:subscribe HTTP/1.1\r\nhost: a\r\na2a-version: 1.0\r\n\r\n"


class Named(AllowAnonymous):
    """The caller is whom the header names."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        return Caller(Principal(ME.tenant, headers.get("x-me", ME.owner)))


class Watched(MemoryOwnerStore):
    """Tells when streams are held and dropped, and holds one only when it may."""

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__(now)
        self.fails = False
        self.held, self.dropped, self.go = Event(), Event(), Event()
        self.go.set()

    def lease_stream(self, principal: Principal, name: str, until: int) -> None:
        if self.fails:
            raise ConnectionError
        super().lease_stream(principal, name, until)
        self.held.set()
        assert self.go.wait(DEADLINE_S)

    def release_stream(self, principal: Principal, name: str) -> None:
        if self.fails:
            raise ConnectionError
        super().release_stream(principal, name)
        self.dropped.set()


class Place:
    """A deployment that counts streams, and a task of each owner that waits for its client."""

    def __init__(self, *owners: str, **quota: int) -> None:
        self.world = World([Asker().agent])
        self.owners = Watched(self.world.clock.now)
        self.quota = Quota(**quota)
        self.edge = self.instance()
        self.tasks = {me: self.sent(me) for me in owners or (ME.owner,)}
        self.task = next(iter(self.tasks.values()))
        self.world.settle()

    def instance(self) -> Edge:
        """Another instance of the api."""
        world = self.world
        limiter = RateLimiter(self.owners, world.clock, world.ids, self.quota)
        return Edge(world.service, world.engine.agents, Named(), MemoryCallbackVerifier(), 60, limiter=limiter)

    def sent(self, me: str) -> str:
        answer = self.ask(Operation.SEND, Names(message=f"message of {me}"), me)
        return str(json.loads(answer.body)["task"]["id"])

    def ask(self, operation: Operation, names: Names, me: str = ME.owner, binding: str = "1.0 REST") -> HttpResponse:
        request = BINDINGS[binding][operation](names)
        return self.edge.answer(request._replace(headers={**request.headers, "x-me": me}))

    def subscribe(self, me: str = ME.owner, binding: str = "1.0 REST") -> HttpResponse:
        return self.ask(Operation.SUBSCRIBE, Names(task=self.tasks[me]), me, binding)

    @property
    def open(self) -> tuple[int, int]:
        """How many streams are counted: mine, and all."""
        return self.owners.count_streams(ME, 9999), self.owners.count_streams(None, 9999)


# ---- Leases


def test_a_stream_that_nobody_reads_is_counted_until_its_lease_is_over_and_not_until_it_must_end() -> None:
    place = Place(streams=1)
    assert place.subscribe().status == 200
    place.world.wait(STREAM_LEASE_MS - 1000)
    assert place.subscribe().status == 429
    place.world.wait(2_000)
    assert place.open == (0, 0)
    assert place.subscribe().status == 200


def test_a_stream_that_is_read_is_counted_until_it_ends_and_no_longer() -> None:
    place = Place(streams=1)
    seen = []
    for minute in range(1, 20):
        place.world.plan(minute * MINUTE_MS, lambda: seen.append(place.open))
    stream: Any = place.subscribe().stream

    async def read() -> None:
        async for _ in stream:
            pass

    began = place.world.now
    place.world.play(read())
    assert 2 * MINUTE_MS <= place.world.now - began <= 5 * MINUTE_MS, (
        "a client that has gone without a word costs no more"
    )
    assert place.open == (0, 0)
    assert seen == [(1, 1)] * len(seen)
    assert len(seen) >= 2


def test_a_stream_goes_on_when_its_lease_cannot_be_renewed(caplog: pytest.LogCaptureFixture) -> None:
    place = Place(streams=1)
    stream: Any = place.subscribe().stream

    async def read() -> int:
        return sum([1 async for _ in stream])

    place.owners.fails = True
    assert place.world.play(read()) > 2 * 3  # the slot could not be given back, either
    assert place.open == (0, 0)  # and its lease is over
    said = [(line.getMessage(), line.__dict__["error"]) for line in caplog.records]
    assert set(said) == {("stream not renewed", "ConnectionError"), ("stream not released", "ConnectionError")}


def test_a_renewal_that_comes_after_the_end_of_its_stream_counts_no_stream() -> None:
    place = Place(streams=1)
    world = place.world
    limiter = RateLimiter(place.owners, world.clock, world.ids, place.quota)
    slot = limiter.open_stream(ME, world.now + 20 * MINUTE_MS)
    assert slot
    assert place.open == (1, 1)
    slot.release()
    slot.renew()
    assert place.open == (0, 0)


# ---- Clients that leave


@pytest.fixture
def place() -> Place:
    return Place(streams=2)


@pytest.fixture
def port(place: Place) -> Iterator[int]:
    with serving(replace(place.edge, run=in_threads()).app) as port:
        yield port


def subscribed(place: Place, port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), DEADLINE_S)
    client.sendall(SUBSCRIBE % place.task.encode())
    return client


@pytest.mark.enable_socket
def test_a_client_that_leaves_after_the_first_event_frees_its_slot(place: Place, port: int) -> None:
    for _ in range(5):
        place.owners.dropped.clear()
        with subscribed(place, port) as client:
            received = b""
            while b"\n\n" not in received.partition(b"data: ")[2]:
                received += client.recv(65536)
            assert received.startswith(b"HTTP/1.1 200")
        assert place.owners.dropped.wait(DEADLINE_S)
        assert place.open == (0, 0)


@pytest.mark.enable_socket
def test_a_client_that_leaves_before_the_answer_frees_its_slot(place: Place, port: int) -> None:
    for _ in range(5):
        for event_ in (place.owners.held, place.owners.dropped, place.owners.go):
            event_.clear()
        with subscribed(place, port):
            assert place.owners.held.wait(DEADLINE_S)
        place.owners.go.set()
        assert place.owners.dropped.wait(DEADLINE_S)
        assert place.open == (0, 0)


def test_a_stream_of_which_nothing_was_asked_for_is_freed_when_it_is_closed(place: Place) -> None:
    stream: Any = place.subscribe().stream
    assert place.open == (1, 1)
    asyncio.run(stream.aclose())
    asyncio.run(stream.aclose())
    assert place.open == (0, 0)


# ---- The same under the streaming loop


class Hurrying:
    """A clock that moves whenever somebody looks at it, so that a quiet stream shows a sign of life soon."""

    def __init__(self, world: World) -> None:
        self._world = world

    def now(self) -> int:
        self._world.now += 4_000
        return self._world.now

    def sleep(self, seconds: float) -> None:
        del seconds


@pytest.mark.enable_socket
@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_a_client_that_leaves_a_stream_of_the_function_frees_its_slot_at_the_next_write(after: int) -> None:
    place = Place(streams=2)
    place.world.service = place.world.service._replace(clock=Hurrying(place.world))
    edge = place.instance()
    subscribe = json.dumps(event("/{agent}/{proxy+}", f"/echo/tasks/{place.task}:subscribe")).encode()
    streams, _ = served(edge.app, *[subscribe] * 3, cut_after=after)
    assert [one.cut for one in streams] == [True] * 3
    assert place.open == (0, 0)


@pytest.mark.enable_socket
def test_a_client_that_reads_nothing_of_its_stream_ends_it_by_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        runtime = RuntimeApi(f"127.0.0.1:{deaf.getsockname()[1]}", stall_s=0.1)
        with pytest.raises(TimeoutError):
            runtime.stream(Invocation("request-1", 0, {}), repeat(b"x" * 1_000_000, 1_000))
        runtime.close()


def test_a_write_and_a_sign_of_life_take_less_than_a_lease() -> None:
    assert STREAM_RENEW_MS + HEARTBEAT_MS + 1000 * QUIET_S + 1000 * WRITE_TIMEOUT_S < STREAM_LEASE_MS


# ---- The whole deployment


CROWD: Final = tuple(f"owner-{number}" for number in range(10))


def test_ten_owners_with_a_hundred_streams_each_do_not_fill_the_deployment() -> None:
    place = Place(*CROWD, streams=100, streams_in_all=500)
    answers = [place.subscribe(me) for _ in range(100) for me in CROWD]
    assert sorted({answer.status for answer in answers}) == [200, 503]
    assert [answer.status for answer in answers].count(200) == 500
    assert place.owners.count_streams(None, 9999) == 500
    assert {place.owners.count_streams(Principal(ME.tenant, me), 9999) for me in CROWD} == {50}
    assert place.ask(Operation.GET, Names(task=place.tasks[CROWD[0]]), CROWD[0]).status == 200
    stream: Any = answers[0].stream
    asyncio.run(stream.aclose())
    assert [place.subscribe(CROWD[9]).status for _ in range(2)] == [200, 503]


@pytest.mark.parametrize("binding", [name for name in BINDINGS if name != "legacy"])
def test_a_client_that_finds_all_streams_taken_gets_the_limit_and_retry_after(binding: str) -> None:
    place = Place(streams_in_all=1)
    assert place.subscribe().status == 200
    answer = place.subscribe(binding=binding)
    assert answer.headers["retry-after"] == "15"
    stream: Any = answer.stream

    async def read() -> bytes:
        return b"".join([frame async for frame in stream])

    body = asyncio.run(read()) if stream else answer.body
    assert b"At most 1 streams are open in this deployment" in body
    assert answer.status == (200 if "JSON-RPC" in binding else 200 if stream else 503)
    assert place.open == (1, 1)


def test_the_owner_s_own_limit_is_told_before_the_deployment_s() -> None:
    place = Place(streams=1, streams_in_all=1)
    place.subscribe()
    assert place.subscribe().status == 429


@pytest.mark.parametrize(("streams", "in_all", "owners_at_once"), [(50, 5, 4), (5, 50, 1)])
def test_twenty_clients_that_subscribe_at_once_never_exceed_the_limit(
    streams: int, in_all: int, owners_at_once: int
) -> None:
    class Together(MemoryOwnerStore):
        """Everybody has counted before anybody holds a stream."""

        all_here = Barrier(20)

        def lease_stream(self, principal: Principal, name: str, until: int) -> None:
            self.all_here.wait(DEADLINE_S)
            super().lease_stream(principal, name, until)

    world = World([Asker().agent])
    owners = Together(world.clock.now)
    quota = Quota(streams=streams, streams_in_all=in_all)
    limiter = RateLimiter(owners, world.clock, world.ids, quota)

    def opened(number: int) -> bool:
        try:
            limiter.open_stream(Principal("tenant", f"owner-{number % owners_at_once}"), world.now + MINUTE_MS)
        except (Overloaded, TooManyRequests):
            return False
        return True

    with ThreadPoolExecutor(20) as pool:
        count = sum(pool.map(opened, range(20)))
    assert count == owners.count_streams(None, 99) <= min(streams, in_all)
