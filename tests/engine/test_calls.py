"""Calls to other agents: sent once, waited for without compute, followed to their end, told when the parent ends."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain import decisions
from a2a_serverless.domain.agent_errors import AgentCallFailed
from a2a_serverless.domain.called_task import TaskBounds
from a2a_serverless.domain.errors import TaskNotCancelable
from a2a_serverless.domain.events import ArtifactEvent, StatusEvent
from a2a_serverless.domain.queue_messages import QueueMessage, WorkMessage
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.engine.run import run
from a2a_serverless.ports.agents import AgentUnavailable
from a2a_serverless.protocol.additions import RetryRequest
from a2a_serverless.protocol.peers import read_card
from a2a_serverless.protocol.v1 import Artifact, Message, Part, Role, Task, TaskState, TaskStatus
from a2a_serverless.services.callbacks import TOKEN_HEADER
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.retries import retry_task
from a2a_serverless.store.keys import SHARDS
from a2a_serverless.testing import AgentTestHarness
from a2a_serverless.testing.simulated_loop import START, SimulatedLoop
from a2a_serverless_tools.operators.erasure import ERASE_AFTER_MS
from a2a_serverless_tools.operators.erasure_store import ErasureStore
from tests.echo import Writer, agent_of
from tests.faults.plans import LOOK, Count, Faults, kill_at
from tests.peer import Peer
from tests.simulated import Killed
from tests.world import HOUR_MS, ME, Siblings, World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.protocol.v1 import TaskPushNotificationConfig
    from a2a_serverless.protocol.v1_card import AgentCard

DEADLINE_S = 30


class Parent:
    """Calls ``echo`` and hands its document on."""

    def __init__(self, timeout_s: float | None = None) -> None:
        self.timeout_s = timeout_s
        self.runs = 0
        self.agent = agent_of(self.work, "parent")

    async def work(self, task: TaskContext) -> None:
        self.runs += 1
        child = await task.call("write", "echo", task.text(), timeout_s=self.timeout_s)
        assert isinstance(child, Task)
        text = child.artifacts[0].text() if child.artifacts else ""
        await task.emit("result.md", f"{child.status.state}: {text}", last=True)


def world_of(*agents: Agent, faults: Faults | None = None) -> World:
    return World(agents, faults=faults)


def result(world: World, task_id: str) -> str:
    return world.get(task_id, "parent").artifacts[0].text()


def test_a_parent_gets_what_its_child_made_and_holds_no_compute_meanwhile() -> None:
    parent, child = Parent(), Writer(seconds=600)
    world = world_of(parent.agent, child.agent)
    task = world.send("hello", agent="parent")
    world.settle()
    assert result(world, task.id) == "completed: one: hello. two: hello. three: hello. "
    assert parent.runs == 2


def test_an_agent_that_looks_for_others_does_not_find_itself() -> None:
    async def work(task: TaskContext) -> None:
        await task.emit("found.txt", ", ".join(await task.find_agents("s")), last=True)

    world = world_of(agent_of(work, "parent"), Writer().agent)
    task = world.send("hello", agent="parent")
    world.settle()
    assert result(world, task.id) == "echo"


def test_a_call_that_only_the_worker_can_make_takes_an_inline_agent_there() -> None:
    parent, child = Parent(), Writer(seconds=0.1)
    world = world_of(replace(parent.agent, runs="inline"), child.agent)
    here = replace(world.engine, registry=replace(world.registry, worker_only=frozenset({"echo"})))
    task = world.send("hello", agent="parent")
    key = ME.key(task.id)
    EngineInlineRunner(here, world.play).run(key, 20_000)
    assert (parent.runs, child.ran) == (1, [])
    assert world.table.read_head(key).head.lease_until == 0
    world.settle()
    assert result(world, task.id) == "completed: one: hello. two: hello. three: hello. "


@pytest.mark.parametrize(
    ("worker_only", "what"),
    [("", "call find card"), ("other", "call card"), ("echo", "")],
    ids=["none", "another", "this"],
)
def test_an_inline_agent_goes_to_the_worker_only_for_agents_that_it_does_not_reach_itself(
    worker_only: str, what: str
) -> None:
    """To find agents it has to reach all of them."""
    here = list[str]()

    async def work(task: TaskContext) -> None:
        act = task.text()
        if act == "call":
            await task.call("write", "echo", "hello", timeout_s=1)
        else:
            await (task.find_agents("s") if act == "find" else task.get_card("echo"))
        here.append(act)

    world = world_of(replace(agent_of(work, "parent"), runs="inline"), Writer(seconds=0.1).agent)
    world.remote_agents.replies["echo"] = "hi"
    registry = replace(world.registry, worker_only=frozenset({worker_only} - {""}))
    runner = EngineInlineRunner(replace(world.engine, registry=registry), world.play)
    for act in ("call", "find", "card"):
        runner.run(ME.key(world.send(act, agent="parent").id), 20_000)
    assert " ".join(here) == what


def test_each_record_of_a_call_has_its_time() -> None:
    world = world_of(Parent().agent, Writer(seconds=60).agent)
    task, began = world.send("hello", agent="parent", push=False), world.now
    world.settle()
    times = {one.name: one.ended_at for one in world.table.list_step_times(ME.key(task.id), 10)}
    assert {name: round((at - began) / 60_000) for name, at in times.items()} == {
        "@call/write": 0,
        "@call/write/sent": 0,
        "@call/write/done": 3,
    }


def test_a_child_that_is_quick_is_waited_for_in_the_same_conversation() -> None:
    parent, child = Parent(), Writer(seconds=0.1)
    world = world_of(parent.agent, child.agent)
    task = world.send("hello", agent="parent")
    world.settle()
    assert result(world, task.id).startswith("completed")
    assert {entry.agent for entry in world.table.list_page(ME, task.context_id, None, 0, 10)[0]} == {"parent", "echo"}


def test_an_agent_that_is_not_there_is_an_error_that_the_parent_can_read() -> None:
    async def work(task: TaskContext) -> None:
        try:
            await task.call("write", "nobody", "hello")
        except AgentCallFailed as failed:
            await task.emit("result.md", str(failed), last=True)

    world = world_of(agent_of(work, "parent"))
    task = world.send("hello", agent="parent")
    world.settle()
    assert result(world, task.id) == "no agent nobody"


class Endless:
    """An agent elsewhere that works until it is canceled."""

    def __init__(self) -> None:
        self.state = TaskState.WORKING
        self.asked = 0
        self.sent: list[Message] = []
        self.callback: TaskPushNotificationConfig | None = None

    def for_run(self, trace: str, goes_on: Callable[[], bool]) -> Endless:
        del trace, goes_on
        return self

    def address(self, agent: str) -> str:
        return f"https://far.example.com/{agent}"

    def card(self, agent: str) -> AgentCard:
        raise AgentCallFailed(f"{agent} has no card")

    def tags(self) -> dict[str, tuple[str, ...]]:
        return {}

    def has_push(self, agent: str) -> bool:
        del agent
        return True

    keeps_message_ids = has_push

    def send(self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig) -> Task:
        self.sent.append(message)
        self.callback = callback
        return self.get(caller, agent, "far")

    def get(self, caller: Caller, agent: str, task_id: str) -> Task:
        del caller, agent
        self.asked += 1
        return Task(id=task_id, context_id="context", status=TaskStatus(state=self.state, timestamp=0)).as_of(1)

    def cancel(self, caller: Caller, agent: str, task_id: str) -> None:
        del caller, agent, task_id
        self.state = TaskState.CANCELED


def test_a_call_that_takes_too_long_is_canceled() -> None:
    world, peer = world_of(Parent(timeout_s=60).agent), Endless()
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))
    task = world.send("hello", agent="parent")
    world.wait(180_000)
    assert result(world, task.id) == "canceled: "


def test_news_of_an_agent_elsewhere_that_gets_lost_is_asked_for() -> None:
    world, peer = world_of(Parent().agent), Endless()
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))
    task = world.send("hello", agent="parent")
    world.wait(60_000)
    assert peer.asked <= 12, "pauses of 2 s and more"
    peer.state = TaskState.COMPLETED
    world.wait(60_000)
    assert result(world, task.id) == "completed: "


class SlowLoop(SimulatedLoop):
    """What runs in a thread is done at once, but its result arrives three seconds later."""

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        del executor
        arrived: asyncio.Future[Any] = self.create_future()
        self.call_later(3, _arrive, arrived, func(*args))
        return arrived


def _arrive(future: asyncio.Future[Any], result: object) -> None:
    if not future.done():
        future.set_result(result)


def test_news_that_comes_while_an_older_answer_is_on_its_way_is_not_slept_through() -> None:
    world, peer = world_of(Parent().agent), Endless()
    world.loop = SlowLoop
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))

    def end() -> None:
        peer.state = TaskState.COMPLETED
        assert peer.callback
        assert peer.asked == 2, "GetTask has been sent after SendMessage, and its answer has not arrived"
        headers = {TOKEN_HEADER: peer.callback.token or ""}
        assert world.called_back(peer.callback.url, headers, b"{}").status == 200

    task = world.send("hello", agent="parent")
    world.plan(4_500, end)
    world.wait(60_000)
    assert result(world, task.id) == "completed: "
    assert peer.asked == 3


def test_news_of_a_call_that_nobody_has_made_is_not_found() -> None:
    world = world_of(Parent().agent)
    assert (
        world.called_back("https://agents.example.com/callbacks/nobody", {TOKEN_HEADER: "token"}, b"{}").status == 404
    )


def test_a_wake_that_refuses_the_suspension_is_heard_at_once() -> None:
    world, peer, woken_at = world_of(Parent().agent), Endless(), list[int]()
    suspending = world.table.update_head

    def meet(before: Head, after: Head) -> bool:
        if after.parked and not woken_at:
            woken_at.append(world.now)
            peer.state = TaskState.COMPLETED
            assert peer.callback
            world.called_back(peer.callback.url, {TOKEN_HEADER: peer.callback.token or ""}, b"{}")
        return bool(suspending(before, after))

    world.table.update_head = meet
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))
    task = world.send("hello", agent="parent")
    world.settle()
    assert result(world, task.id) == "completed: "
    assert world.events(task.id)[-1].at - woken_at[0] < 1_000, "not at the next look at the head"


def test_a_canceled_parent_ends_its_child() -> None:
    world, peer = world_of(Parent().agent), Endless()
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))
    task = world.send("hello", agent="parent")
    world.wait(60_000)
    world.cancel(task.id, "parent")
    world.settle()
    assert peer.state is TaskState.CANCELED


class CanceledMeanwhile(Endless):
    """Our task is canceled while the answer that names the agent's task is on its way."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def send(self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig) -> Task:
        sent = super().send(caller, agent, message, callback)
        (ours,) = self.world.table.list_page(ME, None, None, 0, 10)[0]
        self.world.cancel(ours.task, "parent")
        return sent


