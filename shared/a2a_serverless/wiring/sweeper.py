"""The sweeper function."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters.sqs import SqsQueues
from a2a_serverless.adapters.system import SystemClock, UuidIds
from a2a_serverless.handlers.schedules import make_schedule_handler
from a2a_serverless.services.sweep import Sweeper, sweep
from a2a_serverless.settings import read
from a2a_serverless.store.push_store import PushStore
from a2a_serverless.wiring.process import make_metrics, start_handler
from a2a_serverless.wiring.stores import make_aws, task_log, task_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_serverless.handlers.invocations import Handler

SWEEPS_AT_ONCE: Final = 8


def make_sweeper(environment: Mapping[str, str] = os.environ) -> Handler:
    """The handler of the sweeper function."""
    settings, aws, metrics = read(environment), make_aws(), make_metrics(environment)
    table = task_table(settings, aws)
    queues = SqsQueues(aws.sqs, settings.need("WORK_QUEUE_URL"), settings.need("DELIVERY_QUEUE_URL"))
    log, store = task_log(table, settings, aws), PushStore(table)
    each = ThreadPoolExecutor(SWEEPS_AT_ONCE, "sweep").map
    sweeper = Sweeper(log, store, queues, SystemClock(), UuidIds(), metrics, each)
    return start_handler(make_schedule_handler(partial(sweep, sweeper), "swept"), environment, metrics, "sweeper")
