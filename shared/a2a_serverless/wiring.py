"""The one place that builds the real things. Importing it opens, reads and connects nothing; each ``make_`` does.

A function of the deployment calls one of them when it starts. What a function does not use, it does not import.
"""

from __future__ import annotations

import gc
import logging
import os
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from a2a_serverless.domain.measures import UNMEASURED
from a2a_serverless.settings import DAY_MS, Settings, read

if TYPE_CHECKING:
    from fastapi import FastAPI

    from a2a_serverless.adapters.agent_credentials import AgentCredentials
    from a2a_serverless.adapters.aws import Aws
    from a2a_serverless.adapters.bodies import Bodies
    from a2a_serverless.adapters.table import Table
    from a2a_serverless.adapters.webhook_sender import WebhookSender
    from a2a_serverless.domain.access import Caller
    from a2a_serverless.domain.agent import Agent
    from a2a_serverless.domain.deployed import StackName
    from a2a_serverless.domain.key_ring import KeyRing
    from a2a_serverless.domain.outbound import Outcome
    from a2a_serverless.domain.url_policy import EgressPolicy
    from a2a_serverless.engine.calls import Directory
    from a2a_serverless.engine.run import Engine
    from a2a_serverless.engine.work import Models
    from a2a_serverless.handlers.gate import Gate
    from a2a_serverless.handlers.http import Edge
    from a2a_serverless.handlers.queues import Handler
    from a2a_serverless.ports import ApiKeys, Bells, Contents, Fetch, Here, Metrics, Sealer, TaskLog
    from a2a_serverless.services.deliveries import Operations
    from a2a_serverless.services.erase import Rubber
    from a2a_serverless.services.keys import Locksmith
    from a2a_serverless.services.push import Webhooks
    from a2a_serverless.services.tasks import Desk
    from a2a_serverless.services.turnstile import Turnstile

KEY_RING_CACHE_MS: Final = 300_000
FETCH_MS: Final = 60_000
BELLS_AT_ONCE: Final = 10  # the notifier's BatchSize
SWEPT_AT_ONCE: Final = 8
SKEW_S: Final = 120
TOKEN_LIFE_S: Final = 300
ANYBODY: Final = ("local", "anybody")


def make_api(environment: Mapping[str, str] = os.environ) -> Handler:
    """The handler of the api function."""
    from a2a_serverless.handlers.gateway import make_gateway_handler

    metrics = _metrics(environment)
    return _ready(make_gateway_handler(make_edge(environment, metrics)), metrics, "api")


def stream_api(environment: Mapping[str, str] = os.environ) -> None:
    """Serves the api function's events for ever, streaming; what ``functions/api/stream`` starts."""
    from a2a_serverless.handlers.gateway import make_gateway_handler
    from a2a_serverless.handlers.runtime import RuntimeApi, log_json_lines, serve

    log_json_lines()
    metrics = _metrics(environment)
    edge = make_edge(environment, metrics)
    handler = _ready(make_gateway_handler(edge), metrics, "api")
    serve(RuntimeApi(environment["AWS_LAMBDA_RUNTIME_API"]), edge, handler)


def make_app(environment: Mapping[str, str] = os.environ) -> FastAPI:
    """The same as an ASGI application, for uvicorn on a developer's machine."""
    from a2a_serverless.handlers.web import close_to_pages, make_web

    _log_lines()
    edge, public = make_edge(environment), urlsplit(environment.get("PUBLIC_BASE_URL", ""))
    return close_to_pages(make_web(edge), public.hostname or "localhost", edge.origins)


def make_edge(environment: Mapping[str, str] = os.environ, metrics: Metrics = UNMEASURED) -> Edge:
    """Everything that answers HTTP, on the real adapters."""
    from a2a_serverless.adapters.dynamo import DynamoPublications
    from a2a_serverless.adapters.functions import IN_A_REQUEST_S, Functions
    from a2a_serverless.adapters.proofs import SignedProofs
    from a2a_serverless.handlers.http import Edge

    settings, aws = read(environment), _aws()
    table, agents = _table(settings, aws), _agents(settings)
    desk, public = _desk(settings, aws, table, agents, metrics), DynamoPublications(_public(settings, aws))
    now = desk.clock.now
    return Edge(
        desk,
        public,
        agents,
        _gate(settings, aws, now),
        SignedProofs(public, now),
        settings.jwks_max_age_seconds,
        rest_binding="proto" if settings.card_shape == "v0_3" else "rest",
        turnstile=_turnstile(settings, table, desk),
        origins=settings.cors_origins,
        eraser=partial(Functions(aws, IN_A_REQUEST_S).invoke, settings.need("ERASER_FUNCTION_NAME")),
    )


