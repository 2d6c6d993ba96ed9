"""The built-in relay: shows deliveries on the inbox page."""

from a2a_webhook_receiver.inbox import Inbox, Outcome, TaskLine
from a2a_webhook_receiver.preview import view_delivery, view_prompt
from a2a_webhook_receiver.tasks import Delivery


class InboxRelay:
    """A ``Relay`` to the inbox."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def __call__(self, delivery: Delivery) -> None:
        line = self._task_line(delivery)
        self._inbox.note_task(line)
        outcome: Outcome = "late" if delivery.late else "accepted"
        view = view_delivery(delivery) | {"agent": line.agent, "prompt": line.prompt}
        self._inbox.add(delivery.received_at, outcome, view, delivery.request)

    def _task_line(self, delivery: Delivery) -> TaskLine:
        notification = delivery.notification
        subject, content, expectation = notification.subject, notification.content, notification.expectation
        agent = self._inbox.label_of(expectation.id) or _last_segment(expectation.agent_url)
        prompt = view_prompt(content) or (view_prompt(delivery.task) if delivery.task else None)
        return TaskLine(subject.task_id, subject.event_number, content.state, agent, prompt)


def _last_segment(agent_url: str | None) -> str | None:
    return (agent_url or "").rstrip("/").rpartition("/")[2] or None
