"""Calls that the caller's code cancels, such as the loser of a race: the called agent's task ends, too."""

from __future__ import annotations

import asyncio
import json
from contextvars import Context
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from a2a_serverless.domain.agent_errors import AgentCallFailed
from a2a_serverless.domain.budgets import METADATA_KEY, Budget
from a2a_serverless.domain.timeline import SpanKind, step_spans
from a2a_serverless.ports.agents import AgentUnavailable
from a2a_serverless.protocol.protojson import as_json
from a2a_serverless.protocol.v1 import Task, TaskState, TaskStatus, TaskStatusUpdateEvent, stream_response
from a2a_serverless.services.callbacks import TOKEN_HEADER
from a2a_serverless.store.stores import agent_pause
from a2a_serverless.testing.simulated_loop import SimulatedLoop
from tests.echo import agent_of
from tests.engine.test_calls import Endless, Several, SlowLoop
from tests.faults.plans import Count, kill_at
from tests.frameworks.kills import PORTS
from tests.world import HOUR_MS, ME, World

if TYPE_CHECKING:
    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.protocol.v1 import Message, TaskPushNotificationConfig
    from tests.faults.plans import Faults

DAY_S = 86_400


async def first_of(*waits: Any) -> Any:
    """The result of the wait that ends first; the others are cancelled."""
    running = {asyncio.ensure_future(wait) for wait in waits}
    done, others = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    for other in others:
        other.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    return done.pop().result()


async def race(task: TaskContext) -> str:
    """The first of two calls; then the client is asked, so that the task goes on."""
    winner = await first_of(*(task.call(name, "child", name) for name in ("slow", "quick")))
    answer = await task.ask("Go on?")
    return f"{winner.status.message.text()}, {answer.text()}"


async def child(task: TaskContext) -> str:
    if task.text() == "slow":
        await task.sleep("for long", 5 * DAY_S)
    return f"{task.text()} is done"


def children(world: World) -> dict[str, str]:
    """The states of the called agents' tasks, by the texts of their messages. No message has two tasks."""
    entries = [entry for entry in world.table.list_page(ME, None, None, 0, 10)[0] if entry.agent == "child"]
    found = {world.get(entry.task, "child").history[0].text(): str(entry.state) for entry in entries}
    assert len(found) == len(entries)
    return found


def played(faults: Faults | None = None) -> None:
    world = World([agent_of(race), agent_of(child, "child")], faults or Count(PORTS))
    task = world.send("go", push=False)
    world.settle(20 * HOUR_MS)
    assert world.client(lambda: world.get(task.id)).status.state is TaskState.INPUT_REQUIRED
    assert world.client(lambda: children(world)) == {"quick": "completed", "slow": "canceled"}
    world.send("yes", push=False, task_id=task.id)
    world.settle()
    ended = world.client(lambda: world.get(task.id))
    assert ended.status.message
    assert ended.status.message.text() == "quick is done, yes"
    assert world.client(lambda: children(world)) == {"quick": "completed", "slow": "canceled"}


def test_the_loser_of_a_race_of_calls_is_canceled_while_its_caller_goes_on() -> None:
    played()


def calls_of_the_race() -> int:
    count = Count(PORTS)
    played(count)
    return len(count.calls)


@pytest.mark.parametrize("number", range(1, calls_of_the_race() + 1))
def test_a_death_after_any_call_leaves_no_loser_running_and_sends_none_twice(number: int) -> None:
    played(kill_at(number, late=True, ports=PORTS))


def with_peer(work: Any, peer: Endless, **options: Any) -> tuple[World, Task]:
    world = World([replace(agent_of(work, "parent"), **options)])
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))
    return world, world.send("go", agent="parent", push=False)


def test_a_time_limit_around_a_call_cancels_the_called_task() -> None:
    async def work(task: TaskContext) -> str:
        try:
            async with task.timeout("limit", 100):
                await task.call("far", "far", "hello")
        except TimeoutError:
            return (await task.ask("Go on?")).text()
        return "never"

    peer = Endless()
    world, task = with_peer(work, peer)
    world.wait(200_000)
    assert world.get(task.id, "parent").status.state is TaskState.INPUT_REQUIRED
    assert peer.state is TaskState.CANCELED


class LateLoop(SimulatedLoop):
    """What runs in a thread is done three seconds later, if the loop is not left before."""

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        del executor
        done: asyncio.Future[Any] = self.create_future()

        def run() -> None:
            result = func(*args)
            if not done.done():
                done.set_result(result)

        self.call_later(3, run, context=Context())  # it is no timer of the agent's
        return done


@pytest.mark.parametrize("loop", [SlowLoop, LateLoop], ids=["its answer is late", "it is late"])
def test_a_call_that_is_cancelled_while_its_message_is_sent_ends_the_task_that_this_makes(
    loop: type[SimulatedLoop],
) -> None:
    async def work(task: TaskContext) -> str:
        await first_of(task.call("far", "far", "hello"), asyncio.sleep(2))
        return (await task.ask("Go on?")).text()

    peer = Endless()
    world, task = with_peer(work, peer)
    world.loop = loop
    world.wait(60_000)
    assert world.get(task.id, "parent").status.state is TaskState.INPUT_REQUIRED
    assert len(peer.sent) == 1
    assert peer.state is TaskState.CANCELED