def _desk(settings: Settings, aws: Aws, table: Table, agents: Mapping[str, Agent], metrics: Metrics) -> Desk:
    """What serves the operations of clients."""
    from a2a_serverless.adapters.dynamo import DynamoTaskIndex, DynamoTaskLog
    from a2a_serverless.adapters.kms import KmsSealer
    from a2a_serverless.adapters.sqs import SqsBells
    from a2a_serverless.adapters.system import SystemClock, UuidIds
    from a2a_serverless.domain.head import Life
    from a2a_serverless.services.listing import Shelf
    from a2a_serverless.services.tasks import Desk

    clock, log = SystemClock(), DynamoTaskLog(table, _bodies(settings, aws))
    bells = SqsBells(aws.sqs, settings.need("WORK_QUEUE_URL"), settings.need("DELIVERY_QUEUE_URL"))
    sealer = KmsSealer(lambda: aws.kms, settings.need("SEALING_KEY_ID"), clock.now)
    return Desk(
        log=log,
        bells=bells,
        clock=clock,
        ids=UuidIds(),
        webhooks=_webhooks(settings, aws, table, log, bells, sealer),
        shelf=Shelf(log, DynamoTaskIndex(table), sealer),
        life=Life(settings.task_max_life_days * DAY_MS, settings.task_retention_days * DAY_MS),
        blocking_ms=settings.blocking_seconds * 1000,
        idempotent=settings.idempotency,
        here=_here(agents, lambda: _engine(settings, aws, bells, metrics, calls=False)),
        metrics=metrics,
        contents=_contents(settings, aws),
    )


def _webhooks(settings: Settings, aws: Aws, table: Table, log: TaskLog, bells: Bells, sealer: Sealer) -> Webhooks:
    """What registers webhooks."""
    from a2a_serverless.adapters.dynamo import DynamoPushStore
    from a2a_serverless.adapters.egress import Lookup
    from a2a_serverless.adapters.system import SystemClock, UuidIds
    from a2a_serverless.services.push import Webhooks

    return Webhooks(
        log=log,
        store=DynamoPushStore(table),
        bells=bells,
        sealer=sealer,
        clock=SystemClock(),
        ids=UuidIds(),
        policy=_policy(settings),
        names=Lookup(),
        ownership=settings.webhook_ownership != "off",
        per_day=settings.webhooks_per_owner_per_day,
        own=_own_or_published(settings, aws),
        enforce_ownership=settings.webhook_ownership == "enforce",
    )


def _turnstile(settings: Settings, table: Table, desk: Desk) -> Turnstile:
    """What gives each owner its share."""
    from a2a_serverless.adapters.dynamo import DynamoTaskIndex
    from a2a_serverless.adapters.owners import DynamoOwners
    from a2a_serverless.services.turnstile import Turnstile

    owners, index = DynamoOwners(table, desk.clock.now), DynamoTaskIndex(table)
    max_life_ms = settings.task_max_life_days * DAY_MS
    return Turnstile(owners, index, desk.clock, desk.ids, settings.allowance, max_life_ms)


def make_worker(environment: Mapping[str, str] = os.environ) -> Handler:
    """The handler of the worker function."""
    import asyncio

    from a2a_serverless.adapters.sqs import SqsBells
    from a2a_serverless.domain.bells import WorkBell
    from a2a_serverless.engine.run import run
    from a2a_serverless.handlers.queues import make_queue_handler

    settings, aws, metrics = read(environment), _aws(), _metrics(environment)
    engine = _engine(settings, aws, SqsBells(aws.sqs, settings.need("WORK_QUEUE_URL"), ""), metrics)
    engine = replace(engine, bury=SqsBells(aws.sqs, settings.need("WORK_DEAD_LETTERS_URL"), "").ring)
    handler = make_queue_handler(
        WorkBell, lambda bell, remaining_ms: asyncio.run(run(engine, bell.key, remaining_ms, bell.fence))
    )
    return _ready(handler, metrics, "worker")


