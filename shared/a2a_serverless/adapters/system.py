"""The machine's clock and random ids: the only places where time and chance come in."""

from __future__ import annotations

import time
import uuid


class SystemClock:
    """``ports.Clock``."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class UuidIds:
    """``ports.Ids``: random UUIDs (RFC 9562, version 4), 36 characters."""

    def new(self) -> str:
        return str(uuid.uuid4())
