"""The wheels and the source archive, built from this checkout."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from a2a_serverless_tools.stack.environments import find_uv
from a2a_serverless_tools.stack.wheels import SOURCES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what is published. Each wheel is built from its source archive."""
    folder = tmp_path_factory.mktemp("dist")
    for source in SOURCES.values():
        options = ["--quiet", "--no-build-isolation", "--python", sys.executable, "--out-dir", str(folder)]
        command = [find_uv(), "build", *options, str(source)]
        subprocess.run(command, check=True, cwd=folder)  # noqa: S603 - uv, by path
    return folder


def wheels_in(dist: Path) -> dict[str, Path]:
    """The wheels by distribution."""
    return {name: next(dist.glob(f"{name.replace('-', '_')}-*.whl")) for name in SOURCES}