def make_relay(environment: Mapping[str, str] = os.environ) -> Handler:
    """The handler of the relay function."""
    from a2a_serverless.adapters.dynamo import DynamoPushStore
    from a2a_serverless.adapters.keys import task_key_of
    from a2a_serverless.adapters.sqs import SqsBells
    from a2a_serverless.adapters.system import SystemClock
    from a2a_serverless.handlers.stream import make_stream_handler
    from a2a_serverless.services.relay import relay

    settings, aws, clock = read(environment), _aws(), SystemClock()
    store = DynamoPushStore(_table(settings, aws))
    bells = SqsBells(aws.sqs, "", settings.need("DELIVERY_QUEUE_URL"))
    handler = make_stream_handler(lambda tasks: relay(store, bells, tasks, clock.now()), task_key_of)
    return _ready(handler, _metrics(environment), "relay")


def make_notifier(environment: Mapping[str, str] = os.environ) -> Handler:
    """The handler of the notifier function."""
    from a2a_serverless.adapters.dynamo import DynamoHosts, DynamoPushStore, DynamoTaskLog
    from a2a_serverless.adapters.jose import RingSigner
    from a2a_serverless.adapters.kms import KmsSealer
    from a2a_serverless.adapters.secrets import CachedVault, SecretVault
    from a2a_serverless.adapters.sqs import SqsBells
    from a2a_serverless.adapters.system import SystemClock, UuidIds
    from a2a_serverless.adapters.webhook_sender import WebhookSender
    from a2a_serverless.domain.bells import DeliveryBell
    from a2a_serverless.handlers.queues import make_queue_handler
    from a2a_serverless.services.deliver import Post, deliver
    from a2a_serverless.services.hosts import Hosts

    settings, aws, clock, metrics = read(environment), _aws(), SystemClock(), _metrics(environment)
    table = _table(settings, aws)
    vault = CachedVault(SecretVault(aws.secrets, settings.need("KEY_RING_SECRET_ID")), clock.now, KEY_RING_CACHE_MS)
    post = Post(
        log=DynamoTaskLog(table, _bodies(settings, aws)),
        store=DynamoPushStore(table),
        bells=SqsBells(aws.sqs, "", settings.need("DELIVERY_QUEUE_URL")),
        sender=WebhookSender(replace(_policy(settings), own=_own(settings))),
        signer=RingSigner(vault.load),
        sealer=KmsSealer(lambda: aws.kms, settings.need("SEALING_KEY_ID"), clock.now),
        clock=clock,
        ids=UuidIds(),
        issuer=settings.need("PUBLIC_BASE_URL"),
        chance=random.random,
        hosts=Hosts(DynamoHosts(table), metrics=metrics),
        metrics=metrics,
        enforce_ownership=settings.webhook_ownership == "enforce",
        contents=_contents(settings, aws),
    )
    handler = make_queue_handler(
        DeliveryBell, lambda bell, remaining_ms: deliver(post, bell, remaining_ms), BELLS_AT_ONCE
    )
    return _ready(handler, metrics, "notifier")


def make_sweeper(environment: Mapping[str, str] = os.environ) -> Handler:
    """The handler of the sweeper function."""
    from concurrent.futures import ThreadPoolExecutor

    from a2a_serverless.adapters.dynamo import DynamoPushStore, DynamoTaskLog
    from a2a_serverless.adapters.sqs import SqsBells
    from a2a_serverless.adapters.system import SystemClock, UuidIds
    from a2a_serverless.handlers.schedules import make_schedule_handler
    from a2a_serverless.services.sweep import Broom, sweep

    settings, aws = read(environment), _aws()
    table = _table(settings, aws)
    bells = SqsBells(aws.sqs, settings.need("WORK_QUEUE_URL"), settings.need("DELIVERY_QUEUE_URL"))
    log, store = DynamoTaskLog(table, _bodies(settings, aws)), DynamoPushStore(table)
    metrics = _metrics(environment)
    each = ThreadPoolExecutor(SWEPT_AT_ONCE, "sweep").map
    broom = Broom(log, store, bells, SystemClock(), UuidIds(), metrics, each)
    return _ready(make_schedule_handler(partial(sweep, broom), "swept"), metrics, "sweeper")


