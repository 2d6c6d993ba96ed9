"""The engine that runs agents, for the worker and for inline agents in the api."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters.agent_credentials import AgentCredentials
from a2a_serverless.adapters.agent_secrets import secret_at, secrets_in_aws
from a2a_serverless.adapters.clock import SystemClock, UuidIds
from a2a_serverless.adapters.kms import CallbackSealer, KmsServiceTokenSealer
from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
from a2a_serverless.adapters.service_tokens import ServiceTokenIssuer, require_worker
from a2a_serverless.aws.resources import (
    contents,
    deployed_agents,
    deployed_code,
    egress_policy,
    task_log,
    task_table,
    value_store,
)
from a2a_serverless.engine.calls import AgentRegistry
from a2a_serverless.engine.engine import Engine
from a2a_serverless.engine.task_files import TaskFiles
from a2a_serverless.services.pauses import Pauses
from a2a_serverless.store.stores import PauseStore, TaskIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from enum import Enum

    from a2a_serverless.adapters.aws import Aws
    from a2a_serverless.adapters.sqs import SqsQueues
    from a2a_serverless.adapters.webhook_sender import WebhookSender
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.decisions import TaskLifetime
    from a2a_serverless.domain.outcomes import Outcome
    from a2a_serverless.domain.queue_messages import QueueMessage
    from a2a_serverless.ports.system import Metrics, Queues, UrlFetcher
    from a2a_serverless.ports.tracing import Tracer
    from a2a_serverless.settings import Settings

FETCH_MS: Final = 60_000


def make_engine(settings: Settings, aws: Aws, queues: Queues, metrics: Metrics, *, calls: bool = True) -> Engine:
    """The engine, which runs agents. Without ``calls`` it leaves their calls to other agents to the worker."""
    table, agents, now = task_table(settings, aws), deployed_agents(settings), SystemClock().now
    return Engine(
        log=task_log(table, settings, aws),
        index=TaskIndex(table),
        queues=queues,
        ids=UuidIds(),
        now=now,
        agents=agents,
        registry=_agent_registry(settings, aws, agents, now, calls=calls),
        owner_usd=settings.usd_per_owner_per_day,
        pauses=Pauses(PauseStore(table).list_pauses, now),
        values=value_store(table, settings, aws),
        metrics=metrics,
        files=TaskFiles(contents(settings, aws), _fetch(settings)),
        callback_sealer=CallbackSealer(KmsServiceTokenSealer(lambda: aws.kms, settings.need("SEALING_KEY_ID"))),
        read_secret=secrets_in_aws(settings.get("AGENT_SECRETS")),
        prices=json.loads(settings.get("MODEL_PRICES") or "{}"),
        code=deployed_code(settings),
    )


def _agent_registry(
    settings: Settings, aws: Aws, agents: Mapping[str, Agent], now: Callable[[], int], *, calls: bool
) -> AgentRegistry:
    """The agents that agents may call: those of this deployment and of AGENT_URLS (``name=url``, comma-separated).

    Only the worker calls them: it alone may make service tokens, and read the credentials for external agents. So it
    alone gives out addresses of this deployment.
    """
    base_url = settings.need("PUBLIC_BASE_URL") if calls else ""
    siblings = {name: f"{base_url}/{name}" for name in agents}
    sealer = KmsServiceTokenSealer(lambda: aws.kms, settings.need("SEALING_KEY_ID"))
    service_tokens = ServiceTokenIssuer(sealer, now).headers if calls else require_worker
    secret_id = settings.get("AGENT_CREDENTIALS_SECRET_ID")  # only the worker knows it and may read the secret
    credentials = AgentCredentials(lambda: secret_at(secret_id), local=settings.local) if secret_id else None
    files = contents(settings, aws)
    remote_agents = A2ARemoteAgents(
        siblings,
        settings.agent_urls,
        service_tokens,
        credentials=credentials,
        contents=files,
        agents=agents,
        read_secret=secrets_in_aws(settings.get("AGENT_SECRETS")),
    )
    worker_only = frozenset() if calls else frozenset({*siblings, *settings.agent_urls})
    return AgentRegistry(remote_agents, UuidIds(), base_url, worker_only)


def _fetch(settings: Settings) -> UrlFetcher:
    """A fetcher of clients' files; imports what it needs at the first fetch."""

    @cache
    def sender() -> WebhookSender:
        from a2a_serverless.adapters.webhook_sender import WebhookSender

        return WebhookSender(egress_policy(settings))

    def fetch(url: str) -> Outcome:
        from a2a_serverless.domain.contents import LARGEST

        return sender().get(url, {}, FETCH_MS, LARGEST)

    return fetch


@dataclass(frozen=True, slots=True)
class Worker:
    """Does the work of a queue message: it runs a task, or starts the task of a schedule."""

    engine: Engine
    queues: SqsQueues
    life: TaskLifetime

    def __call__(self, message: QueueMessage, remaining_ms: Callable[[], int], receipt: str) -> Enum:
        """Answers the message with this receipt, "" if it is not from the queue. ``remaining_ms`` are left."""
        from a2a_serverless.domain.queue_messages import TickMessage
        from a2a_serverless.engine.loop import play
        from a2a_serverless.engine.run import run
        from a2a_serverless.services.ticks import handle_tick

        if isinstance(message, TickMessage):
            return handle_tick(self.engine, self.life, message)
        delay = partial(self.queues.delay, receipt) if receipt else None
        return play(run(self.engine, message.key, remaining_ms, delay))


def make_worker(
    settings: Settings, aws: Aws, metrics: Metrics, tracer: Tracer, is_replaced: Callable[[], bool] = lambda: False
) -> Worker:
    """The worker of a process. Once it ``is_replaced``, its runs hand over."""
    from a2a_serverless.adapters.sqs import SqsQueues

    queues = SqsQueues(aws.sqs, settings.need("WORK_QUEUE_URL"), "")
    engine = replace(
        make_engine(settings, aws, queues, metrics),
        send_to_dead_letters=SqsQueues(aws.sqs, settings.need("WORK_DEAD_LETTERS_URL"), "").enqueue,
        tracer=tracer,
        is_replaced=is_replaced,
        worker=settings.worker_name,
    )
    return Worker(engine, queues, settings.life)
