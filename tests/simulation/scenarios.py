"""What clients and agents do in a simulation. A seed picks some scenarios; each knows what must come of its task."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeVar

from a2a_serverless.domain.access import Quota
from a2a_serverless.domain.current_task import run_fields
from a2a_serverless.domain.errors import A2AError, InvalidParams, Overloaded, TaskNotCancelable
from a2a_serverless.domain.head import LOST_LIMIT
from a2a_serverless.domain.key_ring import RotationTimes
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
from a2a_serverless.services.callbacks import find_event_address, store_event
from a2a_serverless.services.key_rotation import KeyRingError, KeyRotation, ensure_ring, revoke_key, rotate_when_old
from a2a_serverless.services.publish import CardPublisher
from a2a_serverless.services.rate_limiter import RateLimiter
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.streams import StreamContext, follow_events
from a2a_serverless.store import items, keys
from a2a_serverless.store.keys import SHARDS
from a2a_serverless.store.stores import OwnerStore, agent_pause, owner_pause
from a2a_serverless.store.table import Put
from a2a_serverless.testing.memory import MemoryTable
from tests.echo import agent_of
from tests.simulated import NEWER, Killed
from tests.simulation.deployment import BASE_URL, HOUR_MS, ME, MINUTE_MS, RUN_MS, Simulation
from tests.simulation.players import Players
from tests.simulation.store import StoreDown

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from a2a_serverless.domain.task_context import Callback, TaskContext
    from a2a_serverless.protocol.versions import ProtocolVersion
    from a2a_serverless.store.items import Item

T = TypeVar("T")

ALONE: Final = "told"
"""It makes all instances slow: a task of another scenario would go from run to run more often than is promised."""
ROUND: Final = 8
"""So many seeds in a row play every scenario."""
SECTIONS: Final = ("one", "two", "three")
CHUNKS: Final = 24
QUICK_CALLS: Final = 6
URL: Final = "https://trusted.example.com"
LONGEST_RUN_MS: Final = 15 * MINUTE_MS
TORN_WEBHOOKS: Final = 2  # a Query that sees half of a registration may let another one in (docs/internals.md)
WAITS: Final = RotationTimes(publish_ms=62 * MINUTE_MS, retire_ms=72 * MINUTE_MS)
GIVE_UP_MS: Final = 4 * HOUR_MS
NAP_S: Final = 300
OFTEN: Final = 0.03
"""How likely a call takes long, where many do."""
CLOCKS_MS: Final = 10_000
"""More than two clocks may differ, with the calls around a write."""


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
    revoked: set[str] = field(default_factory=set)
    streams: int = 0
    urls: dict[str, str] = field(default_factory=dict)
    winners: dict[str, str] = field(default_factory=dict)


class Play:
    """A simulation with its agents and clients, of ``scenarios`` or of those of the seed."""

    def __init__(
        self, seed: int, trace: Callable[[str], None] | None = None, scenarios: Sequence[str] | None = None
    ) -> None:
        self.story = Story()
        names = ["writer", "emitter", "asker", "parent", "quick", "chatter", "hasty", "slow", "endless", "poison"]
        names += ["paid", "racer", "reminder"]
        self.players = Players(self)
        agents = [*(agent_of(getattr(self, f"_be_{name}"), name) for name in names), *self.players.agents()]
        chance = Random(-seed)  # noqa: S311 - a seed, not a secret
        self.names = scenarios_of(seed) if scenarios is None else scenarios
        hours = 2 if {*self.names} & {"endless", "poison"} else 12
        self.simulation = Simulation(seed, agents, hours, storm_ms=10 * MINUTE_MS, trace=trace)
        self.simulation.run_ms = chance.choice((RUN_MS, LONGEST_RUN_MS))
        self.random = self.simulation.random

    def run(self) -> None:
        """Plays the scenarios until nothing is left to do."""
        simulation = self.simulation
        simulation.start()
        for number, name in enumerate(self.names):
            scenario = partial(SCENARIOS[name], self)
            simulation.spawn(f"{name}-{number}", scenario, self.random.choice((0, 10, 1_000, 60_000)))
        simulation.run_all()

    # ---- Agents

    async def _be_writer(self, task: TaskContext) -> None:
        read = {*self._items_of(task.id)}
        for name in SECTIONS:
            text = await task.step(name, partial(self._write, task.id, read), name)
            await task.emit("document", text, append=True, last=name == SECTIONS[-1])

    async def _write(self, task_id: str, read: set[str], name: str) -> str:
        """``read`` are the items of the task at the beginning of the run."""
        is_current = items.head_of(self._items_of(task_id)[keys.HEAD]).fence == run_fields()["run"]
        if keys.step(name) in read and is_current:
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
        text = ""
        for number in range(QUICK_CALLS if task.text() == "quick" else 1):
            call = task.call(f"write {number}", task.text(), "go")
            child = await (self._call_beside(task, number, call) if task.text() == "quick" else call)
            text += child.artifacts[0].text() if isinstance(child, Task) and child.artifacts else ""
        await task.emit("document", text, last=True)

    async def _call_beside(self, task: TaskContext, number: int, call: Coroutine[Any, Any, T]) -> T:
        """The result of a call beside a step, after which the task is suspended."""
        work = partial(self._wait, 0.7 + self.random.random() * 0.8)
        calling = asyncio.ensure_future(call)
        await asyncio.gather(calling, task.step(f"beside {number}", work))
        return calling.result()

    async def _be_quick(self, task: TaskContext) -> None:
        """Ends when its caller is about to be suspended."""
        await asyncio.sleep(0.7 + self.random.random() * 0.4)
        await task.emit("document", "q", last=True)

    async def _be_chatter(self, task: TaskContext) -> None:
        for number in range(CHUNKS):
            await task.emit("document", f"{number} ", append=number > 0, last=number == CHUNKS - 1)
            await task.report_progress(f"{number} of {CHUNKS}")
            await asyncio.sleep(2)

    async def _be_hasty(self, task: TaskContext) -> None:
        for number in range(30):
            await task.emit("document", f"{number} ", append=number > 0)
            await asyncio.sleep(0.3)

    async def _be_slow(self, task: TaskContext) -> None:
        for number in range(10):
            await task.step(f"wait {number}", self._wait, 60)

    async def _wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _be_endless(self, task: TaskContext) -> None:
        await task.step("endless", self._wait, 1_000_000)

    async def _be_poison(self, task: TaskContext) -> None:
        del task
        self.simulation.faults.kill()

    async def _be_paid(self, task: TaskContext) -> None:
        """Waits for a moment, then for an event beside a step, without a limit, then for a time limit to pass."""
        await task.sleep_until("moment", await task.now("began") + timedelta(seconds=30))
        paid = await self._callback(task)
        received, _ = await asyncio.gather(paid.received(), task.step("beside", self._wait, 3))
        try:
            async with task.timeout("limit", 1200):
                await task.sleep("long", HOUR_MS / 1000)
        except TimeoutError:
            await task.emit("document", received.body.decode(), last=True)

    async def _be_racer(self, task: TaskContext) -> None:
        """A race of an event and a sleep. Who has won stays the winner."""
        paid = await self._callback(task)
        waits = {
            asyncio.ensure_future(paid.received()): "event",
            asyncio.ensure_future(task.sleep("nap", NAP_S)): "sleep",
        }
        done, others = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for other in others:
            other.cancel()
        (winner,) = (waits[wait] for wait in done)
        if self.story.winners.setdefault(task.id, winner) != winner:
            self.story.wrong.append(f"the race of {task.id} has two winners")
        await task.emit("document", winner, last=True)

    async def _callback(self, task: TaskContext) -> Callback:
        callback = await task.callback("paid")
        if self.story.urls.setdefault(task.id, callback.url) != callback.url:
            self.story.wrong.append(f"{task.id} has two addresses")
        return callback

    async def _be_reminder(self, task: TaskContext) -> None:
        """Asks three times, every two minutes, and takes an answer until six minutes have passed."""
        try:
            answer = (await task.ask("Which colour?", timeout_s=370, remind_s=120)).text()
        except TimeoutError:
            answer = "none"
        await task.emit("document", answer, last=True)

    def _items_of(self, task_id: str) -> dict[str, Item]:
        rows: dict[str, Item] = self.simulation.items.partitions[keys.task(ME.key(task_id))]
        return rows

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

    def send(self, agent: str, text: str, url: str = "", task_id: str | None = None, *, waits: bool = False) -> str:
        """Sends a message and returns the id of its task; ``waits`` for its end, too, for a while."""
        message = Message(
            message_id=self.simulation.ids.new(), role=Role.USER, parts=(Part(text=text),), task_id=task_id
        )
        push = TaskPushNotificationConfig(url=url, id="first", token="t") if url else None
        configuration = SendMessageConfiguration(return_immediately=not waits, task_push_notification_config=push)
        request = SendMessageRequest(message=message, configuration=configuration)
        asked = self.simulation.scheduler.now
        task = self.ask(lambda: tasks.send(self.simulation.service, RequestContext(ME, agent, "1.0"), request))
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
            task = self.ask(lambda: tasks.get(self.simulation.service, RequestContext(ME, agent, "1.0"), task_id))
            if task and task.status.state in states:
                return task.status.state
            scheduler.sleep(pause_ms)
            pause_ms = min(pause_ms * 2, MINUTE_MS)
        return None

    def may_fail(self, *, calls: bool) -> bool:
        """Whether a task may have failed: its workers died too often, or each try of a call failed."""
        faults = self.simulation.faults
        return (calls and faults.is_outage) or faults.deaths >= LOST_LIMIT

    def expect(self, task: str, agent: str, state: TaskState, text: str | None = None) -> None:
        """Says what must come of a task."""
        self.story.expected.append(Expected(task, agent, state, text))

    def register(self, agent: str, task_id: str, config_id: str, url: str, version: ProtocolVersion = "1.0") -> bool:
        """Registers a webhook once; a client that gets no answer does not know whether that is done."""
        simulation = self.simulation
        note = Webhook(task_id, config_id, url, simulation.scheduler.now)
        self.story.webhooks.append(note)
        wanted = TaskPushNotificationConfig(url=url, id=config_id)
        return self._change(
            note, lambda: webhooks.add(simulation.service.webhooks(), ME.key(task_id), agent, wanted, version)
        )

    def delete(self, agent: str, task_id: str, config_id: str) -> bool:
        """Deletes a webhook, likewise."""
        simulation = self.simulation
        note = Webhook(task_id, config_id, "", simulation.scheduler.now, deletes=True)
        self.story.webhooks.append(note)
        return self._change(
            note, lambda: webhooks.delete(simulation.service.webhooks(), ME.key(task_id), agent, config_id)
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
        """Tasks whose step emits."""
        for _ in range(4):
            self.expect(self.send("emitter", "go"), "emitter", TaskState.COMPLETED, "=said")

    def _asked(self) -> None:
        """A question, and its answer, twice under one message id if the first is not answered."""
        task_id = self.send("asker", "go", f"{URL}/a")
        if self.wait("asker", task_id, INTERRUPTED):
            self.send("asker", "red", task_id=task_id)
        self.expect(task_id, "asker", TaskState.COMPLETED, "red")

    def _called(self) -> None:
        """A parent and its child, which says much."""
        says = {"writer": "one. two. three. ", "chatter": "".join(f"{number} " for number in range(CHUNKS))}
        says |= {"quick": "q" * QUICK_CALLS}
        child = self.random.choice([*says])
        task_id = self.send("parent", child, f"{URL}/a")
        self.expect(task_id, "parent", TaskState.COMPLETED, says[child])

    def _told(self) -> None:
        """A webhook that is told much, by notifiers that are often slow."""
        weather = self.simulation.faults.weather
        weather.stall = max(weather.stall, OFTEN)
        task_id = self.send("chatter", "go", f"{URL}/a")
        self.expect(task_id, "chatter", TaskState.COMPLETED)

    def _paused(self) -> None:
        """A document, while an operator pauses its agent, or all of its owner's tasks, for some time."""
        table, sleep = self.simulation.service.log, self.simulation.scheduler.sleep
        name = self.random.choice((agent_pause("writer"), owner_pause(ME)))
        task_id = self.send("writer", "go", f"{URL}/a")
        sleep(self.random.choice((5, 1_000, 30_000)))
        self.ask(lambda: table.add_pause(name, self.simulation.clock.now()))  # type: ignore[attr-defined]
        sleep(self.random.choice((5_000, MINUTE_MS, 20 * MINUTE_MS)))
        while name in self.simulation.table.calm().list_pauses():
            self.ask(lambda: table.remove_pause(name))  # type: ignore[attr-defined]
            sleep(1_000)
        self.expect(task_id, "writer", TaskState.COMPLETED, "one. two. three. ")

    def _paid(self) -> None:
        """Another system sends what a task waits for, once more and then something else, whenever it likes."""
        task_id = self.send("paid", "go", f"{URL}/a")
        self._post_event(task_id, "20")
        self.expect(task_id, "paid", TaskState.COMPLETED, "20")

    def _raced(self) -> None:
        """An event that comes before, about or after the time that it races with."""
        task_id = self.send("racer", "go", f"{URL}/a")
        began = self.simulation.scheduler.now
        taken = self._post_event(task_id, "20")
        is_early = taken and taken < began + NAP_S * 1000 - CLOCKS_MS
        self.expect(task_id, "racer", TaskState.COMPLETED, "event" if is_early else None)

    def _post_event(self, task_id: str, body: str) -> int:
        """Posts an event twice, and then another; returns by when the first was taken (ms), 0 if none was."""
        scheduler, taken = self.simulation.scheduler, 0
        while task_id and task_id not in self.story.urls:
            if scheduler.now > self.simulation.faults.weather.until + HOUR_MS:
                return 0
            scheduler.sleep(1_000)
        for text in (body, body, "other"):
            scheduler.sleep(self.random.choice((10, 2_000, 30_000, NAP_S * 1000)))
            if self.ask(partial(self._store_event, task_id, text)):
                taken = taken or scheduler.now
                if text == "other":
                    self.story.wrong.append(f"{task_id} took two events")
        return taken

    def _store_event(self, task_id: str, body: str) -> bool:
        service = self.simulation.service
        address = find_event_address(service, self.story.urls[task_id].rpartition("/")[2])
        return store_event(service, address, {}, body.encode())

    def _reminded(self) -> None:
        """A question with reminders, which is answered before or after one of them, or too late."""
        task_id = self.send("reminder", "go", f"{URL}/a")
        if self.wait("reminder", task_id, INTERRUPTED):
            began, late_ms = self.simulation.scheduler.now, self.random.choice((0, 60_000, 200_000, 900_000))
            self.simulation.scheduler.sleep(late_ms)
            self.send("reminder", "red", task_id=task_id)
            is_early = self.simulation.scheduler.now < began + 200_000  # it has waited for a minute at most when seen
            text = "red" if is_early else "none" if late_ms > 800_000 else None
            self.expect(task_id, "reminder", TaskState.COMPLETED, text)

    def _canceled(self) -> None:
        """A parent that is canceled at any moment, with a child that works for long."""
        task_id = self.send("parent", "slow")
        self.simulation.scheduler.sleep(self.random.choice((5, 20, 40, 60, 80, 120, 1_000, 5_000, 60_000)))
        self.ask(lambda: self._cancel("parent", task_id))
        self.expect(task_id, "parent", TaskState.CANCELED)

    def _hasty(self) -> None:
        """Tasks that are canceled while they emit."""
        ids = [self.send("hasty", "go") for _ in range(4)]
        for task_id in ids:
            self.simulation.scheduler.sleep(self.random.choice((300, 900, 1_500)))
            self.ask(lambda task_id=task_id: self._cancel("hasty", task_id))  # type: ignore[misc]
            self.expect(task_id, "hasty", TaskState.CANCELED)

    def _cancel(self, agent: str, task_id: str) -> None:
        try:
            tasks.cancel(self.simulation.service, RequestContext(ME, agent, "1.0"), task_id)
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
        for number in range(2):
            self.simulation.scheduler.sleep(self.random.choice((1, 10, 20, 40)))
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

    def _endless(self) -> None:
        """A step that never ends."""
        self.expect(self.send("endless", "go"), "endless", TaskState.FAILED)

    def _poison(self) -> None:
        """A task that kills each of its workers."""
        self.expect(self.send("poison", "go"), "poison", TaskState.FAILED)

    def _unreadable(self) -> None:
        """Tasks beside due items that this release cannot read, in every shard."""
        key, simulation = ME.key("newer"), self.simulation
        for number in range(3 * SHARDS):
            due = {"due_shard": {"S": str(number % SHARDS)}, "due_at": {"S": keys.moment(simulation.scheduler.now)}}
            row = items.make_item(keys.task(key), keys.cursor(f"{number}"), None, {**due, "v": {"N": str(NEWER)}})
            MemoryTable.write(simulation.items, Put(row))
        for _ in range(3):
            self.expect(self.send("writer", "go"), "writer", TaskState.COMPLETED, "one. two. three. ")

    def _rotated(self) -> None:
        """Two rotators make the first key ring and change it, while webhooks are signed."""
        for number in range(2):
            self.simulation.spawn(f"rotator-{number}", partial(self._rotate, number), self.random.choice((0, 5, 20)))
        self._asked()

    def _rotate(self, number: int) -> None:
        simulation = self.simulation
        publisher = CardPublisher(simulation.table, simulation.clock, {}, BASE_URL)
        rotation = KeyRotation(simulation.rings, simulation.keys, publisher, WAITS, 30 * 24 * HOUR_MS)
        until = simulation.faults.weather.until
        if self._rotated_by(lambda: ensure_ring(rotation)):
            simulation.published = True
        for _ in range(3):
            simulation.scheduler.sleep(self.random.choice((0, 10, 100, MINUTE_MS)))
            if ring := simulation.rings.ring:
                kid = ring.current.kid if number else ring.next.kid
                simulation.revoked.add(kid)  # what signs with it until its cache ends is no surprise
                if self._rotated_by(partial(revoke_key, rotation, kid)):
                    self.story.revoked.add(kid)
        simulation.scheduler.sleep(max(0, until - simulation.scheduler.now) + HOUR_MS)
        self._rotated_by(lambda: rotate_when_old(rotation))
        if listed := self.story.revoked & {*simulation.kids()}:
            self.story.wrong.append(f"{listed} were revoked and are published")

    def _rotated_by(self, call: Callable[[], object]) -> bool:
        """Invokes the rotator, once; False if that failed."""
        try:
            call()
        except (Killed, StoreDown, KeyRingError):
            self.simulation.scheduler.current.is_dead = False
            return False
        return True

    def _streamed(self) -> None:
        """Four clients open streams at once, of which an owner may have two."""
        for number in range(4):
            self.simulation.spawn(f"stream-{number}", self._open_stream, self.random.choice((0, 0, 5, 10)))

    def _open_stream(self) -> None:
        simulation = self.simulation
        owners = OwnerStore(simulation.items)
        limits = RateLimiter(owners, simulation.clock, simulation.ids, Quota(streams=2))
        for _ in range(3):
            try:
                slot = limits.open_stream(ME, simulation.scheduler.now + MINUTE_MS)
            except (Killed, StoreDown, A2AError):
                simulation.scheduler.current.is_dead = False
            else:
                self.story.streams += 1
                if self.story.streams > 2:
                    self.story.wrong.append(f"{self.story.streams} streams of an owner are open")
                simulation.scheduler.sleep(100)
                self.story.streams -= 1
                self.ask(lambda slot=slot: slot and slot.release())  # type: ignore[misc]
            simulation.scheduler.sleep(self.random.choice((10, 1_000)))


