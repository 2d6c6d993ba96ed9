"""The rate limiter: enforces each owner's quota before any other work for a request.

Sends and uploads are counted in the store, in windows of a minute and of a day (UTC), for the whole deployment. An
instance reserves several sends at a time, so that most of them need no store call; those left over at the end of the
minute are lost. Open streams are counted by their leases.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.errors import Overloaded, TooManyRequests, safe_error_fields
from a2a_serverless.domain.model import DAY_MS, MINUTE_MS
from a2a_serverless.store import keys

if TYPE_CHECKING:
    from a2a_serverless.domain.access import Quota
    from a2a_serverless.domain.model import Principal
    from a2a_serverless.ports.system import Clock, Ids
    from a2a_serverless.store.stores import OwnerStore

OWNERS_KEPT: Final = 2000
RESERVED: Final = 10
RESERVATIONS: Final = 60
STREAM_WAIT_S: Final = 15
# A stream sends something every 15 seconds, and a write may take 45 (http/runtime.py): a renewal comes in time.
STREAM_RENEW_MS: Final = 20_000
STREAM_LEASE_MS: Final = 90_000

logger = logging.getLogger(__name__)


@dataclass(eq=False, repr=False, slots=True)
class _Reservation:
    """The sends that an instance has reserved for an owner and not used, in one minute.

    ``lock`` is held while the store is called, so only requests of this owner wait for that.
    """

    minute: int = 0
    left: int = 0
    is_over: bool = False
    lock: Lock = field(default_factory=Lock)


class StreamSlot:
    """One open stream, counted against the quota while its lease lasts.

    An instance that dies without releasing it holds the slot for ``STREAM_LEASE_MS`` at most. Thread-safe: a released
    slot stays released, also if a renewal was under way.
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
    """Admits requests within each owner's quota."""

    def __init__(self, owners: OwnerStore, clock: Clock, ids: Ids, quota: Quota) -> None:
        self._owners = owners
        self._clock = clock
        self._ids = ids
        self._quota = quota
        self._lock = Lock()
        self._reservation = lru_cache(OWNERS_KEPT)(lambda _principal: _Reservation())

    def admit_send(self, principal: Principal) -> None:
        """Counts one sent message; raises TooManyRequests."""
        most = self._quota.sends
        if not most:
            return
        minute, since = divmod(self._clock.now(), MINUTE_MS)
        with self._lock:  # or two threads would get two reservations of a new owner
            reservation = self._reservation(principal)
        with reservation.lock:
            if reservation.minute != minute:
                reservation.minute, reservation.left, reservation.is_over = minute, 0, False
            if not (reservation.left or reservation.is_over):
                several = max(1, min(RESERVED, most // RESERVATIONS))
                reservation.is_over = not self._owners.count(principal, keys.SENDS, minute, MINUTE_MS, several, most)
                reservation.left = 0 if reservation.is_over else several
            if not reservation.left:
                raise TooManyRequests(f"At most {most} messages a minute. Slow down.", -(-(MINUTE_MS - since) // 1000))
            reservation.left -= 1

    def admit_upload(self, principal: Principal, size: int) -> None:
        """Counts ``size`` bytes of uploads; raises TooManyRequests. A repeated request counts twice."""
        most = self._quota.uploads
        day, since = divmod(self._clock.now(), DAY_MS)
        if most and not self._owners.count(principal, keys.UPLOADED, day, DAY_MS, size, most):
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
