"""A mirror, deployed: the real template, functions, table and queues before the official server in Python."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

import pytest

from a2a_serverless_tools.stack import processes
from projects import make_project
from tests.conformance.remotes import REMOTES, NoServer, executions, serving_remote
from tests.journeys.shell import Shell
from tests.mirror_project import add_mirror, card_command
from tests.stack.local import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration, pytest.mark.xdist_group("test_mirror")]

AGENT: Final = "scripted"


@pytest.fixture(scope="module")
def remote() -> Iterator[str]:
    """The base URL of the remote agent."""
    try:
        with serving_remote(REMOTES[1]) as url:
            yield url
    except NoServer as why:
        pytest.skip(f"OFFICIAL SERVER NOT RUN: {why}")


@pytest.fixture(scope="module")
def shell(remote: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A project with the mirror, on a stack of its own."""
    folder = make_project("mirror-shop")
    ports = {f"A2A_{part}_PORT": str(processes.claim_port(part, 0)) for part in ("EMULATOR", "API", "RECEIVER")}
    state = {"A2A_STATE": str(tmp_path_factory.mktemp("mirror")), "NO_COLOR": "1"}
    url = f"http://127.0.0.1:{ports['A2A_API_PORT']}"
    shell = Shell(folder, {**os.environ, **ports, **state, "A2A_URL": url})
    add_mirror(folder, remote, shell.run(*card_command(remote)).stdout)
    shell.json("up")
    yield shell
    shell.run("down")


def state_of(shell: Shell, task: str) -> str:
    state: str = shell.json("get", AGENT, task)["status"]["state"]
    return state


def test_a_message_streams_through_the_deployment_once(shell: Shell, remote: str) -> None:
    done = shell.run("send", AGENT, "stream 30")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:30] == [str(number) for number in range(30)]
    assert executions(remote).count("stream 30") == 1


def test_a_question_is_answered_and_a_task_canceled(shell: Shell, remote: str) -> None:
    asked: Any = shell.run("send", AGENT, "ask", "--json")
    assert asked.returncode == 4, asked.stderr
    assert "Which colour?" in asked.stdout
    answered = shell.run("send", AGENT, "red", "--last", "--json")
    assert answered.returncode == 0, answered.stderr
    task = shell.json("send", AGENT, "slow", "--no-wait")["task"]["id"]
    eventually(lambda: "slow" in executions(remote))
    shell.json("cancel", AGENT, task)
    eventually(lambda: "cancel" in executions(remote))
    assert state_of(shell, task) == "TASK_STATE_CANCELED"


def test_the_card_is_the_remote_agents_with_the_deployments_address(shell: Shell, remote: str) -> None:
    card = shell.json("cards", "show", AGENT)
    assert card["name"] == "Scripted"
    assert remote not in json.dumps(card)
    assert card["capabilities"]["pushNotifications"]
    assert shell.run("cards", "refresh").returncode == 0