def make_rotator(
    environment: Mapping[str, str] = os.environ, answer: Callable[[str, bytes], None] | None = None
) -> Handler:
    """The handler of the rotator function. ``answer`` PUTs to CloudFormation's URL, over HTTP unless it is given.

    What is wrong with its settings is raised by each command, so that CloudFormation is told and does not wait.
    """
    from a2a_serverless.handlers.schedules import make_rotator_handler, put_answer
    from a2a_serverless.services.keys import describe, ensure_ring, revoke_key, rotate_ring, rotate_when_old

    metrics, smith = _metrics(environment), cache(partial(_locksmith, environment))
    with suppress(Exception):
        smith()

    def said(ring: KeyRing) -> dict[str, Any]:
        age_ms = smith().press.clock.now() - ring.promoted_at
        metrics.measure({"KeyAge": round(100 * age_ms / smith().age_ms, 1)})
        return {"current": ring.current.kid, "next": ring.next.kid}

    return _ready(
        make_rotator_handler(
            {
                "ensure": lambda _: said(ensure_ring(smith())),
                "show": lambda _: describe(smith()),
                "schedule": lambda _: said(rotate_when_old(smith())),
                "rotate": lambda _: said(rotate_ring(smith())),
                "revoke": lambda event: said(revoke_key(smith(), str(event["kid"]))),
            },
            answer or put_answer,
        ),
        metrics,
        "rotator",
    )


def _locksmith(environment: Mapping[str, str]) -> Locksmith:
    from a2a_serverless.adapters.dynamo import DynamoPublications
    from a2a_serverless.adapters.jose import Es256Keys
    from a2a_serverless.adapters.secrets import SecretVault
    from a2a_serverless.adapters.system import SystemClock
    from a2a_serverless.domain.key_ring import Waits
    from a2a_serverless.services.keys import Locksmith
    from a2a_serverless.services.publish import Press, no_scopes

    settings, aws, clock = read(environment), _aws(), SystemClock()
    public = DynamoPublications(_public(settings, aws))
    base_url = settings.need("PUBLIC_BASE_URL")
    scopes = settings.trust.scopes_for if settings.trust else no_scopes
    press = Press(public, clock, _agents(settings), base_url, settings.card_shape, settings.schemes, scopes)
    waits = Waits(
        publish_ms=(settings.jwks_max_age_seconds + SKEW_S) * 1000,
        retire_ms=(settings.jwks_max_age_seconds + TOKEN_LIFE_S + SKEW_S) * 1000 + KEY_RING_CACHE_MS,
    )
    vault = SecretVault(aws.secrets, settings.need("KEY_RING_SECRET_ID"))
    return Locksmith(vault, Es256Keys(), press, waits, settings.key_ring_rotation_days * DAY_MS)


def make_eraser(environment: Mapping[str, str] = os.environ) -> Handler:
    """The handler of the eraser function."""
    from a2a_serverless.handlers.eraser import make_eraser_handler

    settings = read(environment)
    return _ready(make_eraser_handler(_rubber(settings, _aws())), _metrics(environment), "eraser")


def make_callers(stack: StackName) -> ApiKeys:
    """The API keys of a deployed stack, by the rights of the AWS credentials at hand."""
    from a2a_serverless.adapters.api_keys import DynamoApiKeys
    from a2a_serverless.adapters.deployed import Stack

    aws = _aws_of(stack)
    return DynamoApiKeys(_table_named(Stack(aws, stack.name).output("AccessTableName"), aws))


def make_earlier_callers(stack: StackName) -> ApiKeys:
    """The API keys that an earlier release has stored where functions may write; they let nobody in."""
    from a2a_serverless.adapters.api_keys import DynamoApiKeys
    from a2a_serverless.adapters.deployed import Stack

    aws = _aws_of(stack)
    return DynamoApiKeys(_table_named(Stack(aws, stack.name).output("TableName"), aws))


