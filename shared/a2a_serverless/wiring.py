"""The composition root: builds the use cases and handlers on the real adapters.

Importing it opens, reads and connects nothing; each ``make_`` function does. A Lambda function calls one of them when
it starts, and imports only what it uses.
"""

from __future__ import annotations

import gc
import os
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar
from urllib.parse import urlsplit

from a2a_serverless.domain.metrics import NULL_METRICS
from a2a_serverless.settings import DAY_MS, Settings, SettingsError, read

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext
    from fastapi import FastAPI

    from a2a_serverless.adapters.agent_credentials import AgentCredentials
    from a2a_serverless.adapters.aws import Aws
    from a2a_serverless.adapters.dynamodb.payloads import PayloadStore
    from a2a_serverless.adapters.dynamodb.table import Table
    from a2a_serverless.adapters.webhook_sender import WebhookSender
    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.deployed import StackName
    from a2a_serverless.domain.key_ring import KeyRing
    from a2a_serverless.domain.outbound import Outcome
    from a2a_serverless.domain.url_policy import EgressPolicy
    from a2a_serverless.engine.calls import AgentRegistry
    from a2a_serverless.engine.run import Engine
    from a2a_serverless.handlers.authentication import Authenticator
    from a2a_serverless.handlers.http import Edge
    from a2a_serverless.handlers.invocations import Handler
    from a2a_serverless.handlers.runtime import Answer
    from a2a_serverless.ports.agents import InlineRunner
    from a2a_serverless.ports.contents import ContentStore, UrlFetcher
    from a2a_serverless.ports.keys import ApiKeyStore, Sealer
    from a2a_serverless.ports.system import Metrics, Queues
    from a2a_serverless.ports.tasks import TaskLog
    from a2a_serverless.services.delivery_admin import Operations
    from a2a_serverless.services.erasure import ErasureService
    from a2a_serverless.services.key_rotation import KeyRotation
    from a2a_serverless.services.rate_limiter import RateLimiter
    from a2a_serverless.services.tasks import TaskService
    from a2a_serverless.services.webhooks import Webhooks

P = ParamSpec("P")
T = TypeVar("T")

KEY_RING_CACHE_MS: Final = 300_000
FETCH_MS: Final = 60_000
MESSAGES_AT_ONCE: Final = 10  # the notifier's BatchSize
SWEEPS_AT_ONCE: Final = 8
SKEW_S: Final = 120
TOKEN_LIFE_S: Final = 300
ANYBODY: Final = ("local", "anybody")


def _uncollected(make: Callable[P, T]) -> Callable[P, T]:
    """Decorator: runs ``make`` with the garbage collector disabled, then freezes what it has built.

    The modules and objects that ``make`` creates live as long as the process, so the collector need not scan them.
    """

    @wraps(make)
    def resting(*args: P.args, **kwargs: P.kwargs) -> T:
        gc.disable()
        try:
            return make(*args, **kwargs)
        finally:
            gc.freeze()
            gc.enable()

    return resting


@_uncollected
def make_api(environment: Mapping[str, str] = os.environ) -> Handler:
    """The handler of the api function."""
    from a2a_serverless.handlers.lambda_proxy import NotHttp, make_gateway_handler

    metrics = _metrics(environment)
    handler = make_gateway_handler(make_edge(environment, metrics))
    return _keep_for_process(handler, environment, metrics, "api", (NotHttp,))


def stream_api(environment: Mapping[str, str] = os.environ) -> None:
    """Serves the api function's events forever, with streaming; ``functions/api/stream`` starts it."""
    from a2a_serverless.handlers.runtime import RuntimeApi, serve

    serve(RuntimeApi(environment["AWS_LAMBDA_RUNTIME_API"]), _make_streaming_api(environment))


@_uncollected
def _make_streaming_api(environment: Mapping[str, str]) -> Callable[[Any, LambdaContext], Answer]:
    from a2a_serverless.handlers.lambda_proxy import make_gateway_handler
    from a2a_serverless.handlers.runtime import make_streaming_handler

    metrics = _metrics(environment)
    edge = make_edge(environment, metrics)
    return _started(make_streaming_handler(edge, make_gateway_handler(edge)), environment, metrics, "api")


