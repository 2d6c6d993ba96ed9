"""A retry whose processes die at any call of a store, and whose messages come twice: one task, the same content."""

from __future__ import annotations

from base64 import b64encode
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from boto3.session import Session
from moto import mock_aws

from a2a_serverless.domain.contents import file_of
from a2a_serverless.domain.decisions import RUN_LEASE_MS
from a2a_serverless.domain.events import ArtifactEvent
from a2a_serverless.domain.model import path
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.engine.lease import MARGIN_MS
from a2a_serverless.engine.task_copy import GONE
from a2a_serverless.protocol.additions import RetryRequest
from a2a_serverless.protocol.v1 import Message, Part, Role, Task, TaskPushNotificationConfig, TaskState
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.retries import retry_task
from a2a_serverless.store.items import make_place
from a2a_serverless.store.stores import ContentStore
from a2a_serverless.store.table import Delete
from a2a_serverless.testing.memory import MemoryBlobStore, MemoryStores
from tests.costs.counting import TRUSTING
from tests.echo import agent_of
from tests.faults.plans import At, NoFaults, kill_at
from tests.faults.test_on_dynamodb import MotoTable
from tests.world import ME, Siblings, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.task_context import TaskContext
    from tests.faults.plans import Faults

MOST = 500
LARGE = b"\x07" * 600_000


