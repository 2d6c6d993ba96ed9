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
    from mypy_boto3_sqs import SQSClient

    from a2a_serverless.domain.bells import Bell
    from a2a_serverless.domain.model import TaskKey

LONGEST_DELAY_S: Final = 900


class SqsBells:
    """``ports.Bells``."""

    def __init__(self, client: SQSClient, work_url: str, delivery_url: str) -> None:
        self._client = client
        self._work_url = work_url
        self._delivery_url = delivery_url

    def ring(self, bell: Bell, delay_s: int = 0) -> None:
        if not 0 <= delay_s <= LONGEST_DELAY_S:
            raise ValueError(f"a delay is 0 to {LONGEST_DELAY_S} seconds, not {delay_s}")
        url = self._work_url if isinstance(bell, WorkBell) else self._delivery_url
        body = json.dumps(to_json(bell), separators=(",", ":"))
        group = group_of(bell.key)
        self._client.send_message(QueueUrl=url, MessageBody=body, DelaySeconds=delay_s, MessageGroupId=group)


def group_of(key: TaskKey) -> str:
    """The message group of an owner: at most 128 characters that SQS takes, and nobody's name."""
    return sha256(path(key.tenant, key.owner).encode()).hexdigest()[:32]