def make_app(environment: Mapping[str, str] = os.environ) -> FastAPI:
    """The api as an ASGI application, for uvicorn on a developer's machine."""
    from a2a_serverless.adapters.logs import start_logging
    from a2a_serverless.handlers.asgi import make_asgi_app, refuse_foreign_pages

    start_logging(environment.get("POWERTOOLS_SERVICE_NAME", ""))
    edge, public = make_edge(environment), urlsplit(environment.get("PUBLIC_BASE_URL", ""))
    return refuse_foreign_pages(make_asgi_app(edge), public.hostname or "localhost", edge.origins)


def make_edge(environment: Mapping[str, str] = os.environ, metrics: Metrics = NULL_METRICS) -> Edge:
    """The HTTP edge, on the real adapters."""
    from a2a_serverless.adapters.callback_verifier import SignedCallbackVerifier
    from a2a_serverless.adapters.dynamodb.task_log import DynamoPublications
    from a2a_serverless.adapters.lambda_functions import REQUEST_TIMEOUT_S, LambdaFunctions
    from a2a_serverless.handlers.http import Edge

    settings, aws = read(environment), _aws()
    table, agents = _table(settings, aws), _agents(settings)
    service, public = _task_service(settings, aws, table, agents, metrics), DynamoPublications(_public(settings, aws))
    now = service.clock.now
    return Edge(
        service,
        public,
        agents,
        _authenticator(settings, aws, now),
        SignedCallbackVerifier(public, now),
        settings.jwks_max_age_seconds,
        rest_binding="proto" if settings.card_shape == "v0_3" else "rest",
        limiter=_rate_limiter(settings, table, service),
        origins=settings.cors_origins,
        eraser=partial(LambdaFunctions(aws, REQUEST_TIMEOUT_S).invoke, settings.need("ERASER_FUNCTION_NAME")),
    )


def _task_service(
    settings: Settings, aws: Aws, table: Table, agents: Mapping[str, Agent], metrics: Metrics
) -> TaskService:
    """The service for the operations of clients."""
    from a2a_serverless.adapters.dynamodb.task_log import DynamoTaskIndex, DynamoTaskLog
    from a2a_serverless.adapters.kms import KmsSealer
    from a2a_serverless.adapters.sqs import SqsQueues
    from a2a_serverless.adapters.system import SystemClock, UuidIds
    from a2a_serverless.domain.head import TaskLifetime
    from a2a_serverless.services.listing import TaskLister
    from a2a_serverless.services.tasks import TaskService

    clock, log = SystemClock(), DynamoTaskLog(table, _payloads(settings, aws))
    queues = SqsQueues(aws.sqs, settings.need("WORK_QUEUE_URL"), settings.need("DELIVERY_QUEUE_URL"))
    sealer = KmsSealer(lambda: aws.kms, settings.need("SEALING_KEY_ID"), clock.now)
    return TaskService(
        log=log,
        queues=queues,
        clock=clock,
        ids=UuidIds(),
        webhooks=_webhooks(settings, aws, table, log, queues, sealer),
        lister=TaskLister(log, DynamoTaskIndex(table), sealer),
        life=TaskLifetime(settings.task_max_life_days * DAY_MS, settings.task_retention_days * DAY_MS),
        blocking_ms=settings.blocking_seconds * 1000,
        idempotent=settings.idempotency,
        inline_runner=_inline_runner(agents, lambda: _engine(settings, aws, queues, metrics, calls=False)),
        metrics=metrics,
        contents=_contents(settings, aws),
    )


