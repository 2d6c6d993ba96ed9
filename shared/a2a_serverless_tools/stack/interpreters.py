"""The Pythons of Lambda's runtimes: a build compiles with exactly the version that runs the functions."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from a2a_serverless_tools.stack.environments import find_uv
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.paths import Paths
from a2a_serverless_tools.stack.processes import run_logged
from a2a_serverless_tools.stack.progress import step


def interpreter(runtime: str, uv: str | None = None) -> Path:
    """Return a Python of exactly this Lambda runtime's version. Raises `StackError` when the machine has none."""
    uv = uv or find_uv()
    if (python := _find(runtime, uv)) is None:
        why = f"no {runtime} to compile with, and without compiled files every cold start takes about twice as long"
        raise StackError("build", why, remedy=f"`{_install_command(runtime, uv)}`, or build for another Runtime")
    return python


def ensure_interpreter(
    paths: Paths, runtime: str, ask: Callable[[str], bool] | None, console: Console, uv: str | None = None
) -> None:
    """Offer to install the Python of a runtime by uv when the machine has none.

    ``ask`` returns whether the answer is yes; None without a terminal. Raises `StackError` when there is none after it.
    """
    uv = uv or find_uv()
    offer = f"This machine has no {runtime} to compile with. Install it by `{_install_command(runtime, uv)}`?"
    if _find(runtime, uv) is None and ask and ask(offer):
        with step(console, f"Installing {runtime}"):
            _install(paths, runtime, uv)
    interpreter(runtime, uv)


def _install(paths: Paths, runtime: str, uv: str) -> None:
    log, version = paths.log("python"), _version(runtime)
    if lines := run_logged([uv, "python", "install", version], dict(os.environ), log, paths.root):
        remedy = f"install Python {version} in another way, or build for another Runtime"
        raise StackError("uv python install", lines[-1], log=paths.relative(log), remedy=remedy)


def _version(runtime: str) -> str:
    return runtime.removeprefix("python")


def _install_command(runtime: str, uv: str) -> str:
    """Return the command as a person enters it: pip installs uv where the PATH may not lead."""
    return f"{'uv' if shutil.which('uv') else uv} python install {_version(runtime)}"


def _find(runtime: str, uv: str) -> Path | None:
    if _version(runtime) == f"{sys.version_info.major}.{sys.version_info.minor}":
        return Path(sys.executable)
    command = [uv, "python", "find", "--no-python-downloads", _version(runtime)]
    python = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603 - uv
    return Path(python) if python else None
