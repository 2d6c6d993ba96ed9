"""AWS's own DynamoDB Local, from Maven Central: the only twin that reports capacity and conflicts as DynamoDB does."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import pytest

from a2a_serverless_tools.stack.paths import CHECKOUT, Paths
from a2a_serverless_tools.stack.processes import claim_port, start, stop, wait_until_ready

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE: Final = Path(__file__).parent / "dynamodb_local_files"
JARS: Final = CHECKOUT / ".a2a/dynamodb-local"


@contextmanager
def dynamodb_local(state: Path) -> Iterator[str]:
    """Runs it, empty, and gives its address. Skips the test in words when this machine cannot run it."""
    java, paths = _tool("java"), Paths(CHECKOUT, state)
    libraries = _libraries()
    port = claim_port("dynamodb-local", 0)
    command = [java, "-Xmx384m", "-XX:TieredStopAtLevel=1", f"-Djava.library.path={libraries}", "-cp", f"{libraries}/*"]
    options = ["-inMemory", "-disableTelemetry", "-port", str(port)]
    process = start(paths, "dynamodb-local", [*command, HERE / "Loopback.java", *options], os.environ, port=port)
    try:
        wait_until_ready(process, "/", seconds=60)
        yield process.url
    finally:
        stop(paths, process)


def _libraries() -> Path:
    """The folder of jars and native libraries, copied on the first use."""
    if not JARS.is_dir():
        JARS.parent.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=JARS.parent) as folder:
            _copy(Path(folder) / "jars")
            shutil.move(Path(folder) / "jars", JARS)
    return JARS


def _copy(folder: Path) -> None:
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
    command = [_tool("mvn"), "--quiet", "--batch-mode", "--file", str(HERE / "pom.xml"), *goal]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    if done.returncode:
        pytest.skip(f"DynamoDB Local could not be fetched: {done.stdout.strip().splitlines()[:1]}")


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed: the contract is not checked against DynamoDB Local")
    return path
