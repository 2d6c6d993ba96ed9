"""A new user gets from an empty folder and the wheels to a task that has survived its process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.docs.documents import ROOT, blocks
from tests.journeys.first_minute import ASK, MAKE, START, play
from tests.stack.wheels import dist

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["dist"]
pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]


def test_three_commands_lead_to_an_answer_and_the_task_survives_a_kill(dist: Path, tmp_path: Path) -> None:
    lines = [line.text for line in play(dist, tmp_path)]
    assert lines[:3] == [MAKE.format(wheels="dist/*.whl"), START, ASK]
    assert lines[3].startswith("kill -9")


def test_the_readme_shows_these_three_commands() -> None:
    shown = next(block for block in blocks("console", ROOT / "README.md") if block.needs == "an empty folder")
    wheels = "../a2a-serverless/dist/*/*.whl"
    assert [command.line for command in shown.commands()] == [MAKE.format(wheels=wheels), START, ASK]
