"""The rate limiter: enforces each owner's quota before anything is done for a request.

What makes work is counted for the whole deployment: sends, which an instance takes from the owner's stored bucket a few
at a time, and unfinished tasks. The number of unfinished tasks is not kept exactly: an upper bound is stored, and only
when that reaches the limit are the tasks counted again, from what has changed in the index since the last count. Sends
that instances have taken and not used may exceed the limit.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import quota as shares
from a2a_serverless.domain.error_fields import safe_error_fields
from a2a_serverless.domain.errors import Overloaded, TooManyRequests
from a2a_serverless.domain.quota import COUNT_AGAIN_MS, Quota, SendBucket, UnfinishedTasks
from a2a_serverless.domain.states import TERMINAL
from a2a_serverless.domain.times import DAY_MS
from a2a_serverless.services.task_changes import check_written, retry_on_conflict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.domain.model import Principal
    from a2a_serverless.domain.records import TaskEntry
    from a2a_serverless.ports.system import Clock, Ids
    from a2a_serverless.store.stores import OwnerStore, TaskIndex

OWNERS_KEPT: Final = 2000
SENDS_KEPT_MS: Final = 60_000
LAG_MS: Final = 60_000
PAGE: Final = 1000
STREAM_WAIT_S: Final = 15
# A stream sends something every 15 seconds, and a write may take 45 (http/runtime.py): a renewal comes in time.
STREAM_RENEW_MS: Final = 20_000
STREAM_LEASE_MS: Final = 90_000

logger = logging.getLogger(__name__)


@dataclass(eq=False, repr=False, slots=True)
class _OwnerState:
    """The sends that an instance has taken for an owner and not used, valid until ``until`` (ms).

    ``drawing`` is locked while the owner's stored bucket is read, so only requests of this owner wait for that.
    """

    sends: int = 0
    until: int = 0
    drawing: Lock = field(default_factory=Lock)


class StreamSlot:
    """One open stream, counted against the quota while its lease lasts.

    An instance that dies without releasing it holds the slot for ``STREAM_LEASE_MS`` at most. Thread-safe: a released
    slot stays released, also if it was being renewed.
    """

    def __init__(self, owners: OwnerStore, clock: Clock, principal: Principal, name: str, until: int) -> None:
        self._owners = owners
        self._clock = clock
        self._principal = principal
        self._name = name
        self._until = until
        self._released = False
        self._lock = Lock()

    @property
    def is_renewal_due(self) -> bool:
        """Whether it is time to renew the lease."""
        return self._clock.now() >= self._renew_at

    def acquire(self) -> None:
        """Leases the slot for ``STREAM_LEASE_MS``, not beyond the stream's end."""
        with self._lock:
            now = self._clock.now()
            if not self._released:
                self._owners.lease_stream(self._principal, self._name, min(self._until, now + STREAM_LEASE_MS))
            self._renew_at = now + STREAM_RENEW_MS

    def renew(self) -> None:
        """As ``acquire``, but logs a failing store instead of raising, and the stream goes on."""
        try:
            self.acquire()
        except Exception as error:  # noqa: BLE001 - counting is no reason to end a stream
            logger.warning("stream not renewed", extra=safe_error_fields(error))

    def release(self) -> None:
        """Releases the slot. Idempotent. If the store fails, the slot stays counted until its lease expires."""
        with self._lock:
            if self._released:
                return
            self._released = True
            try:
                self._owners.release_stream(self._principal, self._name)
            except Exception as error:  # noqa: BLE001 - the stream has ended already
                logger.warning("stream not released", extra=safe_error_fields(error))