def scenarios_of(seed: int) -> list[str]:
    """The scenarios of a seed, two or three of them. The seeds of a round, from 1 to ``ROUND``, play each one once.

    ``ALONE`` is not among them.
    """
    deal, place = divmod(seed - 1, ROUND)
    names = [name for name in SCENARIOS if name != ALONE]
    Random(deal).shuffle(names)  # noqa: S311 - a seed, not a secret
    return names[place::ROUND]


SCENARIOS: Final[dict[str, Callable[[Play], None]]] = {
    "written": Play._written,  # noqa: SLF001 - its own
    "emitted": Play._emitted,  # noqa: SLF001
    "asked": Play._asked,  # noqa: SLF001
    "called": Play._called,  # noqa: SLF001
    "paused": Play._paused,  # noqa: SLF001
    "told": Play._told,  # noqa: SLF001
    "canceled": Play._canceled,  # noqa: SLF001
    "hasty": Play._hasty,  # noqa: SLF001
    "talked to": Play._talked_to,  # noqa: SLF001
    "rehooked": Play._rehooked,  # noqa: SLF001
    "crowded": Play._crowded,  # noqa: SLF001
    "endless": Play._endless,  # noqa: SLF001
    "poison": Play._poison,  # noqa: SLF001
    "paid": Play._paid,  # noqa: SLF001
    "raced": Play._raced,  # noqa: SLF001
    "reminded": Play._reminded,  # noqa: SLF001
    "unreadable": Play._unreadable,  # noqa: SLF001
    "rotated": Play._rotated,  # noqa: SLF001
    "streamed": Play._streamed,  # noqa: SLF001
    "played": lambda play: play.players.played(),
    "inline": lambda play: play.players.inline(),
    "erased": lambda play: play.players.erased(),
}
