"""The Python that a build compiles with: it is offered where it is missing. A stand-in plays uv."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.interpreters import ensure_interpreter, interpreter
from a2a_serverless_tools.stack.paths import Paths
from tests.stack.projects import HERE, write_program

if TYPE_CHECKING:
    from pathlib import Path

MISSING = "python3.99"
# Has Python 3.99 once it was told to install it.
UV = """#!/bin/sh
echo "$@" >> calls
case "$1 $2" in
"python install") {install} ;;
"python find") if [ -f installed ]; then echo /opt/python3.99; else echo "error: none" >&2; exit 2; fi ;;
esac
"""
WORKS, FAILS = "echo yes > installed", 'echo "error: Failed to install"; echo "  cause: dns error"; exit 1'


class Machine:
    """A machine without Python 3.99, whose user answers a question."""

    def __init__(self, folder: Path, *, install: str = WORKS, answer: bool | None = None) -> None:
        self.paths = Paths(folder, folder)
        self.uv = str(folder / "uv")
        self.answer = answer
        self.asked: list[str] = []
        self.shown = io.StringIO()
        write_program(folder / "uv", UV.format(install=install).replace("installed", f"{folder}/installed"))

    def ask(self, question: str) -> bool:
        self.asked.append(question)
        return bool(self.answer)

    def ensure(self, runtime: str = MISSING) -> None:
        ask = None if self.answer is None else self.ask
        ensure_interpreter(self.paths, runtime, ask, Console(file=self.shown, width=200), self.uv)

    def is_installed(self) -> bool:
        return (self.paths.root / "installed").exists()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_interpreter_of_a_runtime_is_of_that_version() -> None:
    asked = subprocess.run([interpreter(HERE.runtime), "--version"], capture_output=True, text=True, check=True)  # noqa: S603
    assert asked.stdout.startswith(f"Python {HERE.runtime.removeprefix('python')}.")


def test_a_python_that_is_missing_is_offered_and_installed_on_yes(folder: Path) -> None:
    machine = Machine(folder, answer=True)
    machine.ensure()
    (question,) = machine.asked
    assert "no python3.99 to compile with" in question
    assert "python install 3.99`?" in question
    assert "✓ Installing python3.99" in machine.shown.getvalue()
    assert str(interpreter(MISSING, machine.uv)) == "/opt/python3.99"


@pytest.mark.parametrize("answer", [False, None], ids=["no", "no terminal"])
def test_no_interpreter_is_installed_without_a_yes_and_the_command_is_named(
    folder: Path, *, answer: bool | None
) -> None:
    machine = Machine(folder, answer=answer)
    with pytest.raises(StackError, match=r"no python3\.99 to compile with") as refused:
        machine.ensure()
    assert "python install 3.99`, or build for another Runtime" in refused.value.remedy
    assert not machine.is_installed()


def test_the_command_names_uv_by_its_path_where_the_path_does_not_lead_to_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(folder, answer=True)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    machine.ensure()
    assert f"`{machine.uv} python install 3.99`" in machine.asked[0]


def test_an_installation_that_fails_says_why_and_what_helps(folder: Path) -> None:
    machine = Machine(folder, install=FAILS, answer=True)
    with pytest.raises(StackError, match="uv python install: cause: dns error") as failed:
        machine.ensure()
    assert failed.value.remedy.startswith("install Python 3.99 in another way")
    assert "✗ Installing python3.99" in machine.shown.getvalue()
    assert failed.value.log
    assert "Failed to install" in (folder / failed.value.log).read_text()


@pytest.mark.parametrize("runtime", [HERE.runtime, MISSING])
def test_a_python_that_is_there_is_not_offered(folder: Path, runtime: str) -> None:
    machine = Machine(folder, answer=True)
    (folder / "installed").touch()
    machine.ensure(runtime)
    assert machine.asked == []
    assert str(interpreter(runtime, machine.uv)) in {sys.executable, "/opt/python3.99"}