def alarm_states(stack: StackName) -> Mapping[str, str]:
    """The state of each alarm of a deployed stack, by name: OK, ALARM or INSUFFICIENT_DATA."""
    from a2a_serverless.adapters.deployed import Stack

    return Stack(_aws_of(stack), stack.name).alarms()


def make_operations(stack: StackName) -> Operations:
    """What an operator can do with a deployed stack, by the rights of the AWS credentials at hand."""
    from a2a_serverless.adapters.deployed import Stack
    from a2a_serverless.adapters.dynamo import DynamoPushStore, DynamoTaskLog
    from a2a_serverless.adapters.sqs import SqsBells
    from a2a_serverless.adapters.system import SystemClock
    from a2a_serverless.services.deliveries import Operations, Switchboard

    aws = _aws_of(stack)
    deployed = Stack(aws, stack.name)
    outputs = {"TABLE_NAME": "TableName", "BLOBS_BUCKET": "BlobsBucket"}
    settings = Settings({name: deployed.output(output) for name, output in outputs.items()})
    table = _table(settings, aws)
    board = Switchboard(
        log=DynamoTaskLog(table, _bodies(settings, aws)),
        store=DynamoPushStore(table),
        bells=SqsBells(aws.sqs, "", deployed.output("DeliveryQueueUrl")),
        clock=SystemClock(),
    )
    return Operations(
        board,
        lambda command: deployed.invoke(deployed.output("RotatorFunctionName"), command),
        lambda order: deployed.invoke(deployed.output("EraserFunctionName"), order),
    )


def _rubber(settings: Settings, aws: Aws) -> Rubber:
    """What erases, all over the table and the bucket."""
    from a2a_serverless.adapters import keys
    from a2a_serverless.adapters.api_keys import DynamoApiKeys
    from a2a_serverless.adapters.dynamo import DynamoPushStore, DynamoTaskLog
    from a2a_serverless.adapters.remains import DynamoRemains
    from a2a_serverless.adapters.s3 import S3Blobs
    from a2a_serverless.adapters.system import SystemClock, UuidIds
    from a2a_serverless.services.erase import Rubber

    table, blobs = _table(settings, aws), S3Blobs(lambda: aws.s3, settings.need("BLOBS_BUCKET"))
    return Rubber(
        log=DynamoTaskLog(table, _bodies(settings, aws)),
        store=DynamoPushStore(table),
        remains=DynamoRemains(table),
        blobs=blobs,
        api_keys=DynamoApiKeys(_access(settings, aws)),
        clock=SystemClock(),
        ids=UuidIds(),
        place=lambda *names: f"{keys.path(*names)}/",
    )


def _here(agents: Mapping[str, Agent], engine: Callable[[], Engine]) -> Here:
    """What runs inline agents inside the api function; the engine is made when the first one is asked."""
    from a2a_serverless.engine.here import LateHere

    def make() -> Here:
        from a2a_serverless.engine.inline import Inline

        return Inline(engine())

    return LateHere(agents, make)


def _engine(settings: Settings, aws: Aws, bells: Bells, metrics: Metrics, *, calls: bool = True) -> Engine:
    """What runs agents. Without ``calls`` it leaves their calls to other agents to the worker."""
    from a2a_serverless.adapters.dynamo import DynamoTaskIndex, DynamoTaskLog
    from a2a_serverless.adapters.system import SystemClock, UuidIds
    from a2a_serverless.engine.files import Files
    from a2a_serverless.engine.run import Engine

    table, agents, now = _table(settings, aws), _agents(settings), SystemClock().now
    log, index = DynamoTaskLog(table, _bodies(settings, aws)), DynamoTaskIndex(table)
    return Engine(
        log,
        index,
        bells,
        UuidIds(),
        now,
        agents,
        make_models(settings),
        _directory(settings, aws, agents, now, calls=calls),
        metrics,
        files=Files(_contents(settings, aws), _fetch(settings)),
    )