def test_a_parent_that_is_canceled_while_its_call_is_being_sent_ends_the_child() -> None:
    world = world_of(Parent().agent)
    peer = CanceledMeanwhile(world)
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))
    task = world.send("hello", agent="parent")
    world.settle()
    assert world.get(task.id, "parent").status.state is TaskState.CANCELED
    assert peer.state is TaskState.CANCELED


class ErasedMeanwhile(Endless):
    """Our task is canceled and erased while the answer that names the agent's task is on its way."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def send(self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig) -> Task:
        sent = super().send(caller, agent, message, callback)
        (ours,) = self.world.table.list_page(ME, None, None, 0, 10)[0]
        self.world.cancel(ours.task, "parent")
        self.world.elsewhere(ERASE_AFTER_MS)
        ErasureStore(self.world.table.items).erase_task(ME.key(ours.task))
        return sent


def test_a_parent_that_is_erased_while_its_call_is_being_sent_ends_the_child() -> None:
    world = world_of(Parent().agent)
    peer = ErasedMeanwhile(world)
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))
    world.send("hello", agent="parent", push=False)
    world.settle()
    assert peer.state is TaskState.CANCELED


class Held(Endless):
    """Answers a message when ``answers`` is set; says when it was asked, and when called agents are told of an end."""

    def __init__(self) -> None:
        super().__init__()
        self.got, self.answers, self.ending = Event(), Event(), Event()
        self.runs = 0

    def for_run(self, trace: str, goes_on: Callable[[], bool]) -> Held:
        del trace, goes_on
        self.runs += 1
        if self.runs > 1:  # the run is over, and its end is made known
            self.ending.set()
        return self

    def send(self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig) -> Task:
        self.got.set()
        assert self.answers.wait(DEADLINE_S)
        return super().send(caller, agent, message, callback)


def test_a_child_is_ended_also_when_its_answer_comes_after_the_run_is_over() -> None:
    world, peer = world_of(Parent().agent), Held()
    engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))
    task = world.send("hello", agent="parent", push=False)
    key = ME.key(task.id)
    worker = Thread(target=lambda: asyncio.run(run(engine, key, lambda: 900_000)))
    worker.start()
    assert peer.got.wait(DEADLINE_S)
    world.cancel(task.id, "parent")
    assert peer.ending.wait(DEADLINE_S)
    peer.answers.set()
    worker.join(DEADLINE_S)
    assert not worker.is_alive()
    assert peer.state is TaskState.CANCELED
    assert world.table.read_head(key).head.children, "should that not have reached the agent, it is asked again"


class Elsewhere(World):
    """Tasks of ``echo`` are another worker's, which comes by or does not."""

    def answer(self, message: QueueMessage) -> object:
        if isinstance(message, WorkMessage) and self.table.read_head(message.key).head.agent == "echo":
            self.come_by(message.key)
            return None
        return super().answer(message)

    def come_by(self, key: TaskKey) -> None:
        """Nobody comes."""

    def cancel_parents(self) -> None:
        for entry in self.table.list_page(ME, None, None, 0, 10)[0]:
            if entry.agent == "parent":
                with suppress(TaskNotCancelable):
                    self.cancel(entry.task, "parent")


