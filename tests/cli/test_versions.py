import json
from pathlib import Path

import pytest

from a2a_serverless.domain.task_context import TaskContext
from tests.cli.shell import Shell
from tests.client.deployment import Deployment
from tests.echo import agent_of


async def paint(task: TaskContext) -> None:
    await task.emit("boat.txt", task.text(), last=True)
    await task.emit("notes.txt", "none", last=True)


@pytest.fixture
def at() -> Shell:
    return Shell(Deployment(agent_of(paint)))


def painted(at: Shell) -> str:
    """A conversation in which a boat was painted twice."""
    first = json.loads(at.run("send", "echo", "white", "--json").out)["task"]
    at.run("send", "echo", "red", "--context", first["contextId"])
    return str(first["contextId"])


def test_each_version_is_shown_under_its_name_the_oldest_first(at: Shell) -> None:
    done = at.run("versions", "echo", painted(at))
    lines = done.out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["boat.txt 1", "boat.txt 2", "notes.txt 1", "notes.txt 2"]
    assert [line.split("  ")[2] for line in lines[:2]] == ["5 characters", "3 characters"]


def test_one_name_is_shown_and_saved_with_its_numbers_in_front(at: Shell, tmp_path: Path) -> None:
    done = at.run("versions", "echo", painted(at), "--name", "boat.txt", "--out", str(tmp_path))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "v1.boat.txt": "white",
        "v2.boat.txt": "red",
    }
    assert "notes" not in done.out
    assert done.err.count("Saved") == 2


def test_json_has_the_versions_by_name_with_the_whole_artifact(at: Shell) -> None:
    made = json.loads(at.run("versions", "echo", painted(at), "--json").out)
    assert [(one["version"], one["artifact"]["parts"]) for one in made["boat.txt"]] == [
        (1, [{"text": "white"}]),
        (2, [{"text": "red"}]),
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [("ship.txt", "No artifact has that name. There are: boat.txt, notes.txt."), ("boat.txt", None)],
    ids=["another name", "a name"],
)
def test_a_name_that_is_not_there_is_answered_with_those_that_are(at: Shell, name: str, said: str | None) -> None:
    done = at.run("versions", "echo", painted(at), "--name", name)
    assert (said in done.err) if said else done.out
    assert done.code == 0


def test_a_conversation_in_which_nothing_was_made_says_so(at: Shell) -> None:
    assert "This conversation has no artifacts" in at.run("versions", "echo", "another").err
