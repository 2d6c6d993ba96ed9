"""The worker runs the tasks whose work messages arrive."""

import os

import aws_lambda_powertools.utilities.batch  # noqa: F401 - first: after pydantic it imports models for 0.3 s

from a2a_serverless.aws.process import uncollected

with uncollected():
    from a2a_serverless.adapters.aws import Aws
    from a2a_serverless.aws.batches import make_queue_handler
    from a2a_serverless.aws.engine import make_worker
    from a2a_serverless.aws.process import make_metrics, make_tracer, start_handler
    from a2a_serverless.domain.queue_messages import TickMessage, WorkMessage
    from a2a_serverless.settings import read

    settings, metrics, tracer = read(os.environ), make_metrics(os.environ), make_tracer(os.environ)
    work = make_worker(settings, Aws(), metrics, tracer)
    runs = make_queue_handler((WorkMessage, TickMessage), work, at_once=10)  # as many as TasksAtOnce allows
    handler = start_handler(runs, os.environ, metrics, "worker", tracer=tracer)
