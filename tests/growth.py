"""Whether work is linear in the length of what it reads. No time is asserted: a length is compared with four times it.

Linear work takes four times as long, quadratic work sixteen times. The limit between them leaves room for a machine
that is busy with other things; so do the repetitions, of which the least counts. What is done in ``NOISE_S`` of the
processor's time at the greater length is over before its growth can be told.
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
    """Seconds of the processor that ``work(given)`` takes, without those of the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        begun = time.process_time()
        work(given)
        return time.process_time() - begun
    finally:
        gc.enable()


def growth(work: Callable[[Any], object], shape: Callable[[int], object], length: int) -> float:
    """How much longer ``work`` takes for four times the length; 4 is linear, 16 quadratic.

    ``shape`` makes an input of about that length, a new one each time if ``work`` remembers what it has seen.
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
