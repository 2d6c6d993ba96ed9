"""A whole deployment in one process, on adapters that are arguments: for ``testing``, and for ``dev``.

The user of this module replaces the platform between the functions: the table's stream, the queues, the schedule.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from a2a_serverless.adapters.agent_secrets import secrets_in_environment
from a2a_serverless.domain.decisions import TaskLifetime
from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.domain.queue_messages import DeliveryMessage, QueueMessage, TickMessage
from a2a_serverless.engine.calls import AgentRegistry
from a2a_serverless.engine.engine import Engine
from a2a_serverless.engine.loop import play
from a2a_serverless.engine.run import run
from a2a_serverless.engine.task_files import TaskFiles
from a2a_serverless.ports.system import Sealer, Signed, Signer
from a2a_serverless.services.circuit_breakers import CircuitBreakers
from a2a_serverless.services.deliver import deliver
from a2a_serverless.services.delivery_context import DeliveryContext
from a2a_serverless.services.listing import TaskLister
from a2a_serverless.services.pauses import Pauses
from a2a_serverless.services.relay import relay
from a2a_serverless.services.requests import TaskService
from a2a_serverless.services.sweep import Sweeper
from a2a_serverless.services.ticks import handle_tick
from a2a_serverless.services.webhooks import Webhooks
from a2a_serverless.testing.memory import (
    MemoryMetrics,
    MemoryQueues,
    MemoryResolver,
    MemorySealer,
    MemoryStores,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.ports.agents import RemoteAgents
    from a2a_serverless.ports.system import Clock, Ids, Sender
    from a2a_serverless.store.stores import ContentStore

T = TypeVar("T")

BASE_URL: Final = "https://agents.example.com"
LIFE: Final = TaskLifetime(max_life_ms=7 * 86_400_000, retention_ms=30 * 86_400_000)
BLOCKING_MS: Final = 25_000
RUN_MS: Final = 900_000
DELIVER_MS: Final = 60_000


class PlainSigner:
    """Implements ``ports.Signer`` without a signature: the token is the claims as JSON."""

    def sign(self, typ: str, claims: Mapping[str, str | int]) -> Signed:
        return Signed(json.dumps({"typ": typ} | dict(claims)), "kid-1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """The adapters of a deployment in one process. ``table`` and ``queues`` are made with the function ``clock.now``.

    ``wrap`` gets the adapters by name and returns the adapters that the deployment uses instead.
    """

    clock: Clock
    ids: Ids
    sender: Sender
    remote_agents: RemoteAgents
    table: Callable[[Callable[[], int]], Any] = MemoryStores
    queues: Callable[[Callable[[], int]], MemoryQueues] = MemoryQueues
    signer: Signer = field(default_factory=PlainSigner)
    contents: ContentStore | None = None
    chance: Callable[[], float] = lambda: 0.5
    wrap: Callable[[Any, str], Any] = lambda adapter, _: adapter


class InProcessDeployment:
    """The use cases and the engine of ``agents`` over adapters. Without ``ownership`` no URL gets a challenge."""

    run_ms = RUN_MS
    _relayed = 0

    def __init__(
        self,
        agents: Sequence[Agent],
        adapters: Adapters,
        base_url: str = BASE_URL,
        policy: EgressPolicy | None = None,
        *,
        ownership: bool = True,
    ) -> None:
        clock, ids, contents, wrap = adapters.clock, adapters.ids, adapters.contents, adapters.wrap
        self.clock, self.ids = clock, ids
        self.table, self.queue = adapters.table(clock.now), adapters.queues(clock.now)
        self.resolver, self.metrics = MemoryResolver(), MemoryMetrics()
        log, queues, sealer = wrap(self.table, "table"), wrap(self.queue, "queue"), wrap(MemorySealer(), "sealer")
        policy = policy or EgressPolicy()
        webhooks = Webhooks(
            *(log, log, queues, sealer, clock, ids, policy, self.resolver.check),
            ownership=ownership,
            own_urls=lambda: (base_url,),
        )
        lister = TaskLister(log, log, MemorySealer())
        self.service = TaskService(
            log,
            self.table,
            queues,
            clock,
            ids,
            lambda: webhooks,
            lambda: lister,
            lambda: sealer,
            LIFE,
            BLOCKING_MS,
            contents=contents,
        )
        self.registry = AgentRegistry(adapters.remote_agents, ids, base_url)
        self.agents: dict[str, Agent] = {agent.id: agent for agent in agents}
        self.engine = Engine(
            log=log,
            index=log,
            queues=queues,
            ids=ids,
            now=clock.now,
            agents=self.agents,
            registry=self.registry,
            pauses=Pauses(log.list_pauses, clock.now),
            values=log,
            files=TaskFiles(contents),
            callback_sealer=sealer,
            read_secret=secrets_in_environment(os.environ),
        )
        self.sweeper = Sweeper(log, log, queues, clock, ids)
        self.post = self._delivery_context(adapters, sealer, base_url, ownership=ownership)

    def _delivery_context(self, adapters: Adapters, sealer: Sealer, issuer: str, *, ownership: bool) -> DeliveryContext:
        log: Any = self.engine.log
        return DeliveryContext(
            log=log,
            store=log,
            queues=self.engine.queues,
            sender=adapters.wrap(adapters.sender, "receiver"),
            signer=adapters.wrap(adapters.signer, "signer"),
            sealer=sealer,
            clock=adapters.clock,
            ids=adapters.ids,
            issuer=issuer,
            chance=adapters.chance,
            breakers=CircuitBreakers(log),
            metrics=self.metrics,
            enforce_ownership=ownership,
            contents=adapters.contents,
        )

    def answer(self, message: QueueMessage) -> object:
        """Handles a queue message as the function behind the queue does."""
        if isinstance(message, DeliveryMessage):
            return deliver(self.post, message, self._time_left(DELIVER_MS))
        if isinstance(message, TickMessage):
            return handle_tick(self.engine, LIFE, message)
        return self.run(message.key)

    def run(self, key: TaskKey) -> object:
        """Runs a task as a worker does."""
        return self._play_run(key, self._time_left(self.run_ms))

    def _play_run(self, key: TaskKey, remaining_ms: Callable[[], int]) -> object:
        """Plays one run of a task."""
        return self.play(run(self.engine, key, remaining_ms))

    def play(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine to its end."""
        return play(work)

    def survives(self, work: Callable[[], object]) -> bool:
        """Does ``work``; False if its process died, so that the caller has to repeat the work."""
        work()
        return True

    def relay_changes(self) -> bool:
        """Enqueues deliveries of the changes since the last call; False if there are none."""
        keys = [key for key, _ in self.table.feed[self._relayed :]]
        self._relayed += len(keys)
        if not self.survives(lambda: relay(self.sweeper.store, self.sweeper.queues, keys, self.clock.now())):
            self._relayed -= len(keys)
        return bool(keys)

    def _time_left(self, ms: int) -> Callable[[], int]:
        until = self.clock.now() + ms
        return lambda: until - self.clock.now()


def format_failure(task: str, reference: str, text: str) -> str:
    """The traceback ``text`` under a line with the task, and with the reference that its client has read, if any."""
    reference_text = f" (reference {reference})" if reference else ""
    return f"The agent of the task {task} stopped with an error{reference_text}:\n{text}"
