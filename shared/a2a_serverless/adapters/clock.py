"""The system clock and random ids."""

from __future__ import annotations

import time
from secrets import token_urlsafe
from threading import Lock
from typing import TYPE_CHECKING, Final, Generic, TypeVar
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

SECRET_BYTES: Final = 32


class SystemClock:
    """``ports.Clock``."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class CorrectedClock(SystemClock):
    """``ports.Clock`` on a machine whose own clock is wrong by ``offset_ms``."""

    def __init__(self, offset_ms: int) -> None:
        self._offset_ms = offset_ms

    def now(self) -> int:
        return super().now() + self._offset_ms


class Cached(Generic[T]):
    """The last value of ``read``, until it is ``max_age_ms`` old; None is not cached. Thread-safe.

    It never returns an older value, not even while ``read`` raises.
    """

    def __init__(self, read: Callable[[], T], now: Callable[[], int], max_age_ms: int) -> None:
        self._read, self._now, self._max_age_ms = read, now, max_age_ms
        self._lock = Lock()
        self._cache: tuple[int, T] | None = None

    def __call__(self) -> T:
        """The value."""
        with self._lock:
            asked_at = self._now()
            if self._cache and asked_at - self._cache[0] < self._max_age_ms:
                return self._cache[1]
            value = self._read()
            self._cache = None if value is None else (asked_at, value)
            return value


class UuidIds:
    """``ports.Ids``: random UUIDs (RFC 9562, version 4), 36 characters; secrets of 43."""

    def new(self) -> str:
        return str(uuid4())

    def secret(self) -> str:
        return token_urlsafe(SECRET_BYTES)
