"""From saving an edited agent to its new answer, seconds by the clock: with `dev`, and with `up` (N18).

`dev` notices the file and imports the agents anew; a client asks every few milliseconds until it gets the new answer.
`up` is started after the edit, as an author does: it builds, deploys into the emulator and restarts the servers; then a
client sends a message, which the agent answers in the emulator's Lambda. Both projects are new ones with one agent.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from a2a_serverless.client import Client, open_request, text_message
from a2a_serverless.protocol.v1 import SendMessageRequest, Task
from a2a_serverless_tools.stack import processes
from measuring import ROOT, Report, figure, goal, main
from projects import AGENT, agent_file, make_project

sys.path.insert(0, str(ROOT))

from tests.dev import terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM: Final = str(Path(sys.executable).with_name("a2a-serverless"))
PAUSE_S: Final = 0.005
EDITS: Final = 10  # of `dev`, in each round
LIMIT_S: Final = {"dev": 1.0, "up": 15.0}


def with_dev(edits: int) -> list[float]:
    """Returns the seconds from each edit to the new answer of a running `dev`."""
    with TemporaryDirectory() as folder:
        project = terminal.make_project(Path(folder) / "project")
        project.list("echo")
        project.write("echo", "return '-1'", "inline")
        with terminal.running(project) as dev:
            return [_edited(project, dev, f"{number}") for number in range(edits + 1)][1:]


def _edited(project: terminal.Project, dev: terminal.Dev, answer: str) -> float:
    project.write("echo", f"return '{answer}'", "inline")
    saved = time.monotonic()
    while _said(dev.send("echo")) != answer:
        time.sleep(PAUSE_S)
    return time.monotonic() - saved


def with_up(edits: int) -> list[float]:
    """Returns the seconds from each edit to the new answer of a stack that `up` brings up to date.

    No edit is like one of an earlier run, whose zip would be there.
    """
    agent = agent_file(make_project("saved"))
    with _up(agent.parents[1]) as (run, url):
        return [_brought_up(agent, run, url, f"Which colour, {uuid4().hex}?") for _ in range(edits)]


def _brought_up(agent: Path, run: Any, url: str, question: str) -> float:  # noqa: ANN401 - a function
    agent.write_text(agent.read_text().replace(_asked(url), question))
    saved = time.monotonic()
    run("up")
    if (found := _asked(url)) != question:
        raise SystemExit(f"the agent asks {found!r}")
    return time.monotonic() - saved


@contextmanager
def _up(project: Path) -> Iterator[tuple[Any, str]]:
    """Runs a stack of a project on free ports; gives a function for commands, and the agent's URL."""
    ports = {f"A2A_{part}_PORT": str(processes.claim_port(part, 0)) for part in ("EMULATOR", "API", "RECEIVER")}

    def run(command: str) -> dict[str, Any]:
        done = subprocess.run(
            [PROGRAM, command, "--json"], cwd=project, env=os.environ | ports, stdout=subprocess.PIPE, check=True
        )
        return dict(json.loads(done.stdout))

    try:
        run("up")
        yield run, f"http://127.0.0.1:{ports['A2A_API_PORT']}/{AGENT}"
    finally:
        run("down")


def _asked(url: str) -> str:
    """Returns what the agent asks for a new message."""
    client = Client(url, open_request)
    task = client.send(SendMessageRequest(message=text_message("A coat, please.")))
    while isinstance(task, Task) and not _said(task):  # a send waits for some seconds only
        time.sleep(PAUSE_S)
        task = client.get(task.id)
    return _said(task)


def _said(answer: Any) -> str:  # noqa: ANN401 - a task or a message
    message = answer.status.message if isinstance(answer, Task) else answer
    return str(message.text()) if message else ""


def measure(rounds: int) -> Report:
    """Measures `dev` and `up` one after the other."""
    found = {"dev": with_dev(EDITS * rounds), "up": with_up(rounds)}
    return Report(
        "Saving an agent",
        __doc__ or "",
        [figure(f"from saving to the new answer, {name}", "s", seconds, ours=True) for name, seconds in found.items()],
        [
            goal("N18", f"{name}: from saving an agent to its new answer, seconds", "<=", LIMIT_S[name], seconds)
            for name, seconds in found.items()
        ],
    )


if __name__ == "__main__":
    main(measure, rounds=3)
