"""Bounds the content that the deliveries of one instance hold in memory at the same time. Thread-safe.

A delivery of little content never waits. The other deliveries share a budget of bytes. A delivery that does not get its
bytes waits for a moment, then ends its session and comes again later. A delivery that is larger than the budget is
admitted alone.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_serverless.ports.system import Clock

LIGHT_BYTES: Final = 1024 * 1024
HEAVY_BYTES: Final = 16 * 1024 * 1024
WAIT_MS: Final = 2_000
POLL_S: Final = 0.01


class MemoryBusy(Exception):
    """Other deliveries hold the whole budget."""


class MemoryBudget:
    """The budget of one instance."""

    def __init__(self, total: int = HEAVY_BYTES, light: int = LIGHT_BYTES) -> None:
        self._total, self._light = total, light
        self._lock = Lock()
        self._reserved = 0

    @contextmanager
    def share(self, clock: Clock) -> Iterator[MemoryShare]:
        """The share of one delivery, which is released at the end of the block."""
        share = MemoryShare(self, clock)
        try:
            yield share
        finally:
            share.release()

    def reserve(self, before: int, size: int) -> bool:
        """Lets a share of ``before`` bytes grow by ``size``; False while other shares leave no room for that."""
        with self._lock:
            share = self._counted(before)
            more = self._counted(before + size) - share
            if self._reserved > share and self._reserved + more > self._total:
                return False
            self._reserved += more
            return True

    def give_back(self, size: int) -> None:
        """Takes back a share of ``size`` bytes."""
        with self._lock:
            self._reserved -= self._counted(size)

    def _counted(self, size: int) -> int:
        return size if size > self._light else 0


class MemoryShare:
    """The share of one delivery in a budget."""

    def __init__(self, budget: MemoryBudget, clock: Clock) -> None:
        self._budget, self._clock = budget, clock
        self.size = 0

    def take(self, size: int) -> bool:
        """Takes ``size`` bytes more, and returns True. Waits ``WAIT_MS`` for them, then raises MemoryBusy."""
        until = self._clock.now() + WAIT_MS
        while not self._budget.reserve(self.size, size):
            if self._clock.now() >= until:
                raise MemoryBusy
            self._clock.sleep(POLL_S)
        self.size += size
        return True

    def release(self) -> None:
        """Returns the whole share to the budget."""
        self._budget.give_back(self.size)
        self.size = 0
