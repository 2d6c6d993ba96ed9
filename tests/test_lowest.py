"""The lower bounds of the dependencies are versions that were installed and tested together (``make lowest``)."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from a2a_serverless_tools.stack.library import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

FRAMEWORKS = {"a2a-sdk", "adk", "langgraph", "openai-agents", "pydantic-ai", "strands"}  # in environments of their own


def bounds(file: Path) -> dict[str, Version]:
    """The lower bound of each dependency of a package, its extras' too."""
    package = tomllib.loads(file.read_text())["project"]
    extras = [lines for name, lines in package["optional-dependencies"].items() if name not in FRAMEWORKS]
    needed = [Requirement(line) for lines in (package["dependencies"], *extras) for line in lines]
    return {
        canonicalize_name(one.name): Version(bound.version)
        for one in needed
        for bound in one.specifier
        if bound.operator == ">=" and not one.name.startswith("a2a-")
    }


LOCKED = dict(re.findall(r"^([\w.-]+)==([\w.]+)", (CHECKOUT / "requirements/lowest.txt").read_text(), re.MULTILINE))
BOUNDS = {
    (package, name): bound
    for package in (".", "webhook_receiver")
    for name, bound in bounds(CHECKOUT / package / "pyproject.toml").items()
}


@pytest.mark.parametrize(("package", "name"), BOUNDS)
def test_a_lower_bound_is_a_version_that_the_lowest_set_has(package: str, name: str) -> None:
    assert Version(LOCKED[name]) == BOUNDS[package, name]