def _webhooks(settings: Settings, aws: Aws, table: Table, log: TaskLog, queues: Queues, sealer: Sealer) -> Webhooks:
    """The service that registers webhooks."""
    from a2a_serverless.adapters.dynamodb.task_log import DynamoPushStore
    from a2a_serverless.adapters.egress import SystemResolver
    from a2a_serverless.adapters.system import SystemClock, UuidIds
    from a2a_serverless.services.webhooks import Webhooks

    return Webhooks(
        log=log,
        store=DynamoPushStore(table),
        queues=queues,
        sealer=sealer,
        clock=SystemClock(),
        ids=UuidIds(),
        policy=_policy(settings),
        resolver=SystemResolver(),
        ownership=settings.webhook_ownership != "off",
        per_day=settings.webhooks_per_owner_per_day,
        own_urls=_own_or_published(settings, aws),
        enforce_ownership=settings.webhook_ownership == "enforce",
    )


def _rate_limiter(settings: Settings, table: Table, service: TaskService) -> RateLimiter:
    """The rate limiter, which gives each owner its quota."""
    from a2a_serverless.adapters.dynamodb.owners import DynamoOwnerStore
    from a2a_serverless.adapters.dynamodb.task_log import DynamoTaskIndex
    from a2a_serverless.services.rate_limiter import RateLimiter

    owners, index = DynamoOwnerStore(table, service.clock.now), DynamoTaskIndex(table)
    max_life_ms = settings.task_max_life_days * DAY_MS
    return RateLimiter(owners, index, service.clock, service.ids, settings.quota, max_life_ms)


@_uncollected
def make_worker(environment: Mapping[str, str] = os.environ) -> Handler:
    """The handler of the worker function."""
    import asyncio

    from a2a_serverless.adapters.sqs import SqsQueues
    from a2a_serverless.domain.queue_messages import WorkMessage
    from a2a_serverless.engine.run import run
    from a2a_serverless.handlers.queues import make_queue_handler

    settings, aws, metrics = read(environment), _aws(), _metrics(environment)
    engine = _engine(settings, aws, SqsQueues(aws.sqs, settings.need("WORK_QUEUE_URL"), ""), metrics)
    engine = replace(
        engine, send_to_dead_letters=SqsQueues(aws.sqs, settings.need("WORK_DEAD_LETTERS_URL"), "").enqueue
    )
    handler = make_queue_handler(
        WorkMessage, lambda message, remaining_ms: asyncio.run(run(engine, message.key, remaining_ms, message.fence))
    )
    return _keep_for_process(handler, environment, metrics, "worker")


@_uncollected
def make_relay(environment: Mapping[str, str] = os.environ) -> Handler:
    """The handler of the relay function."""
    from a2a_serverless.adapters.dynamodb.keys import task_key
    from a2a_serverless.adapters.dynamodb.task_log import DynamoPushStore
    from a2a_serverless.adapters.sqs import SqsQueues
    from a2a_serverless.adapters.system import SystemClock
    from a2a_serverless.handlers.table_stream import make_stream_handler
    from a2a_serverless.services.relay import relay

    settings, aws, clock = read(environment), _aws(), SystemClock()
    store = DynamoPushStore(_table(settings, aws))
    queues = SqsQueues(aws.sqs, "", settings.need("DELIVERY_QUEUE_URL"))
    handler = make_stream_handler(lambda tasks: relay(store, queues, tasks, clock.now()), task_key)
    return _keep_for_process(handler, environment, _metrics(environment), "relay")


