"""Each distribution and some extras in an empty environment: `make release` runs this, and `make integration` does not.

This project's distributions are the built ones. Everything else comes from the package index, which may have this
project's names of somebody else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest

from a2a_serverless_tools.stack.environments import find_uv, package_index
from a2a_serverless_tools.stack.library import CHECKOUT
from a2a_serverless_tools.stack.wheels import SOURCES
from tests.stack.indexes import TAKEN, Index, serving
from tests.stack.wheels import JAVASCRIPT, dist, npm_package, wheels_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["dist", "npm_package"]
pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]

IMPORTED = {
    "a2a-serverless": "a2a_serverless.agent",
    "a2a-serverless-frameworks": "a2a_serverless_frameworks",
    "a2a-serverless-tools": "a2a_serverless_tools.cli",
    "a2a-serverless[client]": "a2a_serverless.http_client.exchange",
    "a2a-serverless[cli]": "a2a_serverless.testing",
    "a2a-serverless[langgraph]": "a2a_serverless_frameworks.langgraph",
    "a2a-webhook-receiver": "a2a_webhook_receiver.verifier",
    "a2a-webhook-receiver[server]": "a2a_webhook_receiver.app",
}
PROGRAM = ("a2a-serverless-tools", "a2a-serverless[cli]")


@pytest.fixture(scope="module")
def taken() -> Iterator[Index]:
    """An index that is asked before the usual one, on which somebody else has the names."""
    with serving(TAKEN) as index:
        yield index
    assert index.asked == []


@pytest.mark.parametrize("requirement", IMPORTED)
def test_each_distribution_is_installed_alone_and_can_be_imported(
    requirement: str, dist: Path, taken: Index, tmp_path: Path
) -> None:
    ours = tmp_path / "ours.txt"
    ours.write_text("".join(f"{name} @ {wheel.as_uri()}\n" for name, wheel in wheels_in(dist).items()))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    environment |= {"UV_INDEX": taken.url, **package_index()}

    def run(*command: str | Path) -> str:
        done = subprocess.run(  # noqa: S603 - uv, and what it has installed
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    bin_, uv = tmp_path / "venv/bin", find_uv()
    run(uv, "venv", "--quiet", "--python", sys.executable, "venv")
    run(uv, "pip", "install", "--quiet", "--python", "venv", "--constraint", ours, requirement)
    run(uv, "pip", "check", "--python", "venv")
    name, _, attribute = IMPORTED[requirement].rpartition(".")
    run(bin_ / "python", "-W", "error", "-c", f"from {name} import {attribute}" if name else f"import {attribute}")
    installed = run(uv, "pip", "list", "--python", "venv", "--format", "freeze").split()
    assert requirement.partition("[")[0] in {line.partition("==")[0] for line in installed} & SOURCES.keys()
    if requirement in PROGRAM:
        assert "init" in run(bin_ / "a2a-serverless", "--help")


def test_the_npm_package_is_installed_alone_and_reaches_the_verdict_of_every_vector(
    npm_package: Path, tmp_path: Path
) -> None:
    """Its tests, which are not in it, are pointed at what was installed; no registry is asked."""
    source, (node, npm) = CHECKOUT / JAVASCRIPT, (str(shutil.which(name)) for name in ("node", "npm"))
    with tarfile.open(npm_package) as archive:
        packed = {name.removeprefix("package/") for name in archive.getnames()}
    files = {path.name for pattern in ("*.js", "*.d.ts") for path in source.glob(pattern)}
    assert packed == files | {"LICENSE", "README.md", "package.json"}
    (tmp_path / "package.json").write_text('{"private": true, "type": "module"}')
    offline = ["--offline", "--no-audit", "--no-fund", "--silent"]
    subprocess.run([npm, "install", *offline, str(npm_package)], cwd=tmp_path, check=True)  # noqa: S603 - npm, by path
    (tmp_path / "tests").mkdir()
    for test in (source / "tests").iterdir():
        text = test.read_text().replace("../../vectors/vectors.json", str(source.parent / "vectors/vectors.json"))
        for module in ("node", "lambda", "index"):
            name = "a2a-webhook-receiver" if module == "index" else f"a2a-webhook-receiver/{module}"
            text = text.replace(f'"../{module}.js"', f'"{name}"')
        assert '"../' not in text
        (tmp_path / "tests" / test.name).write_text(text)
    done = subprocess.run([node, "--test", "tests/"], cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout
    assert "# skipped 0" in done.stdout.splitlines()
