"""A hostile owner with very many tasks and webhooks beside modest ones; ``python -m tests.fairness.run`` prints it.

The real use cases, workers and notifiers over the in-memory store, in virtual time, with fewer consumers than the
hostile owner could keep busy; once with queues that stand in line, and once with fair ones.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.domain.model import Principal, TaskKey
from a2a_serverless.domain.queue_messages import DeliveryMessage, QueueMessage, WorkMessage
from a2a_serverless.protocol.v1 import (
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    TaskPushNotificationConfig,
)
from a2a_serverless.services.requests import RequestContext
from a2a_serverless.services.tasks import send
from tests.echo import agent_of
from tests.fairness.line import Line
from tests.world import World

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext

HOSTILE: Final = Principal("tenant", "hostile")
MODEST: Final = tuple(Principal("tenant", f"modest-{number}") for number in (1, 2, 3))
EVERY_S: Final = 60
POST_MS: Final = 2_000
WORK_S: Final = 20


@dataclass(frozen=True)
class Size:
    """How much there is of everything. The run lasts ``minutes``."""

    tasks: int = 90
    workers: int = 4
    notifiers: int = 3
    minutes: int = 6


@dataclass
class Waits:
    """Seconds from a task's making to its first run, and to its first webhook, by owner."""

    work: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    webhooks: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


async def slow(task: TaskContext) -> str:
    """An agent that works for a while."""
    await task.step("work", asyncio.sleep, WORK_S)
    return "done"


class Deployment:
    """A few workers and notifiers behind their queues, and everybody's clients."""

    def __init__(self, size: Size, *, fair: bool) -> None:
        self.size = size
        self.waits = Waits()
        self._made: dict[TaskKey, int] = {}
        self._told: set[TaskKey] = set()
        self.world = World([agent_of(slow)], between=lambda _: self._line(fair=fair))
        self.world.receiver.takes = POST_MS
        self._sent = 0
        self._end = self.world.now + size.minutes * 60_000

    def _line(self, *, fair: bool) -> Line:
        self.line = Line(lambda: self.world.now, fair=fair)
        return self.line

    def run(self) -> Waits:
        """The waits of those who have waited to the end of it, and of those who wait still."""
        workers = [lambda: self._consume(WorkMessage) for _ in range(self.size.workers)]
        notifiers = [lambda: self._consume(DeliveryMessage) for _ in range(self.size.notifiers)]
        self.world.together(self._flood, self._visit, *workers, *notifiers)
        for key, at in self._made.items():
            if key not in self._told:
                self.waits.webhooks[key.owner].append((self.world.now - at) / 1000)
            if not self._started(key):
                self.waits.work[key.owner].append((self.world.now - at) / 1000)
        return self.waits

    def _flood(self) -> None:
        for _ in range(self.size.tasks):
            self._send(HOSTILE)

    def _visit(self) -> None:
        while self.world.now < self._end - 60_000:
            self.world.wait(EVERY_S * 500)
            for principal in MODEST:
                self._send(principal)
            self.world.wait(EVERY_S * 500)

    def _send(self, principal: Principal) -> None:
        self._sent += 1
        message = Message(message_id=f"message-{self._sent}", role=Role.USER, parts=(Part(text="hello"),))
        push = TaskPushNotificationConfig(url=f"https://hooks-{self._sent}.example.com/a2a", id="hook")
        task: Any = send(
            self.world.service,
            RequestContext(principal, "echo", "1.0"),
            SendMessageRequest(
                message=message,
                configuration=SendMessageConfiguration(return_immediately=True, task_push_notification_config=push),
            ),
        )
        key = principal.key(task.id)
        self._made[key] = self.world.now
        self.line.enqueue(DeliveryMessage(key, "hook"))  # as the relay does

    def _consume(self, kind: type[WorkMessage | DeliveryMessage]) -> None:
        while self.world.now < self._end:
            taken = self.line.take(kind)
            if taken is None:
                self.world.wait(1000)
                continue
            number, message = taken
            self._note(message)
            self._answer(message)
            self.line.done(number)

    def _note(self, message: QueueMessage) -> None:
        waited = (self.world.now - self._made[message.key]) / 1000
        if isinstance(message, DeliveryMessage) and message.key not in self._told:
            self._told.add(message.key)
            self.waits.webhooks[message.key.owner].append(waited)
        elif isinstance(message, WorkMessage) and not self._started(message.key):
            self.waits.work[message.key.owner].append(waited)

    def _started(self, key: TaskKey) -> bool:
        snapshot = self.world.table.read_head(key)
        return snapshot is not None and snapshot.head.fence > 0

    def _answer(self, message: QueueMessage) -> None:
        if isinstance(message, DeliveryMessage):
            self.world.notifier(message)()
        else:
            self.world.worker(message.key)()


@cache
def played(size: Size, *, fair: bool) -> Waits:
    """What a run comes to; it is the same each time."""
    return Deployment(size, fair=fair).run()


def worst(waits: dict[str, list[float]]) -> tuple[float, float]:
    """The longest wait among the modest owners, and among the hostile one's tasks."""
    return max(max(waits[principal.owner]) for principal in MODEST), max(waits[HOSTILE.owner])


def table(size: Size) -> str:
    """The run as a table: seconds of waiting, middle and longest."""
    lines = ["| queues | owner | tasks | work begins after | first webhook after |", "|---|---|---|---|---|"]
    for fair in (False, True):
        waits = played(size, fair=fair)
        for owner in (HOSTILE.owner, *(principal.owner for principal in MODEST)):
            told = [
                f"{statistics.median(of[owner]):.0f} s, at most {max(of[owner]):.0f} s"
                for of in (waits.work, waits.webhooks)
            ]
            name = "fair" if fair else "in line"
            lines.append(f"| {name} | {owner} | {len(waits.work[owner])} | {told[0]} | {told[1]} |")
    return "\n".join(lines)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in vars(Size()).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    print(table(Size(**vars(parser.parse_args()))))  # noqa: T201


if __name__ == "__main__":
    main()