@_uncollected
def make_notifier(environment: Mapping[str, str] = os.environ) -> Handler:
    """The handler of the notifier function."""
    from a2a_serverless.adapters.dynamodb.task_log import DynamoBreakerStore, DynamoPushStore, DynamoTaskLog
    from a2a_serverless.adapters.jose import KeyRingSigner
    from a2a_serverless.adapters.kms import KmsSealer
    from a2a_serverless.adapters.secrets import CachedKeyRingStore, SecretKeyRingStore
    from a2a_serverless.adapters.sqs import SqsQueues
    from a2a_serverless.adapters.system import SystemClock, UuidIds
    from a2a_serverless.adapters.webhook_sender import WebhookSender
    from a2a_serverless.domain.queue_messages import DeliveryMessage
    from a2a_serverless.handlers.queues import make_queue_handler
    from a2a_serverless.services.circuit_breakers import CircuitBreakers
    from a2a_serverless.services.deliver import DeliveryContext, deliver

    settings, aws, clock, metrics = read(environment), _aws(), SystemClock(), _metrics(environment)
    table = _table(settings, aws)
    store = CachedKeyRingStore(
        SecretKeyRingStore(aws.secrets, settings.need("KEY_RING_SECRET_ID")), clock.now, KEY_RING_CACHE_MS
    )
    context = DeliveryContext(
        log=DynamoTaskLog(table, _payloads(settings, aws)),
        store=DynamoPushStore(table),
        queues=SqsQueues(aws.sqs, "", settings.need("DELIVERY_QUEUE_URL")),
        sender=WebhookSender(replace(_policy(settings), own=_own_urls(settings))),
        signer=KeyRingSigner(store.load),
        sealer=KmsSealer(lambda: aws.kms, settings.need("SEALING_KEY_ID"), clock.now),
        clock=clock,
        ids=UuidIds(),
        issuer=settings.need("PUBLIC_BASE_URL"),
        chance=random.random,
        hosts=CircuitBreakers(DynamoBreakerStore(table), metrics=metrics),
        metrics=metrics,
        enforce_ownership=settings.webhook_ownership == "enforce",
        contents=_contents(settings, aws),
    )
    handler = make_queue_handler(
        DeliveryMessage, lambda message, remaining_ms: deliver(context, message, remaining_ms), MESSAGES_AT_ONCE
    )
    return _keep_for_process(handler, environment, metrics, "notifier")


@_uncollected
def make_sweeper(environment: Mapping[str, str] = os.environ) -> Handler:
    """The handler of the sweeper function."""
    from concurrent.futures import ThreadPoolExecutor

    from a2a_serverless.adapters.dynamodb.task_log import DynamoPushStore, DynamoTaskLog
    from a2a_serverless.adapters.sqs import SqsQueues
    from a2a_serverless.adapters.system import SystemClock, UuidIds
    from a2a_serverless.handlers.schedules import make_schedule_handler
    from a2a_serverless.services.sweep import Sweeper, sweep

    settings, aws = read(environment), _aws()
    table = _table(settings, aws)
    queues = SqsQueues(aws.sqs, settings.need("WORK_QUEUE_URL"), settings.need("DELIVERY_QUEUE_URL"))
    log, store = DynamoTaskLog(table, _payloads(settings, aws)), DynamoPushStore(table)
    metrics = _metrics(environment)
    each = ThreadPoolExecutor(SWEEPS_AT_ONCE, "sweep").map
    sweeper = Sweeper(log, store, queues, SystemClock(), UuidIds(), metrics, each)
    return _keep_for_process(make_schedule_handler(partial(sweep, sweeper), "swept"), environment, metrics, "sweeper")


@_uncollected
def make_rotator(
    environment: Mapping[str, str] = os.environ, answer: Callable[[str, bytes], None] | None = None
) -> Handler:
    """The handler of the rotator function. ``answer`` PUTs to CloudFormation's URL, by default over HTTP.

    Each command raises the errors of the settings, so that CloudFormation gets an answer and does not wait.
    """
    from a2a_serverless.handlers.schedules import UnknownCommand, make_rotator_handler, put_answer
    from a2a_serverless.services.key_rotation import (
        KeyRingError,
        describe,
        ensure_ring,
        revoke_key,
        rotate_ring,
        rotate_when_old,
    )

    metrics, rotation = _metrics(environment), cache(partial(_key_rotation, environment))
    with suppress(Exception):
        rotation()

    def said(ring: KeyRing) -> dict[str, Any]:
        age_ms = rotation().publisher.clock.now() - ring.promoted_at
        metrics.record({"KeyAge": round(100 * age_ms / rotation().age_ms, 1)})
        return {"current": ring.current.kid, "next": ring.next.kid}

    return _keep_for_process(
        make_rotator_handler(
            {
                "ensure": lambda _: said(ensure_ring(rotation())),
                "show": lambda _: describe(rotation()),
                "schedule": lambda _: said(rotate_when_old(rotation())),
                "rotate": lambda _: said(rotate_ring(rotation())),
                "revoke": lambda event: said(revoke_key(rotation(), str(event["kid"]))),
            },
            answer or put_answer,
        ),
        environment,
        metrics,
        "rotator",
        (KeyRingError, SettingsError, UnknownCommand),
    )