class AsSoonAsSent(Siblings):
    """The parent is canceled in the moment in which its call has made a task."""

    def __init__(self, world: Elsewhere) -> None:
        super().__init__(world)
        self.elsewhere = world

    def send(
        self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig
    ) -> Task | Message:
        answer = super().send(caller, agent, message, callback)
        self.elsewhere.cancel_parents()
        return answer


def canceled_journey(faults: Faults, *, in_flight: bool) -> World:
    world = Elsewhere([Parent().agent, agent_of(None, "echo")], faults=faults)
    if in_flight:
        world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=AsSoonAsSent(world)))
    world.send("hello", agent="parent", push=False)
    world.plan(5_000, world.cancel_parents)
    world.settle()
    return world


def calls_until_canceled(*, in_flight: bool) -> int:
    count = Count()
    canceled_journey(count, in_flight=in_flight)
    return len(count.calls)


@pytest.mark.parametrize(
    ("in_flight", "count"),
    [
        (in_flight, count)
        for in_flight in (False, True)
        for count in range(1, calls_until_canceled(in_flight=in_flight) + 1)
    ],
)
def test_no_child_outlives_a_canceled_parent_whatever_dies(in_flight: bool, count: int) -> None:  # noqa: FBT001
    world = canceled_journey(kill_at(count, late=True), in_flight=in_flight)
    entries = world.table.list_page(ME, None, None, 0, 10)[0]
    assert {entry.state for entry in entries} == {TaskState.CANCELED}
    assert len([entry for entry in entries if entry.agent == "echo"]) <= 1
    assert not [key for shard in range(SHARDS) for key in world.table.list_due(shard, world.now + 40 * HOUR_MS)]


