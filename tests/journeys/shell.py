"""The program as a user starts it, on a stack of its own: its own state, its own ports, in any folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from a2a_serverless_tools.stack import paths, processes
from a2a_serverless_tools.stack.errors import StackError

PROGRAM = Path(sys.executable).with_name("a2a-serverless")
SECONDS = 300


@dataclass(frozen=True)
class Shell:
    """A folder to work in, and the environment of the commands."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603 - our own program
            [PROGRAM, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        with self.start(*arguments) as process:
            out, err = process.communicate(timeout=SECONDS)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def json(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)

    def running(self, state: str = "state") -> list[str]:
        """What of this shell's stack still runs."""
        return [one.name for one in processes.started(paths.find(state=self.folder / state))]


def need_setup() -> None:
    """Skips the test without `make setup`; in CI it fails."""
    try:
        paths.find()
    except StackError as error:
        if "CI" in os.environ:
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A shell in an empty folder."""
    need_setup()
    folder = tmp_path_factory.mktemp("journey")
    ports = {f"A2A_{part}_PORT": str(processes.claim_port(part, 0)) for part in ("EMULATOR", "API", "RECEIVER")}
    url = f"http://127.0.0.1:{ports['A2A_API_PORT']}"
    return Shell(folder, {**os.environ, **ports, "A2A_STATE": str(folder / "state"), "A2A_URL": url, "NO_COLOR": "1"})
