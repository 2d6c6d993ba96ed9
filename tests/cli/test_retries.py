"""``tasks retry``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.cli.shell import Shell
from tests.client.deployment import Deployment
from tests.echo import agent_of

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext


class Mended:
    """An agent whose second step fails the first time."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def do(self, name: str) -> str:
        self.ran.append(name)
        if self.ran.count(name) == 1 and name == "two":
            raise ValueError(name)
        return name

    async def work(self, task: TaskContext) -> None:
        for name in ("one", "two", "three"):
            await task.emit("list", await task.step(name, self.do, name) + " ", append=True)


def failed(agent: Mended) -> tuple[Shell, str]:
    at = Shell(Deployment(agent_of(agent.work)))
    done = at.run("send", "echo", "hello")
    assert done.code == 3
    return at, json.loads(at.run("tasks", "list", "--json").out)[0]["id"]


def test_a_failed_task_is_retried_and_the_new_one_is_followed() -> None:
    agent = Mended()
    at, task_id = failed(agent)
    done = at.run("tasks", "retry", "echo", task_id)
    assert (done.code, done.out) == (0, "one two three \n")
    assert agent.ran == ["one", "two", "two", "three"]
    assert task_id not in done.err
    assert len(json.loads(at.run("tasks", "list", "--json").out)) == 2


def test_retry_begins_at_a_named_step_and_does_not_wait_if_told() -> None:
    agent = Mended()
    at, task_id = failed(agent)
    done = at.run("tasks", "retry", "echo", task_id, "--from", "one", "--no-wait")
    assert done.code == 0
    assert at.run("watch", "echo", done.out.strip()).code == 0
    assert agent.ran == ["one", "two", "one", "two", "three"]


def test_an_unknown_step_is_refused_and_the_text_says_where_the_steps_are_listed() -> None:
    at, task_id = failed(Mended())
    done = at.run("tasks", "retry", "echo", task_id, "--from", "step four", "--json")
    error = json.loads(done.out)["error"]
    assert (done.code, error["kind"]) == (1, "RetryRefused")
    assert error["text"] == "--from 'step four' names no step that has ended in this task."
    assert error["remedy"] == f"a2a-serverless trace echo {task_id}"


def test_a_task_that_has_not_failed_and_one_that_is_not_there_are_refused() -> None:
    at, task_id = failed(Mended())
    again = at.run("tasks", "retry", "echo", task_id, "--no-wait").out.strip()
    at.run("watch", "echo", again)
    assert "Only a failed task can be retried: this one is completed." in at.run("tasks", "retry", "echo", again).err
    assert "The task was not found" in at.run("tasks", "retry", "echo", "none").err


def test_the_last_task_is_retried_by_the_beginning_of_its_id_or_as_the_last() -> None:
    at, _ = failed(Mended())
    assert at.run("tasks", "retry", "echo", "--last").code == 0
