"""The notifier POSTs signed notifications to the webhooks whose delivery messages arrive."""

import os

import aws_lambda_powertools.utilities.batch  # noqa: F401 - first: after pydantic it imports models for 0.3 s

from a2a_serverless.aws.process import uncollected

with uncollected():
    import random
    from dataclasses import replace

    from a2a_serverless.adapters.aws import Aws
    from a2a_serverless.adapters.clock import Cached, SystemClock, UuidIds
    from a2a_serverless.adapters.es256 import KeyRingSigner
    from a2a_serverless.adapters.key_ring_secret import KEY_RING_CACHE_MS, SecretKeyRingStore
    from a2a_serverless.adapters.kms import KmsSealer
    from a2a_serverless.adapters.sqs import SqsQueues
    from a2a_serverless.adapters.webhook_sender import WebhookSender
    from a2a_serverless.aws.batches import make_queue_handler
    from a2a_serverless.aws.process import make_metrics, make_tracer, start_handler
    from a2a_serverless.aws.resources import contents, egress_policy, own_urls, task_log, task_table
    from a2a_serverless.domain.queue_messages import DeliveryMessage
    from a2a_serverless.services.circuit_breakers import CircuitBreakers
    from a2a_serverless.services.deliver import MESSAGES_AT_ONCE, deliver
    from a2a_serverless.services.delivery_context import DeliveryContext
    from a2a_serverless.settings import read
    from a2a_serverless.store.push_store import PushStore
    from a2a_serverless.store.stores import BreakerStore

    settings, aws, clock = read(os.environ), Aws(), SystemClock()
    metrics, tracer, table = make_metrics(os.environ), make_tracer(os.environ), task_table(settings, aws)
    secret = SecretKeyRingStore(aws.secrets, settings.need("KEY_RING_SECRET_ID"))
    context = DeliveryContext(
        log=task_log(table, settings, aws),
        store=PushStore(table),
        queues=SqsQueues(aws.sqs, "", settings.need("DELIVERY_QUEUE_URL")),
        sender=WebhookSender(replace(egress_policy(settings), own=own_urls(settings))),
        signer=KeyRingSigner(Cached(secret.load, clock.now, KEY_RING_CACHE_MS)),
        sealer=KmsSealer(lambda: aws.kms, settings.need("SEALING_KEY_ID"), clock.now),
        clock=clock,
        ids=UuidIds(),
        issuer=settings.need("PUBLIC_BASE_URL"),
        chance=random.random,
        breakers=CircuitBreakers(BreakerStore(table), metrics=metrics),
        metrics=metrics,
        enforce_ownership=settings.webhook_ownership == "enforce",
        contents=contents(settings, aws),
        tracer=tracer,
    )
    deliveries = make_queue_handler(
        DeliveryMessage, lambda message, remaining_ms, _: deliver(context, message, remaining_ms), MESSAGES_AT_ONCE
    )
    handler = start_handler(deliveries, os.environ, metrics, "notifier", tracer=tracer)
