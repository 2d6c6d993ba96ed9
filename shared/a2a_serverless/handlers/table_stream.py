"""Batches of the table's stream, for the relay. A record that is no event of a task is counted and passed over."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from a2a_serverless.domain.error_fields import safe_error_fields

if TYPE_CHECKING:
    from a2a_serverless.domain.model import TaskKey
    from a2a_serverless.handlers.queues import Context, Event, Handler

logger = logging.getLogger(__name__)


def make_stream_handler(
    relay: Callable[[Iterable[TaskKey]], int], key_of: Callable[[Mapping[str, Any]], TaskKey]
) -> Handler:
    """A Lambda handler that rings for the tasks of a batch.

    When ringing fails, the first event is reported, the batch comes again from there, and some bells ring twice.
    """

    def handler(event: Event, context: Context) -> dict[str, Any]:
        del context
        records = list(event.get("Records", []))
        events = [(record, key) for record in records if (key := _key(record))]
        try:
            enqueued = relay([key for _, key in events])
        except Exception as error:  # noqa: BLE001 - the batch comes again
            logger.error("batch not relayed", extra=safe_error_fields(error) | {"records": len(records)})
            return {"batchItemFailures": [{"itemIdentifier": _position(record)} for record, _ in events[:1]]}
        logger.info("batch relayed", extra={"records": len(records), "enqueued": enqueued})
        return {"batchItemFailures": []}

    def _key(record: Any) -> TaskKey | None:  # noqa: ANN401 - whatever the stream holds
        try:
            return key_of(record)
        except (AttributeError, KeyError, TypeError, ValueError):
            name = record.get("eventID") if isinstance(record, Mapping) else None
            logger.warning("not an event of a task, passed over", extra={"record": name})
            return None

    return handler


def _position(record: Mapping[str, Any]) -> str:
    return str(record["dynamodb"]["SequenceNumber"])
