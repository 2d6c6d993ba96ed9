"""Every command that the documents show is run once, on a stack of its own, and says what each of them shows.

The order is that of the documents, but that the stack runs until all commands have. Tutorials are played by
`tests/journeys`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from a2a_serverless_tools.stack import processes
from tests.docs.documents import DOCUMENTS, QUESTION, ROOT, Block, blocks, check_shown, task_of
from tests.journeys.shell import need_setup

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration, pytest.mark.xdist_group("usual ports")]

SECONDS = 600
LAST = "make down"
WAITS = 4


def _is_tutorial(path: Path) -> bool:
    return path.name.startswith("tutorial-")


def shown_of_each() -> dict[str, list[list[str]]]:
    """What the documents show of each command's output."""
    shown: dict[str, list[list[str]]] = {}
    for block in blocks("console"):
        for command in block.commands() if block.needs is None and not _is_tutorial(block.path) else ():
            shown.setdefault(command.line, []).append(command.shown)
    shown[LAST] = shown.pop(LAST)
    return shown


COMMANDS = shown_of_each()


class Shell:
    """A shell in the checkout. Ports and state are its own, so that it meets no stack that is up already."""

    def __init__(self, state: Path) -> None:
        ports = {f"A2A_{part}_PORT": str(processes.claim_port(part, 0)) for part in ("EMULATOR", "API", "RECEIVER")}
        self._moved = {":8000": f":{ports['A2A_API_PORT']}", ":8010": f":{ports['A2A_RECEIVER_PORT']}"}
        self._moved[".venv/bin/"] = f"{Path(sys.executable).parent}/"
        url = f"http://127.0.0.1:{ports['A2A_API_PORT']}"
        self._environment = {**os.environ, **ports, "A2A_STATE": str(state), "A2A_URL": url, "NO_COLOR": "1"}

    def run(self, line: str, code: int = 0) -> list[str]:
        """What a command line says, on stdout and stderr; it must end with ``code``. TASK is the last task."""
        for documented, here in self._moved.items():
            line = line.replace(documented, here)
        done = subprocess.run(  # noqa: S603 - the project's own documents
            ["bash", "-c", line],  # noqa: S607 - as above
            cwd=ROOT,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == code, done.stdout
        if task := task_of(done.stdout):
            self._moved["TASK"] = task
        return done.stdout.splitlines()


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A shell. What its commands leave running is stopped."""
    need_setup()
    made = Shell(tmp_path_factory.mktemp("docs"))
    yield made
    made.run(".venv/bin/a2a-serverless down")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda line: line[:60])
def test_a_command_does_what_the_documents_show(shell: Shell, command: str) -> None:
    if command.startswith("curl") and not shutil.which("curl"):
        pytest.skip("curl is not installed")
    asks = any(line.startswith(QUESTION) for lines in COMMANDS[command] for line in lines)
    output = shell.run(command, WAITS if asks else 0)
    for lines in COMMANDS[command]:
        check_shown(lines, output)


def test_a_command_of_the_documents_that_no_test_runs_says_its_needs() -> None:
    unmarked = [
        block for path in DOCUMENTS for block in blocks("bash", path) + blocks("sh", path) if not _elsewhere(block)
    ]
    assert unmarked == []


def _elsewhere(block: Block) -> bool:
    """The receiver is a project of its own, and its commands are for whoever has copied it."""
    return block.needs is not None or "webhook_receiver" in block.path.parts
