"""A world with enough workers: each work message is received at once, also while another worker runs the task."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING

from a2a_serverless.domain.queue_messages import WorkMessage
from a2a_serverless.wiring.in_process import VISIBILITY_S
from tests.echo import agent_of
from tests.faults.plans import Count
from tests.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.agent import TaskContext
    from a2a_serverless.domain.queue_messages import QueueMessage
    from a2a_serverless.protocol.v1 import TaskState
    from tests.faults.plans import Faults


class Workers(World):
    """``answered`` has the results of the workers; ``most`` is how many work messages were in flight at a time."""

    def __init__(self, work: Callable[[TaskContext], object], faults: Faults | None = None) -> None:
        self.counts = Count(frozenset({"table"}))
        super().__init__([agent_of(work)], faults=faults or self.counts)
        self.answered: list[object] = []
        self.most = 0

    def answer(self, message: QueueMessage) -> object:
        if not isinstance(message, WorkMessage):
            return super().answer(message)
        in_flight = [other for _, other in self.queue.waiting if isinstance(other, WorkMessage)]
        self.most = max(self.most, 1 + len(in_flight))
        if self.busy:
            self._beside(message)
        else:
            self.answered.append(super().answer(message))
        return None

    def _beside(self, message: WorkMessage) -> None:
        def answer() -> None:
            if not self.survives(lambda: self.answered.append(self.run(message.key))):
                self.queue.enqueue(message, VISIBILITY_S)

        self.busy = False
        worker = Thread(target=answer)
        worker.start()
        worker.join()
        self.busy = True

    def state(self, task_id: str) -> TaskState:
        return self.get(task_id).status.state
