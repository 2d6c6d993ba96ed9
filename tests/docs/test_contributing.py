"""The first tests of CONTRIBUTING.md pass, and fail after the changes of the code that it names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.browser import NEEDED
from tests.docs.documents import ROOT
from tests.test_names import fault_of

if TYPE_CHECKING:
    from collections.abc import Iterator

CHAPTER: Final = (ROOT / "CONTRIBUTING.md").read_text().partition("## Write your first test\n")[2].partition("\n## ")[0]
SAVED: Final = re.compile(r"Save this as `(\S+)`, and run `\.venv/bin/([^`]+)`:")
CHANGED: Final = re.compile(r"Replace `([^`]+)` by `([^`]+)` in `([^`]+)`")
COPIED: Final = ("functions", "shared", "tests", "webhook_receiver")
NODE_MODULES: Final = "tests/webhook_receiver/browser/node_modules"
PASSED, FAILED = 0, 1
SECONDS: Final = 600


@dataclass(frozen=True)
class Example:
    """A test, the command that runs it, and a change of the code with which it fails."""

    path: str
    command: str
    text: str
    old: str
    new: str
    changed: str


def examples() -> Iterator[Example]:
    """Yields each Python block with the command before it and the change after it."""
    parts = CHAPTER.split("```")
    for before, block, after in zip(parts[::2], parts[1::2], parts[2::2], strict=False):
        saved, changed = SAVED.search(" ".join(before.split())), CHANGED.search(" ".join(after.split()))
        assert saved, before
        assert changed, after
        yield Example(saved[1], saved[2], block.removeprefix("python\n"), changed[1], changed[2], changed[3])


EXAMPLES: Final = {Path(one.path).parent.name: one for one in examples()}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code and the tests, which a test may change."""
    copy = tmp_path_factory.mktemp("checkout")
    shutil.copyfile(ROOT / "pyproject.toml", copy / "pyproject.toml")
    for folder in COPIED:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    (copy / NODE_MODULES).symlink_to(ROOT / NODE_MODULES)
    return copy


def run(checkout: Path, command: str) -> tuple[int, str]:
    """Runs a program of this environment on the copy; returns its exit code and what it prints."""
    program, *arguments = command.split()
    done = subprocess.run(  # noqa: S603 - a command of our own document
        [Path(sys.executable).parent / program, *arguments],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout / "shared"), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout


def test_the_chapter_has_a_test_of_the_engine_the_protocol_and_a_page() -> None:
    assert [*EXAMPLES] == ["engine", "handlers", "console"]


@pytest.mark.integration
@pytest.mark.parametrize("name", [pytest.param(name, marks=NEEDED if name == "console" else ()) for name in EXAMPLES])
def test_a_first_test_passes_until_a_contributor_makes_the_change_below_it(checkout: Path, name: str) -> None:
    example = EXAMPLES[name]
    assert [fault_of(test) for test in re.findall(r"def (test_\w+)", example.text)] == [None]
    (checkout / example.path).write_text(example.text)
    for tool in ("ruff check", "ruff format --check"):
        assert run(checkout, f"{tool} {example.path}")[0] == PASSED
    code, said = run(checkout, example.command)
    assert code == PASSED, said
    assert "skipped" not in said, said
    source = checkout / example.changed
    before, text = source.read_text(), source.read_text()
    assert text.count(example.old) == 1
    source.write_text(text.replace(example.old, example.new))
    code, said = run(checkout, example.command)
    source.write_text(before)
    assert code == FAILED, said
    assert "AssertionError" in said, said