def make_models(settings: Settings) -> Models:
    """What writes and draws: models on Amazon Bedrock where they are named, what is built in elsewhere."""
    from a2a_serverless.adapters.builtin.picture import BuiltinPicture
    from a2a_serverless.adapters.builtin.text import BuiltinText
    from a2a_serverless.engine.work import Models

    text, image = settings.models.get("text", ""), settings.models.get("image", "")
    if not text and not image:
        return Models(BuiltinText(), BuiltinPicture())
    from a2a_serverless.adapters.bedrock.picture import BedrockPicture
    from a2a_serverless.adapters.bedrock.runtime import Bedrock, make_runtime
    from a2a_serverless.adapters.bedrock.text import BedrockText

    bedrock = Bedrock(make_runtime(_aws().session))
    return Models(
        BedrockText(bedrock, text) if text else BuiltinText(),
        BedrockPicture(bedrock, image) if image else BuiltinPicture(),
    )


def _directory(
    settings: Settings, aws: Aws, agents: Mapping[str, Agent], now: Callable[[], int], *, calls: bool
) -> Directory:
    """Whom agents may call: each other, and whom AGENT_URLS names (``name=url``, comma-separated).

    Only the worker calls them: it alone may make passes, and read the credentials for agents elsewhere.
    """
    from a2a_serverless.adapters.kms import KmsPassSealer
    from a2a_serverless.adapters.passes import Passes, left_to_the_worker
    from a2a_serverless.adapters.peers import A2APeers
    from a2a_serverless.adapters.system import UuidIds
    from a2a_serverless.engine.calls import Directory

    base_url = settings.get("PUBLIC_BASE_URL") or _published_base_url(_public(settings, aws))
    siblings = {name: f"{base_url}/{name}" for name in agents}
    sealer = KmsPassSealer(lambda: aws.kms, settings.need("SEALING_KEY_ID"))
    passes = Passes(sealer, now).headers if calls else left_to_the_worker
    credentials = _credentials(settings, aws, now)
    peers = A2APeers(siblings, settings.agent_urls, passes, credentials=credentials)
    apart = frozenset() if calls else frozenset({*siblings, *settings.agent_urls})
    return Directory(peers, UuidIds(), base_url, apart)


def _credentials(settings: Settings, aws: Aws, now: Callable[[], int]) -> AgentCredentials | None:
    """What agents elsewhere ask for; only the worker is told where it is, and may read it."""
    if not (secret_id := settings.get("AGENT_CREDENTIALS_SECRET_ID")):
        return None
    from a2a_serverless.adapters.agent_credentials import AgentCredentials
    from a2a_serverless.adapters.secrets import text_of

    return AgentCredentials(lambda: text_of(aws.secrets, secret_id), now, local=settings.local)


def _published_base_url(table: Table) -> str:
    """The api function's own address, which the template cannot give to it; empty before the rotator's first run."""
    from a2a_serverless.adapters.dynamo import DynamoPublications
    from a2a_serverless.services.publish import base_url_in

    return base_url_in(DynamoPublications(table))


def _metrics(environment: Mapping[str, str]) -> Metrics:
    """What CloudWatch reads off the log of a function, for the whole stack."""
    from a2a_serverless.adapters.metrics import EmfMetrics
    from a2a_serverless.adapters.system import SystemClock

    settings = Settings(environment)
    return EmfMetrics(
        settings.get("POWERTOOLS_METRICS_NAMESPACE"),
        settings.get("POWERTOOLS_SERVICE_NAME"),
        SystemClock().now,
        every=settings.get("OBSERVABILITY") == "full",
    )


def _ready(handler: Handler, metrics: Metrics, function: str) -> Handler:
    """The handler; what was built for it lives as long as the process, so the collector need not look at it."""
    _log_lines()
    metrics.count("ColdStart", function=function)
    gc.freeze()
    return handler


def _log_lines() -> None:
    """Makes a process log as under Lambda where nothing has set up its log: in the emulator, under uvicorn."""
    if not logging.getLogger().handlers:
        from a2a_serverless.handlers.runtime import log_json_lines

        log_json_lines()


def _aws() -> Aws:
    from a2a_serverless.adapters.aws import Aws

    return Aws()