class Chunks(Elsewhere):
    """The task of ``echo`` takes 200 seconds and says ``chunks`` things meanwhile."""

    def __init__(self, agents: Sequence[Agent], chunks: int) -> None:
        super().__init__(agents)
        self.chunks = chunks
        self.begun = False
        self.peers_asked: Counter[str] = Counter()
        self.engine = replace(self.engine, registry=replace(self.registry, remote_agents=Counted(self)))

    def come_by(self, key: TaskKey) -> None:
        if self.begun:
            return
        self.begun = True
        self.table.append(decisions.start_run(self.table.read_head(key), now=self.now, by=self.ids.new()))
        for number in range(1, self.chunks + 1):
            self.plan(number * 200_000 // (self.chunks + 1), lambda number=number: self.chunk(key, number))  # type: ignore[misc]
        self.plan(200_000, lambda: self.end(key))

    def chunk(self, key: TaskKey, number: int) -> None:
        snapshot = self.table.read_head(key)
        artifact = Artifact(artifact_id="artifact", parts=(Part(text=f"{number} "),))
        event = ArtifactEvent(snapshot.last + 1, self.now, self.ids.new(), artifact, number > 1, emits=(number, number))
        assert self.table.append_chunk(snapshot.head, event)

    def end(self, key: TaskKey) -> None:
        snapshot = self.table.read_head(key)
        change = decisions.report_status(
            snapshot, snapshot.head.fence, TaskState.COMPLETED, None, now=self.now, by=self.ids.new()
        )
        assert self.table.append(change)


class Counted(Siblings):
    """Counts the requests that agents send to each other."""

    def __init__(self, world: Chunks) -> None:
        super().__init__(world)
        self.asked = world.peers_asked

    def send(
        self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig
    ) -> Task | Message:
        self.asked["send"] += 1
        return super().send(caller, agent, message, callback)

    def get(self, caller: Caller, agent: str, task_id: str) -> Task:
        self.asked["get"] += 1
        return super().get(caller, agent, task_id)


def calling(name: str, below: str) -> Agent:
    async def work(task: TaskContext) -> None:
        child = await task.call("down", below, task.text())
        assert isinstance(child, Task)
        await task.emit("result.md", child.artifacts[0].text(), last=True)

    return agent_of(work, name)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_cost_of_a_call_does_not_grow_with_the_chunks_of_the_child(depth: int) -> None:
    def costs(chunks: int) -> tuple[dict[str, int], Counter[str]]:
        names = [*(f"level-{level}" for level in range(depth)), "echo"]
        levels = [calling(name, below) for name, below in pairwise(names)]
        world = Chunks([*levels, agent_of(None, "echo")], chunks)
        task = world.send("hello", agent=names[0], push=False)
        world.settle()
        assert world.get(task.id, names[0]).artifacts[0].text().endswith(f"{chunks} ")
        entries = world.table.list_page(ME, None, None, 0, 10)[0]
        return {one.agent: len(world.events(one.task)) for one in entries if one.agent != "echo"}, world.peers_asked

    few, many = costs(3), costs(98)
    assert many == few
    events, asked = many
    assert events == {f"level-{level}": 4 for level in range(depth)}, "submitted, working, artifact, completed"
    assert asked == {"send": depth, "get": 2 * depth}


def test_a_cancel_goes_all_the_way_down_a_chain_at_once() -> None:
    async def first(task: TaskContext) -> None:
        await task.call("down", "second", task.text())

    async def second(task: TaskContext) -> None:
        await task.call("down", "echo", task.text())

    async def last(task: TaskContext) -> None:
        world.elsewhere(60_000)
        await task.emit("late.txt", "late")

    world = world_of(agent_of(first, "first"), agent_of(second, "second"), agent_of(last))
    canceled: list[dict[str, TaskState]] = []

    def states() -> dict[str, TaskState]:
        entries = world.table.list_page(ME, task.context_id, None, 0, 10)[0]
        return {entry.agent: world.get(entry.task, entry.agent).status.state for entry in entries}

    task = world.send("hello", agent="first")
    world.plan(30_000, lambda: world.cancel(task.id, "first"))
    world.plan(32_000, lambda: canceled.append(states()))
    world.settle()
    assert canceled == [dict.fromkeys(("first", "second", "echo"), TaskState.CANCELED)]
    (leaf,) = [one for one in world.table.list_page(ME, task.context_id, None, 0, 10)[0] if one.agent == "echo"]
    assert world.get(leaf.task).artifacts == ()


def test_a_childs_question_becomes_the_parents_and_the_answer_goes_back() -> None:
    async def choose(task: TaskContext) -> None:
        form = Part(data={"choices": ["red", "blue"]})
        colour = await task.ask([Part(text="Which colour?"), form])
        await task.emit("choice.txt", colour.text(), last=True)

    parent = Parent()
    world = world_of(parent.agent, agent_of(choose, "echo"))
    task = world.send("hello", agent="parent")
    world.wait(30_000)
    asked = world.get(task.id, "parent").status
    assert (asked.state, asked.message and asked.message.text()) == (TaskState.INPUT_REQUIRED, "Which colour?")
    assert asked.message
    assert asked.message.data() == {"choices": ["red", "blue"]}
    world.send("red", agent="parent", task_id=task.id)
    world.settle()
    assert result(world, task.id) == "completed: red"


def test_a_plain_message_is_an_answer_too() -> None:
    async def work(task: TaskContext) -> None:
        answer = await task.call("ask", "echo", "hello")
        assert isinstance(answer, Message)
        await task.emit("result.md", answer.text(), last=True)

    world = world_of(agent_of(work, "parent"), Writer().agent)
    world.remote_agents.replies["echo"] = "hi there"
    task = world.send("hello", agent="parent")
    world.settle()
    assert result(world, task.id) == "hi there"


def journey(faults: Faults) -> tuple[World, str]:
    world = world_of(Parent().agent, Writer(seconds=20).agent, faults=faults)
    task = world.send("hello", agent="parent")
    world.settle()
    return world, task.id


def calls_of_a_journey() -> list[int]:
    """The numbers of its calls. Of looks at the head in a row only the first is there."""
    count = Count()
    journey(count)
    calls = count.calls
    return [number for number, pair in enumerate(pairwise(["", *calls]), 1) if pair != (LOOK, LOOK)]


@pytest.mark.parametrize("number", calls_of_a_journey()[::2])
def test_a_death_anywhere_in_parent_or_child_changes_nothing_of_the_result(number: int) -> None:
    world, task_id = journey(kill_at(number, late=True))
    assert result(world, task_id) == "completed: one: hello. two: hello. three: hello. "
    children = [entry for entry in world.table.list_page(ME, None, None, 0, 10)[0] if entry.agent == "echo"]
    assert len(children) == 1, "the child was made once"


def test_a_child_that_asks_twice_gets_both_answers() -> None:
    async def choose(task: TaskContext) -> None:
        colour, size = await task.ask("Which colour?"), await task.ask("Which size?")
        await task.emit("choice.txt", f"{colour.text()}, {size.text()}", last=True)

    world = world_of(Parent().agent, agent_of(choose, "echo"))
    task = world.send("hello", agent="parent")
    for answer in ("red", "large"):
        world.wait(30_000)
        assert world.get(task.id, "parent").status.state is TaskState.INPUT_REQUIRED
        world.send(answer, agent="parent", task_id=task.id)
    world.settle()
    assert result(world, task.id) == "completed: red, large"


def test_a_call_that_failed_has_failed_for_every_later_run() -> None:
    async def work(task: TaskContext) -> None:
        try:
            await task.call("first", "late", "hello")
        except AgentCallFailed as failed:
            child = await task.call("second", "echo", "hello")
            assert isinstance(child, Task)
            await task.emit("result.md", f"{failed}, {child.status.state}", last=True)

    late = agent_of(Writer().work, "late")
    world = world_of(agent_of(work, "parent"), Writer(seconds=600).agent, late)
    world.remote_agents.absent.add("late")
    task = world.send("hello", agent="parent")
    world.wait(60_000)
    world.remote_agents.absent.clear()
    world.settle()
    assert result(world, task.id) == "no agent late, completed"


def test_a_call_that_is_over_goes_on_while_a_step_still_runs() -> None:
    async def work(task: TaskContext) -> None:
        async def call() -> None:
            await task.call("ask", "echo", "hello")
            await task.emit("called.txt", "x")

        async def step() -> None:
            await task.step("long", asyncio.sleep, 300)
            await task.emit("worked.txt", "x")

        await asyncio.gather(call(), step())

    def end() -> None:
        peer.state = TaskState.COMPLETED
        head = world.table.read_head(ME.key(task.id)).head
        assert world.table.update_head(head, decisions.wake(head, now=world.now))

    world, peer = world_of(agent_of(work, "parent")), Endless()
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))
    task = world.send("hello", agent="parent")
    world.plan(30_000, end)
    world.settle()
    assert [artifact.name for artifact in world.get(task.id, "parent").artifacts] == ["called.txt", "worked.txt"]


