"""What a run leaves behind: its process goes on to the next message, whatever the agent's code still does."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from a2a_serverless.domain.decisions import LeaseLost
from a2a_serverless.domain.events import ArtifactEvent, Incoming
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.engine.engine import RunOutcome
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.protocol.v1 import (
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskState,
)
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.tasks import cancel, send
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless_tools.local.deployment import LocalDeployment
from tests.echo import agent_of
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.testing.deployment import InProcessDeployment

DEADLINE_S = 60.0
MADE: list[Blocking] = []


@pytest.fixture(autouse=True)
def _released() -> Iterator[None]:
    """Ends what a test has begun, also if it fails."""
    yield
    while MADE:
        MADE.pop().release.set()


class Blocking:
    """An agent that does not end, in one of several ways, until ``release`` is set; then it tries to write."""

    def __init__(self, way: str) -> None:
        self.release, self.begun, self.over = threading.Event(), threading.Event(), threading.Event()
        self.refused: list[BaseException] = []
        self.way = way
        MADE.append(self)

    async def work(self, task: TaskContext) -> str:
        await task.emit("a", "before")
        await WAYS[self.way](self, task)
        return "done"

    async def wait_in_thread(self, task: TaskContext) -> None:
        await asyncio.to_thread(self._block, task)

    async def wait_in_step(self, task: TaskContext) -> None:
        await task.step("block", partial(self._block, task))

    async def swallow(self, task: TaskContext | None = None) -> str:
        del task
        self.begun.set()
        while not self.release.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return "released"

    async def swallow_in_step(self, task: TaskContext) -> None:
        await task.step("swallow", self.swallow)

    async def swallow_around_a_thread(self, task: TaskContext) -> None:
        async def both() -> None:
            while not self.release.is_set():
                try:
                    await asyncio.to_thread(self._block, task)
                except asyncio.CancelledError:
                    continue

        await task.step("both", both)

    def _block(self, task: TaskContext) -> str:
        self.begun.set()
        self.release.wait()
        try:
            asyncio.run(_write(task))
        except BaseException as refused:  # noqa: BLE001 - whatever tells the thread so
            self.refused.append(refused)
        self.over.set()
        return "done"


async def _write(task: TaskContext) -> None:
    await task.emit("late", "late")


WAYS: dict[str, Callable[[Blocking, Any], Awaitable[object]]] = {
    "a thread": Blocking.wait_in_thread,
    "a step's thread": Blocking.wait_in_step,
    "a loop that swallows its cancellation": Blocking.swallow,
    "a step that swallows its cancellation": Blocking.swallow_in_step,
    "a step that swallows it around a thread": Blocking.swallow_around_a_thread,
}


async def greet(task: TaskContext) -> str:
    del task
    return "hello"


def task_for(deployment: InProcessDeployment, agent: str) -> TaskKey:
    """The key of a new task, whose queue message was lost."""
    message = Message(message_id=uuid4().hex, role=Role.USER, parts=(Part(text="begin"),))
    configuration = SendMessageConfiguration(return_immediately=True)
    request = SendMessageRequest(message=message, configuration=configuration)
    task = send(deployment.service, RequestContext(ME, agent, "1.0"), request)
    assert isinstance(task, Task)
    deployment.queue.clear()
    return ME.key(task.id)


def states(deployment: InProcessDeployment, key: TaskKey) -> list[str]:
    _, events = deployment.table.read_log(key)
    return ["chunk" if isinstance(event, ArtifactEvent) else str(event.state) for event in events]


def test_a_canceled_task_frees_its_worker_whatever_its_agent_does_and_nothing_is_written_afterwards() -> None:
    blocking = {name: Blocking(way) for name, way in zip("abcde", WAYS, strict=True)}
    agents = [agent_of(one.work, name) for name, one in blocking.items()]
    deployment = LocalDeployment([*agents, agent_of(greet, "quick")], "http://127.0.0.1:8000")
    keys = {name: task_for(deployment, name) for name in blocking}
    with ThreadPoolExecutor(len(keys)) as workers:
        runs = {name: workers.submit(deployment.answer, WorkMessage(key)) for name, key in keys.items()}
        for name, one in blocking.items():
            assert one.begun.wait(DEADLINE_S)
            cancel(deployment.service, RequestContext(ME, name, "1.0"), keys[name].task)
        endings = {blocking[name].way: run.result(DEADLINE_S) for name, run in runs.items()}
        assert endings == dict.fromkeys(WAYS, RunOutcome.LEASE_LOST)
        quick = task_for(deployment, "quick")
        assert workers.submit(deployment.answer, WorkMessage(quick)).result(DEADLINE_S) is RunOutcome.ENDED
    logs = {name: states(deployment, key) for name, key in keys.items()}
    for one in blocking.values():
        one.release.set()
        assert "thread" not in one.way or one.over.wait(DEADLINE_S)
    assert {type(refused) for one in blocking.values() for refused in one.refused} == {LeaseLost}
    assert {name: states(deployment, key) for name, key in keys.items()} == logs
    assert {log[-1] for log in logs.values()} == {"canceled"}
    deployment.close()


@pytest.mark.parametrize("way", WAYS)
def test_in_simulated_time_a_canceled_task_ends_its_run_whatever_its_agent_does(way: str) -> None:
    one = Blocking(way)
    world = World([agent_of(one.work)])
    key = task_for(world, "echo")
    world.plan(3_000, lambda: world.cancel(key.task))
    assert world.run(key) is RunOutcome.LEASE_LOST
    assert states(world, key) == ["submitted", "working", "chunk", "canceled"]
    one.release.set()
    assert "thread" not in way or one.over.wait(DEADLINE_S)
    assert states(world, key)[-1] == "canceled"


@pytest.mark.parametrize("way", WAYS)
def test_the_harness_ends_a_canceled_task_whatever_its_agent_does(way: str) -> None:
    one = Blocking(way)
    harness = AgentTestHarness(agent_of(one.work), agent_of(greet, "quick"))
    task = harness.begin("begin")
    assert isinstance(task, Task)
    harness.at(harness.now + 3_000, lambda: harness.cancel(task.id))
    harness.settle()
    assert harness.reply(task.id).state is TaskState.CANCELED
    assert harness.send("hello", to="quick").said == "hello"
    one.release.set()


@pytest.mark.parametrize("way", ["a thread", "a loop that swallows its cancellation"])
def test_an_inline_agent_that_does_not_end_holds_no_request(way: str) -> None:
    one = Blocking(way)

    async def without_task(_: TaskContext) -> object:
        return await (asyncio.to_thread(one.release.wait) if way == "a thread" else one.swallow())

    world = World([replace(agent_of(without_task), runs="inline")])
    request = Incoming(Message(message_id="m", role=Role.USER, parts=(Part(text="begin"),)))
    inline = EngineInlineRunner(world.engine, world.play)
    assert inline.answer_directly("echo", ME, request) is None
    key = task_for(world, "echo")
    inline.run(key, 5_000)
    assert set(states(world, key)) == {"submitted", "working"}, "the worker goes on, as soon as the request is free"
    one.release.set()


def test_a_process_ends_although_a_thread_of_an_agent_goes_on() -> None:
    program = """
import asyncio, threading
from a2a_serverless.engine.loop import play

async def work():
    asyncio.ensure_future(asyncio.to_thread(threading.Event().wait))
    await asyncio.sleep(0.01)

play(work())
print("left")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=DEADLINE_S, check=True)  # noqa: S603
    assert done.stdout == b"left\n"
