"""What ``dev`` is told of saves."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from a2a_serverless_tools.dev.watching import watch_project
from a2a_serverless_tools.project import read_project
from tests.dev.terminal import DEADLINE_S, make_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Over(Exception):
    """The test has seen enough."""


def watch(root: Path, changed: Callable[[set[Path]], None], ready: Callable[[], None]) -> None:
    """Watches until ``changed`` raises ``Over``."""

    async def tell(files: set[Path]) -> None:
        changed(files)

    async def watching() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await watch_project(read_project(root), tell, ready)

    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(watching())
    assert raised.group_contains(Over)


def test_a_save_is_told_once_also_if_the_file_s_mode_is_set_after_it(tmp_path: Path) -> None:
    folder = make_project(tmp_path, one="", other="").root / "workshop"
    saves = [folder / name for name in ("one.py", "other.py", "one.py")]
    expected = [{path} for path in saves]
    told = []

    def save() -> None:
        saves.pop(0).write_text(f"# {len(saves)}\n")

    def changed(files: set[Path]) -> None:
        told.append(files)
        for file in files:
            file.chmod(0o600)
        if not saves:
            raise Over
        save()

    watch(tmp_path, changed, save)
    assert told == expected


def test_a_file_that_is_removed_and_comes_back_is_told_each_time(tmp_path: Path) -> None:
    file = make_project(tmp_path, one="").root / "workshop/one.py"
    told = []

    def changed(_: set[Path]) -> None:
        told.append(file.exists())
        if len(told) == 3:
            raise Over
        if told[-1]:
            file.unlink()
        else:
            file.write_text("# again\n")

    def ready() -> None:
        file.write_text("# new\n")

    watch(tmp_path, changed, ready)
    assert told == [True, False, True]


CHECKOUT_PROGRAM = """
import sys
from a2a_serverless_tools.dev.loading import load_project
from a2a_serverless_tools.project import read_project
from a2a_serverless_tools.stack.library import CHECKOUT

before = {name: module for name, module in sys.modules.items() if name.startswith("a2a_")}
load_project(read_project(CHECKOUT))
print([name for name, module in before.items() if sys.modules[name] is not module])
"""


def test_in_the_checkout_no_module_of_the_library_is_imported_anew() -> None:
    done = subprocess.run([sys.executable, "-c", CHECKOUT_PROGRAM], capture_output=True, text=True, check=True)  # noqa: S603 - this Python
    assert done.stdout == "[]\n"