def test_calls_one_after_the_other_each_wait_without_compute() -> None:
    runs: list[int] = []

    async def work(task: TaskContext) -> None:
        runs.append(1)
        for name in ("first", "second"):
            await task.call(name, "echo", name)

    world = world_of(agent_of(work, "parent"), Writer(seconds=600).agent)
    world.send("hello", agent="parent")
    world.settle()
    assert len(runs) == 3


@pytest.mark.parametrize("absent", [True, False])
def test_an_agent_gets_the_same_card_of_another_agent_in_every_run(absent: bool) -> None:  # noqa: FBT001
    known: list[str] = []

    async def work(task: TaskContext) -> None:
        try:
            known.append((await task.get_card("echo")).name)
        except AgentCallFailed as failed:
            known.append(str(failed))
        if len(known) < 2:
            await asyncio.sleep(3600)

    world = world_of(agent_of(work, "parent"), Writer().agent)
    if absent:
        world.remote_agents.absent.add("echo")
    key = ME.key(world.send("hello", agent="parent").id)
    world.run_ms = 40_000
    world.run(key)
    world.remote_agents.absent ^= {"echo"}
    world.settle()
    assert known == (["no agent echo"] if absent else ["echo"]) * 2


def test_a_call_that_failed_is_not_made_again_by_the_next_run_although_the_agent_is_back() -> None:
    runs: list[int] = []
    failures: list[str] = []

    async def work(task: TaskContext) -> None:
        runs.append(1)
        try:
            await task.call("write", "echo", "hello")
        except AgentCallFailed as failed:
            failures.append(str(failed))
        if len(runs) < 2:
            await asyncio.sleep(3600)

    child = Writer()
    world = world_of(agent_of(work, "parent"), child.agent)
    world.remote_agents.absent.add("echo")
    key = ME.key(world.send("hello", agent="parent").id)
    world.run_ms = 40_000
    world.run(key)
    world.remote_agents.absent.clear()
    world.run_ms = 900_000
    world.settle()
    assert (failures, child.ran) == (["no agent echo"] * 2, [])


def test_calls_side_by_side_wait_together_and_take_as_long_as_the_longest() -> None:
    async def work(task: TaskContext) -> None:
        both = await asyncio.gather(task.call("a", "echo", "one"), task.call("b", "echo", "two"))
        texts = [child.artifacts[0].text() for child in both if isinstance(child, Task)]
        await task.emit("result.md", "".join(texts), last=True)

    world = world_of(agent_of(work, "parent"), Writer(seconds=60).agent)
    task = world.send("hello", agent="parent")
    world.settle()
    assert result(world, task.id).count("one: ") == 2
    assert len(world.table.list_page(ME, task.context_id, None, 0, 10)[0]) == 3


def test_an_agent_that_goes_on_asking_what_was_answered_is_canceled_when_its_time_is_over() -> None:
    world, peer = world_of(Parent(timeout_s=60).agent), Endless()
    peer.state = TaskState.INPUT_REQUIRED
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))
    task = world.send("hello", agent="parent")
    world.wait(10_000)
    world.send("red", agent="parent", task_id=task.id)
    world.wait(100_000)
    assert result(world, task.id) == "canceled: "
    assert [(message.context_id, message.task_id) for message in peer.sent] == [
        (task.context_id, None),
        ("context", "far"),
    ]


class AsksOnce(Endless):
    """It asks each caller the same, in a question without ids, and is done with the answer."""

    def send(self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig) -> Task:
        self.state = TaskState.COMPLETED if message.task_id else TaskState.INPUT_REQUIRED
        return super().send(caller, agent, message, callback)


def test_a_retry_gives_an_agent_that_asks_the_same_again_the_answer_that_the_client_has_given() -> None:
    broken = [True]

    async def work(task: TaskContext) -> None:
        await task.call("paint", "far", "paint it")
        if broken:
            raise ValueError

    world, peer = world_of(agent_of(work, "parent")), AsksOnce()
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))
    asked = world.send("hello", agent="parent", push=False)
    world.wait(10_000)
    world.send("red", agent="parent", task_id=asked.id, push=False)
    world.settle()
    broken.clear()
    request, context = RetryRequest(request_id="r", from_step="paint"), RequestContext(ME, "parent", "1.0")
    task = retry_task(world.service, context, world.engine.agents["parent"], asked.id, request)
    world.settle()
    assert world.get(task.id, "parent").status.state is TaskState.COMPLETED
    assert [message.parts[0].text for message in peer.sent] == ["paint it", "red"] * 2


