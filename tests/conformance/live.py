"""A deployment in one process and in real time: the real use cases and HTTP servers over the in-memory adapters.

What the platform does between the functions (streams, queues) is a thread that asks what is due.
"""

from __future__ import annotations

import asyncio
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn

from a2a_serverless.adapters.api_keys import MemoryApiKeys
from a2a_serverless.adapters.builtin.picture import BuiltinPicture
from a2a_serverless.adapters.builtin.text import BuiltinText
from a2a_serverless.adapters.jose import Es256Keys, RingSigner
from a2a_serverless.adapters.memory import (
    MemoryBells,
    MemoryMetrics,
    MemoryNames,
    MemoryPassSealer,
    MemorySealer,
    MemoryTable,
    MemoryVault,
)
from a2a_serverless.adapters.passes import OpenedPasses, Passes
from a2a_serverless.adapters.peers import A2APeers
from a2a_serverless.adapters.proofs import SignedProofs
from a2a_serverless.adapters.system import SystemClock, UuidIds
from a2a_serverless.adapters.webhook_sender import WebhookSender
from a2a_serverless.agents.registry import by_id
from a2a_serverless.domain.access import ApiKey, digest_of
from a2a_serverless.domain.bells import WorkBell
from a2a_serverless.domain.key_ring import Waits
from a2a_serverless.domain.url_policy import EgressPolicy
from a2a_serverless.engine.calls import Directory
from a2a_serverless.engine.inline import Inline
from a2a_serverless.engine.run import Engine, run
from a2a_serverless.engine.work import Models
from a2a_serverless.handlers.gate import OpenGate, SignIn
from a2a_serverless.handlers.web import make_web
from a2a_serverless.services.deliver import Post, deliver
from a2a_serverless.services.hosts import Hosts
from a2a_serverless.services.keys import Locksmith, ensure_ring
from a2a_serverless.services.listing import Shelf
from a2a_serverless.services.publish import Press
from a2a_serverless.services.push import Webhooks
from a2a_serverless.services.relay import relay
from a2a_serverless.services.tasks import Desk
from tests.edge import Edge
from tests.world import LIFE

if TYPE_CHECKING:
    from typing import Literal

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.bells import Bell
    from a2a_serverless.domain.model import Principal
    from a2a_serverless.handlers.gate import Gate
    from a2a_serverless.wire.codecs import Binding

RUN_MS = 900_000
MODELS = Models(BuiltinText(), BuiltinPicture())
PAUSE_S = 0.005


class Live:
    """The parts of a deployment whose address is ``base_url``. Webhooks may be anywhere on 127.0.0.1, unchallenged.

    With ``callers`` (by API key) nobody else is let in. ``others`` are agents elsewhere that may be called.
    """

    def __init__(
        self,
        agents: Sequence[Agent],
        base_url: str = "http://127.0.0.1:1",
        *,
        blocking_ms: int = 5_000,
        stream_ms: int = 60_000,
        shape: Literal["both", "v1", "v0_3"] = "both",
        rest_binding: Binding = "rest",
        idempotent: bool = True,
        gate: Gate | None = None,
        callers: Mapping[str, Principal] | None = None,
        others: Mapping[str, str] | None = None,
    ) -> None:
        clock, ids = SystemClock(), UuidIds()
        keys, passes = MemoryApiKeys(), MemoryPassSealer()
        for key, who in (callers or {}).items():
            keys.add(ApiKey(digest_of(key), who, "", clock.now()))
        gate = SignIn(keys.find, passes=OpenedPasses(passes, clock.now).find) if callers else gate
        self.table, self.bells = MemoryTable(clock.now), MemoryBells(clock.now)
        self.agents = by_id(tuple(agents))
        table: Any = self.table
        policy, sealer, vault = EgressPolicy(local_allow=("127.0.0.1:*", "localhost:*")), MemorySealer(), MemoryVault()
        siblings = {name: f"{base_url}/{name}" for name in self.agents}
        peers = A2APeers(siblings, others, Passes(passes, clock.now).headers)
        directory = Directory(peers, ids, base_url)
        self.engine = Engine(table, table, self.bells, ids, clock.now, self.agents, MODELS, directory)
        hooks = Webhooks(table, table, self.bells, sealer, clock, ids, policy, MemoryNames(), ownership=False)
        shelf = Shelf(table, table, sealer)
        self.desk = Desk(
            table, self.bells, clock, ids, hooks, shelf, LIFE, blocking_ms, idempotent, here=Inline(self.engine)
        )
        proofs = SignedProofs(table, clock.now)
        self.edge = Edge(
            self.desk, table, self.agents, gate or OpenGate(), proofs, 3600, stream_ms, rest_binding=rest_binding
        )
        self.smith = Locksmith(vault, Es256Keys(), Press(table, clock, self.agents, base_url, shape), Waits(1, 1), 1)
        signer, self.sender = RingSigner(vault.load), WebhookSender(policy)
        self.post = Post(
            log=table,
            store=table,
            bells=self.bells,
            sender=self.sender,
            signer=signer,
            sealer=sealer,
            clock=clock,
            ids=ids,
            issuer=base_url,
            chance=random.random,
            hosts=Hosts(table),
            metrics=MemoryMetrics(),
            enforce_ownership=False,
        )
        self._relayed = 0

    def step(self, start: Callable[[Bell], object]) -> None:
        """What is due now: news in the table's stream, bells in the queues."""
        news = self.table.feed[self._relayed :]
        self._relayed += len(news)
        relay(self.post.store, self.bells, [key for key, _ in news], self.desk.clock.now())
        while (bell := self.bells.pop()) is not None:
            start(bell)

    def answer(self, bell: Bell) -> object:
        """What the worker or the notifier does."""
        if isinstance(bell, WorkBell):
            return asyncio.run(run(self.engine, bell.key, lambda: RUN_MS))
        return deliver(self.post, bell, lambda: 60_000)


@contextmanager
def working(live: Live) -> Iterator[None]:
    """Runs what the platform runs until the block ends."""
    over = threading.Event()

    def go_on() -> None:
        with ThreadPoolExecutor(16) as pool:
            while not over.wait(PAUSE_S):
                live.step(lambda bell: pool.submit(live.answer, bell))

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def serving(agents: Sequence[Agent], port: int = 0, **options: Any) -> Iterator[str]:
    """A deployment that answers on 127.0.0.1; gives its base URL."""
    listener = socket.create_server(("127.0.0.1", port))
    base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    live = Live(agents, base_url, **options)
    ensure_ring(live.smith)
    web, faults = watched(make_web(live.edge))
    config = uvicorn.Config(web, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],))
    with working(live):
        thread.start()
        while not server.started:
            time.sleep(PAUSE_S)
        try:
            yield base_url
        finally:
            server.should_exit = True
            thread.join()
            live.sender.close()
            listener.close()
    assert faults == []


def watched(web: Any) -> tuple[Any, list[Exception]]:
    """The application, and what it raises: uvicorn would make a 500 of an answer that is not as the protocol says."""
    faults: list[Exception] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            await web(scope, receive, send)
        except Exception as fault:
            faults.append(fault)
            raise

    return app, faults
