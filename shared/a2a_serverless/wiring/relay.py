"""The relay function."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from a2a_serverless.adapters.sqs import SqsQueues
from a2a_serverless.adapters.system import SystemClock
from a2a_serverless.handlers.batches import make_stream_handler
from a2a_serverless.services.relay import relay
from a2a_serverless.settings import read
from a2a_serverless.store.keys import task_key
from a2a_serverless.store.push_store import PushStore
from a2a_serverless.wiring.process import make_metrics, start_handler
from a2a_serverless.wiring.stores import make_aws, task_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.handlers.invocations import Handler


def make_relay(environment: Mapping[str, str] = os.environ) -> Handler:
    """The handler of the relay function."""
    settings, aws, clock = read(environment), make_aws(), SystemClock()
    store = PushStore(task_table(settings, aws))
    queues = SqsQueues(aws.sqs, "", settings.need("DELIVERY_QUEUE_URL"))
    handler = make_stream_handler(lambda tasks: relay(store, queues, tasks, clock.now()), task_key)
    return start_handler(handler, environment, make_metrics(environment), "relay")
