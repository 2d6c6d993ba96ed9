"""What each owner may ask for: 429 in every binding, with the time to wait, and nobody pays for somebody else."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from a2a_serverless.domain.access import Caller
from a2a_serverless.domain.errors import TooManyRequests
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.quota import COUNT_AGAIN_MS, Quota
from a2a_serverless.domain.records import TaskEntry
from a2a_serverless.http.api import AllowAnonymous
from a2a_serverless.protocol.operations import Operation
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.services.rate_limiter import SENDS_KEPT_MS, RateLimiter
from a2a_serverless.testing.deployment import LIFE
from a2a_serverless.testing.memory import MemoryCallbackVerifier, MemoryTable
from tests.doubles import MemoryOwnerStore
from tests.echo import Asker
from tests.edge import Edge
from tests.handlers.requests import BINDINGS, Names
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.domain.quota import SendBucket
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
            "get_bucket",
            "store_bucket",
            "get_unfinished",
            "store_unfinished",
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
        limiter = RateLimiter(self.owners, world.table, world.clock, world.ids, self.quota, LIFE.max_life_ms)
        return Edge(
            world.service, world.table, world.engine.agents, Named(), MemoryCallbackVerifier(), 60, limiter=limiter
        )

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

    def send(self, me: str = ME.owner, *, binding: str = "1.0 REST", edge: Edge | None = None) -> HttpResponse:
        self.sent += 1
        return self.ask(Operation.SEND, Names(message=f"message-{self.sent}"), me=me, binding=binding, edge=edge)


def refused(answer: HttpResponse) -> bool:
    assert (answer.status == 429) == ("retry-after" in answer.headers)
    return answer.status == 429


@pytest.mark.requirement(39, 121)
@pytest.mark.parametrize("binding", [name for name in BINDINGS if name != "legacy"])
def test_who_asks_too_fast_is_told_when_to_come_again_in_the_form_of_the_binding(binding: str) -> None:
    place = Place(sends=2)
    answers = [place.send(binding=binding) for _ in range(3)]
    assert [answer.status for answer in answers[:2]] == [200, 200]
    last = answers[-1]
    body = json.loads(last.body)
    assert (last.status, last.headers["retry-after"]) == (429, "30")
    assert ("jsonrpc" in body) == ("JSON-RPC" in binding)
    assert "Slow down" in json.dumps(body)
    place.world.wait(30_000)
    assert [refused(place.send(binding=binding)) for _ in range(2)] == [False, True]


@pytest.mark.parametrize("binding", ["1.0 JSON-RPC", "0.3 JSON-RPC", "0.3 REST"])
def test_an_owner_sends_so_many_messages_a_minute_wherever_they_come_in(binding: str) -> None:
    place = Place(sends=120)
    instances = [place.instance() for _ in range(4)]
    answers = [place.send(edge=instances[number % 4], binding=binding) for number in range(121)]
    assert [refused(answer) for answer in answers] == [False] * 120 + [True]
    assert answers[-1].headers["retry-after"] == "1"
    assert not refused(place.send("eve"))
    place.world.wait(1_000)
    assert [refused(place.send(edge=instances[0])) for _ in range(5)][::4] == [False, True]


def test_a_message_that_is_refused_leaves_nothing_behind() -> None:
    place = Place(sends=1)
    place.send()
    before = len(place.world.table.feed)
    assert refused(place.send())
    assert len(place.world.table.feed) == before


def test_sends_are_drawn_ten_at_a_time() -> None:
    place = Place(sends=1200, tasks=1000)
    place.send()
    place.owners.calls = 0
    for _ in range(1000 - 1):
        assert not refused(place.send())
    assert place.owners.calls <= 2 * 100


def test_an_owner_has_so_many_unfinished_tasks_and_others_have_theirs() -> None:
    place = Place(tasks=30)
    answers = [place.send() for _ in range(31)]
    assert [refused(answer) for answer in answers] == [False] * 30 + [True]
    assert answers[-1].headers["retry-after"] == str(COUNT_AGAIN_MS // 1000)
    assert not refused(place.send("eve"))


def test_a_finished_task_makes_room_for_another() -> None:
    place = Place(tasks=10)
    tasks = [json.loads(place.send().body)["task"]["id"] for _ in range(10)]
    assert refused(place.send())
    for task in tasks[:4]:
        assert place.ask(Operation.CANCEL, Names(task=task)).status == 200
    place.world.wait(COUNT_AGAIN_MS)
    edge = place.instance()
    assert [refused(place.send(edge=edge)) for _ in range(5)] == [False] * 4 + [True]


def test_tasks_that_end_on_the_way_are_never_in_the_way() -> None:
    place = Place(tasks=5)
    for _ in range(40):
        answer = place.send()
        assert not refused(answer)
        place.ask(Operation.CANCEL, Names(task=json.loads(answer.body)["task"]["id"]))
        place.world.wait(120_000)


def test_counting_looks_only_at_what_has_changed_since_the_last_time() -> None:
    seen: list[int] = []

    class Index(MemoryTable):
        def list_page(self, *arguments: Any, **named: Any) -> Any:
            found = super().list_page(*arguments, **named)
            seen.append(len(found[0]))
            return found

    place = Place(tasks=10)
    place.world = World([Asker().agent], table=Index)
    place.edge = place.instance()
    for _ in range(100):
        answer = place.send()
        assert not refused(answer)
        place.ask(Operation.CANCEL, Names(task=json.loads(answer.body)["task"]["id"]))
        place.world.wait(5_000)
    assert max(seen) <= 30
    assert len(seen) <= 15


def test_a_task_that_the_index_shows_late_is_counted_the_next_time() -> None:
    place = Place(tasks=10)

    class Index(MemoryTable):
        """Shows a change half a minute later."""

        def list_page(self, *arguments: Any, **named: Any) -> Any:
            entries, after = super().list_page(*arguments, **named)
            found = [(entry, self.read_head(ME.key(entry.task))) for entry in entries]
            shown_until = place.world.now - 30_000
            return [entry for entry, seen in found if seen and seen.head.status_at <= shown_until], after

    place.world = World([Asker().agent], table=Index)
    place.edge = place.instance()
    assert not any(refused(place.send()) for _ in range(10))
    place.world.wait(10_000)
    assert not refused(place.send()), "the tasks are counted, and none is seen"
    place.world.wait(40_000)
    assert [refused(place.send()) for _ in range(10)] == [False] * 9 + [True]


def test_of_too_many_unfinished_tasks_as_many_are_kept_as_the_limit_needs_and_the_others_are_not_forgotten() -> None:
    place = Place(tasks=100)
    tasks = [json.loads(place.send().body)["task"]["id"] for _ in range(30)]
    place.quota = Quota(tasks=10)
    refusals = [refused(place.send(edge=place.instance()))]
    for task in tasks[:22]:
        kept = place.owners.get_unfinished(ME)
        assert kept is not None
        assert len(kept.tasks) <= 10
        assert kept.tasks <= set(tasks)
        place.ask(Operation.CANCEL, Names(task=task))
        place.world.wait(COUNT_AGAIN_MS)
        refusals.append(refused(place.send(edge=place.instance())))
    assert refusals == [True] * 21 + [False, False], "nine were left, then nine again"


def test_counting_far_more_than_the_limit_ends_where_the_limit_is_reached() -> None:
    pages: list[int] = []

    class Index(MemoryTable):
        def list_page(
            self, principal: Principal, context_id: str | None, after: str | None, since: int, limit: int
        ) -> Any:
            del principal, context_id, since
            first = int(after or 0)
            pages.append(first)
            rows = [TaskEntry(str(uuid4()), "echo", TaskState.WORKING, str(n)) for n in range(first, first + limit)]
            return rows, str(first + limit) if first + limit < 13_000 else None

    world = World([Asker().agent], table=Index)
    owners = MemoryOwnerStore(world.clock.now)
    limiter = RateLimiter(owners, world.table, world.clock, world.ids, Quota(tasks=2_000), LIFE.max_life_ms)
    with pytest.raises(TooManyRequests):
        limiter.admit_send(ME)
    assert pages == [0, 1_000]
    kept = owners.get_unfinished(ME)
    assert kept is not None
    assert (len(kept.tasks), kept.more) == (2_000, True)


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


def test_many_writers_of_one_share_end_in_a_refusal_and_not_in_a_loop() -> None:
    class Contended(MemoryOwnerStore):
        def store_bucket(self, principal: Principal, before: object, after: object) -> bool:
            del principal, before, after
            return False

    world = World([Asker().agent])
    limiter = RateLimiter(
        Contended(world.clock.now), world.table, world.clock, world.ids, Quota(sends=5), LIFE.max_life_ms
    )
    with pytest.raises(Exception, match="Too many writers"):
        limiter.admit_send(ME)


class Refusing(MemoryTable):
    """A store in which others are always faster."""

    def append(self, change: object, receipt: object = None) -> bool:
        del change, receipt
        return False


@pytest.mark.parametrize("binding", [name for name in BINDINGS if name != "legacy"])
def test_who_loses_every_race_is_told_when_to_come_again_in_every_binding(binding: str) -> None:
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

    def get_bucket(self, principal: Principal) -> SendBucket | None:
        if principal == ME:
            self.asked.set()
            assert self.go.wait(60)
        return super().get_bucket(principal)


def test_a_slow_store_holds_up_the_owner_whose_share_is_read_and_nobody_else() -> None:
    world = World([Asker().agent])
    owners = Slow(world.clock.now)
    quota = Quota(sends=5)
    limiter = RateLimiter(owners, world.table, world.clock, world.ids, quota, LIFE.max_life_ms)
    with ThreadPoolExecutor(2) as pool:
        mine = pool.submit(limiter.admit_send, ME)
        assert owners.asked.wait(60)
        try:
            pool.submit(limiter.admit_send, EVE).result(30)
            assert not mine.done()
        finally:
            owners.go.set()
        mine.result(30)


def limiter_of(world: World, **quota: int) -> RateLimiter:
    owners = MemoryOwnerStore(world.clock.now)
    return RateLimiter(owners, world.table, world.clock, world.ids, Quota(**quota), LIFE.max_life_ms)


def test_sends_that_an_instance_has_taken_and_not_used_for_a_minute_are_taken_anew() -> None:
    place = Place(sends=1200)
    place.send()
    place.world.wait(SENDS_KEPT_MS - 1)
    place.owners.calls = 0
    place.send()
    assert place.owners.calls == 0
    place.world.wait(1)
    place.send()
    assert place.owners.calls == 2, "a read and a write"


def test_who_is_refused_again_and_again_is_counted_once_in_a_while() -> None:
    place = Place(tasks=2)
    assert [refused(place.send()) for _ in range(3)] == [False, False, True]
    place.owners.calls = 0
    assert all(refused(place.send()) for _ in range(10))
    assert place.owners.calls == 2 * 10, "the bucket and the last count are read"
    place.world.now += COUNT_AGAIN_MS
    assert refused(place.send())
    assert place.owners.calls == 2 * 10 + 3, "and the new count is stored"


def test_a_task_counts_until_its_life_is_over_and_a_sweep_may_have_ended_it() -> None:
    place = Place(tasks=2)
    limiter = limiter_of(place.world, tasks=2)
    for _ in range(2):
        place.send()
    place.world.now += LIFE.max_life_ms + 30_000  # no sweeper has come
    with pytest.raises(TooManyRequests, match="At most 2 unfinished tasks"):
        limiter.admit_send(ME)


@pytest.mark.parametrize("quota", [{"streams": 1}, {"streams_in_all": 1}])
def test_a_stream_that_is_refused_costs_no_write(quota: dict[str, int]) -> None:
    place = Place(**quota)
    task = json.loads(place.send().body)["task"]["id"]
    place.world.settle()
    assert place.ask(Operation.SUBSCRIBE, Names(task=task)).status == 200
    place.owners.calls = 0
    assert place.ask(Operation.SUBSCRIBE, Names(task=task)).status in {429, 503}
    assert place.owners.calls == 1


def test_zero_is_no_limit() -> None:
    place = Place()
    assert not any(refused(place.send()) for _ in range(50))
    assert place.owners.calls == 0


def test_what_a_refusal_says_is_at_least_a_second() -> None:
    assert TooManyRequests("no", 0).retry_after_s == 1
