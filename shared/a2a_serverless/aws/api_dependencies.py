"""The dependencies of the api function."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from a2a_serverless.adapters.callback_verifier import SignedCallbackVerifier
from a2a_serverless.adapters.clock import SystemClock, UuidIds
from a2a_serverless.adapters.sqs import SqsQueues
from a2a_serverless.aws import resources
from a2a_serverless.aws.process import make_tracer
from a2a_serverless.domain.metrics import NULL_METRICS
from a2a_serverless.http.api import Api, Console
from a2a_serverless.services.rate_limiter import RateLimiter
from a2a_serverless.services.requests import TaskService
from a2a_serverless.settings import Settings, read
from a2a_serverless.store.stores import OwnerStore, Publications, TaskIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_serverless.adapters.aws import Aws
    from a2a_serverless.domain.access import Caller
    from a2a_serverless.http.api import Authenticator
    from a2a_serverless.ports.agents import InlineRunner
    from a2a_serverless.ports.system import Metrics, Sealer
    from a2a_serverless.ports.tracing import Tracer
    from a2a_serverless.services.listing import TaskLister
    from a2a_serverless.services.webhooks import Webhooks


def make_dependencies(environment: Mapping[str, str], aws: Aws, metrics: Metrics = NULL_METRICS) -> Api:
    """The dependencies of the application, with the real adapters."""
    settings = read(environment)
    parts = _Parts(settings, aws, metrics, make_tracer(environment))
    return Api(
        parts.make_service(),
        parts.agents,
        _authenticator(settings, aws, parts.clock.now),
        SignedCallbackVerifier(parts.public, parts.clock.now),
        settings.jwks_max_age_seconds,
        stream_ms=settings.stream_seconds * 1000,
        limiter=RateLimiter(OwnerStore(parts.table), parts.clock, parts.ids, settings.quota),
        origins=settings.cors_origins,
        console=_console(settings),
    )


class _Parts:
    """The parts of the service. The properties are made on first use, because most requests need none of them."""

    def __init__(self, settings: Settings, aws: Aws, metrics: Metrics, tracer: Tracer) -> None:
        self.settings, self.aws, self.metrics, self.tracer = settings, aws, metrics, tracer
        self.clock, self.ids = SystemClock(), UuidIds()
        self.table, self.agents = resources.task_table(settings, aws), resources.deployed_agents(settings)
        self.public = Publications(resources.public_table(settings, aws))
        self.log = resources.task_log(self.table, settings, aws)
        self.queues = SqsQueues(aws.sqs, settings.need("WORK_QUEUE_URL"), settings.need("DELIVERY_QUEUE_URL"))
        self.key_id = settings.need("SEALING_KEY_ID")
        self._own_urls = resources.own_urls(settings)

    def make_service(self) -> TaskService:
        """The service for the operations of clients."""
        settings = self.settings
        return TaskService(
            log=self.log,
            publications=self.public,
            queues=self.queues,
            clock=self.clock,
            ids=self.ids,
            webhooks=lambda: self.webhooks,
            lister=lambda: self.lister,
            callback_sealer=lambda: self.callback_sealer,
            life=settings.life,
            blocking_ms=settings.blocking_seconds * 1000,
            inline_runner=lambda agent_id: self.inline_runner if self.agents[agent_id].runs == "inline" else None,
            metrics=self.metrics,
            tracer=self.tracer,
            contents=resources.contents(settings, self.aws),
        )

    @cached_property
    def sealer(self) -> Sealer:
        """The sealer of clients' secrets and page tokens."""
        from a2a_serverless.adapters.kms import KmsSealer

        return KmsSealer(lambda: self.aws.kms, self.key_id, self.clock.now)

    @cached_property
    def callback_sealer(self) -> Sealer:
        """The sealer that opens the secrets of signed callbacks."""
        from a2a_serverless.adapters.kms import CallbackSealer, KmsServiceTokenSealer

        return CallbackSealer(KmsServiceTokenSealer(lambda: self.aws.kms, self.key_id))

    @cached_property
    def lister(self) -> TaskLister:
        """The service that lists tasks."""
        from a2a_serverless.services.listing import TaskLister

        return TaskLister(self.log, TaskIndex(self.table), self.sealer)

    @cached_property
    def webhooks(self) -> Webhooks:
        """The service that registers webhooks."""
        from a2a_serverless.adapters.egress import addresses_of
        from a2a_serverless.services.webhooks import Webhooks
        from a2a_serverless.store.push_store import PushStore

        settings = self.settings
        return Webhooks(
            log=self.log,
            store=PushStore(self.table),
            queues=self.queues,
            sealer=self.sealer,
            clock=self.clock,
            ids=self.ids,
            policy=resources.egress_policy(settings),
            resolver=addresses_of,
            ownership=settings.webhook_ownership != "off",
            per_day=settings.webhooks_per_owner_per_day,
            own_urls=self.own_urls,
            enforce_ownership=settings.webhook_ownership == "enforce",
            events=settings.webhook_events,
        )

    @cached_property
    def inline_runner(self) -> InlineRunner:
        """The runner of inline agents."""
        from a2a_serverless.aws.engine import make_engine
        from a2a_serverless.engine.inline import EngineInlineRunner

        engine = make_engine(self.settings, self.aws, self.queues, self.metrics, calls=False)
        return EngineInlineRunner(replace(engine, tracer=self.tracer))

    def own_urls(self) -> tuple[str, ...]:
        """The deployment's base URLs. The api reads its own from the public table, once it is there."""
        if not self._own_urls:
            self._own_urls = tuple(filter(None, [resources.published_base_url(self.settings, self.aws)]))
        return self._own_urls


def _console(settings: Settings) -> Console | None:
    """The console, with the name of the stack. Its agents' author may link documents by ``DOCUMENTS_URL``."""
    name, documents = settings.get("POWERTOOLS_SERVICE_NAME"), settings.get("DOCUMENTS_URL")
    console = Console(name, documents=documents, internals=settings.console == "internals")
    return None if settings.console == "off" else console


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
