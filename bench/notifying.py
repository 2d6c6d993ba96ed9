"""A notifier as one Lambda instance runs it, over in-memory adapters and real TLS on loopback, in real time.

Events are committed at a steady rate; the receiver is a separate process that records when the first byte of each
request arrived. Both read the system's monotonic clock, so their times can be compared.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import threading
import time
from base64 import urlsafe_b64decode
from contextlib import contextmanager
from multiprocessing import Pipe, Process
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from a2a_serverless.adapters.clock import SystemClock, UuidIds
from a2a_serverless.adapters.egress import strict_ssl_context
from a2a_serverless.adapters.es256 import Es256Keys, KeyRingSigner
from a2a_serverless.adapters.webhook_sender import WebhookSender
from a2a_serverless.domain import decisions
from a2a_serverless.domain import head as heads
from a2a_serverless.domain.cursors import Cursor, Verification
from a2a_serverless.domain.events import ArtifactEvent, Incoming
from a2a_serverless.domain.key_ring import create_ring
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.domain.new_task import NewTask
from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.domain.push_configs import PushConfig
from a2a_serverless.domain.queue_messages import DeliveryMessage, QueueMessage
from a2a_serverless.http_client.sockets import connect
from a2a_serverless.protocol.v1 import Artifact, Message, Part, Role
from a2a_serverless.services.circuit_breakers import CircuitBreakers
from a2a_serverless.services.deliver import MESSAGES_AT_ONCE, deliver
from a2a_serverless.services.delivery_context import DeliveryContext
from a2a_serverless.services.relay import relay
from a2a_serverless.testing.memory import MemoryMetrics, MemorySealer, MemoryStores
from tests.adapters.strangers import authority, server_context

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection

PER_SECOND: Final = 50
ADDRESS: Final = "93.184.215.14"
NOWHERE: Final = "93.184.215.15"
ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
LIFE: Final = decisions.TaskLifetime(86_400_000, 86_400_000)
RUN_MS: Final = 900_000

Arrivals = dict[tuple[str, int], float]
"""(task, event number) -> when its first request began to arrive, in seconds of the monotonic clock."""


class Messages:
    """Queue messages in this process, delivered at once or after a delay."""

    def __init__(self) -> None:
        self.queue: SimpleQueue[DeliveryMessage | None] = SimpleQueue()

    def enqueue(self, message: QueueMessage, delay_s: int = 0) -> None:
        if not isinstance(message, DeliveryMessage):
            return
        if not delay_s:
            self.queue.put(message)
            return
        later = threading.Timer(delay_s, self.queue.put, [message])
        later.daemon = True
        later.start()

    def enqueue_many(self, queues: Sequence[QueueMessage]) -> None:
        for message in queues:
            self.enqueue(message)


class Instance:
    """The notifier, with as many messages at a time as the deployed one. ``dead`` hosts accept no connection."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self.clock, self.ids, self.queues = SystemClock(), UuidIds(), Messages()
        self.table = MemoryStores(self.clock.now)
        self.committed: Arrivals = {}
        self._looks: dict[TaskKey, heads.CurrentHead] = {}  # nothing else appends
        self.dead: frozenset[str] = frozenset()
        self._port = port
        keys = Es256Keys()
        ring = create_ring(keys.make(0), keys.make(0), now=0)
        self._post = DeliveryContext(
            log=self.table,
            store=self.table,
            queues=self.queues,
            sender=WebhookSender(EgressPolicy(), resolver=self._resolve, connector=self._connect, ssl_context=context),
            signer=KeyRingSigner(lambda: ring),
            sealer=MemorySealer(),
            clock=self.clock,
            ids=self.ids,
            issuer="https://agents.example.com",
            chance=random.random,
            breakers=CircuitBreakers(self.table),
            metrics=MemoryMetrics(),
        )
        for _ in range(MESSAGES_AT_ONCE):
            threading.Thread(target=self._work, daemon=True).start()

    def open(self, host: str) -> TaskKey:
        """Makes a running task with a trusted webhook at the host."""
        now, by = self.clock.now(), self.ids.new
        key = TaskKey("tenant", "owner", by())
        config = PushConfig("c", f"https://{host}/a2a", "1.0", by(), now)
        cursor = Cursor("c", config.incarnation, verification=Verification.TRUSTED)
        message = Message(message_id=by(), role=Role.USER, parts=(Part(text="hi"),))
        head, event = decisions.submit(key, "echo", by(), Incoming(message), now=now, by=by(), life=LIFE, push=True)
        self.table.create(NewTask(head, event, None, ((config, cursor),)))
        snapshot = self.table.read_head(key)
        if snapshot is None or not self.table.append(decisions.start_run(snapshot, now=now, by=by())):
            raise RuntimeError("nobody else is here")
        relay(self.table, self.queues, [key], now)
        return key

    def commit(self, *keys: TaskKey) -> None:
        """Appends a chunk of 800 characters to each task, and enqueues deliveries as the relay does for a batch."""
        for key in keys:
            self._append(key)
        relay(self.table, self.queues, list(dict.fromkeys(keys)), self.clock.now())

    def _append(self, key: TaskKey) -> None:
        snapshot = self._looks.get(key) or self.table.read_head(key)
        if snapshot is None:
            raise RuntimeError("the task is gone")
        n, artifact = snapshot.last + 1, Artifact(artifact_id="a", parts=(Part(text="x" * 800),))
        event = ArtifactEvent(n, self.clock.now(), self.ids.new(), artifact, n > 3, False, (n, n), snapshot.head.fence)  # noqa: FBT003, PLR2004
        self.table.append_chunk(snapshot.head._replace(lease_until=2**50), event)
        self.committed[key.task, n] = time.monotonic()
        self._looks[key] = heads.CurrentHead(snapshot.head, n)

    def close(self) -> None:
        for _ in range(MESSAGES_AT_ONCE):
            self.queues.queue.put(None)

    def _work(self) -> None:
        while (message := self.queues.queue.get()) is not None:
            deliver(self._post, message, lambda: RUN_MS)

    def _resolve(self, host: str, _port: int) -> list[str]:
        return [NOWHERE if host in self.dead else ADDRESS]

    def _connect(self, address: str, _port: int, seconds: float) -> socket.socket:
        if address == NOWHERE:
            time.sleep(seconds)
            raise TimeoutError("nobody answers")
        return connect("127.0.0.1", self._port, seconds)


