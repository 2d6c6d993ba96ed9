"""The demo's own stack: started for it, reported step by step, and always stopped at its end."""

import fcntl
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich.console import Console

from a2a_serverless.client import HttpError, Unreachable
from a2a_serverless.domain.errors import A2AError
from a2a_serverless_tools.cli.inbox import InboxEntry
from a2a_serverless_tools.cli.options import CliContext
from a2a_serverless_tools.cli.timeline import Phase
from a2a_serverless_tools.stack import local_stack, processes, sam
from a2a_serverless_tools.stack.emulator import find_emulator
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.paths import Paths
from a2a_serverless_tools.stack.progress import step


@dataclass
class DemoRun:
    """One run of the demo: its paths and console, the time of its phases, the receiver's entries, the saved files.

    ``ports`` are those of the emulator, the api and the receiver; 0 is the usual one if that is free, else any.
    """

    cli: CliContext
    paths: Paths
    out: Path
    timeout_s: float
    ports: tuple[int, int, int] = (0, 0, 0)
    phases: list[Phase] = field(default_factory=list)
    entries: list[InboxEntry] = field(default_factory=list)
    saved: list[Path] = field(default_factory=list)

    @property
    def console(self) -> Console:
        return self.cli.terminal.progress

    @contextmanager
    def step(self, name: str, title: str, *, phase: str = "") -> Iterator[list[str]]:
        """Shows a step, with the remarks that the block adds, and records how long it took as ``phase``.

        Errors become a StackError of the part ``name``.
        """
        began, remarks = time.time(), list[str]()
        with step(self.console, title) as say, attribute_failure(name):
            yield remarks
            say(", ".join(remarks))
        if phase:
            self.phases.append(Phase(phase, began, time.time()))


@contextmanager
def attribute_failure(part: str) -> Iterator[None]:
    """Raises errors of the block as a StackError of ``part``."""
    try:
        yield
    except (Unreachable, HttpError, A2AError, OSError) as error:
        raise StackError(part, str(error)) from error


@contextmanager
def running_stack(run: DemoRun) -> Iterator[local_stack.RunningStack]:
    """Runs a fresh stack while the block lasts. It is stopped also when the block fails or SIGTERM arrives."""
    with _exclusive(run.paths), _stoppable(), _cleaned_up(run):
        yield local_stack.up(run.paths, options_of(run), run.console)


def options_of(run: DemoRun) -> local_stack.Options:
    """The ports of the demo's stack, which are free now. Raises StackError if one that was given is in use."""
    usual, (emulator, api, receiver) = local_stack.Options(), run.ports
    return local_stack.Options(
        _free_port("emulator", usual.emulator_port, emulator),
        _free_port("api", usual.api_port, api),
        _free_port("receiver", usual.receiver_port, receiver),
    )


def _free_port(part: str, usual: int, port: int) -> int:
    if port:
        return processes.claim_port(part, port)
    with suppress(StackError):
        return processes.claim_port(part, usual)
    return processes.claim_port(part, 0)


@contextmanager
def _exclusive(paths: Paths) -> Iterator[None]:
    """Allows one demo at a time in a checkout: a second one would stop the first one's stack."""
    paths.state.mkdir(parents=True, exist_ok=True)
    with (paths.state / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StackError("demo", "another one runs in this checkout", remedy="wait until it ends") from error
        yield


@contextmanager
def _stoppable() -> Iterator[None]:
    """Makes SIGTERM raise SystemExit, so that the clean-up runs."""

    def stop(number: int, _: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _cleaned_up(run: DemoRun) -> Iterator[None]:
    """Stops what a killed earlier demo left running, and at the end what this one has started."""
    local_stack.down(run.paths, run.console)
    try:
        yield
    except StackError as error:
        error.log = error.log or keep_logs(run.paths)
        raise
    finally:
        local_stack.down(run.paths, run.console)


def keep_logs(paths: Paths) -> Path | None:
    """Saves the functions' logs before the emulator stops; returns the file, or None when no emulator runs."""
    if not (emulator := find_emulator(paths)):
        return None
    path = paths.log("functions")
    with path.open("w") as out:
        sam.write_function_logs(emulator.url, out)
    return paths.relative(path)
