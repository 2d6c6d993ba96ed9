"""The snippets of a framework's page, and the tests in them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, Final

PAGES: Final = Path(__file__).parents[2] / "docs" / "frameworks"


@cache
def names_of(page: str) -> dict[str, Any]:
    """The names that the page defines, once all its blocks have run in their order."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (PAGES / page).read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"__name__": page}
    exec(compile("\n".join(blocks), page, "exec", dont_inherit=True), names)  # noqa: S102 - our own page
    return names


def page_tests(page: str) -> list[str]:
    """The names of the tests on the page."""
    return re.findall(r"^def (test_\w+)", (PAGES / page).read_text(), re.MULTILINE)