class RateLimiter:
    """Admits requests within each owner's quota. No unfinished task is older than ``max_life_ms``."""

    def __init__(
        self, owners: OwnerStore, index: TaskIndex, clock: Clock, ids: Ids, quota: Quota, max_life_ms: int
    ) -> None:
        self._owners = owners
        self._index = index
        self._clock = clock
        self._ids = ids
        self._quota = quota
        self._max_life_ms = max_life_ms
        self._lock = Lock()
        self._known: OrderedDict[Principal, _OwnerState] = OrderedDict()

    def admit_send(self, principal: Principal) -> None:
        """Counts one sent message; raises TooManyRequests for too many messages or too many unfinished tasks."""
        if not (self._quota.sends or self._quota.tasks):
            return
        with self._lock:
            local = self._owner_state(principal)
        with local.drawing:
            if local.sends == 0 or local.until <= self._clock.now():
                local.sends = retry_on_conflict(lambda: self._take_sends(principal))
                local.until = self._clock.now() + SENDS_KEPT_MS
            local.sends -= 1

    def admit_upload(self, principal: Principal, size: int) -> None:
        """Counts ``size`` bytes of uploads; raises TooManyRequests. A repeated request counts twice."""
        most = self._quota.uploads
        if not most:
            return
        day, since = divmod(self._clock.now(), DAY_MS)
        if not self._owners.count_upload(principal, day, size, most):
            text = f"At most {most} bytes of uploads a day (UTC), and {size} more would be too many."
            raise TooManyRequests(text, -(-(DAY_MS - since) // 1000))

    def open_stream(self, principal: Principal, until: int) -> StreamSlot | None:
        """Returns the slot of a stream that may last until ``until`` (ms); None if streams have no limit.

        Raises TooManyRequests if the owner has too many open, Overloaded if the deployment has. Streams are counted
        before and after the slot is leased, so that concurrent requests cannot exceed the limit.
        """
        if not (self._quota.streams or self._quota.streams_in_all):
            return None
        self._check_streams(principal, 0)
        slot = StreamSlot(self._owners, self._clock, principal, self._ids.new(), until)
        try:
            slot.acquire()
            self._check_streams(principal, 1)
        except BaseException:
            slot.release()
            raise
        return slot

    def _check_streams(self, principal: Principal, own: int) -> None:
        """Raises if one more stream would exceed a limit; ``own`` is 1 if this stream is counted already, else 0."""
        most, in_all = self._quota.streams, self._quota.streams_in_all
        if most and self._owners.count_streams(principal, most + own) >= most + own:
            raise TooManyRequests(f"At most {most} streams at a time. Close one.", STREAM_WAIT_S)
        if in_all and self._owners.count_streams(None, in_all + own) >= in_all + own:
            text = f"At most {in_all} streams are open in this deployment at a time. Try again, or read the task."
            raise Overloaded(text, STREAM_WAIT_S)

    def _owner_state(self, principal: Principal) -> _OwnerState:
        local = self._known.setdefault(principal, _OwnerState())
        self._known.move_to_end(principal)
        if len(self._known) > OWNERS_KEPT:
            self._known.popitem(last=False)
        return local

    def _take_sends(self, principal: Principal) -> int:
        """Takes some sends from the owner's stored bucket; returns how many, at least one. Raises Conflict."""
        now, before = self._clock.now(), self._owners.get_bucket(principal)
        share = shares.refill(before or shares.new_bucket(self._quota, now), self._quota, now)
        after, count = shares.take_sends(share, self._quota)
        if count == 0:
            after, count = shares.take_sends(self._count_unfinished(principal, share), self._quota)
        check_written(self._owners.store_bucket(principal, before, after))
        return count

    def _count_unfinished(self, principal: Principal, share: SendBucket) -> SendBucket:
        """Returns the bucket with a new count of the owner's unfinished tasks; raises TooManyRequests at a limit."""
        if wait_s := shares.seconds_until_send(share, self._quota):
            raise TooManyRequests(f"At most {self._quota.sends} messages a minute. Slow down.", wait_s)
        found = self._unfinished(principal)
        if found >= self._quota.tasks:
            text = f"At most {self._quota.tasks} unfinished tasks at a time. Wait for some, or cancel them."
            raise TooManyRequests(text, COUNT_AGAIN_MS // 1000)
        return share._replace(made=found)

    def _unfinished(self, principal: Principal) -> int:
        """Counts the owner's unfinished tasks, up to the limit: those of the last count and what has changed since.

        Stores no more of them than the limit. If those have ended and there were more, counts all of them again.
        """
        now, known, most = self._clock.now(), self._owners.get_unfinished(principal), self._quota.tasks
        if known and now - known.at < COUNT_AGAIN_MS and len(known.tasks) >= most:
            return len(known.tasks)
        oldest = now - self._max_life_ms - LAG_MS
        tasks, more = set[str](), True
        if known:
            tasks, more = self._changed(principal, set(known.tasks), max(oldest, known.at - LAG_MS)), known.more
        if more and len(tasks) < most:
            tasks, more = self._first(principal, oldest, most)
        counted = UnfinishedTasks(now, frozenset(sorted(tasks)[:most]), more or len(tasks) > most)
        self._owners.store_unfinished(principal, counted)
        return len(counted.tasks)

    def _changed(self, principal: Principal, tasks: set[str], since: int) -> set[str]:
        """Updates the set of unfinished tasks, as known at ``since``, by what has changed in the index since."""
        for page, _ in self._pages(principal, since):
            tasks -= {entry.task for entry in page if entry.state in TERMINAL}
            tasks |= {entry.task for entry in page if entry.state not in TERMINAL}
        return tasks

    def _first(self, principal: Principal, since: int, most: int) -> tuple[set[str], bool]:
        """Unfinished tasks, newest first, and whether there may be more; stops when ``most`` were found."""
        tasks = set[str]()
        for page, more in self._pages(principal, since):
            tasks |= {entry.task for entry in page if entry.state not in TERMINAL}
            if more and len(tasks) >= most:
                return tasks, True
        return tasks, False

    def _pages(self, principal: Principal, since: int) -> Iterator[tuple[list[TaskEntry], bool]]:
        """Yields the index entries that have changed since ``since``, page by page, and whether more pages follow."""
        after, more = None, True
        while more:
            page, after = self._index.list_page(principal, None, after, since, PAGE)
            more = after is not None
            yield page, more
