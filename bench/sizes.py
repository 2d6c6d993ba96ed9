"""The lines of code by distribution, those that are shipped to Lambda, and the words of the documents: without goals.

A line of code has a token that is neither a comment nor a part of a docstring. Shipped are the modules that a zip may
hold: the functions, and the runtime without its harness for tests. A word of the documents stands outside of code and
of generated parts; two Chinese characters count as one (`python -m tests.docs.words` has each page).
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from typing import TYPE_CHECKING

from measuring import ROOT, Report, figure, main

sys.path.insert(0, str(ROOT))
from tests.docs.words import count as count_words

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

RUNTIME = "shared/a2a_serverless"
# The places of each part, and what is left out of it.
PARTS = {
    "shipped to Lambda": (("functions", RUNTIME), ("testing",)),
    "tools": (("shared/a2a_serverless_tools",), ()),
    "frameworks": (("shared/a2a_serverless_frameworks",), ()),
    "samples": (("shared/sample_agents",), ()),
    "receiver": (("webhook_receiver/a2a_webhook_receiver",), ()),
    "bench": (("bench",), ()),
    "the harness for tests": ((f"{RUNTIME}/testing",), ()),
    "tests": (("tests",), ()),
    "examples": (("examples",), ()),
}
SILENT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


def lines_of_code(source: bytes) -> int:
    """Counts the lines of a module that hold code."""
    spans = [range(one.lineno, (one.end_lineno or one.lineno) + 1) for one in _docstrings(ast.parse(source))]
    lines = {
        line
        for token in tokenize.tokenize(io.BytesIO(source).readline)
        if token.type not in SILENT
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(lines.difference(*spans))


def _docstrings(tree: ast.Module) -> Iterable[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str()) as text), *_]:
                    yield text


def count(places: Iterable[str], without: Iterable[str] = ()) -> int:
    """Counts the lines of code in folders of the checkout."""
    return sum(lines_of_code(path.read_bytes()) for place in places for path in _sources(ROOT / place, without))


def _sources(folder: Path, without: Iterable[str]) -> Iterable[Path]:
    left_out = {"node_modules", *without}
    return (path for path in sorted(folder.rglob("*.py")) if not left_out & {*path.relative_to(folder).parts})


def measure(_rounds: int) -> Report:
    """Counts every part."""
    counts = {name: count(places, without) for name, (places, without) in PARTS.items()}
    words = {kind: sum(pages.values()) for kind, pages in count_words().items()}
    return Report(
        "Lines of code, and words",
        __doc__ or "",
        [
            *(figure(name, "lines", [size], ours=True) for name, size in counts.items()),
            *(figure(kind, "words", [number], ours=True) for kind, number in words.items()),
        ],
        [],
    )


if __name__ == "__main__":
    main(measure, rounds=1)
