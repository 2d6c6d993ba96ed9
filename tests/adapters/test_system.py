from __future__ import annotations

import re
import time
from uuid import RFC_4122, UUID

from a2a_serverless.adapters.clock import SystemClock, UuidIds


def test_the_clock_gives_whole_milliseconds_since_the_epoch() -> None:
    before = int(time.time()) * 1000
    now = SystemClock().now()
    assert before <= now <= int(time.time() + 1) * 1000


def test_the_system_clock_sleeps_zero_seconds_and_returns() -> None:
    SystemClock().sleep(0)


def test_ids_are_fit_for_urls_and_never_the_same() -> None:
    ids = [UuidIds().new() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert all(re.fullmatch(r"[a-z0-9-]{36}", one) for one in ids)
    known = [UUID(one) for one in ids]
    assert {(one.version, one.variant) for one in known} == {(4, RFC_4122)}
    assert [str(one) for one in known] == ids
