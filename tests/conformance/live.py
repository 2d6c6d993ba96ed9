"""A deployment in one process and in real time: the real use cases and HTTP servers over the in-memory adapters.

What the platform does between the functions (streams, queues) is a thread that asks what is due.
"""

from __future__ import annotations

import asyncio
import random
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import uvicorn

from a2a_serverless.adapters.callback_verifier import SignedCallbackVerifier
from a2a_serverless.adapters.jose import Es256Keys, KeyRingSigner
from a2a_serverless.adapters.memory import (
    MemoryApiKeyStore,
    MemoryKeyRingStore,
    MemoryMetrics,
    MemoryQueues,
    MemoryResolver,
    MemorySealer,
    MemoryServiceTokenSealer,
    MemoryTable,
)
from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.adapters.service_tokens import ServiceTokenIssuer, ServiceTokenVerifier
from a2a_serverless.adapters.system import SystemClock, UuidIds
from a2a_serverless.adapters.webhook_sender import WebhookSender
from a2a_serverless.agent_loader import by_id
from a2a_serverless.domain.access import ApiKey, digest_of
from a2a_serverless.domain.key_ring import RotationTimes
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.domain.url_policy import EgressPolicy
from a2a_serverless.engine.calls import AgentRegistry
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.engine.run import Engine, run
from a2a_serverless.http.authentication import AllowAnonymous, OidcOrApiKey
from a2a_serverless.http.local import in_threads
from a2a_serverless.services.circuit_breakers import CircuitBreakers
from a2a_serverless.services.deliver import DeliveryContext, deliver
from a2a_serverless.services.key_rotation import KeyRotation, ensure_ring
from a2a_serverless.services.listing import TaskLister
from a2a_serverless.services.publish import CardPublisher
from a2a_serverless.services.relay import relay
from a2a_serverless.services.tasks import TaskService
from a2a_serverless.services.webhooks import Webhooks
from a2a_serverless.testing import LIFE
from tests.edge import Edge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Literal

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import Principal
    from a2a_serverless.domain.queue_messages import QueueMessage
    from a2a_serverless.http.authentication import Authenticator
    from a2a_serverless.protocol.codecs import Binding

RUN_MS = 900_000
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
        authenticator: Authenticator | None = None,
        callers: Mapping[str, Principal] | None = None,
        others: Mapping[str, str] | None = None,
    ) -> None:
        clock, ids = SystemClock(), UuidIds()
        keys, service_tokens = MemoryApiKeyStore(), MemoryServiceTokenSealer()
        for key, principal in (callers or {}).items():
            keys.add(ApiKey(digest_of(key), principal, "", clock.now()))
        authenticator = (
            OidcOrApiKey(keys.find, service_tokens=ServiceTokenVerifier(service_tokens, clock.now).find)
            if callers
            else authenticator
        )
        self.table, self.queues = MemoryTable(clock.now), MemoryQueues(clock.now)
        self.agents = by_id(tuple(agents))
        table: Any = self.table
        policy, sealer, store = (
            EgressPolicy(local_allow=("127.0.0.1:*", "localhost:*")),
            MemorySealer(),
            MemoryKeyRingStore(),
        )
        siblings = {name: f"{base_url}/{name}" for name in self.agents}
        remote_agents = A2ARemoteAgents(siblings, others, ServiceTokenIssuer(service_tokens, clock.now).headers)
        registry = AgentRegistry(remote_agents, ids, base_url)
        self.engine = Engine(table, table, self.queues, ids, clock.now, self.agents, registry)
        webhooks = Webhooks(table, table, self.queues, sealer, clock, ids, policy, MemoryResolver(), ownership=False)
        lister = TaskLister(table, table, sealer)
        self.service = TaskService(
            table,
            self.queues,
            clock,
            ids,
            webhooks,
            lister,
            LIFE,
            blocking_ms,
            idempotent,
            inline_runner=EngineInlineRunner(self.engine),
        )
        verifier = SignedCallbackVerifier(table, clock.now)
        self.edge = Edge(
            self.service,
            table,
            self.agents,
            authenticator or AllowAnonymous(),
            verifier,
            3600,
            stream_ms,
            rest_binding=rest_binding,
        )
        self.rotation = KeyRotation(
            store, Es256Keys(), CardPublisher(table, clock, self.agents, base_url, shape), RotationTimes(1, 1), 1
        )
        signer, self.sender = KeyRingSigner(store.load), WebhookSender(policy)
        self.post = DeliveryContext(
            log=table,
            store=table,
            queues=self.queues,
            sender=self.sender,
            signer=signer,
            sealer=sealer,
            clock=clock,
            ids=ids,
            issuer=base_url,
            chance=random.random,
            hosts=CircuitBreakers(table),
            metrics=MemoryMetrics(),
            enforce_ownership=False,
        )
        self._relayed = 0

    def step(self, start: Callable[[QueueMessage], object]) -> None:
        """What is due now: news in the table's stream, messages in the queues."""
        records = self.table.feed[self._relayed :]
        self._relayed += len(records)
        relay(self.post.store, self.queues, [key for key, _ in records], self.service.clock.now())
        while (message := self.queues.pop()) is not None:
            start(message)

    def answer(self, message: QueueMessage) -> object:
        """What the worker or the notifier does."""
        if isinstance(message, WorkMessage):
            return asyncio.run(run(self.engine, message.key, lambda: RUN_MS))
        return deliver(self.post, message, lambda: 60_000)


@contextmanager
def working(live: Live) -> Iterator[None]:
    """Runs what the platform runs until the block ends."""
    over = threading.Event()

    def go_on() -> None:
        with ThreadPoolExecutor(16) as pool:
            while not over.wait(PAUSE_S):
                live.step(lambda message: pool.submit(live.answer, message))

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
    ensure_ring(live.rotation)
    web, faults = watched(replace(live.edge, run=in_threads()).app)
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
