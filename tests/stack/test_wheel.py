"""What is published: the wheel and the source archive hold all that the commands need, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.metadata import Metadata

from a2a_serverless.stack.library import CHECKOUT
from tests.stack.wheels import dist

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["dist"]

ASSETS = "a2a_serverless/assets/"
FOLDERS = ("events", "examples", "functions", "shared/sample_agents")
FILES = (
    "observability.yaml",
    "pyproject.toml",
    "requirements/emulator.txt",
    "requirements/functions.txt",
    "requirements/sam.txt",
    "samconfig.example.toml",
    "template.yaml",
    "webhook_receiver/pyproject.toml",
)


@pytest.fixture
def wheel(dist: Path) -> Iterator[zipfile.ZipFile]:
    (path,) = dist.glob("a2a_serverless-*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def in_checkout(folder: str) -> set[str]:
    listed = subprocess.run(  # noqa: S603
        ["git", "ls-files", folder],  # noqa: S607
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {*listed.stdout.split()}


def test_the_wheel_has_every_file_that_the_commands_need_and_no_other(wheel: zipfile.ZipFile) -> None:
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    library = {name.removeprefix("shared/") for name in in_checkout("shared/a2a_serverless")}
    assets = {f"{ASSETS}{name}" for name in [*FILES, *(name for folder in FOLDERS for name in in_checkout(folder))]}
    assert names == library | assets


def test_the_assets_are_the_checkout_s_files(wheel: zipfile.ZipFile) -> None:
    for name in (one for one in wheel.namelist() if one.startswith(ASSETS)):
        assert wheel.read(name) == (CHECKOUT / name.removeprefix(ASSETS)).read_bytes(), name


def test_what_a_package_index_reads_is_valid(wheel: zipfile.ZipFile) -> None:
    (name,) = [one for one in wheel.namelist() if one.endswith(".dist-info/METADATA")]
    said = Metadata.from_email(wheel.read(name), validate=True)
    assert (said.name, said.license_expression, said.description_content_type) == (
        "a2a-serverless",
        "Apache-2.0",
        "text/markdown",
    )
    assert not [one for one in said.requires_dist or () if one.name == "uv"]
    assert {"cli", "egress", "http", "jwt", "seal", "card", "picture"} <= set(said.provides_extra or ())


def test_the_source_archive_has_what_a_wheel_is_built_from_and_no_tests(dist: Path) -> None:
    (path,) = dist.glob("a2a_serverless-*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "template.yaml", "shared/a2a_serverless/stack/build.py"} <= names
    assert not [name for name in names if name.startswith(("tests", "bench", ".a2a"))]


def test_without_the_extra_the_command_says_which_one_to_install(dist: Path, tmp_path: Path) -> None:
    (path,) = dist.glob("a2a_serverless-*.whl")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path)  # noqa: S202 - our own
    command = [sys.executable, "-S", "-c", "from a2a_serverless.cli import main; main()"]
    done = subprocess.run(command, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 1
    assert done.stderr.endswith(f"as in pip install './{path.name}[cli]'\n")
    assert len(done.stderr.splitlines()) == 1