def _key_rotation(environment: Mapping[str, str]) -> KeyRotation:
    from a2a_serverless.adapters.dynamodb.task_log import DynamoPublications
    from a2a_serverless.adapters.jose import Es256Keys
    from a2a_serverless.adapters.secrets import SecretKeyRingStore
    from a2a_serverless.adapters.system import SystemClock
    from a2a_serverless.domain.key_ring import RotationTimes
    from a2a_serverless.services.key_rotation import KeyRotation
    from a2a_serverless.services.publish import CardPublisher, without_scopes

    settings, aws, clock = read(environment), _aws(), SystemClock()
    public = DynamoPublications(_public(settings, aws))
    base_url = settings.need("PUBLIC_BASE_URL")
    scopes = settings.trusted_issuer.scopes_for if settings.trusted_issuer else without_scopes
    publisher = CardPublisher(public, clock, _agents(settings), base_url, settings.card_shape, settings.schemes, scopes)
    waits = RotationTimes(
        publish_ms=(settings.jwks_max_age_seconds + SKEW_S) * 1000,
        retire_ms=(settings.jwks_max_age_seconds + TOKEN_LIFE_S + SKEW_S) * 1000 + KEY_RING_CACHE_MS,
    )
    store = SecretKeyRingStore(aws.secrets, settings.need("KEY_RING_SECRET_ID"))
    return KeyRotation(store, Es256Keys(), publisher, waits, settings.key_ring_rotation_days * DAY_MS)


@_uncollected
def make_eraser(environment: Mapping[str, str] = os.environ) -> Handler:
    """The handler of the eraser function."""
    from a2a_serverless.domain.errors import InvalidParams
    from a2a_serverless.handlers.eraser import make_eraser_handler

    settings = read(environment)
    handler = make_eraser_handler(_erasure(settings, _aws()))
    return _keep_for_process(handler, environment, _metrics(environment), "eraser", (InvalidParams,))


def make_api_keys(stack: StackName) -> ApiKeyStore:
    """The API keys of a deployed stack, read and written with the caller's AWS credentials."""
    from a2a_serverless.adapters.deployed_stack import DeployedStack
    from a2a_serverless.adapters.dynamodb.api_keys import DynamoApiKeyStore

    aws = _aws_of(stack)
    return DynamoApiKeyStore(_table_named(DeployedStack(aws, stack.name).output("AccessTableName"), aws))


def make_earlier_api_keys(stack: StackName) -> ApiKeyStore:
    """The API keys that an earlier release stored in the table that functions may write; they are not accepted."""
    from a2a_serverless.adapters.deployed_stack import DeployedStack
    from a2a_serverless.adapters.dynamodb.api_keys import DynamoApiKeyStore

    aws = _aws_of(stack)
    return DynamoApiKeyStore(_table_named(DeployedStack(aws, stack.name).output("TableName"), aws))


def alarm_states(stack: StackName) -> Mapping[str, str]:
    """The state of each alarm of a deployed stack, by alarm name: OK, ALARM or INSUFFICIENT_DATA."""
    from a2a_serverless.adapters.deployed_stack import DeployedStack

    return DeployedStack(_aws_of(stack), stack.name).alarms()


def make_operations(stack: StackName) -> Operations:
    """An operator's operations on a deployed stack, with the caller's AWS credentials."""
    from a2a_serverless.adapters.deployed_stack import DeployedStack
    from a2a_serverless.adapters.dynamodb.task_log import DynamoPushStore, DynamoTaskLog
    from a2a_serverless.adapters.sqs import SqsQueues
    from a2a_serverless.adapters.system import SystemClock
    from a2a_serverless.services.delivery_admin import DeliveryAdmin, Operations

    aws = _aws_of(stack)
    deployed = DeployedStack(aws, stack.name)
    outputs = {"TABLE_NAME": "TableName", "BLOBS_BUCKET": "BlobsBucket"}
    settings = Settings({name: deployed.output(output) for name, output in outputs.items()})
    table = _table(settings, aws)
    admin = DeliveryAdmin(
        log=DynamoTaskLog(table, _payloads(settings, aws)),
        store=DynamoPushStore(table),
        queues=SqsQueues(aws.sqs, "", deployed.output("DeliveryQueueUrl")),
        clock=SystemClock(),
    )
    return Operations(
        admin,
        lambda command: deployed.invoke(deployed.output("RotatorFunctionName"), command),
        lambda order: deployed.invoke(deployed.output("EraserFunctionName"), order),
    )


