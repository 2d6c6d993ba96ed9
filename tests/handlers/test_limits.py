"""What each owner may ask for: 429 in every binding, with the time to wait, and nobody pays for somebody else."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.access import Caller, Quota
from a2a_serverless.domain.errors import TooManyRequests
from a2a_serverless.domain.model import Principal
from a2a_serverless.http.api import AllowAnonymous
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.services.rate_limiter import OWNERS_KEPT, RateLimiter
from a2a_serverless.testing.memory import MemoryCallbackVerifier, MemoryStores
from tests.doubles import MemoryOwnerStore
from tests.echo import Asker
from tests.edge import Edge
from tests.handlers.requests import BINDINGS, Names
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.edge import HttpResponse

EVE = Principal(ME.tenant, "eve")


class Named(AllowAnonymous):
    """The caller is whom the header names."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        return Caller(Principal(ME.tenant, headers.get("x-me", ME.owner)))


class Counting(MemoryOwnerStore):
    """Counts the calls that are made to it."""

    calls = 0

    def __getattribute__(self, name: str) -> Any:
        if name in {
            "count",
            "count_streams",
            "lease_stream",
            "release_stream",
        }:
            self.calls += 1
        return super().__getattribute__(name)


class Place:
    """A deployment with limits. Tasks of its agent wait for their client until somebody cancels them."""

    def __init__(self, **quota: int) -> None:
        self.world = World([Asker().agent])
        self.owners = Counting(self.world.clock.now)
        self.quota = Quota(**quota)
        self.edge = self.instance()
        self.sent = 0

    def instance(self) -> Edge:
        """Another instance of the api."""
        world = self.world
        limiter = RateLimiter(self.owners, world.clock, world.ids, self.quota)
        return Edge(world.service, world.engine.agents, Named(), MemoryCallbackVerifier(), 60, limiter=limiter)

    def ask(
        self,
        operation: Operation,
        names: Names,
        *,
        me: str = ME.owner,
        binding: str = "1.0 REST",
        edge: Edge | None = None,
    ) -> HttpResponse:
        request = BINDINGS[binding][operation](names)
        return (edge or self.edge).answer(request._replace(headers={**request.headers, "x-me": me}))

    def seconds_left(self) -> int:
        """The seconds until the minute is over."""
        return 60 - self.world.now // 1000 % 60

    def send(self, me: str = ME.owner, *, binding: str = "1.0 REST", edge: Edge | None = None) -> HttpResponse:
        self.sent += 1
        return self.ask(Operation.SEND, Names(message=f"message-{self.sent}"), me=me, binding=binding, edge=edge)


def refused(answer: HttpResponse) -> bool:
    assert (answer.status == 429) == ("retry-after" in answer.headers)
    return answer.status == 429


