"""What a user has to learn does not grow unseen: the ledger has each count, and a reason for it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from a2a_serverless.settings import Settings
from a2a_serverless_tools.cli.app import make_app
from a2a_serverless_tools.project import Project
from tests.docs import words
from tests.functions.template import template

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text()
LEDGER = tomllib.loads((ROOT / "tests/ledger.toml").read_text())


def commands(group: Any) -> int:
    """The commands of a group and of the groups in it."""
    return sum(commands(one) if hasattr(one, "commands") else 1 for one in group.commands.values())


def counts() -> dict[str, int]:
    """What there is now."""
    return {
        "commands": commands(typer.main.get_command(make_app())),
        "make": len(re.findall(r"^[a-z-]+:.*## ", MAKEFILE, re.MULTILINE)),
        "kinds": len(re.findall(r"^prove/[a-z-]+:.*## ", MAKEFILE, re.MULTILINE)),
        "pages": len(words.pages()),
        "parameters": len(template()["Parameters"]),
        "settings": len(Settings.model_fields) - 1,  # `values` is none
        "project": len(Project.model_fields) - 3,  # root, name and dependencies are Python's own
    }


@pytest.mark.parametrize("name", LEDGER)
def test_a_count_is_the_one_in_the_ledger_which_has_a_reason(name: str) -> None:
    assert counts()[name] == LEDGER[name]["count"], "write the new count and its reason into tests/ledger.toml"
    assert LEDGER[name]["reason"]


def test_the_ledger_has_every_count() -> None:
    assert LEDGER.keys() == counts().keys()
