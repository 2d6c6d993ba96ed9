"""The processes of a play: each leads a group of its own, so that a signal reaches all that it started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import suppress
from queue import Empty, Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

READY_S: Final = 600.0
ANSWER_S: Final = 120.0


class Failed(Exception):
    """A process did not start, or has ended."""


class Process:
    """A process that writes a line of JSON when it is ready, and one for each order. Its errors are in ``log``."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path, log: Path) -> None:
        self._lines: Queue[str] = Queue()
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=folder,
                env=dict(environment),
                start_new_session=True,
            )
        self.pid = self._process.pid
        Thread(target=self._read, daemon=True).start()
        self.address = str(self._answer(READY_S)["address"])

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def has(self, pid: int) -> bool:
        """Whether a process is of this group."""
        with suppress(ProcessLookupError):
            return os.getpgid(pid) == self.pid
        return False

    def order(self, *words: object) -> dict[str, Any]:
        """Sends an order and returns the answer, which has an ``answer`` or an ``error``."""
        try:
            return self._order(words)
        except (Failed, OSError) as error:
            return {"error": f"{type(error).__name__}: {error}"}

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to the group."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """Ends the group at once."""
        self.send(signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        """Ends it by the end of its input, and kills it if it does not end."""
        with suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        self.send(signal.SIGCONT)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(ANSWER_S)
        self.kill()

    def _order(self, words: Sequence[object]) -> dict[str, Any]:
        stdin = self._process.stdin
        assert stdin  # noqa: S101 - it is a pipe
        stdin.write(json.dumps(words) + "\n")
        stdin.flush()
        return self._answer(ANSWER_S)

    def _answer(self, seconds: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=seconds)
        except Empty:
            raise Failed("no answer") from None
        if not line:
            raise Failed("it has ended")
        return dict(json.loads(line))

    def _read(self) -> None:
        assert self._process.stdout  # noqa: S101 - it is a pipe
        for line in self._process.stdout:
            if line.startswith("{"):
                self._lines.put(line)
        self._lines.put("")


def group_of(process: Process) -> list[int]:
    """The processes that a process has started, and theirs, also those that lead groups of their own."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], stdout=subprocess.PIPE, text=True, check=True)  # noqa: S607
    pairs = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    found = [process.pid]
    for parent in found:
        found += [pid for pid, of in pairs if of == parent]
    return found
