"""The commands ``pause`` and ``resume``, over a world in the same process."""

from __future__ import annotations

import pytest

from a2a_serverless.protocol.protojson import read_timestamp
from a2a_serverless.protocol.v1 import TaskState
from tests.cli.test_operator_commands import Deployed
from tests.echo import Writer
from tests.world import HOUR_MS, ME, World


@pytest.fixture
def deployed() -> Deployed:
    return Deployed(World([Writer().agent]))


@pytest.mark.parametrize("names", [("echo",), ("--owner", f"{ME.tenant}/{ME.owner}")])
def test_a_task_waits_while_an_operator_pauses_its_agent_or_owner(deployed: Deployed, names: tuple[str, ...]) -> None:
    [paused] = deployed.json("pause", *names)["paused"]
    assert paused["name"] == names[-1]
    task = deployed.world.send("hello", push=False)
    deployed.world.settle(HOUR_MS)
    assert deployed.world.get(task.id).status.state is TaskState.SUBMITTED
    assert deployed.json("pause") == {"paused": [paused]}
    deployed.json("resume", *names)
    deployed.world.settle(2 * HOUR_MS)
    assert deployed.world.get(task.id).status.state is TaskState.COMPLETED


def test_pausing_and_resuming_twice_is_as_once_and_the_first_time_stays(deployed: Deployed) -> None:
    assert deployed.json("pause", "echo") == deployed.json("pause", "echo")
    assert deployed.json("resume", "echo") == deployed.json("resume", "echo") == {"resumed": "echo"}
    code, out, err = deployed.type("pause")
    assert (code, out) == (0, "")
    assert "Nothing is paused" in err


def test_a_wrong_id_is_told_as_far_as_it_can_be(deployed: Deployed) -> None:
    code, _, err = deployed.type("pause", "eco")
    assert (code, "Tasks of eco are accepted and wait" in err) == (0, True)
    code, _, err = deployed.type("resume", "echo")
    assert (code, "echo was not paused" in err) == (0, True)
    assert [entry["name"] for entry in deployed.json("pause")["paused"]] == ["eco"]


def test_the_time_of_a_pause_is_a_timestamp(deployed: Deployed) -> None:
    [paused] = deployed.json("pause", "echo")["paused"]
    assert read_timestamp(paused["since"])


def test_pause_lists_each_agent_and_owner_on_its_line(deployed: Deployed) -> None:
    deployed.json("pause", "echo")
    code, out, _ = deployed.type("pause", "--owner", "acme/somebody")
    assert (code, [line.split()[:2] for line in out.splitlines()]) == (
        0,
        [["AGENT", "echo"], ["OWNER", "acme/somebody"]],
    )


@pytest.mark.parametrize(
    "arguments",
    [("resume",), ("pause", "echo", "--owner", "a/b"), ("pause", "--owner", "alone"), ("resume", "--owner", "a/b/c")],
)
def test_pausing_without_exactly_one_agent_or_owner_is_a_usage_error(
    deployed: Deployed, arguments: tuple[str, ...]
) -> None:
    assert deployed.type(*arguments)[0] == 2