def test_the_share_of_a_call_that_was_cancelled_before_its_task_was_known_is_spent_at_once() -> None:
    """Nobody says what the canceled task has spent, so it may have been all of it."""

    async def work(task: TaskContext) -> None:
        await first_of(task.call("far", "far", "hello"), asyncio.sleep(2))
        await asyncio.sleep(3)
        await task.step("own", asyncio.sleep, 0)

    world, task = with_peer(work, Endless(), budget=Budget(usd=2))
    world.loop = LateLoop
    world.wait(60_000)
    status = world.get(task.id, "parent").status
    assert (status.state, status.message and (status.message.metadata or {})[METADATA_KEY]) == (
        TaskState.FAILED,
        {"whose": "agent", "kind": "usd", "spent": 2, "bound": 2},
    )


class Away(Several):
    """Cannot be reached for its first three cancels."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = 0

    def cancel(self, caller: Caller, agent: str, task_id: str) -> None:
        self.tries += 1
        if self.tries <= 3:
            raise AgentUnavailable("It is away.")
        super().cancel(caller, agent, task_id)


def test_an_agent_that_is_unavailable_is_told_of_the_cancel_later_and_once() -> None:
    async def work(task: TaskContext) -> str:
        await first_of(task.call("far", "far", "hello"), task.sleep("nap", 30))
        return (await task.ask("Go on?")).text()

    peer = Away()
    world, task = with_peer(work, peer)
    world.wait(HOUR_MS)
    assert peer.states == {"hello": "canceled"}
    assert peer.tries == 4
    world.send("yes", agent="parent", task_id=task.id, push=False)
    world.settle()
    assert world.get(task.id, "parent").status.state is TaskState.COMPLETED
    assert peer.tries == 4, "the end of the caller cancels nothing again"


class Lost(Endless):
    """Its answer to a message gets lost, and from then on it is away for an hour."""

    def send(self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig) -> Task:
        super().send(caller, agent, message, callback)
        raise AgentUnavailable("It is away.", 3600)


def test_the_task_of_a_cancelled_call_that_becomes_known_later_is_canceled_then() -> None:
    async def work(task: TaskContext) -> str:
        await first_of(task.call("far", "far", "hello"), task.sleep("nap", 30))
        return (await task.ask("Go on?")).text()

    peer = Lost()
    world, _ = with_peer(work, peer)
    world.wait(60_000)
    assert peer.callback
    sent = len(peer.sent)
    status = TaskStatus(state=TaskState.WORKING, timestamp=0)
    update = TaskStatusUpdateEvent(task_id="far", context_id="context", status=status)
    body = json.dumps(as_json(stream_response(update))).encode()
    assert world.called_back(peer.callback.url, {TOKEN_HEADER: peer.callback.token or ""}, body).status == 200
    world.wait(2 * HOUR_MS)
    assert peer.state is TaskState.CANCELED
    assert len(peer.sent) == sent


def test_a_cancelled_call_is_never_made_again_under_its_name() -> None:
    said = list[str]()

    async def work(task: TaskContext) -> str:
        if not said:
            await first_of(task.call("far", "far", "hello"), task.sleep("nap", 30))
        try:
            await task.call("far", "far", "hello")
        except AgentCallFailed as failed:
            said.append(str(failed))
        return (await task.ask("Go on?")).text()

    peer = Endless()
    world, task = with_peer(work, peer)
    world.wait(60_000)
    world.send("yes", agent="parent", task_id=task.id, push=False)
    world.settle()
    assert world.get(task.id, "parent").status.state is TaskState.COMPLETED
    assert said == ["The call 'far' was canceled."] * 2
    assert len(peer.sent) == 1


def test_a_cancelled_call_ends_in_the_timeline() -> None:
    async def work(task: TaskContext) -> str:
        await first_of(task.call("far", "far", "hello"), task.sleep("nap", 30))
        return (await task.ask("Go on?")).text()

    world, task = with_peer(work, Endless())
    world.wait(HOUR_MS)
    (span,) = (
        span for span in step_spans(world.table.list_step_times(ME.key(task.id), 100)) if span.kind is SpanKind.CALL
    )
    assert span.ended_at is not None
    assert (span.ended_at - span.began_at) // 1000 in range(29, 33)


def test_an_agent_that_is_unavailable_is_told_of_the_cancel_after_a_pause_of_its_caller() -> None:
    async def work(task: TaskContext) -> str:
        await first_of(task.call("far", "far", "hello"), task.sleep("nap", 30))
        return (await task.ask("Go on?")).text()

    peer = Away()
    world, task = with_peer(work, peer)
    world.plan(32_000, lambda: world.table.add_pause(agent_pause("parent"), world.now))
    world.plan(600_000, lambda: world.table.remove_pause(agent_pause("parent")))
    world.wait(500_000)
    assert peer.states == {"hello": "working"}
    world.wait(HOUR_MS)
    assert peer.states == {"hello": "canceled"}
    assert world.get(task.id, "parent").status.state is TaskState.INPUT_REQUIRED


def test_the_calls_of_a_task_whose_agent_is_gone_are_canceled_by_the_run_that_ends_it() -> None:
    async def work(task: TaskContext) -> None:
        await asyncio.gather(task.call("slow", "child", "slow"), task.sleep("nap", 60))

    world = World([agent_of(work), agent_of(child, "child")])
    task = world.send("go", push=False)
    world.wait(30_000)
    assert children(world) == {"slow": "working"}
    world.sweeper = replace(world.sweeper, log=cast("Any", NothingDue(world)))
    del world.agents["echo"]
    world.wait(60_000)
    head = world.table.read_head(ME.key(task.id)).head
    assert (head.state, children(world)) == (TaskState.FAILED, {"slow": "canceled"})


class NothingDue:
    """A log of which the sweeper is told nothing."""

    def __init__(self, world: World) -> None:
        self._log = world.sweeper.log

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    def list_due(self, *_: object) -> list[object]:
        return []
