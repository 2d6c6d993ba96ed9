"""The worker function."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from a2a_serverless.adapters.sqs import SqsQueues
from a2a_serverless.aws.batches import make_queue_handler
from a2a_serverless.aws.engine import make_engine
from a2a_serverless.aws.process import make_metrics, make_tracer, start_handler
from a2a_serverless.aws.resources import make_aws
from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.engine.loop import play
from a2a_serverless.engine.run import run
from a2a_serverless.settings import read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.adapters.invocations import Handler


def make_worker(environment: Mapping[str, str] = os.environ) -> Handler:
    """The handler of the worker function."""
    settings, aws, metrics = read(environment), make_aws(), make_metrics(environment)
    tracer = make_tracer(environment, aws)
    engine = make_engine(settings, aws, SqsQueues(aws.sqs, settings.need("WORK_QUEUE_URL"), ""), metrics)
    dead_letters = SqsQueues(aws.sqs, settings.need("WORK_DEAD_LETTERS_URL"), "")
    engine = replace(engine, send_to_dead_letters=dead_letters.enqueue, tracer=tracer)
    handler = make_queue_handler(
        WorkMessage, lambda message, remaining_ms: play(run(engine, message.key, remaining_ms))
    )
    return start_handler(handler, environment, metrics, "worker", tracer=tracer)
