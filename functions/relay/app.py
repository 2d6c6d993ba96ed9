"""The relay reads the table's stream, and enqueues a delivery for each webhook of each task that has changed."""

import os

import aws_lambda_powertools.utilities.batch  # noqa: F401 - first: after pydantic it imports models for 0.3 s

from a2a_serverless.aws.process import uncollected

with uncollected():
    from a2a_serverless.adapters.aws import Aws
    from a2a_serverless.adapters.clock import SystemClock
    from a2a_serverless.adapters.sqs import SqsQueues
    from a2a_serverless.aws.batches import make_stream_handler
    from a2a_serverless.aws.process import make_metrics, start_handler
    from a2a_serverless.aws.resources import task_table
    from a2a_serverless.services.relay import relay
    from a2a_serverless.settings import read
    from a2a_serverless.store.push_store import PushStore

    settings, aws, clock = read(os.environ), Aws(), SystemClock()
    store = PushStore(task_table(settings, aws))
    queues = SqsQueues(aws.sqs, "", settings.need("DELIVERY_QUEUE_URL"))
    relays = make_stream_handler(lambda tasks: relay(store, queues, tasks, clock.now()))
    handler = start_handler(relays, os.environ, make_metrics(os.environ), "relay")