class Receiver(asyncio.Protocol):
    """Answers 200 to each request, and records which one it was and when its first byte arrived."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._got, self._began = b"", 0.0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport if isinstance(transport, asyncio.Transport) else None

    def data_received(self, data: bytes) -> None:
        self._began = self._began if self._got else time.monotonic()
        self._got += data
        head, end, body = self._got.partition(b"\r\n\r\n")
        if not end or len(body) < _number(head, b"Content-Length"):
            return
        self._got = b""
        claims = json.loads(urlsafe_b64decode(_field(head, b"Authorization").split(b".")[1] + b"=="))
        self._arrivals.setdefault((claims["taskId"], claims["eventNumber"]), self._began)
        if self._transport:
            self._transport.write(ANSWER)


def receive(parent: Connection) -> None:
    """Runs the receiver process. It answers each message with the arrivals since the last one."""

    async def serve() -> None:
        arrivals: Arrivals = {}
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: Receiver(arrivals), "127.0.0.1", 0, ssl=server_context("*.example.com"), backlog=1024
        )

        def tell() -> None:
            parent.recv()
            parent.send(arrivals)
            arrivals.clear()

        loop.add_reader(parent.fileno(), tell)
        parent.send((server.sockets[0].getsockname()[1], authority().pem))
        await server.serve_forever()

    asyncio.run(serve())


@contextmanager
def serving(work: Callable[[Connection], None]) -> Iterator[tuple[Connection, int, ssl.SSLContext]]:
    """Starts a receiver in a process; gives its connection, its port and a TLS context that trusts it."""
    here, there = Pipe()
    process = Process(target=work, args=(there,), daemon=True)
    process.start()
    port, pem = here.recv()
    context = strict_ssl_context()
    context.load_verify_locations(cadata=pem)
    try:
        yield here, port, context
    finally:
        process.terminate()


@contextmanager
def receiver() -> Iterator[tuple[int, ssl.SSLContext, Callable[[], Arrivals]]]:
    """Starts the receiver; gives its port, a TLS context that trusts it, and a function that returns new arrivals."""
    with serving(receive) as (here, port, context):

        def arrived() -> Arrivals:
            here.send("?")
            arrivals: Arrivals = here.recv()
            return arrivals

        yield port, context, arrived


def warm(instance: Instance, keys: list[TaskKey]) -> None:
    """Plays until every task's first notification, a snapshot, is delivered; forgets its events."""
    play(instance, keys, 2)
    instance.committed.clear()


def play(instance: Instance, keys: list[TaskKey], seconds: int) -> None:
    """Commits events at a fixed rate, to the tasks in turn, without waiting for deliveries; then waits a little."""
    start = time.monotonic()
    for number in range(seconds * PER_SECOND):
        time.sleep(max(0.0, start + number / PER_SECOND - time.monotonic()))
        instance.commit(keys[number % len(keys)])
    time.sleep(1.0)


def delays_ms(committed: Arrivals, arrived: Arrivals) -> list[float]:
    """Returns the times (ms) from commit to first byte, sorted; an event that has not arrived counts as a minute."""
    return sorted((arrived.get(event, at + 60) - at) * 1000 for event, at in committed.items())


def percentile(values: list[float], part: float) -> float:
    """Returns the value below which ``part`` of the sorted values are."""
    return values[min(len(values) - 1, int(len(values) * part))]


def _field(head: bytes, name: bytes) -> bytes:
    return head.partition(b"\r\n" + name + b": ")[2].partition(b"\r\n")[0]


def _number(head: bytes, name: bytes) -> int:
    return int(_field(head, name))
