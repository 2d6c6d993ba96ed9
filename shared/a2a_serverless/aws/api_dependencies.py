"""The dependencies of the api function."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from a2a_serverless.adapters.callback_verifier import SignedCallbackVerifier
from a2a_serverless.adapters.clock import SystemClock, UuidIds
from a2a_serverless.adapters.sqs import SqsQueues
from a2a_serverless.aws import resources
from a2a_serverless.aws.process import make_tracer
from a2a_serverless.domain.head import TaskLifetime
from a2a_serverless.domain.metrics import NULL_METRICS
from a2a_serverless.domain.model import DAY_MS
from a2a_serverless.http.api import Api
from a2a_serverless.services.rate_limiter import RateLimiter
from a2a_serverless.services.tasks import TaskService
from a2a_serverless.settings import Settings, read
from a2a_serverless.store.stores import OwnerStore, Publications, TaskIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.adapters.aws import Aws
    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.http.api import Authenticator
    from a2a_serverless.ports.agents import InlineRunner
    from a2a_serverless.ports.system import Metrics, Queues, Sealer
    from a2a_serverless.ports.tracing import Tracer
    from a2a_serverless.services.listing import TaskLister
    from a2a_serverless.services.webhooks import Webhooks
    from a2a_serverless.store.table import Table
    from a2a_serverless.store.task_log import TaskLog


def make_dependencies(environment: Mapping[str, str], aws: Aws, metrics: Metrics = NULL_METRICS) -> Api:
    """The dependencies of the application, with the real adapters."""
    settings = read(environment)
    table, agents = resources.task_table(settings, aws), resources.deployed_agents(settings)
    public = Publications(resources.public_table(settings, aws))
    service = _task_service(settings, aws, table, agents, metrics, make_tracer(environment))
    now = service.clock.now
    return Api(
        service,
        public,
        agents,
        _authenticator(settings, aws, now),
        SignedCallbackVerifier(public, now),
        settings.jwks_max_age_seconds,
        limiter=_rate_limiter(settings, table, service),
        origins=settings.cors_origins,
        console=settings.console,
    )


def _task_service(
    settings: Settings, aws: Aws, table: Table, agents: Mapping[str, Agent], metrics: Metrics, tracer: Tracer
) -> TaskService:
    """The service for the operations of clients."""
    clock, log = SystemClock(), resources.task_log(table, settings, aws)
    queues = SqsQueues(aws.sqs, settings.need("WORK_QUEUE_URL"), settings.need("DELIVERY_QUEUE_URL"))
    sealer = cache(partial(_sealer, aws, settings.need("SEALING_KEY_ID")))
    return TaskService(
        log=log,
        queues=queues,
        clock=clock,
        ids=UuidIds(),
        webhooks=cache(partial(_webhooks, settings, aws, table, log, queues, sealer)),
        lister=cache(partial(_lister, table, log, sealer)),
        callback_sealer=cache(partial(_callback_sealer, aws, settings.need("SEALING_KEY_ID"))),
        life=TaskLifetime(settings.task_max_life_days * DAY_MS, settings.task_retention_days * DAY_MS),
        blocking_ms=settings.blocking_seconds * 1000,
        idempotent=settings.idempotency,
        inline_runner=_inline_runner(settings, aws, queues, metrics, tracer, agents),
        metrics=metrics,
        tracer=tracer,
        contents=resources.contents(settings, aws),
    )


def _sealer(aws: Aws, key_id: str) -> Sealer:
    """The sealer of clients' secrets and page tokens."""
    from a2a_serverless.adapters.kms import KmsSealer

    return KmsSealer(lambda: aws.kms, key_id, SystemClock().now)


def _callback_sealer(aws: Aws, key_id: str) -> Sealer:
    """The sealer that opens the secrets of signed callbacks."""
    from a2a_serverless.adapters.kms import CallbackSealer, KmsServiceTokenSealer

    return CallbackSealer(KmsServiceTokenSealer(lambda: aws.kms, key_id))


