"""The worst single request of each kind: what it may cost at the largest tasks of an owner.

Each of these has 600 results of 20 KB, 6 MB of text and a history of 1 MB. The requests go through the HTTP
application. A call is one of the table, the bucket or the queue; a query of the table reads pages as DynamoDB does, and
whole items. ``tests/costs/test_worst_requests.py`` checks the bounds, ``bench/worst_requests.py`` shows the table.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl

from a2a_serverless.http.messages import HttpRequest
from a2a_serverless.testing.memory import MemoryBlobStore, MemoryCallbackVerifier, MemoryStores, MemoryTable
from a2a_serverless_tools.operators.erasure import ErasureScope, ErasureService, erase
from a2a_serverless_tools.operators.erasure_store import ErasureStore
from tests.costs.budgets import Far
from tests.costs.counting import TRUSTING, CountedQueues
from tests.doubles import MemoryApiKeyStore
from tests.echo import agent_of
from tests.edge import Edge
from tests.isolation.matrix import As
from tests.world import HOOK, ME, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.protocol.v1 import Message, Task, TaskPushNotificationConfig
    from a2a_serverless.store.items import Item, WriteConflict
    from tests.edge import Frames

STEPS: Final = 600
STEP_BYTES: Final = 20_000
CHUNKS: Final = 60
CHUNK_BYTES: Final = 100_000
MESSAGES: Final = 100
MESSAGE_BYTES: Final = 10_000
PAGE_BYTES: Final = 1_000_000
KB: Final = 1000
CHUNK: Final = 32 * 1024
BASE_URL: Final = "https://api.example.com"


class Used(NamedTuple):
    """Calls; items that were read; kilobytes read and written."""

    calls: float
    items: float
    read: float
    written: float


class MeteredTable(MemoryTable):
    """Counts calls, items and bytes. ``pages`` has the most items that a query of each partition read in one call."""

    used: Counter[str]
    pages: Counter[str]

    def get(self, pk: str, sk: str, *, consistent: bool = True) -> Item | None:
        item = super().get(pk, sk, consistent=consistent)
        self._count([item] if item else [])
        return item

    def has_any(self, pk: str, *sks: str) -> bool:
        found = [item for sk in sks if (item := super(MeteredTable, self).get(pk, sk))]
        self._count(found)
        return bool(found)

    def query_range(self, pk: str, first: str, last: str, **how: Any) -> Iterator[Item]:
        for page in _pages(super().query_range(pk, first, last, **how)):
            self._count(page)
            self.pages[pk] = max(self.pages[pk], len(page))
            yield from page

    def query_newest(self, *what: Any) -> list[Item]:
        return self._count(super().query_newest(*what))

    def query_index(self, *what: Any) -> list[Item]:
        return self._count(super().query_index(*what))

    def list_keys(self, pk: str, prefix: str = "") -> list[Item]:
        for _ in self.query_prefix(pk, prefix):
            pass  # DynamoDB reads whole items for their keys
        return super().list_keys(pk, prefix)

    def erase(self, places: Iterable[Item]) -> int:
        count = super().erase(places)
        self.used["calls"] += count
        return count

    def write(self, *actions: Any) -> WriteConflict | None:
        items = (getattr(one, "item", None) or getattr(one, "after", None) or one.where for one in actions)
        self.used.update({"calls": 1, "written": sum(map(_size, items))})
        return super().write(*actions)

    def _count(self, items: list[Item]) -> list[Item]:
        self.used.update({"calls": 1, "items": len(items), "read": sum(map(_size, items))})
        return items


def _pages(items: Iterable[Item]) -> Iterator[list[Item]]:
    """The items in pages of a megabyte; there is always a page."""
    page: list[Item] = []
    size, count = 0, 0
    for item in items:
        page.append(item)
        size += _size(item)
        if size >= PAGE_BYTES:
            yield page
            count += 1
            page, size = [], 0
    if page or not count:
        yield page


def _size(item: Item) -> int:
    return sum(len(name) + len(str(next(iter(value.values())))) for name, value in item.items())


class MeteredBlobs(MemoryBlobStore):
    """A bucket that counts calls and bytes."""

    used: Counter[str]

    def put(self, name: str, content: bytes) -> None:
        self.used.update({"calls": 1, "written": len(content)})
        super().put(name, content)

    def get(self, name: str, size: int | None = None) -> bytes:
        content = super().get(name, size)
        self.used.update({"calls": 1, "read": len(content)})
        return content

    def size(self, name: str) -> int | None:
        self.used["calls"] += 1
        return super().size(name)

    def delete(self, name: str) -> None:
        self.used["calls"] += 1
        super().delete(name)


class MeteredStores(MemoryStores):
    items: MeteredTable
    blobs: MeteredBlobs
    make_table = MeteredTable

    def make_blobs(self) -> MeteredBlobs:
        return MeteredBlobs()


class Peer(Far):
    """An agent elsewhere whose task never ends. ``callback`` is where it has to say so."""

    callback: TaskPushNotificationConfig

    def send(self, caller: Caller, agent: str, message: Message, callback: TaskPushNotificationConfig) -> Task:
        self.callback = callback
        return super().send(caller, agent, message, callback)


async def work(task: TaskContext) -> None:
    """Makes a large task; then asks, calls, waits for an event, works on, or fails, as the message says."""
    for number in range(MESSAGES):
        await task.report_progress(f"{number} ".ljust(MESSAGE_BYTES, "."))
        await asyncio.sleep(1)
    for _ in range(CHUNKS):
        await task.emit("novel.txt", "x" * CHUNK_BYTES, append=True)
    for number in range(STEPS):
        await task.step(f"step {number}", _result)
    match task.text():
        case "ask":
            await task.ask("Go on?")
        case "call":
            await task.call("call", "far", "hello")
        case "wait":
            callback = await task.callback("event")
            await task.emit("url", callback.url)
            await callback.received()
        case "fail":
            raise ValueError


async def _result() -> str:
    return "y" * STEP_BYTES


class Scene:
    """A world with a large task for each word of ``work``. ``ask`` counts what a request uses."""

    def __init__(self) -> None:
        self.used, self.pages = Counter[str](), Counter[str]()

        def table(now: Callable[[], int]) -> MeteredStores:
            made = MeteredStores(now)
            made.items.used = made.blobs.used = self.used
            made.items.pages = self.pages
            return made

        blobs = MeteredBlobs()
        blobs.used = self.used
        world = World(
            [agent_of(work)],
            table=table,
            between=lambda queues: CountedQueues(queues, self.used),
            policy=TRUSTING,
            blobs=blobs,
        )
        self.world, self.peer = world, Peer(world)
        world.engine = replace(world.engine, registry=replace(world.registry, remote_agents=self.peer))
        self.tasks = {word: world.send(word, push=False).id for word in ("ask", "call", "wait", "fail", "end")}
        world.wait(10 * 60_000)
        self.event = next(one for one in world.get(self.tasks["wait"]).artifacts if one.name == "url").text()
        self.edge = Edge(world.service, world.engine.agents, As(ME), MemoryCallbackVerifier(), 60)

    def request(self, verb: str, path: str, body: str, headers: Mapping[str, str] = {}) -> int:
        """Makes a request; of a stream it reads the first frame. Returns the status."""
        words = {"a2a-version": "1.0", "content-type": "application/json", **headers}
        path, _, query = path.partition("?")
        content = body.encode() if verb == "POST" else b""
        answer = self.edge.answer(HttpRequest(verb, path, words, tuple(parse_qsl(query)), content))
        if answer.stream:
            self.world.play(_first_frame(answer.stream))
        return answer.status

    def call_back(self, token: str = "") -> int:
        """Sends a notification of the called agent to the calling task."""
        status = {"taskId": "far", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}
        headers = {"x-a2a-notification-token": token or str(self.peer.callback.token)}
        address = self.peer.callback.url.removeprefix(BASE_URL)
        return self.request("POST", address, json.dumps({"statusUpdate": status}), headers)

    def send_event(self) -> int:
        """Sends an event from outside to the task that waits for it."""
        return self.request("POST", self.event.removeprefix(BASE_URL), "{}")

    def follow_on(self) -> int:
        """Subscribes as a client that has received all events but the last."""
        current = self.world.table.read_head(ME.key(self.tasks["ask"]))
        self.used.clear()
        assert current
        path, after = f"/echo/tasks/{self.tasks['ask']}:subscribe", str(current.last - 1)
        return self.request("POST", path, "", {"last-event-id": after})

    def copy(self) -> int:
        """Lets a worker copy the task that is retried; returns the most items that it has read of that in one call."""
        self.pages.clear()
        self.world.wait(10 * 60_000)
        return max(count for name, count in self.pages.items() if name.endswith(self.tasks["fail"]))

    def erase(self) -> int:
        """Erases the task that has ended, as an operator; returns 200 if there was one."""
        table, world = self.world.table, self.world
        store = ErasureStore(table.items)
        service = ErasureService(table, table, store, table.blobs, MemoryApiKeyStore(), world.clock, world.ids)
        return 200 * erase(service, ErasureScope(ME, task=self.tasks["end"]), lambda _: None).tasks


async def _first_frame(stream: Frames) -> None:
    await anext(stream)
    await stream.aclose()


def message(text: str, **members: str) -> dict[str, Any]:
    """The body of SendMessage."""
    content = {"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}], **members}
    return {"message": content, "configuration": {"returnImmediately": True}}


@dataclass(frozen=True)
class Worst:
    """A request, the status of its answer and what it may use at most."""

    what: str
    ask: Callable[[Scene], int]
    status: int
    most: Used

    @property
    def is_refused(self) -> bool:
        return self.most is REFUSED


def _retries(task: str, step: str = "") -> Callable[[Scene], int]:
    return _asks("POST", f"{TASKS}/{{{task}}}/retry", {"requestId": "r"} | ({"fromStep": step} if step else {}))


def _asks(verb: str, path: str, body: Any = None) -> Callable[[Scene], int]:
    """A request; in its path and body, names of tasks stand in braces."""

    def ask(scene: Scene) -> int:
        content = json.dumps(body)
        for name, task in scene.tasks.items():
            content = content.replace(f"{{{name}}}", task)
        return scene.request(verb, path.format(**scene.tasks), content)

    return ask


UNKNOWN: Final = "a" * 32
TASKS: Final = "/echo/tasks"
SEND: Final = "/echo/message:send"
HOOKS: Final = f"{TASKS}/{{ask}}/pushNotificationConfigs"
REFUSED: Final = Used(3, 3, 4, 0.1)
WHOLE: Final = 8000  # KB of the text, the messages, and what stands beside them
WORST: Final = (
    Worst("GetTask", _asks("GET", f"{TASKS}/{{ask}}"), 200, Used(7, 32, WHOLE, 0)),
    Worst("GetTask, ten messages", _asks("GET", f"{TASKS}/{{ask}}?historyLength=10"), 200, Used(7, 32, WHOLE, 0)),
    Worst(
        "ListTasks with artifacts",
        _asks("GET", f"{TASKS}?pageSize=50&includeArtifacts=true"),
        200,
        Used(8, 37, WHOLE, 0),
    ),
    Worst("GetTaskTimeline", _asks("GET", f"{TASKS}/{{ask}}/timeline"), 200, Used(24, 800, 20_000, 0)),
    Worst("SubscribeToTask", _asks("POST", f"{TASKS}/{{ask}}:subscribe"), 200, Used(7, 34, WHOLE, 0)),
    Worst("SubscribeToTask, as it is resumed", Scene.follow_on, 200, Used(2, 3, 4, 0)),
    Worst("a webhook", _asks("POST", HOOKS, {"url": HOOK, "taskId": "{ask}"}), 200, Used(9, 5, 4, 1)),
    Worst("GetTask of an unknown task", _asks("GET", f"{TASKS}/{UNKNOWN}"), 404, REFUSED),
    Worst("SendMessage to an unknown task", _asks("POST", SEND, message("m", taskId=UNKNOWN)), 404, REFUSED),
    Worst("SendMessage to an ended task", _asks("POST", SEND, message("m", taskId="{end}")), 400, REFUSED),
    Worst("CancelTask of an ended task", _asks("POST", f"{TASKS}/{{end}}:cancel"), 400, REFUSED),
    Worst("SubscribeToTask of an ended task", _asks("POST", f"{TASKS}/{{end}}:subscribe"), 400, REFUSED),
    Worst("a webhook that is not allowed", _asks("POST", HOOKS, {"url": "http://10.0.0.1/"}), 400, REFUSED),
    Worst("a retry of a task that has not failed", _retries("end"), 400, REFUSED),
    Worst("a retry from an unknown step", _retries("fail", "none"), 400, REFUSED),
    Worst("a callback with a wrong token", lambda scene: scene.call_back("wrong"), 404, REFUSED),
    Worst("a callback at an unknown address", _asks("POST", f"/callbacks/{UNKNOWN}", {}), 404, REFUSED),
    Worst("an event at an unknown address", _asks("POST", f"/events/{UNKNOWN}", {}), 404, REFUSED),
    Worst("a callback", Scene.call_back, 200, Used(11, 5, 110, 1)),
    Worst("an event from outside", Scene.send_event, 200, Used(7, 5, 4, 1)),
    Worst("SendMessage", _asks("POST", SEND, message("go", taskId="{ask}")), 200, Used(11, 36, WHOLE, 1)),
    Worst("CancelTask", _asks("POST", f"{TASKS}/{{ask}}:cancel"), 200, Used(10, 37, WHOLE, 1)),
    Worst("a retry from a step", _retries("fail", "step 599"), 200, Used(5, 4, 25, 1)),
    Worst("an operator erases a task", Scene.erase, 200, Used(955, 4100, 116_000, 3.5)),
)


class Row(NamedTuple):
    """What a request has used, and the status of its answer."""

    worst: Worst
    status: int
    used: Used
    cpu_ms: float


def count_requests(scene: Scene) -> Iterator[Row]:
    """Makes each request once, in their order."""
    for worst in WORST:
        scene.used.clear()
        began = time.process_time()
        status = worst.ask(scene)
        cpu_ms = (time.process_time() - began) * 1000
        used = scene.used
        calls = used["calls"] + used["queue calls"]
        yield Row(worst, status, Used(calls, used["items"], used["read"] / KB, used["written"] / KB), cpu_ms)


def stored_by_emitted(chunks: int) -> float:
    """Returns what the snapshots of a text of so many chunks of 32 KB store in all, divided by the text."""

    async def writes(task: TaskContext) -> None:
        for _ in range(chunks):
            await task.emit("novel.txt", "x" * CHUNK, append=True)

    world = World([agent_of(writes)])
    world.send(push=False)
    world.settle()
    return sum(map(len, world.table.blobs.content.values())) / (chunks * CHUNK)
