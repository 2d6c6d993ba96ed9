"""The command that runs a stack's tasks here: its variables, and its warning while Lambda runs them, too."""

from __future__ import annotations

import json

import pytest

from tests.cli.shell import Shell
from tests.client.deployment import Deployment
from tests.echo import Writer

VARIABLES = {"WORK_QUEUE_URL": "https://queue", "TABLE_NAME": "tasks"}


def shell(service: str = "ecs-tasks.amazonaws.com") -> Shell:
    at = Shell(Deployment(Writer().agent))
    at.worker_environment = lambda _: VARIABLES
    at.worker_service = lambda _: service
    return at


def test_the_variables_of_a_container_are_those_of_the_function_and_of_the_options() -> None:
    done = shell().run("work", "--print-environment", "--drain-seconds", "60", "--health", "0.0.0.0:80", "--json")
    own = {"TASKS_AT_ONCE": "50", "DRAIN_SECONDS": "60", "HEALTH_ADDRESS": "0.0.0.0:80"}
    assert (done.code, json.loads(done.out), done.err) == (0, VARIABLES | own, "")


def test_work_prints_the_name_of_the_worker_among_its_variables() -> None:
    lines = shell().run("work", "--print-environment", "--name", "worker-0").out.splitlines()
    assert "WORKER_NAME=worker-0" in lines


def test_work_warns_while_lambda_also_runs_tasks_of_the_stack() -> None:
    assert "Lambda" not in shell().run("work", "--print-environment").err
    assert "WorkerService" in shell("lambda.amazonaws.com").run("work", "--print-environment").err


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("--health", "127.0.0.1:70000", "HEALTH_ADDRESS must be an address and a port"),
        ("--drain-seconds", "86401", "Invalid value for '--drain-seconds'"),
        ("--name", "a/b", "WORKER_NAME must be at most 40 letters, digits, dots, hyphens and underscores"),
        ("--tasks-at-once", "0", "Invalid value for '--tasks-at-once'"),
    ],
)
def test_an_option_outside_of_its_bounds_is_refused(
    option: str, value: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = shell().run("work", "--print-environment", option, value)
    assert (done.code, done.out) == (2, "")
    assert text in done.err + capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "addresses"), [((), []), (("--health", "0.0.0.0:80"), ["HEALTH_ADDRESS=0.0.0.0:80"])]
)
def test_without_an_address_of_its_own_the_health_s_address_is_left_to_the_image(
    arguments: tuple[str, ...], addresses: list[str]
) -> None:
    lines = shell().run("work", "--print-environment", *arguments).out.splitlines()
    assert [line for line in lines if line.startswith("HEALTH_ADDRESS")] == addresses
