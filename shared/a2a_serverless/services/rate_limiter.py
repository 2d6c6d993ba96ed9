"""What each owner may ask for: refuses who has had its share, before anything is done for it.

Requests are counted by each instance for itself, at no cost. What makes work is counted for the whole deployment:
sends, drawn from the owner's record a few at a time, and unfinished tasks. Those are not counted up and down with each
task: a bound is kept, and only when it is reached are they looked for, among what has changed in the index since the
last time. What instances have drawn and not used when that is done may come on top.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import quota as shares
from a2a_serverless.domain.error_fields import safe_error_fields
from a2a_serverless.domain.errors import Overloaded, TooManyRequests
from a2a_serverless.domain.quota import COUNT_AGAIN_MS, Quota, RequestBucket, SendBucket, UnfinishedTasks
from a2a_serverless.domain.states import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.domain.model import Principal
    from a2a_serverless.ports import Clock, Ids, OwnerStore, TaskEntry, TaskIndex

OWNERS_KEPT: Final = 2000
SENDS_KEPT_MS: Final = 60_000
LAG_MS: Final = 60_000
DAY_MS: Final = 86_400_000
PAGE: Final = 1000
TRIES: Final = 10
STREAM_WAIT_S: Final = 15
# A stream says something every 15 seconds, and a write may take 45 (handlers/runtime.py): before the lease is over.
STREAM_RENEW_MS: Final = 20_000
STREAM_LEASE_MS: Final = 90_000

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _OwnerState:
    """What an instance knows of an owner: its bucket, and the sends that it has drawn and not used.

    ``drawing`` is held while the owner's record is read: only requests of this owner wait for that.
    """

    bucket: RequestBucket | None = None
    sends: int = 0
    until: int = 0
    drawing: Lock = field(default_factory=Lock)


class StreamSlot:
    """The place of an open stream among those that are counted.

    It is leased: whoever dies without releasing it holds it for ``STREAM_LEASE_MS`` at most. Safe between threads: what
    is released stays so, also when a renewal was under way.
    """

    def __init__(self, owners: OwnerStore, clock: Clock, principal: Principal, name: str, until: int) -> None:
        self._owners = owners
        self._clock = clock
        self._principal = principal
        self._name = name
        self._until = until
        self._renew_at = 0
        self._released = False
        self._lock = Lock()

    @property
    def is_renewal_due(self) -> bool:
        """Whether it is time to renew it."""
        return self._clock.now() >= self._renew_at

    def acquire(self) -> None:
        """Holds the slot from now on, as long as a lease lasts."""
        with self._lock:
            now = self._clock.now()
            if not self._released:
                self._owners.lease_stream(self._principal, self._name, min(self._until, now + STREAM_LEASE_MS))
            self._renew_at = now + STREAM_RENEW_MS

    def renew(self) -> None:
        """The same; a store that fails now is asked again later, and the stream goes on."""
        try:
            self.acquire()
        except Exception as error:  # noqa: BLE001 - counting is no reason to end a stream
            logger.warning("stream not renewed", extra=safe_error_fields(error))

    def release(self) -> None:
        """Gives the slot back. Doing it twice is doing it once; a store that fails keeps it until its lease is over."""
        with self._lock:
            if self._released:
                return
            self._released = True
            try:
                self._owners.release_stream(self._principal, self._name)
            except Exception as error:  # noqa: BLE001 - the stream has been told to its end
                logger.warning("stream not released", extra=safe_error_fields(error))


class RateLimiter:
    """Lets callers pass. ``max_life_ms``: no unfinished task is older."""

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

    def admit_request(self, principal: Principal) -> None:
        """One request more; raises TooManyRequests."""
        rate, now = self._quota.requests, self._clock.now()
        if not rate:
            return
        with self._lock:
            local = self._owner_state(principal)
            after = shares.take_request(local.bucket, rate, now)
            if after is None:
                raise TooManyRequests(f"At most {rate} requests a second. Slow down.", 1)
            local.bucket = after

    def admit_send(self, principal: Principal) -> None:
        """One message more; raises TooManyRequests when there were too many, or too many tasks are unfinished."""
        if not (self._quota.sends or self._quota.tasks):
            return
        with self._lock:
            local = self._owner_state(principal)
        with local.drawing:
            if local.sends == 0 or local.until <= self._clock.now():
                local.sends, local.until = self._take_sends(principal), self._clock.now() + SENDS_KEPT_MS
            local.sends -= 1

    def admit_upload(self, principal: Principal, size: int) -> None:
        """So many bytes of uploads more; raises TooManyRequests. What is asked for twice counts twice."""
        most = self._quota.uploads
        if not most:
            return
        day, since = divmod(self._clock.now(), DAY_MS)
        if not self._owners.count_upload(principal, day, size, most):
            text = f"At most {most} bytes of uploads a day (UTC), and {size} more would be too many."
            raise TooManyRequests(text, -(-(DAY_MS - since) // 1000))

    def open_stream(self, principal: Principal, until: int) -> StreamSlot | None:
        """Counts a stream that may last until ``until`` (ms); None when nobody counts.

        Raises TooManyRequests when the owner has too many open, Overloaded when the deployment has. It is counted
        before and after the slot is held, so that of those who come at once none is one too many.
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
        """Raises when there is no room for one stream more; ``own`` of those that are open is this one."""
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
        """Some sends of the owner's; at least one."""
        for _ in range(TRIES):
            now, before = self._clock.now(), self._owners.get_bucket(principal)
            share = shares.refill(before or shares.new_bucket(self._quota, now), self._quota, now)
            after, count = shares.take_sends(share, self._quota)
            if count == 0:
                after, count = shares.take_sends(self._count_unfinished(principal, share), self._quota)
            if self._owners.store_bucket(principal, before, after):
                return count
        raise Overloaded

    def _count_unfinished(self, principal: Principal, share: SendBucket) -> SendBucket:
        """The share after the owner's unfinished tasks were counted; raises TooManyRequests when that does not help."""
        if wait_s := shares.seconds_until_send(share, self._quota):
            raise TooManyRequests(f"At most {self._quota.sends} messages a minute. Slow down.", wait_s)
        found = self._unfinished(principal)
        if found >= self._quota.tasks:
            text = f"At most {self._quota.tasks} unfinished tasks at a time. Wait for some, or cancel them."
            raise TooManyRequests(text, COUNT_AGAIN_MS // 1000)
        return replace(share, made=found)

    def _unfinished(self, principal: Principal) -> int:
        """How many tasks of the owner are unfinished, as far as the limit: those of the last time and what has changed.

        No more of them are noted than the limit is: when those have ended and there were more, all are counted again.
        """
        now, known, most = self._clock.now(), self._owners.get_unfinished(principal), self._quota.tasks
        if known and now - known.at < COUNT_AGAIN_MS and len(known.tasks) >= most:
            return len(known.tasks)
        oldest = max(0, now - self._max_life_ms - LAG_MS)
        tasks, more = set[str](), True
        if known:
            tasks, more = self._changed(principal, set(known.tasks), max(oldest, known.at - LAG_MS)), known.more
        if more and len(tasks) < most:
            tasks, more = self._first(principal, oldest, most)
        counted = UnfinishedTasks(now, frozenset(sorted(tasks)[:most]), more or len(tasks) > most)
        self._owners.store_unfinished(principal, counted)
        return len(counted.tasks)

    def _changed(self, principal: Principal, tasks: set[str], since: int) -> set[str]:
        """The unfinished tasks, of which these were known at ``since``."""
        for page, _ in self._pages(principal, since):
            tasks -= {entry.task for entry in page if entry.state in TERMINAL}
            tasks |= {entry.task for entry in page if entry.state not in TERMINAL}
        return tasks

    def _first(self, principal: Principal, since: int, most: int) -> tuple[set[str], bool]:
        """Unfinished tasks, newest first, and whether there may be more than those; ends where ``most`` are found."""
        tasks = set[str]()
        for page, more in self._pages(principal, since):
            tasks |= {entry.task for entry in page if entry.state not in TERMINAL}
            if more and len(tasks) >= most:
                return tasks, True
        return tasks, False

    def _pages(self, principal: Principal, since: int) -> Iterator[tuple[list[TaskEntry], bool]]:
        """What has changed since then, a page at a time, and whether there are more pages."""
        after, more = None, True
        while more:
            page, after = self._index.list_page(principal, None, after, since, PAGE)
            more = after is not None
            yield page, more