def _erasure(settings: Settings, aws: Aws) -> ErasureService:
    """The service that erases, in the tables and the bucket."""
    from a2a_serverless.adapters.dynamodb import keys
    from a2a_serverless.adapters.dynamodb.api_keys import DynamoApiKeyStore
    from a2a_serverless.adapters.dynamodb.erasure import DynamoErasureStore
    from a2a_serverless.adapters.dynamodb.task_log import DynamoPushStore, DynamoTaskLog
    from a2a_serverless.adapters.s3 import S3BlobStore
    from a2a_serverless.adapters.system import SystemClock, UuidIds
    from a2a_serverless.services.erasure import ErasureService

    table, blobs = _table(settings, aws), S3BlobStore(lambda: aws.s3, settings.need("BLOBS_BUCKET"))
    return ErasureService(
        log=DynamoTaskLog(table, _payloads(settings, aws)),
        store=DynamoPushStore(table),
        erasure_store=DynamoErasureStore(table),
        blobs=blobs,
        api_keys=DynamoApiKeyStore(_access(settings, aws)),
        clock=SystemClock(),
        ids=UuidIds(),
        place=lambda *names: f"{keys.path(*names)}/",
    )


def _inline_runner(agents: Mapping[str, Agent], engine: Callable[[], Engine]) -> InlineRunner:
    """The runner of inline agents inside the api function; the engine is made at the first request to one."""
    from a2a_serverless.engine.lazy_inline import LazyInlineRunner

    def make() -> InlineRunner:
        from a2a_serverless.engine.inline import EngineInlineRunner

        return EngineInlineRunner(engine())

    return LazyInlineRunner(agents, make)


def _engine(settings: Settings, aws: Aws, queues: Queues, metrics: Metrics, *, calls: bool = True) -> Engine:
    """The engine, which runs agents. Without ``calls`` it leaves their calls to other agents to the worker."""
    from a2a_serverless.adapters.dynamodb.task_log import DynamoTaskIndex, DynamoTaskLog
    from a2a_serverless.adapters.system import SystemClock, UuidIds
    from a2a_serverless.engine.files import TaskFiles
    from a2a_serverless.engine.run import Engine

    table, agents, now = _table(settings, aws), _agents(settings), SystemClock().now
    log, index = DynamoTaskLog(table, _payloads(settings, aws)), DynamoTaskIndex(table)
    return Engine(
        log,
        index,
        queues,
        UuidIds(),
        now,
        agents,
        _agent_registry(settings, aws, agents, now, calls=calls),
        metrics,
        files=TaskFiles(_contents(settings, aws), _fetch(settings)),
    )


def _agent_registry(
    settings: Settings, aws: Aws, agents: Mapping[str, Agent], now: Callable[[], int], *, calls: bool
) -> AgentRegistry:
    """The agents that agents may call: those of this deployment and of AGENT_URLS (``name=url``, comma-separated).

    Only the worker calls them: it alone may make service tokens, and read the credentials for external agents.
    """
    from a2a_serverless.adapters.kms import KmsServiceTokenSealer
    from a2a_serverless.adapters.remote_agents import A2ARemoteAgents
    from a2a_serverless.adapters.service_tokens import ServiceTokenIssuer, require_worker
    from a2a_serverless.adapters.system import UuidIds
    from a2a_serverless.engine.calls import AgentRegistry

    base_url = settings.get("PUBLIC_BASE_URL") or _published_base_url(_public(settings, aws))
    siblings = {name: f"{base_url}/{name}" for name in agents}
    sealer = KmsServiceTokenSealer(lambda: aws.kms, settings.need("SEALING_KEY_ID"))
    service_tokens = ServiceTokenIssuer(sealer, now).headers if calls else require_worker
    credentials = _credentials(settings, aws, now)
    remote_agents = A2ARemoteAgents(siblings, settings.agent_urls, service_tokens, credentials=credentials)
    apart = frozenset() if calls else frozenset({*siblings, *settings.agent_urls})
    return AgentRegistry(remote_agents, UuidIds(), base_url, apart)


