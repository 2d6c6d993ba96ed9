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

from a2a_serverless.domain import share as shares
from a2a_serverless.domain.errors import Overloaded, TooManyRequests
from a2a_serverless.domain.failures import described
from a2a_serverless.domain.share import COUNT_AGAIN_MS, Allowance, Bucket, Share, Unfinished
from a2a_serverless.domain.states import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.domain.model import Principal
    from a2a_serverless.ports import Clock, Entry, Ids, Owners, TaskIndex

OWNERS_KEPT: Final = 2000
DRAWN_FOR_MS: Final = 60_000
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
class _Local:
    """What an instance knows of an owner: its bucket, and the sends that it has drawn and not used.

    ``drawing`` is held while the owner's record is read: only requests of this owner wait for that.
    """

    bucket: Bucket | None = None
    sends: int = 0
    until: int = 0
    drawing: Lock = field(default_factory=Lock)


class Slot:
    """The place of an open stream among those that are counted.

    It is leased: whoever dies without releasing it holds it for ``STREAM_LEASE_MS`` at most. Safe between threads: what
    is released stays so, also when a renewal was under way.
    """

    def __init__(self, owners: Owners, clock: Clock, who: Principal, name: str, until: int) -> None:
        self._owners = owners
        self._clock = clock
        self._who = who
        self._name = name
        self._until = until
        self._renew_at = 0
        self._released = False
        self._lock = Lock()

    @property
    def ages(self) -> bool:
        """Whether it is time to renew it."""
        return self._clock.now() >= self._renew_at

    def hold(self) -> None:
        """Holds the slot from now on, as long as a lease lasts."""
        with self._lock:
            now = self._clock.now()
            if not self._released:
                self._owners.hold_stream(self._who, self._name, min(self._until, now + STREAM_LEASE_MS))
            self._renew_at = now + STREAM_RENEW_MS

    def renew(self) -> None:
        """The same; a store that fails now is asked again later, and the stream goes on."""
        try:
            self.hold()
        except Exception as error:  # noqa: BLE001 - counting is no reason to end a stream
            logger.warning("stream not renewed", extra=described(error))

    def release(self) -> None:
        """Gives the slot back. Doing it twice is doing it once; a store that fails keeps it until its lease is over."""
        with self._lock:
            if self._released:
                return
            self._released = True
            try:
                self._owners.drop_stream(self._who, self._name)
            except Exception as error:  # noqa: BLE001 - the stream has been told to its end
                logger.warning("stream not released", extra=described(error))


