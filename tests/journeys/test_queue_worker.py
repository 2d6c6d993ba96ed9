"""Tasks of a deployed stack that a worker outside of Lambda runs: it is stopped and killed in the middle of steps."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless_tools.stack import processes
from projects import agent_file, make_project
from tests.journeys.shell import Shell
from tests.stack.local import eventually

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration, pytest.mark.xdist_group("test_queue_worker")]

TASKS: Final = 5
SOURCE: Final = '''"""An agent whose steps last until a file exists."""

import asyncio
import os
from pathlib import Path

from a2a_serverless import Skill, TaskContext, agent

SKILL = Skill("dig", "Dig", "Digs.", ("garden",))


async def dig(name: str, text: str) -> str:
    folder = Path(os.environ["GARDEN"])
    with (folder / "begun.txt").open("a") as begun:
        begun.write(f"{text} {name}\\n")
    while not (folder / f"{name}.open").exists():
        await asyncio.sleep(0.05)
    with (folder / "done.txt").open("a") as done:
        done.write(f"{text} {name}\\n")
    return name


@agent(id="tailor", name="Tailor", description="Digs.", skills=[SKILL])
async def tailor(task: TaskContext) -> str:
    names = [await task.step(name, dig, name, task.text()) for name in ("first", "second")]
    return " ".join(names)
'''


class Garden:
    """A project with the agent and its stack, in which Lambda runs no tasks."""

    def __init__(self, shell: Shell, folder: Path) -> None:
        self.shell, self.folder = shell, folder
        self.workers: list[subprocess.Popen[str]] = []

    def lines(self, name: str) -> list[str]:
        path = self.folder / f"{name}.txt"
        return path.read_text().splitlines() if path.exists() else []

    def open(self, step: str) -> None:
        (self.folder / f"{step}.open").touch()

    def work(self, name: str = "") -> subprocess.Popen[str]:
        worker = self.shell.start("work", "--local", "--tasks-at-once", "10", *(("--name", name) if name else ()))
        self.workers.append(worker)
        return worker

    def send(self, text: str) -> str:
        return str(self.shell.json("send", "tailor", text, "--no-wait")["task"]["id"])

    def state(self, task: str) -> str:
        return str(self.shell.json("get", "tailor", task)["status"]["state"])


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Garden]:
    agent = agent_file(make_project("container-garden"))
    agent.write_text(SOURCE)
    project, folder = agent.parent.parent, tmp_path_factory.mktemp("garden")
    settings = project / "pyproject.toml"
    constants = '\n[tool.a2a-serverless.constants]\nWorkerService = "ecs-tasks.amazonaws.com"\n'
    settings.write_text(settings.read_text() + constants)
    ports = {f"A2A_{part}_PORT": str(processes.claim_port(part, 0)) for part in ("EMULATOR", "API", "RECEIVER")}
    own = {**ports, "A2A_STATE": str(tmp_path_factory.mktemp("state")), "NO_COLOR": "1", "GARDEN": str(folder)}
    own["A2A_URL"] = f"http://127.0.0.1:{ports['A2A_API_PORT']}"
    garden = Garden(Shell(project, {**os.environ, **own}), folder)
    garden.shell.json("up")
    yield garden
    for worker in garden.workers:
        if worker.poll() is None:
            worker.kill()
        worker.communicate()
    garden.shell.run("down")


def test_tasks_outlive_workers_that_are_stopped_and_killed(garden: Garden) -> None:
    tasks = {name: garden.send(name) for name in map(str, range(TASKS))}
    stopped = garden.work()
    eventually(lambda: len(garden.lines("begun")) == TASKS)
    stopped.send_signal(signal.SIGTERM)
    _, err = stopped.communicate(timeout=30)
    assert stopped.returncode == 0, err
    assert garden.lines("done") == []
    killed = garden.work("one")
    eventually(lambda: len(garden.lines("begun")) == 2 * TASKS)
    garden.open("first")
    eventually(lambda: sum(line.endswith("second") for line in garden.lines("begun")) == TASKS)
    killed.kill()
    killed.communicate()
    last = garden.work("one")
    eventually(lambda: sum(line.endswith("second") for line in garden.lines("begun")) == 2 * TASKS)
    garden.open("second")
    eventually(lambda: {garden.state(task) for task in tasks.values()} == {"TASK_STATE_COMPLETED"})
    assert sorted(garden.lines("done")) == sorted(f"{name} {step}" for name in tasks for step in ("first", "second"))
    last.send_signal(signal.SIGINT)
    assert last.wait(30) == 0


def test_the_variables_of_a_container_are_those_of_the_function(garden: Garden) -> None:
    variables: dict[str, Any] = garden.shell.json("work", "--local", "--print-environment", "--tasks-at-once", "7")
    assert (variables["TASKS_AT_ONCE"], variables["DRAIN_SECONDS"]) == ("7", "0")
    assert variables["WORK_QUEUE_URL"].startswith("http")
    lines = garden.shell.run("work", "--local", "--print-environment").stdout.splitlines()
    assert f"TABLE_NAME={variables['TABLE_NAME']}" in lines
