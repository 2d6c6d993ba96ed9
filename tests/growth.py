"""Tests whether work is linear in the length of its input, by comparing its time for a length and for four times that.

Linear work takes four times as long, quadratic work sixteen times. The limit between them leaves room for a busy
machine; so do the repetitions, of which the fastest counts. Work that takes less than ``NOISE_S`` of processor time at
the greater length is too fast to measure its growth.
"""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MOST: Final = 10.0
ENOUGH: Final = 6.0
TRIES: Final = 8
NOISE_S: Final = 0.2


def cpu_s(work: Callable[[Any], object], given: object) -> float:
    """Returns the processor time (s) of ``work(given)``, without garbage collection."""
    gc.disable()
    try:
        begun = time.process_time()
        work(given)
        return time.process_time() - begun
    finally:
        gc.enable()


def growth(work: Callable[[Any], object], shape: Callable[[int], object], length: int) -> float:
    """Returns how many times longer ``work`` takes for four times the length: 4 is linear, 16 quadratic.

    ``shape`` makes an input of about that length; a new one each time, if ``work`` caches its input.
    """
    short = long = float("inf")
    for _ in range(TRIES):
        long = min(long, cpu_s(work, shape(4 * length)))
        if long < NOISE_S:
            return 1.0
        short = min(short, cpu_s(work, shape(length)))
        if long <= ENOUGH * short:
            break
    return long / short
