"""What each owner may ask for: refuses who has had its share, before anything is done for it.

Requests are counted by each instance for itself, at no cost. What makes work is counted for the whole deployment:
sends, drawn from the owner's record a few at a time, and unfinished tasks. Those are not counted up and down with each
task: a bound is kept, and only when it is reached are they looked for, among what has changed in the index since the
last time. What instances have drawn and not used when that is done may come on top.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain import share as shares
from a2a_serverless.domain.errors import Overloaded, TooManyRequests
from a2a_serverless.domain.share import COUNT_AGAIN_MS, Allowance, Bucket, Share, Unfinished
from a2a_serverless.domain.states import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.model import Principal
    from a2a_serverless.ports import Clock, Ids, Owners, TaskIndex

OWNERS_KEPT: Final = 2000
DRAWN_FOR_MS: Final = 60_000
LAG_MS: Final = 60_000
DAY_MS: Final = 86_400_000
PAGE: Final = 1000
TRIES: Final = 10
STREAM_WAIT_S: Final = 15


@dataclass(slots=True)
class _Local:
    """What an instance knows of an owner: its bucket, and the sends that it has drawn and not used.

    ``drawing`` is held while the owner's record is read: only requests of this owner wait for that.
    """

    bucket: Bucket | None = None
    sends: int = 0
    until: int = 0
    drawing: Lock = field(default_factory=Lock)


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

    def open_stream(self, who: Principal, until: int) -> Callable[[], None]:
        """Counts a stream that may last until ``until`` (ms). What to call when it ends; raises TooManyRequests."""
        most = self._allowance.streams
        if not most:
            return lambda: None
        if self._owners.streams(who, most) >= most:
            raise TooManyRequests(f"At most {most} streams at a time. Close one.", STREAM_WAIT_S)
        name = self._ids.new()
        self._owners.hold_stream(who, name, until)
        return lambda: self._owners.drop_stream(who, name)

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
        """How many tasks of the owner are unfinished: those of the last time and what has changed since."""
        now, known = self._clock.now(), self._owners.unfinished(who)
        if known and now - known.at < COUNT_AGAIN_MS and len(known.tasks) >= self._allowance.tasks:
            return len(known.tasks)
        oldest = now - self._max_life_ms - LAG_MS
        tasks, since = (set(known.tasks), max(oldest, known.at - LAG_MS)) if known else (set[str](), oldest)
        after, more = None, True
        while more:
            page, after = self._index.page(who, None, after, max(0, since), PAGE)
            tasks -= {entry.task for entry in page if entry.state in TERMINAL}
            tasks |= {entry.task for entry in page if entry.state not in TERMINAL}
            more = after is not None
        self._owners.keep_unfinished(who, Unfinished(now, frozenset(tasks)))
        return len(tasks)