class AsksOn(Endless):
    """Asks another question after each answer, with all that it has made."""

    def get(self, caller: Caller, agent: str, task_id: str) -> Task:
        task, number = super().get(caller, agent, task_id), len(self.sent)
        question = Message(role=Role.AGENT, message_id=f"q{number}", parts=(Part(text=f"Question {number}?"),))
        status = TaskStatus(state=TaskState.INPUT_REQUIRED, message=question, timestamp=START + number)
        made = tuple(Artifact(artifact_id=f"a{n}", parts=(Part(text=f"made {n}"),)) for n in range(number))
        return task.model_copy(update={"status": status, "artifacts": made})


def test_an_agent_that_asks_too_much_is_heard_no_more_and_each_artifact_is_stored_once() -> None:
    world, peer = world_of(Parent().agent), AsksOn()
    registry = replace(world.registry, remote_agents=peer, bounds=TaskBounds(questions=3))
    world.engine = replace(world.engine, registry=registry)
    task = world.send("hello", agent="parent", push=False)
    for _ in range(3):
        world.wait(20_000)
        world.send("yes", agent="parent", task_id=task.id, push=False)
    world.settle()
    message = world.get(task.id, "parent").status.message
    assert message
    assert message.text() == "The task at the agent 'echo' has more than 3 questions, the most that is taken of it."
    assert questions(world, task) == [f"Question {number}?" for number in (1, 2, 3)]
    assert peer.state is TaskState.CANCELED
    stored = json.dumps([record.value for record in world.table.read_steps(ME.key(task.id)).values()])
    assert [stored.count(f"made {number}") for number in range(4)] == [1] * 4


class AsksTwice(Endless):
    """Each of its first two messages makes it ask the same, 50 ms after the other; then it is done."""

    def get(self, caller: Caller, agent: str, task_id: str) -> Task:
        task = super().get(caller, agent, task_id)
        if len(self.sent) > 2:
            return task.model_copy(update={"status": TaskStatus(state=TaskState.COMPLETED)})
        number = len(self.sent) - 1
        question = Message(role=Role.AGENT, message_id=f"q{number}", parts=(Part(text="Sure?"),))
        status = TaskStatus(state=TaskState.INPUT_REQUIRED, message=question, timestamp=START + 50 * number)
        return task.model_copy(update={"status": status})


@pytest.mark.parametrize("child", ["of its own deployment", "a stand-in"])
def test_a_child_that_asks_the_same_again_before_it_is_looked_at_gets_both_answers(child: str) -> None:
    answers = list[str]()

    async def asker(task: TaskContext) -> None:
        answers.extend([(await task.ask("Sure?")).text() for _ in range(2)])

    world, peer = world_of(Parent().agent, agent_of(asker, "echo")), AsksTwice()
    if child == "a stand-in":
        world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))
    task = world.send("hello", agent="parent", push=False)
    for text in ("first", "second"):
        world.wait(20_000)
        assert world.get(task.id, "parent").status.state is TaskState.INPUT_REQUIRED
        world.send(text, agent="parent", task_id=task.id, push=False)
    world.wait(20_000)
    assert result(world, task.id) == "completed: "
    assert questions(world, task) == ["Sure?"] * 2
    assert (answers or [message.text() for message in peer.sent[1:]]) == ["first", "second"]


def test_a_childs_reminder_is_no_second_question() -> None:
    async def asker(task: TaskContext) -> str:
        return (await task.ask("Sure?", remind_s=60)).text()

    world = world_of(Parent().agent, agent_of(asker, "echo"))
    task = world.send("hello", agent="parent", push=False)
    world.wait(200_000)
    world.send("yes", agent="parent", task_id=task.id, push=False)
    world.settle()
    assert result(world, task.id) == "completed: "
    assert questions(world, task) == ["Sure?"]


def questions(world: World, task: Task) -> list[str]:
    """What the agent has asked its client."""
    asked = [event for event in world.events(task.id) if isinstance(event, StatusEvent)]
    return [one.message.text() for one in asked if one.message and one.state is TaskState.INPUT_REQUIRED]


@pytest.mark.parametrize(("timeout_s", "deadline_s"), [(120, 60), (60, None), (None, 60)])
def test_the_shorter_limit_of_a_call_counts(timeout_s: float | None, deadline_s: float | None) -> None:
    async def work(task: TaskContext) -> None:
        child = await task.call("slow", "echo", "hello", timeout_s=timeout_s, deadline_s=deadline_s)
        assert isinstance(child, Task)
        await task.emit("result.md", str(child.status.state), last=True)

    world, peer = world_of(agent_of(work, "parent")), Endless()
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))
    task = world.send("hello", agent="parent")
    world.wait(110_000)
    assert result(world, task.id) == "canceled"


class Several(Endless):
    """Agents elsewhere that work until they are canceled, each call on a task of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.states: dict[str, TaskState] = {}

    def send(self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig) -> Task:
        del callback
        task_id = message.parts[0].text or ""
        self.states[task_id] = TaskState.WORKING
        return self.get(caller, agent, task_id)

    def get(self, caller: Caller, agent: str, task_id: str) -> Task:
        self.state = self.states[task_id]
        return super().get(caller, agent, task_id)

    def cancel(self, caller: Caller, agent: str, task_id: str) -> None:
        del caller, agent
        self.states[task_id] = TaskState.CANCELED


class Unreachable(Several):
    """Cannot be reached when it is to cancel ``first`` for the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.canceled: list[str] = []

    def cancel(self, caller: Caller, agent: str, task_id: str) -> None:
        self.canceled.append(task_id)
        if self.canceled == ["first"]:
            raise AgentCallFailed("It is away.")
        super().cancel(caller, agent, task_id)


