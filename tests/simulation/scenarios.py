"""What clients and agents do in a simulation. A seed picks some scenarios; each knows what must come of its task."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from a2a_serverless.adapters.dynamodb import items, keys
from a2a_serverless.domain.errors import A2AError, InvalidParams, Overloaded, TaskNotCancelable
from a2a_serverless.domain.states import INTERRUPTED, TERMINAL
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
from a2a_serverless.services import tasks, webhooks
from a2a_serverless.services.streams import StreamContext, follow_events
from tests.echo import agent_of
from tests.simulation.deployment import HOUR_MS, ME, MINUTE_MS, Simulation
from tests.simulation.scheduler import Killed
from tests.simulation.store import StoreDown

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.agent import TaskContext

T = TypeVar("T")

SECTIONS: Final = ("one", "two", "three")
CHUNKS: Final = 12
URL: Final = "https://trusted.example.com"
TORN_WEBHOOKS: Final = 2  # a Query that sees half of a registration may let another one in (docs/internals.md)
GIVE_UP_MS: Final = 4 * HOUR_MS


@dataclass
class Webhook:
    """A registration or deletion of a configuration, as its client saw it (ms); ``done`` is 0 without an answer."""

    task: str
    config_id: str
    url: str
    asked: int
    done: int = 0
    deletes: bool = False


@dataclass
class Expected:
    """What must come of a task: ``state``, and the text of its artifact (None: any)."""

    task: str
    agent: str
    state: TaskState
    text: str | None = None


@dataclass
class Story:
    """What clients have asked for and been told in one simulation."""

    expected: list[Expected] = field(default_factory=list)
    webhooks: list[Webhook] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=dict)
    effects: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class Play:
    """A simulation with its agents and clients."""

    def __init__(self, seed: int, trace: Callable[[str], None] | None = None) -> None:
        self.story = Story()
        names = ("writer", "emitter", "asker", "parent", "chatter", "slow")
        agents = [agent_of(getattr(self, f"_be_{name}"), name) for name in names]
        self.simulation = Simulation(seed, agents, hours=12, storm_ms=10 * MINUTE_MS, trace=trace)
        self.random = self.simulation.random
        self.names = [self.random.choice([*SCENARIOS]) for _ in range(self.random.choice((1, 2, 3)))]

    def run(self) -> None:
        """Plays the scenarios until nothing is left to do."""
        simulation = self.simulation
        simulation.start()
        for number, name in enumerate(self.names):
            scenario = partial(SCENARIOS[name], self)
            simulation.spawn(f"{name}-{number}", scenario, self.random.choice((0, 10, 1_000, 60_000)))
        simulation.scheduler.run()

    # ---- Agents

    async def _be_writer(self, task: TaskContext) -> None:
        fence = self._fence(task.id)
        for name in SECTIONS:
            text = await task.step(name, partial(self._write, task.id, fence), name)
            await task.emit("document", text, append=True, last=name == SECTIONS[-1])

    async def _write(self, task_id: str, fence: int, name: str) -> str:
        key = ME.key(task_id)
        raw = self.simulation.items.partitions[keys.task(key)]
        if keys.step(name) in raw and self._fence(task_id) == fence:
            self.story.wrong.append(f"step {name} of {task_id} runs again after its result was stored")
        await asyncio.sleep(self.random.choice((0.01, 0.5, 5, 40)))
        return f"{name}. "

    async def _be_emitter(self, task: TaskContext) -> None:
        """Emits in a step, other text each time that the step runs."""
        said = await task.step("draft", partial(self._draft, task))
        await task.emit("said", said, last=True)

    async def _draft(self, task: TaskContext) -> str:
        text = ""
        for number in range(4):
            await asyncio.sleep(self.random.choice((0.3, 1, 15)))
            piece = f"{number}:{self.random.randint(1000, 9999)} "
            text += piece
            await task.emit("document", piece, append=number > 0, last=number == 3)
        return text

    async def _be_asker(self, task: TaskContext) -> None:
        answer = await task.ask("Which colour?")
        await task.emit("document", answer.text(), last=True)

    async def _be_parent(self, task: TaskContext) -> None:
        child = await task.call("write", task.text(), "go")
        text = child.artifacts[0].text() if isinstance(child, Task) and child.artifacts else ""
        await task.emit("document", text, last=True)

    async def _be_chatter(self, task: TaskContext) -> None:
        for number in range(CHUNKS):
            await task.emit("document", f"{number} ", append=number > 0, last=number == CHUNKS - 1)
            await asyncio.sleep(2)

    async def _be_slow(self, task: TaskContext) -> None:
        for number in range(8):
            await task.step(f"wait {number}", self._wait, self.random.choice((10, 60)) if number < 0 else 60)

    async def _wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def _fence(self, task_id: str) -> int:
        raw = self.simulation.items.partitions[keys.task(ME.key(task_id))][keys.HEAD]
        return items.head_of(raw).fence

    # ---- What every client does

    def ask(self, call: Callable[[], T]) -> T | None:
        """Makes a request, again while its instance dies or the store fails; None if it is refused."""
        scheduler = self.simulation.scheduler
        while True:
            try:
                answer = call()
                self.simulation.faults.call()
            except (Killed, StoreDown, Overloaded):
                scheduler.current.is_dead = False
                scheduler.sleep(self.random.choice((100, 2_000, 30_000)))
            except A2AError as refused:
                scheduler.trace(f"is refused: {refused!r}")
                return None
            else:
                return answer

    def send(self, agent: str, text: str, url: str = "", task_id: str | None = None) -> str:
        """Sends a message and returns the id of its task."""
        message = Message(
            message_id=self.simulation.ids.new(), role=Role.USER, parts=(Part(text=text),), task_id=task_id
        )
        push = TaskPushNotificationConfig(url=url, id="first", token="t") if url else None
        configuration = SendMessageConfiguration(return_immediately=True, task_push_notification_config=push)
        request = SendMessageRequest(message=message, configuration=configuration)
        asked = self.simulation.scheduler.now
        task = self.ask(lambda: tasks.send(self.simulation.service, ME, agent, request, "1.0"))
        if not isinstance(task, Task):
            return task_id or ""
        if url:
            self.story.webhooks.append(Webhook(task.id, "first", url, asked, self.simulation.scheduler.now))
        self.story.sent[task.id] = self.story.sent.get(task.id, 0) + 1
        return task.id

    def wait(self, agent: str, task_id: str, states: frozenset[TaskState] = TERMINAL) -> TaskState | None:
        """Polls until the task is in one of the states; None if that takes ``GIVE_UP_MS``."""
        scheduler = self.simulation.scheduler
        until = scheduler.now + GIVE_UP_MS
        pause_ms = 500
        while scheduler.now < until:
            task = self.ask(lambda: tasks.get(self.simulation.service, ME, agent, task_id))
            if task and task.status.state in states:
                return task.status.state
            scheduler.sleep(pause_ms)
            pause_ms = min(pause_ms * 2, MINUTE_MS)
        return None

    def expect(self, task: str, agent: str, state: TaskState, text: str | None = None) -> None:
        """Says what must come of a task."""
        self.story.expected.append(Expected(task, agent, state, text))

    def register(self, agent: str, task_id: str, config_id: str, url: str) -> bool:
        """Registers a webhook once; a client that gets no answer does not know whether that is done."""
        simulation = self.simulation
        note = Webhook(task_id, config_id, url, simulation.scheduler.now)
        self.story.webhooks.append(note)
        wanted = TaskPushNotificationConfig(url=url, id=config_id)
        return self._change(
            note, lambda: webhooks.add(simulation.service.webhooks, ME.key(task_id), agent, wanted, "1.0")
        )

    def delete(self, agent: str, task_id: str, config_id: str) -> bool:
        """Deletes a webhook, likewise."""
        simulation = self.simulation
        note = Webhook(task_id, config_id, "", simulation.scheduler.now, deletes=True)
        self.story.webhooks.append(note)
        return self._change(
            note, lambda: webhooks.delete(simulation.service.webhooks, ME.key(task_id), agent, config_id)
        )

    def _change(self, note: Webhook, call: Callable[[], object]) -> bool:
        scheduler = self.simulation.scheduler
        try:
            call()
        except (Killed, StoreDown, Overloaded):
            scheduler.current.is_dead = False
            return False
        except InvalidParams:
            self.story.webhooks.remove(note)
            return False
        note.done = scheduler.now
        scheduler.trace(f"{'deleted' if note.deletes else 'registered'} {note.task} {note.config_id} {note.url}")
        return True

    # ---- Scenarios

    def _written(self) -> None:
        """A document in three steps, with a webhook, read as a stream by a client that is cut off."""
        task_id = self.send("writer", "go", f"{URL}/a")
        self.expect(task_id, "writer", TaskState.COMPLETED, "one. two. three. ")
        self._follow(task_id)

    def _follow(self, task_id: str) -> None:
        """Reads every event by streams, each from where the one before was cut off."""
        got: list[int] = []

        async def in_turn(call: Callable[[], T]) -> T:
            return call()

        async def read() -> None:
            until = self.simulation.scheduler.now + self.random.choice((1_000, 20_000))
            stream = StreamContext(self.simulation.table, self.simulation.clock, until, in_turn)
            async for item in follow_events(stream, ME.key(task_id), got[-1] if got else 0, TERMINAL):
                if item and item.n:
                    got.append(item.n)
                    if self.random.random() < 0.1:
                        return

        for _ in range(60):
            self.ask(lambda: self.simulation.play(read()))
        if got != [*range(1, len(got) + 1)]:
            self.story.wrong.append(f"a stream of {task_id} brought {got}")

    def _emitted(self) -> None:
        task_id = self.send("emitter", "go", f"{URL}/a")
        self.expect(task_id, "emitter", TaskState.COMPLETED, "=said")

    def _asked(self) -> None:
        """A question, and its answer, twice under one message id if the first is not answered."""
        task_id = self.send("asker", "go", f"{URL}/a")
        if self.wait("asker", task_id, INTERRUPTED):
            self.send("asker", "red", task_id=task_id)
        self.expect(task_id, "asker", TaskState.COMPLETED, "red")

    def _called(self) -> None:
        """A parent and its child, which says much."""
        child = self.random.choice(("writer", "chatter"))
        task_id = self.send("parent", child, f"{URL}/a")
        text = "one. two. three. " if child == "writer" else "".join(f"{number} " for number in range(CHUNKS))
        self.expect(task_id, "parent", TaskState.COMPLETED, text)

    def _canceled(self) -> None:
        """A parent that is canceled at any moment, with a child that works for long."""
        task_id = self.send("parent", "slow")
        self.simulation.scheduler.sleep(self.random.choice((5, 20, 40, 60, 80, 120, 1_000, 5_000, 60_000)))
        self.ask(lambda: self._cancel("parent", task_id))
        self.expect(task_id, "parent", TaskState.CANCELED)

    def _cancel(self, agent: str, task_id: str) -> None:
        try:
            tasks.cancel(self.simulation.service, ME, agent, task_id)
        except TaskNotCancelable:
            return

    def _talked_to(self) -> None:
        """A long task whose client sends it many further messages."""
        task_id = self.send("slow", "go")
        for _ in range(6):
            self.simulation.scheduler.sleep(self.random.choice((10, 1_000, 5_000)))
            self.send("slow", "more", task_id=task_id)
        self.expect(task_id, "slow", TaskState.COMPLETED)

    def _rehooked(self) -> None:
        """Two clients register, replace and delete one webhook of a task that waits."""
        task_id = self.send("asker", "go", f"{URL}/a")
        self.wait("asker", task_id, INTERRUPTED)
        for number in range(2):
            self.simulation.spawn(f"client-{number}", partial(self._change_hook, task_id, number))
        self.simulation.scheduler.sleep(15 * MINUTE_MS)
        self.send("asker", "red", task_id=task_id)
        self.expect(task_id, "asker", TaskState.COMPLETED, "red")

    def _change_hook(self, task_id: str, client: int) -> None:
        for number in range(3):
            self.simulation.scheduler.sleep(self.random.choice((1, 20, 100, 1_000)))
            if self.random.random() < 0.4:
                self.delete("asker", task_id, "first")
            else:
                self.register("asker", task_id, "first", f"{URL}/{client}/{number}")

    def _crowded(self) -> None:
        """Three clients register webhooks at once, more than a task may have."""
        task_id = self.send("asker", "go")
        for number in range(18):
            self.ask(lambda number=number: self.register("asker", task_id, f"{number}", f"{URL}/{number}"))  # type: ignore[misc]
        for number in range(18, 24):
            register = partial(self.register, "asker", task_id, f"{number}", f"{URL}/{number}")
            self.simulation.spawn(f"client-{number}", register, self.random.choice((0, 0, 5, 20)))
        self.simulation.scheduler.sleep(MINUTE_MS)
        count = len(self.ask(lambda: self.simulation.table.list_configs(ME.key(task_id))) or ())
        if count > webhooks.CONFIGS_PER_TASK + TORN_WEBHOOKS:
            self.story.wrong.append(f"{task_id} has {count} webhooks")
        self.ask(lambda: self._cancel("asker", task_id))
        self.expect(task_id, "asker", TaskState.CANCELED)


SCENARIOS: Final[dict[str, Callable[[Play], None]]] = {
    "written": Play._written,  # noqa: SLF001 - its own
    "emitted": Play._emitted,  # noqa: SLF001
    "asked": Play._asked,  # noqa: SLF001
    "called": Play._called,  # noqa: SLF001
    "canceled": Play._canceled,  # noqa: SLF001
    "talked to": Play._talked_to,  # noqa: SLF001
    "rehooked": Play._rehooked,  # noqa: SLF001
    "crowded": Play._crowded,  # noqa: SLF001
}
