"""The notifier function."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters.key_ring import KEY_RING_CACHE_MS, CachedKeyRingStore, KeyRingSigner, SecretKeyRingStore
from a2a_serverless.adapters.kms import KmsSealer
from a2a_serverless.adapters.sqs import SqsQueues
from a2a_serverless.adapters.system import SystemClock, UuidIds
from a2a_serverless.adapters.webhook_sender import WebhookSender
from a2a_serverless.domain.queue_messages import DeliveryMessage
from a2a_serverless.handlers.batches import make_queue_handler
from a2a_serverless.services.circuit_breakers import CircuitBreakers
from a2a_serverless.services.deliver import DeliveryContext, deliver
from a2a_serverless.settings import read
from a2a_serverless.store.push_store import PushStore
from a2a_serverless.store.stores import BreakerStore
from a2a_serverless.wiring.process import make_metrics, make_tracer, start_handler
from a2a_serverless.wiring.stores import contents, egress_policy, make_aws, own_urls, task_log, task_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.handlers.invocations import Handler

MESSAGES_AT_ONCE: Final = 10  # the notifier's BatchSize


def make_notifier(environment: Mapping[str, str] = os.environ) -> Handler:
    """The handler of the notifier function."""
    settings, aws, clock, metrics = read(environment), make_aws(), SystemClock(), make_metrics(environment)
    table, tracer = task_table(settings, aws), make_tracer(environment, aws)
    secret = SecretKeyRingStore(aws.secrets, settings.need("KEY_RING_SECRET_ID"))
    context = DeliveryContext(
        log=task_log(table, settings, aws),
        store=PushStore(table),
        queues=SqsQueues(aws.sqs, "", settings.need("DELIVERY_QUEUE_URL")),
        sender=WebhookSender(replace(egress_policy(settings), own=own_urls(settings))),
        signer=KeyRingSigner(CachedKeyRingStore(secret, clock.now, KEY_RING_CACHE_MS).load),
        sealer=KmsSealer(lambda: aws.kms, settings.need("SEALING_KEY_ID"), clock.now),
        clock=clock,
        ids=UuidIds(),
        issuer=settings.need("PUBLIC_BASE_URL"),
        chance=random.random,
        hosts=CircuitBreakers(BreakerStore(table), metrics=metrics),
        metrics=metrics,
        enforce_ownership=settings.webhook_ownership == "enforce",
        contents=contents(settings, aws),
        tracer=tracer,
    )
    handler = make_queue_handler(
        DeliveryMessage, lambda message, remaining_ms: deliver(context, message, remaining_ms), MESSAGES_AT_ONCE
    )
    return start_handler(handler, environment, metrics, "notifier", tracer=tracer)
