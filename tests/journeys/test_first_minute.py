"""A new user gets from an empty folder and the wheels to a task that has survived its process."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import pytest

from tests.docs.documents import ROOT, blocks, check_shown, commands
from tests.journeys.first_minute import play, way_from
from tests.stack.wheels import dist

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["dist"]
pytestmark = [pytest.mark.enable_socket, pytest.mark.integration]


def test_three_commands_lead_to_an_answer_and_the_task_survives_a_kill(dist: Path, tmp_path: Path) -> None:
    way = way_from(f"{shlex.quote(str(dist))}/*.whl")
    lines = [line.text for line in play(way, tmp_path)]
    assert lines == [*way[:3], f"kill -9, then {way[1]}", way[3]]


def test_the_page_of_projects_shows_these_three_commands() -> None:
    text = (ROOT / "docs/projects.md").read_text().partition("\n## Without a checkout\n")[2]
    shown = [command.line for command in commands(text.partition("```console\n")[2].partition("```")[0])]
    assert shown == [*way_from("../a2a-serverless/dist/*/*.whl")[:3]]


def test_the_commands_of_the_readme_do_the_same_with_the_program_of_the_checkout(tmp_path: Path) -> None:
    shown = next(block for block in blocks("console", ROOT / "README.md") if block.needs == "an empty folder")
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / ".venv").symlink_to(sys.prefix)
    said = {line.text: line.said for line in play([command.line for command in shown.commands()], checkout)}
    assert len(said) == 5
    for command in shown.commands():
        check_shown(command.shown, said[command.line].splitlines())
    assert (tmp_path / "my-agents" / "pyproject.toml").exists()
