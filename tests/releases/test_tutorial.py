"""The commands of the first tutorial, with the program from the wheels, in an empty folder outside of the checkout.

`make release` runs this, and `make integration` does not. What needs AWS is left out.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless_tools.stack.environments import find_uv
from a2a_serverless_tools.stack.library import CHECKOUT
from tests.docs.documents import blocks
from tests.journeys.projects import SECONDS, WAITS, Folder, install_program
from tests.stack.local import eventually
from tests.stack.wheels import dist

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["dist"]
pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

TUTORIAL = next(
    path for path in map(CHECKOUT.joinpath, ("docs/tutorial-agent.md", "docs/tutorial.md")) if path.exists()
)
INIT = re.compile(r"\S*a2a-serverless init \S*?([\w-]+) && cd \S+$")
ANSWERS = re.compile(r"--task TASK|--last")
TASK = re.compile(r"^Task ([0-9a-f]{8}-[0-9a-f-]{27})", re.MULTILINE)


def commands() -> list[str]:
    """The command lines of the tutorial that need no AWS."""
    found = [block for block in blocks("console", TUTORIAL) if block.needs in {None, "an empty folder"}]
    return [command.line for block in found for command in block.commands()]


@contextmanager
def started(folder: Folder, line: str) -> Iterator[None]:
    """Runs a server as in a second terminal, until Control-C."""
    said = folder.path.with_name("dev.txt")
    options: Any = {"cwd": folder.path, "env": folder.environment}
    with said.open("w") as out, subprocess.Popen(["bash", "-c", f"exec {line}"], stdout=out, **options) as process:  # noqa: S603, S607
        try:
            eventually(lambda: folder.environment["A2A_URL"] in said.read_text())
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=SECONDS)


def test_its_commands_do_what_it_says(dist: Path, tmp_path: Path) -> None:
    made = install_program(tmp_path, dist)
    (tmp_path / "uv").mkdir()
    (tmp_path / "uv/uv").symlink_to(find_uv())
    made.environment["PATH"] = f"{tmp_path / 'uv'}{os.pathsep}{os.environ['PATH']}"
    first, *others = commands()
    name = INIT.fullmatch(first)
    assert name, first
    made.run("tool/bin/a2a-serverless", "init", name[1])
    project = Folder(made.path / name[1], made.environment)
    played, task = [], ""
    with ExitStack() as running:
        for line in others:
            if line.endswith(" dev"):
                running.enter_context(started(project, line))
                continue
            if line.endswith(" up"):
                running.close()
                running.callback(project.run, "bash", "-c", line.removesuffix("up") + "down")
            asks = " send " in line and not ANSWERS.search(line)
            said = project.run("bash", "-c", f"{line.replace('TASK', task)} 2>&1", code=WAITS if asks else 0)
            task = found[1] if (found := TASK.search(said)) else task
            played.append(line)
    assert any("pytest" in line for line in played)
    assert any(" send " in line and ANSWERS.search(line) for line in played)
