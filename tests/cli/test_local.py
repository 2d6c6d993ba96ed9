"""The program beside a ``dev`` of the same project: it finds its port, and Ctrl-C leaves the task running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from a2a_serverless_tools.cli.options import find_local_url
from tests.dev.terminal import PROGRAM, Dev, Project, make_project, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

SLOW = """
await task.report_progress("begun")
await asyncio.sleep(3600)
return "never"
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("project"), slow=SLOW)


@pytest.fixture(scope="module")
def dev(project: Project) -> Iterator[Dev]:
    with running(project) as dev:
        yield dev


def started(project: Project, *arguments: str) -> subprocess.Popen[str]:
    """The program in a folder of the project, without variables that say where agents are."""
    return subprocess.Popen(  # noqa: S603 - our own program
        [PROGRAM, *arguments],
        cwd=project.root / "workshop",
        env={name: value for name, value in os.environ.items() if not name.startswith("A2A_")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(project: Project, *arguments: str) -> str:
    with started(project, *arguments) as process:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        return out


def interrupted(process: subprocess.Popen[str], *, after: str, stream: str) -> tuple[int, str]:
    """Presses Ctrl-C once the program has written ``after``; returns its exit code and the rest of stderr."""
    with process:
        try:
            while after not in getattr(process, stream).readline():
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
        return process.returncode, err


def test_the_program_finds_the_port_of_dev_in_its_project(project: Project, dev: Dev) -> None:
    (agent,) = json.loads(run(project, "cards", "list", "--json"))
    assert agent["url"] == f"{dev.url}/slow"


def test_ctrl_c_leaves_the_task_running_and_says_how_to_follow_it(project: Project, dev: Dev) -> None:
    code, err = interrupted(started(project, "send", "slow", "hello"), after="begun", stream="stderr")
    (task,) = json.loads(run(project, "tasks", "list", "--json"))
    assert (code, task["status"]["state"]) == (130, "TASK_STATE_WORKING")
    assert f"Interrupted. The task {task['id']} goes on.\n" in err
    assert err.strip().endswith(f"watch slow {task['id']}")
    following = started(project, "watch", "slow", task["id"], "--url", dev.url)
    code, err = interrupted(following, after="begun", stream="stdout")
    assert code == 130
    assert err.strip().endswith(f"watch slow {task['id']} --url {dev.url}")


def test_a_port_in_the_environment_goes_first_and_8000_last() -> None:
    assert find_local_url({"A2A_API_PORT": "9000"}) == "http://127.0.0.1:9000"


def test_the_record_of_a_dead_process_gives_no_local_url(tmp_path: Path) -> None:
    record = tmp_path / "run" / "api.json"
    record.parent.mkdir()
    record.write_text(json.dumps({"name": "api", "pid": os.getpid(), "born": "before", "port": 9000, "log": ""}))
    assert find_local_url({"A2A_STATE": str(tmp_path)}) == "http://127.0.0.1:8000"
