"""A stack that stays: up, talk to it, read its logs, down."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.journeys.shell import Shell, shell
from tests.stack.local import eventually

pytestmark = [pytest.mark.enable_socket, pytest.mark.integration, pytest.mark.xdist_group("test_by_hand")]
__all__ = ["shell"]


@pytest.fixture(scope="module")
def addresses(shell: Shell) -> Iterator[Any]:
    """The addresses of a stack that is up."""
    yield shell.json("up")
    shell.run("down")


def states_in(inbox: str) -> list[str]:
    with urllib.request.urlopen(f"{inbox}api/notifications") as answer:
        return [task["state"] for task in json.load(answer)["tasks"]]


def test_a_task_that_is_sent_by_hand_reaches_the_inbox(shell: Shell, addresses: Any) -> None:
    inbox = addresses["inbox"]
    done = shell.run("send", "document", "Ships have sails. Some have engines.", "--inbox", inbox, "--out", "made")
    assert done.returncode == 0, done.stderr
    assert "Ships have sails." in (shell.folder / "made/document.md").read_text()
    eventually(lambda: "completed" in states_in(inbox))


def test_up_says_where_the_console_is(addresses: Any) -> None:
    with urllib.request.urlopen(addresses["console"]) as answer:
        assert answer.headers["Content-Type"].startswith("text/html")


def test_the_deployed_function_serves_the_same_agents(shell: Shell, addresses: Any) -> None:
    there = shell.json("cards", "list", "--url", addresses["restApi"])
    assert there == shell.json("cards", "list")


def test_a_function_s_log_can_be_read(shell: Shell, addresses: Any) -> None:
    assert addresses
    assert shell.json("logs", "worker")["worker"]
    assert "── notifier ──" in shell.run("logs").stdout
    unknown = shell.run("logs", "nothing")
    assert (unknown.returncode, "what helps: one of" in unknown.stderr) == (1, True)


def test_down_stops_everything_and_says_what(shell: Shell, addresses: Any) -> None:
    assert addresses
    assert sorted(shell.json("down")["stopped"]) == ["api", "emulator", "receiver"]
    assert shell.running() == []
    assert "Nothing was running." in shell.run("down").stderr
    assert "dev` or `up`" in shell.run("cards", "list").stderr
