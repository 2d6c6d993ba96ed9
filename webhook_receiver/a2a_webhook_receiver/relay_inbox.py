"""The built-in relay: shows deliveries on the inbox page."""

from a2a_webhook_receiver.inbox import Inbox, TaskLine
from a2a_webhook_receiver.preview import view_delivery
from a2a_webhook_receiver.tasks import Delivery


class InboxRelay:
    """A ``Relay`` to the inbox."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def __call__(self, delivery: Delivery) -> None:
        subject, content = delivery.notification.subject, delivery.notification.content
        self._inbox.note_task(TaskLine(subject.task_id, subject.event_number, content.state))
        self._inbox.add(delivery.received_at, "late" if delivery.late else "accepted", view_delivery(delivery))
