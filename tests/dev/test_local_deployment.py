"""The deployment of ``dev`` in one process: its dispatcher, and what a reload replaces."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from queue import SimpleQueue
from threading import Event
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless.domain.queue_messages import TickMessage, WorkMessage
from a2a_serverless.domain.schedules import Schedule
from a2a_serverless.engine.engine import RunOutcome
from a2a_serverless.protocol.v1 import Message, Part, Role, SendMessageConfiguration, SendMessageRequest, Task
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.tasks import send
from a2a_serverless_tools.local.deployment import LocalDeployment
from tests.contract.tasks import SPOILED, spoil
from tests.echo import Writer, agent_of
from tests.stack.local import eventually
from tests.world import ME

if TYPE_CHECKING:
    from a2a_serverless.domain.agent import Runs
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.task_context import TaskContext

BASE: Final = "http://127.0.0.1:8000"
DEADLINE_S: Final = 60


class Enqueued(LocalDeployment):
    """It is closed just after it has begun to wait for the rest of a burst."""

    def close_in_a_burst(self) -> None:
        self.queue.enqueue(WorkMessage(ME.key("no-such-task")))
        while self.news.is_set() is False:
            time.sleep(0)
        self.close()

    @property
    def news(self) -> Event:
        return self._news


@pytest.mark.parametrize("number", range(5))
def test_closing_while_a_message_is_due_ends_the_dispatcher_without_an_error(number: int) -> None:
    deployment = Enqueued([Writer().agent], BASE)
    with ThreadPoolExecutor(1) as pool:
        dispatching = pool.submit(deployment.dispatch)
        deployment.close_in_a_burst()
        assert dispatching.result(DEADLINE_S) is None, number


def test_a_tick_starts_a_task_in_dev_as_the_worker_does() -> None:
    agent = replace(Writer(seconds=0).agent, schedules=(Schedule("hourly", "0 * * * ? *", "hello"),))
    deployment = LocalDeployment([agent], BASE)
    ended = Event()
    deployment.on_event = lambda _, event: ended.set() if str(getattr(event, "state", "")) == "completed" else None
    with ThreadPoolExecutor(1) as pool:
        dispatching = pool.submit(deployment.dispatch)
        tick = TickMessage(ME.key(f"{agent.id}/hourly"), deployment.clock.now() // 1000 * 1000)
        for _ in range(2):
            deployment.queue.enqueue(tick)
        assert ended.wait(DEADLINE_S)
        deployment.close()
        assert dispatching.result(DEADLINE_S) is None
    assert len(deployment.table.list_page(ME, None, None, 0, 10)[0]) == 1


def test_an_observer_that_fails_does_not_end_the_dispatcher() -> None:
    deployment = LocalDeployment([Writer(seconds=0).agent], BASE)
    failed, ended = Event(), Event()

    def observe(_: object, event: Any) -> None:
        if not failed.is_set():
            failed.set()
            raise ValueError("a test's error")
        if str(getattr(event, "state", "")) == "completed":
            ended.set()

    deployment.on_event = observe
    with ThreadPoolExecutor(1) as pool:
        dispatching = pool.submit(deployment.dispatch)
        sent(deployment, "m-1")
        assert ended.wait(DEADLINE_S)
        deployment.close()
        dispatching.result(DEADLINE_S)


@pytest.mark.parametrize("how", SPOILED)
def test_a_task_that_cannot_be_read_does_not_stop_the_tasks_after_it(how: str) -> None:
    deployment = LocalDeployment([Writer(seconds=0).agent], BASE)
    ended = SimpleQueue[str]()

    def observe(key: TaskKey, event: Any) -> None:
        if str(getattr(event, "state", "")) == "completed":
            ended.put(key.task)

    deployment.on_event = observe
    spoiled = sent(deployment, "m-0")
    spoil(deployment.table, ME.key(spoiled), how)
    with ThreadPoolExecutor(1) as pool:
        dispatching = pool.submit(deployment.dispatch)
        whole = {sent(deployment, f"m-{number}") for number in range(1, 4)}
        try:
            while whole:
                whole.discard(ended.get(timeout=DEADLINE_S))
        finally:
            deployment.close()
            dispatching.result(DEADLINE_S)


def test_an_error_of_the_library_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(_: TaskContext) -> str:
        raise ValueError("a fault of the agent")

    deployment = LocalDeployment([agent_of(broken)], BASE)

    def fail(*_: object) -> None:
        raise TypeError("a fault of the library")

    deployment.on_error = fail
    with ThreadPoolExecutor(1) as pool:
        dispatching = pool.submit(deployment.dispatch)
        sent(deployment, "m-1")
        try:
            eventually(lambda: "a fault of the library" in caplog.text)
        finally:
            deployment.close()
            dispatching.result(DEADLINE_S)


def sent(deployment: LocalDeployment, message_id: str) -> str:
    """The id of the task of a new message."""
    message = Message(message_id=message_id, role=Role.USER, parts=(Part(text="hello"),))
    request = SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=True))
    task = send(deployment.service, RequestContext(ME, "echo", "1.0"), request)
    assert isinstance(task, Task)
    return task.id


@pytest.mark.parametrize("runs", ["queued", "inline"])
def test_a_run_at_a_breakpoint_keeps_its_task_when_its_lease_is_over(runs: Runs) -> None:
    reached, goes_on, ended, starts = Event(), Event(), Event(), list[str]()

    async def work(task: TaskContext) -> str:
        starts.append(task.id)
        reached.set()
        assert goes_on.wait(DEADLINE_S)  # as a debugger does, it stops the thread of the run with its event loop
        return await task.step("one", str, 1)

    deployment = LocalDeployment([replace(agent_of(work), runs=runs)], BASE)
    deployment.on_event = lambda _, event: ended.set() if str(getattr(event, "state", "")) == "completed" else None
    with ThreadPoolExecutor(2) as pool:
        sending = pool.submit(sent, deployment, "m-1")
        if runs == "queued":
            sending.result(DEADLINE_S)
        dispatching = pool.submit(deployment.dispatch)
        try:
            assert reached.wait(DEADLINE_S)
            key = ME.key(starts[0])
            snapshot = deployment.table.read_head(key)
            assert snapshot
            expired = snapshot.head._replace(lease_until=1, due_at=1, rev=snapshot.head.rev + 1)
            assert deployment.table.update_head(snapshot.head, expired)
            assert deployment.answer(WorkMessage(key)) is RunOutcome.LEASED
        finally:
            goes_on.set()
        assert ended.wait(DEADLINE_S)
        deployment.close()
        dispatching.result(DEADLINE_S)
    assert len(starts) == 1


def test_new_prices_are_those_of_inline_agents_too() -> None:
    agent = replace(Writer().agent, runs="inline")
    deployment = LocalDeployment([agent], BASE)
    prices = {"model": {"input_tokens": 2.0}}
    deployment.deploy(agent, prices=prices)
    runner: Any = deployment.service.inline_runner("echo")
    assert (deployment.engine.prices, runner.engine.prices) == (prices, prices)
    deployment.deploy(Writer().agent)
    assert deployment.engine.prices == prices
    deployment.close()
