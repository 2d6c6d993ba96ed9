"""What ``init`` copies into a project, in a checkout and where the library is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from a2a_serverless_tools.stack.environments import find_uv
from a2a_serverless_tools.stack.wheels import make_wheels
from tests.stack.wheels import dist, wheels_in

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["dist"]
MAKE = """
import json, pathlib, sys
from a2a_serverless_tools.stack.wheels import make_wheels
folder = pathlib.Path(sys.argv[1])
folder.mkdir()
print(json.dumps({name: str(path) for name, path in make_wheels(folder).items()}))
"""


@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which all wheels are installed, with what they need installed elsewhere."""
    return installed_in(tmp_path_factory.mktemp("installed"), wheels_in(dist))


def installed_in(folder: Path, wheels: Mapping[str, Path]) -> Path:
    options = ["--quiet", "--no-deps", "--offline", "--python", sys.executable, "--target", str(folder)]
    subprocess.run([find_uv(), "pip", "install", *options, *wheels.values()], check=True)  # noqa: S603 - uv
    return folder


def packed(installed: Path, folder: Path, code: int = 0) -> tuple[dict[str, Path], str]:
    """The wheels that the installed library makes, and what is said on stderr."""
    command = [sys.executable, "-c", MAKE, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == code, done.stderr
    return {name: Path(path) for name, path in json.loads(done.stdout or "{}").items()}, done.stderr


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith(("/", "/RECORD"))}


def test_an_installed_library_makes_the_wheels_that_it_was_installed_from(
    installed: Path, dist: Path, tmp_path: Path
) -> None:
    made, _ = packed(installed, tmp_path / "one")
    assert [path.name for path in made.values()] == [path.name for path in wheels_in(dist).values()]
    assert [contents(path) for path in made.values()] == [contents(path) for path in wheels_in(dist).values()]


def test_the_same_installation_makes_the_same_bytes_and_these_can_be_installed_and_packed_again(
    installed: Path, tmp_path: Path
) -> None:
    first, _ = packed(installed, tmp_path / "one")
    again, _ = packed(installed_in(tmp_path / "again", first), tmp_path / "two")
    assert [path.read_bytes() for path in again.values()] == [path.read_bytes() for path in first.values()]


def test_a_file_that_was_changed_after_the_installation_is_refused(dist: Path, tmp_path: Path) -> None:
    installed = installed_in(tmp_path / "installed", wheels_in(dist))
    changed = installed / "a2a_webhook_receiver/jwks.py"
    changed.write_bytes(changed.read_bytes() + b"#")
    _, said = packed(installed, tmp_path / "one", code=1)
    assert "a2a_webhook_receiver/jwks.py was changed after its installation" in said


def test_a_checkout_builds_the_wheels_that_are_published(dist: Path, tmp_path: Path) -> None:
    made = make_wheels(tmp_path)
    assert {name: contents(path) for name, path in made.items()} == {
        name: contents(path) for name, path in wheels_in(dist).items()
    }