def test_a_cancel_that_fails_is_repeated_and_keeps_none_of_the_other_calls_that_run_from_theirs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work(task: TaskContext) -> None:
        async with asyncio.TaskGroup() as calls:
            for name in ("over", "first", "second"):
                calls.create_task(task.call(name, "echo", name))

    world, peer = world_of(agent_of(work, "parent")), Unreachable()
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))
    task = world.send("hello", agent="parent", push=False)
    world.wait(60_000)
    peer.states["over"] = TaskState.COMPLETED
    world.wait(HOUR_MS)
    world.cancel(task.id, "parent")
    world.wait(1_000)
    assert peer.states == {"over": "completed", "first": "working", "second": "canceled"}
    assert [line.__dict__["task"] for line in caplog.records if "could not be canceled" in line.message] == [task.id]
    assert world.table.read_head(ME.key(task.id)).head.children
    world.settle()
    assert peer.states == {"over": "completed", "first": "canceled", "second": "canceled"}
    assert not world.table.read_head(ME.key(task.id)).head.children


@pytest.mark.parametrize("other", ["the agent", "the content"])
def test_a_call_that_differs_from_the_stored_one_of_its_name_ends_the_task(other: str) -> None:
    runs, errors = list[int](), list[BaseException]()

    async def work(task: TaskContext) -> None:
        runs.append(1)
        is_later = len(runs) > 1
        agent = "another" if other == "the agent" and is_later else "echo"
        await task.call("write", agent, "hi" if other == "the content" and is_later else "hello")

    child = Writer(seconds=60)
    world = world_of(agent_of(work, "parent"), child.agent, agent_of(child.work, "another"))
    world.engine = replace(world.engine, on_error=lambda _, error, __: errors.append(error))
    task = world.send("hello", agent="parent", push=False)
    world.settle()
    assert world.get(task.id, "parent").status.state is TaskState.FAILED
    (error,) = errors
    assert str(error).startswith(
        "The call 'write' was made to another agent, or with other content. Stored: the agent "
    )


def test_a_call_whose_time_is_over_is_not_made() -> None:
    async def work(task: TaskContext) -> str:
        try:
            await task.call("write", "echo", "hello", timeout_s=0)
        except AgentCallFailed as failed:
            return str(failed)
        return "called"

    world = world_of(agent_of(work, "parent"), Writer().agent)
    task = world.send("hello", agent="parent", push=False)
    world.settle()
    message = world.get(task.id, "parent").status.message
    assert message
    assert message.text() == "There was no time left to call the agent 'echo'."


class Away(Endless):
    """Is away: for good, or for its first ``failing`` requests about ``slow``, when something is asked about it."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = 0
        self.failing = Counter[str]()

    def card(self, agent: str) -> AgentCard:
        self.fail(agent)
        return read_card(Peer().card())

    def send(self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig) -> Task:
        self.fail(agent)
        self.state = TaskState.COMPLETED
        return super().send(caller, agent, message, callback)

    def fail(self, agent: str) -> None:
        self.tries += 1
        if self.failing[agent]:
            self.failing[agent] -= 1
            raise AgentUnavailable(f"{agent} is away")


class AwayAfterSend(Endless):
    """Takes a message, and is away for its first ``failing`` looks."""

    failing = 30

    def get(self, caller: Caller, agent: str, task_id: str) -> Task:
        task = super().get(caller, agent, task_id)
        if self.asked > 1 and self.failing:
            self.failing -= 1
            raise AgentUnavailable("away", is_slow=True)
        self.state = TaskState.COMPLETED if self.asked > 1 else self.state
        return task


def test_a_parent_whose_agent_cannot_be_looked_at_is_suspended_between_its_tries() -> None:
    parent, peer = Parent(), AwayAfterSend()
    world, busy = world_of(parent.agent), list[bool]()
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))
    task = world.send("hello", agent="parent", push=False)
    for _ in range(20):
        world.wait(60_000)
        busy.append(world.table.read_head(ME.key(task.id)).head.lease_until > 0)
    assert not any(busy)
    assert parent.runs > 10
    world.settle()
    assert result(world, task.id) == "completed: "


async def ask_another(task: TaskContext, act: str, agent: str) -> None:
    """Reads the agent's card, or calls it."""
    await (task.get_card(agent) if act == "card" else task.call(agent, agent, "hello"))


@pytest.mark.parametrize("act", ["card", "call"])
def test_a_call_that_lost_a_race_is_not_begun_in_a_later_run(act: str) -> None:
    async def work(task: TaskContext) -> str:
        asking = asyncio.create_task(ask_another(task, act, "slow"))
        sleeping = asyncio.create_task(task.sleep("two seconds", 2))
        done, _ = await asyncio.wait({asking, sleeping}, return_when=asyncio.FIRST_COMPLETED)
        asking.cancel()
        await task.ask("Go on?")
        return "slept" if done == {sleeping} else "asked"

    world, peer = world_of(agent_of(work, "parent")), Away()
    peer.failing["slow"] = 100
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))
    task = world.send("hello", agent="parent", push=False)
    world.wait(60_000)
    tries = peer.tries
    assert (answered(world, task), tries) == ("slept", peer.tries)


@pytest.mark.parametrize("act", ["card", "call"])
def test_answers_of_other_agents_come_in_the_same_order_in_each_run(act: str) -> None:
    async def work(task: TaskContext) -> str:
        order = list[str]()

        async def ask(agent: str) -> None:
            await ask_another(task, act, agent)
            order.append(agent)

        await asyncio.gather(ask("slow"), ask("echo"))
        await task.ask("Go on?")
        return " ".join(order)

    world, peer = world_of(agent_of(work, "parent")), Away()
    peer.failing["slow"] = 2
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))
    task = world.send("hello", agent="parent", push=False)
    world.wait(60_000)
    assert answered(world, task) == "echo slow"


