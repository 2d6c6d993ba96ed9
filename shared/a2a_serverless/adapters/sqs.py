"""Sends queue messages to two SQS queues: one for work, one for deliveries.

Each message has its owner as its message group, which makes the standard queues fair (Amazon SQS fair queues): when
one owner uses more than its share of the consumers, messages of the others are delivered first.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.model import path
from a2a_serverless.domain.queue_messages import LONGEST_DELAY_S, DeliveryMessage, QueueMessage, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

    from a2a_serverless.domain.model import TaskKey

BATCH: Final = 10  # SQS accepts no more in one call


class SqsQueues:
    """``ports.Queues``."""

    def __init__(self, client: SQSClient, work_url: str, delivery_url: str) -> None:
        self._client = client
        self._work_url, self._delivery_url = work_url, delivery_url

    def enqueue(self, message: QueueMessage, delay_s: int = 0) -> None:
        if not 0 <= delay_s <= LONGEST_DELAY_S:
            raise ValueError(f"a delay is 0 to {LONGEST_DELAY_S} seconds, not {delay_s}")
        url, group = self._url_of(message), group_of(message.key)
        self._client.send_message(QueueUrl=url, MessageBody=_body(message), DelaySeconds=delay_s, MessageGroupId=group)

    def delay(self, receipt: str, seconds: int) -> None:
        """Lets the received work message come again after ``seconds``, if it is not deleted before.

        Raises if SQS has delivered it again or deleted it, or has hidden it for twelve hours.
        """
        self._client.change_message_visibility(
            QueueUrl=self._work_url, ReceiptHandle=receipt, VisibilityTimeout=seconds
        )

    def enqueue_many(self, messages: Sequence[QueueMessage]) -> None:
        for url in sorted({self._url_of(message) for message in messages}):
            mine = [message for message in messages if self._url_of(message) == url]
            for first in range(0, len(mine), BATCH):
                self._send(url, mine[first : first + BATCH])

    def _url_of(self, message: QueueMessage) -> str:
        return self._delivery_url if isinstance(message, DeliveryMessage) else self._work_url

    def _send(self, url: str, messages: Sequence[QueueMessage]) -> None:
        entries: list[SendMessageBatchRequestEntryTypeDef] = [
            {"Id": str(number), "MessageBody": _body(message), "MessageGroupId": group_of(message.key)}
            for number, message in enumerate(messages)
        ]
        failures = self._client.send_message_batch(QueueUrl=url, Entries=entries).get("Failed")
        if failures:
            raise RuntimeError(
                f"SQS did not take {len(failures)} of {len(entries)} messages: {failures[0].get('Code')}"
            )


def _body(message: QueueMessage) -> str:
    return json.dumps(to_json(message))


def group_of(key: TaskKey) -> str:
    """The message group of an owner: within SQS's 128 characters, and a hash, so it reveals no name."""
    return sha256(path(key.tenant, key.owner).encode()).hexdigest()[:32]
