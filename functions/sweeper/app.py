"""The sweeper enqueues once a minute the tasks and deliveries that are overdue."""

import logging
import os
from typing import TYPE_CHECKING, Any

from a2a_serverless.aws.process import uncollected

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from a2a_serverless.adapters.invocations import Event

logger = logging.getLogger(__name__)

with uncollected():
    from concurrent.futures import ThreadPoolExecutor

    from a2a_serverless.adapters.aws import Aws
    from a2a_serverless.adapters.clock import SystemClock, UuidIds
    from a2a_serverless.adapters.sqs import SqsQueues
    from a2a_serverless.aws.process import make_metrics, start_handler
    from a2a_serverless.aws.resources import task_log, task_table
    from a2a_serverless.services.sweep import SWEEPS_AT_ONCE, Sweeper, sweep
    from a2a_serverless.settings import read
    from a2a_serverless.store.push_store import PushStore

    settings, aws, metrics = read(os.environ), Aws(), make_metrics(os.environ)
    table = task_table(settings, aws)
    queues = SqsQueues(aws.sqs, settings.need("WORK_QUEUE_URL"), settings.need("DELIVERY_QUEUE_URL"))
    log, store = task_log(table, settings, aws), PushStore(table)
    each = ThreadPoolExecutor(SWEEPS_AT_ONCE, "sweep").map
    sweeper = Sweeper(log, store, queues, SystemClock(), UuidIds(), metrics, each)

    def sweep_due(event: "Event", context: "LambdaContext") -> dict[str, Any]:
        """Sweep within the invocation's time; return and log how many items were due."""
        del event
        count = sweep(sweeper, context.get_remaining_time_in_millis)
        logger.info("swept", extra={"count": count})
        return {"count": count}

    handler = start_handler(sweep_due, os.environ, metrics, "sweeper")
