"""The receiver's wheel alone, with its extras, in an environment of its own: what its README shows runs there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from a2a_serverless_tools.stack.environments import find_uv
from tests.docs.documents import ROOT, blocks

if TYPE_CHECKING:
    from pathlib import Path

RECEIVER = ROOT / "webhook_receiver"
AFTER = """
import inspect
from a2a_webhook_receiver import app as whole

assert push_config["url"] == settings.audience and push_config["token"]
page = TestClient(whole.app(), base_url="http://127.0.0.1:8010", client=("127.0.0.1", 5000)).get("/")
assert "</html>" in page.text and "{{" not in page.text
assert callable(handler)
assert "site-packages" in inspect.getfile(whole)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel, its extras and httpx, from uv's cache."""
    folder = tmp_path_factory.mktemp("package")
    build = ["build", "--wheel", "--no-build-isolation", "--python", sys.executable, "--out-dir", str(folder)]
    _uv(*build, str(RECEIVER))
    (wheel,) = folder.glob("*.whl")
    (httpx,) = re.findall(r"^httpx==\S+", (ROOT / "requirements/sdk-1.txt").read_text(), re.MULTILINE)
    _uv("venv", "--python", sys.executable, str(folder / "venv"))
    found = folder / "venv/bin/python"
    install = ["pip", "install", "--python", str(found), "--constraint", str(ROOT / "requirements/dev.txt")]
    try:
        _uv(*install, "--offline", f"{wheel}[server,aws]", httpx)
    except subprocess.CalledProcessError:  # the cache has not all of it
        _uv(*install, f"{wheel}[server,aws]", httpx)
    return found


def _uv(*arguments: str) -> None:
    subprocess.run([find_uv(), *arguments, "--quiet"], check=True)  # noqa: S603 - uv, by path


@pytest.mark.enable_socket
def test_the_examples_of_the_readme_run_with_the_wheel_alone(python: Path, tmp_path: Path) -> None:
    assert "uvicorn --factory a2a_webhook_receiver.app:app " in (RECEIVER / "README.md").read_text()
    shown = [block.text for block in blocks("python", RECEIVER / "README.md")]
    assert len(shown) == 4
    described = {"ISSUER": "http://127.0.0.1:8000", "AUDIENCE": "http://127.0.0.1:8010/webhook", "PATH": os.defpath}
    (tmp_path / "shown.py").write_text("\n".join([*shown, AFTER]))
    command = [str(python), "-I", "shown.py"]
    done = subprocess.run(command, cwd=tmp_path, env=described, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert done.stdout == "task-1 completed\n"
