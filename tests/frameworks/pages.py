"""The snippets of a framework's page and the tests in them, and the test of a new project of a framework."""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from runpy import run_path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = ROOT / "docs" / "frameworks"


@cache
def names_of(page: str) -> dict[str, Any]:
    """The names that the page defines, once all its blocks have run in their order."""
    names: dict[str, Any] = {"__name__": page}
    exec(compile("\n".join(blocks_of(page)), page, "exec", dont_inherit=True), names)  # noqa: S102 - our own page
    return names


def blocks_of(page: str) -> list[str]:
    """The blocks of code on the page."""
    return re.findall(r"^```python\n(.*?)^```$", (PAGES / page).read_text(), re.MULTILINE | re.DOTALL)


def page_tests(page: str) -> list[str]:
    """The names of the tests on the page."""
    return re.findall(r"^def (test_\w+)", (PAGES / page).read_text(), re.MULTILINE)


def run_example(file: str) -> None:
    """Runs the test that ``init --from`` writes, with an example in the place of the project's agent."""
    spec = spec_from_file_location("my_agents.shop", ROOT / "examples" / file)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(file)
    sys.modules["my_agents.shop"] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    run_path(f"{ROOT / 'examples/test_shop.py'}")["test_the_shop_asks_before_it_orders"]()
