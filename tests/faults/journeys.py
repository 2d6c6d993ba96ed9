"""What clients and agents do together, told once without faults and then again with all kinds of them."""

from __future__ import annotations

import asyncio
import hmac
import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from a2a_serverless.domain.budgets import METADATA_KEY, Budget
from a2a_serverless.domain.errors import TaskNotCancelable, TaskNotFound, UnsupportedOperation
from a2a_serverless.domain.events import ArtifactEvent
from a2a_serverless.domain.notifications import notification_id
from a2a_serverless.domain.outcomes import OutboundError, Outcome
from a2a_serverless.domain.replay import replay
from a2a_serverless.domain.steps import Retry, Step
from a2a_serverless.protocol.v1 import (
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a_serverless.services import webhooks
from a2a_serverless.services.callbacks import find_event_address, store_event
from a2a_serverless.store.stores import agent_pause
from tests.echo import Asker, Writer, agent_of
from tests.replay.plays import compare, effects_of_run
from tests.replay.programs import Effects, Operation, Player
from tests.world import HOOK, HOUR_MS, ME, World, accepting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.push_configs import PushConfig, WebhookEvents
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.protocol.versions import ProtocolVersion

OTHER_HOOK: Final = "https://other.example.com/a2a"
RESULTS_HOOK: Final = "https://results.example.com/a2a"
TEXTS: Final = ["one: hello. ", "two: hello. ", "three: hello. "]
NewWorld: TypeAlias = "Callable[[Sequence[Agent]], World]"
Journey: TypeAlias = "Callable[[NewWorld], Story]"


@dataclass
class Story:
    """A world in which something is going on, and what should come of it."""

    world: World
    task_id: str
    ends: frozenset[TaskState] = frozenset({TaskState.COMPLETED})
    texts: list[str] = field(default_factory=lambda: TEXTS)
    hooks: list[tuple[str, ProtocolVersion]] = field(default_factory=lambda: [(HOOK, "1.0")])

    def events(self) -> list[Any]:
        return self.world.events(self.task_id)

    def task(self) -> Task:
        return self.world.get(self.task_id)

    def assert_artifacts(self, task: Task, events: list[Any]) -> None:
        """The one artifact is made of the texts; a task that was canceled has the first of them."""
        texts = [event.artifact.text() for event in events if isinstance(event, ArtifactEvent)]
        assert [str(part.value) for one in task.artifacts for part in one.parts] == ["".join(texts)][: len(texts)]
        assert texts == self.texts[: len(texts)]
        assert texts == self.texts or task.status.state is not TaskState.COMPLETED
        chunks = [event.emits for event in events if isinstance(event, ArtifactEvent)]
        assert chunks == [(number, number) for number in range(1, len(texts) + 1)]


@dataclass
class PlayedStory(Story):
    """A story whose agent plays a program."""

    effects: Effects = field(default_factory=Effects)
    acts: Sequence[Operation] = ()

    def assert_artifacts(self, task: Task, events: list[Any]) -> None:
        del task, events
        assert [*compare(self.acts, self.effects, self.task(), self.world.table, ME.key(self.task_id))] == []
        assert self.effects.wrong == []


def quiet(make: NewWorld) -> Story:
    """A message, a run, a webhook."""
    world = make([Writer().agent])
    return Story(world, world.send("hello").id)


def canceled(make: NewWorld) -> Story:
    """The client cancels between the first and the second section."""
    world = make([Writer().agent])
    task_id = world.send("hello").id

    def cancel() -> None:
        with suppress(TaskNotCancelable):
            world.cancel(task_id)

    world.plan(2000, cancel)
    return Story(world, task_id, frozenset({TaskState.CANCELED}))


def stubborn(make: NewWorld) -> Story:
    """The webhook fails at first in every way that may pass."""
    world = make([Writer().agent])
    failures = [
        Outcome(status=500),
        Outcome(error=OutboundError.TIMEOUT),
        Outcome(status=429, retry_after="7"),
        Outcome(error=OutboundError.CONNECT),
        Outcome(status=503),
    ]
    world.receiver.answers = lambda tried: failures[tried] if tried < len(failures) else accepting(tried)
    return Story(world, world.send("hello").id)


def tell(world: World, request: SendMessageRequest) -> None:
    """The client says something, and may come too late."""
    with suppress(UnsupportedOperation):
        world.sent(request)


def talkative(make: NewWorld) -> Story:
    """The client says more while the task is running."""
    world = make([Writer().agent])
    task_id = world.send("hello").id
    for ms in (1000, 1700):
        world.plan(ms, partial(tell, world, world.request(f"and {ms}", push=False, task_id=task_id)))
    return Story(world, task_id)


def asked(make: NewWorld) -> Story:
    """The agent asks, and the client answers later."""
    world = make([Asker().agent])
    task_id = world.send("hello").id
    request = world.request("red", push=False, task_id=task_id)

    def answer() -> None:
        if world.get(task_id).status.state is TaskState.INPUT_REQUIRED:
            world.sent(request)
        else:
            world.plan(1000, answer)

    world.plan(3000, answer)
    return Story(world, task_id, texts=["hello in red"])


def watched(make: NewWorld) -> Story:
    """Webhooks are added while the task is running: one speaks 0.3, one wants the states and the result."""
    world = make([Writer().agent])
    task_id = world.send("hello").id
    key = ME.key(task_id)

    def add(url: str, version: ProtocolVersion, events: WebhookEvents) -> PushConfig:
        wanted = TaskPushNotificationConfig(url=url, id=events)
        return webhooks.add(world.service.webhooks(), key, "echo", wanted, version, events)

    world.plan(1700, partial(add, OTHER_HOOK, "0.3", "all"))
    world.plan(1700, partial(add, RESULTS_HOOK, "1.0", "results"))
    return Story(world, task_id, hooks=[(HOOK, "1.0"), (OTHER_HOOK, "0.3"), (RESULTS_HOOK, "1.0")])


def invited(make: NewWorld) -> Story:
    """A follow-up brings a webhook along."""
    world = make([Writer().agent])
    task_id = world.send("hello", push=False).id
    message = Message(message_id="follow", role=Role.USER, parts=(Part(text="tell me"),), task_id=task_id)
    request = SendMessageRequest(
        message=message,
        configuration=SendMessageConfiguration(
            return_immediately=True, task_push_notification_config=TaskPushNotificationConfig(url=HOOK)
        ),
    )
    world.plan(1700, partial(tell, world, request))
    return Story(world, task_id)


def handed_on(make: NewWorld) -> Story:
    """The platform's time is short: the work goes from run to run."""
    world = make([Writer().agent])
    world.run_ms = 22_000
    return Story(world, world.send("hello").id)


def acting(make: NewWorld) -> Story:
    """The agent does all that it may: progress, usage, values, nested, raised, cancelled and parallel steps."""
    return _played(make, ACTS)


def waiting(make: NewWorld) -> Story:
    """The agent waits: sleeps, time limits, a race with a step, a question that nobody answers, and tries of steps."""
    return _played(make, WAITS)


def paid(make: NewWorld) -> Story:
    """Another system tells the task twice, signed, that something is paid, and comes again while it is not answered."""
    urls: list[str] = []

    async def work(task: TaskContext) -> None:
        callback = await task.callback("paid", signed_with="github:payments")
        urls.append(callback.url)
        request = await callback.received(timeout_s=3600)
        await task.emit("receipt", f"paid {request.json()}", last=True)

    world = make([agent_of(work)])
    world.engine = replace(world.engine, read_secret=lambda _: "secret")
    task_id = world.send("hello").id
    signed = {"x-hub-signature-256": f"sha256={hmac.new(b'secret', b'20', sha256).hexdigest()}"}

    def tell() -> None:
        if not urls:
            return world.plan(1000, tell)
        with suppress(TaskNotFound):
            address = find_event_address(world.service, urls[0].rpartition("/")[2])
            assert store_event(world.service, address, signed, b"20")
        return None

    for ms in (3000, 5000):
        world.plan(ms, tell)
    return Story(world, task_id, texts=["paid 20"])


def bounded(make: NewWorld) -> Story:
    """The agent's budget allows two sections, one of which fails once, while it is paused; the third ends the task."""

    async def work(task: TaskContext) -> None:
        async def write(name: str) -> str:
            has_failed = any(one.startswith("@raised/") for one in world.table.read_steps(ME.key(task.id)))
            await task.record_usage("model", cost_usd=0.25)
            if name == "two" and not has_failed:
                raise OSError(name)
            return f"{name}: {task.text()}. "

        each = Step("write", retry=Retry(first_s=30))
        sections = await task.map(each, write, ["one", "two"], limit=1)
        await task.emit("document.md", "".join(sections), append=True)
        await task.map(each, write, ["three"], tolerate=1)

    world = make([replace(agent_of(work), budget=Budget(usd=0.75))])
    task_id = world.send("hello").id
    world.plan(10_000, lambda: world.table.add_pause(agent_pause("echo"), world.now))
    world.plan(200_000, lambda: world.table.remove_pause(agent_pause("echo")))
    return BoundedStory(world, task_id, frozenset({TaskState.FAILED}), texts=["".join(TEXTS[:2])])


class BoundedStory(Story):
    """A story whose budget is spent, and counted once."""

    def assert_artifacts(self, task: Task, events: list[Any]) -> None:
        super().assert_artifacts(task, events)
        budget: Any = (task.metadata or {})[METADATA_KEY]
        assert budget["spent"] == {"usd": 0.75, "tokens": 0, "steps": 3}


def halted(make: NewWorld) -> Story:
    """An operator pauses the agent while it works, and resumes it minutes later."""
    world = make([Writer().agent])
    task_id = world.send("hello").id
    world.plan(1000, lambda: world.table.add_pause(agent_pause("echo"), world.now))
    world.plan(200_000, lambda: world.table.remove_pause(agent_pause("echo")))
    return Story(world, task_id)


def raced(make: NewWorld) -> Story:
    """The agent waits for a moment, then races an event with a sleep twice: each wins once, and the winner stays."""
    urls: dict[str, str] = {}
    won: dict[str, set[str]] = {"first": set(), "second": set()}

    async def race(task: TaskContext, name: str, seconds: float) -> str:
        callback = await task.callback(name)
        urls[name] = callback.url
        waits = {
            asyncio.ensure_future(callback.received()): "event",
            asyncio.ensure_future(task.sleep(name, seconds)): "sleep",
        }
        done, others = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for other in others:
            other.cancel()
        (winner,) = (waits[wait] for wait in done)
        won[name].add(winner)
        return winner

    async def work(task: TaskContext) -> None:
        moment = await task.now("began") + timedelta(seconds=90)
        await task.sleep_until("moment", moment)
        assert datetime.fromtimestamp(world.now / 1000, UTC) >= moment
        for name, seconds in (("first", 200), ("second", 100_000)):
            is_last = name == "second"
            await task.emit("winners", f"{await race(task, name, seconds)} ", append=is_last, last=is_last)

    world = make([agent_of(work)])
    task_id = world.send("hello").id

    def tell() -> None:
        if "second" not in urls:
            return world.plan(1000, tell)
        with suppress(TaskNotFound):
            address = find_event_address(world.service, urls["second"].rpartition("/")[2])
            assert store_event(world.service, address, {}, b"20")
        return None

    world.plan(400_000, tell)
    return RacedStory(world, task_id, texts=["sleep ", "event "], won=won)


@dataclass
class RacedStory(Story):
    """A story of races, whose winners stay winners in each run."""

    won: dict[str, set[str]] = field(default_factory=dict)

    def assert_artifacts(self, task: Task, events: list[Any]) -> None:
        super().assert_artifacts(task, events)
        assert self.won == {"first": {"sleep"}, "second": {"event"}}


def told_late(make: NewWorld) -> Story:
    """An event for which the agent waits without a limit comes twice, hours after a step beside it has ended."""
    urls: list[str] = []

    async def work(task: TaskContext) -> None:
        callback = await task.callback("paid")
        urls.append(callback.url)
        received, packed = await asyncio.gather(callback.received(), task.step("pack", asyncio.sleep, 5, "packed"))
        await task.emit("receipt", f"{packed}, paid {received.json()}", last=True)

    world = make([agent_of(work)])
    task_id = world.send("hello").id

    def tell() -> None:
        with suppress(TaskNotFound):
            address = find_event_address(world.service, urls[0].rpartition("/")[2])
            assert store_event(world.service, address, {}, b"20")

    for ms in (4 * HOUR_MS, 4 * HOUR_MS + 5000):
        world.plan(ms, tell)
    return Story(world, task_id, texts=["packed, paid 20"])


def reminded(make: NewWorld) -> Story:
    """The client answers after the second reminder of a question with a time limit."""

    async def work(task: TaskContext) -> None:
        answer = await task.ask("Which colour?", timeout_s=3600, remind_s=100)
        await task.emit("coat", answer.text(), last=True)

    world = make([agent_of(work)])
    task_id = world.send("hello").id
    request = world.request("red", push=False, task_id=task_id)

    def answer() -> None:
        asked = {one.message_id for one in _questions(world, task_id)}
        if len(asked) < 3:
            world.plan(1000, answer)
        else:
            tell(world, request)

    world.plan(10_000, answer)
    return RemindedStory(world, task_id, texts=["red"])


def _questions(world: World, task_id: str) -> list[Message]:
    statuses = (event for event in world.events(task_id) if getattr(event, "state", "") == TaskState.INPUT_REQUIRED)
    return [event.message for event in statuses if event.message]


class RemindedStory(Story):
    """A story of a question that is asked three times, each time once."""

    def assert_artifacts(self, task: Task, events: list[Any]) -> None:
        super().assert_artifacts(task, events)
        questions = _questions(self.world, self.task_id)
        assert len({one.message_id for one in questions}) == 3


def given_up(make: NewWorld) -> Story:
    """The called agent takes too long: its caller stops to wait, and its task is canceled."""

    async def slow(task: TaskContext) -> str:
        await task.sleep("long", 10 * HOUR_MS / 1000)
        return "late"

    async def work(task: TaskContext) -> None:
        called = await task.call("ask", "slow", "go", timeout_s=300)
        assert isinstance(called, Task)
        await task.emit("answer", called.status.state, last=True)

    world = make([agent_of(work), agent_of(slow, "slow")])
    return GivenUpStory(world, world.send("hello", agent="echo").id, texts=[TaskState.CANCELED])


class GivenUpStory(Story):
    """A story whose called task has to be canceled, and is one task however often the call was made."""

    def assert_artifacts(self, task: Task, events: list[Any]) -> None:
        super().assert_artifacts(task, events)
        entries = self.world.table.list_page(ME, task.context_id, None, 0, 100)[0]
        called = [self.world.get(one.task, "slow").status.state for one in entries if one.agent == "slow"]
        assert called == [TaskState.CANCELED]


def _played(make: NewWorld, acts: Sequence[Operation]) -> Story:
    effects = Effects()

    async def work(task: TaskContext) -> str:
        own = effects_of_run(effects, world.table, ME.key(task.id))
        return str(await Player(task, own).play(acts))

    world = make([agent_of(work)])
    return PlayedStory(world, world.send("hello").id, effects=effects, acts=acts)


ACTS: Final = (
    Operation("say", "0", "a"),
    Operation("usage", "1", "a"),
    Operation("value", "2", "a"),
    Operation("step", "3", "3", 1, ((Operation("repeat", "3.0", "a"), Operation("usage", "3.1", "a")),)),
    Operation("flaky", "4", "a", 1, ((Operation("emit", "4.0", "a"), Operation("say", "4.1", "a")),)),
    Operation("stream", "5", "5"),
    Operation("cancel", "6", "6"),
    Operation("group", "7", "7"),
    Operation("first", "8", "8"),
    Operation("plan", "9", "9"),
    Operation("typed", "10", "10"),
    Operation("leave", "11", "11"),
)
WAITS: Final = (
    Operation("clock", "0", "a"),
    Operation("sleep", "1", "a"),
    Operation("overdue", "2", "2"),
    Operation("alarm", "3", "3"),
    Operation("timeout", "4", "4"),
    Operation("sleep", "5", "a", 20),
    Operation("retry", "6", "6", 7),
    Operation("map", "7", "7"),
)
JOURNEYS: Final[tuple[Journey, ...]] = (
    *(quiet, canceled, stubborn, talkative, asked, watched, invited, handed_on, acting, waiting, paid, bounded, halted),
    *(raced, told_late, reminded, given_up),
)


def assert_whole(story: Story) -> None:
    """Nothing is lost, nothing is doubled, and every webhook heard all of it, in order."""
    events, world = story.events(), story.world
    task = replay(story.task_id, events[0].incoming.message.context_id, events)
    assert task.status.state in story.ends
    story.assert_artifacts(task, events)
    messages = [event.incoming.message.message_id for event in events[1:] if getattr(event, "incoming", None)]
    assert len(messages) == len(set(messages)), "no message is taken in twice"
    for url, version in story.hooks:
        assert_told(story, events, url, version)
    assert world.receiver.crowded == []
    snapshot = world.table.read_head(ME.key(story.task_id))
    assert (snapshot.head.due_at, snapshot.head.lease_until) == (None, 0)


def assert_told(story: Story, events: list[Any], url: str, version: ProtocolVersion) -> None:
    """One webhook: a snapshot first, then each event once and in log order, the last one included."""
    key = ME.key(story.task_id)
    (config,) = [config for config in story.world.table.list_configs(key) if config.url == url]
    effects = story.world.receiver.effects()
    heard = [got.n for got in effects if got.notification_id == notification_id(key, config, got.n)]
    assert heard == sorted(set(heard)), "each event once, in log order"
    told = set(range(1, heard[0] + 1)) | set(heard)
    assert {event.n for event in events} - told <= may_be_left_out(events, version, config.events)
    assert heard[-1] == events[-1].n
    if config.events == "results":
        whole = replay(story.task_id, events[0].incoming.message.context_id, events)
        last = story.world.receiver.effects(config.config_id)[-1]
        assert last.body == {"task": json.loads(whole.json_bytes())}, "at the end the whole task"


def may_be_left_out(events: list[Any], version: ProtocolVersion, wanted: WebhookEvents) -> set[int]:
    """A ``working`` that says nothing and has a later status behind it; for 0.3 also unfinished chunks.

    A webhook that wants less than all gets no chunks.
    """
    chunks = [event for event in events if isinstance(event, ArtifactEvent)]
    plain = {
        event.n
        for event in events
        if event not in chunks and event.state is TaskState.WORKING and event.message is None
    }
    return plain | {event.n for event in chunks if wanted != "all" or (version == "0.3" and not event.last_chunk)}


def same(task: Task) -> Task:
    """The task without what may differ between two tellings: ids and times."""
    artifacts = tuple(artifact.model_copy(update={"artifact_id": ""}) for artifact in task.artifacts)
    return task.model_copy(
        update={
            "id": "",
            "context_id": "",
            "status": task.status.model_copy(update={"timestamp": 0}),
            "artifacts": artifacts,
        }
    )
