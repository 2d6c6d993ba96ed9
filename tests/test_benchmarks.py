"""What the benchmarks measure works: a script that stops at an error would be missed only when all are run."""

from __future__ import annotations

from importlib import import_module

import pytest

from a2a_serverless import TaskState
from a2a_serverless.engine.loop import play
from run import SCRIPTS
from steps import in_memory, plain


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_script_of_the_list_can_be_imported_and_measures(name: str) -> None:
    assert callable(import_module(name).measure)


def test_the_deployment_of_the_benchmarks_plays_a_task_to_its_end() -> None:
    deployment = in_memory(plain)
    task = deployment.send("go")
    play(deployment.run(task))
    assert deployment.get(task).status.state is TaskState.COMPLETED
