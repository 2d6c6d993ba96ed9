"""Handles batches of the table's stream, for the relay, with Powertools' Batch. Skips records that are not task events.

The tasks of a batch are collected first and relayed together, so a webhook gets one queue message for a batch, however
many events of its task are in it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType

from a2a_serverless.domain.error_fields import safe_error_fields

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.data_classes.dynamo_db_stream_event import DynamoDBRecord
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.handlers.invocations import Event, Handler

logger = logging.getLogger(__name__)


def make_stream_handler(relay: Callable[[Iterable[TaskKey]], int], task_key: Callable[[str], TaskKey]) -> Handler:
    """Returns a Lambda handler that relays the tasks of a batch; ``task_key`` parses a partition key.

    If relaying fails, the first event is reported as failed, so the batch comes again from there, and some messages are
    enqueued twice.
    """

    def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
        del context
        events: list[tuple[DynamoDBRecord, TaskKey]] = []

        def collect(record: DynamoDBRecord) -> None:
            if key := _key(record, task_key):
                events.append((record, key))

        records = list(event.get("Records", []))
        with BatchProcessor(EventType.DynamoDBStreams, raise_on_entire_batch_failure=False)(records, collect) as batch:
            batch.process()
            try:
                enqueued = relay([key for _, key in events])
            except Exception as error:  # noqa: BLE001 - the batch comes again
                logger.error("batch not relayed", extra=safe_error_fields(error) | {"records": len(records)})
                for record, _ in events[:1]:
                    batch.failure_handler(record, (None, None, None))  # it is in the log already
            else:
                logger.info("batch relayed", extra={"records": len(records), "enqueued": enqueued})
        return dict(batch.response())

    return handler


def _key(record: DynamoDBRecord, task_key: Callable[[str], TaskKey]) -> TaskKey | None:
    try:
        return task_key(record.dynamodb.keys["pk"])  # type: ignore[union-attr]
    except (AttributeError, KeyError, TypeError, ValueError):
        raw: object = record.raw_event
        name = raw.get("eventID") if isinstance(raw, Mapping) else None
        logger.warning("not an event of a task, skipped", extra={"record": name})
        return None
