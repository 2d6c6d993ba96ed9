"""What is published: the wheels and the source archives hold all that they need, and nothing else."""

from __future__ import annotations

import subprocess
import tarfile
import zipfile
from typing import TYPE_CHECKING, get_args

import pytest
from packaging.metadata import Metadata

from a2a_serverless_tools.cli.stack import FrameworkName
from a2a_serverless_tools.stack.library import CHECKOUT
from a2a_serverless_tools.stack.wheels import SOURCES
from tests.stack.wheels import dist, wheels_in

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["dist"]

ASSETS = "a2a_serverless_tools/assets/"
PLACES = (
    *("events", "examples/project", "examples/test_shop.py", "functions", "observability.yaml"),
    *(f"examples/{name.replace('-', '_')}_agent.py" for name in get_args(FrameworkName)),
    "requirements/emulator.txt",
    *("requirements/functions.txt", "requirements/sam.txt", "samconfig.example.toml", "template.yaml"),
)


def files_in(dist: Path, name: str) -> dict[str, bytes]:
    """The files of a distribution's wheel."""
    with zipfile.ZipFile(wheels_in(dist)[name]) as archive:
        return {one: archive.read(one) for one in archive.namelist()}


def in_checkout(folder: str) -> set[str]:
    listed = subprocess.run(  # noqa: S603
        ["git", "ls-files", folder],  # noqa: S607
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {*listed.stdout.split()}


def sources_of(package: str) -> set[str]:
    """The files of a package in the checkout, but for those that only its build reads."""
    names = {name.removeprefix("shared/") for name in in_checkout(f"shared/{package}")}
    return names - {f"{package}/{name}" for name in ("hatch_build.py", "pyproject.toml")}


@pytest.mark.parametrize("name", ["a2a-serverless", "a2a-serverless-frameworks"])
def test_a_wheel_has_its_package_and_nothing_else(name: str, dist: Path) -> None:
    names = {one for one in files_in(dist, name) if ".dist-info/" not in one}
    assert names == sources_of(name.replace("-", "_"))


def test_the_wheel_of_the_tools_has_every_file_that_the_commands_need_and_no_other(dist: Path) -> None:
    found = files_in(dist, "a2a-serverless-tools")
    assets = {name.removeprefix(ASSETS): content for name, content in found.items() if name.startswith(ASSETS)}
    assert assets == {one: (CHECKOUT / one).read_bytes() for place in PLACES for one in in_checkout(place)}
    names = {name for name in found if not name.startswith(ASSETS) and ".dist-info/" not in name}
    assert names == sources_of("a2a_serverless_tools")


def test_no_wheel_has_a_sample(dist: Path) -> None:
    assert not [one for name in SOURCES for one in files_in(dist, name) if "sample_agents/" in one]


@pytest.mark.parametrize("name", SOURCES)
def test_a_package_index_can_read_a_wheel_and_it_names_no_installer(name: str, dist: Path) -> None:
    (metadata,) = [content for one, content in files_in(dist, name).items() if one.endswith(".dist-info/METADATA")]
    read = Metadata.from_email(metadata, validate=True)
    assert (read.name, read.license_expression) == (name, "Apache-2.0")
    assert not [one for one in read.requires_dist or () if one.name == "uv"]


def test_the_extras_that_people_type_bring_the_other_distributions(dist: Path) -> None:
    (metadata,) = [one for name, one in files_in(dist, "a2a-serverless").items() if name.endswith("/METADATA")]
    needs = Metadata.from_email(metadata, validate=True).requires_dist or []
    brought = {
        extra: {one.name for one in needs if one.marker and one.marker.evaluate({"extra": extra})}
        for extra in ("cli", "a2a-sdk", "adk", "langgraph", "openai-agents", "pydantic-ai", "strands")
    }
    assert brought.pop("cli") == {"a2a-serverless-tools"}
    assert {*map(frozenset, brought.values())} == {frozenset({"a2a-serverless-frameworks"})}


@pytest.mark.parametrize("name", ["a2a-serverless", "a2a-serverless-tools"])
def test_a_source_archive_has_what_a_wheel_is_built_from_and_no_tests(name: str, dist: Path) -> None:
    (path,) = dist.glob(f"{name.replace('-', '_')}-*.tar.gz")
    with tarfile.open(path) as archive:
        names = {one.partition("/")[2] for one in archive.getnames()}
    needed = {
        "a2a-serverless": {"LICENSE", "README.md", "pyproject.toml", "shared/a2a_serverless/settings.py"},
        "a2a-serverless-tools": {"pyproject.toml", "hatch_build.py", "stack/build.py", "assets/template.yaml"},
    }
    assert needed[name] <= names
    assert not [one for one in names if one.startswith(("tests", "bench", ".a2a", "shared/sample_agents"))]
