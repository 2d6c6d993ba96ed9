"""The wheels, source archives and npm package, built from this checkout, or those of the release that is being made."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from a2a_serverless_tools.stack.environments import find_uv
from a2a_serverless_tools.stack.library import CHECKOUT
from a2a_serverless_tools.stack.wheels import SOURCES

JAVASCRIPT = Path("webhook_receiver/javascript")
RELEASE = "A2A_RELEASE"
"""The variable with which `make release` names its folder: ``dist``, ``npm``, and the ``source`` of both."""


def build(checkout: Path, folder: Path, *options: str) -> None:
    """Builds all distributions of a checkout into a folder, without ``options`` each wheel from its source archive."""
    shared = ["--quiet", "--no-build-isolation", "--no-create-gitignore", "--python", sys.executable]
    for source in SOURCES.values():
        place = checkout / source.relative_to(CHECKOUT)
        subprocess.run(  # noqa: S603 - uv, by path
            [find_uv(), "build", *shared, "--out-dir", str(folder), *options, str(place)], check=True, cwd=checkout
        )


def pack(checkout: Path, folder: Path) -> None:
    """Packs the npm package of a checkout into a folder, if npm is there."""
    if npm := shutil.which("npm"):
        folder.mkdir(parents=True, exist_ok=True)
        command = [npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", str(folder)]
        subprocess.run(command, check=True, cwd=checkout / JAVASCRIPT, stdout=subprocess.PIPE)  # noqa: S603 - npm, by path


@pytest.fixture(scope="session")
def npm_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The npm package as it is published."""
    if release := os.environ.get(RELEASE):
        folder = Path(release, "npm")
    else:
        pack(CHECKOUT, folder := tmp_path_factory.mktemp("npm"))
    if package := next(folder.glob("*.tgz"), None):
        return package
    pytest.skip("NPM PACKAGE NOT TESTED: no npm")


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what is published."""
    if release := os.environ.get(RELEASE):
        return Path(release, "dist")
    folder = tmp_path_factory.mktemp("dist")
    build(CHECKOUT, folder)
    return folder


@pytest.fixture(scope="session")
def source() -> Path:
    """The files that it is built from."""
    release = os.environ.get(RELEASE)
    return Path(release, "source") if release else CHECKOUT


def wheels_in(dist: Path) -> dict[str, Path]:
    """The wheels by distribution."""
    return {name: next(dist.glob(f"{name.replace('-', '_')}-*.whl")) for name in SOURCES}
