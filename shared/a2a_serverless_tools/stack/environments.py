"""Makes the environments of SAM and of the emulator, which need other versions of packages than the project.

Each is made on first use, and again when its requirements file has changed. ``make setup`` makes the same.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from rich.console import Console

from a2a_serverless_tools.project import read_project
from a2a_serverless_tools.project_check import check_project
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.library import FILES
from a2a_serverless_tools.stack.paths import Paths
from a2a_serverless_tools.stack.processes import run_logged
from a2a_serverless_tools.stack.progress import step

NAMES = ("sam", "emulator")


def ensure(paths: Paths, console: Console) -> None:
    """Make the environments that are missing. Raises `StackError`, and `ProjectError` for an incomplete project.

    Installing takes a minute, so the project is checked before.
    """
    if all(_is_installed(paths, name) for name in NAMES):
        return
    check_project(read_project(paths.root))
    with paths.exclusive():
        for name in NAMES:
            if not _is_installed(paths, name):
                _install(paths, name, console)


def _install(paths: Paths, name: str, console: Console) -> None:
    requirements, folder = _requirements(name), paths.home / "venvs" / name
    with step(console, f"Installing {name} into {paths.relative(folder)}, once"):
        _uv(paths, "venv", "--quiet", "--clear", "--python", sys.executable, folder)
        _uv(paths, "pip", "install", "--quiet", "--python", folder, "--require-hashes", "-r", requirements)
    shutil.copyfile(requirements, folder / ".installed")


def find_uv() -> str:
    """Return the path of the uv that runs this process, or of the nearest one. Raises `StackError`."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    uv = shutil.which(os.environ.get("UV", "uv")) or shutil.which("uv", path=path)
    if uv is None:
        raise StackError("uv", "it is not installed", remedy="https://docs.astral.sh/uv/getting-started/installation/")
    return uv


@cache
def package_index() -> dict[str, str]:
    """Return pip's index as the variable that uv reads: uv does not read pip's settings."""
    if "UV_DEFAULT_INDEX" in os.environ or "UV_INDEX_URL" in os.environ:
        return {}
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
    index = os.environ.get("PIP_INDEX_URL") or output
    return {"UV_DEFAULT_INDEX": index} if index else {}


def _requirements(name: str) -> Path:
    return FILES / f"requirements/{name}.txt"


def _is_installed(paths: Paths, name: str) -> bool:
    """Whether the environment is there, as the requirements file says; an earlier `make` left an empty mark."""
    mark = paths.home / "venvs" / name / ".installed"
    return mark.exists() and mark.read_text() in ("", _requirements(name).read_text())


def _uv(paths: Paths, *arguments: str | Path) -> None:
    log = paths.log("environments")
    if lines := run_logged([find_uv(), *arguments], {**os.environ, **package_index()}, log, paths.root):
        raise StackError("environments", lines[-1], log=paths.relative(log))
