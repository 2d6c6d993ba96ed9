"""Bells over two SQS queues: one for work, one for deliveries.

Each bell carries its owner as its message group: that makes the standard queues fair (Amazon SQS fair queues). When an
owner takes more than its share of the consumers, bells of the others go first.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from a2a_serverless.adapters.keys import path
from a2a_serverless.domain.bells import WorkBell, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

    from a2a_serverless.domain.bells import Bell
    from a2a_serverless.domain.model import TaskKey

LONGEST_DELAY_S: Final = 900
BATCH: Final = 10  # SQS takes no more in one call


class SqsBells:
    """``ports.Bells``."""

    def __init__(self, client: SQSClient, work_url: str, delivery_url: str) -> None:
        self._client = client
        self._work_url = work_url
        self._delivery_url = delivery_url

    def ring(self, bell: Bell, delay_s: int = 0) -> None:
        if not 0 <= delay_s <= LONGEST_DELAY_S:
            raise ValueError(f"a delay is 0 to {LONGEST_DELAY_S} seconds, not {delay_s}")
        group = group_of(bell.key)
        self._client.send_message(
            QueueUrl=self._url_of(bell), MessageBody=_body(bell), DelaySeconds=delay_s, MessageGroupId=group
        )

    def ring_many(self, bells: Sequence[Bell]) -> None:
        for url in sorted({self._url_of(bell) for bell in bells}):
            mine = [bell for bell in bells if self._url_of(bell) == url]
            for first in range(0, len(mine), BATCH):
                self._send(url, mine[first : first + BATCH])

    def _send(self, url: str, bells: Sequence[Bell]) -> None:
        entries: list[SendMessageBatchRequestEntryTypeDef] = [
            {"Id": str(number), "MessageBody": _body(bell), "MessageGroupId": group_of(bell.key)}
            for number, bell in enumerate(bells)
        ]
        failed = self._client.send_message_batch(QueueUrl=url, Entries=entries).get("Failed", [])
        if failed:
            raise RuntimeError(f"SQS did not take {len(failed)} of {len(entries)} messages: {failed[0].get('Code')}")

    def _url_of(self, bell: Bell) -> str:
        return self._work_url if isinstance(bell, WorkBell) else self._delivery_url


def _body(bell: Bell) -> str:
    return json.dumps(to_json(bell), separators=(",", ":"))


def group_of(key: TaskKey) -> str:
    """The message group of an owner: at most 128 characters that SQS takes, and nobody's name."""
    return sha256(path(key.tenant, key.owner).encode()).hexdigest()[:32]
