"""dynoxide, a DynamoDB on SQLite. Its authors compare it with AWS; it reports capacity units as AWS does.

Calls wait for each other, which differs from DynamoDB: no read is stale, no index lags, no query sees a part of a
transaction, and no write is refused with TransactionConflict. `tests/simulation`, `tests/model` and
`tests/adapters/test_table.py` have these.

``python -m tests.contract.dynoxide`` compiles it in minutes, once for all checkouts of a user.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.loopback import LOOPBACK
from a2a_serverless_tools.stack.paths import CHECKOUT, Paths
from a2a_serverless_tools.stack.processes import claim_port, start, stop, wait_until_ready

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION: Final = "3.2.0"
OLDEST_CARGO: Final = (1, 88)
FEATURES: Final = "native-sqlite,http-server,cli"


class NotInstalled(Exception):
    """This machine has no dynoxide; says what it needs."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"DYNOXIDE NOT RUN: {reason}")


def find() -> Path:
    """Returns the compiled program. Raises `NotInstalled`."""
    if not (program := folder() / "bin/dynoxide").exists():
        _cargo()
        raise NotInstalled("it needs `make dynoxide`")
    return program


def install() -> None:
    """Compiles it, unless this user has it. Raises `NotInstalled`."""
    if (folder() / "bin/dynoxide").exists():
        return
    sources = ["dynoxide-rs", "--version", f"={VERSION}", "--locked", "--no-default-features", "--features", FEATURES]
    done = _run([_cargo(), "install", *sources, "--root", str(folder())])
    if done.returncode:
        raise NotInstalled(f"`cargo install` says: {_error(done)}")


def folder() -> Path:
    """Returns where it is, or will be: outside of the checkout, so that the next one finds it."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "a2a-serverless" / f"dynoxide-{VERSION}"


@contextmanager
def dynoxide(state: Path) -> Iterator[str]:
    """Runs it, empty and in memory, and gives its address. Raises `NotInstalled`."""
    program, paths = find(), Paths(CHECKOUT, state)
    port = claim_port("dynoxide", 0)
    command: list[str | Path] = [program, "serve", "--host", LOOPBACK, "--port", str(port)]
    process = start(paths, "dynoxide", command, os.environ, port=port)
    try:
        wait_until_ready(process, "/", seconds=60)
        yield process.url
    finally:
        stop(paths, process)


def _cargo() -> str:
    """Cargo's path, if it is new enough: older ones fail late, with messages about something else."""
    needed = f"it needs cargo {'.'.join(map(str, OLDEST_CARGO))} or newer"
    if (cargo := shutil.which("cargo")) is None:
        raise NotInstalled(needed)
    done = _run([cargo, "--version"])
    version = re.match(r"cargo (\d+)\.(\d+)", done.stdout)
    if version is None:
        raise NotInstalled(f"{needed}; `cargo --version` says: {_error(done)}")
    if tuple(map(int, version.groups())) < OLDEST_CARGO:
        raise NotInstalled(f"{needed}, not {done.stdout.strip()}")
    return cargo


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - cargo, by its path


def _error(done: subprocess.CompletedProcess[str]) -> str:
    lines = done.stderr.strip().splitlines() or ["nothing"]
    return next((line for line in lines if line.startswith("error")), lines[-1])


if __name__ == "__main__":
    try:
        install()
    except NotInstalled as reason:
        sys.stderr.write(f"{reason}\n")
