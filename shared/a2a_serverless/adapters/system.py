"""The system clock and random ids: the only sources of time and randomness."""

from __future__ import annotations

import os
import time
from typing import Final

_GIVEN: Final = 0xF << 76 | 0x3 << 62  # the bits that hold the UUID's version and variant
_VERSION_4: Final = 0x4 << 76 | 0x2 << 62


class SystemClock:
    """``ports.Clock``."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class UuidIds:
    """``ports.Ids``: random UUIDs (RFC 9562, version 4), 36 characters. Not by ``uuid``, for speed: six per send."""

    def new(self) -> str:
        digits = f"{int.from_bytes(os.urandom(16)) & ~_GIVEN | _VERSION_4:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
