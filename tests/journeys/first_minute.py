"""The first minute of a new user: an empty folder, the wheels and uv. Three commands make, start and ask an agent.

Its process is killed while the task waits, and started again by the same command; the same task ends.
``python -m tests.journeys.first_minute`` builds the wheels and prints each command with its seconds.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_serverless_tools.stack import processes
from a2a_serverless_tools.stack.environments import find_uv, package_index
from tests.journeys.projects import WAITS
from tests.stack.wheels import build

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SECONDS: Final = 600
MAKE: Final = "uv run --no-project $(printf ' --with %s' {wheels}) a2a-serverless init my-agents"
START: Final = "uv run --directory my-agents a2a-serverless dev"
ASK: Final = 'uv run --directory my-agents a2a-serverless send tailor "A coat, please."'
ANSWER: Final = "uv run --directory my-agents a2a-serverless send tailor red --last"
READY: Final = "Ctrl-C"
COAT: Final = "red sleeves\nred back\nred collar\n"


class Line(NamedTuple):
    """A command, or what else is done, its seconds, and what it says when it ends."""

    text: str
    seconds: float
    said: str


def way_from(wheels: str) -> tuple[str, ...]:
    """The commands that make, start, ask and answer, from the wheels of a pattern."""
    return (MAKE.format(wheels=wheels), START, ASK, ANSWER)


def play(way: Sequence[str], folder: Path) -> list[Line]:
    """Plays the way in a folder. Raises RuntimeError with what was said if a command does not do its part."""
    make, start, ask, answer = way
    environment, lines = _environment(), list[Line]()

    def note(text: str, began: float, said: str = "") -> None:
        lines.append(Line(text, time.monotonic() - began, said))

    began = time.monotonic()
    _run(make, folder, environment, 0)
    note(make, began)
    began = time.monotonic()
    with _started(start, folder, environment) as process:
        note(start, began)
        began = time.monotonic()
        note(ask, began, _run(ask, folder, environment, WAITS).stderr)
        os.killpg(process.pid, signal.SIGKILL)
    began = time.monotonic()
    with _started(start, folder, environment):
        note(f"kill -9, then {start}", began)
        began = time.monotonic()
        coat = _run(answer, folder, environment, 0)
        note(answer, began, coat.stdout)
    if coat.stdout != COAT:
        raise RuntimeError(f"{answer}: {coat.stdout}")
    return lines


def _environment() -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("A2A_", "AWS_", "VIRTUAL_ENV"))}
    ports = {f"A2A_{part}_PORT": str(processes.claim_port(part, 0)) for part in ("API", "RECEIVER")}
    python = {"UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1"}
    path = {"PATH": f"{Path(find_uv()).parent}{os.pathsep}{os.environ['PATH']}"}
    return {**ours, **ports, **python, **path, **package_index()}


def _run(command: str, folder: Path, environment: Mapping[str, str], code: int) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(  # noqa: S602 - as a person types it
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    if done.returncode != code:
        raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")
    return done


@contextmanager
def _started(start: str, folder: Path, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """`dev`, once it answers, with all its processes; they are killed in the end."""
    with subprocess.Popen(  # noqa: S603 - uv, by the line above
        shlex.split(start),
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said = ""
            for line in process.stdout or ():
                said += line
                if READY in line:
                    break
            else:
                raise RuntimeError(f"{start}: {said}")
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def play_twice() -> list[list[Line]]:
    """Builds the wheels and plays the way twice: the first one fills the package cache."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        build(Path.cwd(), place / "dist", "--wheel")
        for name in ("first", "second"):
            (place / name).mkdir()
        return [play(way_from("../dist/*.whl"), place / name) for name in ("first", "second")]


def main() -> None:
    """Prints the way twice."""
    for lines in play_twice():
        for line in lines:
            sys.stdout.write(f"{line.seconds:6.1f} s  {line.text}\n")
        sys.stdout.write(f"{sum(line.seconds for line in lines):6.1f} s\n\n")


if __name__ == "__main__":
    main()
