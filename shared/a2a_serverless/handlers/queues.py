"""SQS batches of bells, for the worker and the notifier.

A message that is no bell of ours is counted and thrown away, because it would be none the next time either; one of a
newer release goes back. A bell
whose answer fails is reported back by itself, so that the queue rings it again and moves it to the dead letters in the
end; its neighbours stand. Logs carry ids, never content.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Any, Protocol, TypeAlias, TypeVar

from a2a_serverless.domain.error_fields import safe_error_fields
from a2a_serverless.domain.queue_messages import (
    DeliveryMessage,
    InvalidMessage,
    UnsupportedMessageVersion,
    WorkMessage,
    from_json,
)

Event: TypeAlias = Mapping[str, Any]


class Context(Protocol):
    """What Lambda says about an invocation, as far as we ask."""

    def get_remaining_time_in_millis(self) -> int:
        """How long this invocation may still take."""
        ...


Handler: TypeAlias = Callable[[Event, Context], dict[str, Any]]

M = TypeVar("M", WorkMessage, DeliveryMessage)

logger = logging.getLogger(__name__)


def make_queue_handler(kind: type[M], answer: Callable[[M, Callable[[], int]], Enum], at_once: int = 1) -> Handler:
    """A Lambda handler that answers each bell of a batch. ``answer`` also gets a function: how many ms are left.

    ``at_once`` bells are answered at the same time, in threads, so that one that takes long does not hold the others.
    """
    pool = ThreadPoolExecutor(at_once, "bell") if at_once > 1 else None

    def handler(event: Event, context: Context) -> dict[str, Any]:
        records = event.get("Records", [])
        each = pool.map if pool and len(records) > 1 else map
        answered = list(each(lambda record: _answered(record, context), records))
        failed = [record for record, done in zip(records, answered, strict=True) if not done]
        return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in failed]}

    def _answered(record: Mapping[str, Any], context: Context) -> bool:
        try:
            message = from_json(json.loads(record.get("body", "")))
            if not isinstance(message, kind):
                raise InvalidMessage("a bell of the other queue")
        except UnsupportedMessageVersion:
            logger.warning("a newer release's bell, left in its queue", extra={"message_id": record.get("messageId")})
            return False
        except (ValueError, TypeError, RecursionError) as error:
            logger.warning(
                "not a bell, thrown away", extra={"message_id": record.get("messageId"), "reason": type(error).__name__}
            )
            return True
        ids = {"kind": type(message).__name__, "task": message.key.task}
        try:
            ending = answer(message, context.get_remaining_time_in_millis)
        except Exception as error:  # noqa: BLE001 - the queue rings again
            logger.error("bell not answered", extra=safe_error_fields(error) | ids)
            return False
        logger.info("bell answered", extra=ids | {"outcome": ending.value})
        return True

    return handler
