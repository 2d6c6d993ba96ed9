"""The requirements of the specification (``requirements.toml``), with the tests and deviations that refer to them."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS: Final = Path(__file__).parent
DEVIATIONS: Final = TESTS.parent / "docs" / "deviations.md"
MARK: Final = "pytest.mark.requirement"


@dataclass(frozen=True)
class Requirement:
    """A row. ``deviations`` are keys of docs/deviations.md; ``because`` says why it does not apply to a server."""

    number: int
    section: str
    level: Literal["MUST", "SHOULD", "MUST and SHOULD", "SHOULD and MUST"]
    of: str
    says: str
    deviations: tuple[str, ...] = ()
    because: str = ""

    @property
    def ours(self) -> bool:
        """True if it applies to a server."""
        return self.of in {"server", "both"}


@cache
def requirements() -> tuple[Requirement, ...]:
    """Returns the rows in their order."""
    rows = tomllib.loads((TESTS / "requirements.toml").read_text())["requirement"]
    return tuple(Requirement(**{**row, "deviations": tuple(row.get("deviations", ()))}) for row in rows)


@cache
def marked_tests() -> dict[int, list[str]]:
    """Returns the marked tests (pytest ids) by row number. Raises ValueError for a mark on anything but a test."""
    found = defaultdict(list)
    for path in sorted(TESTS.rglob("*.py")):
        source = path.read_text()
        for name, numbers in _marked(ast.parse(source)) if f"@{MARK}" in source else ():
            node = f"{path.relative_to(TESTS.parent)}::{name}"
            if not (path.name.startswith("test_") and name.startswith("test_")):
                raise ValueError(f"{node} is no test")
            for number in numbers:
                found[number].append(node)
    return dict(found)


def rows_by_deviation() -> dict[str, list[int]]:
    """Returns the row numbers of each deviation in docs/deviations.md, by its key."""
    rows = re.findall(r"^\| `([\w-]+)` \|.*\|([\d, ]*)\|$", DEVIATIONS.read_text(), re.MULTILINE)
    return {key: [int(number) for number in numbers.split(",") if number.strip()] for key, numbers in rows}


def _marked(tree: ast.Module) -> Iterator[tuple[str, list[int]]]:
    """Yields the marked functions and classes of a module, and the numbers in their marks."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for one in node.decorator_list:
                if isinstance(one, ast.Call) and ast.unparse(one.func) == MARK:
                    yield node.name, [ast.literal_eval(argument) for argument in one.args]
