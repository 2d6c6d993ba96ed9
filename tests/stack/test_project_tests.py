"""A project's tests see what its functions see."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

TABLE = """
[project]
name = "shop"
[tool.a2a-serverless]
agents = ["shop:agent"]
[tool.a2a-serverless.environment]
SHOP_URL = {url}
"""
MODULE = "import os\n\nURL = os.environ['SHOP_URL']\n"
TEST = "import shop\n\n\ndef test_url():\n    print(shop.URL)\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(TABLE.format(url='"https://shop.example.com"'))
    (tmp_path / "shop.py").write_text(MODULE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_shop.py").write_text(TEST)
    return tmp_path


def run_tests(project: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "tests"]
    return subprocess.run(  # noqa: S603 - our Python
        command, cwd=project, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_a_module_that_reads_the_project_s_environment_when_it_is_imported_is_tested(project: Path) -> None:
    done = run_tests(project)
    assert "https://shop.example.com" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


def test_a_variable_of_the_terminal_counts_as_in_dev(project: Path) -> None:
    assert "https://other.example.com" in run_tests(project, SHOP_URL="https://other.example.com").stdout


def test_a_project_that_cannot_be_read_is_named(project: Path) -> None:
    (project / "pyproject.toml").write_text(TABLE.format(url="1"))
    done = run_tests(project)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "environment.SHOP_URL: Input should be a valid string" in done.stderr


def test_in_a_folder_without_a_project_nothing_is_set(project: Path) -> None:
    (project / "pyproject.toml").write_text("")
    assert "KeyError: 'SHOP_URL'" in run_tests(project).stdout
