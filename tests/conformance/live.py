"""A deployment in one process and in real time: the real use cases and HTTP servers over the in-memory adapters.

What the platform does between the functions (streams, queues) is a thread that asks what is due.
"""

from __future__ import annotations

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
from a2a_serverless.adapters.key_ring import Es256Keys, KeyRingSigner
from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.adapters.service_tokens import ServiceTokenIssuer, ServiceTokenVerifier
from a2a_serverless.adapters.system import SystemClock, UuidIds
from a2a_serverless.adapters.webhook_sender import WebhookSender
from a2a_serverless.agent_loader import by_id
from a2a_serverless.domain.access import ApiKey, digest_of
from a2a_serverless.domain.key_ring import RotationTimes
from a2a_serverless.domain.url_policy import EgressPolicy
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.http.api import AllowAnonymous, OidcOrApiKey
from a2a_serverless.http.local import in_threads
from a2a_serverless.services.key_rotation import KeyRotation, ensure_ring
from a2a_serverless.services.publish import CardPublisher
from a2a_serverless.wiring.in_process import Adapters, InProcessDeployment
from tests.doubles import MemoryApiKeyStore, MemoryKeyRingStore, MemoryServiceTokenSealer
from tests.edge import Edge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Literal

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import Principal
    from a2a_serverless.domain.queue_messages import QueueMessage
    from a2a_serverless.http.api import Authenticator
    from a2a_serverless.protocol.codecs import Binding

PAUSE_S = 0.005


class Live(InProcessDeployment):
    """The parts of a deployment whose address is ``base_url``. Webhooks may be anywhere on 127.0.0.1, unchallenged.

    With ``callers`` (by API key) nobody else is let in. ``others`` are agents elsewhere that may be called.
    """

    def __init__(
        self,
        agents: Sequence[Agent],
        base_url: str = "http://127.0.0.1:1",
        *,
        blocking_ms: int = 5_000,
        idempotent: bool = True,
        callers: Mapping[str, Principal] | None = None,
        others: Mapping[str, str] | None = None,
        authenticator: Authenticator | None = None,
        **options: Any,
    ) -> None:
        clock, tokens, store = SystemClock(), MemoryServiceTokenSealer(), MemoryKeyRingStore()
        policy = EgressPolicy(local_allow=("127.0.0.1:*", "localhost:*"))
        siblings = {name: f"{base_url}/{name}" for name in by_id(tuple(agents))}
        self.sender = WebhookSender(policy)
        adapters = Adapters(
            clock=clock,
            ids=UuidIds(),
            sender=self.sender,
            signer=KeyRingSigner(store.load),
            remote_agents=A2ARemoteAgents(siblings, others, ServiceTokenIssuer(tokens, clock.now).headers),
            chance=random.random,
        )
        super().__init__(agents, adapters, base_url, policy, ownership=False)
        inline_runner = EngineInlineRunner(self.engine)
        self.service = replace(
            self.service, blocking_ms=blocking_ms, idempotent=idempotent, inline_runner=inline_runner
        )
        self._serve(store, base_url, only(callers, tokens) if callers else authenticator or AllowAnonymous(), **options)

    def _serve(
        self,
        store: MemoryKeyRingStore,
        base_url: str,
        authenticator: Authenticator,
        *,
        stream_ms: int = 60_000,
        shape: Literal["both", "v1", "v0_3"] = "both",
        rest_binding: Binding = "rest",
    ) -> None:
        verifier = SignedCallbackVerifier(self.table, self.clock.now)
        self.edge = Edge(
            self.service,
            self.table,
            self.engine.agents,
            authenticator,
            verifier,
            3600,
            stream_ms,
            rest_binding=rest_binding,
        )
        publisher = CardPublisher(self.table, self.clock, self.engine.agents, base_url, shape)
        self.rotation = KeyRotation(store, Es256Keys(), publisher, RotationTimes(1, 1), 1)

    def step(self, start: Callable[[QueueMessage], object]) -> None:
        """What is due now: news in the table's stream, messages in the queues."""
        self.relay_changes()
        while (message := self.queue.pop()) is not None:
            start(message)


def only(callers: Mapping[str, Principal], tokens: MemoryServiceTokenSealer) -> Authenticator:
    """Lets in these callers, by API key, and the agents that they call."""
    keys, now = MemoryApiKeyStore(), SystemClock().now
    for key, principal in callers.items():
        keys.add(ApiKey(digest_of(key), principal, "", now()))
    return OidcOrApiKey(keys.find, service_tokens=ServiceTokenVerifier(tokens, now).find)


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
