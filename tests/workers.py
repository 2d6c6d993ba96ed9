"""A world with enough workers: each work message is received at once, also while another worker runs the task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_serverless.domain.queue_messages import WorkMessage
from tests.echo import agent_of
from tests.faults.plans import Count
from tests.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.queue_messages import QueueMessage
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.protocol.v1 import TaskState
    from tests.faults.plans import Faults


class Workers(World):
    """``answered`` has the results of the workers; ``most`` is how many work messages were in flight at a time."""

    workers = 8

    def __init__(self, work: Callable[[TaskContext], object], faults: Faults | None = None) -> None:
        self.counts = Count(frozenset({"table"}))
        self.answered: list[object] = []
        self.most = 0
        super().__init__([agent_of(work)], faults=faults or self.counts)

    def answer(self, message: QueueMessage) -> object:
        answered = super().answer(message)
        if isinstance(message, WorkMessage):
            self.answered.append(answered)
        return answered

    def consume(self, kind: type[QueueMessage]) -> None:
        in_flight = [message for _, message in self.queue.waiting if isinstance(message, WorkMessage)]
        self.most = max(self.most, len(in_flight))
        super().consume(kind)

    def state(self, task_id: str) -> TaskState:
        return self.get(task_id).status.state