def answered(world: World, task: Task) -> str:
    """What the agent says after the answer to its question."""
    world.send("yes", agent="parent", task_id=task.id, push=False)
    world.settle()
    message = world.get(task.id, "parent").status.message
    assert message
    return message.text()


class Dying(Endless):
    """The process that sends it the first message dies of it."""

    def send(self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig) -> Task:
        self.state = TaskState.COMPLETED
        task = super().send(caller, agent, message, callback)
        if len(self.sent) == 1:
            raise Killed
        return task


def test_the_end_of_the_process_in_a_call_is_no_answer_of_the_agent() -> None:
    world, peer = world_of(Parent().agent), Dying()
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))
    task = world.send("hello", agent="parent")
    world.settle()
    assert result(world, task.id) == "completed: "
    assert [one.message_id for one in peer.sent] == [peer.sent[0].message_id] * 2
    assert [event.state for event in world.events(task.id) if isinstance(event, StatusEvent)].count(
        TaskState.WORKING
    ) == 2


def test_of_several_calls_at_once_the_one_with_a_limit_ends_at_it_and_the_others_go_on() -> None:
    async def work(task: TaskContext) -> None:
        async def call(name: str, timeout_s: float | None) -> None:
            child = await task.call(name, "echo", name, timeout_s=timeout_s)
            assert isinstance(child, Task)
            await task.emit(name, str(child.status.state), last=True)

        async with asyncio.TaskGroup() as calls:
            for name, timeout_s in (("longest", None), ("short", 60), ("long", 600)):
                calls.create_task(call(name, timeout_s))

    world, peer = world_of(agent_of(work, "parent")), Several()
    world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=peer))
    task = world.send("hello", agent="parent")
    world.wait(110_000)
    assert peer.states == {"longest": "working", "short": "canceled", "long": "working"}
    world.wait(600_000)
    assert peer.states == {"longest": "working", "short": "canceled", "long": "canceled"}
    peer.states["longest"] = TaskState.COMPLETED
    world.settle()
    made = {one.name: one.text() for one in world.get(task.id, "parent").artifacts}
    assert made == {"short": "canceled", "long": "canceled", "longest": "completed"}


def test_two_branches_read_one_description_of_an_agent() -> None:
    async def other(task: TaskContext) -> str:
        return task.text()

    async def card(task: TaskContext) -> str:
        cards = await asyncio.gather(task.get_card("other"), task.get_card("other"))
        return cards[0].name

    async def found(task: TaskContext) -> str:
        return str(await asyncio.gather(task.find_agents("demo"), task.find_agents("none")))

    async def in_steps(task: TaskContext) -> str:
        async def read(_: int) -> str:
            return (await task.get_card("other")).name

        return str(await task.map("read", read, [1, 2]))

    async def after_a_race(task: TaskContext) -> str:
        read = asyncio.create_task(task.get_card("other"))
        await task.now("moment")
        read.cancel()
        return (await task.get_card("other")).name

    for work in (card, found, in_steps, after_a_race):
        for replay in (True, False):
            harness = AgentTestHarness(agent_of(work, "work"), agent_of(other, "other"), replay=replay)
            assert harness.send("go").state == "completed", work.__name__


async def _limited_by_a_timeout(task: TaskContext) -> str:
    async with task.timeout("limit", 60):
        called = await task.call("c", "asker", "x")
    assert isinstance(called, Task)
    assert called.status.message
    return called.status.message.text()


async def _raced_with_a_sleep(task: TaskContext) -> str:
    sleep = asyncio.ensure_future(task.sleep("limit", 60))
    call = asyncio.ensure_future(task.call("c", "asker", "x"))
    done, _ = await asyncio.wait([sleep, call], return_when=asyncio.FIRST_COMPLETED)
    sleep.cancel()
    return "answered" if call in done else "late"


@pytest.mark.parametrize("limited", [_limited_by_a_timeout, _raced_with_a_sleep])
def test_a_time_limit_around_a_call_that_has_asked_is_over_in_no_later_run(limited: Any) -> None:
    async def asker(task: TaskContext) -> str:
        await task.ask("First?")
        return (await task.ask("Second?")).text()

    async def work(task: TaskContext) -> str:
        try:
            answer = await limited(task)
        except TimeoutError:
            answer = "late"
        await task.step("file", str, answer)
        await task.sleep("night", 3600)
        return str(answer)

    for replay in (False, True):
        harness = AgentTestHarness(agent_of(work, "work"), agent_of(asker, "asker"), replay=replay)
        asked = harness.send("x", until_question=True)
        harness.send("yes", task_id=asked.task.id, until_question=True)
        reply = harness.send("yes", task_id=asked.task.id)
        assert (reply.state, reply.said) in {("completed", "yes"), ("completed", "answered")}


def test_equal_questions_of_one_millisecond_are_both_asked() -> None:
    async def asker(task: TaskContext) -> str:
        answers = await asyncio.gather(task.ask("Sure?"), task.ask("Sure?"))
        return " ".join(answer.text() for answer in answers)

    async def work(task: TaskContext) -> str:
        called = await task.call("c", "asker", "x")
        assert isinstance(called, Task)
        assert called.status.message
        return called.status.message.text()

    for replay in (False, True):
        for agents in ([agent_of(asker)], [agent_of(work, "work"), agent_of(asker, "asker")]):
            harness = AgentTestHarness(*agents, replay=replay)
            asked = harness.send("x", until_question=True)
            again = harness.send("one", task_id=asked.task.id, until_question=True)
            assert again.state == "input-required"
            assert harness.send("two", task_id=asked.task.id).said == "one two"
