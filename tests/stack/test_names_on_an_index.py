"""Somebody else has this project's names on a package index: nothing takes what they offer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest

from a2a_serverless_tools.project import read_project
from a2a_serverless_tools.stack.bases import base_of
from a2a_serverless_tools.stack.environments import find_uv
from a2a_serverless_tools.stack.library import CHECKOUT
from a2a_serverless_tools.stack.new_project import create, eject, lock
from a2a_serverless_tools.stack.paths import find
from a2a_serverless_tools.stack.sam import FUNCTIONS
from tests.stack.indexes import TAKEN, Index, locked, serving
from tests.stack.wheels import dist, wheels_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["dist"]
RELEASED = re.compile(r"^## [\d.]+ - \d{4}-\d\d-\d\d$", re.MULTILINE)
pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Index]:
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_", "VIRTUAL_ENV"))]:
        monkeypatch.delenv(name)
    with serving({**locked(), **TAKEN}) as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.setenv("UV_PYTHON", sys.executable)
        monkeypatch.setenv("UV_NO_CONFIG", "1")
        yield index


@pytest.fixture
def project(index: Index, dist: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "night-shift"
    create(folder, lambda _: wheels_in(dist))
    assert lock(folder) == ""
    assert "pydantic" in index.asked
    return folder


def uv(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([find_uv(), *words], cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603


def test_the_index_of_the_test_offers_our_names(index: Index, tmp_path: Path) -> None:
    uv(tmp_path, "venv", "venv")
    done = uv(tmp_path, "pip", "install", "--python", "venv", *TAKEN)
    assert all(f" + {name}==99.0\n" in done.stderr for name in TAKEN)
    assert {*index.asked} == {*TAKEN}


def test_a_project_s_lock_has_the_wheels_in_the_project_and_a_digest_of_everything(project: Path, index: Index) -> None:
    text = (project / "uv.lock").read_text()
    locked = tomllib.loads(text)["package"]
    ours = {one["name"]: one for one in locked if one["name"] in TAKEN}
    assert {name: one["source"] for name, one in ours.items()} == {
        name: {"path": f"wheels/{name.replace('-', '_')}-0.1.0-py3-none-any.whl"} for name in TAKEN
    }
    others = [one for one in locked if one["source"] != {"virtual": "."}]
    assert len(others) > 15
    assert [one["name"] for one in others if not all("hash" in wheel for wheel in one["wheels"])] == []
    assert str(project) not in text
    assert "file:" not in text
    assert TAKEN.keys().isdisjoint(index.asked)


def test_a_colleague_installs_the_same_from_the_lock_in_another_folder(
    project: Path, index: Index, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere" / "night-shift"
    shutil.copytree(project, elsewhere)
    shutil.rmtree(project)
    done = uv(elsewhere, "sync", "--locked")
    assert done.returncode == 0, done.stderr
    asked = [
        "import a2a_serverless, a2a_webhook_receiver, importlib.metadata as m",
        "print(m.version('a2a-serverless'))",
    ]
    said = uv(elsewhere, "run", "--no-sync", "python", "-c", "; ".join(asked))
    assert said.stdout == "0.1.0\n", said.stderr
    assert TAKEN.keys().isdisjoint(index.asked)


def test_a_wheel_that_was_exchanged_is_refused(project: Path) -> None:
    (wheel,) = (project / "wheels").glob("a2a_webhook_receiver-*")
    with wheel.open("ab") as file:
        file.write(b"\0")
    done = uv(project, "sync", "--locked")
    assert done.returncode != 0
    assert "ash" in done.stderr


@pytest.mark.parametrize("ejected", [False, True], ids=["the library's functions", "ejected ones"])
def test_no_requirement_of_a_function_installs_the_library(ejected: bool, project: Path) -> None:  # noqa: FBT001
    if ejected:
        eject(read_project(project))
    folders = [path.parent for path in find(project).sources.glob("functions/*/requirements.txt")]
    assert len(folders) == len(FUNCTIONS)
    for folder in folders:
        base = base_of(f"{folder.name.title()}Function", folder, read_project(project), runs_agents=True)
        assert "a2a_serverless" in base.packages
        assert [line for line in base.requirements if "a2a" in line] == []


def test_packages_of_an_agent_are_installed_by_the_digests_of_the_lock(project: Path, index: Index) -> None:
    worker = base_of("worker", CHECKOUT / "functions/worker", read_project(project), runs_agents=True)
    (project / "constraints.txt").write_text(worker.constraints)
    assert uv(project, "venv", "--clear", "venv").returncode == 0
    install = ("pip", "install", "--no-deps", "--python", "venv", "-c", "constraints.txt", "rfc8785")
    done = uv(project, *install)
    assert (done.returncode, "+ rfc8785==" in done.stderr) == (0, True), done.stderr
    index.changed.add("rfc8785")
    assert uv(project, *install, "--reinstall", "--no-cache").returncode != 0


@pytest.mark.skipif(bool(RELEASED.search((CHECKOUT / "CHANGELOG.md").read_text())), reason="a release has the names")
def test_no_document_tells_users_to_install_our_names_from_an_index() -> None:
    command = re.compile(
        r"(?:pip|tool|uv) (?:install|add|run --with)\b[^\n`]*?[\s'\"]a2a-(?:serverless|webhook-receiver)\b"
    )
    texts = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout  # noqa: S607
    found = [
        name
        for name in texts.split("\0")
        if name.endswith((".md", ".py", ".toml", ".txt", ".yml", "Makefile"))
        and not name.startswith("tests/")
        and name != "CHANGELOG.md"
        and command.search((CHECKOUT / name).read_text())
    ]
    assert found == []
