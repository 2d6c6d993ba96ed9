"""Handles batches of SQS messages (worker, notifier), with Powertools' Batch, and of the table's stream (relay).

An invalid message is logged and discarded, because a retry would not make it valid; a message of a newer release stays
in the queue. Only the messages that fail are reported, so that SQS delivers them again and in the end moves them to the
dead-letter queue; the rest of the batch is done. Logs carry ids, never content.

Records of the stream that are not task events are skipped. The tasks of a batch are collected first and relayed
together, so a webhook gets one queue message for a batch, however many events of its task are in it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from aws_lambda_powertools.utilities.batch import (
    AsyncBatchProcessor,
    BatchProcessor,
    EventType,
    async_process_partial_response,
    process_partial_response,
)

from a2a_serverless.domain.errors import safe_error_fields
from a2a_serverless.domain.queue_messages import (
    InvalidMessage,
    QueueMessage,
    UnsupportedMessageVersion,
    from_json,
)
from a2a_serverless.store.keys import task_key

if TYPE_CHECKING:
    from enum import Enum

    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from a2a_serverless.adapters.invocations import Event, Handler
    from a2a_serverless.domain.model import TaskKey

M = TypeVar("M", bound=QueueMessage)
Kind: TypeAlias = "type[M] | tuple[type[M], ...]"

logger = logging.getLogger(__name__)


class NotAnswered(Exception):
    """A message has to be delivered again. Has no text, because Batch keeps it and may log it when debugging is on."""


def make_queue_handler(kind: Kind[M], answer: Callable[[M, Callable[[], int], str], Enum], at_once: int = 1) -> Handler:
    """Returns a Lambda handler that calls ``answer`` with each message of a batch.

    ``answer`` also gets a function that says how many ms are left, and the message's receipt.

    Handles ``at_once`` messages at the same time, in threads, so that a slow message does not delay the others. A
    single message needs no thread.
    """
    pool = ThreadPoolExecutor(at_once, "message") if at_once > 1 else None

    def answer_record(record: SQSRecord, lambda_context: LambdaContext) -> None:
        answer_message(
            kind,
            record.get("body") or "",
            record.get("messageId") or "",
            lambda message, remaining_ms: answer(message, remaining_ms, record.get("receiptHandle") or ""),
            lambda_context.get_remaining_time_in_millis,
        )

    async def answer_in_thread(record: SQSRecord, lambda_context: LambdaContext) -> None:
        await asyncio.get_running_loop().run_in_executor(pool, answer_record, record, lambda_context)

    def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
        if not event.get("Records"):
            return {"batchItemFailures": []}
        if pool and len(event["Records"]) > 1:
            together = AsyncBatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
            return dict(async_process_partial_response(dict(event), answer_in_thread, together, context))
        processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
        return dict(process_partial_response(dict(event), answer_record, processor, context))

    return handler


def answer_message(
    kind: Kind[M],
    body: str,
    message_id: str,
    answer: Callable[[M, Callable[[], int]], Enum],
    remaining_ms: Callable[[], int],
) -> None:
    """Answers the message in the body of a queue's message; discards an invalid one.

    Raises NotAnswered, also for a message of a newer release.
    """
    try:
        message = from_json(json.loads(body))
        if not isinstance(message, kind):
            raise InvalidMessage("a message of the other queue")
    except UnsupportedMessageVersion:
        logger.warning("queue message of a newer release, left in its queue", extra={"message_id": message_id})
        raise NotAnswered from None
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        ids = {"message_id": message_id, "reason": type(error).__name__}
        logger.warning("invalid queue message discarded", extra=ids)
        return
    about = {"kind": type(message).__name__, "task": message.key.task}
    try:
        ending = answer(message, remaining_ms)
    except BaseException as error:  # noqa: BLE001 - SQS delivers the message again; the process may have other work
        logger.error("queue message failed", extra=safe_error_fields(error) | about)
        raise NotAnswered from None
    else:
        logger.info("queue message handled", extra=about | {"outcome": ending.value})


def make_stream_handler(relay: Callable[[Iterable[TaskKey]], int]) -> Handler:
    """Returns a Lambda handler that relays the tasks of a batch.

    If relaying fails, the first event is reported as failed, so the batch comes again from there, and some messages are
    enqueued twice.
    """

    def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
        del context
        records = event.get("Records", [])
        events = [(record, key) for record in records if (key := _key(record))]
        try:
            enqueued = relay([key for _, key in events])
        except Exception as error:  # noqa: BLE001 - the batch comes again
            logger.error("batch not relayed", extra=safe_error_fields(error) | {"records": len(records)})
            failures = [{"itemIdentifier": record["dynamodb"]["SequenceNumber"]} for record, _ in events[:1]]
            return {"batchItemFailures": failures}
        logger.info("batch relayed", extra={"records": len(records), "enqueued": enqueued})
        return {"batchItemFailures": []}

    return handler


def _key(record: Any) -> TaskKey | None:  # noqa: ANN401 - any record of the service
    try:
        return task_key(record["dynamodb"]["Keys"]["pk"]["S"])
    except (AttributeError, KeyError, TypeError, ValueError):
        name = record.get("eventID") if isinstance(record, Mapping) else None
        logger.warning("not an event of a task, skipped", extra={"record": name})
        return None
