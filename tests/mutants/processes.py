"""Work in forked copies of this process, which may hang, crash or eat all memory."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MEMORY_BYTES: Final = 6 << 30
_running: Final[dict[int, str]] = {}


class Outcome(Enum):
    """How a process ended."""

    DONE = "done"
    TIMED_OUT = "timed out"
    CRASHED = "crashed"


def start(work: Callable[[], None], *, silent: bool = True) -> int:
    """Does the work in a copy of this process; returns its process id."""
    folder = tempfile.mkdtemp(prefix="mutant-")
    sys.stdout.flush()
    process = os.fork()
    if process:
        _running[process] = folder
        return process
    status = 1
    _running.clear()
    try:
        tempfile.tempdir = folder
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        if silent:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
        work()
        status = 0
    except BaseException:  # noqa: BLE001 - also what ends a process
        traceback.print_exc()
    finally:
        os._exit(status)


def allow(seconds: float) -> None:
    """Ends this process as timed out, unless it asks again: within that time of CPU, or six times as much by the clock.

    Other work on the machine makes a test slower, but does not make it use more CPU.
    """
    for timer, number, most in ((signal.ITIMER_PROF, signal.SIGPROF, 1), (signal.ITIMER_REAL, signal.SIGALRM, 6)):
        signal.signal(number, signal.SIG_DFL)
        signal.setitimer(timer, seconds * most)


def next_done() -> tuple[int, Outcome]:
    """Waits until a process ends; returns its id."""
    while True:
        process, status = os.wait()
        if process in _running:
            shutil.rmtree(_running.pop(process), ignore_errors=True)
            code = os.waitstatus_to_exitcode(status)
            if code in {-signal.SIGALRM, -signal.SIGPROF}:
                return process, Outcome.TIMED_OUT
            return process, Outcome.CRASHED if code else Outcome.DONE


def all_done() -> Iterator[tuple[int, Outcome]]:
    """Waits for each process."""
    while _running:
        yield next_done()
