"""The worker runs the tasks whose work messages arrive."""

import os
from collections.abc import Callable
from enum import Enum

import aws_lambda_powertools.utilities.batch  # noqa: F401 - first: after pydantic it imports models for 0.3 s

from a2a_serverless.aws.process import uncollected

with uncollected():
    from dataclasses import replace

    from a2a_serverless.adapters.aws import Aws
    from a2a_serverless.adapters.sqs import SqsQueues
    from a2a_serverless.aws.batches import make_queue_handler
    from a2a_serverless.aws.engine import make_engine
    from a2a_serverless.aws.process import make_metrics, make_tracer, start_handler
    from a2a_serverless.domain.queue_messages import QueueMessage, TickMessage, WorkMessage
    from a2a_serverless.engine.endings import play
    from a2a_serverless.engine.run import run
    from a2a_serverless.services.ticks import handle_tick
    from a2a_serverless.settings import read

    settings, aws = read(os.environ), Aws()
    metrics, tracer = make_metrics(os.environ), make_tracer(os.environ)
    queues = SqsQueues(aws.sqs, settings.need("WORK_QUEUE_URL"), "")
    dead_letters = SqsQueues(aws.sqs, settings.need("WORK_DEAD_LETTERS_URL"), "")
    engine = replace(
        make_engine(settings, aws, queues, metrics), send_to_dead_letters=dead_letters.enqueue, tracer=tracer
    )

    def answer(message: QueueMessage, remaining_ms: Callable[[], int]) -> Enum:
        """Starts the task of a schedule, or runs a task."""
        if isinstance(message, TickMessage):
            return handle_tick(engine, settings.life, message)
        return play(run(engine, message.key, remaining_ms))

    runs = make_queue_handler((WorkMessage, TickMessage), answer)
    handler = start_handler(runs, os.environ, metrics, "worker", tracer=tracer)
