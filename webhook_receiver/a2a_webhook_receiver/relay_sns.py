"""An example of a relay: publishes to an SNS topic that a notification came, with ids and no content.

Subscribers (a push service, a queue, an e-mail) learn which task changed and fetch what they may see.
"""

import json
from typing import Protocol

from a2a_webhook_receiver.tasks import Delivery


class Topic(Protocol):
    """The part of boto3's SNS client that is used."""

    def publish(self, *, TopicArn: str, Message: str, MessageAttributes: object) -> object:  # noqa: N803 - AWS's names
        """Publishes one message."""


class SnsRelay:
    """A ``Relay`` to SNS. It raises when publishing fails, and then the sender's next attempt is handled again."""

    def __init__(self, client: Topic, topic_arn: str) -> None:
        self._client = client
        self._topic_arn = topic_arn

    def __call__(self, delivery: Delivery) -> None:
        subject, content = delivery.notification.subject, delivery.notification.content
        state = (delivery.task or content).state
        message = {
            "taskId": subject.task_id,
            "eventNumber": subject.event_number,
            "notificationId": subject.notification_id,
            "kind": content.kind,
            "state": state,
            "late": delivery.late,
        }
        self._client.publish(
            TopicArn=self._topic_arn,
            Message=json.dumps(message),
            MessageAttributes={"state": {"DataType": "String", "StringValue": state or "none"}},
        )
