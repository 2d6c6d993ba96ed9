"""Projects for benchmarks, as `a2a-serverless init` makes them, in `.a2a/bench`, with this checkout's environments."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

from a2a_serverless_tools.stack.new_project import create
from measuring import ROOT

if TYPE_CHECKING:
    from pathlib import Path

AGENT: Final = "tailor"  # of a new project
# What is named by a digest of its contents is shared with the checkout, and not made again by the next run.
SHARED: Final = ("venvs", "bases", "templates", "compiled", "zips")


def make_project(name: str) -> Path:
    """Makes a new project in place of one with the same name; returns its folder."""
    parent = ROOT / ".a2a/bench"
    shutil.rmtree(parent / name, ignore_errors=True)
    parent.mkdir(parents=True, exist_ok=True)
    create(parent / name)
    home = parent / name / ".a2a"
    home.mkdir()
    for shared in SHARED:
        (ROOT / ".a2a" / shared).mkdir(exist_ok=True)
        (home / shared).symlink_to(ROOT / ".a2a" / shared)
    return parent / name


def agent_file(project: Path) -> Path:
    """Returns the file of a new project's agent."""
    return project / project.name.replace("-", "_") / f"{AGENT}.py"