def _credentials(settings: Settings, aws: Aws, now: Callable[[], int]) -> AgentCredentials | None:
    """The credentials for external agents; only the worker knows the secret's id and may read it."""
    if not (secret_id := settings.get("AGENT_CREDENTIALS_SECRET_ID")):
        return None
    from a2a_serverless.adapters.agent_credentials import AgentCredentials
    from a2a_serverless.adapters.secrets import text_of

    return AgentCredentials(lambda: text_of(aws.secrets, secret_id), now, local=settings.local)


def _published_base_url(table: Table) -> str:
    """The deployment's published base URL, which the template cannot give to the api; "" before the rotator has run."""
    from a2a_serverless.adapters.dynamodb.task_log import DynamoPublications
    from a2a_serverless.services.publish import base_url_in

    return base_url_in(DynamoPublications(table))


def _metrics(environment: Mapping[str, str]) -> Metrics:
    """The metrics, which a function writes to its log for CloudWatch (embedded metric format)."""
    from a2a_serverless.adapters.metrics import EmfMetrics

    settings = Settings(environment)
    return EmfMetrics(
        settings.get("POWERTOOLS_METRICS_NAMESPACE"),
        settings.get("POWERTOOLS_SERVICE_NAME"),
        every=settings.get("OBSERVABILITY") == "full",
    )


def _keep_for_process(
    handler: Handler,
    environment: Mapping[str, str],
    metrics: Metrics,
    function: str,
    told: tuple[type[Exception], ...] = (),
) -> Handler:
    """The handler of a function. Only ``told`` errors are raised with their text; of others only the class is shown."""
    from a2a_serverless.handlers.invocations import hide_texts

    return _started(hide_texts(handler, told), environment, metrics, function)


def _started(
    handler: Callable[[Any, LambdaContext], T], environment: Mapping[str, str], metrics: Metrics, function: str
) -> Callable[[Any, LambdaContext], T]:
    """The handler, with the invocation's id in its log lines. Starts logging and counts the cold start."""
    from a2a_serverless.adapters.logs import start_logging

    logger = start_logging(environment.get("POWERTOOLS_SERVICE_NAME", ""))
    metrics.count("ColdStart", function=function)
    named: Callable[[Any, LambdaContext], T] = logger.inject_lambda_context(handler, log_event=False)
    return named


def _aws() -> Aws:
    from a2a_serverless.adapters.aws import Aws

    return Aws()


def _aws_of(stack: StackName) -> Aws:
    from a2a_serverless.adapters.aws import emulated

    return emulated(stack.emulator) if stack.emulator else _aws()


def _table(settings: Settings, aws: Aws) -> Table:
    return _table_named(settings.need("TABLE_NAME"), aws)


def _public(settings: Settings, aws: Aws) -> Table:
    """The table of public documents. Only the rotator may write it."""
    return _table_named(settings.need("PUBLIC_TABLE_NAME"), aws)


def _access(settings: Settings, aws: Aws) -> Table:
    """The table of API keys. Only operators may write it; the eraser may delete keys."""
    return _table_named(settings.need("ACCESS_TABLE_NAME"), aws)


def _table_named(name: str, aws: Aws) -> Table:
    from a2a_serverless.adapters.dynamodb.table import RetryPolicy, Table
    from a2a_serverless.adapters.system import SystemClock

    retry = RetryPolicy(sleep=time.sleep, chance=random.random)
    return Table(aws.dynamodb, name, SystemClock().now, retry)


