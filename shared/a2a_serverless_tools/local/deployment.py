"""A deployment in one process and in real time, for a developer's machine: stores in a file, real HTTP and signatures.

Everybody who reaches it is the same anonymous caller. Webhooks may go to 127.0.0.1, too.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters.agent_secrets import secrets_in_environment
from a2a_serverless.adapters.callback_verifier import SignedCallbackVerifier
from a2a_serverless.adapters.clock import SystemClock, UuidIds
from a2a_serverless.adapters.egress import addresses_of
from a2a_serverless.adapters.es256 import Es256Keys, KeyRingSigner
from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.adapters.webhook_sender import WebhookSender
from a2a_serverless.agent_loader import by_id
from a2a_serverless.domain.access import SERVICE_TOKEN_PREFIX
from a2a_serverless.domain.contents import LARGEST
from a2a_serverless.domain.errors import safe_error_fields
from a2a_serverless.domain.key_ring import RotationTimes
from a2a_serverless.domain.loopback import LOOPBACK
from a2a_serverless.domain.metrics import NULL_METRICS
from a2a_serverless.domain.outbound import EgressPolicy
from a2a_serverless.domain.queue_messages import DeliveryMessage, WorkMessage
from a2a_serverless.engine.calls import AgentRegistry
from a2a_serverless.engine.engine import RunOutcome
from a2a_serverless.engine.inline import EngineInlineRunner
from a2a_serverless.engine.lease import recover_tasks
from a2a_serverless.engine.task_files import TaskFiles
from a2a_serverless.http.api import AllowAnonymous, Api, Console
from a2a_serverless.http.app import make_asgi_app
from a2a_serverless.http.threads import in_threads
from a2a_serverless.ports.tracing import NULL_TRACER
from a2a_serverless.services.key_rotation import KeyRotation, ensure_ring
from a2a_serverless.services.publish import CardPublisher
from a2a_serverless.services.relay import relay
from a2a_serverless.testing.deployment import Adapters, InProcessDeployment
from a2a_serverless_tools.local.edge import refuse_foreign_pages
from a2a_serverless_tools.local.state import State, StateKeyRing, StateQueues, StateStores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.domain.queue_messages import QueueMessage
    from a2a_serverless.domain.usage import Usage
    from a2a_serverless.ports.tracing import Tracer

AS_AGENT: Final = {"X-API-Key": SERVICE_TOKEN_PREFIX}  # says that an agent calls; nobody needs credentials here
LOCAL_ONLY: Final = EgressPolicy(local_allow=(f"{LOOPBACK}:*",))
JWKS_MAX_AGE_S: Final = 3600
ROTATION_MS: Final = 30 * 86_400_000
FETCH_MS: Final = 60_000
BLOCKING_MS: Final = 20_000
PAUSE_S: Final = 0.25  # at most so late is a delayed queue message
BATCH_S: Final = 0.005  # so late are all: one wake-up for a burst of events
WORKER: Final = "local"  # so a later process knows whose leases were lost
WORKERS: Final = 64
DELIVERIES: Final = 16

logger = logging.getLogger(__name__)


class _RunningTasks:
    """The tasks that this process runs, each once.

    A lease says that no run has died. Here a run may outlive it: at a breakpoint it renews nothing, for as long as its
    author looks. ``enqueue`` is called at the end of a run that somebody has tried to start beside it.
    """

    def __init__(self, enqueue: Callable[[TaskKey], None]) -> None:
        self._lock, self._enqueue = threading.Lock(), enqueue
        self._was_tried: dict[TaskKey, bool] = {}

    @contextmanager
    def enter(self, key: TaskKey) -> Iterator[bool]:
        """Whether the task may run in the block; False if it runs already."""
        with self._lock:
            is_first = key not in self._was_tried
            self._was_tried[key] = not is_first
        try:
            yield is_first
        finally:
            with self._lock:
                was_tried = is_first and self._was_tried.pop(key)
            if was_tried:
                self._enqueue(key)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LocalInlineRunner(EngineInlineRunner):
    """Runs inline agents, each of their tasks once."""

    running: _RunningTasks

    def run(self, key: TaskKey, time_ms: int) -> None:
        with self.running.enter(key) as is_first:
            if is_first:
                EngineInlineRunner.run(self, key, time_ms)


class LocalDeployment(InProcessDeployment):
    """A deployment whose address is ``base_url``. ``app`` is its api; ``deploy`` replaces its agents.

    ``dispatch`` is the platform between the functions: it hands queue messages to threads, and enqueues deliveries.
    ``state`` keeps what it has; without one it is in memory. ``others`` are agents elsewhere that may be called.
    ``on_event`` is called with each event of each task, ``on_error`` with what agents raise.
    """

    def __init__(  # noqa: PLR0913 - what differs between local runs
        self,
        agents: Sequence[Agent],
        base_url: str,
        *,
        policy: EgressPolicy = LOCAL_ONLY,
        ownership: bool = True,
        others: Mapping[str, str] | None = None,
        service_tokens: Callable[..., Mapping[str, str]] = lambda _: AS_AGENT,
        tracer: Tracer = NULL_TRACER,
        state: State | None = None,
    ) -> None:
        state = state or State()
        self.base_url, self._others, self._service_tokens = base_url, others, service_tokens
        self.console = Console(internals=True)
        self.on_event: Callable[[TaskKey, Event], None] | None = None
        self.on_error: Callable[[TaskKey, BaseException, str], None] = lambda *_: None
        self._news, self._over, self._key_ring = threading.Event(), threading.Event(), StateKeyRing(state)
        self._version, self._run, clock = 0, in_threads(), SystemClock()
        self._running = _RunningTasks(lambda key: self.queue.enqueue(WorkMessage(key)))
        self._workers = ThreadPoolExecutor(WORKERS, "worker")
        self._notifiers = ThreadPoolExecutor(DELIVERIES, "notifier")
        self.sender = WebhookSender(replace(policy, own=(base_url,)))
        adapters = Adapters(
            clock=clock,
            ids=UuidIds(),
            sender=self.sender,
            remote_agents=self._remote_agents(by_id(tuple(agents))),
            table=partial(StateStores, state, on_feed=self._news.set),
            queues=partial(StateQueues, state, on_enqueue=self._news.set),
            signer=KeyRingSigner(self._key_ring.load),
            chance=random.random,
        )
        super().__init__(agents, adapters, base_url, policy, ownership=ownership)
        self.tracer = tracer
        self.post = replace(self.post, metrics=NULL_METRICS, tracer=tracer)
        files = TaskFiles(None, lambda url: self.sender.get(url, {}, FETCH_MS, LARGEST))
        self.engine = replace(self.engine, files=files, on_error=self._report, tracer=tracer, worker=WORKER)
        webhooks = replace(self.service.webhooks(), resolver=addresses_of)
        self.service = self.service._replace(blocking_ms=BLOCKING_MS, webhooks=lambda: webhooks, tracer=tracer)
        self.deploy(*agents)

    def deploy(self, *agents: Agent, prices: Usage | None = None) -> None:
        """Replaces all agents and publishes their cards. Runs under way hand over to the new ones.

        ``prices`` replace those of the models, if given.
        """
        self.agents = dict(by_id(agents))
        self.registry = AgentRegistry(self._remote_agents(self.agents), self.ids, self.base_url)
        self._version += 1
        version = self._version
        self.engine = replace(
            self.engine,
            agents=self.agents,
            registry=self.registry,
            is_replaced=lambda: self._version > version,
            prices=self.engine.prices if prices is None else prices,
        )
        self.service = self.service._replace(
            inline_runner=_LocalInlineRunner(self.engine, running=self._running).for_agent
        )
        ensure_ring(self.rotation)
        api = self.make_api()
        self.app = refuse_foreign_pages(make_asgi_app(api), LOOPBACK, api.origins)

    def run(self, key: TaskKey) -> object:
        """Runs a task, unless this process runs it already."""
        with self._running.enter(key) as is_first:
            return super().run(key) if is_first else RunOutcome.LEASED

    def recover(self) -> int:
        """Goes on with the tasks and webhooks of an earlier process; returns the number of tasks whose runs it lost.

        Queue messages are in the state, the changes in the table's stream are not. Leases of before have no holder.
        """
        tasks = self.table.list_webhook_tasks()
        for key in tasks:
            for cursor in self.table.list_cursors(key):
                self.table.move_cursor(key, cursor, replace(cursor, lease_until=0))
        relay(self.table, self.queue, tasks, self.clock.now())
        return len(recover_tasks(self.engine))

    def make_api(self) -> Api:
        """What the application works with."""
        verifier = SignedCallbackVerifier(self.table, self.clock.now)
        return Api(
            self.service,
            self.agents,
            AllowAnonymous(),
            verifier,
            JWKS_MAX_AGE_S,
            run=self._run,
            console=self.console,
        )

    @property
    def rotation(self) -> KeyRotation:
        """What the rotator works with."""
        publisher = CardPublisher(self.table, self.clock, self.agents, self.base_url)
        waits = RotationTimes(publish_ms=2 * JWKS_MAX_AGE_S * 1000, retire_ms=2 * JWKS_MAX_AGE_S * 1000)
        return KeyRotation(self._key_ring, Es256Keys(), publisher, waits, ROTATION_MS)

    def dispatch(self) -> None:
        """Does what is due, until ``close``."""
        while not self._over.is_set():
            self._news.wait(PAUSE_S)
            time.sleep(BATCH_S)
            self._news.clear()
            for dispatch in (self.relay_changes, self._hand_out):
                try:
                    dispatch()
                except Exception as error:  # noqa: BLE001 - what else is due goes on; a closed pool takes nothing
                    if not self._over.is_set():
                        logger.error("not dispatched", extra=safe_error_fields(error))

    def _hand_out(self) -> None:
        while not self._over.is_set() and (message := self.queue.pop()) is not None:
            pool = self._notifiers if isinstance(message, DeliveryMessage) else self._workers
            pool.submit(self._handle, message)

    def relay_changes(self) -> bool:
        """Also forgets the changes, after ``on_event``: a local server may run for days."""
        changes = super().relay_changes()
        seen = self.table.feed[: self._relayed]
        del self.table.feed[: self._relayed]
        self._relayed = 0
        for key, n in seen if self.on_event else ():
            try:
                self._observe(key, n)
            except Exception as error:  # noqa: BLE001 - the changes of other tasks are observed
                logger.error("change not observed", extra=safe_error_fields(error) | {"task": key.task})
        return changes

    def _observe(self, key: TaskKey, n: int) -> None:
        for event in self.table.read(key, n - 1, limit=1):
            if self.on_event:
                self.on_event(key, event)

    def close(self) -> None:
        """Ends ``dispatch``; runs under way are asked to hand over, and no worker takes their tasks."""
        self._over.set()
        self._news.set()
        self._version += 1
        for pool in (self._workers, self._notifiers):
            pool.shutdown(wait=False, cancel_futures=True)
        self.sender.close()
        self.tracer.flush()

    def _handle(self, message: QueueMessage) -> None:
        """Handles a queue message. One that fails comes again, as from SQS."""
        is_handled = False
        try:
            self.answer(message)
            is_handled = True
        except Exception as error:  # the others go on
            about = safe_error_fields(error) | {"task": message.key.task}
            logger.error("queue message failed", extra=about, exc_info=error)
        finally:
            self.queue.finish(message, is_handled=is_handled)

    def _report(self, key: TaskKey, error: BaseException, reference: str) -> None:
        self.on_error(key, error, reference)

    def _remote_agents(self, agents: Mapping[str, Agent]) -> A2ARemoteAgents:
        siblings = {name: f"{self.base_url}/{name}" for name in agents}
        return A2ARemoteAgents(
            siblings,
            self._others,
            self._service_tokens,
            agents=agents,
            read_secret=secrets_in_environment(os.environ),
        )