@pytest.mark.requirement(39, 121)
@pytest.mark.parametrize("binding", [name for name in BINDINGS if name != "legacy"])
def test_a_client_that_sends_too_fast_gets_retry_after_in_the_form_of_its_binding(binding: str) -> None:
    place = Place(sends=2)
    answers = [place.send(binding=binding) for _ in range(3)]
    assert [answer.status for answer in answers[:2]] == [200, 200]
    last = answers[-1]
    body = json.loads(last.body)
    assert (last.status, int(last.headers["retry-after"])) == (429, place.seconds_left())
    assert ("jsonrpc" in body) == ("JSON-RPC" in binding)
    assert "Slow down" in json.dumps(body)
    place.world.wait(60_000)
    assert [refused(place.send(binding=binding)) for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize("binding", ["1.0 JSON-RPC", "0.3 JSON-RPC", "0.3 REST"])
def test_an_owner_sends_so_many_messages_a_minute_wherever_they_come_in(binding: str) -> None:
    place = Place(sends=120)
    instances = [place.instance() for _ in range(4)]
    answers = [place.send(edge=instances[number % 4], binding=binding) for number in range(121)]
    assert [refused(answer) for answer in answers] == [False] * 120 + [True]
    assert int(answers[-1].headers["retry-after"]) == place.seconds_left()
    assert not refused(place.send("eve"))
    place.world.wait(60_000)
    assert not refused(place.send(edge=instances[0]))


def test_a_message_that_is_refused_leaves_nothing_behind() -> None:
    place = Place(sends=1)
    place.send()
    before = len(place.world.table.feed)
    assert refused(place.send())
    assert len(place.world.table.feed) == before


def test_sends_are_drawn_ten_at_a_time() -> None:
    place = Place(sends=1200)
    assert not any(refused(place.send()) for _ in range(1200))
    assert place.owners.calls == 120
    assert all(refused(place.send()) for _ in range(50))
    assert place.owners.calls == 121, "it is over for this minute"


def test_an_owner_has_so_many_streams_open_and_closing_one_makes_room() -> None:
    place = Place(streams=2)
    task = json.loads(place.send().body)["task"]["id"]
    place.world.settle()
    streams = [place.ask(Operation.SUBSCRIBE, Names(task=task), edge=place.instance()) for _ in range(3)]
    assert [refused(stream) for stream in streams] == [False, False, True]

    async def first_and_close() -> None:
        stream: Any = streams[0].stream
        await anext(stream)
        await stream.aclose()

    asyncio.run(first_and_close())
    assert not refused(place.ask(Operation.SUBSCRIBE, Names(task=task)))
    assert refused(place.ask(Operation.SUBSCRIBE, Names(task=task)))
    place.world.wait(15 * 60_000)
    assert not refused(place.ask(Operation.SUBSCRIBE, Names(task=task)))


def test_a_stream_that_is_refused_is_not_counted() -> None:
    place = Place(streams=1)
    assert place.ask(Operation.SUBSCRIBE, Names(task="none")).status == 404
    assert place.owners.count_streams(ME, 9) == 0


class Refusing(MemoryStores):
    """A store in which others are always faster."""

    def append(self, change: object, record: object = None, *steps: object) -> bool:
        del change, record, steps
        return False


@pytest.mark.parametrize("binding", [name for name in BINDINGS if name != "legacy"])
def test_a_client_that_loses_every_race_gets_retry_after_in_every_binding(binding: str) -> None:
    place = Place()
    place.world = World([Asker().agent], table=Refusing)
    place.edge = place.instance()
    task = json.loads(place.send().body)["task"]["id"]
    answer = place.ask(Operation.CANCEL, Names(task=task), binding=binding)
    assert "Too many writers" in answer.body.decode()
    assert answer.status == (200 if "JSON-RPC" in binding else 503)
    assert answer.headers["retry-after"] == "1"


class Slow(MemoryOwnerStore):
    """A store that answers nobody who asks for the share of ``ME`` before ``go`` is set."""

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__(now)
        self.asked, self.go = Event(), Event()

    def count(self, principal: Principal, *arguments: Any) -> bool:
        if principal == ME:
            self.asked.set()
            assert self.go.wait(60)
        return super().count(principal, *arguments)


def test_a_slow_store_holds_up_the_owner_whose_share_is_read_and_nobody_else() -> None:
    world = World([Asker().agent])
    owners = Slow(world.clock.now)
    quota = Quota(sends=5)
    limiter = RateLimiter(owners, world.clock, world.ids, quota)
    with ThreadPoolExecutor(2) as pool:
        mine = pool.submit(limiter.admit_send, ME)
        assert owners.asked.wait(60)
        try:
            pool.submit(limiter.admit_send, EVE).result(30)
            assert not mine.done()
        finally:
            owners.go.set()
        mine.result(30)


@pytest.mark.parametrize("quota", [{"streams": 1}, {"streams_in_all": 1}])
def test_a_stream_that_is_refused_costs_no_write(quota: dict[str, int]) -> None:
    place = Place(**quota)
    task = json.loads(place.send().body)["task"]["id"]
    place.world.settle()
    assert place.ask(Operation.SUBSCRIBE, Names(task=task)).status == 200
    place.owners.calls = 0
    assert place.ask(Operation.SUBSCRIBE, Names(task=task)).status in {429, 503}
    assert place.owners.calls == 1


def test_a_quota_of_zero_limits_no_sends_and_counts_none() -> None:
    place = Place()
    assert not any(refused(place.send()) for _ in range(50))
    assert place.owners.calls == 0


def test_a_refusal_asks_to_wait_at_least_a_second() -> None:
    assert TooManyRequests("no", 0).retry_after_s == 1


def test_of_thousands_of_owners_an_instance_forgets_the_one_that_has_not_sent_for_longest() -> None:
    place = Place(sends=600)
    limiter = RateLimiter(place.owners, place.world.clock, place.world.ids, place.quota)
    for number in range(OWNERS_KEPT):
        limiter.admit_send(Principal("tenant", f"owner-{number}"))
    limiter.admit_send(Principal("tenant", "owner-0"))
    limiter.admit_send(Principal("tenant", "another"))
    place.owners.calls = 0
    limiter.admit_send(Principal("tenant", "owner-0"))
    assert place.owners.calls == 0, "it has sent since"
    limiter.admit_send(Principal("tenant", "owner-1"))
    assert place.owners.calls == 1