def _payloads(settings: Settings, aws: Aws) -> PayloadStore:
    """The store of big payloads. The sweeper has no bucket, and reads no payload."""
    from a2a_serverless.adapters.dynamodb.payloads import PayloadStore
    from a2a_serverless.adapters.s3 import S3BlobStore

    return PayloadStore(S3BlobStore(lambda: aws.s3, settings.get("BLOBS_BUCKET")))


def _contents(settings: Settings, aws: Aws) -> ContentStore:
    """The store of files that are not in the log."""
    from a2a_serverless.adapters.contents import BlobContentStore
    from a2a_serverless.adapters.s3 import S3BlobStore

    return BlobContentStore(S3BlobStore(lambda: aws.s3, settings.get("BLOBS_BUCKET")))


def _fetch(settings: Settings) -> UrlFetcher:
    """A fetcher of clients' files; imports what it needs at the first fetch."""

    @cache
    def sender() -> WebhookSender:
        from a2a_serverless.adapters.webhook_sender import WebhookSender

        return WebhookSender(_policy(settings))

    def fetch(url: str) -> Outcome:
        from a2a_serverless.domain.contents import LARGEST

        return sender().get(url, {}, FETCH_MS, LARGEST)

    return fetch


def _policy(settings: Settings) -> EgressPolicy:
    from a2a_serverless.domain.url_policy import EgressPolicy

    return EgressPolicy(
        allowed_domains=settings.webhook_allowed_domains,
        trusted_domains=settings.webhook_trusted_domains,
        local_allow=settings.webhook_local_allow,
    )


def _own_urls(settings: Settings) -> tuple[str, ...]:
    """The base URLs of this deployment that the template can give to a function: its own, and API Gateway's."""
    return tuple(filter(None, (settings.get("PUBLIC_BASE_URL"), settings.get("GATEWAY_URL"))))


def _own_or_published(settings: Settings, aws: Aws) -> Callable[[], tuple[str, ...]]:
    """The same for the api function, which reads its base URL from the public table, once it is there."""
    found: list[str] = [*_own_urls(settings)]

    def own() -> tuple[str, ...]:
        if not found:
            found.extend(filter(None, [_published_base_url(_public(settings, aws))]))
        return tuple(found)

    return own


def _agents(settings: Settings) -> Mapping[str, Agent]:
    """The agents of this deployment, by id; the first one's card is also the card at the root."""
    from a2a_serverless.agent_loader import MANIFEST, by_id, load_agents

    settings.need("AGENTS")
    return by_id(load_agents((*settings.local_agents, *settings.agents), Path(__file__).parents[1] / MANIFEST))


def _authenticator(settings: Settings, aws: Aws, now: Callable[[], int]) -> Authenticator:
    """Admits everybody with anonymous access (local runs); else API keys, service tokens and the issuer's tokens."""
    from a2a_serverless.handlers.authentication import AllowAnonymous, OidcOrApiKey

    if settings.anonymous_access:
        return AllowAnonymous()
    from a2a_serverless.adapters.dynamodb.api_keys import CachedApiKeyStore, DynamoApiKeyStore
    from a2a_serverless.adapters.kms import KmsServiceTokenSealer
    from a2a_serverless.adapters.service_tokens import ServiceTokenVerifier

    keys = CachedApiKeyStore(DynamoApiKeyStore(_access(settings, aws)), now)
    service_tokens = ServiceTokenVerifier(KmsServiceTokenSealer(lambda: aws.kms, settings.need("SEALING_KEY_ID")), now)
    return OidcOrApiKey(keys.find, _tokens(settings, now), service_tokens.find)


def _tokens(settings: Settings, now: Callable[[], int]) -> Callable[[str], Caller] | None:
    if settings.trusted_issuer is None:
        return None
    from a2a_serverless.adapters.oidc import OidcTokenVerifier, fetch_document, run_in_thread

    # Lambda freezes background threads between requests, so there one request in a while waits for the key set.
    beside = (lambda work: work()) if settings.get("AWS_LAMBDA_FUNCTION_NAME") else run_in_thread
    return OidcTokenVerifier(settings.trusted_issuer, fetch_document, now, beside).verify