def _lister(table: Table, log: TaskLog, sealer: Callable[[], Sealer]) -> TaskLister:
    """The service that lists tasks."""
    from a2a_serverless.services.listing import TaskLister

    return TaskLister(log, TaskIndex(table), sealer())


def _webhooks(
    settings: Settings, aws: Aws, table: Table, log: TaskLog, queues: Queues, sealer: Callable[[], Sealer]
) -> Webhooks:
    """The service that registers webhooks."""
    from a2a_serverless.adapters.egress import SystemResolver
    from a2a_serverless.services.webhooks import Webhooks
    from a2a_serverless.store.push_store import PushStore

    return Webhooks(
        log=log,
        store=PushStore(table),
        queues=queues,
        sealer=sealer(),
        clock=SystemClock(),
        ids=UuidIds(),
        policy=resources.egress_policy(settings),
        resolver=SystemResolver(),
        ownership=settings.webhook_ownership != "off",
        per_day=settings.webhooks_per_owner_per_day,
        own_urls=_own_or_published(settings, aws),
        enforce_ownership=settings.webhook_ownership == "enforce",
    )


def _rate_limiter(settings: Settings, table: Table, service: TaskService) -> RateLimiter:
    """The rate limiter, which gives each owner its quota."""
    return RateLimiter(OwnerStore(table), service.clock, service.ids, settings.quota)


def _inline_runner(
    settings: Settings, aws: Aws, queues: Queues, metrics: Metrics, tracer: Tracer, agents: Mapping[str, Agent]
) -> Callable[[str], InlineRunner | None]:
    """Returns the runner of an agent, by its id; makes the engine at the first request to an inline agent."""

    @cache
    def runner() -> InlineRunner:
        from a2a_serverless.aws.engine import make_engine
        from a2a_serverless.engine.inline import EngineInlineRunner

        return EngineInlineRunner(replace(make_engine(settings, aws, queues, metrics, calls=False), tracer=tracer))

    return lambda agent_id: runner() if agents[agent_id].runs == "inline" else None


def _own_or_published(settings: Settings, aws: Aws) -> Callable[[], tuple[str, ...]]:
    """The deployment's base URLs for the api, which reads its own from the public table, once it is there."""
    urls: list[str] = [*resources.own_urls(settings)]

    def own() -> tuple[str, ...]:
        if not urls:
            urls.extend(filter(None, [resources.published_base_url(resources.public_table(settings, aws))]))
        return tuple(urls)

    return own


def _authenticator(settings: Settings, aws: Aws, now: Callable[[], int]) -> Authenticator:
    """Admits every caller with anonymous access (local runs); else API keys, service tokens and the issuer's tokens."""
    from a2a_serverless.http.api import AllowAnonymous, OidcOrApiKey

    if settings.anonymous_access:
        return AllowAnonymous()
    from a2a_serverless.adapters.kms import KmsServiceTokenSealer
    from a2a_serverless.adapters.service_tokens import ServiceTokenVerifier
    from a2a_serverless.store.api_keys import ApiKeyStore, CachedApiKeyStore

    keys = CachedApiKeyStore(ApiKeyStore(resources.access_table(settings, aws)), now)
    service_tokens = ServiceTokenVerifier(KmsServiceTokenSealer(lambda: aws.kms, settings.need("SEALING_KEY_ID")), now)
    return OidcOrApiKey(keys.find, _tokens(settings, now), service_tokens.find)


def _tokens(settings: Settings, now: Callable[[], int]) -> Callable[[str], Caller] | None:
    if settings.trusted_issuer is None:
        return None
    from a2a_serverless.adapters.oidc import OidcTokenVerifier, fetch_document, run_in_thread

    # Lambda freezes background threads between requests, so there one request in a while waits for the key set.
    beside = (lambda work: work()) if settings.get("AWS_LAMBDA_FUNCTION_NAME") else run_in_thread
    return OidcTokenVerifier(settings.trusted_issuer, fetch_document, now, beside).verify
