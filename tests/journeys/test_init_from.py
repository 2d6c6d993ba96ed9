"""``init --from``: a project of each framework gives its first answer on this machine, without a model's key."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from time import perf_counter
from typing import get_args

import pytest

from a2a_serverless_tools.cli.stack import FrameworkName
from a2a_serverless_tools.stack.environments import find_uv
from tests.journeys.projects import WAITS, Folder, install_program
from tests.stack.wheels import dist

__all__ = ["dist"]
pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]


@pytest.fixture(scope="module")
def empty(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A folder with the program."""
    path = f"{Path(find_uv()).parent}{os.pathsep}{os.environ['PATH']}"
    return install_program(tmp_path_factory.mktemp("empty"), dist, MODEL="", PATH=path)


@pytest.fixture(scope="module", params=get_args(FrameworkName))
def project(empty: Folder, request: pytest.FixtureRequest) -> Folder:
    """A new project of a framework, with its packages."""
    began = perf_counter()
    name = f"shop-from-{request.param}"
    said = json.loads(empty.run("tool/bin/a2a-serverless", "init", name, "--from", request.param, "--json"))
    made = perf_counter()
    assert 'uv run a2a-serverless send shop "a coat"' in said["next"]
    project = Folder(empty.path / name, empty.environment)
    project.run(find_uv(), "sync", "--quiet", "--locked")
    show(project, f"init {made - began:.1f} s, installation {perf_counter() - made:.1f} s")
    return project


def show(project: Folder, measured: str) -> None:
    """Prints a measurement, which ``pytest -rP`` shows."""
    sys.stdout.write(f"{project.path.name}: {measured}\n")


def test_a_new_project_tests_its_agent_and_gives_its_first_answer(project: Folder) -> None:
    began = perf_counter()
    with project.dev() as url:
        asked = project.cli("send", "shop", "a coat", "--url", url, code=WAITS)
        show(project, f"first answer {perf_counter() - began:.1f} s")
        assert "a coat" in asked["task"]["status"]["message"]["parts"][0]["text"]
        done = project.cli("send", "shop", "yes", "--task", asked["task"]["id"], "--url", url)
        assert "ordered" in "".join(part["text"] for part in done["task"]["artifacts"][-1]["parts"])
    assert "2 passed" in project.run(find_uv(), "run", "--quiet", "pytest", "-q")


def test_a_new_project_is_built(project: Folder) -> None:
    here = f"python{sys.version_info.major}.{sys.version_info.minor}"
    sizes = project.cli("build", "--runtime", here, "--architecture", "x86_64")
    show(project, f"WorkerFunction.zip {sizes['WorkerFunction.zip'] / 1e6:.1f} MB")
    assert sizes["WorkerFunction.zip"] > sizes["ApiFunction.zip"]  # only the worker has the framework
