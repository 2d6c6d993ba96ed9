"""The notifications of one webhook, in the order of the task's log: the next one, and its body."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import notifications
from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.domain.events import Event, StatusEvent, update_of
from a2a_serverless.domain.model import Principal
from a2a_serverless.domain.replay import TaskReplay
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.protocol.notification_bodies import NotificationBody, notification, tells_whole_task
from a2a_serverless.services.content_links import resolve_contents
from a2a_serverless.services.memory_budget import MemoryBusy, MemoryShare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from a2a_serverless.domain.cursors import Cursor
    from a2a_serverless.domain.head import CurrentHead, Head
    from a2a_serverless.domain.notifications import Chunks, NextNotification
    from a2a_serverless.domain.push_configs import PushConfig
    from a2a_serverless.protocol.v1 import StreamContent, Task
    from a2a_serverless.services.delivery_context import DeliveryContext
    from a2a_serverless.store.task_log import TaskLog

PAGE: Final = 200


class Unreadable(Exception):
    """The notification's content cannot be read: it is damaged, missing, or of a newer release. See the cause."""


@contextmanager
def reading() -> Iterator[None]:
    """Raises Unreadable for an error in the block, except if a store or this instance is busy."""
    try:
        yield
    except (Overloaded, MemoryBusy):
        raise
    except Exception as error:
        raise Unreadable from error


class Notifications:
    """The notifications of the webhook ``config``; ``current`` is the task's head at the beginning of the delivery.

    They share one reading of the log: each page is read once. ``memory`` is the delivery's share.
    """

    def __init__(self, context: DeliveryContext, current: CurrentHead, config: PushConfig, memory: MemoryShare) -> None:
        self._context, self._memory, self._version, self._wanted = context, memory, config.version, config.events
        self._chunks: Chunks = "last" if tells_whole_task(self._version) else "all"
        if self._wanted != "all":
            self._chunks = "none"
        self._head, self._last = current
        self._events: list[Event] = []
        self._replayer = TaskReplayer(context.log, self._head, memory.take)
        self._is_large = False

    def next(self, cursor: Cursor) -> NextNotification | None:
        """The next notification after the cursor; None if there is no later event. Raises Unreadable, MemoryBusy."""
        events = [event for event in self._events if event.n > cursor.position]
        self._events = events or self._read_page(cursor.position)
        return notifications.find_next(cursor, self._events, self._chunks)

    def summarize(self, cursor: Cursor, upcoming: NextNotification) -> NextNotification:
        """Replaces a long backlog by a snapshot, unless the task is large; that is determined once."""
        in_place = None if self._is_large else notifications.snapshot_for_backlog(cursor, self._events, self._chunks)
        if in_place is None:
            return upcoming
        self._is_large = len(self.body(in_place).content) > notifications.SNAPSHOT_LIMIT
        return upcoming if self._is_large else in_place

    def is_last(self, upcoming: NextNotification) -> bool:
        """Whether no later event is known."""
        return upcoming.n >= max(self._last, self._events[-1].n)

    def body(self, upcoming: NextNotification) -> NotificationBody:
        """The event itself for 1.0; the task as of that event for snapshots, results and 0.3. Raises as ``next``."""
        key, event = self._head.key, upcoming.event
        is_result = self._wanted == "results" and isinstance(event, StatusEvent) and event.state in TERMINAL
        with reading():
            item: StreamContent
            if event is None or is_result or tells_whole_task(self._version):
                item = self._replayer.at(upcoming.n, self._events)
                ends = item.status.state in TERMINAL
                item = item.limited(None, artifacts=self._wanted == "all" or (self._wanted == "results" and ends))
            else:
                item = update_of(event, key.task, self._head.context_id)
            item = resolve_contents(self._context.contents, Principal(key.tenant, key.owner), item)
            return notification(self._version, item)

    def _read_page(self, position: int) -> list[Event]:
        """The next events: at most ``PAGE`` and ``page_bytes``, but at least one if the log has more."""
        context, memory = self._context, self._memory
        if not tells_whole_task(self._version):  # the events of the page before are not needed any more
            memory.release()
        before = memory.size

        def admit(size: int) -> bool:
            page = memory.size - before
            return (not page or page + size <= context.page_bytes) and memory.take(size)

        with reading():
            return context.log.read(self._head.key, position, PAGE, admit)


class TaskReplayer:
    """Makes the task as of one event after another; ``head`` may be older than the log.

    The replay for an event continues from the event before, so the log is read once. ``admit`` is ``TaskLog.read``'s.
    """

    def __init__(self, log: TaskLog, head: Head, admit: Callable[[int], bool] = lambda _: True) -> None:
        self._log = log
        self._head = head
        self._admit = admit
        self._replay = TaskReplay(head.key.task, head.context_id)

    def at(self, n: int, events: Sequence[Event]) -> Task:
        """Returns the task as of event ``n``; ``events`` is a contiguous piece of the log that was read before."""
        if self._replay.n == n:
            return self._replay.task()
        if not events[0].n - 1 <= self._replay.n <= n <= events[-1].n:
            return self._task_at(n)
        return self._replay.after(event for event in events if self._replay.n < event.n <= n)

    def _task_at(self, n: int) -> Task:
        if 0 < self._replay.n < n:
            return self._replay.after(self._log.read(self._head.key, self._replay.n, n - self._replay.n, self._admit))
        task = self._log.read_task_at(self._head, n, self._admit)
        self._replay = TaskReplay.from_task(task)
        return task
