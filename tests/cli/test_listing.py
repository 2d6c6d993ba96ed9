"""``tasks list``."""

import json
from dataclasses import replace

import pytest

from a2a_serverless import Agent
from tests.cli.shell import Shell
from tests.client.deployment import Deployment
from tests.echo import Asker, Writer


def named(agent: Agent, name: str) -> Agent:
    return replace(agent, id=name)


@pytest.fixture
def at() -> Shell:
    return Shell(Deployment(named(Writer().agent, "writer"), named(Asker().agent, "asker")))


def sent(at: Shell, agent: str, *options: str) -> dict[str, str]:
    """Sends a message and returns the task's ids. Each is a second later than the one before."""
    task: dict[str, str] = json.loads(at.run("send", agent, "hello", "--json", *options).out)["task"]
    at.deployment.world.wait(1000)
    return task


def test_tasks_of_all_agents_are_listed_the_newest_first(at: Shell) -> None:
    first, second, third = sent(at, "writer"), sent(at, "asker"), sent(at, "writer")
    lines = [line.split() for line in at.run("tasks", "list").out.splitlines()]
    assert [(line[0], line[1], line[2], line[-1]) for line in lines] == [
        (third["id"], "writer", "completed", third["contextId"]),
        (second["id"], "asker", "input-required", second["contextId"]),
        (first["id"], "writer", "completed", first["contextId"]),
    ]


def test_columns_of_the_list_begin_below_each_other(at: Shell) -> None:
    sent(at, "writer")
    sent(at, "asker")
    lines = at.run("tasks", "list").out.splitlines()
    assert len({line.rindex("  ") for line in lines}) == 1


def test_tasks_are_chosen_by_agent_state_and_context(at: Shell) -> None:
    first, second, third = sent(at, "writer"), sent(at, "asker"), sent(at, "writer")

    def listed(*options: str) -> set[str]:
        return {one["id"] for one in json.loads(at.run("tasks", "list", *options, "--json").out)}

    assert listed("writer") == {first["id"], third["id"]}
    assert listed("--state", "input-required") == {second["id"]}
    assert listed("--context", first["contextId"]) == {first["id"]}
    assert listed("asker", "--state", "completed") == set()


def test_the_list_as_json_has_the_agent_of_each_task(at: Shell) -> None:
    sent(at, "asker")
    (one,) = json.loads(at.run("tasks", "list", "--json").out)
    assert (one["agent"], one["status"]["state"]) == ("asker", "TASK_STATE_INPUT_REQUIRED")


def test_a_long_list_is_cut_and_says_so(at: Shell) -> None:
    tasks = [sent(at, "writer") for _ in range(3)]
    done = at.run("tasks", "list", "--limit", "2")
    assert [line.split()[0] for line in done.out.splitlines()] == [tasks[2]["id"], tasks[1]["id"]]
    assert "There are more. To see them: --limit 20" in done.err
    assert at.run("tasks", "list", "--limit", "3").err == ""


def test_listing_a_thousand_tasks_reads_all_pages(at: Shell) -> None:
    for _ in range(102):
        at.run("send", "writer", "hello", "--no-wait")
    assert len(json.loads(at.run("tasks", "list", "--limit", "1000", "--json").out)) == 102


def test_an_empty_list_of_tasks_names_the_command_that_makes_a_task(at: Shell) -> None:
    assert (
        at.run("tasks", "list", "asker").err == 'There are no such tasks: a2a-serverless send asker "..." makes one.\n'
    )


@pytest.mark.parametrize("options", [("--state", "nothing"), ("--limit", "0"), ("--limit", "1001")])
def test_a_wrong_choice_is_refused_before_anything_is_asked(at: Shell, options: tuple[str, str]) -> None:
    assert at.run("tasks", "list", *options).code == 2
    assert at.deployment.calls == []