class Agent:
    """Two steps with chunks, a question, a value and a large file; then a step that fails the first time."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    async def work(self, task: TaskContext) -> str:
        async def chapter(name: str) -> str:
            self.ran.append(name)
            await task.emit("book", f"{name} ", append=True)
            await task.record_usage("model", tokens=1)
            await task.store.put(name, name)
            return name

        async def fail_once() -> str:
            self.ran.append("fails")
            if self.ran.count("fails") == 1:
                raise ValueError("no")
            return "well"

        await task.report_progress("Begun.")
        await task.step("one", chapter, "one")
        await task.emit("file", Part(raw=b64encode(LARGE).decode(), media_type="application/octet-stream"))
        await task.emit("book", "between ", append=True)
        answer = await task.ask("Go on?")
        await task.step("two", chapter, answer.text())
        await task.step("last", fail_once)
        await task.emit("book", "end", append=True, last=True)
        value = await task.store.get("one")
        assert value
        return f"{answer.text()} {value.value!s}"


class Scene:
    """A world with a failed task, whose agent is well from now on."""

    def __init__(self, faults: Faults | None = None, table: Callable[[Callable[[], int]], Any] = MemoryStores) -> None:
        self.agent = Agent()
        self.world = World([agent_of(self.agent.work)], faults, table=table)
        asked = self.world.send("hello", push=False)
        self.world.settle()
        self.world.send("yes", push=False, task_id=asked.id)
        self.world.settle()
        self.failed = self.world.get(asked.id)
        assert self.failed.status.state is TaskState.FAILED
        self.agent.ran = ["fails"]

    def retry(self) -> Task:
        """Retries the task as a client that repeats its request until it is answered."""
        context = RequestContext(ME, "echo", "1.0")
        agent = self.world.engine.agents["echo"]
        request = RetryRequest(request_id="retry")
        return self.world.client(lambda: retry_task(self.world.service, context, agent, self.failed.id, request))

    def erase(self) -> None:
        """Removes the failed task, with its files."""
        place, table = path(*ME.key(self.failed.id)), self.world.table.items
        for name in [*table.partitions[f"TASK#{place}"]]:
            assert table.write(Delete(make_place(f"TASK#{place}", name), {})) is None
        for name in [*self.world.blobs.list_names(f"{place}/")]:
            self.world.blobs.delete(name)

    def check(self, task_id: str) -> None:
        """The new task has all that the failed one came to, once, and its agent did only what was left to do."""
        world = self.world
        task = world.get(task_id)
        assert task.status.state is TaskState.COMPLETED, task.status
        assert task.status.message
        assert task.status.message.text() == "yes one"
        assert [message.text() for message in task.history] == ["hello", "Begun.", "Go on?", "yes"]
        shown = {artifact.name: [self.content(part) for part in artifact.parts] for artifact in task.artifacts}
        assert shown == {"book": ["one between yes end"], "file": [LARGE]}
        assert set(self.agent.ran) == {"fails"}
        assert task.metadata == {"a2a-serverless/retry": {"taskId": self.failed.id, "requestId": "retry"}}
        chunks = [event for event in world.events(task_id) if isinstance(event, ArtifactEvent)]
        texts = [str(part.value) for event in chunks for part in event.artifact.parts if part.kind == "text"]
        assert "".join(texts) == "one between yes end"
        if isinstance(world.table, MemoryStores):
            entries = list(world.table.list_page(ME, None, None, 0, 100)[0])
            assert {entry.task for entry in entries} == {self.failed.id, task_id}
        assert world.get(self.failed.id) == self.failed

    def content(self, part: Part) -> object:
        file = file_of(part)
        if file is None:
            return part.value
        assert file.place != self.failed.id
        return self.world.contents.read(ME, file)


def retried(faults: At | None = None, *, at: int = 0, twice: bool = False, **options: Any) -> None:
    """Retries; the ``faults`` happen at the call of this number from here on."""
    scene = Scene(faults, **options)
    if faults:
        faults.after_now(at)
    task = scene.retry()
    if twice:
        scene.world.queue.enqueue(WorkMessage(ME.key(task.id)))
    scene.world.settle()
    if faults:
        faults.counts = set()
    scene.check(task.id)


def test_a_retry_copies_all_and_runs_the_rest() -> None:
    retried()


def test_a_message_that_comes_twice_changes_nothing() -> None:
    retried(twice=True)


@pytest.mark.parametrize("late", [False, True])
def test_a_death_at_any_call_makes_no_second_task_and_copies_nothing_twice(late: bool) -> None:  # noqa: FBT001
    met: list[str] = []
    while len(met) < MOST:
        faults = kill_at(late=late)
        retried(faults, at=len(met) + 1)
        if not faults.met:
            break
        met += faults.met
    assert MOST > len(met) > 30
    assert {"table.create", "table.append", "table.store_step", "table.put_value", "table.update_head"} <= set(met)


def test_a_death_on_dynamodb_makes_no_second_task_either() -> None:
    with mock_aws(), closing(Session("test", "test", region_name="us-east-1").client("dynamodb")) as client:
        table = partial(MotoTable, client)
        retried(table=table)
        for number in range(1, 60, 9):
            retried(kill_at(late=number % 2 == 0), at=number, table=table)


def test_a_retry_hands_over_when_its_time_ends_and_the_next_run_goes_on() -> None:
    scene = Scene()
    task = scene.retry()
    scene.world.run_ms = MARGIN_MS - 1
    scene.world.run(ME.key(task.id))
    assert scene.world.get(task.id).status.state is TaskState.WORKING
    scene.world.run_ms = 900_000
    scene.world.settle()
    scene.check(task.id)


class Slow(NoFaults):
    """Something happens before each of these calls of the table."""

    def __init__(self, call: str) -> None:
        self.call = call
        self.count = 0
        self.happens: Callable[[], object] = int

    def before(self, port: str, call: str) -> None:
        if (port, call) == ("table", self.call):
            self.count += 1
            self.happens()


@pytest.mark.parametrize(
    ("call", "takes_ms"),
    [("append", 10_000), ("append_chunk", 7_000), ("store_step", 10_000), ("put_value", 10_000)],
)
def test_rule_06_copies_that_take_longer_than_a_lease_are_made_in_one_run(call: str, takes_ms: int) -> None:
    slow = Slow(call)
    scene = Scene(slow)
    world, task = scene.world, scene.retry()

    left = list[int]()

    def take_long() -> None:
        world.scheduler.sleep(takes_ms)
        head = world.table.read_head(ME.key(task.id)).head
        left.extend([head.lease_until - world.now] if head.fence and head.repeats else [])

    slow.count, slow.happens = 0, take_long
    world.settle()
    assert slow.count * takes_ms > RUN_LEASE_MS
    assert min(left) > 0, "no other run may take it"
    scene.check(task.id)


def test_a_retry_whose_predecessor_was_erased_says_so() -> None:
    scene = Scene()
    task = scene.retry()
    scene.erase()
    scene.world.settle()
    status = scene.world.get(task.id).status
    assert (status.state, status.message and status.message.text()) == (TaskState.FAILED, GONE)


@pytest.mark.parametrize("call", ["table.read", "table.list_steps", "table.store_step", "table.put_value"])
def test_a_retry_whose_predecessor_is_erased_meanwhile_does_not_go_on_with_a_part_of_it(call: str) -> None:
    faults = At(late=True, what=lambda: scene.erase(), only=call)  # noqa: PLW0108 - defined below
    scene = Scene(faults)
    task = scene.retry()
    faults.after_now(1)
    scene.world.settle()
    assert faults.met == [call]
    status = scene.world.get(task.id).status
    assert (status.state, status.message and status.message.text()) == (TaskState.FAILED, GONE)


def test_a_retry_is_whole_when_its_predecessor_was_erased() -> None:
    scene = Scene()
    task = scene.retry()
    scene.world.settle()
    scene.erase()
    file = next(one for one in scene.world.get(task.id).artifacts if one.name == "file")
    assert [scene.content(part) for part in file.parts] == [LARGE]


class SlowBlobs(MemoryBlobStore):
    """The blobs of a world, each of whose calls takes two seconds. ``calls`` counts them."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.content, self.world, self.calls = world.blobs.content, world, 0

    def put(self, name: str, content: bytes) -> None:
        self._take_time()
        super().put(name, content)

    def get(self, name: str, size: int | None = None) -> bytes:
        self._take_time()
        return super().get(name, size)

    def size(self, name: str) -> int | None:
        self._take_time()
        return super().size(name)

    def _take_time(self) -> None:
        self.calls += 1
        self.world.scheduler.sleep(2000)


