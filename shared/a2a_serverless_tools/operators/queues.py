"""The queues of a deployment: how many messages each of them has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_sqs import SQSClient

_OUTPUTS: Final = {
    "work": "WorkQueueUrl",
    "deliveries": "DeliveryQueueUrl",
    "work, failed": "WorkDeadLettersUrl",
    "deliveries, failed": "DeliveryDeadLettersUrl",
    "relay, failed": "RelayFailuresUrl",
}
_REMEDIES: Final = {
    "work, failed": "the runbook of WorkDeadLettersAlarm",
    "deliveries, failed": "the runbook of DeliveryDeadLettersAlarm",
    "relay, failed": "the runbook of RelayFailuresAlarm",
}


class QueueDepth(NamedTuple):
    """The approximate numbers of a queue's messages.

    ``waiting`` ones can be received now, ``received`` ones are with a function or were not deleted by it, ``delayed``
    ones come later.
    """

    name: str
    waiting: int
    received: int
    delayed: int

    @property
    def remedy(self) -> str:
        """What helps, if there should be no message in this queue; else empty."""
        return _REMEDIES.get(self.name, "") if self.waiting + self.received else ""


def read_depths(client: SQSClient, output: Callable[[str], str]) -> list[QueueDepth]:
    """Reads the numbers of each queue. ``output`` returns one of the stack's outputs."""
    depths = []
    for name, url_output in _OUTPUTS.items():
        answer = client.get_queue_attributes(
            QueueUrl=output(url_output),
            AttributeNames=[
                "ApproximateNumberOfMessages",
                "ApproximateNumberOfMessagesNotVisible",
                "ApproximateNumberOfMessagesDelayed",
            ],
        )
        counts = {key.removeprefix("ApproximateNumberOfMessages"): int(n) for key, n in answer["Attributes"].items()}
        depths.append(QueueDepth(name, counts[""], counts["NotVisible"], counts["Delayed"]))
    return depths
