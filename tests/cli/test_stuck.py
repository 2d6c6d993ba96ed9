"""The commands ``tasks stuck``, ``tasks show`` and ``queues``, over a world in the same process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain.agent_errors import TaskFailed
from a2a_serverless.domain.model import path
from a2a_serverless_tools.operators.queues import QueueDepth
from tests.cli.test_operator_commands import Deployed
from tests.echo import Asker, Writer, agent_of
from tests.faults.plans import kill_at
from tests.faults.test_lost_messages import Silence
from tests.world import HOUR_MS, ME, World

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.protocol.v1 import Task

MINUTE_MS = 60_000


def task_path(task: Task) -> str:
    return path(ME.tenant, ME.owner, task.id)


@pytest.fixture
def asking() -> Deployed:
    return Deployed(World([Asker().agent]))


def test_a_question_that_nobody_answers_is_stuck_after_the_given_time(asking: Deployed) -> None:
    task = asking.world.send("hello", push=False)
    asking.world.settle(MINUTE_MS)
    assert asking.json("tasks", "stuck") == {"tasks": [], "more": 0}
    asking.world.wait(2 * HOUR_MS)
    [stuck] = asking.json("tasks", "stuck")["tasks"]
    assert (stuck["task"], stuck["state"]) == (task_path(task), "TASK_STATE_INPUT_REQUIRED")
    [reason] = stuck["reasons"]
    assert (reason["kind"], reason["since"]) == ("question", stuck["since"])
    code, out, err = asking.type("tasks", "stuck")
    assert (code, "waits for an answer of the client" in out, "ask the client" in err) == (0, True, True)
    assert asking.json("tasks", "stuck", "--since", "3h")["tasks"] == []


def test_a_task_of_a_paused_agent_is_stuck_at_once_and_the_remedy_works(asking: Deployed) -> None:
    asking.json("pause", "echo")
    task = asking.world.send("hello", push=False)
    asking.world.settle(MINUTE_MS)
    [stuck] = asking.json("tasks", "stuck")["tasks"]
    assert stuck["task"] == task_path(task)
    [reason] = stuck["reasons"]
    assert (reason["kind"], reason["remedy"]) == ("pause", "`resume echo`")
    asking.json(*reason["remedy"].strip("`").split())
    asking.world.settle(2 * HOUR_MS)
    [shown] = asking.json("tasks", "show", task_path(task))["reasons"]
    assert shown["kind"] == "question"


def test_a_task_whose_message_comes_to_no_worker_is_overdue() -> None:
    deployed = Deployed(World([Asker().agent], between=Silence))
    task = deployed.world.send("hello", push=False)
    deployed.world.wait(20 * MINUTE_MS)
    [stuck] = deployed.json("tasks", "stuck")["tasks"]
    assert (stuck["task"], stuck["reasons"][0]["kind"]) == (task_path(task), "overdue")


def test_runs_that_die_are_most_urgent() -> None:
    deployed = Deployed(World([Writer().agent], kill_at(1, 2, 3, 4, late=False, only="table.store_step")))
    task = deployed.world.send("hello", push=False)
    deployed.world.wait(40_000)
    [reason, *_] = deployed.json("tasks", "show", task.id)["reasons"]
    assert reason["kind"] == "runs die"
    assert deployed.json("tasks", "stuck")["tasks"][0]["reasons"][0] == reason


def test_a_healthy_task_at_work_is_not_stuck() -> None:
    deployed = Deployed(World([Writer(seconds=600).agent]))
    task = deployed.world.send("hello", push=False)
    deployed.world.wait(10 * MINUTE_MS)
    assert deployed.json("tasks", "stuck")["tasks"] == []
    assert deployed.json("tasks", "show", task.id)["reasons"][0]["kind"] == "running"


def test_an_unfinished_task_is_shown_by_the_beginning_of_its_id_and_an_ended_task_by_its_path(asking: Deployed) -> None:
    first, second = (asking.world.send("hello", push=push) for push in (True, False))
    asking.world.settle(MINUTE_MS)
    assert asking.json("tasks", "show", first.id)["task"] == task_path(first)
    asking.world.cancel(first.id)
    asking.world.settle()
    code, out, err = asking.type("tasks", "show", first.id)
    assert (code, out, "`logs --task`" in err) == (1, "", True)
    shown = asking.json("tasks", "show", task_path(first))
    assert (shown["state"], shown["reasons"], len(shown["webhooks"])) == ("TASK_STATE_CANCELED", [], 1)
    code, out, _ = asking.type("tasks", "show", task_path(first))
    assert (code, "Webhook" in out) == (0, True)
    assert asking.json("tasks", "show", second.id)["state"] == "TASK_STATE_INPUT_REQUIRED"


def test_of_a_failed_task_the_command_is_named_that_shows_why() -> None:
    async def fails(_: TaskContext) -> None:
        raise TaskFailed("no cloth")

    deployed = Deployed(World([agent_of(fails)]))
    task = deployed.world.send("hello", push=False)
    deployed.world.settle(MINUTE_MS)
    assert f"`logs --task {task.id}`" in deployed.type("tasks", "show", task_path(task))[2]


@pytest.mark.parametrize("name", ["a/b", "a/b/c/d", "default/alice/nothing"])
def test_a_task_that_is_not_there_is_told(asking: Deployed, name: str) -> None:
    assert asking.type("tasks", "show", name)[0] in {1, 2}


def test_two_tasks_with_one_beginning_are_not_guessed(asking: Deployed) -> None:
    for _ in range(2):
        asking.world.send("hello", push=False)
    asking.world.settle(MINUTE_MS)
    code, _, err = asking.type("tasks", "show", "")
    assert (code, "2 unfinished tasks" in err) == (1, True)


def test_a_message_in_a_queue_of_failed_messages_names_its_runbook(asking: Deployed) -> None:
    asking.depths = [QueueDepth("work", 3, 1, 2), QueueDepth("work, failed", 1, 0, 0)]
    code, out, err = asking.type("queues")
    assert (code, [line.split()[-3:] for line in out.splitlines()]) == (0, [["3", "1", "2"], ["1", "0", "0"]])
    assert "WorkDeadLettersAlarm" in err
    assert asking.json("queues")["queues"][0] == {"name": "work", "waiting": 3, "received": 1, "delayed": 2}