class Sending(Siblings):
    """An agent elsewhere that answers with a large file."""

    def address(self, agent: str) -> str:
        return f"https://far.example.com/{agent}"

    def send(self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig) -> Message:
        del caller, agent, callback
        parts = (Part(raw=b64encode(LARGE).decode(), media_type="application/octet-stream"),)
        return Message(message_id="reply", role=Role.AGENT, parts=parts, context_id=message.context_id)


def retried_with_slow_files(work: Callable[[TaskContext, bool], Any]) -> tuple[World, Task, SlowBlobs]:
    """Retries a task of an agent that is told whether it has to fail; returns the new task when it has ended."""
    fails = [True]

    async def agent(task: TaskContext) -> None:
        await work(task, bool(fails))
        if fails:
            raise ValueError

    world = World([agent_of(agent)], policy=TRUSTING)
    registry = replace(world.registry, remote_agents=Sending(world))
    world.engine = replace(world.engine, registry=registry)
    failed = world.send("hello", push=False)
    world.settle()
    fails.clear()
    blobs = SlowBlobs(world)
    world.engine = replace(world.engine, files=replace(world.engine.files, contents=ContentStore(blobs)))
    context, request = RequestContext(ME, "echo", "1.0"), RetryRequest(request_id="retry")
    task = retry_task(world.service, context, world.engine.agents["echo"], failed.id, request)
    world.settle()
    return world, world.get(task.id), blobs


def test_texts_that_look_like_addresses_of_files_are_not_looked_up() -> None:
    told: list[str] = []

    async def work(task: TaskContext, _: bool) -> None:  # noqa: FBT001
        texts = [f"a2a-file:{task.id}/{number:064x}/12" for number in range(10_000)]
        told[:] = told or [*texts, f"a2a-file:{task.id}/{'0' * 64}/{'9' * 5000}", f'{{"url":"{texts[0]}"}}']
        await task.step("say", task.emit, "texts", " ".join(told))
        await task.store.put("texts", [*told])

    world, task, blobs = retried_with_slow_files(work)
    assert task.artifacts[0].text() == " ".join(told)
    assert blobs.calls == 0
    assert world.table.read_head(ME.key(task.id)).head.fence == 1


def test_an_act_with_many_files_is_copied_by_one_run_although_that_takes_longer_than_its_lease() -> None:
    contents = [bytes([number]) * 600_000 for number in range(12)]

    async def work(task: TaskContext, _: bool) -> None:  # noqa: FBT001
        parts = [Part(raw=b64encode(one).decode(), media_type="application/octet-stream") for one in contents]
        await task.step("say", task.emit, "files", parts)

    world, task, blobs = retried_with_slow_files(work)
    files = [file_of(part) for part in task.artifacts[0].parts]
    assert [world.contents.read(ME, one) for one in files if one and one.place == task.id] == contents
    assert blobs.calls == 3 * len(contents), "one look, one read, one write"
    assert world.table.read_head(ME.key(task.id)).head.fence == 1


def test_a_text_with_the_address_of_a_file_gets_that_of_the_copy() -> None:
    async def work(task: TaskContext, fails: bool) -> None:  # noqa: FBT001
        answer = await task.call("get it", "far", "hello")
        assert isinstance(answer, Message)
        address = str(answer.parts[0].url)
        if fails:
            await task.store.put("address", f"see {address}")
        else:
            found = await task.store.get("address")
            assert found
            assert found.value == f"see {address}"
            await task.emit("file", answer.parts[0])

    world, task, _ = retried_with_slow_files(work)
    assert task.status.state is TaskState.COMPLETED, task.status
    file = file_of(task.artifacts[0].parts[0])
    assert file
    assert (file.place, world.contents.read(ME, file)) == (task.id, LARGE)