class Turnstile:
    """Lets callers pass. ``max_life_ms``: no unfinished task is older."""

    def __init__(
        self, owners: Owners, index: TaskIndex, clock: Clock, ids: Ids, allowance: Allowance, max_life_ms: int
    ) -> None:
        self._owners = owners
        self._index = index
        self._clock = clock
        self._ids = ids
        self._allowance = allowance
        self._max_life_ms = max_life_ms
        self._lock = Lock()
        self._known: OrderedDict[Principal, _Local] = OrderedDict()

    def let_in(self, who: Principal) -> None:
        """One request more; raises TooManyRequests."""
        rate, now = self._allowance.requests, self._clock.now()
        if not rate:
            return
        with self._lock:
            local = self._local(who)
            after = shares.passed(local.bucket, rate, now)
            if after is None:
                raise TooManyRequests(f"At most {rate} requests a second. Slow down.", 1)
            local.bucket = after

    def let_send(self, who: Principal) -> None:
        """One message more; raises TooManyRequests when there were too many, or too many tasks are unfinished."""
        if not (self._allowance.sends or self._allowance.tasks):
            return
        with self._lock:
            local = self._local(who)
        with local.drawing:
            if local.sends == 0 or local.until <= self._clock.now():
                local.sends, local.until = self._draw(who), self._clock.now() + DRAWN_FOR_MS
            local.sends -= 1

    def let_upload(self, who: Principal, size: int) -> None:
        """So many bytes of uploads more; raises TooManyRequests. What is asked for twice counts twice."""
        most = self._allowance.uploads
        if not most:
            return
        day, since = divmod(self._clock.now(), DAY_MS)
        if not self._owners.admit_upload(who, day, size, most):
            text = f"At most {most} bytes of uploads a day (UTC), and {size} more would be too many."
            raise TooManyRequests(text, -(-(DAY_MS - since) // 1000))

    def open_stream(self, who: Principal, until: int) -> Slot | None:
        """Counts a stream that may last until ``until`` (ms); None when nobody counts.

        Raises TooManyRequests when the owner has too many open, Overloaded when the deployment has. It is counted
        before and after the slot is held, so that of those who come at once none is one too many.
        """
        if not (self._allowance.streams or self._allowance.streams_in_all):
            return None
        self._check_streams(who, 0)
        slot = Slot(self._owners, self._clock, who, self._ids.new(), until)
        try:
            slot.hold()
            self._check_streams(who, 1)
        except BaseException:
            slot.release()
            raise
        return slot

    def _check_streams(self, who: Principal, own: int) -> None:
        """Raises when there is no room for one stream more; ``own`` of those that are open is this one."""
        most, in_all = self._allowance.streams, self._allowance.streams_in_all
        if most and self._owners.streams(who, most + own) >= most + own:
            raise TooManyRequests(f"At most {most} streams at a time. Close one.", STREAM_WAIT_S)
        if in_all and self._owners.streams(None, in_all + own) >= in_all + own:
            text = f"At most {in_all} streams are open in this deployment at a time. Try again, or read the task."
            raise Overloaded(text, STREAM_WAIT_S)

    def _local(self, who: Principal) -> _Local:
        local = self._known.setdefault(who, _Local())
        self._known.move_to_end(who)
        if len(self._known) > OWNERS_KEPT:
            self._known.popitem(last=False)
        return local

    def _draw(self, who: Principal) -> int:
        """Some sends of the owner's; at least one."""
        for _ in range(TRIES):
            now, before = self._clock.now(), self._owners.share(who)
            share = shares.refilled(before or shares.full(self._allowance, now), self._allowance, now)
            after, count = shares.drawn(share, self._allowance)
            if count == 0:
                after, count = shares.drawn(self._counted(who, share), self._allowance)
            if self._owners.keep_share(who, before, after):
                return count
        raise Overloaded

    def _counted(self, who: Principal, share: Share) -> Share:
        """The share after the owner's unfinished tasks were counted; raises TooManyRequests when that does not help."""
        if wait_s := shares.wait_s(share, self._allowance):
            raise TooManyRequests(f"At most {self._allowance.sends} messages a minute. Slow down.", wait_s)
        found = self._unfinished(who)
        if found >= self._allowance.tasks:
            text = f"At most {self._allowance.tasks} unfinished tasks at a time. Wait for some, or cancel them."
            raise TooManyRequests(text, COUNT_AGAIN_MS // 1000)
        return replace(share, made=found)

    def _unfinished(self, who: Principal) -> int:
        """How many tasks of the owner are unfinished, as far as the limit: those of the last time and what has changed.

        No more of them are noted than the limit is: when those have ended and there were more, all are counted again.
        """
        now, known, most = self._clock.now(), self._owners.unfinished(who), self._allowance.tasks
        if known and now - known.at < COUNT_AGAIN_MS and len(known.tasks) >= most:
            return len(known.tasks)
        oldest = max(0, now - self._max_life_ms - LAG_MS)
        tasks, more = set[str](), True
        if known:
            tasks, more = self._changed(who, set(known.tasks), max(oldest, known.at - LAG_MS)), known.more
        if more and len(tasks) < most:
            tasks, more = self._first(who, oldest, most)
        counted = Unfinished(now, frozenset(sorted(tasks)[:most]), more or len(tasks) > most)
        self._owners.keep_unfinished(who, counted)
        return len(counted.tasks)

    def _changed(self, who: Principal, tasks: set[str], since: int) -> set[str]:
        """The unfinished tasks, of which these were known at ``since``."""
        for page, _ in self._pages(who, since):
            tasks -= {entry.task for entry in page if entry.state in TERMINAL}
            tasks |= {entry.task for entry in page if entry.state not in TERMINAL}
        return tasks

    def _first(self, who: Principal, since: int, most: int) -> tuple[set[str], bool]:
        """Unfinished tasks, newest first, and whether there may be more than those; ends where ``most`` are found."""
        tasks = set[str]()
        for page, more in self._pages(who, since):
            tasks |= {entry.task for entry in page if entry.state not in TERMINAL}
            if more and len(tasks) >= most:
                return tasks, True
        return tasks, False

    def _pages(self, who: Principal, since: int) -> Iterator[tuple[list[Entry], bool]]:
        """What has changed since then, a page at a time, and whether there are more pages."""
        after, more = None, True
        while more:
            page, after = self._index.page(who, None, after, since, PAGE)
            more = after is not None
            yield page, more
