"""Lookups of names: shared, bounded, and given up on when they hang."""

from __future__ import annotations

import threading
from threading import Event

import pytest

from a2a_serverless.http_client.sockets import HANG_S, MAX_LOOKUPS, Deadline, look_up

ADDRESS = "192.0.2.1"


def wait_for_lookups() -> None:
    for thread in [thread for thread in threading.enumerate() if thread.name == "lookup"]:
        thread.join()


@pytest.mark.parametrize("later_s", [HANG_S, -1], ids=["a minute later", "after the clock was set back"])
def test_a_lookup_that_was_frozen_with_its_instance_stops_no_later_one(later_s: float) -> None:
    now, thaw, lookups = [1000.0], Event(), list[str]()

    def resolver(host: str, _: int) -> list[str]:
        lookups.append(host)
        if len(lookups) == 1:
            thaw.wait()
            return ["192.0.2.99"]
        return [ADDRESS]

    def look(seconds: float) -> list[str]:
        return look_up("slow.example.com", 443, resolver, Deadline(seconds), lambda: now[0])

    with pytest.raises(TimeoutError):
        look(0.01)
    now[0] += HANG_S - 1
    with pytest.raises(OSError, match="hangs"):
        look(60)
    now[0] = 1000.0 + later_s
    assert look(60) == [ADDRESS]
    wait_for = threading.active_count()
    thaw.set()
    wait_for_lookups()
    assert threading.active_count() < wait_for
    assert look(60) == [ADDRESS], "the late answer has taken nothing away"
    assert len(lookups) == 3


def test_a_process_that_had_no_thread_for_a_lookup_looks_the_name_up_later() -> None:
    before = threading.stack_size(2**46)  # no thread can be started
    try:
        for _ in range(MAX_LOOKUPS + 1):
            with pytest.raises(OSError, match="no thread"):
                look_up("any.example.com", 443, lambda *_: [ADDRESS], Deadline(60))
    finally:
        threading.stack_size(before)
    assert look_up("any.example.com", 443, lambda *_: [ADDRESS], Deadline(60)) == [ADDRESS]
