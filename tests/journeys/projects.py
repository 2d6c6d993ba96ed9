"""Projects as users make them: the program from the wheels, in an empty folder, and the commands of a project in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless_tools.stack import processes
from a2a_serverless_tools.stack.environments import find_uv, package_index
from tests.stack.wheels import wheels_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS = 900
WAITS = 4


class Folder:
    """A folder in which commands are started."""

    def __init__(self, path: Path, environment: dict[str, str]) -> None:
        self.path, self.environment = path, environment

    def run(self, *command: str | Path, code: int = 0) -> str:
        """What a command prints on stdout."""
        done = subprocess.run(  # noqa: S603 - the project's commands
            command, cwd=self.path, env=self.environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def cli(self, *words: str, code: int = 0) -> Any:
        """The result of ``uv run a2a-serverless``, in the project's own environment."""
        return json.loads(self.run(find_uv(), "run", "--quiet", "a2a-serverless", *words, "--json", code=code))

    @contextmanager
    def dev(self) -> Iterator[str]:
        """Runs ``dev`` on ports that are free, and gives its address."""
        program = str(self.path / ".venv/bin/a2a-serverless")
        ports = [str(processes.claim_port(part, 0)) for part in ("api", "receiver")]
        command = [program, "dev", "--json", "--port", ports[0], "--receiver-port", ports[1]]
        process = subprocess.Popen(command, cwd=self.path, env=self.environment, stdout=subprocess.PIPE, text=True)  # noqa: S603
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()
            process.communicate(timeout=SECONDS)


def install_program(folder: Path, dist: Path, **variables: str) -> Folder:
    """A folder in which the program is installed from the wheels, ``tool/bin/a2a-serverless``; the rest is empty.

    Skips the test if packages cannot be installed here, but not in CI.
    """
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "VIRTUAL_ENV", "PYTHON"))}
    ports = {f"A2A_{part}_PORT": str(processes.claim_port(part, 0)) for part in ("EMULATOR", "API", "RECEIVER")}
    url = {"A2A_URL": f"http://127.0.0.1:{ports['A2A_API_PORT']}", "NO_COLOR": "1"}
    python = {"UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never"}
    made = Folder(folder, {**ours, **ports, **url, **python, **package_index(), **variables})
    wheels = wheels_in(dist)
    library = wheels.pop("a2a-serverless")
    try:
        made.run(find_uv(), "venv", "--quiet", "tool")
        made.run(find_uv(), "pip", "install", "--quiet", "--python", "tool", f"{library}[cli]", *wheels.values())
    except AssertionError as error:
        if "CI" in os.environ:
            raise
        pytest.skip(f"packages cannot be installed here: {str(error)[-200:]}")
    return made
