"""What the specification asks for (``requirements.toml``), and what answers it: marked tests and written deviations."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

TESTS: Final = Path(__file__).parent
DEVIATIONS: Final = TESTS.parent / "docs" / "deviations.md"
MARK: Final = "pytest.mark.requirement"


@dataclass(frozen=True)
class Requirement:
    """A row. ``deviations`` are keys of docs/deviations.md; ``because``: why it is not for a server."""

    number: int
    section: str
    level: Literal["MUST", "SHOULD", "MUST and SHOULD", "SHOULD and MUST"]
    of: str
    says: str
    deviations: tuple[str, ...] = ()
    because: str = ""

    @property
    def ours(self) -> bool:
        """Whether it concerns a server."""
        return self.of in {"server", "both"}


@cache
def requirements() -> tuple[Requirement, ...]:
    """The rows in their order."""
    rows = tomllib.loads((TESTS / "requirements.toml").read_text())["requirement"]
    return tuple(Requirement(**{**row, "deviations": tuple(row.get("deviations", ()))}) for row in rows)


@cache
def marked_tests() -> dict[int, list[str]]:
    """The tests that name a row, by its number, as pytest names them. Raises ValueError for a mark on anything else."""
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
    """The numbers of the rows that each deviation names, by its key, as docs/deviations.md has them."""
    rows = re.findall(r"^\| `([\w-]+)` \|.*\|([\d, ]*)\|$", DEVIATIONS.read_text(), re.MULTILINE)
    return {key: [int(number) for number in numbers.split(",") if number.strip()] for key, numbers in rows}


def _marked(tree: ast.Module) -> Iterator[tuple[str, list[int]]]:
    """The functions of a module that carry the mark, and the numbers in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for one in node.decorator_list:
                if isinstance(one, ast.Call) and ast.unparse(one.func) == MARK:
                    yield node.name, [ast.literal_eval(argument) for argument in one.args]
