"""Called agents that cannot answer for a while, or never, and those that make no callbacks."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.client import open_request
from a2a_serverless.domain.agent_errors import AgentCallFailed
from a2a_serverless.domain.origins import origin_of
from a2a_serverless.engine.calls import LAST_MS
from a2a_serverless.protocol.v1 import Message, Task
from tests.echo import agent_of
from tests.peer import CANCEL, CARD, GET, SEND, Failure, Peer
from tests.world import HOUR_MS, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_serverless.client import Transport
    from a2a_serverless.domain.task_context import TaskContext

TEN_S = 10_000


class Caller:
    """Calls the agent ``far`` and says how that ended. ``ended_at`` is when it knew (ms)."""

    def __init__(self, **limits: Any) -> None:
        self.limits = limits
        self.runs = 0
        self.ended_at = 0
        self.now: Callable[[], int] = int

    async def work(self, task: TaskContext) -> str:
        self.runs += 1
        try:
            answer = await task.call("write", "far", task.text(), **self.limits)
        except AgentCallFailed as failed:
            said = f"failed: {failed}"
        else:
            said = str(answer.text() if isinstance(answer, Message) else answer.status.state)
        self.ended_at = self.now()
        return said


def world_with(peer: Peer, caller: Caller, url: str = "", transport: Transport | None = None) -> World:
    """A deployment whose agent calls the peer."""
    world = World([agent_of(caller.work, "parent")])
    peer.now = caller.now = lambda: world.now
    remote_agents = A2ARemoteAgents({}, {"far": url or peer.url}, transport=transport or peer.transport)
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=remote_agents))
    return world


@contextmanager
def world_over_http(peer: Peer, caller: Caller) -> Iterator[World]:
    """The same over a loopback socket. An exchange may take half a second of real time."""
    with peer.serving() as url:
        yield world_with(peer, caller, url, lambda call: open_request(replace(call, seconds=0.5)))


def outcome(world: World, until_ms: int = 40 * HOUR_MS) -> str:
    """What the caller says in the end."""
    task = world.send("hello", agent="parent", push=False)
    world.settle(until_ms)
    status = world.get(task.id, "parent").status
    assert status.message, status.state
    return status.message.text()


def away(peer: Peer, operation: str, failure: Failure, until_ms: int = TEN_S) -> Callable[[str], Failure | None]:
    """Fails the operation until so long after its first time."""

    def fails(asked: str) -> Failure | None:
        is_away = asked == operation and peer.now() < peer.times(operation)[0] + until_ms
        return failure if is_away else None

    return fails


TEMPORARY = {
    **{str(status): Failure(status) for status in (408, 409, 425, 429, 500, 502, 503, 504)},
    "503 with JSON-RPC's internal error": Failure(503, code=-32603),
    "closed": Failure(silence="closed"),
    "hangs": Failure(silence="hangs"),
}


@pytest.mark.parametrize("operation", [CARD, SEND, GET])
@pytest.mark.parametrize("failure", TEMPORARY.values(), ids=TEMPORARY)
def test_an_agent_that_is_unavailable_for_ten_seconds_is_asked_again(operation: str, failure: Failure) -> None:
    peer = Peer()
    peer.fails = away(peer, operation, failure)
    world = world_with(peer, Caller())
    assert outcome(world) == "completed"
    assert len(set(peer.messages)) == 1, "the message id is the same in every try"
    assert len(peer.tasks) == 1


@pytest.mark.enable_socket
@pytest.mark.parametrize("operation", [CARD, SEND, GET])
@pytest.mark.parametrize("name", ["503", "closed", "hangs"])
def test_a_call_over_http_outlasts_an_agent_that_is_away_for_a_while(operation: str, name: str) -> None:
    peer = Peer()
    peer.fails = away(peer, operation, TEMPORARY[name])
    with world_over_http(peer, Caller()) as world:
        assert outcome(world) == "completed"
    assert len(set(peer.messages)) == len(peer.tasks) == 1


@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_an_agent_that_fails_to_read_a_task_is_asked_again(version: str) -> None:
    peer = Peer(version=version)
    peer.fails = away(peer, GET, Failure(code=-32603))
    world = world_with(peer, Caller())
    assert outcome(world) == "completed"


def test_an_agent_that_nobody_reaches_for_three_hours_is_asked_with_growing_pauses_and_nothing_runs_meanwhile() -> None:
    peer, caller = Peer(), Caller()
    peer.fails = away(peer, SEND, Failure(503), 3 * HOUR_MS)
    world = world_with(peer, caller)
    assert outcome(world) == "completed"
    assert caller.ended_at - peer.times(SEND)[0] < 3 * HOUR_MS + 300_000
    pauses = [later - earlier for earlier, later in pairwise(peer.times(SEND))]
    for at, pause in list(zip(peer.times(SEND), pauses, strict=False))[2:-1:3]:  # after each third try
        waited_ms = at - peer.times(SEND)[0]
        least_ms = max(2_000, min(waited_ms // 2, 60_000), waited_ms // 60)
        assert least_ms <= pause < least_ms + 1_000
    assert len(pauses) < 400
    assert caller.runs > len(pauses) / 4, "each pause ends a run"


SECONDS = {
    "503": (Failure(503), [0, 1, 6, 9, 10, 15, 23, 24, 29]),
    "closed": (Failure(silence="closed"), [0, 1, 6, 9, 10, 15, 23, 24, 29]),
    "hangs": (Failure(silence="hangs"), [0, 2, 4, 6, 9, 14, 21, 32, 48]),
    "three seconds": (Failure(429, "3"), [0, 3, 6, 9, 14, 21, 32, 48, 72]),
}


@pytest.mark.parametrize(("failure", "seconds"), SECONDS.values(), ids=SECONDS)
def test_three_tries_take_six_seconds_and_more_come_after_half_of_the_time_since_the_call(
    failure: Failure, seconds: list[int]
) -> None:
    """An agent that left us waiting, or said when to come again, is not tried three times."""
    peer = Peer()
    peer.fails = lambda operation: failure if operation == SEND and len(peer.messages) < 9 else None
    assert outcome(world_with(peer, Caller())) == "completed"
    assert [(at - peer.times(SEND)[0]) // 1000 for at in peer.times(SEND)] == seconds


REFUSALS = {
    **{str(status): Failure(status) for status in (400, 401, 403, 404, 410, 422)},
    "invalid parameters": Failure(code=-32602),
    "an internal error": Failure(code=-32603),
    "an error of its own": Failure(code=-32042),
    "500 with JSON-RPC's refusal": Failure(500, code=-32602),
}


@pytest.mark.parametrize("failure", REFUSALS.values(), ids=REFUSALS)
def test_an_agent_that_refuses_a_message_is_not_asked_again(failure: Failure) -> None:
    peer = Peer(fails=lambda operation: failure if operation == SEND else None)
    world = world_with(peer, Caller())
    assert outcome(world).startswith("failed: The agent 'far' refused: ")
    assert len(peer.messages) == 1


def test_an_agent_that_refuses_to_show_the_task_is_not_asked_again() -> None:
    peer = Peer(takes_ms=60_000, fails=lambda operation: Failure(code=-32602) if operation == GET else None)
    world = world_with(peer, Caller())
    assert outcome(world).startswith("failed: The agent 'far' refused: out of order")
    assert len(peer.times(GET)) == 1


@pytest.mark.parametrize(("retry_after", "least_ms"), [("2000", 2_000_000), ("0", 0), ("864000", HOUR_MS), ("soon", 0)])
def test_the_agents_wish_when_to_come_again_is_followed_up_to_an_hour(retry_after: str, least_ms: int) -> None:
    peer = Peer()
    peer.fails = lambda operation: Failure(429, retry_after) if operation == SEND and len(peer.messages) == 1 else None
    world = world_with(peer, Caller())
    assert outcome(world) == "completed"
    first, second = peer.times(SEND)
    assert least_ms <= second - first <= least_ms + 2_000


@pytest.mark.parametrize("silence", ["", "hangs"])
@pytest.mark.parametrize("operation", [SEND, GET])
def test_an_agent_that_stays_away_fails_the_call_when_its_time_is_over_and_not_before(
    operation: str, silence: str, caplog: pytest.LogCaptureFixture
) -> None:
    failure = Failure(silence="hangs") if silence else Failure(503)
    peer = Peer(fails=lambda asked: failure if asked in {operation, CANCEL} else None)
    caller = Caller(timeout_s=600)
    world = world_with(peer, caller)
    began = world.now
    why = "could not be reached: no answer." if silence else "cannot answer now: HTTP 503"
    assert outcome(world) == f"failed: The agent 'far' {why}"
    assert len(set(peer.times(operation))) == len(peer.times(operation)), "nothing is tried again at the same time"
    assert 600_000 <= caller.ended_at - began < 620_000
    line = caplog.records[0]
    assert (line.getMessage(), line.__dict__["agent"]) == ("agent unavailable", "far")
    assert line.__dict__["error"].startswith("AgentUnavailable")
    assert ("ResponseTimeout" in line.__dict__["error"]) == bool(silence)
    assert world.get(line.__dict__["task"], "parent").status.state == "completed"


def test_a_call_without_a_limit_ends_before_its_tasks_life_does() -> None:
    caller = Caller()
    world = world_with(Peer(fails=lambda operation: Failure(503) if operation == SEND else None), caller)
    began = world.now
    assert outcome(world, 400 * 24 * HOUR_MS).startswith("failed: The agent 'far' cannot answer now")
    life_ms = world.service.life.max_life_ms
    assert life_ms - LAST_MS <= caller.ended_at - began < life_ms


@pytest.mark.parametrize(("remembers", "tasks"), [(True, 1), (False, 2)])
def test_a_message_whose_answer_comes_too_late_is_sent_again_with_its_id(*, remembers: bool, tasks: int) -> None:
    """An agent that does not know message ids works twice: the documentation says so."""
    peer = Peer(remembers=remembers, push=True)
    late = Failure(silence="hangs", worked=True)
    peer.fails = lambda operation: late if operation == SEND and len(peer.messages) == 1 else None
    world = world_with(peer, Caller())
    assert outcome(world) == "completed"
    assert len(peer.messages) == 2
    assert (len(set(peer.messages)), len(peer.tasks)) == (1, tasks)
    first, second = (one["taskPushNotificationConfig"] for one in peer.configurations)
    assert first == second
    assert first["id"], "an agent that gets it twice has one webhook"


@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize("takes_ms", [0, 300, 10_000, 60_000, HOUR_MS])
def test_the_end_of_an_agent_without_callbacks_is_seen_after_half_of_the_time_at_most(
    version: str, takes_ms: int
) -> None:
    peer, caller = Peer(version=version, takes_ms=takes_ms), Caller()
    world = world_with(peer, caller)
    assert outcome(world) == "completed"
    late_ms = caller.ended_at - peer.ended_at
    assert 0 <= late_ms <= min(max(2_000, takes_ms // 2), 60_000) + 1_000
    assert len(peer.times(GET)) <= 20 + takes_ms // 60_000
    assert caller.runs >= len(peer.times(GET)) - 1, "nothing runs between two looks"


def test_an_agent_without_callbacks_is_looked_at_after_half_of_the_time_since_the_call() -> None:
    peer = Peer(takes_ms=200_000)
    assert outcome(world_with(peer, Caller())) == "completed"
    looks = [(at - peer.times(SEND)[0]) // 1000 for at in peer.times(GET)]
    assert looks == [0, 2, 4, 6, 9, 14, 21, 32, 48, 72, 108, 162, 222]


def test_an_agent_whose_callbacks_come_is_looked_at_once_an_hour() -> None:
    peer = Peer(push=True, takes_ms=2 * HOUR_MS + 60_000)
    world = world_with(peer, Caller())
    world.table.note_webhook(origin_of(peer.url), world.now)
    assert outcome(world) == "completed"
    assert [at - peer.times(SEND)[0] for at in peer.times(GET)] == [0, HOUR_MS, 2 * HOUR_MS, 3 * HOUR_MS]


@pytest.mark.parametrize("limit", ["timeout_s", "deadline_s"])
@pytest.mark.parametrize("seconds", [0.5, 600])
def test_a_call_is_canceled_at_its_limit(limit: str, seconds: float) -> None:
    peer, caller = Peer(push=True, takes_ms=HOUR_MS), Caller(**{limit: seconds})
    assert outcome(world_with(peer, caller)) == "working", "which is what the agent answers"
    (canceled_at,) = peer.times(CANCEL)
    assert 0 <= canceled_at - peer.times(SEND)[0] - 1000 * seconds <= 500


@pytest.mark.parametrize("takes_ms", [0, 600_000])
def test_a_call_whose_name_is_another_calls_record_is_a_call_of_its_own(takes_ms: int) -> None:
    names = ["x", "x/sent", "x/done", "x/failed", "x/answer", "x%2Fsent", "x/sent/done"]

    async def work(task: TaskContext) -> str:
        answers = [await task.call(name, "far", name) for name in names]
        return " ".join(answer.id for answer in answers if isinstance(answer, Task))

    peer = Peer(takes_ms=takes_ms, push=True)
    world = world_with(peer, Caller())
    world.engine = replace(world.engine, agents={"parent": agent_of(work, "parent")})
    assert outcome(world).split() == [*peer.tasks]
    assert len(peer.tasks) == len(peer.messages) == len(names)