def _aws_of(stack: StackName) -> Aws:
    from a2a_serverless.adapters.aws import emulated

    return emulated(stack.emulator) if stack.emulator else _aws()


def _table(settings: Settings, aws: Aws) -> Table:
    return _table_named(settings.need("TABLE_NAME"), aws)


def _public(settings: Settings, aws: Aws) -> Table:
    """The table of public documents; only the rotator may write it."""
    return _table_named(settings.need("PUBLIC_TABLE_NAME"), aws)


def _access(settings: Settings, aws: Aws) -> Table:
    """The table of API keys; only operators may write it, and the eraser revokes."""
    return _table_named(settings.need("ACCESS_TABLE_NAME"), aws)


def _table_named(name: str, aws: Aws) -> Table:
    from a2a_serverless.adapters.system import SystemClock
    from a2a_serverless.adapters.table import Patience, Table

    patience = Patience(sleep=time.sleep, chance=random.random)
    return Table(aws.dynamodb, name, SystemClock().now, patience)


def _bodies(settings: Settings, aws: Aws) -> Bodies:
    """The store of big contents. The sweeper has no bucket, and reads no content."""
    from a2a_serverless.adapters.bodies import Bodies
    from a2a_serverless.adapters.s3 import S3Blobs

    return Bodies(S3Blobs(lambda: aws.s3, settings.get("BLOBS_BUCKET")))


def _contents(settings: Settings, aws: Aws) -> Contents:
    """The store of files beside the log."""
    from a2a_serverless.adapters.contents import BlobContents
    from a2a_serverless.adapters.s3 import S3Blobs

    return BlobContents(S3Blobs(lambda: aws.s3, settings.get("BLOBS_BUCKET")))


def _fetch(settings: Settings) -> Fetch:
    """The way to clients' files; what it takes is imported when the first one is fetched."""

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


def _own(settings: Settings) -> tuple[str, ...]:
    """The base URLs of this deployment that the template can give to a function: its own, and API Gateway's."""
    return tuple(filter(None, (settings.get("PUBLIC_BASE_URL"), settings.get("GATEWAY_URL"))))


def _own_or_published(settings: Settings, aws: Aws) -> Callable[[], tuple[str, ...]]:
    """The same for the api function, which has to read its own address from the table, once."""
    found: list[str] = [*_own(settings)]

    def own() -> tuple[str, ...]:
        if not found:
            found.extend(filter(None, [_published_base_url(_public(settings, aws))]))
        return tuple(found)

    return own


def _agents(settings: Settings) -> Mapping[str, Agent]:
    """What this deployment runs; the first one's card is also the card at the root."""
    from a2a_serverless.agents.registry import AGENTS, by_id

    if not settings.conformance_agent:
        return by_id(AGENTS)
    from a2a_serverless.agents import conformance

    return by_id((*conformance.AGENTS, *AGENTS))


def _gate(settings: Settings, aws: Aws, now: Callable[[], int]) -> Gate:
    """Who comes in: everybody in a local run; else whoever has an API key, or a token of the issuer that is set."""
    from a2a_serverless.handlers.gate import OpenGate, SignIn

    if settings.anonymous_access:
        return OpenGate()
    from a2a_serverless.adapters.api_keys import DynamoApiKeys, RememberedApiKeys
    from a2a_serverless.adapters.kms import KmsPassSealer
    from a2a_serverless.adapters.passes import OpenedPasses

    keys = RememberedApiKeys(DynamoApiKeys(_access(settings, aws)), now)
    passes = OpenedPasses(KmsPassSealer(lambda: aws.kms, settings.need("SEALING_KEY_ID")), now)
    return SignIn(keys.find, _tokens(settings, now), passes.find)


def _tokens(settings: Settings, now: Callable[[], int]) -> Callable[[str], Caller] | None:
    if settings.trust is None:
        return None
    from a2a_serverless.adapters.oidc import OidcTokens, fetch_document, in_a_thread

    # Lambda freezes what runs beside a request, so one request in a while waits there.
    beside = (lambda work: work()) if settings.get("AWS_LAMBDA_FUNCTION_NAME") else in_a_thread
    return OidcTokens(settings.trust, fetch_document, now, beside).caller
