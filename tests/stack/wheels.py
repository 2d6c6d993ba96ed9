"""The wheels and the source archive, built from this checkout."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.stack.environments import find_uv
from a2a_serverless.stack.library import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what is published. The wheel is built from the source archive."""
    folder = tmp_path_factory.mktemp("dist")
    for source in (CHECKOUT, CHECKOUT / "webhook_receiver"):
        options = ["--quiet", "--no-build-isolation", "--python", sys.executable, "--out-dir", str(folder)]
        command = [find_uv(), "build", *options, str(source)]
        subprocess.run(command, check=True, cwd=folder)  # noqa: S603 - uv, by path
    return folder


def wheels_in(dist: Path) -> list[Path]:
    """The library's wheel and the receiver's."""
    return [next(dist.glob(f"{name}-*.whl")) for name in ("a2a_serverless", "a2a_webhook_receiver")]
