"""What the package of the samples may import, and how large its generators may be."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).parents[2] / "shared/sample_agents"
MOST_LINES = 700
NETWORK = {"boto3", "botocore", "h11", "http", "httpx", "requests", "socket", "ssl", "urllib", "urllib3"}


def imports(source: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def importers(names: set[str]) -> set[str]:
    return {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if names & {*imports(path)}}


def test_the_offline_writer_and_painter_are_small() -> None:
    lines = {path.name: len(path.read_text().splitlines()) for path in (PACKAGE / "offline").glob("*.py")}
    assert sum(lines.values()) <= MOST_LINES, lines


def test_only_the_adapter_of_bedrock_can_open_a_connection() -> None:
    assert importers(NETWORK) == {"bedrock.py"}


def test_only_what_has_a_reason_asks_for_chance_or_for_the_environment() -> None:
    assert importers({"random", "secrets", "uuid", "time", "datetime"}) == {"bedrock.py", "offline/image.py"}
    assert importers({"os"}) == {"models.py"}, "which reads MODELS"
