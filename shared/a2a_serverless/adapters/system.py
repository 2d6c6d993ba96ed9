"""The system clock and random ids."""

from __future__ import annotations

import os
import time


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


class UuidIds:
    """``ports.Ids``: random UUIDs (RFC 9562, version 4), 36 characters. Not by ``uuid``, for speed: four per send."""

    def new(self) -> str:
        digits = os.urandom(16).hex()
        variant = "89ab"[int(digits[16], 16) & 3]  # its two high bits are given
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
